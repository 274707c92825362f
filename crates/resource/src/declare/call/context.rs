//! The context of a call: who acts, where and when.

use std::{
    cell::RefCell,
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Timestamp, Value};
use uuid::Uuid;

use crate::{AppContext, Authority, Persons, Postcondition, Scope, random};

/// A SCIM client that provisions users and groups, and its scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provisioner {
    /// The token that it authenticates with; none where a client app acts by its own rights.
    pub token: Option<Uuid>,
    /// The first token of its rotation chain, which owns all users and groups that it creates.
    pub owner: Option<Uuid>,
    /// Whether its scope includes users and groups of other owners.
    pub reaches_all: bool,
    /// Whether e-mail addresses that the token writes count as confirmed.
    pub confirms_email: bool,
    /// How many users it may deactivate or delete within an hour.
    pub mass_limit: i64,
    /// Whether the deletion of a person cascades to the rows that refer to the person.
    pub deletes_cascade: bool,
}

impl Provisioner {
    /// The owner to which its scope is limited; `None`: no limit.
    pub fn only(&self) -> Option<Uuid> {
        self.owner.filter(|_| !self.reaches_all)
    }
}

/// Who acts, where and when. Jobs of the server have a context, too, but no request.
pub struct Context {
    /// What the actor's rights cover.
    pub scope: Scope,
    /// Who acts: a client app's or user's id; `None` for the server itself.
    pub actor: Option<Uuid>,
    /// The rights by which the actor writes rows that carry roles.
    pub authority: Authority,
    /// Rows already checked in this transaction that carry no effective role, each with the address of its
    /// protection.
    pub(crate) cleared: RefCell<HashSet<(usize, Uuid)>>,
    /// Whether the actor is a platform user who signed in.
    pub is_person: bool,
    /// The client app that acts for the actor, with a token obtained by token exchange (RFC 8693).
    pub acting: Option<Uuid>,
    /// The SCIM client that acts, if any.
    pub provisioner: Option<Arc<Provisioner>>,
    /// The trace id of the request (W3C Trace Context), which its events name.
    pub trace: Option<u128>,
    /// The current time, the same for the whole operation.
    pub now: Timestamp,
    /// The keys of the persons in audit entries of this call, by the persons' ids.
    pub persons: RefCell<Persons>,
    /// The postconditions of the written resources, checked when the operation ends.
    pub(crate) postconditions: RefCell<Vec<Postcondition>>,
    /// The shared context of all operations.
    pub app: Arc<AppContext>,
}

impl Context {
    /// The context of an actor, and of the client app that acts for it. It holds no roles: a caller that knows
    /// them sets `authority`.
    pub fn new(
        app: &Arc<AppContext>,
        scope: Scope,
        now: Timestamp,
        actor: Option<Uuid>,
        acting: Option<Uuid>,
    ) -> Self {
        let (persons, postconditions) = (RefCell::default(), RefCell::default());
        let app = Arc::clone(app);
        let (provisioner, trace) = (None, None);
        let (authority, cleared) = (Authority::Roles(Vec::new()), RefCell::default());
        Self {
            scope,
            actor,
            authority,
            cleared,
            is_person: false,
            acting,
            provisioner,
            trace,
            now,
            persons,
            postconditions,
            app,
        }
    }

    /// The context of the server acting by itself.
    pub fn of_server(app: &Arc<AppContext>, scope: Scope, now: Timestamp) -> Self {
        Self { authority: Authority::Own, ..Self::new(app, scope, now, None, None) }
    }

    /// Resets the state of an earlier run, before the operation runs.
    pub(crate) fn begin(&self) {
        self.persons.borrow_mut().clear();
        self.cleared.borrow_mut().clear();
        self.postconditions.borrow_mut().clear();
    }

    /// A new identifier: UUID version 7 (RFC 9562), ascending in time.
    pub fn new_id(&self) -> Uuid {
        let mut bytes = random::<10>();
        let count = self.app.counter.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        bytes[0] = count[2];
        bytes[1] = count[3];
        let milliseconds = u64::try_from(self.now.0).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(milliseconds, &bytes).into_uuid()
    }

    /// A new concurrency token.
    pub fn new_token(&self) -> Value {
        Value::Text(BASE64_URL_SAFE_NO_PAD.encode(random::<16>()))
    }

    /// The actor that sets an attribute of a person, unless it is the person or the server itself.
    pub fn setter_for(&self, person: Uuid) -> Option<Uuid> {
        let is_own = self.authority == Authority::Own;
        self.actor.filter(|actor| !is_own && *actor != person)
    }

    /// Runs `act` with the server's authority, for changes by time or for rows that mirror another: no right of
    /// the caller decides them.
    pub fn by_itself<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let authority = std::mem::replace(&mut self.authority, Authority::Own);
        let outcome = act(self);
        self.authority = authority;
        outcome
    }

    /// Acts on the configuration as a consequence of a call in a user store; the configuration's audit trail
    /// records it. The caller's rights do not limit the scope: `act` must.
    pub fn on_configuration<T>(&mut self, act: impl FnOnce(&Self) -> T) -> T {
        let store = std::mem::replace(&mut self.scope, Scope::Everything);
        let outcome = act(self);
        self.scope = store;
        outcome
    }
}
