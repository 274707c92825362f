//! The context of a call: who acts, where and when.

use std::{
    cell::RefCell,
    sync::{Arc, atomic::Ordering},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Timestamp, Value};
use uuid::Uuid;

use super::random::random;
use crate::{AppContext, Postcondition, Scope, seal::sealed::Persons};

/// Who acts, where and when. Jobs of the server have a context, too, but no request.
pub struct Context {
    /// What the actor's rights cover.
    pub scope: Scope,
    /// Who acts: a client app's or user's id; `None` for the server itself.
    pub actor: Option<Uuid>,
    /// Whether the actor is a platform user who signed in.
    pub is_person: bool,
    /// The client app that acts for the actor, with a token obtained by token exchange (RFC 8693).
    pub acting: Option<Uuid>,
    /// The trace id of the request (W3C Trace Context), which its events name.
    pub trace: Option<u128>,
    /// The current time, the same for the whole operation.
    pub now: Timestamp,
    /// The keys of the persons of whom audit entries were written, by the persons' ids.
    pub persons: RefCell<Persons>,
    /// The postconditions of the resources that were written, checked when the operation ends.
    pub(crate) postconditions: RefCell<Vec<Postcondition>>,
    /// What all operations share.
    pub app: Arc<AppContext>,
}

impl Context {
    /// The context of an actor, and of the client app that acts for it.
    pub fn new(
        app: &Arc<AppContext>,
        scope: Scope,
        now: Timestamp,
        actor: Option<Uuid>,
        acting: Option<Uuid>,
    ) -> Self {
        let (persons, postconditions) = (RefCell::default(), RefCell::default());
        let app = Arc::clone(app);
        Self { scope, actor, is_person: false, acting, trace: None, now, persons, postconditions, app }
    }

    /// The context of the server acting by itself.
    pub fn of_server(app: &Arc<AppContext>, scope: Scope, now: Timestamp) -> Self {
        Self::new(app, scope, now, None, None)
    }

    /// Resets what an earlier run of the operation left, before it runs.
    pub(crate) fn begin(&self) {
        self.persons.borrow_mut().clear();
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

    /// Acts on the configuration as a consequence of a call in a user store; the configuration's audit trail
    /// records it. The caller's rights do not limit what is reached: `act` must.
    pub fn on_configuration<T>(&mut self, act: impl FnOnce(&Self) -> T) -> T {
        let store = std::mem::replace(&mut self.scope, Scope::Everything);
        let outcome = act(self);
        self.scope = store;
        outcome
    }
}
