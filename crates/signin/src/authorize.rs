//! The authorization endpoint: a request is judged, and answered or shown a page.

use std::sync::Arc;

use chancery_auth::exact_id;
use chancery_flow::Flow;
use chancery_oauth::{
    Addressing, Answer, AuthorizationRequest, Checked, ClaimsRequest, Code, Delivery, RedirectKind, Refusal,
    ResponseMode, Terms, Use, check_request, check_use, is_registered_redirect, meant, targets,
};
use chancery_resource::{CONSOLE, Problem};
use chancery_store::Mode;
use uuid::Uuid;

use crate::{
    application::{Application, with_facts},
    audience::{as_registered, audience},
    console::{CONSOLE_PATH, CONSOLE_RETURN},
    kept_flow::{KeptFlow, home_of},
    outcome::{Outcome, PageError},
    provider::{Circumstances, Provider, Visit, demands},
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
            Err(refusal) => return Ok(Outcome::Error(PageError::addressing(&parameters, refusal))),
        };
        let Some(id) = exact_id(&addressing.client_id) else {
            return Ok(Outcome::Error(PageError::UNKNOWN_CLIENT));
        };
        let issuing = visit.issuer.tenant_id();
        let Some(application) = self.application(id, issuing).await? else {
            return Ok(Outcome::Error(PageError::UNKNOWN_CLIENT));
        };
        if !self.has_redirect(&application, &addressing) {
            return Ok(Outcome::Error(PageError::UNKNOWN_REDIRECT));
        }
        let refuse = |refusal| Ok(refuse(&visit.issuer.url, &addressing, refusal));
        let parameters = self.with_registered_resources(parameters).await?;
        let checked = match judge(&application, &addressing, &parameters, issuing) {
            Ok(checked) => checked,
            Err(refusal) => return refuse(refusal),
        };
        if addressing.reply.mode.is_signed {
            return refuse(Refusal::new(Code::InvalidRequest, "Signed answers are not served yet."));
        }
        if let Err(refusal) = self.audience(&application, &checked.request.resources).await? {
            return refuse(refusal);
        }
        let is_native = application.is_native
            && !matches!(RedirectKind::of(&addressing.redirect_uri), Some(RedirectKind::Web));
        let mut demanded = demands(&application, (&checked, &addressing), (issuing, is_native), visit.now);
        if let Some(hint) = &checked.request.id_token_hint {
            let hint = self.tokens.open_id_token(self.store, hint, &visit.issuer, visit.now).await?;
            let Some(hint) = hint.filter(|hint| hint.aud == application.id) else {
                let detail = "id_token_hint is no ID token of this issuer for the client app.";
                return refuse(Refusal::new(Code::InvalidRequest, detail));
            };
            demanded.hinted_person = Some(hint.sub);
            demanded.tenant = demanded.tenant.or(Some(hint.tid));
        }
        if let Some(named) = named_person(&checked.request.claims) {
            // two people are nobody
            let fits = demanded.hinted_person.is_none_or(|hinted| hinted == named);
            demanded.hinted_person = Some(if fits { named } else { Uuid::nil() });
        }
        let kept = KeptFlow::new(issuing, application.id, meant(parameters), Flow::new(demanded));
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        if visit.session.is_some() {
            // most who come with a session need no page: looked at and answered in one transaction
            return self.answer(visit, kept, circumstances).await;
        }
        let examined = self.examine(visit, &kept, &circumstances).await?;
        self.step(visit, kept, circumstances, examined).await
    }

    /// A client app, while it serves at the issuer that was asked.
    pub(crate) async fn application(
        self,
        id: Uuid,
        issuing: Option<Uuid>,
    ) -> Result<Option<Arc<Application>>, Problem> {
        let found = self.applications.find(self.store, id).await?;
        Ok(found.filter(|found| {
            found.tenants.iter().any(|tenant| found.serving(tenant.facts.id, issuing).is_some())
        }))
    }

    /// Where a client app is, for who gets lost on the way to it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn home_of(self, id: Uuid, issuing: Option<Uuid>) -> Result<Option<String>, Problem> {
        let Some(found) = self.application(id, issuing).await? else { return Ok(None) };
        let console = (id == CONSOLE).then(|| CONSOLE_PATH.to_owned());
        let registered = || found.login_uris.iter().find_map(|address| home_of(id, address));
        Ok(console.or_else(|| found.client_uri.clone()).or_else(registered))
    }

    /// The client app of a flow under way; `None` once nobody signs in to it any longer, or not by this redirect URI:
    /// what an administrator takes away counts at once.
    pub(crate) async fn application_of(self, kept: &KeptFlow) -> Result<Option<Arc<Application>>, Problem> {
        let found = self.application(kept.application, kept.issuing).await?;
        let Ok(addressing) = Addressing::read(&kept.parameters) else { return Ok(None) };
        let may_go_on = |found: &Arc<Application>| {
            let leads_back = kept.device.is_some() || self.has_redirect(found, &addressing);
            found.allow_user_login
                && found.check_served().is_ok()
                && leads_back
                && (kept.device.is_none() || found.allows_devices)
        };
        Ok(found.filter(may_go_on))
    }

    /// Whether an answer may go to the address. The console's is this server's own.
    fn has_redirect(self, application: &Application, addressing: &Addressing) -> bool {
        if application.id == CONSOLE {
            return addressing.redirect_uri.strip_prefix(&self.tokens.public_url) == Some(CONSOLE_RETURN);
        }
        let registered: Vec<&str> = application.login_uris.iter().map(String::as_str).collect();
        is_registered_redirect(&addressing.redirect_uri, &registered, application.is_native)
    }

    /// The parameters with each resource as it is registered: so consent and tokens name it, too.
    async fn with_registered_resources(
        self,
        mut parameters: Vec<(String, String)>,
    ) -> Result<Vec<(String, String)>, Problem> {
        let is_resource = |name: &str| name == "resource";
        let named = parameters.iter().filter(|(name, _)| is_resource(name)).map(|(_, key)| key.clone());
        // what is refused for its form, or asks for too many, is not looked for
        let Ok(asked) = targets(named.collect::<Vec<_>>().iter().map(String::as_str)) else {
            return Ok(parameters);
        };
        if asked.is_empty() {
            return Ok(parameters);
        }
        let finding = self.store.run("FindResources", Mode::Quick, None, move |tx| as_registered(tx, &asked));
        let registered = finding.await?;
        for ((_, value), key) in parameters.iter_mut().filter(|(name, _)| is_resource(name)).zip(registered) {
            *value = key;
        }
        Ok(parameters)
    }

    /// Whether the client app may ask for these resources.
    async fn audience(
        self,
        application: &Arc<Application>,
        resources: &[String],
    ) -> Result<Result<(), Refusal>, Problem> {
        if resources.is_empty() {
            return Ok(Ok(()));
        }
        let (application, resources) = (Arc::clone(application), resources.to_vec());
        let judging = self.store.run("JudgeAudience", Mode::Quick, None, move |tx| {
            audience(tx, &application, &resources).map(|judged| judged.map(drop))
        });
        Ok(judging.await?)
    }
}

/// The person for whom alone `claims` asks for an ID token (OpenID Connect Core 1.0, section 3.1.2.2). A value that is
/// no person's id is nobody.
fn named_person(claims: &ClaimsRequest) -> Option<Uuid> {
    let subject = claims.in_id_token("sub").filter(|subject| !subject.values.is_empty())?;
    let first = subject.texts().next().filter(|_| subject.values.len() == 1);
    Some(first.and_then(exact_id).unwrap_or_default())
}

/// Judges a request by the client app and the tenants' options.
///
/// # Errors
/// The refusal.
pub(crate) fn judge(
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
    check_use(&application.unserved, Use::Authorization)?;
    application.check_served()?;
    let served = application.tenants.iter().filter(|one| issuing.is_none_or(|id| id == one.facts.id));
    // a tenant that may be chosen later counts, too
    let terms =
        Terms { is_pkce_required: application.needs_pkce(served), is_pushed: false, is_signed: false };
    with_facts(application, |facts| check_request(request, facts, terms))
}

/// The answer that refuses a request.
pub(crate) fn refuse(issuer: &str, addressing: &Addressing, refusal: Refusal) -> Outcome {
    Outcome::Refused(refusal, deliver(addressing, addressing.reply.answer(issuer).refused(refusal)).into())
}

/// The answer with a code, if one was asked for.
pub(crate) fn leave(issuer: &str, addressing: &Addressing, code: Option<&str>) -> Outcome {
    let answer = addressing.reply.answer(issuer);
    deliver(
        addressing,
        match code {
            Some(code) => answer.with("code", code),
            None => answer,
        },
    )
}

fn deliver(addressing: &Addressing, answer: Answer) -> Outcome {
    // one that was to be signed is refused in the same mode without a signature
    let mode = ResponseMode { is_signed: false, ..addressing.reply.mode };
    match answer.deliver(&addressing.redirect_uri, mode, |_| Ok::<_, std::convert::Infallible>(String::new()))
    {
        Ok(Delivery::Redirect(address)) => Outcome::Leave(address),
        Ok(Delivery::Form { action, fields }) => Outcome::Post { action, fields, session: None },
        Err(never) => match never {},
    }
}
