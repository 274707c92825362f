//! What the server has beside the services: health, keys, tokens, documentation, metrics.

use chancery_auth::TokenRequest;
use chancery_record::Timestamp;
use chancery_resource::{Permit, Problem, ProblemKind};
use chancery_store::{Error, Mode};
use http::{HeaderValue, Method, Response, header, request::Parts};
use hyper::body::Incoming;
use serde_json::json;

use crate::{
    answer::{AnswerBody, respond},
    app::App,
    request::{MediaType, media_type, read_bytes, read_form, text},
    route::not_allowed,
};

/// A path of the server's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemRoute {
    /// Is the process alive.
    Live,
    /// Can it serve.
    Ready,
    /// Figures.
    Metrics,
    /// `OpenID` discovery.
    Discovery,
    /// The same, under the name of RFC 8414.
    OAuthDiscovery,
    /// Keys for tokens.
    Keys,
    /// Keys for the audit trail.
    AuditKeys,
    /// Tokens.
    Token,
    /// A page to read the documentation at.
    Documentation,
    /// A document.
    Document,
    /// What a kind of problem means.
    ProblemPage,
}

const PAGE: &str = include_str!("openapi/page.html");
const TOKEN_BODY: usize = 16 << 10;

impl SystemRoute {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Live,
        Self::Ready,
        Self::Metrics,
        Self::Discovery,
        Self::OAuthDiscovery,
        Self::Keys,
        Self::AuditKeys,
        Self::Token,
        Self::Documentation,
        Self::Document,
        Self::ProblemPage,
    ];

    /// Its path.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Live => "/health/live",
            Self::Ready => "/health/ready",
            Self::Metrics => "/metrics",
            Self::Discovery => "/.well-known/openid-configuration",
            Self::OAuthDiscovery => "/.well-known/oauth-authorization-server",
            Self::Keys => "/.well-known/jwks.json",
            Self::AuditKeys => "/.well-known/audit-keys.json",
            Self::Token => "/connect/token",
            Self::Documentation => "/openapi",
            Self::Document => "/openapi/{document}",
            Self::ProblemPage => "/problems/{kind}",
        }
    }

    /// Answers a request.
    pub async fn answer(
        self,
        app: &App,
        parts: &Parts,
        body: Incoming,
        parameters: &[String],
        now: Timestamp,
    ) -> Result<Response<AnswerBody>, Problem> {
        let allowed =
            if self == Self::Token { &[Method::POST][..] } else { &[Method::GET, Method::HEAD][..] };
        if !allowed.contains(&parts.method) {
            return Err(not_allowed(if self == Self::Token { "POST" } else { "GET, HEAD" }));
        }
        let parameter = parameters.first().map_or("", String::as_str);
        Ok(match self {
            Self::Live => respond(200, "application/json", "{\"status\":\"live\"}"),
            Self::Ready => ready(app).await?,
            Self::Metrics => {
                app.authorize(parts, Permit::SystemAdmin, None, now).await?;
                app.metrics_text().await
            }
            Self::Discovery | Self::OAuthDiscovery => respond(200, "application/json", discovery(app)),
            Self::Keys => respond(200, "application/jwk-set+json", app.bearer.keyring.jwks.clone()),
            Self::AuditKeys => {
                respond(200, "application/jwk-set+json", app.bearer.keyring.audit_jwks.clone())
            }
            Self::Token => token(app, parts, body, now).await,
            Self::Documentation => page(),
            Self::Document => document(app, parameter)?,
            Self::ProblemPage => problem_page(parameter)?,
        })
    }
}

async fn ready(app: &App) -> Result<Response<AnswerBody>, Problem> {
    app.store.run("Ready", Mode::Quick, None, |tx| tx.epoch().map(drop)).await.map_err(|error: Error| {
        tracing::warn!(%error, "not ready");
        Problem::from(error)
    })?;
    Ok(respond(200, "application/json", "{\"status\":\"ready\"}"))
}

fn discovery(app: &App) -> String {
    let issuer = &app.bearer.issuer;
    json!({
        "issuer": issuer,
        "token_endpoint": format!("{issuer}/connect/token"),
        "jwks_uri": format!("{issuer}/.well-known/jwks.json"),
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "response_types_supported": [],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
        "service_documentation": format!("{issuer}/openapi"),
    })
    .to_string()
}

async fn token(app: &App, parts: &Parts, body: Incoming, now: Timestamp) -> Response<AnswerBody> {
    let refused = |status, body: String| respond(status, "application/json", body);
    let invalid = |what: &str| json!({ "error": "invalid_request", "error_description": what }).to_string();
    let mut response = if media_type(&parts.headers) == Some(MediaType::Form) {
        match read_bytes(&parts.headers, body, TOKEN_BODY).await.and_then(|bytes| {
            let form = std::str::from_utf8(&bytes).map_err(|_| Problem::invalid("The form is not UTF-8."))?;
            read_form(form)
        }) {
            Ok(form) => {
                let authorization = text(&parts.headers, header::AUTHORIZATION).map(str::to_owned);
                let request = TokenRequest { form, authorization, now };
                match request.grant(&app.store, &app.bearer, &app.desk.master).await {
                    Ok(grant) => respond(200, "application/json", grant.body),
                    Err(error) => refused(error.status, error.body()),
                }
            }
            Err(problem) => refused(400, invalid(&problem.detail)),
        }
    } else {
        refused(400, invalid("Send application/x-www-form-urlencoded."))
    };
    if response.status() == http::StatusCode::UNAUTHORIZED {
        let basic = HeaderValue::from_static("Basic realm=\"chancery\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, basic);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn page() -> Response<AnswerBody> {
    let mut response = respond(200, "text/html; charset=utf-8", PAGE);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn document(app: &App, name: &str) -> Result<Response<AnswerBody>, Problem> {
    let found = app.documents.iter().find(|(known, _)| known == name);
    let (_, document) = found.ok_or_else(|| {
        let known: Vec<&str> = app.documents.iter().map(|(name, _)| name.as_str()).collect();
        Problem::not_found("document").with_detail(format!("There are the documents {}.", known.join(", ")))
    })?;
    Ok(respond(200, "application/json", document.clone()))
}

fn problem_page(kind: &str) -> Result<Response<AnswerBody>, Problem> {
    let found = ProblemKind::ALL.iter().find(|known| known.facts().1 == kind);
    let (status, slug, title) = found.ok_or_else(|| Problem::not_found("kind of problem"))?.facts();
    let body = json!({ "type": format!("/problems/{slug}"), "title": title, "status": status });
    Ok(respond(200, "application/json", body.to_string()))
}
