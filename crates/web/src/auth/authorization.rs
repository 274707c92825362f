//! A granted request, and the problem of a denied one.

use std::sync::Arc;

use chancery_auth::{AccessDenied, Caller};
use chancery_resource::{Problem, ProblemKind, Provisioner, Scope};

/// A granted request, and the epoch of its rights.
#[derive(Clone, Debug)]
pub struct Authorization {
    /// The epoch.
    pub epoch: i64,
    /// The caller; `None` where no token is needed or given.
    pub caller: Option<Arc<Caller>>,
    /// The directory that calls, where one does.
    pub provisioner: Option<Arc<Provisioner>>,
    /// The scope that it reaches.
    pub scope: Scope,
}

/// The problem of a request that is denied.
pub fn problem_of_denial(refused: AccessDenied) -> Problem {
    match refused {
        AccessDenied::Forbidden => {
            Problem::new(ProblemKind::Forbidden, "The client app has no role that allows this.")
        }
        AccessDenied::NotFound => Problem::new(ProblemKind::NotFound, "There is no such user store here."),
    }
}
