//! Parsing of requests: query, preconditions and media types.

use std::cmp::Reverse;

use chancery_resource::{Action, Body, Custom, Method, Op, Preconditions, Problem, ProblemKind, Reply};
use http::{HeaderMap, header};
use percent_encoding::percent_decode_str;

/// The media types that are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    Json,
    MergePatch,
    JsonPatch,
    Form,
}

/// A header's text; `None` when it is missing or not text.
pub fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// How an access token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// As a bearer token (RFC 6750).
    Bearer,
    /// With a DPoP proof of the key that it is bound to (RFC 9449).
    Dpop,
}

/// The access token of a request.
pub fn access_token(headers: &HeaderMap) -> Option<(Scheme, &str)> {
    let (scheme, token) = text(headers, header::AUTHORIZATION)?.split_once(' ')?;
    let known = [("bearer", Scheme::Bearer), ("dpop", Scheme::Dpop)];
    let found = known.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name));
    found.map(|(_, scheme)| (*scheme, token.trim()))
}

/// The DPoP proofs of a request, of which there should be one. One that is not text is an invalid proof.
pub fn dpop_proofs(headers: &HeaderMap) -> Vec<String> {
    headers.get_all("dpop").iter().map(|value| value.to_str().unwrap_or_default().to_owned()).collect()
}

/// The most parameters of a query or a form.
const MAX_PARAMETERS: usize = 1000;

/// Parses query parameters or a form.
pub fn read_form(text: &str) -> Result<Vec<(String, String)>, Problem> {
    if text.split('&').filter(|pair| !pair.is_empty()).nth(MAX_PARAMETERS).is_some() {
        let detail = format!("There are more than {MAX_PARAMETERS} parameters. Send fewer.");
        return Err(Problem::invalid(detail));
    }
    // the parser replaces invalid UTF-8; the separators are ASCII, so the text is checked as a whole
    if percent_decode_str(text).decode_utf8().is_err() {
        return Err(Problem::invalid("The parameters are not UTF-8 when their %-codes are decoded."));
    }
    Ok(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
}

/// The media type of a body.
pub fn media_type(headers: &HeaderMap) -> Option<MediaType> {
    let full = text(headers, header::CONTENT_TYPE)?;
    let (essence, parameters) = full.split_once(';').unwrap_or((full, ""));
    let essence = essence.trim().to_ascii_lowercase();
    if essence == "application/x-www-form-urlencoded" {
        // it has no parameters, and is ASCII in every charset that clients name
        return Some(MediaType::Form);
    }
    let charset = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    if charset.is_some_and(|charset| !charset.eq_ignore_ascii_case("utf-8")) {
        return None;
    }
    match essence.as_str() {
        "application/json" => Some(MediaType::Json),
        "application/merge-patch+json" => Some(MediaType::MergePatch),
        "application/json-patch+json" => Some(MediaType::JsonPatch),
        _ => None,
    }
}

/// The weight of one of a header's ranges by its parameters, in thousandths (RFC 9110, section 12.4.2); 0 where it is none.
pub fn weight<'a>(parameters: impl IntoIterator<Item = &'a str>) -> u32 {
    let weight = parameters.into_iter().find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    let Some(weight) = weight else { return 1000 };
    let (whole, part) = weight.split_once('.').unwrap_or((weight, ""));
    if !whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit()) {
        return 0;
    }
    let part: u32 = format!("{part:0<3}").get(..3).and_then(|part| part.parse().ok()).unwrap_or(0);
    whole.parse::<u32>().map_or(0, |whole| (whole.min(1) * 1000 + part).min(1000))
}

/// Checks that the caller accepts the operation's media type.
pub fn check_accept(headers: &HeaderMap, op: &Op) -> Result<(), Problem> {
    match op.reply {
        Reply::Content(types) => accepts(headers, types),
        Reply::Events => accepts(headers, &["text/event-stream"]),
        _ => accepts(headers, &["application/json"]),
    }
}

/// The media ranges that the caller accepts, each with its weight.
fn accepted(headers: &HeaderMap) -> Vec<(String, u32)> {
    let named = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    named
        .flat_map(|value| value.split(','))
        .map(|range| {
            let mut parts = range.split(';');
            let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
            (essence, weight(parts))
        })
        .filter(|(essence, _)| !essence.is_empty())
        .collect()
}

/// Whether `Accept` names this media type with a greater weight than `application/json`, the default, or with the same
/// weight and before it.
pub fn prefers(headers: &HeaderMap, kind: &str) -> bool {
    let ranges = accepted(headers);
    let of = |media_range: &str| {
        let named = ranges.iter().enumerate().filter(|(_, (range, _))| range == media_range);
        named.map(|(position, (_, weight))| (*weight, Reverse(position))).max()
    };
    of(kind).is_some_and(|named| named.0 > 0 && Some(named) > of("application/json"))
}

fn accepts(headers: &HeaderMap, types: &[&str]) -> Result<(), Problem> {
    let ranges = accepted(headers);
    // the most specific range for a type decides on it
    let takes = |kind: &str| {
        let group = kind.split_once('/').map_or("", |(group, _)| group);
        let by = |media_range: &str| {
            ranges.iter().filter(|(range, _)| range == media_range).map(|(_, weight)| *weight).max()
        };
        by(kind).or_else(|| by(&format!("{group}/*"))).or_else(|| by("*/*")).is_some_and(|weight| weight > 0)
    };
    if ranges.is_empty() || types.iter().chain(&["application/problem+json"]).any(|kind| takes(kind)) {
        return Ok(());
    }
    let detail = format!("This operation answers with {}.", types.join(", "));
    Err(Problem::new(ProblemKind::NotAcceptable, detail))
}

/// Whether the JSON body of an operation is a merge patch.
pub fn is_merge_patch(op: &Op, media: Option<MediaType>) -> Result<bool, Problem> {
    let kind = match op.action {
        Action::Custom(Custom { body: Body::JsonPatch(_), .. }) => Some(MediaType::JsonPatch),
        _ => (op.method == Method::Patch).then_some(MediaType::MergePatch),
    };
    match media {
        Some(MediaType::Json) => Ok(false),
        Some(media) if Some(media) == kind => Ok(media == MediaType::MergePatch),
        _ => {
            let types = match kind {
                Some(MediaType::JsonPatch) => "application/json, application/json-patch+json",
                Some(_) => "application/json, application/merge-patch+json",
                None => "application/json",
            };
            let detail = format!("Send the body as {types}, in UTF-8.");
            let header = if kind.is_some() { "accept-patch" } else { "accept" };
            Err(Problem::new(ProblemKind::UnsupportedMediaType, detail).with_header(header, types))
        }
    }
}

/// Refuses query parameters that the operation does not have. Lists validate theirs by themselves.
pub fn check_query(op: &Op, query: &[(String, String)]) -> Result<(), Problem> {
    if op.is_list() {
        return Ok(());
    }
    if let Some((name, _)) = query.iter().find(|(name, _)| !op.query.iter().any(|own| own.name == name)) {
        return Err(Problem::invalid(format!("There is no query parameter {name:?} here.")));
    }
    let times = |name: &str| query.iter().filter(|(known, _)| known == name).count();
    match op.query.iter().find(|own| !own.is_repeated() && times(own.name) > 1) {
        Some(own) => Err(Problem::invalid(format!("The query parameter {} is there twice.", own.name))),
        None => Ok(()),
    }
}

/// Removes `dryRun` from the query.
pub fn take_dry_run(query: &mut Vec<(String, String)>) -> Result<bool, Problem> {
    let Some(at) = query.iter().position(|(name, _)| name == "dryRun") else { return Ok(false) };
    match query.remove(at).1.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Problem::invalid("dryRun is true or false.")),
    }
}

/// The preconditions of a request.
pub fn conditions(headers: &HeaderMap, op: &Op) -> Result<Preconditions, Problem> {
    let if_match = all_of(headers, header::IF_MATCH);
    if if_match.is_some() && !op.has_item() {
        return Err(Problem::invalid("If-Match is about one item that is there. Leave it out here."));
    }
    Ok(Preconditions { if_match, if_none_match: all_of(headers, header::IF_NONE_MATCH) })
}

/// The values of all lines of a list header, joined.
fn all_of(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    let lines: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    if lines.is_empty() { None } else { Some(lines.join(",")) }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};
    use proptest::{
        collection,
        prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_assume, proptest},
        sample::select,
    };

    use super::{MediaType, accepts, media_type, prefers, read_form};

    fn with(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_media_type_is_preferred_where_it_is_named_and_json_is_no_more_welcome() {
        for (accept, is_preferred) in [
            ("application/jwt", true),
            ("Application/JWT;q=0.5, */*", true),
            ("application/jwt, application/json", true),
            ("application/json, application/jwt", false),
            ("application/json;q=0.5, application/jwt;q=0.5", false),
            ("application/json;q=0.5, application/jwt", true),
            ("application/jwt;q=0.5, application/json", false),
            ("application/jwt;q=0", false),
            ("application/json", false),
            ("*/*", false),
            ("application/*", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(prefers(&headers, "application/jwt"), is_preferred, "{accept}");
        }
        assert!(!prefers(&HeaderMap::new(), "application/jwt"));
    }

    #[test]
    fn media_types() {
        let read = |value| media_type(&with(header::CONTENT_TYPE, value));
        assert_eq!(read("Application/JSON; charset=UTF-8"), Some(MediaType::Json));
        assert_eq!(read("application/json;charset=latin1"), None);
        assert_eq!(read("Application/x-www-form-urlencoded; charset=ISO-8859-1"), Some(MediaType::Form));
        assert_eq!(read("text/plain"), None);
    }

    #[test]
    fn accept() {
        let good = |value| accepts(&with(header::ACCEPT, value), &["application/json"]).is_ok();
        assert!(good("text/html, */*;q=0.1"));
        assert!(good("application/json"));
        assert!(!good("text/html"));
        assert!(!good("application/json;q=0"));
        assert!(good("") && good("application/json; Q = 0.001") && good("application/json;v=1"));
        assert!(!good("application/json;q=0.") && !good("text/*") && !good("application/*; q=0"));
        assert!(!good("application/json;q=0, application/problem+json;q=0, */*"), "what says most decides");
    }

    fn blanks() -> impl Strategy<Value = &'static str> {
        select(vec!["", " ", "\t", "  "])
    }

    /// A name as some write it: in either case.
    fn cased(name: &'static str) -> impl Strategy<Value = String> {
        select(vec![name.to_owned(), name.to_uppercase(), name.to_lowercase()])
    }

    proptest! {
        /// Case, blanks and parameters besides the charset are irrelevant to a body's type; another charset than UTF-8 is not.
        #[test]
        fn a_body_has_a_type_however_it_is_written(
            (name, kind) in select(vec![
                ("application/json", Some(MediaType::Json)), ("application/merge-patch+json", Some(MediaType::MergePatch)),
                ("application/json-patch+json", Some(MediaType::JsonPatch)), ("text/json", None), ("application/jsonx", None),
            ]).prop_flat_map(|(name, kind)| (cased(name), Just(kind))),
            charset in select(vec![None, Some(("utf-8", true)), Some(("\"UTF-8\"", true)), Some(("latin1", false)), Some(("utf-16", false))]),
            (word, before, around, after) in (cased("Charset"), blanks(), blanks(), blanks()),
            others in collection::vec("[a-z]{1,4}=[a-z0-9]{1,4}", 0..3),
        ) {
            prop_assume!(!others.iter().any(|other| other.starts_with("charset=")));
            let mut parameters = others;
            if let Some((value, _)) = charset { parameters.push(format!("{word}={value}")); }
            let parameters: Vec<String> = parameters.iter().map(|one| format!("{around};{after}{one}")).collect();
            let parameters = parameters.concat();
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::try_from(format!("{before}{name}{parameters}")).unwrap())]);
            let expected = kind.filter(|_| charset.is_none_or(|(_, is_utf8)| is_utf8));
            prop_assert_eq!(media_type(&headers), expected);
        }

        /// A type is accepted by the weight of its most specific range, in any order and form of ranges.
        #[test]
        fn ranges_accept_by_their_weights(
            ranges in collection::vec((select(vec!["application/json", "application/*", "*/*", "text/html"]).prop_flat_map(cased), 0_u32..=1000, 0..=3_usize, blanks()), 1..5),
        ) {
            let texts: Vec<String> = ranges.iter().map(|(range, weight, digits, blank)| {
                let digits = if weight % 10 > 0 { 3 } else if weight % 100 > 0 { 2.max(*digits) } else if weight % 1000 > 0 { 1.max(*digits) } else { *digits };
                let text = format!("{:.digits$}", f64::from(*weight) / 1000.0);
                format!("{blank}{range}{blank};{blank}q={text}{blank}")
            }).collect();
            for (text, (_, weight, ..)) in texts.iter().zip(&ranges) {
                prop_assert_eq!(super::weight(text.split(';').skip(1)), *weight);
            }
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::try_from(texts.join(",")).unwrap())]);
            let by = |name: &str| ranges.iter().filter(|(range, ..)| range.eq_ignore_ascii_case(name)).map(|(_, weight, ..)| *weight).max();
            let any = by("application/*").or(by("*/*"));
            let (json, problem) = (by("application/json").or(any), any);
            let is_accepted = [json, problem].into_iter().flatten().any(|weight| weight > 0);
            prop_assert_eq!(accepts(&headers, &["application/json"]).is_ok(), is_accepted);
        }

        /// Text that is no weight is refused, without a panic.
        #[test]
        fn any_parameter_has_a_weight(text in "\\PC{0,12}") {
            prop_assert!(super::weight([text.as_str()]) <= 1000);
            let weighed = format!("q={text}");
            prop_assert!(super::weight([weighed.as_str()]) <= 1000);
        }
    }

    #[test]
    fn forms() {
        let read = read_form("a=b+c&d=%C3%BC&e").unwrap();
        assert_eq!(read, [("a", "b c"), ("d", "ü"), ("e", "")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        let read = read_form("&=1&a=b=c%26%3D&%zz=%&&%2B=+").unwrap();
        let expected = [("", "1"), ("a", "b=c&="), ("%zz", "%"), ("+", " ")];
        assert_eq!(read, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert!(read_form("a=%ff").is_err());
        // the halves of a character in two parts are invalid
        assert!(read_form("a=%C3&%BC=b").is_err() && read_form("%C3=%BC").is_err());
        assert!(read_form("a=%EF%BF%BD").is_ok(), "what stands for broken text may be sent");
        assert_eq!(read_form(&"a&&".repeat(1000)).unwrap().len(), 1000);
        assert!(read_form(&"a&".repeat(1001)).unwrap_err().detail.contains("1000"));
    }
}
