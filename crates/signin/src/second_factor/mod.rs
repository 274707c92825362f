//! Second factors: requirements, enrolment, verification, and remembered browsers.

mod authenticator;
pub mod rate_guard;
mod recovery;
mod remembered;
mod sent_code;

use chancery_flow::{CodeKind, Enrolment, SecondFactors, UsableFactor};
use chancery_record::Timestamp;
use chancery_resource::settings::TenantOption;
use chancery_resource::{StoreError, Tx};
use uuid::Uuid;

pub use authenticator::{Enrolling, enrol, verify as verify_authenticator};
pub use recovery::{make as make_recovery_codes, use_code};
pub use remembered::{Device, remember};
pub use sent_code::{
    CodeCheck, CodeRecipient, Destination, Purpose, SendResult, destination, send, take_back,
    verify as verify_sent,
};

use crate::{
    client_app::{Application, Offered, OfferedFactor, ServingTenant},
    person::Admitted,
};

/// The second factors that the app or the instance of the first factor requires.
pub struct RequestedFactors<'a> {
    /// Whether any is required, usable or not.
    pub is_any: bool,
    /// The usable ones. If none is required, those of the tenant, for a demanded class.
    pub usable: Vec<&'a OfferedFactor>,
}

impl RequestedFactors<'_> {
    /// Whether one of them sends codes.
    pub fn sends_codes(&self) -> bool {
        self.usable.iter().any(|factor| factor.kind != CodeKind::Totp)
    }
}

/// The required second factors of a sign-in at an instance.
pub fn requested_factors<'a>(
    application: &Application,
    tenant: &'a ServingTenant,
    offered: Offered<'_>,
) -> RequestedFactors<'a> {
    let is_any = application.requires_second_factor || !offered.factors().is_empty();
    let is_requested = |factor: &&OfferedFactor| {
        !is_any || factor.is_of_application || offered.factors().contains(&factor.id)
    };
    let can_send = |factor: &&OfferedFactor| factor.can_send(offered);
    let usable = tenant.factors.iter().filter(is_requested).filter(can_send).collect();
    RequestedFactors { is_any, usable }
}

/// The enrolled factors of a person.
#[derive(Default)]
pub struct EnrolledFactors {
    authenticators: Vec<Uuid>,
    has_recovery_code: bool,
    is_remembered: bool,
}

/// The facts about a person's second factors. `enrolled`: `None` if they are not needed.
pub fn facts_of(
    tx: &mut Tx<'_>,
    requested: &RequestedFactors<'_>,
    tenant: &ServingTenant,
    admitted: &Admitted,
    enrolled: Option<EnrolledFactors>,
) -> Result<SecondFactors, StoreError> {
    let is_needed = enrolled.is_some();
    let enrolled = enrolled.unwrap_or_default();
    let mut usable = Vec::new();
    for factor in &requested.usable {
        let is_enrolled = match factor.kind {
            CodeKind::Totp => enrolled.authenticators.contains(&factor.id),
            CodeKind::Email | CodeKind::Sms => is_needed && destination(tx, factor.kind, admitted)?.is_some(),
        };
        usable.push(UsableFactor { instance: factor.id, kind: factor.kind, is_enrolled });
    }
    Ok(SecondFactors {
        are_required: requested.is_any,
        usable,
        has_recovery_code: enrolled.has_recovery_code,
        enrolment: match tenant.options.get(TenantOption::SECOND_FACTOR_ENROLMENT) {
            // otherwise anyone with the password could enrol a further authenticator
            _ if tenant.factors.iter().any(|factor| enrolled.authenticators.contains(&factor.id)) => {
                Enrolment::Closed
            }
            "Administrator" => Enrolment::AfterAccessPass,
            _ => Enrolment::AtSignIn,
        },
        is_remembered: enrolled.is_remembered
            && tenant.options.get(TenantOption::REMEMBER_DEVICE_LIFETIME) > 0,
        does_passkey_satisfy: tenant.options.get(TenantOption::PASSKEY_SATISFIES_SECOND_FACTOR),
    })
}

/// The enrolled factors of a person, who signs in at a tenant with this browser.
pub fn enrolled_factors(
    tx: &mut Tx<'_>,
    person: Uuid,
    tenant: Uuid,
    device: Option<&Device>,
    now: Timestamp,
) -> Result<EnrolledFactors, StoreError> {
    let of_person = [person.into()];
    let digest = device.map(|device| device.digest.clone()).unwrap_or_default();
    let of_device = [person.into(), tenant.into(), digest.into(), now.0.into()];
    let statements: [(&str, &[chancery_record::Value]); 3] = [
        ("SELECT mfa_instance_id FROM second_factor WHERE person_id = ?1", &of_person),
        ("SELECT EXISTS (SELECT 1 FROM recovery_code WHERE person_id = ?1)", &of_person),
        (
            "SELECT EXISTS (SELECT 1 FROM remembered_device WHERE digest = ?3 AND person_id = ?1 \
             AND tenant_id = ?2 AND expires_on > ?4)",
            &of_device,
        ),
    ];
    let mut enrolled = EnrolledFactors::default();
    tx.query_all(&statements, &mut |index, row| {
        match index {
            0 => enrolled.authenticators.push(row.id(0)?),
            1 => enrolled.has_recovery_code = row.bool(0)?,
            _ => enrolled.is_remembered = row.bool(0)?,
        }
        Ok(())
    })?;
    Ok(enrolled)
}
