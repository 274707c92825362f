//! A second factor that a tenant offers.

use std::sync::Arc;

use chancery_credential::totp::{Algorithm, Totp};
use chancery_flow::CodeKind;
use chancery_resource::settings::{FactorOption, Options, Owner, UserStoreOption};
use chancery_userstore::password::mail::Sender;
use uuid::Uuid;

use super::{Offered, OfferedStore};

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

    /// The TOTP parameters.
    pub fn totp(&self) -> Totp {
        Totp {
            digits: u32::try_from(self.options.get(FactorOption::DIGITS)).unwrap_or(6),
            period_ms: self.options.get(FactorOption::PERIOD),
            algorithm: Algorithm::named(&self.options.get(FactorOption::ALGORITHM).to_ascii_uppercase()),
        }
    }

    /// Whether it can reach the people of an instance. External users are reached only if their provider is trusted,
    /// because it alone sets their addresses and numbers.
    pub fn can_send(&self, offered: Offered<'_>) -> bool {
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
    pub fn mail_sender<'a>(&'a self, store: Option<&'a OfferedStore>) -> Option<Sender<'a>> {
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
