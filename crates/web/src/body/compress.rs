//! Compressed answers: lists, documents and assets, as they are produced. Never an answer with a secret: the
//! compressed length would leak it to an attacker who can put a guess into the same answer (BREACH).

use chancery_record::{Column, Sealing};
use chancery_resource::{Method, Op, Personal, Problem, Reply, Shape};
use http::{HeaderMap, HeaderValue, Response, header};

use super::blocking::run_blocking;
use crate::{
    app::App,
    message::{
        answer::{AnswerBody, EncodedBody},
        coding::{Coding, Effort, SMALL},
    },
};

/// Longer complete bodies are compressed off the workers, in bytes.
const LONG: usize = 256 << 10;
/// Whether the answers of an operation may be compressed.
pub fn is_compressible(op: &Op) -> bool {
    // a resource with locations is a page or a file of one
    let is_long = op.reply.is_list() || matches!(op.reply, Reply::Content(_)) || op.shape.is_located();
    op.method == Method::Get && is_long && !holds_secrets(op.shape)
}

/// Whether rows of a resource hold secrets, or report changes to such.
fn holds_secrets(shape: &Shape) -> bool {
    let is_secret = |shape: &Shape| {
        shape.fields.iter().any(|field| {
            field.access.sealing == Sealing::Secret
                || (field.access.column == Column::Unstored && field.access.shown)
        })
    };
    is_secret(shape)
        || matches!(shape.personal, Personal::AuditOf(_))
        || shape.relations.iter().any(|relation| is_secret(relation.target))
}

/// Compresses an answer as the caller prefers, if its media type is compressible. A complete body is
/// encoded here: only a streamed one, which is bounded where it is produced, holds an encoder while read.
pub async fn compress(
    app: &App,
    headers: &HeaderMap,
    response: Response<AnswerBody>,
) -> Result<Response<AnswerBody>, Problem> {
    let is_text =
        response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(
            |kind| {
                let essence = kind.split(';').next().unwrap_or_default().trim();
                essence.starts_with("text/") || ["application/json", "image/svg+xml"].contains(&essence)
            },
        );
    if !is_text {
        return Ok(response);
    }
    let (mut answered, body) = response.into_parts();
    answered.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    let Some(coding) = Coding::preferred(headers) else { return Ok(Response::from_parts(answered, body)) };
    let encoded = match body {
        AnswerBody::Whole(Some(bytes)) if bytes.len() >= SMALL => {
            let plain = bytes.clone();
            let encoded = if bytes.len() > LONG {
                run_blocking(app, move || coding.encode(&bytes, Effort::Low)).await?
            } else {
                coding.encode(&bytes, Effort::Low)
            };
            encoded.map(|encoded| AnswerBody::Whole(Some(encoded))).ok_or(AnswerBody::Whole(Some(plain)))
        }
        AnswerBody::Parts(_) => {
            EncodedBody::of(body, coding).map(|encoded| AnswerBody::EncodedBody(Box::new(encoded)))
        }
        as_it_is => Err(as_it_is),
    };
    if encoded.is_ok() {
        coding.set_headers(&mut answered.headers);
    }
    Ok(Response::from_parts(answered, encoded.unwrap_or_else(|as_it_is| as_it_is)))
}
