//! The authorization endpoint: validates a request, and responds or shows a page.

use std::sync::Arc;

use chancery_auth::canonical_id;
use chancery_flow::Flow;
use chancery_oauth::{
    AuthorizationRequest, CheckedRequest, ClaimsRequest, ErrorCode, ProtocolError, RedirectKind,
    RequestSecurity, ResponseTarget, Use, check_request, check_use, parse_targets, recognized_parameters,
};
use chancery_resource::Problem;
use chancery_store::Mode;
use uuid::Uuid;

use super::flow_request::flow_request;
use crate::{
    client_app::{
        Application,
        audience::{as_registered, audience},
        with_facts,
    },
    flow::{
        authorization_response::error_response,
        context::FlowContext,
        pending_flow::PendingFlow,
        response::{BrowserResponse, PageError},
    },
    provider::{Provider, Visit},
};

/// The maximum length of the query of an authorization request, in bytes.
pub const LONGEST_QUERY: usize = 8 << 10;

impl Provider<'_> {
    /// Handles an authorization request.
    pub async fn authorize(
        self,
        visit: &Visit,
        parameters: Vec<(String, String)>,
    ) -> Result<BrowserResponse, Problem> {
        let addressing = match ResponseTarget::read(&parameters) {
            Ok(addressing) => addressing,
            Err(refusal) => return Ok(BrowserResponse::Error(PageError::addressing(&parameters, refusal))),
        };
        let Some(id) = canonical_id(&addressing.client_id) else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        let issuing = visit.issuer.tenant_id();
        let Some(application) = self.application(id, issuing).await? else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        if !self.has_redirect(&application, &addressing) {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_REDIRECT));
        }
        let refuse = |refusal| Ok(error_response(&visit.issuer.url, &addressing, refusal));
        let parameters = self.with_registered_resources(parameters).await?;
        let checked = match validate_request(&application, &addressing, &parameters, issuing) {
            Ok(checked) => checked,
            Err(refusal) => return refuse(refusal),
        };
        if addressing.options.mode.is_signed {
            return refuse(ProtocolError::new(
                ErrorCode::InvalidRequest,
                "Signed answers are not served yet.",
            ));
        }
        if let Err(refusal) = self.audience(&application, &checked.request.resources).await? {
            return refuse(refusal);
        }
        let is_native = application.is_native
            && !matches!(RedirectKind::of(&addressing.redirect_uri), Some(RedirectKind::Web));
        let mut demanded = flow_request(&application, &checked, &addressing, issuing, is_native, visit.now);
        demanded.after_sign_out = visit.has_signed_out;
        if let Some(hint) = &checked.request.id_token_hint {
            let hint = self.tokens.open_id_token(self.store, hint, &visit.issuer, visit.now).await?;
            let Some(hint) = hint.filter(|hint| hint.aud == application.id) else {
                let detail = "id_token_hint is no ID token of this issuer for the client app.";
                return refuse(ProtocolError::new(ErrorCode::InvalidRequest, detail));
            };
            demanded.hinted_person = Some(hint.sub);
            demanded.tenant = demanded.tenant.or(Some(hint.tid));
        }
        if let Some(named) = named_person(&checked.request.claims) {
            // two different persons match no session
            let fits = demanded.hinted_person.is_none_or(|hinted| hinted == named);
            demanded.hinted_person = Some(if fits { named } else { Uuid::nil() });
        }
        let pending =
            PendingFlow::new(issuing, application.id, recognized_parameters(parameters), Flow::new(demanded));
        let flow_context = FlowContext::new(self, application, visit, &pending);
        if visit.session.is_some() {
            // most requests with a session need no page: evaluate and respond in one transaction
            return self.answer(visit, pending, flow_context).await;
        }
        let evaluated = self.evaluate(visit, &pending, &flow_context).await?;
        self.respond_with_step(visit, pending, flow_context, evaluated).await
    }

    /// The parameters with each resource in its registered spelling, which consent and tokens use, too.
    async fn with_registered_resources(
        self,
        mut parameters: Vec<(String, String)>,
    ) -> Result<Vec<(String, String)>, Problem> {
        let is_resource = |name: &str| name == "resource";
        let named = parameters.iter().filter(|(name, _)| is_resource(name)).map(|(_, key)| key.clone());
        // malformed or too many resources are not looked up: the request is refused later
        let Ok(requested) = parse_targets(named.collect::<Vec<_>>().iter().map(String::as_str)) else {
            return Ok(parameters);
        };
        if requested.is_empty() {
            return Ok(parameters);
        }
        let finding =
            self.store.run("FindResources", Mode::Quick, None, move |tx| as_registered(tx, &requested));
        let registered = finding.await?;
        for ((_, value), key) in parameters.iter_mut().filter(|(name, _)| is_resource(name)).zip(registered) {
            *value = key;
        }
        Ok(parameters)
    }

    /// Whether the client app may request these resources.
    async fn audience(
        self,
        application: &Arc<Application>,
        resources: &[String],
    ) -> Result<Result<(), ProtocolError>, Problem> {
        if resources.is_empty() {
            return Ok(Ok(()));
        }
        let (application, resources) = (Arc::clone(application), resources.to_vec());
        let checking = self.store.run("JudgeAudience", Mode::Quick, None, move |tx| {
            audience(tx, &application, &resources).map(|checked| checked.map(drop))
        });
        Ok(checking.await?)
    }
}

/// The only person for whom `claims` permits an ID token (OpenID Connect Core 1.0, section 3.1.2.2). A value that is
/// no person's id matches no person.
fn named_person(claims: &ClaimsRequest) -> Option<Uuid> {
    let subject = claims.in_id_token("sub").filter(|subject| !subject.values.is_empty())?;
    let first = subject.texts().next().filter(|_| subject.values.len() == 1);
    Some(first.and_then(canonical_id).unwrap_or_default())
}

/// Validates a request against the client app and the options of its tenants.
///
/// # Errors
/// The refusal.
pub(crate) fn validate_request(
    application: &Application,
    addressing: &ResponseTarget,
    parameters: &[(String, String)],
    issuing: Option<Uuid>,
) -> Result<CheckedRequest, ProtocolError> {
    let request = AuthorizationRequest::read(addressing, parameters)?;
    if request.response_type.name() != "code" && request.response_type.name() != "none" {
        let detail = "Response types without a code are not supported.";
        return Err(ProtocolError::new(ErrorCode::UnsupportedResponseType, detail));
    }
    check_use(&application.unsupported_settings, Use::Authorization)?;
    application.check_served()?;
    let served = application.tenants.iter().filter(|one| issuing.is_none_or(|id| id == one.facts.id));
    // a tenant that may still be selected counts, too
    let terms = RequestSecurity {
        is_pkce_required: application.needs_pkce(served),
        is_pushed: false,
        is_signed: false,
    };
    with_facts(application, |facts| check_request(request, facts, terms))
}
