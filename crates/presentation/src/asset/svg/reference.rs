//! The references in the attributes of an SVG. Only one spelling of a name is accepted, so that browsers find the same
//! references.

/// How often an element draws a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Once.
    Once,
    /// As the fill or stroke of the element and of all inner ones.
    Paint,
    /// At each corner of the element and of all inner ones.
    Marker,
}

/// The names that an attribute refers to, and how they are drawn.
pub(super) fn referred_to<'a>(attribute: &str, value: &'a str) -> Result<Vec<(&'a str, Way)>, String> {
    let local = attribute.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
    if attribute == "xml:id" {
        return Err("an SVG must name its parts by id".to_owned());
    }
    if attribute == "xmlns" || attribute.starts_with("xmlns:") {
        return Ok(Vec::new());
    }
    if local == "href" {
        let name = value.strip_prefix('#').unwrap_or(value);
        return Ok(vec![(checked(name)?, Way::Once)]);
    }
    let plain = value.to_ascii_lowercase();
    if ["var(", "context-", "/*"].iter().any(|word| plain.contains(word)) {
        return Err("an SVG must say what it draws where it draws it".to_owned());
    }
    if local != "style" {
        return declared(&local, value);
    }
    let declarations = value.split(';').map(|part| part.split_once(':').unwrap_or((part, "")));
    let all = declarations.map(|(property, value)| declared(&property.to_ascii_lowercase(), value));
    Ok(all.collect::<Result<Vec<_>, _>>()?.concat())
}

/// The names that a property's value refers to, and how they are drawn.
fn declared<'a>(property: &str, value: &'a str) -> Result<Vec<(&'a str, Way)>, String> {
    let is = |words: &[&str]| words.iter().any(|word| property.contains(word));
    let plain = value.to_ascii_lowercase();
    // properties that are not inherited by default are with `inherit`
    if is(&["mask", "clip", "all"]) && plain.contains("inherit") {
        return Err("an SVG must say what it draws where it draws it".to_owned());
    }
    let way = if is(&["marker"]) {
        Way::Marker
    } else if is(&["fill", "stroke"]) {
        Way::Paint
    } else {
        Way::Once
    };
    let urls = plain.match_indices("url(").filter_map(|(at, opening)| value.get(at + opening.len()..));
    let names = urls.map(|url| {
        let name = url.strip_prefix(['"', '\'']).unwrap_or(url).strip_prefix('#').unwrap_or_default();
        let end = name.find(['"', '\'', ')']).unwrap_or(name.len());
        if property.contains("--") {
            return Err("an SVG must say what it draws where it draws it".to_owned());
        }
        Ok((checked(name.get(..end).unwrap_or_default())?, way))
    });
    names.collect()
}

/// Refuses an id that could be spelt in several ways.
pub(super) fn check_id(id: &str) -> Result<(), String> {
    checked(id).map(|_| ())
}

fn checked(name: &str) -> Result<&str, String> {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err("an SVG names its parts with letters, digits, '-', '_', '.' and ':' alone".to_owned());
    }
    Ok(name)
}
