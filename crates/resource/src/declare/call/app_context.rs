//! The shared context of all operations of a server.

use std::sync::atomic::AtomicU32;

use chancery_credential::hash::Parameters;
use chancery_federation::ProviderAddresses;
use chancery_fetch::Outbound;

use crate::{
    AuditSigner, CursorKey, ItemCache, MasterKey, MetadataSource, Run, SendOutbound, SendText, SendWebhook,
    Service, Tails,
};

/// Which identities must be proven before one replaces another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proofs {
    /// Neither.
    #[default]
    None,
    /// The one that is replaced.
    Current,
    /// The one that replaces it.
    Replacement,
    /// Both.
    Both,
}

impl Proofs {
    /// All values.
    pub const ALL: [Self; 4] = [Self::None, Self::Current, Self::Replacement, Self::Both];

    /// The value's name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Current => "current",
            Self::Replacement => "replacement",
            Self::Both => "both",
        }
    }

    /// Whether the identity that is replaced must be proven.
    pub const fn of_current(self) -> bool {
        matches!(self, Self::Current | Self::Both)
    }

    /// Whether the identity that replaces it must be proven.
    pub const fn of_replacement(self) -> bool {
        matches!(self, Self::Replacement | Self::Both)
    }
}

/// The shared context of all operations: keys and settings, created once at the start.
pub struct AppContext {
    /// The master key.
    pub master: MasterKey,
    /// The cost of hashing a new password.
    pub hashing: Parameters,
    /// All operations, by service.
    pub services: &'static [&'static Service],
    /// Whether a program of the operator's delivers reset tokens where there is no mail server.
    pub has_reset_program: bool,
    /// Whether the server requests client certificates in the TLS handshake, so that clients can present one.
    pub requests_client_certificates: bool,
    /// Which identities must be proven before one replaces another.
    pub proofs: Proofs,
    /// Signs audit entries.
    pub audit_signer: AuditSigner,
    /// Seals and opens the cursors of lists.
    pub cursors: CursorKey,
    /// A counter in the identifiers of one millisecond, so that ids created one after another are in order.
    pub counter: AtomicU32,
    /// The server's public URL, which links begin with, without a slash at the end.
    pub public_url: String,
    /// The source of the metadata of authenticators.
    pub metadata: MetadataSource,
    /// The snapshot of the metadata that was read last.
    pub snapshot: ItemCache,
    /// The holders of roles by assignment, cached by the security epoch.
    pub role_carriers: ItemCache,
    /// The tails: subscribers that wait for events.
    pub tails: Tails,
    /// Whether outbound traffic is enabled.
    pub outbound: Outbound,
    /// Sends events to receivers.
    pub send_webhook: SendWebhook,
    /// Sends text messages to SMS gateways.
    pub send_text: SendText,
    /// Sends requests to servers that administrators configure.
    pub send_outbound: SendOutbound,
    /// The endpoints of the identity providers that have the same addresses for all tenants.
    pub provider_addresses: ProviderAddresses,
    /// Previews tokens of client apps by the code that issues them, which the services do not depend on.
    pub preview_tokens: Run,
}
