//! The endpoints besides the services: health, keys, tokens, documentation, metrics.

mod client_endpoints;
pub mod discovery;
mod documentation;
pub mod provider_callback;
mod userinfo;

use chancery_auth::Issuer;
use chancery_record::Timestamp;
use chancery_resource::{Permit, Preconditions, Problem, ProblemKind, etag};
use http::{HeaderValue, Method, Response, header, request::Parts};
use serde_json::json;

use self::discovery::discovery;
use crate::{
    app::{App, Pages, refusal_log::Refused},
    connection::request_body::RequestBody,
    message::{
        answer::{self, AnswerBody, respond},
        peer::{Peer, Serves},
        request::{read_form, text},
    },
    pages,
    routes::{
        not_allowed,
        system_route::{IssuerKind, SystemRoute},
    },
};

impl SystemRoute {
    /// Answers a request. A browser that shows pages to people gets a page instead of a problem.
    pub async fn answer(
        self,
        app: &App,
        (issuer_kind, parameters): (IssuerKind, Result<Vec<String>, Problem>),
        parts: &Parts,
        body: &mut RequestBody,
        now: Timestamp,
    ) -> Result<Response<AnswerBody>, Problem> {
        let tenant = match (issuer_kind, &parameters) {
            (IssuerKind::Tenant, Ok(parameters)) => parameters.first().cloned(),
            _ => None,
        };
        let answered = match parameters {
            Ok(parameters) => self.answer_to((app, parts, body), (issuer_kind, &parameters), now).await,
            Err(problem) => Err(problem),
        };
        match answered {
            Err(problem) if self.shows_pages() && pages::is_shown_to_people(app, parts) => {
                app.log_problem(&problem, parts);
                let found = match tenant {
                    Some(tenant) => app.token_service.issuer_of(&app.store, &tenant).await.ok().flatten(),
                    None => None,
                };
                let issuer = found.unwrap_or_else(|| app.token_service.installation());
                Ok(Box::pin(pages::problem_page(app, (self, issuer), parts, &problem, now)).await)
            }
            answered => answered,
        }
    }

    async fn answer_to(
        self,
        (app, parts, body): (&App, &Parts, &mut RequestBody),
        (issuer_kind, parameters): (IssuerKind, &[String]),
        now: Timestamp,
    ) -> Result<Response<AnswerBody>, Problem> {
        if self.is_open_to_scripts() && parts.method == Method::OPTIONS {
            return Ok(preflight());
        }
        if matches!(self, Self::Scim | Self::ScimPath) {
            let none = || Problem::not_found("directory's interface (SCIM) at this server");
            return app.scim.ok_or_else(none)?(app, parts, body, now).await;
        }
        let (allowed, named) = match self {
            Self::Token | Self::Introspect | Self::Revoke | Self::DeviceAuthorization => {
                (&[Method::POST][..], "POST")
            }
            Self::Console | Self::ConsolePage => (&[Method::GET, Method::POST][..], "GET, POST"),
            Self::External => (&[Method::GET][..], "GET"),
            _ if self.is_of_browsers() || self == Self::UserInfo => {
                (&[Method::GET, Method::POST][..], "GET, POST")
            }
            _ => (&[Method::GET, Method::HEAD][..], "GET, HEAD"),
        };
        if !allowed.contains(&parts.method) {
            return Err(not_allowed(named));
        }
        if matches!(self, Self::Console | Self::ConsolePage) {
            let none = || Problem::not_found("console at this server");
            return console(app, parts).ok_or_else(none)?(app, parts, body, now).await;
        }
        let is_of_people = self.is_of_browsers()
            || matches!(self, Self::UserInfo | Self::DeviceAuthorization | Self::External);
        if is_of_people && !app.sign_in.is_on {
            return Err(Problem::not_found("path here: nobody signs in at this server"));
        }
        let parameter = parameters.first().map_or("", String::as_str);
        let issuer = match issuer_kind {
            IssuerKind::Installation => app.token_service.installation(),
            IssuerKind::Tenant => {
                let found = app.token_service.issuer_of(&app.store, parameter).await?;
                let Some(found) = found else {
                    self.log_unknown_tenant(app, parameter, parts, now).await;
                    return Err(Problem::not_found("tenant that serves"));
                };
                found
            }
        };
        let answer = match self {
            Self::Root => {
                pages::see_other(console(app, parts).map_or(Self::Documentation, |_| Self::Console).path())
            }
            Self::Live => respond(200, "application/json", "{\"status\":\"live\"}"),
            Self::Ready => ready(app, parts),
            Self::Metrics => {
                app.authorize_at_once(parts, Permit::SystemAdmin, now).await?;
                app.metrics_text().await
            }
            Self::Discovery | Self::OAuthDiscovery => {
                cached_for_minutes(parts, "application/json", discovery(app, &issuer))?
            }
            Self::Keys => {
                let keys = app.token_service.jwks(&app.store, &issuer, now).await?;
                cached_for_minutes(parts, "application/jwk-set+json", keys)?
            }
            Self::AuditKeys => {
                respond(200, "application/jwk-set+json", app.token_service.audit_jwks(&app.store).await?)
            }
            Self::Token | Self::Introspect | Self::Revoke | Self::DeviceAuthorization => {
                self.endpoint(app, issuer, parts, body, now).await
            }
            Self::Authorize | Self::EndSession | Self::Device | Self::PasswordReset | Self::SignInPage => {
                let step = parameters.last().map_or("", String::as_str);
                if let (Self::SignInPage, Some(script)) = (self, pages::script(step)) {
                    return Ok(revalidated(script.answer(&parts.headers)));
                }
                // boxed: the future of every request is as large as the largest
                let shown = pages::answer(app, self, (&issuer, step), parts, body, now);
                return Box::pin(shown).await;
            }
            Self::Content => return pages::content(app, parts, parameter, now).await,
            Self::UserInfo => {
                let response = userinfo::answer(app, &issuer, parts, body, now).await;
                response.unwrap_or_else(|problem| answer::problem(problem, parts))
            }
            Self::External => {
                return Box::pin(provider_callback::of_instance(app, parts, parameter, now)).await;
            }
            // the links of the page are relative: after a slash they would resolve differently
            Self::Documentation if parts.uri.path().ends_with('/') => pages::see_other(self.path()),
            Self::Documentation | Self::Console | Self::ConsolePage | Self::Scim | Self::ScimPath => {
                documentation::page(parts)
            }
            Self::Document => documentation::document(app, parts, parameter)?,
            Self::ProblemPage => documentation::problem_page(parameter)?,
            Self::EventSchema => documentation::event_schema(app, parameter)?,
        };
        Ok(if self.is_published() { revalidated(answer) } else { answer })
    }

    /// Logs a client app that sends a request to an unknown tenant.
    async fn log_unknown_tenant(self, app: &App, tenant: &str, parts: &Parts, now: Timestamp) {
        let is_of_app = matches!(
            self,
            Self::Authorize
                | Self::EndSession
                | Self::Token
                | Self::Introspect
                | Self::Revoke
                | Self::DeviceAuthorization
        );
        if !is_of_app {
            return;
        }
        let url = format!("{}/t/{tenant}", app.token_service.public_url);
        let issuer = Issuer { url, tenant: None };
        let sent = read_form(parts.uri.query().unwrap_or_default()).unwrap_or_default();
        let refusal = ("not_found", "There is no such tenant, or it does not serve.");
        let refused = Refused::of_browser((self.path(), &issuer), &sent, refusal);
        refused.with_possible_secret().report(app, now).await;
    }
}

/// The handler below `/console`, where the address of the request has the console.
fn console(app: &App, parts: &Parts) -> Option<Pages> {
    let is_here = parts.extensions.get::<Peer>().is_none_or(|peer| peer.serves != Serves::AllButConsole);
    app.console.filter(|_| app.sign_in.is_on && is_here)
}

/// Whether requests can be sent here.
fn ready(app: &App, parts: &Parts) -> Response<AnswerBody> {
    let Some((reason, detail)) = app.unready() else {
        let warnings: Vec<String> = app.warnings().into_values().collect();
        let answer = match warnings.as_slice() {
            [] => json!({ "status": "ready" }),
            warnings => json!({ "status": "ready", "warnings": warnings }),
        };
        return respond(200, "application/json", answer.to_string());
    };
    let problem = Problem::new(ProblemKind::Unavailable, detail).with_member("reason", reason);
    answer::problem(problem.with_header("retry-after", "1"), parts)
}

/// Lets scripts of any site read an answer, without the browser's cookies.
pub fn open_to_scripts(mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let exposed = HeaderValue::from_static("DPoP-Nonce, WWW-Authenticate");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    response
}

/// The answer to a preflight request of a browser (the Fetch standard, section 3.2).
fn preflight() -> Response<AnswerBody> {
    let mut response = respond(204, "text/plain", "");
    let headers = response.headers_mut();
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type, DPoP"),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A document that may be cached for five minutes, and is revalidated by its tag then.
fn cached_for_minutes(
    parts: &Parts,
    media_type: &'static str,
    document: String,
) -> Result<Response<AnswerBody>, Problem> {
    let tag = etag(document.as_bytes());
    let if_none_match = text(&parts.headers, header::IF_NONE_MATCH).map(str::to_owned);
    let status = Preconditions { if_match: None, if_none_match }.evaluate(&tag, None)?;
    let mut response = respond(status, media_type, if status == 304 { String::new() } else { document });
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

fn revalidated(mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
