//! The security context of a request: its caller and the user store that its path names.

use std::sync::Arc;

use chancery_resource::{HeldRole, StoreScope};
use uuid::Uuid;

use crate::Claims;

/// The security context of a request: the token, its caller, the store that the path names, and the epoch.
#[derive(Clone, Debug)]
pub struct SecurityContext {
    /// The epoch at which all of this was read.
    pub epoch: i64,
    /// The claims of the token, if one was presented and is valid. The caller checks when it expires.
    pub claims: Option<Arc<Claims>>,
    /// The caller whose rights the token carries, if that client app or person exists and the person's grant is active.
    pub caller: Option<Arc<Caller>>,
    /// The store, if the path names one that exists.
    pub store: Option<Arc<StoreContext>>,
}

/// A client app, or a person who signed in to one, as a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The client app, or the platform user, whose rights the token carries.
    pub id: Uuid,
    /// The client app that the token was issued to.
    pub holder: Uuid,
    /// Whether it is a platform user.
    pub is_person: bool,
    /// Whether both client apps may use tokens now.
    pub enabled: bool,
    /// Whether DPoP proofs of the holder need a nonce.
    pub needs_nonce: bool,
    /// The holder's subscription.
    pub subscription: Uuid,
    /// The login name of a person.
    pub login_name: Option<String>,
    /// The roles of the client app or person whose rights these are.
    pub roles: Vec<HeldRole>,
}

impl Caller {
    /// The client app that acts for another, with a token exchanged for the other's. A person acts through a client app.
    pub fn acting(&self) -> Option<Uuid> {
        (!self.is_person && self.holder != self.id).then_some(self.holder)
    }
}

/// A user store with its subscription and customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreContext {
    /// The store.
    pub scope: StoreScope,
    /// The store's subscription.
    pub subscription: Uuid,
    /// The store's customer.
    pub customer: Uuid,
    /// Whether the store is active.
    pub is_active: bool,
}
