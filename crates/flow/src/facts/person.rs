//! Facts about the person.

use serde::{Deserialize, Serialize};

use crate::{PasskeyFacts, SecondFactors};

/// What is read once the person is known.
#[derive(Clone, Debug)]
pub struct PersonFacts {
    /// Why the person is not admitted.
    pub refused: Option<NotAdmitted>,
    /// The second factors.
    pub second_factors: SecondFactors,
    /// The strongest passkey of the person that can be used here.
    pub passkey: Option<PasskeyFacts>,
    /// The actions that are due, in any order. That some are due only after a password or an access pass,
    /// whoever reads the facts sees from the proofs.
    pub due: Vec<DueAction>,
    /// What the app needs for access.
    pub consent: Consent,
}

/// Why a person is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NotAdmitted {
    /// No platform user, a hidden one, or none with an Active identity at the instance.
    NoIdentity,
    /// The store's user is locked, inactive or out of the window of time.
    Account,
    /// The password expired, and may not be changed for that.
    PasswordExpired,
    /// The person is of another subscription than the app.
    OtherSubscription,
    /// The app `isRestricted`, and the person is not among those authorized.
    Restricted,
    /// A second factor is asked for, and none can be proven or enrolled.
    SecondFactorUnavailable,
}

/// Something to do before a sign-in ends, in the order in which it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Action {
    /// Change the password, or make one.
    Password,
    /// Confirm the e-mail address.
    Email,
    /// Answer the questionnaire.
    Questionnaire,
    /// Accept the terms.
    Terms,
    /// Register a passkey.
    Passkey,
}

/// Whether an action may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Nobody signs in without it.
    Required,
    /// The person may put it off. It is offered only where something was proven in this flow.
    Offered,
}

/// An action that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DueAction {
    /// What is to be done.
    pub action: Action,
    /// Whether it may wait.
    pub urgency: Urgency,
}

/// `accessGrantConsent`, and whether a kept consent covers what this request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consent {
    /// Nobody is asked.
    Implicit,
    /// Asked where no kept consent covers the request, or it says `prompt=consent`.
    Explicit {
        /// Whether the person's consent covers the request.
        is_covered: bool,
    },
    /// Asked in every sign-in.
    Systematic,
    /// An administrator's consent must cover the request; nobody is asked.
    External {
        /// Whether an administrator's consent covers the request.
        is_covered: bool,
    },
}
