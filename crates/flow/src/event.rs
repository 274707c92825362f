//! The events of a flow.

use uuid::Uuid;

use crate::{Action, Choice, Granted, Proven};

/// An event by a person. The caller has verified what is proven, and performed what is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The person returns to the app, from any page.
    Cancelled,
    /// A tenant was chosen.
    TenantChosen(Uuid),
    /// A session was chosen.
    SessionChosen(Uuid),
    /// Another account was requested.
    OtherAccount,
    /// A first factor was proven: by password, passkey, access pass or at an external provider.
    FirstFactorProven(Proven),
    /// A person who is not admitted returns to the app.
    Back,
    /// A second factor was proven, or a passkey instead.
    FactorProven(Proven),
    /// A second factor was enrolled, and thereby proven.
    FactorEnrolled(Proven),
    /// Another method to confirm the identity was chosen.
    OtherFactor(Choice),
    /// A due action is done. It counts once the facts confirm it.
    ActionDone(Action),
    /// The due password is set, and thereby proven: earlier proofs may count no longer.
    PasswordSet(Proven),
    /// An offered action is deferred.
    Deferred(Action),
    /// Consent was given.
    ConsentGiven(Granted),
    /// Consent was denied.
    ConsentDenied,
    /// The person continues to the native app.
    Continued,
}

/// Why an event is refused. The flow stays unchanged: the answer is the page of the current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventRefusal {
    /// The event belongs to another step than the current one.
    NotDue,
    /// The page did not offer this.
    NotOffered,
    /// The proof is of another person than the one who is signing in.
    OtherPerson,
}
