//! Who acts, where and when: all that a change may know of the world.

use std::{
    cell::RefCell,
    sync::{Arc, atomic::Ordering},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Timestamp, Value};
use uuid::Uuid;

use super::random::random;
use crate::{AppContext, Postcondition, Scope, seal::sealed::Persons};

/// Who acts, where and when. What the server does by itself has one, too, and no request.
pub struct Context {
    /// What the actor's rights cover.
    pub scope: Scope,
    /// Who acts: a client app's id; none for the server itself.
    pub actor: Option<Uuid>,
    /// The client app that acts for the actor, by a token that it got in exchange for theirs.
    pub acting: Option<Uuid>,
    /// The time that counts.
    pub now: Timestamp,
    /// The keys of the persons of whom audit entries were written, by their ids.
    pub persons: RefCell<Persons>,
    /// What must hold when the operation ends, because of the resources that it wrote.
    pub(crate) postconditions: RefCell<Vec<Postcondition>>,
    /// What all operations share.
    pub app: Arc<AppContext>,
}

impl Context {
    /// Somebody who acts: a client app, perhaps through another one.
    pub fn new(
        app: &Arc<AppContext>,
        scope: Scope,
        now: Timestamp,
        actor: Option<Uuid>,
        acting: Option<Uuid>,
    ) -> Self {
        let (persons, postconditions) = (RefCell::default(), RefCell::default());
        Self { scope, actor, acting, now, persons, postconditions, app: Arc::clone(app) }
    }

    /// The server acting by itself.
    pub fn of_server(app: &Arc<AppContext>, scope: Scope, now: Timestamp) -> Self {
        Self::new(app, scope, now, None, None)
    }

    /// Begins an operation, perhaps again.
    pub(crate) fn begin(&self) {
        self.persons.borrow_mut().clear();
        self.postconditions.borrow_mut().clear();
    }

    /// A new identifier: UUID version 7, in order of time.
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

    /// Acts on the configuration as a consequence of a call in a user store; the configuration's audit
    /// trail records it. The caller's rights do not limit it: what it reaches must.
    pub fn on_configuration<T>(&mut self, act: impl FnOnce(&Self) -> T) -> T {
        let store = std::mem::replace(&mut self.scope, Scope::Everything);
        let outcome = act(self);
        self.scope = store;
        outcome
    }
}
