//! The path of the public URL. Internal paths are those of the routes: the base is removed from a request's address, and added
//! to the addresses in an answer. So no page, redirect or header is written with it, and none can omit it.

use chancery_resource::settings::OWN_PATHS;
use http::{
    HeaderMap, HeaderName, HeaderValue, Uri, header,
    uri::{PathAndQuery, Scheme},
};

/// The prefix of well-known documents, also of issuers with a path (RFC 8414, section 3.1).
const WELL_KNOWN: &str = "/.well-known/";

/// Headers with addresses, each with the text before the address.
static HEADERS: [(HeaderName, &str); 5] = [
    (header::LOCATION, ""),
    (header::CONTENT_LOCATION, ""),
    (header::LINK, "<"),
    (header::REFRESH, "0; url="),
    (HeaderName::from_static("speculation-rules"), "\""),
];

/// Attributes with addresses, those of the console's script included, each with the text before the address.
const ATTRIBUTES: [(&str, &str); 13] = [
    ("action", ""),
    ("content", "0;url="),
    ("data", ""),
    ("data-keys", ""),
    ("data-later", ""),
    ("data-proof", ""),
    ("data-search", ""),
    ("data-source", ""),
    ("formaction", ""),
    ("href", ""),
    ("poster", ""),
    ("src", ""),
    ("xlink:href", ""),
];

fn first_segment(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.split(['/', '?', '#']).next()
}

/// Whether an address is a path of this server.
fn is_own(address: &str) -> bool {
    first_segment(address).is_some_and(|segment| OWN_PATHS.contains(&segment))
}

/// The path of the public URL: empty, or such as `/id`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

impl BasePath {
    /// The path of a public URL.
    pub fn of(public_url: &str) -> Self {
        let rest = public_url.split_once("://").map_or("", |(_, rest)| rest);
        let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default();
        Self(path.trim_end_matches('/').to_owned())
    }

    /// Validates the path of a public URL: it must not be taken for one of the server's own.
    ///
    /// # Errors
    /// A message for the administrator.
    pub fn validate(public_url: &str) -> Result<(), String> {
        let Self(path) = Self::of(public_url);
        let is_plain = |segment: &str| {
            let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            !matches!(segment, "" | "." | "..") && segment.bytes().all(is_unreserved)
        };
        if !path.split('/').skip(1).all(is_plain) {
            return Err("its path has segments of letters, digits, -, ., _ and ~".to_owned());
        }
        match first_segment(&path).filter(|segment| OWN_PATHS.contains(segment)) {
            Some(own) => Err(format!("its path must not begin with /{own}, where the server has pages")),
            None => Ok(()),
        }
    }

    /// The path: empty, or such as `/id`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes the path off a request's address, unless a proxy in front did or there is none.
    pub fn strip_from(&self, uri: &mut Uri) {
        let Some(inner) = self.inner(uri.path()) else { return };
        let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
        let Ok(inner) = PathAndQuery::try_from(format!("{inner}{query}")) else { return };
        let mut parts = std::mem::take(uri).into_parts();
        // an address with an authority needs a scheme
        parts.scheme = parts.authority.is_some().then(|| parts.scheme.unwrap_or(Scheme::HTTP));
        parts.path_and_query = Some(inner);
        *uri = Uri::from_parts(parts).unwrap_or_default();
    }

    /// The path of a route; `None` where the base is not in it.
    fn inner(&self, path: &str) -> Option<String> {
        let rest = |path: &str| {
            let rest = path.strip_prefix(&self.0)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        };
        if let Some(rest) = rest(path) {
            return Some(if rest.is_empty() { "/".to_owned() } else { rest });
        }
        let name = path.strip_prefix(WELL_KNOWN)?.split('/').next()?;
        let document = path.get(..WELL_KNOWN.len() + name.len())?;
        Some(format!("{document}{}", rest(path.get(document.len()..)?)?))
    }

    /// Puts the path before the addresses of an answer's headers.
    pub fn prefix_headers(&self, headers: &mut HeaderMap) {
        if self.0.is_empty() {
            return;
        }
        for (name, value) in headers.iter_mut() {
            let Some((_, before)) = HEADERS.iter().find(|(known, _)| known == name) else { continue };
            let address = value.to_str().ok().and_then(|text| text.strip_prefix(before));
            let Some(address) = address.filter(|address| is_own(address)) else { continue };
            if let Ok(put) = HeaderValue::try_from(format!("{before}{}{address}", self.0)) {
                *value = put;
            }
        }
    }

    /// A page with the path before its addresses.
    pub fn prefix_html(&self, html: &str) -> String {
        let mut out = String::with_capacity(html.len() + html.len() / 8);
        let mut rest = html;
        while let Some(at) = rest.find('<') {
            let (text, tag) = rest.split_at(at);
            out.push_str(text);
            rest = self.prefix_tag(tag, &mut out);
        }
        out.push_str(rest);
        out
    }

    /// Copies a tag; returns the rest after it.
    fn prefix_tag<'a>(&self, tag: &'a str, out: &mut String) -> &'a str {
        let (opening, mut rest) =
            split_at_stop(tag, |letter| is_space(letter) || matches!(letter, '>' | '/'));
        out.push_str(opening);
        if opening == "<" {
            // the end of an element
            return rest;
        }
        loop {
            rest = copy_until(out, rest, |letter| !is_space(letter) && letter != '/');
            if rest.is_empty() || rest.starts_with('>') {
                return rest;
            }
            let (name, after) =
                split_at_stop(rest, |letter| is_space(letter) || matches!(letter, '=' | '>' | '/'));
            out.push_str(name);
            rest = copy_until(out, after, |letter| !is_space(letter));
            let Some(value) = rest.strip_prefix('=') else { continue };
            out.push('=');
            let value = copy_until(out, value, |letter| !is_space(letter));
            let quote = value.chars().next().filter(|letter| matches!(letter, '"' | '\''));
            let value = quote.map_or(value, |quote| {
                out.push(quote);
                value.strip_prefix(quote).unwrap_or(value)
            });
            let (value, after) = split_at_stop(value, |letter| {
                quote.map_or(is_space(letter) || letter == '>', |quote| letter == quote)
            });
            let known = ATTRIBUTES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let led = known.and_then(|(_, before)| Some((*before, value.strip_prefix(before)?)));
            match led.filter(|(_, address)| is_own(&address.replace("&#x2f;", "/"))) {
                Some((before, address)) => out.extend([before, self.0.as_str(), address]),
                None => out.push_str(value),
            }
            rest = quote.map_or(after, |quote| {
                let closed = after.strip_prefix(quote);
                out.extend(closed.map(|_| quote));
                closed.unwrap_or(after)
            });
        }
    }
}

const fn is_space(letter: char) -> bool {
    letter.is_ascii_whitespace()
}

/// Splits at the first letter that stops.
fn split_at_stop(text: &str, stops: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stops).unwrap_or(text.len()))
}

/// Copies the text before the first letter that stops; returns the rest.
fn copy_until<'a>(out: &mut String, text: &'a str, stops: impl Fn(char) -> bool) -> &'a str {
    let (before, rest) = split_at_stop(text, stops);
    out.push_str(before);
    rest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use chancery_resource::settings::OWN_PATHS;
    use http::{HeaderMap, HeaderValue, Uri, header};

    use super::{BasePath, first_segment};
    use crate::routes::system_route::SystemRoute;

    #[test]
    fn own_paths_are_those_of_the_routes() {
        let routes = SystemRoute::all().map(SystemRoute::path).filter_map(first_segment);
        let found: BTreeSet<&str> = routes.chain(["api", "t"]).filter(|one| !one.is_empty()).collect();
        assert_eq!(found, OWN_PATHS.into_iter().collect());
    }

    #[test]
    fn a_base_is_the_path_of_the_public_url() {
        for (url, path) in [
            ("https://id.example", ""),
            ("https://id.example/", ""),
            ("http://localhost:8080/id", "/id"),
            ("https://example.com/a/b/", "/a/b"),
        ] {
            assert_eq!(BasePath::of(url).as_str(), path);
            assert_eq!(BasePath::validate(url), Ok(()));
        }
    }

    #[test]
    fn a_path_that_the_server_has_itself_is_refused() {
        for wrong in [
            "/console",
            "/t/a",
            "/api",
            "/.well-known/a",
            "/signin",
            "/a//b",
            "/a/../b",
            "/ä",
            "/%61",
            "/a;b",
        ] {
            assert!(BasePath::validate(&format!("https://id.example{wrong}")).is_err(), "{wrong}");
        }
    }

    /// Behind a proxy that takes the path off and behind one that does not; well-known documents in both forms.
    #[test]
    fn the_path_is_taken_off() {
        let base = BasePath::of("https://example.com/id");
        for (requested, inner) in [
            ("/id/console?a=/id/b", "/console?a=/id/b"),
            ("/console?a=b", "/console?a=b"),
            ("/id", "/"),
            ("/id?a", "/?a"),
            ("/id/", "/"),
            ("/idea", "/idea"),
            ("https://example.com/id/console", "https://example.com/console"),
            ("/id/.well-known/openid-configuration", "/.well-known/openid-configuration"),
            ("/.well-known/oauth-authorization-server/id", "/.well-known/oauth-authorization-server"),
            ("/.well-known/oauth-authorization-server/id/t/7", "/.well-known/oauth-authorization-server/t/7"),
            ("/.well-known/oauth-authorization-server/t/7", "/.well-known/oauth-authorization-server/t/7"),
            ("/.well-known/idea", "/.well-known/idea"),
        ] {
            let mut uri: Uri = requested.parse().unwrap();
            base.strip_from(&mut uri);
            assert_eq!(uri.to_string(), inner, "{requested}");
        }
        let mut uri = Uri::from_static("*");
        base.strip_from(&mut uri);
        assert_eq!(uri.to_string(), "*");
    }

    #[test]
    fn headers_lead_below_the_path() {
        let base = BasePath::of("https://example.com/id");
        for (name, value, put) in [
            (header::LOCATION, "/console?a=b", "/id/console?a=b"),
            (header::LOCATION, "https://app.example/console", "https://app.example/console"),
            (header::LOCATION, "//console", "//console"),
            (header::LINK, "</api/a>; rel=\"next\"", "</id/api/a>; rel=\"next\""),
            (header::LINK, "<https://a.example/api>; rel=\"next\"", "<https://a.example/api>; rel=\"next\""),
            (header::REFRESH, "0; url=/signin/continue?go=1", "0; url=/id/signin/continue?go=1"),
        ] {
            let mut headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static(value))]);
            base.prefix_headers(&mut headers);
            assert_eq!(headers.get(name).unwrap(), put);
        }
    }

    #[test]
    fn pages_lead_below_the_path() {
        let base = BasePath::of("https://example.com/id");
        for (html, put) in [
            ("<a href=\"/console\">/console</a>", "<a href=\"/id/console\">/console</a>"),
            ("<a href=\"&#x2f;console&#x2f;me\">", "<a href=\"/id&#x2f;console&#x2f;me\">"),
            (
                "<form\n method=post ACTION='/t/7/signin/a?b=c'>",
                "<form\n method=post ACTION='/id/t/7/signin/a?b=c'>",
            ),
            ("<img alt src=/content/a.png>", "<img alt src=/id/content/a.png>"),
            ("<use href=\"/console/asset/i.svg#a\"/>", "<use href=\"/id/console/asset/i.svg#a\"/>"),
            ("<section data-later=\"/console/find\">", "<section data-later=\"/id/console/find\">"),
            (
                "<input value=\"/console\" name=\"href=/console\">",
                "<input value=\"/console\" name=\"href=/console\">",
            ),
            ("<a href=\"/id/console\"><a href=\"/other\">", "<a href=\"/id/console\"><a href=\"/other\">"),
            (
                "<a href=\"//console\"><a href=\"https://x/console\">",
                "<a href=\"//console\"><a href=\"https://x/console\">",
            ),
            ("a < b <a href=\"/console", "a < b <a href=\"/id/console"),
            ("<img alt=\"\" src=\"/content/a\">", "<img alt=\"\" src=\"/id/content/a\">"),
            ("<br/><a =\"/console\" href>", "<br/><a =\"/console\" href>"),
            (
                "<meta http-equiv=\"refresh\" content=\"0;url=/connect/authorize?a=b&amp;c=/t/7\">",
                "<meta http-equiv=\"refresh\" content=\"0;url=/id/connect/authorize?a=b&amp;c=/t/7\">",
            ),
            (
                "<meta content=\"0;url=https://app.example/connect\"><meta content=\"/connect\">",
                "<meta content=\"0;url=https://app.example/connect\"><meta content=\"/connect\">",
            ),
        ] {
            assert_eq!(base.prefix_html(html), put);
        }
    }
}
