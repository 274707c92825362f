//! The contexts of the pages of second factors.

use chancery_resource::settings::{FactorOption, TenantOption};
use std::fmt::Write as _;

use chancery_credential::totp::base32;
use chancery_flow::{Choice, Choices, CodeKind};
use qrcodegen::{QrCode, QrCodeEcc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    client_app::{OfferedFactor, ServingTenant},
    flow::{
        context::{Evaluated, FlowContext},
        pending_flow::PendingFlow,
    },
};

/// The value of a choice in forms.
pub fn value_of(choice: &Choice) -> String {
    match choice {
        Choice::Code { instance, kind } => format!("{}:{instance}", name_of(*kind)),
        Choice::Passkey => "passkey".to_owned(),
        Choice::RecoveryCode { instance } => format!("recovery:{instance}"),
    }
}

/// The choice of a form value.
pub fn choice_of(value: &str) -> Option<Choice> {
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

fn tenant<'a>(flow_context: &'a FlowContext, evaluated: &Evaluated) -> Option<&'a ServingTenant> {
    flow_context.application.tenant(evaluated.due.identified()?.tenant)
}

impl FlowContext {
    /// A second factor of the tenant in which a person signs in.
    pub fn factor(&self, evaluated: &Evaluated, id: Uuid) -> Option<&OfferedFactor> {
        tenant(self, evaluated)?.factors.iter().find(|factor| factor.id == id)
    }
}

/// The context of the page of a second factor. The destination of a sent code is added when the page is prepared.
pub fn factor_context(flow_context: &FlowContext, evaluated: &Evaluated, choices: &Choices) -> Value {
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
    let lifetime = tenant(flow_context, evaluated)
        .map(|tenant| tenant.options.get(TenantOption::REMEMBER_DEVICE_LIFETIME));
    // a passkey needs no remembering, and a demanded class is required each time
    let may_remember =
        factor.is_some() && lifetime > Some(0) && evaluated.due.flow().request().demanded.is_empty();
    json!({
        "kind": "confirm",
        "method": method.split(':').next(),
        "digits": factor.map(OfferedFactor::digits),
        "others": others,
        "can_remember": may_remember,
    })
}

/// The context of the page that enrols an authenticator.
pub fn enrol_context(flow_context: &FlowContext, pending: &PendingFlow, evaluated: &Evaluated) -> Value {
    let Some(enrolling) = &pending.enrolling else { return json!({}) };
    let Some(factor) = flow_context.factor(evaluated, enrolling.instance) else { return json!({}) };
    let name = tenant(flow_context, evaluated).map_or("", |tenant| tenant.name.as_str());
    let issuer =
        Some(factor.options.get(FactorOption::ISSUER)).filter(|issuer| !issuer.is_empty()).unwrap_or(name);
    let account = evaluated.admitted.as_ref().map_or("", |admitted| admitted.login_name.as_str());
    let secret = enrolling.secret();
    let address = factor.totp().address(secret.expose(), issuer, account);
    let (path, size) = picture(&address).unzip();
    json!({
        "digits": factor.digits(),
        "secret": in_fours(&base32(secret.expose())),
        "address": address,
        "picture": path,
        "picture_size": size,
    })
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
    use chancery_flow::{Choice, CodeKind};
    use uuid::Uuid;

    use super::{choice_of, in_fours, picture, value_of};

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

    #[test]
    fn a_secret_is_shown_in_groups_of_four_and_as_a_qr_code() {
        assert_eq!(in_fours("ABCDEFGHIJ"), "ABCD EFGH IJ");
        let (path, size) = picture("otpauth://totp/a").unwrap();
        assert!(path.starts_with("M4 4h1v1h-1z") && size == 29 + 2 * 4 - 4, "{size}");
    }
}
