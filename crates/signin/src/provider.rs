//! The OpenID provider: what its endpoints and pages share.

use std::sync::Arc;

use chancery_auth::{Issuer, TokenService};
use chancery_flow::{
    AppFacts, Consent, Due, Enrolment, Flow, Identified, NotAdmitted, PersonFacts, Prompt, Request,
    SecondFactors, next,
};
use chancery_oauth::{
    Addressing, AuthorizationRequest, ClientFacts, Prompt as AskedPrompt, SecurityProfile, SignInFacts,
};
use chancery_record::Timestamp;
use chancery_resource::{AppContext, MasterKey, Problem, Tx};
use chancery_store::Store;
use uuid::Uuid;

use crate::{
    application::{Application, Applications, ConsentMode},
    kept_flow::KeptFlow,
    person,
    record::Origin,
    session::{self, Session, SessionCookie},
};

/// The OpenID provider.
#[derive(Clone, Copy)]
pub struct Provider<'a> {
    /// The store.
    pub store: &'a Store,
    /// What signs tokens.
    pub tokens: &'a TokenService,
    /// What all operations share.
    pub context: &'a Arc<AppContext>,
    /// The client apps that people sign in to.
    pub applications: &'a Applications,
}

/// A browser that asks for a page.
pub struct Visit {
    /// The issuer whose path was asked for.
    pub issuer: Issuer,
    /// The value of the cookie that flows are bound to.
    pub browser: String,
    /// The value of the session cookie.
    pub session: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// The language tags that the browser prefers, the first one first.
    pub languages: Vec<String>,
    /// The time of the request.
    pub now: Timestamp,
}

impl Visit {
    /// The session cookie, with its digest.
    pub fn session_cookie(&self, master: &MasterKey) -> Option<SessionCookie> {
        self.session.clone().map(|value| SessionCookie::of(master, value))
    }
}

/// A flow with all that was read to find out what is due in it.
pub struct Examined {
    /// The step, and the flow that it is due in.
    pub due: Due,
    /// The sessions of the browser.
    pub sessions: Vec<Session>,
}

/// What the state machine needs besides the flow: all but what the transaction reads.
#[derive(Clone)]
pub struct Circumstances {
    /// The client app.
    pub application: Arc<Application>,
    /// The tenant whose issuer was asked; none is the installation.
    pub issuing: Option<Uuid>,
    /// Whether a password was proven that must be changed first. Such a person is not admitted yet: there is no
    /// page for it.
    pub must_change_password: bool,
}

impl Circumstances {
    /// The circumstances of a flow.
    pub const fn new(application: Arc<Application>, issuing: Option<Uuid>) -> Self {
        Self { application, issuing, must_change_password: false }
    }

    /// Finds what is due in a flow, from the facts of this transaction.
    ///
    /// # Errors
    /// Those of the store.
    pub fn examine(
        &self,
        tx: &mut Tx<'_>,
        flow: Flow,
        cookie: Option<&SessionCookie>,
        now: Timestamp,
    ) -> Result<Examined, Problem> {
        let sessions = session::load(tx, cookie, now)?;
        let facts: Vec<_> = sessions.iter().map(Session::facts).collect();
        let tenants = self.application.tenant_facts(self.issuing);
        let app = AppFacts { tenants: &tenants, in_range: &[], sessions: &facts };
        let due = next(flow, &app, now, |identified| self.person(tx, identified, now))?;
        Ok(Examined { due, sessions })
    }

    fn person(
        &self,
        tx: &mut Tx<'_>,
        identified: &Identified,
        now: Timestamp,
    ) -> Result<PersonFacts, Problem> {
        let application = &self.application;
        let refused = person::refusal(tx, application, identified.person, identified.instance, now)?;
        let store = application
            .tenant(identified.tenant)
            .and_then(|tenant| tenant.stores.iter().find(|store| store.id == identified.instance));
        let asks =
            application.asks_for_second_factor || store.is_some_and(|store| store.asks_for_second_factor);
        Ok(PersonFacts {
            refused: refused.or(self.must_change_password.then_some(NotAdmitted::PasswordExpired)),
            // none can be proven yet: where one is asked for, nobody is admitted
            second_factors: SecondFactors {
                are_asked_for: asks,
                usable: Vec::new(),
                has_recovery_code: false,
                enrolment: Enrolment::Closed,
                is_remembered: false,
                does_passkey_satisfy: false,
            },
            passkey: None,
            due: Vec::new(),
            consent: match application.consent {
                ConsentMode::Implicit => Consent::Implicit,
                ConsentMode::Explicit => Consent::Explicit { is_covered: false },
                ConsentMode::Systematic => Consent::Systematic,
                ConsentMode::External => Consent::External { is_covered: false },
            },
        })
    }
}

/// The facts by which an authorization request is judged.
pub fn with_facts<T>(application: &Application, judge: impl FnOnce(&SignInFacts<'_>) -> T) -> T {
    let scopes: Vec<&str> = application.scopes.iter().map(String::as_str).collect();
    let uris: Vec<&str> = application.login_uris.iter().map(String::as_str).collect();
    let client = ClientFacts {
        is_public: application.is_public,
        is_native_application: application.is_native,
        allowed_response_types: &application.allowed_response_types,
        security_profile: match application.security_profile.as_str() {
            "None" => SecurityProfile::None,
            "Fapi1Advanced" => SecurityProfile::Fapi1Advanced,
            "Fapi2SecurityProfile" => SecurityProfile::Fapi2SecurityProfile,
            _ => SecurityProfile::Fapi2MessageSigning,
        },
        redirect_uris: &uris,
        ..ClientFacts::default()
    };
    judge(&SignInFacts {
        client,
        allow_user_login: application.allow_user_login,
        scope_filter_enabled: application.scope_filter_enabled,
        scopes: &scopes,
    })
}

/// What the authorization request demands of the sign-in.
pub fn demands(
    request: &AuthorizationRequest,
    addressing: &Addressing,
    issuing: Option<Uuid>,
    is_native: bool,
    now: Timestamp,
) -> Request {
    let named = |text: &Option<String>| text.as_ref().map(|text| Uuid::try_parse(text).unwrap_or_default());
    Request {
        prompt: match request.prompt {
            AskedPrompt::None => Prompt::None,
            AskedPrompt::Pages(pages) => Prompt::Pages {
                login: pages.login,
                consent: pages.consent,
                select_account: pages.select_account,
            },
        },
        max_age: request.max_age.map(u64::from),
        has_login_hint: request.login_hint.is_some(),
        demanded: request
            .acr_values
            .classes
            .iter()
            .filter_map(|name| chancery_flow::Acr::named(name))
            .collect(),
        tenant: issuing.or_else(|| named(&addressing.tenant)),
        instance: named(&request.acr_values.instance),
        asked: request.scope.iter().flat_map(|scope| scope.words().map(str::to_owned)).collect(),
        is_native,
        ..Request::new(now)
    }
}

/// A flow that begins.
pub fn begin(
    application: &Application,
    issuing: Option<Uuid>,
    parameters: Vec<(String, String)>,
    request: Request,
) -> KeptFlow {
    KeptFlow::new(issuing, application.id, parameters, Flow::new(request))
}
