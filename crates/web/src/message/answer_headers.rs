//! The parts of an answer besides its body: its ETag, the location of the new item, and no body where the
//! caller wants none.

use chancery_resource::{Answer, Call, Method, Op, Problem, Reply, etag, token_in};
use http::{HeaderMap, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to percent-encode in a path segment: all but the unreserved ones (RFC 3986, section 2.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Whether the caller of a write wants no body (RFC 7240). An operation's own result is always returned.
pub fn wants_minimal(headers: &HeaderMap, op: &Op) -> bool {
    let is_resource = matches!(op.reply, Reply::One | Reply::Owner | Reply::Many);
    op.writes()
        && is_resource
        && headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok()).any(|value| {
            let plain = |part: &str| part.replace([' ', '"'], "").to_ascii_lowercase();
            value.split([',', ';']).any(|part| plain(part) == "return=minimal")
        })
}

/// Whether an operation reads one item, so that its answer has an ETag and preconditions apply.
pub const fn reads_one(op: &Op) -> bool {
    matches!(op.method, Method::Get)
        && !op.writes()
        && !op.reply.is_list()
        && !matches!(op.reply, Reply::Events)
}

/// Adds the headers of a complete answer, which the operation itself does not know.
pub fn add_answer_headers(call: &mut Call, answer: &mut Answer, body: &mut Vec<u8>) {
    let op = call.request.op;
    if answer.tagged || (reads_one(op) && answer.status == 200) {
        let tag = call.answer.tag.take().unwrap_or_else(|| etag(body));
        answer.headers.push(("etag", tag));
    }
    if !call.request.minimal || !op.writes() {
        return;
    }
    body.clear();
    answer.headers.push(("preference-applied", "return=minimal".to_owned()));
    if let Some(key) = &answer.created {
        let path = call.request.address.split('?').next().unwrap_or_default();
        // a location is the rest of the path, any other key one segment
        let segments = if op.shape.is_located() {
            key.trim_start_matches('/').split('/').collect()
        } else {
            vec![key.as_str()]
        };
        let segments: Vec<String> =
            segments.iter().map(|segment| utf8_percent_encode(segment, SEGMENT).to_string()).collect();
        answer.headers.push(("location", format!("{path}/{}", segments.join("/"))));
    }
}

/// The status of an answer about one item, after its preconditions.
///
/// # Errors
/// `If-Match` does not hold.
pub fn check_preconditions(call: &Call, answer: &Answer, body: &[u8]) -> Result<u16, Problem> {
    let tag = answer.headers.iter().find(|(name, _)| *name == header::ETAG.as_str());
    match tag {
        Some((_, tag)) if !call.request.op.writes() && answer.status == 200 => {
            call.request.preconditions.evaluate(tag, token_in(body))
        }
        _ => Ok(answer.status),
    }
}
