//! What happens in a flow.

use uuid::Uuid;

use crate::{Action, Choice, Granted, Proven};

/// What a person did. Whoever calls has verified what is proven, and done what is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The person goes back to the app, from whatever page.
    Cancelled,
    /// A tenant was chosen.
    TenantChosen(Uuid),
    /// A session was chosen.
    SessionChosen(Uuid),
    /// Another account was asked for.
    OtherAccount,
    /// A first factor was proven: by password, passkey, access pass or at an external provider.
    FirstFactorProven(Proven),
    /// A person who is not admitted goes back to the app.
    Back,
    /// A second factor was proven, or a passkey in its place.
    FactorProven(Proven),
    /// A second factor was enrolled, and proven by that.
    FactorEnrolled(Proven),
    /// Another way to confirm who one is was chosen.
    OtherFactor(Choice),
    /// What was due is done. It counts once the facts say so.
    ActionDone(Action),
    /// The password that was due is made, and proven by that: what was proven before it may count no longer.
    PasswordMade(Proven),
    /// What was offered is put off.
    PutOff(Action),
    /// Consent was given.
    ConsentGiven(Granted),
    /// Consent was denied.
    ConsentDenied,
    /// The person goes on to the native app.
    Continued,
}

/// Why an event is refused. The flow stays as it was: the answer is the page that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The event belongs to another step than the one that is due.
    NotDue,
    /// The page did not offer this.
    NotOffered,
    /// Somebody else proved something than the person who is signing in.
    OtherPerson,
}
