//! Conditions on an operation's item (RFC 9110, section 13), and the tags that they compare.

use aws_lc_rs::digest::{Context, SHA256};
use chancery_record::Value;
use chancery_store::Tx;

use crate::{
    Answer, Call, Context as CallContext, Out, Preconditions, Problem, Scope, Shape, StoredRow,
    declare::call::digest::{etag, tag_of},
    read::answer::write_stored_to,
    read::nested::{self, ItemVersion},
};

/// The token in the JSON of an item. A caller's text cannot be mistaken for it, because quotes in text are
/// escaped.
pub fn token_in(json: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(json).ok()?;
    text.split_once("\"concurrencyToken\":\"")?.1.split('"').next()
}

/// Checks `If-Match`, which holds by the quoted concurrency token or by the `ETag` of the representation.
///
/// # Errors
/// The condition does not hold.
pub fn check_if_match(
    call: &mut Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
) -> Result<(), Problem> {
    check_match(&call.request.preconditions, &call.context, tx, shape, was, &mut call.answer)
}

/// Checks `If-Match` as [`check_if_match`] does. Where the representation must be read, it is written to `out`
/// and removed again.
///
/// # Errors
/// The condition does not hold.
pub fn check_match(
    preconditions: &Preconditions,
    context: &CallContext,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: &StoredRow,
    out: &mut Out,
) -> Result<(), Problem> {
    if preconditions.if_match.is_none() {
        return Ok(());
    }
    let token = token_of(shape, was).unwrap_or_default();
    // most conditions contain the token; only for others is the representation read
    if preconditions.matches("*", None) || preconditions.matches(&format!("\"{token}\""), None) {
        return Ok(());
    }
    write_stored_to(context, tx, shape, was, out)?;
    let current = out.tag.take().unwrap_or_else(|| etag(&out.bytes));
    out.bytes.clear();
    preconditions.check(&current, None)
}

/// The concurrency token of a row.
fn token_of<'a>(shape: &Shape, row: &'a StoredRow) -> Option<&'a str> {
    match shape.plan().token.map(|index| row.value(index)) {
        Some(Value::Text(token)) => Some(token),
        _ => None,
    }
}

/// The answer without a body, as the caller preferred. Its tag is the quoted token, which holds for `If-Match`
/// and needs no reading of nested items.
pub fn minimal(call: &Call, shape: &Shape, stored: &StoredRow) -> Answer {
    let mut answer = Answer::new(call.request.op.status);
    if let Some(token) = token_of(shape, stored) {
        answer.headers.push(("etag", format!("\"{token}\"")));
    }
    answer
}

/// Versions that are read at a time.
const WINDOW: usize = 8192;

/// The tag of an item that is too large for memory: a digest of its own members, and of the versions of its
/// nested items in their order.
pub fn version_tag(
    tx: &mut Tx<'_>,
    shape: &Shape,
    scope: &Scope,
    rid: i64,
    own: &[u8],
) -> Result<String, Problem> {
    let mut digest = Context::new(&SHA256);
    digest.update(own);
    for relation in shape.relations {
        digest.update(relation.name.as_bytes());
        let mut after = 0;
        loop {
            let sql = nested::versions(relation, scope, rid, after, WINDOW);
            let mut count = 0;
            tx.query(&sql.text, &sql.parameters, |row| {
                let item = ItemVersion::read(row)?;
                after = item.rid;
                count += 1;
                digest.update(&after.to_be_bytes());
                digest.update(item.version.as_bytes());
                Ok(())
            })?;
            if count < WINDOW {
                break;
            }
        }
    }
    Ok(tag_of(digest.finish().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::{Preconditions, token_in};

    #[test]
    fn conditions_match_by_tag_or_token() {
        let conditions = |if_match: Option<&str>, if_none_match: Option<&str>| Preconditions {
            if_match: if_match.map(str::to_owned),
            if_none_match: if_none_match.map(str::to_owned),
        };
        let evaluated = |conditions: Preconditions| {
            conditions.evaluate("\"a\"", Some("t")).map_err(|problem| problem.status())
        };
        for good in ["\"a.br\"", "\"a\"", "\"x\", \"a\"", "\"t\"", "*"] {
            assert_eq!(evaluated(conditions(Some(good), None)), Ok(200), "{good}");
        }
        for wrong in ["\"x\"", "W/\"a\"", "a", "t", ""] {
            assert_eq!(evaluated(conditions(Some(wrong), Some("\"a\""))), Err(412), "{wrong}");
        }
        for known in ["\"a\"", "W/\"a\"", "\"x\", \"a\"", "*"] {
            assert_eq!(evaluated(conditions(None, Some(known))), Ok(304), "{known}");
        }
        assert_eq!(evaluated(conditions(None, Some("\"t\""))), Ok(200));
    }

    #[test]
    fn the_token_is_not_taken_from_text_or_nested_items() {
        let json = br#"{"name":"\"concurrencyToken\":\"x\"","concurrencyToken":"t","others":[{"concurrencyToken":"o"}]}"#;
        assert_eq!(token_in(json), Some("t"));
        assert_eq!(token_in(b"{}"), None);
    }
}
