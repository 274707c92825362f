//! The inputs of the state machine, and the step that they make due.

use std::{collections::HashMap, sync::Arc};

use chancery_flow::{Action, AppFacts, Due, DueAction, Flow, Method, Proof, Step, next};
use chancery_management::user_questionnaire_item::Item;
use chancery_record::Timestamp;
use chancery_resource::{AppContext, CONSOLE, Problem, Tx};
use chancery_userstore::password::change_at_sign_in::{PasswordState, password_state};
use uuid::Uuid;

use super::pending_flow::PendingFlow;
use crate::{
    client_app::{
        Application, OfferedFactor, OfferedStore, ServingTenant,
        audience::{NamedResource, named_resources},
    },
    person::{
        Admitted, IdentityKey, StoreUser,
        consent::is_for_platform,
        context::context_of_store,
        external_claims::ExternalClaims,
        names::{NameQuery, Names, names_of},
    },
    provider::{Provider, Visit},
    second_factor::Device,
    session::Session,
};

/// A flow with the data that was read to evaluate the due step.
pub struct Evaluated {
    /// The due step, with its flow.
    pub due: Due,
    /// The names of the people of the browser's sessions, by the ids of the sessions, if the step shows them.
    pub names: HashMap<Uuid, Names>,
    /// The requested resources, if consent is due.
    pub resources: Vec<NamedResource>,
    /// The state of the password, if a change is due.
    pub password: Option<PasswordState>,
    /// The person, if identified and admitted.
    pub admitted: Option<Admitted>,
    /// The open questionnaire items, if they can be shown now.
    pub questions: Vec<Item>,
    /// Whether this flow has a proof that no session holds yet.
    pub lacks_session: bool,
}

impl Evaluated {
    /// The language of the person, once it is known who that is.
    pub fn locale(&self) -> Option<&String> {
        self.admitted.as_ref()?.contact.locale.as_ref()
    }

    /// The store's user of the person; `None` also for external users.
    pub fn user(&self) -> Option<&StoreUser> {
        self.admitted.as_ref()?.user.as_ref()
    }

    /// Whether the person proved an access pass.
    pub fn is_by_access_pass(&self) -> bool {
        self.is_by(|method| method == Method::AccessPass)
    }

    /// Whether the person proved a passkey.
    pub fn is_by_passkey(&self) -> bool {
        self.is_by(|method| matches!(method, Method::Passkey { .. }))
    }

    /// The action, if it is due now.
    pub fn due_action(&self, action: Action) -> Option<DueAction> {
        match self.due.step() {
            Step::Action(due) if due.action == action => Some(*due),
            _ => None,
        }
    }

    fn is_by(&self, is_such: impl Fn(Method) -> bool) -> bool {
        let proofs = self.due.identified().map(|identified| &identified.proofs);
        proofs.into_iter().flatten().any(|proof| is_such(proof.method))
    }
}

/// Inputs of the state machine besides the flow, except the data of the transaction.
#[derive(Clone)]
pub struct FlowContext {
    /// The client app.
    pub application: Arc<Application>,
    /// The tenant whose issuer got the request; `None`: the installation.
    pub issuing: Option<Uuid>,
    /// `login_hint`
    pub login_hint: Option<String>,
    /// Whether the person prefers a password where a passkey could be registered instead.
    pub prefers_password: bool,
    /// The cookie of a browser that is remembered.
    pub(crate) device: Option<Device>,
    is_of_device: bool,
    /// The claims of an external identity provider in this flow.
    pub(crate) external_claims: Option<Arc<ExternalClaims>>,
    /// The tenants with an address range that contains the browser's address.
    in_range: Vec<Uuid>,
    /// The context of the process.
    pub app: Arc<AppContext>,
}

impl FlowContext {
    /// The context of a flow.
    pub fn new(
        provider: Provider<'_>,
        application: Arc<Application>,
        visit: &Visit,
        pending: &PendingFlow,
    ) -> Self {
        let login_hint = pending.parameters.iter().find(|(name, _)| name == "login_hint");
        let login_hint = login_hint.map(|(_, hint)| hint.clone()).filter(|hint| !hint.is_empty());
        Self {
            in_range: application.in_range(&visit.origin.address),
            application,
            issuing: pending.issuing,
            login_hint,
            prefers_password: pending.prefers_password,
            device: visit.device.clone().map(|value| Device::of(&provider.context.master, value)),
            is_of_device: pending.device.is_some(),
            external_claims: pending.external_claims.clone().map(Arc::new),
            app: Arc::clone(provider.context),
        }
    }

    /// The tenant of the sign-in, once it is known.
    pub(crate) fn tenant_of(&self, evaluated: &Evaluated) -> Option<Uuid> {
        match evaluated.due.step() {
            Step::Account { tenant, .. } => Some(*tenant),
            Step::FirstFactor(due) => Some(due.tenant),
            Step::Done(signed_in) => Some(signed_in.tenant),
            _ => evaluated.due.identified().map(|identified| identified.tenant).or(self.issuing),
        }
    }

    /// The stores that are offered for the first factor.
    pub fn offered(&self, evaluated: &Evaluated) -> Vec<&OfferedStore> {
        let Step::FirstFactor(due) = evaluated.due.step() else { return Vec::new() };
        let stores = self.application.tenant(due.tenant).map(|tenant| &tenant.stores);
        let is_offered = |store: &&OfferedStore| due.offered.iter().any(|instance| instance.id == store.id);
        stores.into_iter().flatten().filter(is_offered).collect()
    }

    /// The tenant in which the person signs in, once it is known who that is.
    pub fn serving_tenant(&self, evaluated: &Evaluated) -> Option<&ServingTenant> {
        self.application.tenant(evaluated.due.identified()?.tenant)
    }

    /// A second factor of that tenant.
    pub fn factor(&self, evaluated: &Evaluated, id: Uuid) -> Option<&OfferedFactor> {
        self.serving_tenant(evaluated)?.factors.iter().find(|factor| factor.id == id)
    }

    /// The store by which the person signs in.
    pub fn store_of(&self, evaluated: &Evaluated) -> Option<&OfferedStore> {
        let identified = evaluated.due.identified()?;
        let tenant = self.application.tenant(identified.tenant)?;
        tenant.stores.iter().find(|store| store.id == identified.instance)
    }

    /// Evaluates the due step of a flow of a browser with these sessions, from the facts of this transaction.
    pub fn evaluate(
        &self,
        tx: &mut Tx<'_>,
        flow: Flow,
        sessions: &[Session],
        now: Timestamp,
    ) -> Result<Evaluated, Problem> {
        let mut names = HashMap::new();
        if let (Some(_), false) = (&self.login_hint, sessions.is_empty()) {
            names = names_of(tx, &name_queries(sessions))?;
        }
        let fits = |session: &Session| {
            let names = names.get(&session.id);
            names.zip(self.login_hint.as_ref()).is_some_and(|(names, hint)| names.matches_hint(hint))
        };
        let is_for_platform = self.application.id == CONSOLE || is_for_platform(&flow.request().requested);
        let facts: Vec<_> =
            sessions.iter().map(|session| session.facts(fits(session), is_for_platform)).collect();
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
            names = names_of(tx, &name_queries(sessions))?;
        }
        let resources = match due.step() {
            Step::Consent => named_resources(tx, &self.application, &due.flow().request().requested)?,
            _ => Vec::new(),
        };
        let lacks_session = lacks_session(&due, sessions);
        Ok(Evaluated { due, names, resources, password, admitted, questions, lacks_session })
    }
}

/// The look-ups of the sessions' names.
fn name_queries(sessions: &[Session]) -> Vec<NameQuery> {
    let query = |session: &Session| NameQuery {
        session: session.id,
        identity: IdentityKey { person: session.person, instance: session.instance },
    };
    sessions.iter().map(query).collect()
}

/// Whether this flow has a proof that the person's session does not hold.
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
