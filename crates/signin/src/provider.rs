//! The OpenID provider: shared state of its endpoints and pages.

use std::sync::Arc;

use chancery_auth::{Issuer, TokenService};
use chancery_management::idp_instance::connection::Documents;
use chancery_record::Timestamp;
use chancery_resource::{AppContext, MasterKey, Pool};
use chancery_store::Store;

use crate::{
    client_app::Applications,
    device_polls::DevicePolls,
    metrics::Counts,
    session::{SessionCookie, sign_in_record::Origin},
};

/// The OpenID provider.
#[derive(Clone, Copy)]
pub struct Provider<'a> {
    /// The store.
    pub store: &'a Store,
    /// The service that signs tokens.
    pub tokens: &'a TokenService,
    /// The context of the process.
    pub context: &'a Arc<AppContext>,
    /// The cache of client apps.
    pub applications: &'a Applications,
    /// The worker pool that runs claim rules.
    pub pool: &'a Pool,
    /// The cache of the documents of external identity providers.
    pub documents: &'a Arc<Documents>,
    /// When waiting devices last polled.
    pub device_polls: &'a DevicePolls,
    /// The metrics.
    pub counts: &'a Counts,
}

/// A browser's request for a page.
pub struct Visit {
    /// The issuer of the requested path.
    pub issuer: Issuer,
    /// The value of the cookie that flows are bound to.
    pub browser: String,
    /// The value of the session cookie.
    pub session: Option<String>,
    /// The value of the cookie of a browser that is remembered.
    pub device: Option<String>,
    /// Whether a person signed out in this browser, and no person signed in since.
    pub has_signed_out: bool,
    /// Its origin.
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
