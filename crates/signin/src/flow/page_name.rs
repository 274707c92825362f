//! The pages of a sign-in, as named in addresses, and which of them is due.

use chancery_flow::{Action, Step};
use chancery_resource::settings::UserStoreOption;

use super::{
    context::{Evaluated, FlowContext},
    pending_flow::PendingFlow,
};

/// The password page.
pub const PASSWORD: &str = "password";
/// The page of an access pass.
pub const ACCESS_PASS: &str = "accesspass";
/// The page that selects a tenant or an account.
pub const CHOOSE: &str = "choose";
/// The page of a person who is not admitted.
pub const REFUSED: &str = "refused";
/// The page that continues to the client app.
pub const CONTINUE: &str = "continue";
/// The consent page.
pub const CONSENT: &str = "consent";
/// The page that changes or creates a password.
pub const NEW_PASSWORD: &str = "newpassword";
/// The page of a second factor.
pub const SECOND_FACTOR: &str = "secondfactor";
/// The page that enrols an authenticator.
pub const ENROL: &str = "enrol";
/// The page that shows recovery codes.
pub const RECOVERY: &str = "recoverycodes";
/// The page that confirms an e-mail address.
pub const CONFIRM: &str = "confirm";
/// The questionnaire page.
pub const QUESTIONNAIRE: &str = "questionnaire";
/// The page of the terms.
pub const TERMS: &str = "terms";
/// The page that registers a passkey.
pub const PASSKEY: &str = "passkey";
/// The page that redirects to an external identity provider.
pub const EXTERNAL: &str = "external";
/// The page that authorizes a device.
pub const DEVICE: &str = "device";
/// The page that confirms a sign-out.
pub const SIGN_OUT: &str = "signout";
/// The page after a sign-out.
pub const SIGNED_OUT: &str = "signedout";

/// The step's page; `None` for a step that has no page.
pub const fn page_of_step(step: &Step) -> Option<&'static str> {
    Some(match step {
        Step::FirstFactor(due) if due.at_once.is_some() => EXTERNAL,
        Step::FirstFactor(_) => PASSWORD,
        Step::Tenant(_) | Step::Account { .. } => CHOOSE,
        Step::Refuse(_) => REFUSED,
        Step::SecondFactor(_) | Step::StepUp { .. } => SECOND_FACTOR,
        Step::EnrolFactor(_) => ENROL,
        Step::Action(due) => match due.action {
            Action::Password => NEW_PASSWORD,
            Action::Email => CONFIRM,
            Action::Questionnaire => QUESTIONNAIRE,
            Action::Terms => TERMS,
            Action::Passkey => PASSKEY,
        },
        Step::Consent => CONSENT,
        Step::Touch => CONTINUE,
        Step::Fail(_) | Step::Done(_) => return None,
    })
}

/// Whether a page is the one to show now.
pub fn may_show(
    page: &str,
    pending: &PendingFlow,
    flow_context: &FlowContext,
    evaluated: &Evaluated,
) -> bool {
    if !pending.recovery_codes.is_empty() {
        return page == RECOVERY;
    }
    match (page, evaluated.due.step()) {
        // a person who returns from the only provider is not redirected there again
        (PASSWORD, Step::FirstFactor(_)) => true,
        (ACCESS_PASS, Step::FirstFactor(_)) => takes_access_passes(flow_context, evaluated),
        (CONTINUE, Step::Done(_)) => evaluated.lacks_session && !pending.has_signed_in,
        (page, step) => page_of_step(step) == Some(page),
    }
}

/// Whether one of the offered stores accepts access passes.
pub fn takes_access_passes(flow_context: &FlowContext, evaluated: &Evaluated) -> bool {
    flow_context
        .offered(evaluated)
        .iter()
        .any(|store| store.options.get(UserStoreOption::TEMPORARY_ACCESS_PASS_ENABLED))
}
