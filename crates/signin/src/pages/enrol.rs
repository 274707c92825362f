//! The page that enrols an authenticator.

use std::fmt::Write as _;

use chancery_credential::totp::base32;
use chancery_flow::{Choice, CodeKind, Event, Method, Proven, Step};
use chancery_resource::settings::FactorOption;
use chancery_resource::{Problem, Tx, event_name};
use qrcodegen::{QrCode, QrCodeEcc};
use serde_json::{Map, Value, json};

use super::{Attempt, Form, Posted, Prepared, SignInPage, not_counted, second_factor::LONGEST};
use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_action::{ActionContext, ActionResult},
        page_name::ENROL,
        pending_flow::PendingFlow,
        response::{AttemptResult, BrowserResponse},
    },
    person::audit_entry::audit_person,
    provider::{Provider, Visit},
    second_factor::{Enrolling, enrol, make_recovery_codes},
};

pub(super) static PAGE: SignInPage = SignInPage {
    name: ENROL,
    prepare: Some(prepare),
    view,
    attempt: |form, pending| match form.alternative() {
        Some(_) => None,
        None => Some(Attempt::of_person(ENROL, pending)),
    },
    post,
};

/// Creates the secret of the authenticator.
fn prepare<'a>(
    _: Provider<'a>,
    _: &'a Visit,
    pending: &'a mut PendingFlow,
    _: &'a FlowContext,
    evaluated: &'a Evaluated,
) -> Prepared<'a> {
    if let Step::EnrolFactor(choices) = evaluated.due.step()
        && let Choice::Code { instance, .. } = choices.chosen
        && pending.enrolling.as_ref().is_none_or(|enrolling| enrolling.instance != instance)
    {
        pending.enrolling = Some(Enrolling::new(instance));
        pending.is_changed = true;
    }
    Box::pin(async { Ok(Map::new()) })
}

fn view(flow_context: &FlowContext, pending: &PendingFlow, evaluated: &Evaluated) -> (&'static str, Value) {
    let Some(enrolling) = &pending.enrolling else { return ("Enrol", json!({})) };
    let Some(factor) = flow_context.factor(evaluated, enrolling.instance) else {
        return ("Enrol", json!({}));
    };
    let name = flow_context.serving_tenant(evaluated).map_or("", |tenant| tenant.name.as_str());
    let issuer =
        Some(factor.options.get(FactorOption::ISSUER)).filter(|issuer| !issuer.is_empty()).unwrap_or(name);
    let account = evaluated.admitted.as_ref().map_or("", |admitted| admitted.login_name.as_str());
    let secret = enrolling.secret();
    let address = factor.totp().address(secret.expose(), issuer, account);
    let (path, size) = picture(&address).unzip();
    let context = json!({
        "digits": factor.digits(),
        "secret": in_fours(&base32(secret.expose())),
        "address": address,
        "picture": path,
        "picture_size": size,
    });
    ("Enrol", context)
}

fn post<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow, form: Form<'a>) -> Posted<'a> {
    if let Some(choice) = form.alternative() {
        return not_counted(provider.choose_factor(visit, pending, choice));
    }
    Box::pin(provider.enrol(visit, pending, form.text("code")))
}

impl Provider<'_> {
    /// Handles a post of the page that enrols an authenticator. Returns the response and the result of the attempt.
    async fn enrol(
        self,
        visit: &Visit,
        pending: PendingFlow,
        code: String,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        if code.trim().is_empty() {
            return Ok((pending.with_error(ENROL, "missing_code", "code"), AttemptResult::NotCounted));
        }
        let enrolling = pending.enrolling.clone();
        let act = move |action: &ActionContext<'_>, tx: &mut Tx<'_>| {
            store_authenticator(action, tx, enrolling.as_ref(), &code)
        };
        self.run_page_action(visit, pending, ENROL, act).await
    }
}

/// Stores an authenticator whose first code is correct.
fn store_authenticator(
    action: &ActionContext<'_>,
    tx: &mut Tx<'_>,
    enrolling: Option<&Enrolling>,
    typed: &str,
) -> Result<ActionResult, Problem> {
    let (Step::EnrolFactor(choices), Some(identified), Some(enrolling)) =
        (action.evaluated.due.step(), action.evaluated.due.identified(), enrolling)
    else {
        return Ok(ActionResult::Nothing);
    };
    let instance = enrolling.instance;
    let is_chosen = choices.chosen == Choice::Code { instance, kind: CodeKind::Totp };
    let Some(factor) =
        action.transaction.flow_context.factor(action.evaluated, instance).filter(|_| is_chosen)
    else {
        return Ok(ActionResult::Nothing);
    };
    let (context, person) = (action.context, identified.person);
    let typed = if typed.len() <= LONGEST { typed } else { "" };
    let Some(id) = enrol(context, tx, factor, person, enrolling, typed)? else {
        return Ok(ActionResult::Wrong("code_wrong", "code"));
    };
    let codes = make_recovery_codes(context, tx, person, id)?;
    audit_person(context, tx, person, event_name!("enrolled"))?;
    let proven = Proven { person, instance, method: Method::Totp, credential: Some(id) };
    Ok(ActionResult::Enrolled(Event::FactorEnrolled(proven), codes))
}

/// A secret in groups of four, for typing.
fn in_fours(secret: &str) -> String {
    let mut text = String::new();
    for (index, letter) in secret.chars().enumerate() {
        if index > 0 && index % 4 == 0 {
            text.push(' ');
        }
        text.push(letter);
    }
    text
}

/// The light border of a picture, in modules (ISO/IEC 18004).
const BORDER: i32 = 4;

/// A QR code as the path of an SVG, and the picture's size.
fn picture(text: &str) -> Option<(String, i32)> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
    let mut path = String::new();
    for y in 0..code.size() {
        for x in (0..code.size()).filter(|x| code.get_module(*x, y)) {
            let _ = write!(path, "M{} {}h1v1h-1z", x + BORDER, y + BORDER);
        }
    }
    Some((path, code.size() + 2 * BORDER))
}

#[cfg(test)]
mod tests {
    use super::{in_fours, picture};

    #[test]
    fn a_secret_is_shown_in_groups_of_four_and_as_a_qr_code() {
        assert_eq!(in_fours("ABCDEFGHIJ"), "ABCD EFGH IJ");
        let (path, size) = picture("otpauth://totp/a").unwrap();
        assert!(path.starts_with("M4 4h1v1h-1z") && size == 29 + 2 * 4 - 4, "{size}");
    }
}
