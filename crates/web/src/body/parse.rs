//! Reads the JSON and the forms of bodies; parses off the workers what is large.

use bytes::Bytes;
use chancery_record::{Json, read_json_within};
use chancery_resource::{Action, Body, Custom, Op, Permit, Problem, check_body};
use http::request::Parts;

use super::blocking::run_blocking;
use crate::{
    app::App,
    connection::request_body::{RequestBody, SMALL_BODY},
    message::request::{MediaType, media_type, read_form},
};

/// The most values in a body that is no batch: `relatedIds` has the most.
const MAX_VALUES: usize = 200_000;

/// The largest body of an operation, in bytes.
pub const fn max_body_of(app: &App, op: &Op) -> usize {
    match op.action {
        Action::Custom(Custom { body: Body::Bytes(_, bound), .. }) => bound,
        _ if matches!(op.permit, Permit::Public) => SMALL_BODY,
        _ if op.is_batch() => app.limits.batch_body,
        _ => app.limits.body,
    }
}

/// Parses the JSON of a body. A large one is parsed off the workers, and refused there if nearly all of it
/// is invalid.
pub async fn parse_json(app: &App, op: &'static Op, bytes: Bytes, merges: bool) -> Result<Json, Problem> {
    if bytes.len() <= SMALL_BODY {
        return parse(op, &bytes);
    }
    run_blocking(app, move || {
        let json = parse(op, &bytes)?;
        check_body(op, &json, merges)?;
        Ok(json)
    })
    .await?
}

/// Reads a posted form of at most this many bytes.
///
/// # Errors
/// It is no form, is too large, or breaks off.
pub async fn read_form_body(
    app: &App,
    parts: &Parts,
    body: &mut RequestBody,
    most: usize,
) -> Result<Vec<(String, String)>, Problem> {
    if media_type(&parts.headers) != Some(MediaType::Form) {
        return Err(Problem::invalid("Send application/x-www-form-urlencoded."));
    }
    let mut room = app.bodies.reserve(None, &parts.headers, most).await?;
    let bytes = body.receive(&app.connections, &parts.headers, &mut room).await?;
    read_form(std::str::from_utf8(&bytes).map_err(|_| Problem::invalid("The form is not UTF-8."))?)
}

fn parse(op: &Op, bytes: &[u8]) -> Result<Json, Problem> {
    let most = if op.is_batch() { chancery_record::MAX_VALUES } else { MAX_VALUES };
    read_json_within(bytes, most)
        .map_err(|error| Problem::invalid(format!("The body is not JSON that is read here: {}.", error.0)))
}
