//! Sign-ins by example, and properties of arbitrary ones.

mod arbitrary;
mod events;
mod factors;
mod oracle;
mod properties;
mod silent;
mod strength;
mod table;
mod worse;

use std::convert::Infallible;

use chancery_record::Timestamp;
use uuid::Uuid;

use crate::{
    AppFacts, CodeKind, Consent, Due, Enrolment, Event, Flow, InstanceFacts, InstanceKind, Method,
    PersonFacts, Proof, Proven, Request, SecondFactors, SessionFacts, Step, TenantFacts, UsableFactor, next,
};

pub const NOON: Timestamp = Timestamp(1_795_262_400_000);
pub const MINUTE: i64 = 60_000;
pub const PASSKEY: Method = Method::Passkey { user_verified: true, hardware: false };

pub const TENANT: Uuid = Uuid::from_u128(1);
pub const OTHER_TENANT: Uuid = Uuid::from_u128(2);
pub const STORE: Uuid = Uuid::from_u128(11);
pub const PROVIDER: Uuid = Uuid::from_u128(12);
pub const TOTP: Uuid = Uuid::from_u128(21);
pub const EMAIL: Uuid = Uuid::from_u128(22);
pub const ALICE: Uuid = Uuid::from_u128(31);
pub const BOB: Uuid = Uuid::from_u128(32);
pub const SESSION: Uuid = Uuid::from_u128(41);
pub const OTHER_SESSION: Uuid = Uuid::from_u128(42);

/// All facts at one time; those about the person are the same for all people.
#[derive(Clone, Debug)]
pub struct World {
    pub tenants: Vec<TenantFacts>,
    pub in_range: Vec<Uuid>,
    pub sessions: Vec<SessionFacts>,
    pub person: PersonFacts,
}

/// One tenant with one store, no session, and only a first factor required.
pub fn world() -> World {
    World {
        tenants: vec![tenant(TENANT, &[store()])],
        in_range: Vec::new(),
        sessions: Vec::new(),
        person: PersonFacts {
            refused: None,
            second_factors: SecondFactors {
                are_required: false,
                usable: Vec::new(),
                has_recovery_code: false,
                enrolment: Enrolment::Closed,
                is_remembered: false,
                does_passkey_satisfy: true,
            },
            passkey: None,
            due: Vec::new(),
            consent: Consent::Implicit,
        },
    }
}

impl World {
    pub fn due(&self, flow: &Flow, now: Timestamp) -> Due {
        let facts = AppFacts { tenants: &self.tenants, in_range: &self.in_range, sessions: &self.sessions };
        match next(flow.clone(), &facts, now, |_| Ok::<_, Infallible>(self.person.clone())) {
            Ok(due) => due,
            Err(never) => match never {},
        }
    }

    pub fn step(&self, flow: &Flow, now: Timestamp) -> Step {
        self.due(flow, now).step().clone()
    }

    /// The flow after the event, which must be accepted.
    pub fn after(&self, flow: &Flow, event: Event) -> Flow {
        let due = self.due(flow, NOON);
        due.apply(event).unwrap_or_else(|refusal| panic!("{refusal:?} at {:?}", due.step()))
    }

    pub fn with_session(mut self, id: Uuid, person: Uuid, proofs: Vec<Proof>) -> Self {
        self.sessions.push(SessionFacts { id, tenant: TENANT, person, proofs, fits_login_hint: false });
        self
    }

    /// Alice signed in by password a minute ago.
    pub fn with_alice(self) -> Self {
        self.with_session(SESSION, ALICE, vec![proof(ALICE, STORE, Method::Password)])
    }

    /// Bob also signed in.
    pub fn with_bob(self) -> Self {
        self.with_session(OTHER_SESSION, BOB, vec![proof(BOB, STORE, Method::Password)])
    }

    /// App or instance has an MfaInstance for authenticators.
    pub fn requiring_totp(mut self, is_enrolled: bool) -> Self {
        self.person.second_factors.are_required = true;
        self.person.second_factors.usable = vec![usable(TOTP, CodeKind::Totp, is_enrolled)];
        self
    }
}

pub fn tenant(id: Uuid, instances: &[InstanceFacts]) -> TenantFacts {
    TenantFacts { id, instances: instances.to_vec() }
}

pub fn store() -> InstanceFacts {
    InstanceFacts { id: STORE, is_hidden: false, kind: InstanceKind::Store }
}

pub fn provider() -> InstanceFacts {
    InstanceFacts { id: PROVIDER, is_hidden: false, kind: InstanceKind::External { believed: true } }
}

pub fn usable(instance: Uuid, kind: CodeKind, is_enrolled: bool) -> UsableFactor {
    UsableFactor { instance, kind, is_enrolled }
}

/// A proof from a minute ago.
pub fn proof(person: Uuid, instance: Uuid, method: Method) -> Proof {
    Proof::new(proven(person, instance, method), NOON.plus(-MINUTE))
}

pub fn proven(person: Uuid, instance: Uuid, method: Method) -> Proven {
    Proven { person, instance, method, credential: None }
}

pub fn by_password(person: Uuid) -> Event {
    Event::FirstFactorProven(proven(person, STORE, Method::Password))
}

pub fn by_totp(person: Uuid) -> Event {
    Event::FactorProven(proven(person, TOTP, Method::Totp))
}

pub fn request() -> Request {
    Request::new(NOON)
}

pub fn flow() -> Flow {
    Flow::new(request())
}
