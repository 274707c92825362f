//! An administrator confirms the settings of an external identity provider after reviewing them.

use chancery_record::{OPEN, Timestamp, record};
use chancery_resource::{
    Action as A, Answer, Body, BodyForm, Call, Custom, Method as M, Op, Permit::SubscriptionAdmin, Problem,
    Reply, Tx, advance, event_name, key_of, load, read_form,
};

use super::{IDP_INSTANCE, IdpInstance};

/// How far the clock of a client may be ahead, in ms.
const MAX_AHEAD: i64 = 60_000;

record! {
    /// The review of the settings of an external instance.
    struct IdpInstanceSettingsReview {
        /// When the reviewed settings were read. Later changes are not confirmed.
        #[de("Geprüft am", "Wann die geprüften Einstellungen gelesen wurden. Spätere Änderungen sind nicht bestätigt.")]
        reviewed_on: Timestamp = OPEN,
    }
}

static REVIEW: BodyForm = BodyForm::of::<IdpInstanceSettingsReview>("IdpInstanceSettingsReview");

/// The operation that confirms the settings of an instance.
pub static OPERATIONS: &[Op] = &[Op::new(
    "ConfirmIdpInstanceSettings",
    M::Post,
    "/IdpInstance/{id}/settings/confirm",
    SubscriptionAdmin,
    &IDP_INSTANCE,
    A::Custom(Custom::writing(confirm).taking(Body::Form(&REVIEW)).replying(Reply::Empty)),
    "Declares that you have reviewed the settings, certificates and directory token of an external instance. In the state that you reviewed, they count as set by you. Required before people of the instance get a role that an actor who configured it lacks.",
)
.answering(204, Reply::Empty)
.sensitive()
.added()];

fn confirm(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let IdpInstanceSettingsReview { reviewed_on } = read_form(call)?;
    let now = call.context.now;
    if reviewed_on > now.plus(MAX_AHEAD) {
        return Err(Problem::wrong_field(
            IdpInstanceSettingsReview::REVIEWED_ON,
            "must not be in the future",
        ));
    }
    let key = key_of(call, &IDP_INSTANCE)?;
    let instance = load(&call.context, tx, &IDP_INSTANCE, None, key)?;
    if instance.text(IdpInstance::STORE_NAME_KEY).is_some() {
        return Err(Problem::conflict(
            "The instance is a user store: only the settings of an external instance are confirmed.",
        ));
    }
    if instance.get(IdpInstance::SETTINGS_CONFIRMED_ON)?.is_some_and(|before| reviewed_on < before) {
        return Err(Problem::conflict("A later review was confirmed already. Review the settings again."));
    }
    let mut values = instance.values.clone();
    IdpInstance::SETTINGS_CONFIRMED_BY.set(&mut values, call.context.actor)?;
    IdpInstance::SETTINGS_CONFIRMED_ON.set(&mut values, Some(reviewed_on.min(now)))?;
    advance(&call.context, tx, &IDP_INSTANCE, &instance, values, event_name!("settings-confirmed"))?;
    Ok(Answer::new(call.request.op.status))
}
