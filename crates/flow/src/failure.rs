//! How a flow ends without a sign-in.

use crate::NotAdmitted;

/// Why there is no sign-in. What was not over, cancelled, refused or denied is an answer to `prompt=none`,
/// or cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The flow's time is over: a page that leads back to the app.
    Over,
    /// The person cancelled the flow.
    Cancelled,
    /// The person is not admitted.
    NotAdmitted(NotAdmitted),
    /// The person denied the app access.
    Denied,
    /// The app serves in no tenant, or no longer in that of this flow.
    NotServed,
    /// A first factor is needed, or another person signed in than the `id_token_hint` names.
    LoginRequired,
    /// The person would have to choose among sessions.
    AccountSelectionRequired,
    /// Another page is needed.
    InteractionRequired,
    /// Consent is needed.
    ConsentRequired,
    /// The person cannot reach the class that is demanded.
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
