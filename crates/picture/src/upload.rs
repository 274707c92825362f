//! Finds the image in a request's body.

use base64::{Engine, engine::general_purpose::STANDARD};
use chancery_record::{FieldError, Json, pointer, read_json};

use crate::{Format, MAX_BODY_BYTES, MAX_BYTES, PictureRefusal, format::is_type, multipart::single_part};

/// The most characters of a member's name in an error.
const MAX_NAME: usize = 64;

/// An image as a client sent it. Its size is checked, its content is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The declared format; without one, that of the first bytes.
    pub content_type: Format,
    /// The image's bytes, at most [`MAX_BYTES`].
    pub bytes: Vec<u8>,
}

/// Finds the image in a body: raw under its own type or `application/octet-stream`, the one part
/// with content of `multipart/form-data` (RFC 7578), or `{contentType, data}` in
/// `application/json`, data being strict base64.
///
/// # Errors
/// [`PictureRefusal`], except for its pixels: only [`normalize`](crate::normalize) decodes the image.
pub fn parse(content_type: Option<&str>, body: &[u8]) -> Result<Upload, PictureRefusal> {
    if body.len() > MAX_BODY_BYTES {
        return Err(PictureRefusal::TooLarge(format!("The body has more than {MAX_BODY_BYTES} bytes.")));
    }
    let content_type = content_type.ok_or(PictureRefusal::UnsupportedType)?;
    if is_type(content_type, "application/json") {
        return from_json(body);
    }
    if is_type(content_type, "multipart/form-data") {
        let (content_type, bytes) = single_part(content_type, body)?;
        return upload(content_type.as_deref(), bytes.into());
    }
    upload(Some(content_type), body.to_vec())
}

fn upload(content_type: Option<&str>, bytes: Vec<u8>) -> Result<Upload, PictureRefusal> {
    if bytes.is_empty() {
        return Err(PictureRefusal::Malformed("There is no image.".to_owned()));
    }
    if bytes.len() > MAX_BYTES {
        return Err(PictureRefusal::TooLarge(format!("The image has more than {MAX_BYTES} bytes.")));
    }
    let format = match content_type {
        Some(declared) if !is_type(declared, "application/octet-stream") => Format::of_content_type(declared),
        _ => Format::of_content(&bytes),
    };
    Ok(Upload { content_type: format.ok_or(PictureRefusal::UnsupportedType)?, bytes })
}

fn from_json(body: &[u8]) -> Result<Upload, PictureRefusal> {
    let json =
        read_json(body).map_err(|error| PictureRefusal::Malformed(format!("Not JSON: {}.", error.0)))?;
    let Json::Object(members) = json else {
        return Err(PictureRefusal::Malformed(format!("The body is {}, not an object.", json.word())));
    };
    let (mut content_type, mut data, mut errors) = (None, None, Vec::new());
    for (name, value) in members {
        let short_name: String = name.chars().take(MAX_NAME).collect();
        let mut add_error = |detail: String| errors.push(FieldError::new(pointer("", &short_name), detail));
        let member = match name.as_str() {
            "contentType" => &mut content_type,
            "data" => &mut data,
            _ => {
                add_error("is unknown: there are contentType and data".to_owned());
                continue;
            }
        };
        *member = Some(if let Json::Text(text) = value {
            text
        } else {
            add_error(format!("is {}, not a string", value.word()));
            String::new()
        });
    }
    for (name, member) in [("contentType", &content_type), ("data", &data)] {
        if member.is_none() {
            errors.push(FieldError::new(pointer("", name), "is missing"));
        }
    }
    let (Some(content_type), Some(data), true) = (content_type, data, errors.is_empty()) else {
        return Err(PictureRefusal::Members(errors));
    };
    // JSON always declares an image type: application/octet-stream is rejected
    Format::of_content_type(&content_type).ok_or(PictureRefusal::UnsupportedType)?;
    let data_error = |detail: String| PictureRefusal::Members(vec![FieldError::new("/data", detail)]);
    if data.is_empty() {
        return Err(data_error("holds no image".to_owned()));
    }
    let bytes = STANDARD.decode(data).map_err(|error| data_error(format!("is not base64: {error}")))?;
    upload(Some(&content_type), bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::sample;

    fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (headers, content) in parts {
            body.extend_from_slice(b"--edge\r\nContent-Disposition: form-data; name=\"image\"\r\n");
            body.extend_from_slice(headers.as_bytes());
            body.extend_from_slice(b"\r\n");
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--edge--\r\n");
        body
    }

    fn parse_form(parts: &[(&str, &[u8])]) -> Result<Upload, PictureRefusal> {
        parse(Some("multipart/form-data; boundary=edge"), &form(parts))
    }

    fn parse_json(body: &str) -> Result<Upload, PictureRefusal> {
        parse(Some("application/json; charset=utf-8"), body.as_bytes())
    }

    fn detail(refused: Result<Upload, PictureRefusal>) -> String {
        match refused {
            Err(PictureRefusal::Malformed(detail)) => detail,
            Err(refused @ PictureRefusal::Members(_)) => refused.to_string(),
            other => panic!("not malformed: {other:?}"),
        }
    }

    #[test]
    fn every_encoding_gives_the_same_image() {
        for format in Format::ALL {
            let bytes = sample(format);
            let name = format.content_type();
            let expected = Ok(Upload { content_type: format, bytes: bytes.clone() });
            assert_eq!(parse(Some(name), &bytes), expected);
            assert_eq!(parse(Some(&format!("{}; q=1", name.to_uppercase())), &bytes), expected);
            assert_eq!(parse(Some("application/octet-stream"), &bytes), expected);
            assert_eq!(parse_form(&[(&format!("Content-Type: {name}\r\n"), &bytes)]), expected);
            assert_eq!(parse_form(&[("content-type: application/octet-stream\r\n", &bytes)]), expected);
            assert_eq!(parse_form(&[("", b""), ("", &bytes), ("", b"")]), expected);
            let data = STANDARD.encode(&bytes);
            assert_eq!(parse_json(&format!(r#"{{"contentType": "{name}", "data": "{data}"}}"#)), expected);
        }
    }

    #[test]
    fn other_types_are_rejected() {
        let png = sample(Format::Png);
        for other in ["image/svg+xml", "image/jpg", "image/", "text/html", "multipart/mixed", ""] {
            assert_eq!(parse(Some(other), &png), Err(PictureRefusal::UnsupportedType), "{other}");
        }
        assert_eq!(parse(None, &png), Err(PictureRefusal::UnsupportedType));
        assert_eq!(
            parse_form(&[("Content-Type: image/bmp\r\n", &png)]),
            Err(PictureRefusal::UnsupportedType)
        );
        assert_eq!(parse_form(&[("Content-Type: \u{e9}\r\n", &png)]), Err(PictureRefusal::UnsupportedType));
        for unnamed in [r"application/octet-stream", "image/svg+xml"] {
            let body = format!(r#"{{"contentType": "{unnamed}", "data": "{}"}}"#, STANDARD.encode(&png));
            assert_eq!(parse_json(&body), Err(PictureRefusal::UnsupportedType));
        }
        for content in [&b"<svg xmlns='http://www.w3.org/2000/svg'/>"[..], b"<!doctype html>", b"PK\x03\x04"]
        {
            assert_eq!(
                parse(Some("application/octet-stream"), content),
                Err(PictureRefusal::UnsupportedType)
            );
        }
    }

    #[test]
    fn sizes_are_bounded() {
        let mut bytes = sample(Format::Gif);
        bytes.resize(MAX_BYTES, 0);
        let json =
            |bytes: &[u8]| format!(r#"{{"contentType":"image/gif","data":"{}"}}"#, STANDARD.encode(bytes));
        assert!(parse(Some("image/gif"), &bytes).is_ok());
        assert!(parse_json(&json(&bytes)).is_ok());
        bytes.push(0);
        for refused in [
            parse(Some("image/gif"), &bytes),
            parse_form(&[("", &bytes)]),
            parse_json(&json(&bytes)),
            parse(Some("application/json"), &vec![b' '; MAX_BODY_BYTES + 1]),
        ] {
            assert!(matches!(refused, Err(PictureRefusal::TooLarge(_))), "{refused:?}");
        }
    }

    #[test]
    fn json_is_read_strictly() {
        assert_eq!(detail(parse_json("{}")), "/contentType is missing; /data is missing");
        assert!(detail(parse_json(r#"{"contentType":"image/png"}"#)).starts_with("/data is missing"));
        assert!(detail(parse_json(r#"{"data":"AA=="}"#)).starts_with("/contentType is missing"));
        assert!(
            detail(parse_json(r#"{"contentType":"image/png","data":7}"#)).contains("/data is a whole number")
        );
        assert!(
            detail(parse_json(r#"{"contentType":"image/png","data":"AA==","url":""}"#))
                .contains("/url is unknown")
        );
        assert!(detail(parse_json(r#"{"data":"AA==","data":"AA=="}"#)).contains("twice"));
        assert!(detail(parse_json(r#"["image/png","AA=="]"#)).contains("an array"));
        for data in ["AA", "A===", "AB==", "AA==\\n", " AA==", "_-8="] {
            let body = format!(r#"{{"contentType":"image/png","data":"{data}"}}"#);
            assert!(detail(parse_json(&body)).contains("base64"), "{data}");
        }
        assert!(detail(parse_json(r#"{"contentType":"image/png","data":""}"#)).contains("no image"));
        assert!(detail(parse_json(&format!(r#"{{"{}":1}}"#, "x".repeat(9999)))).len() < 200);
    }

    #[test]
    fn a_form_has_one_image() {
        let png = sample(Format::Png);
        assert!(detail(parse_form(&[("", &png), ("", &png)])).contains("More than one"));
        assert!(detail(parse_form(&[("", b"")])).contains("No part"));
        assert!(detail(parse_form(&[("", &b""[..]); 9])).contains("parts"));
        let long = format!("X-Long: {}\r\n", "x".repeat(5000));
        assert!(detail(parse_form(&[(&long, &png)])).contains("headers"));
        assert!(detail(parse(Some("multipart/form-data"), b"")).contains("multipart"));
        let whole = form(&[("", &png)]);
        for length in 0..whole.len() - b"--\r\n".len() {
            detail(parse(Some("multipart/form-data; boundary=edge"), &whole[..length]));
        }
    }

    proptest! {
        #[test]
        fn no_body_panics(
            kind in prop::sample::select(vec!["multipart/form-data; boundary=a", "application/json", "image/png"]),
            body in prop::collection::vec(prop::sample::select(b"--a\r\n:;=\"{}[],b\x00\xff".to_vec()), 0..200),
        ) {
            if let Ok(upload) = parse(Some(kind), &body) {
                prop_assert!(!upload.bytes.is_empty() && upload.bytes.len() <= body.len());
            }
        }
    }
}
