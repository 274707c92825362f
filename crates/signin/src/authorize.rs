//! The authorization endpoint: a request is judged, and answered or shown a page.

use std::sync::Arc;

use chancery_oauth::{
    Addressing, AuthorizationRequest, Checked, Code, Delivery, RedirectKind, Refusal, Terms, check_request,
    is_registered_redirect,
};
use chancery_resource::Problem;
use chancery_store::Mode;
use uuid::Uuid;

use crate::{
    application::Application,
    kept_flow::KeptFlow,
    outcome::{Outcome, PageError},
    provider::{Circumstances, Provider, Visit, begin, demands, with_facts},
};

/// The most bytes of the query of an authorization request.
pub const LONGEST_QUERY: usize = 8 << 10;

impl Provider<'_> {
    /// Answers an authorization request.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn authorize(
        self,
        visit: &Visit,
        parameters: Vec<(String, String)>,
    ) -> Result<Outcome, Problem> {
        let addressing = match Addressing::read(&parameters) {
            Ok(addressing) => addressing,
            Err(refusal) => return Ok(Outcome::Error(PageError::request(refusal.detail))),
        };
        let Some(application) = self.application(visit, &addressing).await? else {
            return Ok(Outcome::Error(PageError::UNKNOWN_CLIENT));
        };
        let registered: Vec<&str> = application.login_uris.iter().map(String::as_str).collect();
        if !is_registered_redirect(&addressing.redirect_uri, &registered, application.is_native) {
            return Ok(Outcome::Error(PageError::UNKNOWN_REDIRECT));
        }
        let (request, mode) = match judge(&application, &addressing, &parameters, visit.issuer.tenant_id()) {
            Ok(Checked { request, .. }) => (request, addressing.reply.mode),
            Err(refusal) => return Ok(refuse(&visit.issuer.url, &addressing, refusal)),
        };
        if mode.is_signed {
            let detail = "Signed answers are not served yet.";
            return Ok(refuse(&visit.issuer.url, &addressing, Refusal::new(Code::InvalidRequest, detail)));
        }
        let issuing = visit.issuer.tenant_id();
        let is_native = application.is_native
            && !matches!(RedirectKind::of(&addressing.redirect_uri), Some(RedirectKind::Web));
        let mut demanded = demands(&request, &addressing, issuing, is_native, visit.now);
        if let Some(hint) = &request.id_token_hint {
            let hint = self.tokens.open_id_token(self.store, hint, &visit.issuer, visit.now).await?;
            let Some(hint) = hint.filter(|hint| hint.aud == application.id) else {
                let detail = "id_token_hint is no ID token of this issuer for the client app.";
                return Ok(refuse(
                    &visit.issuer.url,
                    &addressing,
                    Refusal::new(Code::InvalidRequest, detail),
                ));
            };
            demanded.hinted_person = Some(hint.sub);
            demanded.tenant = demanded.tenant.or(Some(hint.tid));
        }
        let kept = begin(&application, issuing, parameters, demanded);
        self.go_on(visit, kept, application).await
    }

    /// The client app of a request, while it serves at the issuer that was asked.
    async fn application(
        self,
        visit: &Visit,
        addressing: &Addressing,
    ) -> Result<Option<Arc<Application>>, Problem> {
        let Ok(id) = Uuid::try_parse(&addressing.client_id) else { return Ok(None) };
        let found = self.applications.find(self.store, id).await?;
        let serves = |found: &Arc<Application>| !found.tenant_facts(visit.issuer.tenant_id()).is_empty();
        Ok(found.filter(serves))
    }

    /// The client app of a flow under way; `None` once it serves no longer.
    pub(crate) async fn application_of(self, kept: &KeptFlow) -> Result<Option<Arc<Application>>, Problem> {
        Ok(self.applications.find(self.store, kept.application).await?)
    }

    /// Goes on with a flow: to the page that is due, or to its end.
    pub(crate) async fn go_on(
        self,
        visit: &Visit,
        kept: KeptFlow,
        application: Arc<Application>,
    ) -> Result<Outcome, Problem> {
        let circumstances = Circumstances::new(application, kept.issuing);
        let (flow, now) = (kept.flow.clone(), visit.now);
        let cookie = visit.session_cookie(&self.context.master);
        let looked = circumstances.clone();
        let examined = self
            .store
            .run("ExamineSignIn", Mode::Quick, None, move |tx| {
                looked.examine(tx, flow.clone(), cookie.as_ref(), now)
            })
            .await?;
        self.step(visit, kept, circumstances, examined).await
    }
}

/// Judges a request by the client app and the tenants' options.
fn judge(
    application: &Application,
    addressing: &Addressing,
    parameters: &[(String, String)],
    issuing: Option<Uuid>,
) -> Result<Checked, Refusal> {
    let request = AuthorizationRequest::read(addressing, parameters)?;
    if request.response_type.name() != "code" && request.response_type.name() != "none" {
        let detail = "Answers without a code are not served yet.";
        return Err(Refusal::new(Code::UnsupportedResponseType, detail));
    }
    let served = application.tenants.iter().filter(|one| issuing.is_none_or(|id| id == one.facts.id));
    // a tenant that may be chosen later counts, too
    let is_pkce_required = served.into_iter().any(|tenant| tenant.options.flag("PkceRequired"));
    let terms = Terms { is_pkce_required, is_pushed: false, is_signed: false };
    with_facts(application, |facts| check_request(request, facts, terms))
}

/// The answer that refuses a request.
pub(crate) fn refuse(issuer: &str, addressing: &Addressing, refusal: Refusal) -> Outcome {
    let mode = chancery_oauth::ResponseMode { is_signed: false, ..addressing.reply.mode };
    let answer = addressing.reply.answer(issuer).refused(refusal);
    let delivered =
        answer.deliver(&addressing.redirect_uri, mode, |_| Ok::<_, std::convert::Infallible>(String::new()));
    match delivered {
        Ok(Delivery::Redirect(address)) => Outcome::Leave(address),
        Ok(Delivery::Form { action, fields }) => Outcome::Post { action, fields, session: None },
        Err(never) => match never {},
    }
}
