//! Endpoints that authenticate clients: a form comes, JSON goes, and wrong proofs are counted.

use std::net::IpAddr;

use chancery_auth::{
    ClientCertificate, EndpointRequest, Introspection, Issuer, OAuthError, Proof, introspect, revoke,
};
use chancery_record::Timestamp;
use chancery_resource::Problem;
use chancery_signin::{GRANT_TYPES, shows_refresh_token};
use chancery_store::Class;
use http::{HeaderValue, Response, header, request::Parts};
use serde_json::json;

use super::discovery::unsupported_grant;
use crate::{
    app::{App, refusal_log::RefusalEntry},
    body::parse::read_form_body,
    connection::request_body::{RequestBody, SMALL_BODY},
    limits::proof_limiter::About,
    message::{
        answer::{AnswerBody, add_headers, respond},
        peer::address_of,
        request::{dpop_proofs, prefers, text},
    },
    pages::seconds_of,
    routes::system_route::SystemRoute,
};

impl SystemRoute {
    /// Answers at an endpoint that authenticates clients.
    pub(super) async fn endpoint(
        self,
        app: &App,
        issuer: Issuer,
        parts: &Parts,
        body: &mut RequestBody,
        now: Timestamp,
    ) -> Response<AnswerBody> {
        let answer = match read_request(app, issuer.clone(), self.path(), parts, body, now).await {
            Ok(request) => {
                let answer = self.call_within_limits(app, address_of(parts), &request).await;
                let refusal = match &answer {
                    Ok(Err(error)) if error.status < 500 => Some((error.error, error.description)),
                    Ok(_) => None,
                    Err(_) => Some(("temporarily_unavailable", "Too many requests came.")),
                };
                if let Some((error, reason)) = refusal {
                    RefusalEntry::of_client(&request, error, reason).report(app, now).await;
                }
                match answer {
                    Ok(answer) => answer,
                    Err(wait) => return too_many(wait),
                }
            }
            Err(problem) => {
                let status = problem.status();
                let error = if status == 503 { "temporarily_unavailable" } else { "invalid_request" };
                if status < 500 {
                    let entry = RefusalEntry::of_browser(self.path(), &issuer, &[], error, &problem.detail);
                    entry.report(app, now).await;
                }
                let body = json!({ "error": error, "error_description": problem.detail });
                Ok(Answered { status, ..Answered::json(body.to_string()) })
            }
        };
        let mut cause = None;
        let (mut response, nonce) = match answer {
            Ok(Answered { body, media_type, nonce, status }) => (respond(status, media_type, body), nonce),
            Err(error) => {
                let nonce = (error.error == "use_dpop_nonce").then(|| app.token_service.nonces.issue(now));
                cause = error.cause.as_ref().map(ToString::to_string);
                (respond(error.status, "application/json", error.body()), nonce)
            }
        };
        if response.status() == http::StatusCode::UNAUTHORIZED {
            let basic = HeaderValue::from_static("Basic realm=\"chancery\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, basic);
        }
        if response.status() == http::StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            if let Some(others) = app.metrics.shed.note(now) {
                tracing::warn!(path = self.path(), cause, others, "unavailable");
            }
        }
        add_headers(&mut response, nonce.map(|nonce| ("dpop-nonce", nonce)).into_iter().collect());
        response
    }

    /// Calls the endpoint, unless there were too many wrong proofs: then the seconds to wait.
    async fn call_within_limits(
        self,
        app: &App,
        address: IpAddr,
        request: &EndpointRequest,
    ) -> Result<EndpointResult, i64> {
        let Ok(presented) = request.presented() else { return Ok(self.call(app, request).await) };
        // a certificate alone can authenticate a client
        let has_proof = request.certificate.is_some() || !matches!(presented.proof, Proof::Bare);
        // any certificate is accepted, and besides it a client app can be public
        let may_be_public = matches!(presented.proof, Proof::Bare);
        let about = About::Client { id: &presented.client, has_proof, may_be_public };
        let attempt = app.proof_limiter.admit(address, about, request.now).await?;
        if self == Self::DeviceAuthorization
            && may_be_public
            && let Err(problem) = app.device_limiter.admit_address(address, request.now)
        {
            attempt.was_inconclusive();
            return Err(seconds_of(&problem));
        }
        let answer = self.call(app, request).await;
        match &answer {
            Err(error) if error.error == "invalid_client" => attempt.was_wrong(),
            Err(error) if error.is_unknown_credential => attempt.guessed_grant(),
            Ok(_) => attempt.was_right(),
            Err(_) => attempt.was_inconclusive(),
        }
        Ok(answer)
    }

    /// Calls the endpoint.
    async fn call(self, app: &App, request: &EndpointRequest) -> EndpointResult {
        let (store, token_service, rights) =
            (&app.store.with(Class::Urgent), &app.token_service, &app.rights);
        let is_refresh_token = app.sign_in.is_on && shows_refresh_token(request);
        match self {
            Self::Introspect if is_refresh_token => {
                Ok(app.provider(store).introspect_refresh_token(request).await?.into())
            }
            Self::Revoke if is_refresh_token => {
                app.provider(store).revoke_refresh_token(request).await?;
                Ok(Answered::json(String::new()))
            }
            Self::Introspect => Ok(introspect(store, token_service, rights, request).await?.into()),
            Self::Revoke => {
                revoke(store, token_service, rights, request).await?;
                Ok(Answered::json(String::new()))
            }
            Self::DeviceAuthorization => {
                Ok(Answered::json(app.provider(store).authorize_device(request).await?))
            }
            _ => {
                let provider = app.provider(store);
                let named = request.one("grant_type").filter(|_| app.sign_in.is_on);
                let (label, granted) = match GRANT_TYPES.iter().find(|one| Some(one.name) == named) {
                    Some(grant_type) => (grant_type.label, (grant_type.redeem)(provider, request).await),
                    None => ("other", provider.grant(rights, request).await),
                };
                let outcome = granted.as_ref().map_or_else(|refused| refused.error, |_| "granted");
                app.metrics.note_tokens(label, outcome);
                let granted = granted.map_err(|refused| match refused.error {
                    "unsupported_grant_type" => OAuthError { description: unsupported_grant(app), ..refused },
                    _ => refused,
                })?;
                Ok(Answered { nonce: granted.nonce, ..Answered::json(granted.body) })
            }
        }
    }
}

/// The media type of a signed answer of introspection (RFC 9701, section 4).
const SIGNED_INTROSPECTION: &str = "application/token-introspection+jwt";

/// An answer that is not an OAuth error.
struct Answered {
    body: String,
    media_type: &'static str,
    /// The nonce for the next proof.
    nonce: Option<String>,
    status: u16,
}

impl Answered {
    fn json(body: String) -> Self {
        Self { body, media_type: "application/json", nonce: None, status: 200 }
    }
}

impl From<Introspection> for Answered {
    fn from(introspection: Introspection) -> Self {
        let media_type = if introspection.is_signed { SIGNED_INTROSPECTION } else { "application/json" };
        Self { media_type, ..Self::json(introspection.body) }
    }
}

type EndpointResult = Result<Answered, OAuthError>;

fn too_many(wait: i64) -> Response<AnswerBody> {
    let detail = format!("Too many requests came. Try again in {wait} seconds.");
    let body = json!({ "error": "temporarily_unavailable", "error_description": detail });
    let mut response = respond(429, "application/json", body.to_string());
    add_headers(&mut response, vec![("retry-after", wait.to_string())]);
    response
}

async fn read_request(
    app: &App,
    issuer: Issuer,
    path: &'static str,
    parts: &Parts,
    body: &mut RequestBody,
    now: Timestamp,
) -> Result<EndpointRequest, Problem> {
    Ok(EndpointRequest {
        form: read_form_body(app, parts, body, SMALL_BODY).await?,
        authorization: text(&parts.headers, header::AUTHORIZATION).map(str::to_owned),
        proofs: dpop_proofs(&parts.headers),
        certificate: parts.extensions.get::<ClientCertificate>().cloned(),
        accepts_signed: prefers(&parts.headers, SIGNED_INTROSPECTION),
        issuer,
        path,
        now,
    })
}
