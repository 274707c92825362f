//! Headers of deprecated operations: since when, until when, and the successor.

use chancery_record::{Kind, Timestamp};
use chancery_resource::Op;
use http::{HeaderMap, HeaderValue, header};

/// When the deprecated version was deprecated and when it ends.
#[derive(Clone, Debug)]
pub struct Deprecation {
    since: HeaderValue,
    sunset: Option<HeaderValue>,
}

impl Deprecation {
    /// Deprecated since `since` (RFC 9745), removed at `sunset` (RFC 8594).
    pub fn new(since: Timestamp, sunset: Option<Timestamp>) -> Self {
        let since = HeaderValue::from_str(&format!("@{}", since.0.div_euclid(1000)));
        let date = |moment: Timestamp| {
            let seconds = u64::try_from(moment.0.div_euclid(1000)).unwrap_or(0);
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            HeaderValue::from_str(&httpdate::fmt_http_date(time)).ok()
        };
        Self {
            since: since.unwrap_or_else(|_| HeaderValue::from_static("@0")),
            sunset: sunset.and_then(date),
        }
    }

    /// Adds the headers to an answer of an operation below this base, whose request had this path.
    pub fn set_headers(&self, headers: &mut HeaderMap, base: &str, op: &Op, path: &str) {
        let Some(successor) = op.successor else { return };
        headers.insert("deprecation", self.since.clone());
        if let Some(sunset) = &self.sunset {
            headers.insert("sunset", sunset.clone());
        }
        let names = type_names(successor);
        let target =
            successor_url(&format!("{base}{}", op.path), path, &format!("{base}{}", successor.path), names);
        if let Ok(link) = HeaderValue::from_str(&format!("<{target}>; rel=\"successor-version\"")) {
            headers.append(header::LINK, link);
        }
    }
}

/// The names of the values of `{type}` in an operation's path, by the numbers that version 1 accepts.
fn type_names(op: &Op) -> &'static [&'static str] {
    let choices = op.shape.fields.iter().filter(|field| field.wire().ends_with("Type"));
    let names_of_fields = choices.filter_map(|field| match field.kind {
        Kind::Choice(names) => Some(names),
        _ => None,
    });
    if op.choices.is_empty() { names_of_fields.into_iter().next().unwrap_or_default() } else { op.choices }
}

/// The successor's URL: its template in the next version, filled from the path that matches the old one. At
/// a parameter that the old path lacks it ends: the rest is the parent's path.
fn successor_url(old: &str, path: &str, new: &str, types: &[&str]) -> String {
    let is_parameter = |segment: &str| segment.starts_with('{');
    let templates: Vec<&str> = old.split('/').collect();
    let segments: Vec<&str> = path.split('/').collect();
    let mut given =
        templates.iter().enumerate().filter(|(_, segment)| is_parameter(segment)).map(|(index, _)| {
            // the last parameter takes the rest: a location is the rest of the path
            let end = if index + 1 == templates.len() { segments.len() } else { index + 1 };
            segments.get(index..end).unwrap_or_default().join("/")
        });
    let mut filled: Vec<String> = Vec::new();
    for segment in new.replacen("/v1/", "/v2/", 1).split('/') {
        if is_parameter(segment) {
            match given.next() {
                Some(value) if segment == "{type}" => {
                    let number = value.parse::<usize>().ok();
                    let name = number.and_then(|number| types.get(number)).map(|name| (*name).to_owned());
                    filled.push(name.unwrap_or(value));
                }
                Some(value) if !value.is_empty() => filled.push(value),
                _ => break,
            }
        } else {
            filled.push(segment.to_owned());
        }
    }
    filled.join("/")
}

#[cfg(test)]
mod tests {
    use super::successor_url;

    #[test]
    fn the_successor_is_the_same_path_or_its_parent() {
        for (old, path, new, expected) in [
            (
                "/api/v1/{store}/User/{id}",
                "/api/v1/a%20b/User/7",
                "/api/v1/{store}/User/{id}",
                "/api/v2/a%20b/User/7",
            ),
            (
                "/api/v1/{store}/User/createorupdate",
                "/api/v1/x/User/createorupdate",
                "/api/v1/{store}/User/{id}",
                "/api/v2/x/User",
            ),
            ("/api/v1/Asset/{id}", "/api/v1/Asset/a/b/c", "/api/v1/Asset/{id}", "/api/v2/Asset/a/b/c"),
        ] {
            assert_eq!(successor_url(old, path, new, &[]), expected);
        }
        let (old, new) = ("/api/v1/CertStore/type/{type}", "/api/v2/CertStore/type/{type}");
        for (given, expected) in [("1", "Signing"), ("Signing", "Signing"), ("9", "9")] {
            let link =
                successor_url(old, &format!("/api/v1/CertStore/type/{given}"), new, &["Default", "Signing"]);
            assert_eq!(link, format!("/api/v2/CertStore/type/{expected}"));
        }
    }
}
