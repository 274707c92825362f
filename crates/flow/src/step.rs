//! The steps of a sign-in.

use chancery_record::Timestamp;
use uuid::Uuid;

use crate::{Acr, Choices, DueAction, Failure, Granted, InstanceFacts, NotAdmitted, Proof};

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is no sign-in.
    Fail(Failure),
    /// The person chooses among these tenants.
    Tenant(Vec<Uuid>),
    /// The person chooses a session, or another account.
    Account {
        /// The tenant.
        tenant: Uuid,
        /// The sessions.
        sessions: Vec<Uuid>,
    },
    /// The person proves a first factor.
    FirstFactor(FirstFactor),
    /// The person is not admitted: another account, or back to the app.
    Refuse(NotAdmitted),
    /// The person proves a second factor.
    SecondFactor(Choices),
    /// The person enrols a second factor.
    EnrolFactor(Choices),
    /// The person proves additional factors, until this class is reached.
    StepUp {
        /// The demanded class.
        to: Acr,
        /// The methods that reach it.
        choices: Choices,
    },
    /// The person performs a due action.
    Action(DueAction),
    /// The person is asked for consent.
    Consent,
    /// The person continues to the native app by a click.
    Touch,
    /// The person is signed in.
    Done(Box<SignedIn>),
}

impl Step {
    /// Whether the step needs a page.
    pub const fn is_page(&self) -> bool {
        !matches!(self, Self::Fail(_) | Self::Done(_))
    }

    /// The step where no page is shown (`prompt=none`): its error.
    pub(crate) fn silent(self) -> Self {
        Self::Fail(match self {
            Self::Fail(_) | Self::Done(_) => return self,
            Self::Account { .. } => Failure::AccountSelectionRequired,
            Self::FirstFactor(_) => Failure::LoginRequired,
            Self::Refuse(reason) => Failure::NotAdmitted(reason),
            Self::Consent => Failure::ConsentRequired,
            Self::Tenant(_)
            | Self::SecondFactor(_)
            | Self::EnrolFactor(_)
            | Self::StepUp { .. }
            | Self::Action(_)
            | Self::Touch => Failure::InteractionRequired,
        })
    }
}

/// The options to prove a first factor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FirstFactor {
    /// The tenant.
    pub tenant: Uuid,
    /// The instances that are offered, in order. Without any, no sign-in is possible.
    pub offered: Vec<InstanceFacts>,
    /// The external instance to redirect to immediately.
    pub at_once: Option<Uuid>,
    /// The expected person: of the chosen session, or of the `id_token_hint`.
    pub person: Option<Uuid>,
}

/// A completed sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignedIn {
    /// The platform user.
    pub person: Uuid,
    /// The tenant.
    pub tenant: Uuid,
    /// The IdpInstance of the last first factor.
    pub instance: Uuid,
    /// The session to continue; `None` for a new one.
    pub session: Option<Uuid>,
    /// `acr`
    pub acr: Acr,
    /// `amr`
    pub amr: Vec<&'static str>,
    /// `auth_time`: when the last first factor was proven.
    pub auth_time: Timestamp,
    /// When it was proven to this server.
    pub proven_at: Timestamp,
    /// The proofs that count: the session's, then this flow's.
    pub proofs: Vec<Proof>,
    /// What the person granted in this flow; else everything that was requested is granted.
    pub granted: Option<Granted>,
}
