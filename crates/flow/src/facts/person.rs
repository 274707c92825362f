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
    /// The strongest passkey of the person that is usable here.
    pub passkey: Option<PasskeyFacts>,
    /// The due actions, in any order. Some are due only after a password or an access pass: the caller
    /// determines this from the proofs.
    pub due: Vec<DueAction>,
    /// The consent that the app requires.
    pub consent: Consent,
}

/// Why a person is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NotAdmitted {
    /// No platform user, a hidden one, or none with an Active identity at the instance.
    NoIdentity,
    /// The store's user is locked, inactive or outside of the validity period.
    Account,
    /// The password expired, and may not be changed for that reason.
    PasswordExpired,
    /// The person is of another subscription than the app.
    OtherSubscription,
    /// The app `isRestricted`, and the person is not authorized.
    Restricted,
    /// A second factor is required, and none can be proven or enrolled.
    SecondFactorUnavailable,
}

/// An action before a sign-in completes, in the order in which actions are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Action {
    /// Change or set the password.
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

/// Whether an action may be deferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// A sign-in requires it.
    Required,
    /// The person may defer it. It is offered only where something was proven in this flow.
    Offered,
}

/// An action that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DueAction {
    /// The action.
    pub action: Action,
    /// Whether it may be deferred.
    pub urgency: Urgency,
}

/// `accessGrantConsent`, and whether a stored consent covers this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consent {
    /// No consent is requested.
    Implicit,
    /// Requested where no stored consent covers the request, or with `prompt=consent`.
    Explicit {
        /// Whether the person's consent covers the request.
        is_covered: bool,
    },
    /// Requested in every sign-in.
    Systematic,
    /// An administrator's consent must cover the request; the person is not asked.
    External {
        /// Whether an administrator's consent covers the request.
        is_covered: bool,
    },
}
