//! Provisioning by directories: SCIM 2.0 (RFC 7643, RFC 7644) over the users and groups of user stores and of identity
//! provider instances.
//!
//! Another representation of existing resources, as version 1 is: wire format, schemas, PATCH and filters are in
//! `chancery-scim`, rules, audit entries, events and quarantine with the resources. This crate has authentication
//! (`access`), routing (`address`), and the mapping to rows (`users`, `groups`, `list`).

#![warn(missing_docs)]

mod access;
mod address;
mod bulk;
mod caller;
mod discovery;
mod form;
mod groups;
mod http;
mod list;
mod operations;
mod pages;
mod reach;
mod related;
mod render;
mod search;
mod users;
mod write;

use std::pin::Pin;

use ::http::{Response, request::Parts};
use chancery_record::Timestamp;
use chancery_resource::Problem;
use chancery_web::{AnswerBody, App, RequestBody};

pub use operations::{paths, shapes};
pub use users::prune_removal_refusals;

/// Answers a request below `/api/scim/v2`.
pub fn answer<'a>(
    app: &'a App,
    parts: &'a Parts,
    body: &'a mut RequestBody,
    now: Timestamp,
) -> Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, Problem>> + Send + 'a>> {
    Box::pin(http::answer(app, parts, body, now))
}
