//! Operations that directories call (SCIM): run like any other, by the rights of their token, which each transaction
//! verifies by the epoch, or reads again.

use chancery_record::{Json, Timestamp};
use chancery_resource::{Action, Body, Custom, Op, Preconditions, Problem, Request};
use http::{HeaderMap, Response, header, request::Parts};

use super::run::{AuthorizedRequest, run_operation};
use crate::{
    app::App,
    auth::{
        authorization::Authorization,
        rights::{Requirement, Rights, RightsQuery},
    },
    body::parse::{self, max_body_of},
    connection::request_body::RequestBody,
    message::{answer::AnswerBody, request::text},
};

/// The credentials of a directory.
#[derive(Clone)]
pub enum ScimAuthority {
    /// A token of its own.
    Token(RightsQuery),
    /// The access token of a client app, and the user store that it is for.
    AccessToken(Box<Requirement>, String),
}

/// An operation that a directory calls.
pub struct Provision {
    /// The operation.
    pub op: &'static Op,
    /// The path parameters in order.
    pub path: Vec<String>,
    /// The query parameters.
    pub query: Vec<(String, String)>,
    /// The body, as JSON.
    pub body: Option<Json>,
    /// Whether to validate it alone, and change nothing.
    pub dry_run: bool,
}

impl App {
    /// Receives the JSON body of an operation, up to a bound in bytes.
    ///
    /// # Errors
    /// It is too large, of another media type, or no JSON.
    pub async fn receive_json(
        &self,
        op: &'static Op,
        headers: &HeaderMap,
        body: &mut RequestBody,
        allowed: &Authorization,
    ) -> Result<Option<Json>, Problem> {
        if !matches!(op.action, Action::Custom(Custom { body: Body::Json(_), .. })) {
            return Ok(None);
        }
        let token = allowed.provisioner.as_ref().and_then(|provisioner| provisioner.token);
        let caller = allowed.caller.as_ref().map(|caller| caller.holder).or(token);
        let mut room = self.bodies.reserve(caller, headers, max_body_of(self, op)).await?;
        let bytes = body.receive(&self.connections, headers, &mut room).await?;
        if bytes.is_empty() {
            return Err(Problem::invalid("This operation needs a JSON body."));
        }
        parse::parse_json(self, op, bytes, false).await.map(Some)
    }

    /// Runs an operation for a directory.
    ///
    /// # Errors
    /// The operation's own; the token has ended.
    pub async fn provision(
        &self,
        parts: &Parts,
        allowed: &Authorization,
        authority: ScimAuthority,
        call: Provision,
        now: Timestamp,
    ) -> Result<Response<AnswerBody>, Problem> {
        let caller = allowed.caller.as_ref().map(|caller| (caller.id, caller.subscription));
        let (requirement, renewed, store) = match authority {
            ScimAuthority::Token(ask) => (None, Some(Rights::Asked(ask)), None),
            ScimAuthority::AccessToken(requirement, store) => (Some(*requirement), None, Some(store)),
        };
        let authorized = AuthorizedRequest { app: self, parts, requirement, renewed, store, caller, now };
        // a version is a weak tag here, and names the concurrency token
        let tag = |name| text(&parts.headers, name).map(|tags| tags.replace("W/\"", "\""));
        let (if_match, if_none_match) = (tag(header::IF_MATCH), tag(header::IF_NONE_MATCH));
        let request = Request {
            op: call.op,
            path: call.path,
            address: parts.uri.to_string(),
            query: call.query,
            preconditions: Preconditions { if_match, if_none_match },
            body: call.body,
            bytes: None,
            merge_patch: false,
            dry_run: call.dry_run,
            reads_later: false,
            minimal: false,
            unchanged: None,
        };
        run_operation(authorized, request, allowed, Rights::Cached(allowed.epoch), None).await
    }
}
