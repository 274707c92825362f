//! The state of a sign-in in progress.

use std::collections::BTreeSet;

use chancery_record::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Action, Choice, Failure, NotAdmitted, Proof, Request};

/// The lifetime of a flow, in ms.
pub const LIFETIME_MS: i64 = 30 * 60_000;

/// A sign-in in progress: its request, and what the person chose and proved. Only [`Due::apply`] changes it.
///
/// What was decided for a person applies to that person only: another one may follow in the same flow.
///
/// [`Due::apply`]: crate::Due::apply
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    pub(crate) request: Request,
    pub(crate) tenant: Option<Uuid>,
    pub(crate) session: Option<Uuid>,
    pub(crate) is_other_account: bool,
    pub(crate) proofs: Vec<Proof>,
    /// How many of the proofs no longer count, because another account was requested after them.
    pub(crate) set_aside: usize,
    pub(crate) choice: Option<Choice>,
    #[serde(rename = "put_off")]
    pub(crate) deferred: BTreeSet<(Uuid, Action)>,
    pub(crate) consent: Option<(Uuid, Granted)>,
    pub(crate) is_touched: bool,
    pub(crate) ending: Option<Ending>,
}

/// What a person granted an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The granted scopes and resources, among the requested ones.
    pub words: BTreeSet<String>,
    /// Whether the consent is to be stored.
    #[serde(rename = "is_kept")]
    pub is_remembered: bool,
}

/// How a person ended a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// By returning to the app.
    Cancelled,
    /// By returning when not admitted.
    NotAdmitted(NotAdmitted),
    /// By denying consent.
    Denied,
}

impl Flow {
    /// A new flow.
    pub const fn new(request: Request) -> Self {
        Self {
            request,
            tenant: None,
            session: None,
            is_other_account: false,
            proofs: Vec::new(),
            set_aside: 0,
            choice: None,
            deferred: BTreeSet::new(),
            consent: None,
            is_touched: false,
            ending: None,
        }
    }

    /// The parameters of the request.
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// What was proven in this flow, in chronological order. A flow without proofs needs no row.
    pub fn proofs(&self) -> &[Proof] {
        &self.proofs
    }

    /// Whether another account was requested.
    pub const fn is_other_account(&self) -> bool {
        self.is_other_account
    }

    /// The proofs since another account was requested.
    pub(crate) fn current_proofs(&self) -> &[Proof] {
        self.proofs.get(self.set_aside..).unwrap_or_default()
    }

    /// What this person granted in this flow.
    pub(crate) fn granted_by(&self, person: Uuid) -> Option<&Granted> {
        self.consent.as_ref().filter(|(grantor, _)| *grantor == person).map(|(_, granted)| granted)
    }

    /// Why the flow has ended.
    pub(crate) fn failure(&self, now: Timestamp) -> Option<Failure> {
        match self.ending {
            Some(Ending::Cancelled) => Some(Failure::Cancelled),
            Some(Ending::NotAdmitted(reason)) => Some(Failure::NotAdmitted(reason)),
            Some(Ending::Denied) => Some(Failure::Denied),
            None => (now >= self.request.started.plus(LIFETIME_MS)).then_some(Failure::Over),
        }
    }
}
