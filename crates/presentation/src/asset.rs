//! Assets: the files that pages use, and which files are accepted.
//!
//! An asset comes from the origin of the sign-in page, where a script could read what people type.
//! So there is no JavaScript, no HTML and no other XML among the types; an SVG is accepted when it
//! has nothing but shapes (see `svg`); and each content must match its type. The server that
//! serves them adds `X-Content-Type-Options: nosniff` and a policy that allows nothing
//! (`Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; sandbox`).

mod svg;

/// The most bytes of an asset.
pub const LONGEST: usize = 5 << 20;

const MIME_TYPES: [&str; 14] = [
    "application/json",
    "application/pdf",
    "font/otf",
    "font/ttf",
    "font/woff",
    "font/woff2",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/svg+xml",
    "image/webp",
    "image/x-icon",
    "text/css",
    "text/plain",
];

/// The media types that assets can have.
pub const fn mime_types() -> &'static [&'static str] {
    &MIME_TYPES
}

/// Checks that a content matches a type, one of [`mime_types`].
///
/// # Errors
/// The mistake, for people; quotes nothing of the content.
pub fn check(mime_type: &str, bytes: &[u8]) -> Result<(), String> {
    if bytes.len() > LONGEST {
        return Err(format!("an asset must have at most {LONGEST} bytes"));
    }
    let begins = |with: &[u8]| bytes.starts_with(with);
    let fits = match mime_type {
        "application/json" => {
            let json: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(bytes);
            return json.map(|_| ()).map_err(|error| {
                format!("the content is no JSON: line {}, column {}", error.line(), error.column())
            });
        }
        "text/css" | "text/plain" => return text(bytes).map(|_| ()),
        "image/svg+xml" => return svg::check(text(bytes)?),
        "application/pdf" => begins(b"%PDF-"),
        "font/otf" => begins(b"OTTO"),
        "font/ttf" => begins(&[0, 1, 0, 0]) || begins(b"true"),
        "font/woff" => begins(b"wOFF"),
        "font/woff2" => begins(b"wOF2"),
        "image/gif" => begins(b"GIF87a") || begins(b"GIF89a"),
        "image/jpeg" => begins(&[0xff, 0xd8, 0xff]),
        "image/png" => begins(b"\x89PNG\r\n\x1a\n"),
        "image/webp" => begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
        "image/x-icon" => begins(&[0, 0, 1, 0]),
        _ => return Err(format!("the type must be one of {}", MIME_TYPES.join(", "))),
    };
    if fits { Ok(()) } else { Err(format!("the content is no {mime_type}")) }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the content must be text in UTF-8".to_owned())?;
    let is_control = |letter: char| letter.is_control() && !matches!(letter, '\t' | '\n' | '\r' | '\u{c}');
    if text.contains(is_control) {
        Err("the content must have no control characters".to_owned())
    } else {
        Ok(text)
    }
}

/// An asset's file name: the last segment of its location.
pub fn file_name_of(location: &str) -> &str {
    location.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LONGEST, check, file_name_of, mime_types};

    const GOOD: [(&str, &[u8]); 16] = [
        ("application/json", b" {\"a\": [1]}\n"),
        ("application/pdf", b"%PDF-1.7\n"),
        ("font/otf", b"OTTO\0"),
        ("font/ttf", &[0, 1, 0, 0, 0]),
        ("font/woff", b"wOFF\0"),
        ("font/woff2", b"wOF2\0"),
        ("image/gif", b"GIF89a\x01"),
        ("image/jpeg", &[0xff, 0xd8, 0xff, 0xe0]),
        ("image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("image/svg+xml", b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
        ("image/webp", b"RIFF\x10\0\0\0WEBPVP8 "),
        ("image/x-icon", &[0, 0, 1, 0, 1, 0]),
        ("text/css", b"a { color: red }\n"),
        ("text/css", b""),
        ("text/plain", "ä\r\n".as_bytes()),
        ("image/gif", b"GIF87a\x01"),
    ];

    #[test]
    fn contents_fit_their_types() {
        for (mime_type, bytes) in GOOD {
            assert_eq!(check(mime_type, bytes), Ok(()), "{mime_type}");
        }
        for mime_type in mime_types() {
            assert!(GOOD.iter().any(|(tried, _)| tried == mime_type), "{mime_type} is not tried");
        }
    }

    #[test]
    fn other_contents_do_not() {
        for (mime_type, _) in GOOD {
            for (other, bytes) in GOOD {
                let both_text = [mime_type, other].iter().all(|one| {
                    one.starts_with("text/")
                        || ["application/json", "image/svg+xml", "application/pdf"].contains(one)
                });
                if mime_type != other && !both_text && !mime_type.starts_with("text/") {
                    assert!(check(mime_type, bytes).is_err(), "{mime_type} {other}");
                }
            }
        }
        for (mime_type, bytes) in [
            ("text/css", &b"a\0"[..]),
            ("text/plain", &[0xff]),
            ("application/json", b"{"),
            ("application/json", b""),
            ("image/png", b""),
            ("text/html", b"<p>"),
            ("text/javascript", b""),
            ("IMAGE/PNG", b"\x89PNG\r\n\x1a\n"),
            ("", b""),
        ] {
            assert!(check(mime_type, bytes).is_err(), "{mime_type}");
        }
        assert!(check("text/plain", &vec![b'a'; LONGEST]).is_ok());
        assert!(check("text/plain", &vec![b'a'; LONGEST + 1]).is_err());
        assert!(check("application/json", "[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn file_names() {
        for (location, name) in [("/a/b.css", "b.css"), ("/a", "a"), ("", "")] {
            assert_eq!(file_name_of(location), name);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(index in 0..14_usize, bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = check(mime_types()[index], &bytes);
        }

        #[test]
        fn no_text_panics(text in "(<svg|</svg>|<|>|/|=|\"|'|&|;|!--|-->|<\\?xml|\\?>| |g|href|url\\(#a\\)|\\PC){0,20}") {
            let _ = check("image/svg+xml", text.as_bytes());
        }
    }
}
