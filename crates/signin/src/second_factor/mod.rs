//! Second factors: which are asked for, how they are enrolled and proven, and which browsers are spared them.

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
pub use facts::{Asked, asked_for, facts_of};
pub use page::{choice_of, enrol_context, factor_context};
pub use recovery::{make as make_recovery_codes, use_code};
pub use remembered::{Device, remember};
pub use sent_code::{
    Destination, Purpose, Sending, Typed, destination, send, take_back, verify as verify_sent,
};

use crate::application::{Offered, OfferedStore};

/// A second factor of a tenant that can be used: an MFA instance.
#[derive(Clone, Debug)]
pub struct OfferedFactor {
    /// The MFA instance.
    pub id: Uuid,
    /// How its codes reach people.
    pub kind: CodeKind,
    /// Whether the client app asks for it.
    pub is_of_application: bool,
    /// Its options.
    pub options: Arc<Options<FactorOption>>,
}

impl OfferedFactor {
    /// How the codes of instances of this type reach people.
    pub const fn kind_of(owner: Owner) -> Option<CodeKind> {
        match owner {
            Owner::MfaTotp => Some(CodeKind::Totp),
            Owner::MfaEmail => Some(CodeKind::Email),
            Owner::MfaSms => Some(CodeKind::Sms),
            _ => None,
        }
    }

    /// Whose options such an instance has.
    pub const fn owner_of(kind: CodeKind) -> Owner {
        match kind {
            CodeKind::Totp => Owner::MfaTotp,
            CodeKind::Email => Owner::MfaEmail,
            CodeKind::Sms => Owner::MfaSms,
        }
    }

    /// How many characters its codes have.
    pub fn digits(&self) -> i64 {
        self.options.get(if self.kind == CodeKind::Totp {
            FactorOption::DIGITS
        } else {
            FactorOption::CODE_LENGTH
        })
    }

    /// Whether it can reach the people of an instance. Those of an external identity provider are reached where it is believed: it
    /// alone says what addresses and numbers they have.
    fn can_send(&self, offered: Offered<'_>) -> bool {
        let is_believed = match offered {
            Offered::Store(_) => true,
            Offered::Provider(provider) => provider.is_believed,
        };
        match self.kind {
            CodeKind::Totp => true,
            CodeKind::Email => is_believed && self.mail_sender(offered.store()).is_some(),
            CodeKind::Sms => is_believed && self.options.is_set(FactorOption::GATEWAY_URL),
        }
    }

    /// Who sends its codes by mail: its own mail server, else that of the person's store; `None` where neither can.
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
