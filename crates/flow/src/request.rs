//! The parameters of an authorization request.

use chancery_record::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Acr, moment::Moment};

/// The values of `prompt`. `none` must be the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Prompt {
    /// `none`: no page is shown.
    None,
    /// Pages are shown where they are needed, and where a value asks for one.
    Pages {
        /// `login`: a first factor is proven in this flow.
        login: bool,
        /// `consent`: the person is asked for consent.
        consent: bool,
        /// `select_account`: the person chooses among the browser's sessions.
        select_account: bool,
    },
}

impl Prompt {
    /// Without any value.
    pub const OPEN: Self = Self::Pages { login: false, consent: false, select_account: false };
}

/// The parameters of an authorization request, read and validated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// When the flow began.
    #[serde(with = "Moment")]
    pub started: Timestamp,
    /// `prompt`
    pub prompt: Prompt,
    /// `max_age`, in seconds.
    pub max_age: Option<u64>,
    /// The person that a valid `id_token_hint` names.
    pub hinted_person: Option<Uuid>,
    /// Whether there is a `login_hint`.
    pub has_login_hint: bool,
    /// The known values of `acr_values` or of an essential `acr`: one of them is demanded.
    pub demanded: Vec<Acr>,
    /// The tenant, where no choice is needed: the issuer's, else that of `tenant:`, else that of a valid
    /// `id_token_hint`.
    pub tenant: Option<Uuid>,
    /// The IdpInstance that `idp:` names. An unknown one leaves nothing to sign in with, like one that is not
    /// offered: set it to an unused id.
    pub instance: Option<Uuid>,
    /// What a person may be asked to consent to: scopes and resources.
    #[serde(rename = "asked")]
    pub requested: Vec<String>,
    /// Whether the answer goes to a native app: a scheme of its own, or a loopback address.
    pub is_native: bool,
    /// Whether this browser has just signed out.
    pub after_sign_out: bool,
}

impl Request {
    /// A request without parameters.
    pub const fn new(started: Timestamp) -> Self {
        Self {
            started,
            prompt: Prompt::OPEN,
            max_age: None,
            hinted_person: None,
            has_login_hint: false,
            demanded: Vec::new(),
            tenant: None,
            instance: None,
            requested: Vec::new(),
            is_native: false,
            after_sign_out: false,
        }
    }

    /// The class that must be reached: the lowest demanded one, because a higher one includes it.
    pub(crate) fn required_acr(&self) -> Option<Acr> {
        self.demanded.iter().copied().min()
    }

    pub(crate) const fn is_silent(&self) -> bool {
        matches!(self.prompt, Prompt::None)
    }

    pub(crate) const fn wants_login(&self) -> bool {
        matches!(self.prompt, Prompt::Pages { login: true, .. })
    }

    pub(crate) const fn wants_consent(&self) -> bool {
        matches!(self.prompt, Prompt::Pages { consent: true, .. })
    }

    pub(crate) const fn wants_account(&self) -> bool {
        matches!(self.prompt, Prompt::Pages { select_account: true, .. })
    }

    pub(crate) fn has_prompt(&self) -> bool {
        self.prompt != Prompt::OPEN
    }
}
