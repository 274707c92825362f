//! The page of a second factor.

use chancery_flow::{Choice, Choices, CodeKind, Event, Method, Proven, Step};
use chancery_resource::settings::TenantOption;
use chancery_resource::{Problem, Tx};
use chancery_userstore::{attempt::begin_attempt, passkey::sign_in::start, user::user_of};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Attempt, Form, Posted, Prepared, SignInPage, not_counted, passkey};
use crate::{
    client_app::OfferedFactor,
    flow::{
        context::{Evaluated, FlowContext},
        page_action::{ActionContext, ActionResult},
        page_name::SECOND_FACTOR,
        pending_flow::PendingFlow,
        response::{AttemptResult, BrowserResponse},
    },
    provider::{Provider, Visit},
    second_factor::{CodeCheck, Purpose, rate_guard, use_code, verify_authenticator, verify_sent},
    session::sign_in_record::SignInOutcome,
};

/// The maximum length of a typed code, in bytes.
pub(super) const LONGEST: usize = 64;

pub(super) static PAGE: SignInPage = SignInPage {
    name: SECOND_FACTOR,
    prepare: Some(prepare),
    view,
    attempt: |form, pending| match (form.alternative(), form.credential()) {
        (Some(_), _) => None,
        (None, Some(_)) => Some(passkey::attempt(pending)),
        (None, None) => Some(Attempt::of_person(SECOND_FACTOR, pending)),
    },
    post,
};

/// The input of the page.
struct Confirmation {
    /// The typed code.
    code: String,
    /// Whether this browser skips the second factor next time.
    remembers_device: bool,
}

/// The value of a choice in forms.
fn value_of(choice: &Choice) -> String {
    match choice {
        Choice::Code { instance, kind } => format!("{}:{instance}", name_of(*kind)),
        Choice::Passkey => "passkey".to_owned(),
        Choice::RecoveryCode { instance } => format!("recovery:{instance}"),
    }
}

/// The choice of a form value.
fn choice_of(value: &str) -> Option<Choice> {
    if value == "passkey" {
        return Some(Choice::Passkey);
    }
    let (name, instance) = value.split_once(':')?;
    let instance = Uuid::try_parse(instance).ok()?;
    if name == "recovery" {
        return Some(Choice::RecoveryCode { instance });
    }
    let kinds = [CodeKind::Totp, CodeKind::Email, CodeKind::Sms];
    let kind = kinds.into_iter().find(|kind| name_of(*kind) == name)?;
    Some(Choice::Code { instance, kind })
}

const fn name_of(kind: CodeKind) -> &'static str {
    match kind {
        CodeKind::Totp => "totp",
        CodeKind::Email => "email",
        CodeKind::Sms => "sms",
    }
}

fn prepare<'a>(
    provider: Provider<'a>,
    visit: &'a Visit,
    pending: &'a mut PendingFlow,
    flow_context: &'a FlowContext,
    evaluated: &'a Evaluated,
) -> Prepared<'a> {
    Box::pin(async move {
        let mut added = Map::new();
        match choices_of(evaluated).map(|choices| choices.chosen) {
            Some(Choice::Passkey) => {
                let store = flow_context.store_of(evaluated);
                let started = store.map(|store| start(&store.options, &provider.context.public_url));
                passkey::add_challenge(pending, &mut added, started.transpose()?);
            }
            Some(Choice::Code { kind: CodeKind::Email | CodeKind::Sms, .. }) => {
                added = provider.code_page(visit, flow_context, evaluated).await?;
            }
            _ => {}
        }
        Ok(added)
    })
}

/// The destination of a sent code is added when the page is prepared.
fn view(flow_context: &FlowContext, _: &PendingFlow, evaluated: &Evaluated) -> (&'static str, Value) {
    let Some(choices) = choices_of(evaluated) else { return ("SecondFactor", json!({})) };
    let view = if choices.chosen == Choice::Passkey { "Passkey" } else { "SecondFactor" };
    let factor = match choices.chosen {
        Choice::Code { instance, .. } => flow_context.factor(evaluated, instance),
        Choice::Passkey | Choice::RecoveryCode { .. } => None,
    };
    let others: Vec<_> = choices
        .all
        .iter()
        .filter(|choice| **choice != choices.chosen)
        .map(|choice| {
            let value = value_of(choice);
            let method = value.split(':').next().unwrap_or_default().to_owned();
            json!({ "value": value, "method": method })
        })
        .collect();
    let method = value_of(&choices.chosen);
    let lifetime = flow_context
        .serving_tenant(evaluated)
        .map(|tenant| tenant.options.get(TenantOption::REMEMBER_DEVICE_LIFETIME));
    // a passkey needs no remembering, and a demanded class is required each time
    let may_remember =
        factor.is_some() && lifetime > Some(0) && evaluated.due.flow().request().demanded.is_empty();
    let context = json!({
        "kind": "confirm",
        "method": method.split(':').next(),
        "digits": factor.map(OfferedFactor::digits),
        "others": others,
        "can_remember": may_remember,
    });
    (view, context)
}

/// The due choice of a second factor.
const fn choices_of(evaluated: &Evaluated) -> Option<&Choices> {
    match evaluated.due.step() {
        Step::SecondFactor(choices) | Step::StepUp { choices, .. } => Some(choices),
        _ => None,
    }
}

fn post<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow, form: Form<'a>) -> Posted<'a> {
    if let Some(choice) = form.alternative() {
        return not_counted(provider.choose_factor(visit, pending, choice));
    }
    if let Some(answer) = form.credential() {
        return Box::pin(provider.verify_passkey(visit, pending, SECOND_FACTOR, answer));
    }
    let typed = Confirmation { code: form.text("code"), remembers_device: form.field("remember").is_some() };
    Box::pin(provider.verify_second_factor(visit, pending, typed))
}

impl Provider<'_> {
    /// Handles a choice on a page of second factors: another factor, another code, or back to the app.
    pub(super) async fn choose_factor(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        choice: &str,
    ) -> Result<BrowserResponse, Problem> {
        pending.form_errors = None;
        match (choice, choice_of(choice)) {
            (_, Some(choice)) => self.apply_event(visit, pending, move |_| Event::OtherFactor(choice)).await,
            ("cancel", None) => self.apply_event(visit, pending, |_| Event::Cancelled).await,
            (_, None) => self.send_again(visit, pending, SECOND_FACTOR).await,
        }
    }

    /// Handles a post of the page of a second factor. Returns the response and the result of the attempt.
    async fn verify_second_factor(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        typed: Confirmation,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        if typed.code.trim().is_empty() {
            return Ok((
                pending.with_error(SECOND_FACTOR, "missing_code", "code"),
                AttemptResult::NotCounted,
            ));
        }
        pending.remembers_device = typed.remembers_device;
        let code = typed.code;
        self.run_page_action(visit, pending, SECOND_FACTOR, move |action, tx| check_code(action, tx, &code))
            .await
    }
}

/// Verifies a code, which counts as an attempt to sign in.
fn check_code(action: &ActionContext<'_>, tx: &mut Tx<'_>, typed: &str) -> Result<ActionResult, Problem> {
    let Some(choices) = choices_of(action.evaluated) else {
        return Ok(ActionResult::Nothing);
    };
    let (Some(identified), Some(admitted)) = (action.evaluated.due.identified(), &action.evaluated.admitted)
    else {
        return Ok(ActionResult::Nothing);
    };
    let (context, person) = (action.context, identified.person);
    let store = action.transaction.flow_context.store_of(action.evaluated);
    if rate_guard::is_locked(tx, person, context.now)? {
        return Ok(ActionResult::Wrong("locked", "code"));
    }
    // for external users there is only the guard
    let attempt = match &admitted.user {
        None => None,
        Some(user) => {
            let Some(user) = user_of(context, tx, user.user)? else { return Ok(ActionResult::Nothing) };
            let Some(attempt) = begin_attempt(context, tx, Some(user))? else {
                return Ok(ActionResult::Wrong("too_many", "code"));
            };
            Some(attempt)
        }
    };
    let typed = if typed.len() <= LONGEST { typed } else { "" };
    let proven = |instance, method, credential| Proven { person, instance, method, credential };
    let verified = match choices.chosen {
        Choice::Passkey => return Ok(ActionResult::Nothing),
        Choice::RecoveryCode { instance } => {
            let id = use_code(context, tx, person, instance, typed)?;
            id.map(|id| proven(instance, Method::RecoveryCode, Some(id)))
        }
        Choice::Code { instance, kind } => {
            let Some(factor) = action.transaction.flow_context.factor(action.evaluated, instance) else {
                return Ok(ActionResult::Nothing);
            };
            if kind == CodeKind::Totp {
                let id = verify_authenticator(context, tx, factor, person, typed)?;
                id.map(|id| proven(instance, Method::Totp, Some(id)))
            } else {
                match verify_sent(context, tx, &Purpose::Factor(factor.clone()), person, typed)? {
                    CodeCheck::Correct => Some(proven(instance, kind.method(), None)),
                    CodeCheck::Wrong => None,
                    // no code was valid, so this is no wrong proof
                    CodeCheck::NoValidCode => return Ok(ActionResult::Wrong("code_expired", "code")),
                }
            }
        }
    };
    let Some(proven) = verified else {
        if let Some(attempt) = attempt {
            attempt.fail(context, tx)?;
        }
        rate_guard::note_wrong(context, tx, store, person)?;
        action
            .transaction
            .record(SignInOutcome::WrongFactor, identified.instance, person, identified.tenant)
            .write(context, tx)?;
        return Ok(ActionResult::Wrong("code_wrong", "code"));
    };
    rate_guard::clear(tx, person)?;
    Ok(ActionResult::Event(Event::FactorProven(proven)))
}

#[cfg(test)]
mod tests {
    use chancery_flow::{Choice, CodeKind};
    use uuid::Uuid;

    use super::{choice_of, value_of};

    #[test]
    fn choices_are_parsed_from_their_form_values() {
        let instance = Uuid::from_u128(7);
        let codes =
            [CodeKind::Totp, CodeKind::Email, CodeKind::Sms].map(|kind| Choice::Code { instance, kind });
        for choice in codes.into_iter().chain([Choice::Passkey, Choice::RecoveryCode { instance }]) {
            assert_eq!(choice_of(&value_of(&choice)), Some(choice));
        }
        for invalid in ["", "totp", "totp:x", "fax:00000000-0000-0000-0000-000000000007"] {
            assert_eq!(choice_of(invalid), None, "{invalid}");
        }
    }
}
