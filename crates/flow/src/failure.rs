//! The outcome of a flow without a sign-in.

use crate::NotAdmitted;

/// Why there is no sign-in. Values other than those of expiry, cancellation, refusal and denial answer
/// `prompt=none`, or are unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The flow has expired: a page that links back to the app.
    Over,
    /// The person cancelled the flow.
    Cancelled,
    /// The person is not admitted.
    NotAdmitted(NotAdmitted),
    /// The person denied the app access.
    Denied,
    /// The app serves no tenant, or no longer the one of this flow.
    NotServed,
    /// A first factor is required, or another person signed in than the `id_token_hint` names.
    LoginRequired,
    /// The person would have to choose among sessions.
    AccountSelectionRequired,
    /// Another page is required.
    InteractionRequired,
    /// Consent is required.
    ConsentRequired,
    /// The person cannot reach the demanded class.
    UnmetAuthenticationRequirements,
}

impl Failure {
    /// The error's name in the answer to the app.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Over | Self::Cancelled | Self::NotAdmitted(_) | Self::Denied | Self::NotServed => {
                "access_denied"
            }
            Self::LoginRequired => "login_required",
            Self::AccountSelectionRequired => "account_selection_required",
            Self::InteractionRequired => "interaction_required",
            Self::ConsentRequired => "consent_required",
            Self::UnmetAuthenticationRequirements => "unmet_authentication_requirements",
        }
    }
}
