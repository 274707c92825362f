//! The check that an SVG image has nothing but shapes.
//!
//! An SVG that is opened by its own address is a document that can run scripts. Only a small part of the
//! format is accepted: known elements, no event handlers, and references only within the document. Shapes
//! drawn by reference are counted as often as they are drawn: a few lines can draw billions of shapes.

mod drawing;
mod reference;

use drawing::{Drawing, Reference};
use reference::{Way, check_id, referred_to};

const ELEMENTS: [&str; 23] = [
    "circle",
    "clipPath",
    "defs",
    "desc",
    "ellipse",
    "g",
    "line",
    "linearGradient",
    "marker",
    "mask",
    "metadata",
    "path",
    "pattern",
    "polygon",
    "polyline",
    "radialGradient",
    "rect",
    "stop",
    "svg",
    "symbol",
    "text",
    "title",
    "tspan",
];

/// The elements that are a single shape: their paint is drawn once.
const SHAPES: [&str; 7] = ["circle", "ellipse", "line", "path", "polygon", "polyline", "rect"];

/// The greatest depth of nested elements.
const DEEPEST: usize = 100;

pub(super) fn check(text: &str) -> Result<(), String> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    if let Some(declaration) = rest.strip_prefix("<?xml ") {
        rest = declaration.split_once("?>").ok_or("the XML declaration does not end")?.1;
    }
    let mut open: Vec<&str> = Vec::new();
    let mut drawing = Drawing::default();
    let mut roots = 0;
    while let Some((before, tag)) = rest.split_once('<') {
        references(before)?;
        if open.is_empty() && !before.trim().is_empty() {
            return Err("an SVG has no text outside of its element".to_owned());
        }
        if let Some(comment) = tag.strip_prefix("!--") {
            rest = comment.split_once("-->").ok_or("a comment does not end")?.1;
        } else if let Some(end) = tag.strip_prefix('/') {
            let (name, after) = end.split_once('>').ok_or("a tag does not end")?;
            if open.pop() != Some(name.trim_end()) {
                return Err("the tags of the SVG do not match".to_owned());
            }
            rest = after;
        } else {
            let Element { name, closed, after, id, used } = element(tag)?;
            let is_gradient = matches!(name, "linearGradient" | "radialGradient");
            drawing.add(open.len(), id, is_gradient, &used)?;
            if open.is_empty() {
                roots += 1;
            }
            if roots != 1 || (open.is_empty() && name != "svg") {
                return Err("the content must be one svg element".to_owned());
            }
            if !closed {
                open.push(name);
            }
            if open.len() > DEEPEST {
                return Err(format!("elements of an SVG are at most {DEEPEST} deep in each other"));
            }
            rest = after;
        }
    }
    if roots != 1 || !open.is_empty() || !rest.trim().is_empty() {
        return Err("the content must be one whole svg element".to_owned());
    }
    drawing.check()
}

/// An element as its opening tag declares it.
struct Element<'a> {
    name: &'a str,
    /// Whether the tag closes itself (`/>`).
    closed: bool,
    /// The text after the tag.
    after: &'a str,
    id: Option<&'a str>,
    /// The parts that the element draws by reference.
    used: Vec<Reference<'a>>,
}

/// Reads an opening tag.
fn element(tag: &str) -> Result<Element<'_>, String> {
    let (name, mut rest) = name(tag);
    if !ELEMENTS.contains(&name) && name != "use" {
        return Err("an SVG holds shapes alone: no script, style, image, link, animation or HTML".to_owned());
    }
    let (mut id, mut used, mut corners) = (None, Vec::new(), 2);
    loop {
        let trimmed = rest.trim_start();
        if let Some(after) = trimmed.strip_prefix("/>") {
            return Ok(Element { name, closed: true, after, id, used: counted(name, &used, corners)? });
        }
        if let Some(after) = trimmed.strip_prefix('>') {
            return Ok(Element { name, closed: false, after, id, used: counted(name, &used, corners)? });
        }
        if trimmed.len() == rest.len() {
            return Err("a tag of the SVG cannot be read".to_owned());
        }
        let (attribute, after) = self::name(trimmed);
        let value = after.trim_start().strip_prefix('=').map(str::trim_start);
        let value = value.and_then(|value| {
            let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            value.get(1..)?.split_once(quote)
        });
        let (value, after) = value.ok_or("an attribute of the SVG cannot be read")?;
        check_attribute(attribute, value)?;
        if attribute == "id" {
            check_id(value)?;
            id = Some(value);
        }
        if matches!(attribute, "d" | "points" | "style") {
            // each corner takes at least one letter
            corners += value.len();
        }
        used.extend(referred_to(attribute, value)?);
        rest = after;
    }
}

/// How often an element with this many corners draws its references.
fn counted<'a>(element: &str, used: &[(&'a str, Way)], corners: usize) -> Result<Vec<Reference<'a>>, String> {
    let is_shape = SHAPES.contains(&element);
    if !is_shape && used.iter().any(|(_, way)| *way == Way::Marker) {
        return Err("an SVG has markers on single shapes alone".to_owned());
    }
    let counted = used.iter().map(|(name, way)| {
        let times = if *way == Way::Marker { u64::try_from(corners).unwrap_or(u64::MAX) } else { 1 };
        Reference { name, times, is_handed_down: *way == Way::Paint && !is_shape }
    });
    Ok(counted.collect())
}

fn name(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, ':' | '-' | '_'));
    text.split_at_checked(end.unwrap_or(text.len())).unwrap_or((text, ""))
}

fn check_attribute(name: &str, value: &str) -> Result<(), String> {
    references(value)?;
    let local = name.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
    if local.is_empty() || value.contains('<') {
        return Err("an attribute of the SVG cannot be read".to_owned());
    }
    if local.starts_with("on") {
        return Err("an SVG must have no event handlers".to_owned());
    }
    // namespace names are URLs that nobody opens
    if name == "xmlns" || name.starts_with("xmlns:") {
        return Ok(());
    }
    if matches!(local.as_str(), "href" | "src" | "base") && !value.starts_with('#') {
        return Err("an SVG must refer only to what is in it".to_owned());
    }
    if value.contains('&') && value.contains('#') && local == "href" {
        return Err("an SVG must name its parts without escapes".to_owned());
    }
    // a character reference or an escape could spell `url(` in another way
    let plain = value.to_ascii_lowercase().replace(char::is_whitespace, "");
    let outside = plain.split("url(").skip(1).any(|url| !url.starts_with(['#', '"', '\'']) || opens(url));
    if outside
        || plain.contains("javascript:")
        || plain.contains("@import")
        || plain.contains("image-set(")
        || plain.contains("src(")
    {
        return Err("an SVG must refer only to what is in it".to_owned());
    }
    if plain.contains('\\') || (value.contains('&') && plain.contains('(')) {
        return Err("an SVG must have no escapes in its styles".to_owned());
    }
    Ok(())
}

/// Whether a quoted address is outside the document.
fn opens(url: &str) -> bool {
    url.strip_prefix(['"', '\'']).is_some_and(|url| !url.starts_with('#'))
}

/// Refuses entity references that XML does not predefine: others would have to be declared.
fn references(text: &str) -> Result<(), String> {
    let known = |reference: &str| {
        matches!(reference, "amp" | "lt" | "gt" | "quot" | "apos")
            || reference.strip_prefix('#').is_some_and(|code| code.chars().all(|c| c.is_ascii_alphanumeric()))
    };
    let all = text.split('&').skip(1).all(|rest| rest.split_once(';').is_some_and(|(name, _)| known(name)));
    if all { Ok(()) } else { Err("the SVG has a reference that is not known".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn drawings_are_accepted() {
        for good in [
            "<svg/>",
            "\u{feff}<?xml version=\"1.0\"?>\n<!-- a > b --><svg xmlns='http://www.w3.org/2000/svg' \
             xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"0 0 9 9\"><defs><linearGradient id=\"a\">\
             <stop offset=\"0\"/></linearGradient></defs><g fill=\"url(#a)\" style=\"fill: url('#a')\">\
             <use xlink:href=\"#b\"/><text x = '1'>A &amp; &#228;</text ></g></svg>\n",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    /// An SVG that draws billions of shapes by reference is refused, one that draws some is not.
    #[test]
    fn references_are_counted_as_often_as_they_are_drawn() {
        let bomb = |levels: usize, kind: fn(usize) -> String| {
            let part = |level| format!("<g id='p{level}'>{}</g>", kind(level - 1).repeat(10));
            let parts: Vec<String> = (1..levels).map(part).collect();
            format!("<svg><defs><g id='p0'><rect/></g>{}</defs>{}</svg>", parts.concat(), kind(levels - 1))
        };
        let uses: fn(usize) -> String = |part| format!("<use href='#p{part}'/>");
        let fills: fn(usize) -> String = |part| format!("<rect fill='url(#p{part})'/>");
        for kind in [uses, fills] {
            assert_eq!(check(&bomb(4, kind)), Ok(()));
            assert!(check(&bomb(10, kind)).unwrap_err().contains("at most"));
            assert!(check(&bomb(60, kind)).is_err());
        }
        for circle in [
            "<svg><g id='a'><use href='#a'/></g></svg>",
            "<svg id='a'><use href='#a'/></svg>",
            "<svg><g id='a'><use href='#b'/></g><g id='b'><use href='#a'/></g></svg>",
            "<svg><pattern id='a'><rect fill=\"url('#a')\"/></pattern></svg>",
        ] {
            assert!(check(circle).unwrap_err().contains("never to themselves"), "{circle}");
        }
        let siblings =
            "<svg><g id='a'><rect/></g><g id='b'><use href='#a'/></g><use href='#b'/><use href='#x'/></svg>";
        assert_eq!(check(siblings), Ok(()));
    }

    /// Shapes drawn by reference are counted, in any form of the reference: inherited by inner elements,
    /// at each corner, or by another spelling of a name. Each id is unique, so that counting ends soon.
    #[test]
    fn nothing_is_drawn_again_without_being_counted() {
        let paint = "<svg><linearGradient id='g'/><pattern id='p'><rect/></pattern>";
        for good in [
            "<rect fill='url(#p)'/>",
            "<g fill='url(#g)' style='stroke:url(\"#g\") #fff;clip-path:url(#p)'><rect/></g>",
            "<path d='M0 0h1' marker-end='url(#p)' fill='#fff'/>",
            "<g mask='url(#p)' fill='inherit'/>",
        ] {
            assert_eq!(check(&format!("{paint}{good}</svg>")), Ok(()), "{good}");
        }
        for bad in [
            "<g fill='url(#p)'><rect/></g>",
            "<use href='#x' style='a:b; STROKE : url(#p)'/>",
            "<text fill='url(#p)'/>",
            "<g style='@x{} fill:url(#p)'/>",
            "<g style='fill/**/:url(#p)'/>",
            "<g marker-mid='url(#p)'/>",
            "<g style='marker:url(#p)'/>",
            "<g style='--a:url(#p)'/>",
            "<rect fill='var(--a)'/>",
            "<rect fill='context-fill'/>",
            "<g mask='inherit'/>",
            "<g style='all:inherit'/>",
            "<use href='#p\n'/>",
            "<use href='#%70'/>",
            "<rect fill='url(#%70)'/>",
            "<rect fill='url( #p)'/>",
            "<rect fill='url(#p )'/>",
            "<rect fill='src(\"#p\")'/>",
            "<g id='a&#98;'/>",
            "<g id='a b'/>",
            "<g id='a;b'/>",
            "<g id='p'/>",
            "<g xml:id='a'/>",
        ] {
            assert!(check(&format!("{paint}{bad}</svg>")).is_err(), "{bad}");
        }
        let corners = |corners: usize| {
            let (tile, path) = ("<rect/>".repeat(50), "h1".repeat(corners));
            check(&format!(
                "<svg><marker id='m'>{tile}</marker><path d='M0 0{path}' marker='url(#m)'/></svg>"
            ))
        };
        assert_eq!(corners(100), Ok(()));
        assert!(corners(2_000).unwrap_err().contains("at most 100000 shapes"));
        let many = |part: &str| part.repeat(100_000);
        let twice = format!("<svg>{}{}</svg>", many("<g id='a'/>"), many("<use href='#a'/>"));
        assert!(check(&twice).unwrap_err().contains("one id"));
    }

    #[test]
    fn content_that_could_run_or_load_is_refused() {
        for inside in [
            "<script/>",
            "<SCRIPT>1</SCRIPT>",
            "<svg:script/>",
            "<foreignObject><p/></foreignObject>",
            "<style>a{}</style>",
            "<image href=\"#a\"/>",
            "<a href=\"#a\">x</a>",
            "<animate/>",
            "<set/>",
            "<g onclick=\"x\"/>",
            "<g ONload='x'/>",
            "<g x:onload='x'/>",
            "<use href=\"https://a/b.svg#c\"/>",
            "<use href=\"javascript:x\"/>",
            "<use xlink:href=\"data:image/svg+xml,x\"/>",
            "<use href=\"&#35;a\"/>",
            "<g fill=\"url(https://a)\"/>",
            "<g fill='url(\"https://a\")'/>",
            "<g fill=\"URL( //a)\"/>",
            "<g style=\"fill:u\\72l(//a)\"/>",
            "<g style=\"fill:&#117;rl(//a)\"/>",
            "<g xml:base=\"https://a\"/>",
            "<![CDATA[<script/>]]>",
            "<!ENTITY a 'b'>",
            "<?xml-stylesheet href='a'?>",
            "&unknown;",
            "<g a=1/>",
            "<g a/>",
            "<g a=\"1\"b=\"2\"/>",
            "<g>",
            "</g>",
            "<g",
            "<g a=\"<script>\"/>",
        ] {
            let svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{inside}</svg>");
            assert!(check(&svg).is_err(), "{inside}");
        }
        for invalid in
            ["", "x", "<g/>", "<svg/><svg/>", "<svg/>x", "x<svg/>", "<!DOCTYPE svg><svg/>", "<svg", "<svg>"]
        {
            assert!(check(invalid).is_err(), "{invalid}");
        }
        assert!(check(&format!("<svg>{}{}</svg>", "<g>".repeat(200), "</g>".repeat(200))).is_err());
    }
}
