//! The endpoints besides the services: health, keys, tokens, documentation, metrics.

mod caching;
mod client_endpoints;
pub mod cors;
pub mod discovery;
mod documentation;
pub mod provider_callback;
mod readiness;
mod userinfo;

use chancery_auth::Issuer;
use chancery_record::Timestamp;
use chancery_resource::{Permit, Problem};
use http::{Method, Response, request::Parts};

use self::{
    caching::{cached_for_minutes, revalidated},
    cors::preflight,
    discovery::discovery,
    readiness::ready,
};
use crate::{
    app::{App, Pages, refusal_log::RefusalEntry},
    connection::request_body::RequestBody,
    message::{
        answer::{self, AnswerBody, respond},
        peer::{ListenerRole, Peer},
        request::read_form,
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
        issuer_kind: IssuerKind,
        parameters: Result<Vec<String>, Problem>,
        parts: &Parts,
        body: &mut RequestBody,
        now: Timestamp,
    ) -> Result<Response<AnswerBody>, Problem> {
        let tenant = match (issuer_kind, &parameters) {
            (IssuerKind::Tenant, Ok(parameters)) => parameters.first().cloned(),
            _ => None,
        };
        let answered = match parameters {
            Ok(parameters) => self.answer_to(app, parts, body, issuer_kind, &parameters, now).await,
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
                Ok(Box::pin(pages::problem_page(app, self, issuer, parts, &problem, now)).await)
            }
            answered => answered,
        }
    }

    async fn answer_to(
        self,
        app: &App,
        parts: &Parts,
        body: &mut RequestBody,
        issuer_kind: IssuerKind,
        parameters: &[String],
        now: Timestamp,
    ) -> Result<Response<AnswerBody>, Problem> {
        if self.is_open_to_scripts() && parts.method == Method::OPTIONS {
            return Ok(preflight());
        }
        if matches!(self, Self::Scim | Self::ScimPath) {
            let none = || Problem::not_found("directory's interface (SCIM) at this server");
            return app.scim.ok_or_else(none)?(app, parts, body, now).await;
        }
        if !self.methods().contains(&parts.method) {
            return Err(not_allowed(
                &self.methods().iter().map(Method::as_str).collect::<Vec<_>>().join(", "),
            ));
        }
        if matches!(self, Self::Console | Self::ConsolePage) {
            let none = || Problem::not_found("console at this server");
            return console(app, parts).ok_or_else(none)?(app, parts, body, now).await;
        }
        if self.needs_sign_in() && !app.sign_in.is_on {
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
                let shown = pages::answer(app, self, &issuer, step, parts, body, now);
                return Box::pin(shown).await;
            }
            Self::Content => return pages::content(app, parts, parameter, now).await,
            Self::UserInfo => {
                let response = userinfo::answer(app, &issuer, parts, body, now).await;
                response.unwrap_or_else(|problem| answer::problem(problem, parts))
            }
            Self::External => {
                return Box::pin(provider_callback::instance_callback(app, parts, parameter, now)).await;
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
        if !self.is_of_clients() {
            return;
        }
        let url = format!("{}/t/{tenant}", app.token_service.public_url);
        let issuer = Issuer { url, tenant: None };
        let sent = read_form(parts.uri.query().unwrap_or_default()).unwrap_or_default();
        let reason = "There is no such tenant, or it does not serve.";
        let refused = RefusalEntry::of_browser(self.path(), &issuer, &sent, "not_found", reason);
        refused.with_possible_secret().report(app, now).await;
    }
}

/// The handler below `/console`, where the address of the request has the console.
fn console(app: &App, parts: &Parts) -> Option<Pages> {
    let is_here =
        parts.extensions.get::<Peer>().is_none_or(|peer| peer.serves != ListenerRole::AllButConsole);
    app.console.filter(|_| app.sign_in.is_on && is_here)
}
