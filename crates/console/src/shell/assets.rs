//! Static files of the pages. Names contain the digest of the content, so that browsers may cache them for a year.

use std::sync::LazyLock;

use chancery_resource::Problem;
use chancery_web::{AnswerBody, CompressedText, respond};
use http::{HeaderValue, Response, header, request::Parts};
use serde_json::{Map, Value};

/// A file and its HTTP representation.
struct Asset {
    /// Name in templates.
    name: &'static str,
    /// Name in URLs.
    file: String,
    content_type: &'static str,
    bytes: &'static [u8],
    text: Option<CompressedText>,
}

static ASSETS: LazyLock<[Asset; 11]> = LazyLock::new(|| {
    let fonts = [
        font("sans", "sans.woff2", include_bytes!("../../assets/sans.woff2")),
        font("sans_ext", "sans-ext.woff2", include_bytes!("../../assets/sans-ext.woff2")),
        font("serif", "serif.woff2", include_bytes!("../../assets/serif.woff2")),
    ];
    // the style sheet refers to the fonts by these names
    let named = [("\"sans.woff2", 0), ("\"sans-ext.woff2", 1), ("\"serif.woff2", 2)];
    let style =
        named.iter().fold(include_str!("../../assets/console.css").to_owned(), |style, (name, at)| {
            fonts.get(*at).map_or(style.clone(), |font| style.replace(name, &format!("\"{}", font.file)))
        });
    let [sans, sans_ext, serif] = fonts;
    [
        text("css", "console.css", "text/css; charset=utf-8", style),
        module("js", "console.js", include_str!("../../assets/console.js")),
        module("proof", "proof.js", include_str!("../../assets/proof.js")),
        module("import", "import.js", include_str!("../../assets/import.js")),
        module("editor", "editor.js", include_str!("../../assets/editor.js")),
        module("wait", "wait.js", include_str!("../../assets/wait.js")),
        text(
            "rules",
            "rules.json",
            "application/speculationrules+json",
            include_str!("../../assets/rules.json").to_owned(),
        ),
        text("icons", "icons.svg", "image/svg+xml", include_str!("../../assets/icons.svg").to_owned()),
        sans,
        sans_ext,
        serif,
    ]
});

/// A script without comments and indentation, which serve readers of the source only.
fn module(name: &'static str, file: &'static str, source: &str) -> Asset {
    let lines = source.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//") && !line.starts_with("/*"));
    text(name, file, "text/javascript; charset=utf-8", lines.collect::<Vec<_>>().join("\n"))
}

fn text(name: &'static str, file: &'static str, content_type: &'static str, text: String) -> Asset {
    let file = named(file, text.as_bytes());
    let text = CompressedText::new(content_type, text.into());
    Asset { name, file, content_type, bytes: &[], text: Some(text) }
}

fn font(name: &'static str, file: &'static str, bytes: &'static [u8]) -> Asset {
    Asset { name, file: named(file, bytes), content_type: "font/woff2", bytes, text: None }
}

/// A file name with a prefix of the digest of the content.
fn named(file: &str, bytes: &[u8]) -> String {
    let (stem, kind) = file.rsplit_once('.').unwrap_or((file, ""));
    let digest = chancery_resource::etag(bytes);
    let digest: String = digest.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    format!("{stem}-{digest}.{kind}")
}

/// The URLs of all files, by their names in templates.
pub static ADDRESSES: LazyLock<Value> = LazyLock::new(|| {
    let pairs = ASSETS.iter().map(|asset| {
        let address = format!("/console/asset/{}", asset.file);
        (asset.name.to_owned(), Value::String(address))
    });
    Value::Object(pairs.collect::<Map<_, _>>())
});

/// Answers with a file.
///
/// # Errors
/// No file has this name.
pub fn answer(file: &str, parts: &Parts) -> Result<Response<AnswerBody>, Problem> {
    let matching = ASSETS.iter().find(|asset| asset.file == file);
    let asset = matching.ok_or_else(|| Problem::not_found("file of this name"))?;
    let mut response = match &asset.text {
        Some(text) => text.answer(&parts.headers),
        None => respond(200, asset.content_type, asset.bytes),
    };
    let cache_control = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, cache_control);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    /// The colours of the style sheet by name, each in the light and in the dark theme.
    fn colours() -> HashMap<String, [String; 2]> {
        let style = include_str!("../../assets/console.css");
        let root = style.split_once(":root {").unwrap().1.split_once("}\n").unwrap().0;
        let declarations =
            root.split(';').filter_map(|line| line.trim().strip_prefix("--")?.split_once(": "));
        let read = |value: &str| match value.strip_prefix("light-dark(") {
            Some(both) => {
                let (light, dark) = both.trim_end_matches(')').split_once(", ")?;
                Some([light.to_owned(), dark.to_owned()])
            }
            None => value.starts_with('#').then(|| [value.to_owned(), value.to_owned()]),
        };
        declarations.filter_map(|(name, value)| Some((name.to_owned(), read(value)?))).collect()
    }

    /// The relative luminance of a colour (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        let digits = colour.trim_start_matches('#');
        let wide: String = if digits.len() == 3 {
            digits.chars().flat_map(|one| [one, one]).collect()
        } else {
            digits.to_owned()
        };
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(wide.get(at..at + 2).unwrap(), 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.0722f64.mul_add(part(4), 0.2126f64.mul_add(part(0), 0.7152 * part(2)))
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// Text is legible on each background in both themes (4.5), and borders of fields are visible (3): WCAG 2.2, 1.4.3
    /// and 1.4.11.
    #[test]
    fn every_pair_of_colours_has_enough_contrast() {
        let colours = colours();
        let grounds = ["ground", "page", "card", "raised"];
        let texts = ["ink", "quiet", "faint", "accent", "good", "warn", "bad", "off"];
        let mut pairs: Vec<(&str, &str, f64)> =
            texts.iter().flat_map(|text| grounds.map(|ground| (*text, ground, 4.5))).collect();
        pairs.extend(grounds.map(|ground| ("edge", ground, 3.0)));
        pairs.extend(["good", "warn", "bad", "off"].map(|tone| (tone, tone, 4.5)));
        pairs.extend([
            ("on-accent", "accent", 4.5),
            ("accent", "accent-soft", 4.5),
            ("ink", "accent-soft", 4.5),
            ("ink", "hover", 4.5),
        ]);
        for (one, other, least) in pairs {
            let ground = if one == other { format!("{other}-soft") } else { other.to_owned() };
            for (text, behind) in colours[one].iter().zip(&colours[&ground]) {
                let ratio = contrast(text, behind);
                assert!(ratio >= least, "{one} on {ground}: {ratio:.2}, at least {least}");
            }
        }
    }
}
