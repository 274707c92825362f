//! The OpenID provider: what its endpoints and pages share.

use std::{collections::HashMap, sync::Arc};

use chancery_auth::{Issuer, TokenService, load_store_context};
use chancery_flow::{
    Acr, Action, AppFacts, Due, DueAction, Flow, Identified, Method, Prompt, Proof, Request, Step, next,
};
use chancery_management::{idp_instance::connection::Documents, user_questionnaire_item::Item};
use chancery_oauth::{Addressing, AuthorizationRequest, Checked, Prompt as AskedPrompt};
use chancery_record::Timestamp;
use chancery_resource::{AppContext, Context, MasterKey, Pool, Problem, Scope, Tx};
use chancery_store::Store;
use chancery_userstore::password::own_change::{PasswordState, password_state};
use uuid::Uuid;

use crate::{
    application::{Application, Applications, OfferedStore},
    audience::{NamedResource, named_resources},
    claims::Requested,
    counts::Counts,
    kept_flow::{KeptFlow, ToldElsewhere},
    people::{Asked, Names, names_of},
    person::{Admitted, StoreUser},
    record::Origin,
    second_factor::Device,
    session::{Session, SessionCookie},
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
    /// Where claim rules run.
    pub pool: &'a Pool,
    /// What external identity providers publish.
    pub documents: &'a Arc<Documents>,
    /// What metrics count.
    pub counts: &'a Counts,
}

/// A browser that asks for a page.
pub struct Visit {
    /// The issuer whose path was asked for.
    pub issuer: Issuer,
    /// The value of the cookie that flows are bound to.
    pub browser: String,
    /// The value of the session cookie.
    pub session: Option<String>,
    /// The value of the cookie of a browser that is remembered.
    pub device: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
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
    /// What the people of the browser's sessions are called, where that is asked: by the ids of the sessions.
    pub names: HashMap<Uuid, Names>,
    /// The resources that are asked for, where consent is due.
    pub resources: Vec<NamedResource>,
    /// The password that is to be changed, where that is due.
    pub password: Option<PasswordState>,
    /// The person, where it is known who is signing in, and that person is admitted.
    pub admitted: Option<Admitted>,
    /// The questionnaire items that the person has still to answer, where they can be asked now.
    pub questions: Vec<Item>,
    /// Whether something was proven in this flow that no session holds yet.
    pub lacks_session: bool,
}

impl Examined {
    /// The language of the person, once it is known who that is.
    pub fn locale(&self) -> Option<&String> {
        self.admitted.as_ref()?.contact.locale.as_ref()
    }

    /// The user of the store behind the person; `None` also for people from elsewhere.
    pub fn user(&self) -> Option<&StoreUser> {
        self.admitted.as_ref()?.user.as_ref()
    }

    /// Whether the person came by an access pass.
    pub fn is_by_access_pass(&self) -> bool {
        self.is_by(|method| method == Method::AccessPass)
    }

    /// Whether the person showed a passkey.
    pub fn is_by_passkey(&self) -> bool {
        self.is_by(|method| matches!(method, Method::Passkey { .. }))
    }

    fn is_by(&self, is_such: impl Fn(Method) -> bool) -> bool {
        let proofs = self.due.identified().map(|identified| &identified.proofs);
        proofs.into_iter().flatten().any(|proof| is_such(proof.method))
    }
}

/// What the state machine needs besides the flow: all but what the transaction reads.
#[derive(Clone)]
pub struct Circumstances {
    /// The client app.
    pub application: Arc<Application>,
    /// The tenant whose issuer was asked; none is the installation.
    pub issuing: Option<Uuid>,
    /// `login_hint`
    pub login_hint: Option<String>,
    /// Whether a password is to be made where a passkey could be, too.
    pub prefers_password: bool,
    /// The cookie of a browser that is remembered.
    pub(crate) device: Option<Device>,
    is_of_device: bool,
    /// What an external identity provider told in this flow.
    pub(crate) told: Option<Arc<ToldElsewhere>>,
    /// The tenants with a range of addresses that holds the browser's.
    in_range: Vec<Uuid>,
    /// What all operations share.
    pub app: Arc<AppContext>,
}

impl Circumstances {
    /// The circumstances of a flow.
    pub fn new(
        provider: Provider<'_>,
        application: Arc<Application>,
        (visit, kept): (&Visit, &KeptFlow),
    ) -> Self {
        let login_hint = kept.parameters.iter().find(|(name, _)| name == "login_hint");
        let login_hint = login_hint.map(|(_, hint)| hint.clone()).filter(|hint| !hint.is_empty());
        Self {
            in_range: application.in_range(&visit.origin.address),
            application,
            issuing: kept.issuing,
            login_hint,
            prefers_password: kept.prefers_password,
            device: visit.device.clone().map(|value| Device::of(&provider.context.master, value)),
            is_of_device: kept.device.is_some(),
            told: kept.told.clone().map(Arc::new),
            app: Arc::clone(provider.context),
        }
    }

    /// The tenant in which somebody signs in, once it is known.
    pub(crate) fn tenant_of(&self, examined: &Examined) -> Option<Uuid> {
        match examined.due.step() {
            Step::Account { tenant, .. } => Some(*tenant),
            Step::FirstFactor(due) => Some(due.tenant),
            Step::Done(signed_in) => Some(signed_in.tenant),
            _ => examined.due.identified().map(|identified| identified.tenant).or(self.issuing),
        }
    }

    /// The stores that are offered to prove a first factor in.
    pub fn offered(&self, examined: &Examined) -> Vec<&OfferedStore> {
        let Step::FirstFactor(due) = examined.due.step() else { return Vec::new() };
        let stores = self.application.tenant(due.tenant).map(|tenant| &tenant.stores);
        let is_offered = |store: &&OfferedStore| due.offered.iter().any(|instance| instance.id == store.id);
        stores.into_iter().flatten().filter(is_offered).collect()
    }

    /// Finds what is due in a flow of a browser with these sessions, from the facts of this transaction.
    ///
    /// # Errors
    /// Those of the store.
    pub fn examine(
        &self,
        tx: &mut Tx<'_>,
        flow: Flow,
        sessions: &[Session],
        now: Timestamp,
    ) -> Result<Examined, Problem> {
        let mut names = HashMap::new();
        if let (Some(_), false) = (&self.login_hint, sessions.is_empty()) {
            names = names_of(tx, &asked(sessions))?;
        }
        let fits = |session: &Session| {
            let names = names.get(&session.id);
            names.zip(self.login_hint.as_ref()).is_some_and(|(names, hint)| names.fit(hint))
        };
        let facts: Vec<_> = sessions.iter().map(|session| session.facts(fits(session))).collect();
        let tenants = self.application.tenant_facts(self.issuing);
        let app = AppFacts { tenants: &tenants, in_range: &self.in_range, sessions: &facts };
        let (read, mut admitted, mut questions) = (flow.clone(), None, Vec::new());
        let due = next(flow, &app, now, |identified| {
            let (facts, known) = self.person(tx, &read, identified, now)?;
            if let Some(known) = known {
                (admitted, questions) = (Some(known.admitted), known.questions);
            }
            Ok::<_, Problem>(facts)
        })?;
        let user = admitted.as_ref().and_then(|admitted| Some(admitted.user.as_ref()?.user));
        let mut password = None;
        if let (Step::Action(DueAction { action: Action::Password, .. }), Some(identified), Some(user)) =
            (due.step(), due.identified(), user)
        {
            let context = context_of_store(&self.app, tx, identified.instance, now)?;
            password = password_state(&context, tx, user)?;
        }
        let is_named = matches!(due.step(), Step::Account { .. } | Step::Consent | Step::Done(_));
        if is_named && names.is_empty() && (self.is_of_device || !matches!(due.step(), Step::Done(_))) {
            names = names_of(tx, &asked(sessions))?;
        }
        let resources = match due.step() {
            Step::Consent => named_resources(tx, &self.application, &due.flow().request().asked)?,
            _ => Vec::new(),
        };
        let lacks_session = lacks_session(&due, sessions);
        Ok(Examined { due, names, resources, password, admitted, questions, lacks_session })
    }
}

/// What names of people are asked by.
fn asked(sessions: &[Session]) -> Vec<Asked> {
    sessions.iter().map(|session| (session.id, session.person, session.instance)).collect()
}

/// Whether the person proved something in this flow that the person's session does not hold.
fn lacks_session(due: &Due, sessions: &[Session]) -> bool {
    let Some(identified) = due.identified().filter(|identified| identified.is_proven_here) else {
        return false;
    };
    let session = sessions.iter().find(|session| Some(session.id) == identified.session);
    let is_held = |proof: &Proof| {
        let of_session = session.into_iter().flat_map(|session| &session.proofs);
        of_session.into_iter().any(|held| held.at == proof.at && held.instance == proof.instance)
    };
    identified.proofs.iter().any(|proof| !is_held(proof))
}

/// What the authorization request demands of the sign-in.
pub fn demands(
    application: &Application,
    (checked, addressing): (&Checked, &Addressing),
    (issuing, is_native): (Option<Uuid>, bool),
    now: Timestamp,
) -> Request {
    let request = &checked.request;
    let tenant = addressing.tenant.as_ref().map(|id| Uuid::try_parse(id).unwrap_or_default());
    let instance =
        request.acr_values.instance.as_ref().map(|named| application.instance(named).unwrap_or_default());
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
        demanded: demanded(request).into_iter().collect(),
        tenant: issuing.or(tenant),
        instance,
        asked: asked_of(application, checked),
        is_native,
        ..Request::new(now)
    }
}

/// What a person consents to: the scope, the scopes of the claims that are asked for by name, and the resources.
pub fn asked_of(application: &Application, checked: &Checked) -> Vec<String> {
    let requested = Requested::of(application, &checked.request.claims, &checked.scope).scopes();
    let named = requested.into_iter().filter(|word| checked.is_openid() && !checked.scope.has(word));
    let words = checked.scope.words().chain(named).map(str::to_owned);
    words.chain(checked.request.resources.iter().cloned()).collect()
}

/// The class that must be reached: of the known ones of `acr_values` the lowest, and of an essential `acr` of `claims`
/// too. A higher one holds a lower.
fn demanded(request: &AuthorizationRequest) -> Option<Acr> {
    let lowest = |names: &[&str]| names.iter().filter_map(|name| Acr::named(name)).min();
    let classes: Vec<&str> = request.acr_values.classes.iter().map(String::as_str).collect();
    lowest(&classes).max(lowest(&request.claims.demanded_classes()))
}

/// The context in which a person who signs in by this instance acts: that of the user store, or the person's own.
///
/// # Errors
/// Those of the store; not found where the store is not active.
pub fn context_of(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    (admitted, identified): (&Admitted, &Identified),
    now: Timestamp,
) -> Result<Context, Problem> {
    let Some(user) = &admitted.user else { return Ok(context_of_person(app, identified.person, now)) };
    let mut context = context_of_store(app, tx, identified.instance, now)?;
    context.actor = Some(user.user_id);
    Ok(context)
}

/// The context in which a person acts on what is the person's own by having signed in.
pub fn context_of_person(app: &Arc<AppContext>, person: Uuid, now: Timestamp) -> Context {
    let mut context = Context::of_server(app, Scope::Everything, now);
    context.actor = Some(person);
    context
}

/// The context of a user store's own acting.
///
/// # Errors
/// Those of the store; not found where it is not active.
pub fn context_of_store(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    store: Uuid,
    now: Timestamp,
) -> Result<Context, Problem> {
    let found = load_store_context(tx, &store.to_string())?.filter(|found| found.is_active);
    let found = found.ok_or_else(|| Problem::not_found("user store"))?;
    Ok(Context::of_server(app, Scope::Store(found.scope), now))
}
