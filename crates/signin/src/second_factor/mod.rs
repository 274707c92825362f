//! Second factors: requirements, enrolment, verification, and remembered browsers.

mod authenticator;
mod facts;
pub mod guard;
mod page;
mod recovery;
mod remembered;
mod sent_code;

use std::sync::Arc;

use chancery_flow::CodeKind;
use chancery_resource::settings::{FactorOption, Options, Owner, UserStoreOption};
use chancery_userstore::password::mail::Sender;
use uuid::Uuid;

pub use authenticator::{Enrolling, enrol, verify as verify_authenticator};
pub use facts::{RequestedFactors, facts_of, requested_factors};
pub use page::{choice_of, enrol_context, factor_context};
pub use recovery::{make as make_recovery_codes, use_code};
pub use remembered::{Device, remember};
pub use sent_code::{
    CodeCheck, Destination, Purpose, SendResult, destination, send, take_back, verify as verify_sent,
};

use crate::application::{Offered, OfferedStore};

/// A usable second factor of a tenant: an MFA instance.
#[derive(Clone, Debug)]
pub struct OfferedFactor {
    /// The MFA instance.
    pub id: Uuid,
    /// The channel of its codes.
    pub kind: CodeKind,
    /// Whether the client app requires it.
    pub is_of_application: bool,
    /// Its options.
    pub options: Arc<Options<FactorOption>>,
}

impl OfferedFactor {
    /// The channel of the codes of instances of this type.
    pub const fn kind_of(owner: Owner) -> Option<CodeKind> {
        match owner {
            Owner::MfaTotp => Some(CodeKind::Totp),
            Owner::MfaEmail => Some(CodeKind::Email),
            Owner::MfaSms => Some(CodeKind::Sms),
            _ => None,
        }
    }

    /// The owner type of the options of such an instance.
    pub const fn owner_of(kind: CodeKind) -> Owner {
        match kind {
            CodeKind::Totp => Owner::MfaTotp,
            CodeKind::Email => Owner::MfaEmail,
            CodeKind::Sms => Owner::MfaSms,
        }
    }

    /// The length of its codes.
    pub fn digits(&self) -> i64 {
        self.options.get(if self.kind == CodeKind::Totp {
            FactorOption::DIGITS
        } else {
            FactorOption::CODE_LENGTH
        })
    }

    /// Whether it can reach the people of an instance. External users are reached only if their provider is trusted,
    /// because it alone sets their addresses and numbers.
    fn can_send(&self, offered: Offered<'_>) -> bool {
        let is_trusted = match offered {
            Offered::Store(_) => true,
            Offered::Provider(provider) => provider.is_trusted,
        };
        match self.kind {
            CodeKind::Totp => true,
            CodeKind::Email => is_trusted && self.mail_sender(offered.store()).is_some(),
            CodeKind::Sms => is_trusted && self.options.is_set(FactorOption::GATEWAY_URL),
        }
    }

    /// The sender of its codes by mail: its own mail server, else that of the person's store; `None` if there is
    /// neither.
    fn mail_sender<'a>(&'a self, store: Option<&'a OfferedStore>) -> Option<Sender<'a>> {
        let has_own = self.options.is_set(FactorOption::MAIL_SERVER_CONFIG);
        let senders = [
            self.options.get(FactorOption::EMAIL_SENDER_ADDRESS),
            store.map_or("", |store| store.options.get(UserStoreOption::EMAIL_SENDER_ADDRESS)),
        ];
        let address = senders.into_iter().find(|sender| !sender.is_empty())?;
        let has_server =
            has_own || store.is_some_and(|store| store.options.is_set(UserStoreOption::MAIL_SERVER_CONFIG));
        has_server.then_some(Sender { mfa_instance: has_own.then_some(self.id), address })
    }
}
