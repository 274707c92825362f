//! Files that pages use: named by the digest of their content, so that browsers keep them for a year.

use std::sync::LazyLock;

use chancery_resource::Problem;
use chancery_web::{AnswerBody, CompressedText, respond};
use http::{HeaderValue, Response, header, request::Parts};
use serde_json::{Map, Value};

/// A file and how it is served.
struct Asset {
    /// What templates call it.
    name: &'static str,
    /// Its name in addresses.
    file: String,
    content_type: &'static str,
    bytes: &'static [u8],
    text: Option<CompressedText>,
}

static ASSETS: LazyLock<[Asset; 11]> = LazyLock::new(|| {
    let fonts = [
        font("sans", "sans.woff2", include_bytes!("../assets/sans.woff2")),
        font("sans_ext", "sans-ext.woff2", include_bytes!("../assets/sans-ext.woff2")),
        font("serif", "serif.woff2", include_bytes!("../assets/serif.woff2")),
    ];
    // the style names the fonts as they are called here
    let named = [("\"sans.woff2", 0), ("\"sans-ext.woff2", 1), ("\"serif.woff2", 2)];
    let style = named.iter().fold(include_str!("../assets/console.css").to_owned(), |style, (name, at)| {
        fonts.get(*at).map_or(style.clone(), |font| style.replace(name, &format!("\"{}", font.file)))
    });
    let [sans, sans_ext, serif] = fonts;
    [
        text("css", "console.css", "text/css; charset=utf-8", style),
        text(
            "js",
            "console.js",
            "text/javascript; charset=utf-8",
            without_comments(include_str!("../assets/console.js")),
        ),
        text(
            "proof",
            "proof.js",
            "text/javascript; charset=utf-8",
            include_str!("../assets/proof.js").to_owned(),
        ),
        text(
            "import",
            "import.js",
            "text/javascript; charset=utf-8",
            include_str!("../assets/import.js").to_owned(),
        ),
        text(
            "editor",
            "editor.js",
            "text/javascript; charset=utf-8",
            without_comments(include_str!("../assets/editor.js")),
        ),
        text(
            "wait",
            "wait.js",
            "text/javascript; charset=utf-8",
            without_comments(include_str!("../assets/wait.js")),
        ),
        text(
            "rules",
            "rules.json",
            "application/speculationrules+json",
            include_str!("../assets/rules.json").to_owned(),
        ),
        text("icons", "icons.svg", "image/svg+xml", include_str!("../assets/icons.svg").to_owned()),
        sans,
        sans_ext,
        serif,
    ]
});

/// A module without its comments and what it is indented by, which are for who reads the source.
fn without_comments(module: &str) -> String {
    let lines = module.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//") && !line.starts_with("/*"));
    lines.collect::<Vec<_>>().join("\n")
}

fn text(name: &'static str, file: &'static str, content_type: &'static str, text: String) -> Asset {
    let file = named(file, text.as_bytes());
    let text = CompressedText::new(content_type, text.into());
    Asset { name, file, content_type, bytes: &[], text: Some(text) }
}

fn font(name: &'static str, file: &'static str, bytes: &'static [u8]) -> Asset {
    Asset { name, file: named(file, bytes), content_type: "font/woff2", bytes, text: None }
}

/// A file's name with the beginning of its content's digest.
fn named(file: &str, bytes: &[u8]) -> String {
    let (stem, kind) = file.rsplit_once('.').unwrap_or((file, ""));
    let digest = chancery_resource::etag(bytes);
    let digest: String = digest.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    format!("{stem}-{digest}.{kind}")
}

/// The addresses of all files, by what templates call them.
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
/// There is none of this name.
pub fn answer(file: &str, parts: &Parts) -> Result<Response<AnswerBody>, Problem> {
    let found = ASSETS.iter().find(|asset| asset.file == file);
    let asset = found.ok_or_else(|| Problem::not_found("file of this name"))?;
    let mut response = match &asset.text {
        Some(text) => text.answer(&parts.headers),
        None => respond(200, asset.content_type, asset.bytes),
    };
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, kept);
    Ok(response)
}
