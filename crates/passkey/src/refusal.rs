//! Why a ceremony is refused.

use webauthn_rs_core::error::WebauthnError;

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The policy disables passkeys, or has no relying party.
    Disabled,
    /// The answer or the state is malformed.
    Malformed,
    /// The answer is to another challenge.
    Challenge,
    /// The page's origin is not allowed, or the page was framed by another origin.
    Origin,
    /// The authenticator answered for another relying party.
    RelyingParty,
    /// The answer is that of the other ceremony, or not that of a public key credential.
    Type,
    /// The authenticator was not touched.
    UserPresence,
    /// The policy requires user verification, and the authenticator did not verify its user.
    UserVerification,
    /// The signature is not the credential's.
    Signature,
    /// The signature is valid and its counter did not grow: the credential may have been cloned.
    SignCount,
    /// The backup flags contradict each other or those of the registration.
    Backup,
    /// The policy does not admit this model of authenticator (its AAGUID), or it is compromised.
    Authenticator,
    /// The attestation is not valid, or is missing where the policy requires it.
    Attestation,
    /// The key is not of an algorithm that was requested.
    Algorithm,
    /// The user has this credential already.
    AlreadyRegistered,
    /// The credential is not one that this ceremony is for.
    UnknownCredential,
    /// The answer names another user than the credential's, or none where it must name one.
    UserHandle,
}

impl RefusalKind {
    /// The text for people: the fault and what to do.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Disabled => "Passkeys are off here, or the store's relying party is not set.",
            Self::Malformed => "The authenticator's answer cannot be read. Begin the ceremony again.",
            Self::Challenge => "The answer is to another challenge. Begin the ceremony again.",
            Self::Origin => "The page's origin is not among the store's PasskeyAllowedOrigins.",
            Self::RelyingParty => "The authenticator answered for another relying party than the store's.",
            Self::Type => "The answer is not that of this ceremony.",
            Self::UserPresence => "Nobody touched the authenticator.",
            Self::UserVerification => "The authenticator did not verify its user, as the store asks for.",
            Self::Signature => "The signature is not that of the passkey.",
            Self::SignCount => "The passkey's count of uses did not grow: there may be a copy of it.",
            Self::Backup => "What the authenticator says of backups contradicts what it said before.",
            Self::Authenticator => "The store does not admit this make of authenticator.",
            Self::Attestation => "The attestation of the authenticator is not valid, or is missing.",
            Self::Algorithm => "The passkey's key is not of an algorithm that was asked for.",
            Self::AlreadyRegistered => "The user has this passkey already.",
            Self::UnknownCredential => "The passkey is not one that this ceremony is for.",
            Self::UserHandle => "The answer names another user than the passkey's, or none.",
        }
    }
}

/// A refused ceremony.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CeremonyRefusal {
    /// The kind.
    pub kind: RefusalKind,
    /// The text for a log; it contains nothing that the caller sent.
    pub detail: String,
}

impl CeremonyRefusal {
    pub(crate) fn new(kind: RefusalKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

impl std::fmt::Display for CeremonyRefusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}: {}", self.kind, self.detail)
    }
}

impl std::error::Error for CeremonyRefusal {}

impl From<WebauthnError> for CeremonyRefusal {
    fn from(error: WebauthnError) -> Self {
        use WebauthnError as E;
        let kind = match &error {
            E::MismatchedChallenge => RefusalKind::Challenge,
            E::InvalidRPOrigin | E::CredentialCrossOrigin => RefusalKind::Origin,
            E::InvalidRPIDHash => RefusalKind::RelyingParty,
            E::InvalidClientDataType => RefusalKind::Type,
            E::UserNotPresent => RefusalKind::UserPresence,
            E::UserNotVerified => RefusalKind::UserVerification,
            E::AuthenticationFailure | E::SignatureInvalid => RefusalKind::Signature,
            E::CredentialPossibleCompromise => RefusalKind::SignCount,
            E::CredentialBackupEligibilityInconsistent | E::CredentialMayNotBeHardwareBound => {
                RefusalKind::Backup
            }
            E::CredentialNotFound => RefusalKind::UnknownCredential,
            E::CredentialAlteredAlgFromRequest
            | E::COSEKeyInvalidAlgorithm
            | E::COSEKeyInvalidType
            | E::COSEKeyEDUnsupported
            | E::COSEKeyECDSAInvalidCurve
            | E::COSEKeyEDDSAInvalidCurve
            | E::COSEKeyRSANEInvalid
            | E::RsaParametersInvalid
            | E::SshPublicKeyEDUnsupported => RefusalKind::Algorithm,
            E::InvalidUsername | E::Configuration => RefusalKind::Disabled,
            other if is_of_attestation(other) => RefusalKind::Attestation,
            _ => RefusalKind::Malformed,
        };
        // our own text: the library's is for programmers, and can quote the input
        let detail = kind.words().to_owned();
        Self { kind, detail }
    }
}

fn is_of_attestation(error: &WebauthnError) -> bool {
    use WebauthnError as E;
    let name = format!("{error:?}");
    name.starts_with("Attestation") || matches!(error, E::CertificatePublicKeyInvalid | E::X509DerInvalid)
}
