//! A registered credential, stored as bytes.

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use webauthn_rs_core::proto::{
    AttestationFormat, COSEAlgorithm, COSEKey, COSEKeyType, Credential as Core, ECDSACurve,
    ParsedAttestation, RegisteredExtensions, UserVerificationPolicy,
};

use crate::{AuthenticatorModels, CeremonyRefusal, RefusalKind, answer::base64_text};

/// A credential of a user. Its public key verifies signatures, and cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "they are facts that do not exclude each other")]
pub struct Credential {
    /// The credential's id, up to 1,023 bytes.
    #[serde(with = "base64_text")]
    pub id: Vec<u8>,
    /// The credential's user; the user handle is the bytes of this id.
    pub user: Uuid,
    /// The model that the authenticator claims to be; proven only by a verified attestation.
    pub aaguid: [u8; 16],
    /// The counter of the last signature; 0 where the authenticator does not count.
    pub sign_count: u32,
    /// Whether the credential can be copied to other devices; never changes.
    pub is_backup_eligible: bool,
    /// Whether the credential was copied to other devices when it was last used.
    pub is_backed_up: bool,
    /// Whether the authenticator verified its user at the registration.
    pub user_verified: bool,
    /// The transports to reach the authenticator by, as the client reported them.
    pub transports: Vec<String>,
    /// The certificates of the attestation (DER, the authenticator's own first). Their signature over the
    /// registration is verified; that they are the model's, only if the policy of the registration depended
    /// on it. Empty without attestation, and with self attestation.
    #[serde(with = "certificates")]
    pub attestation_chain: Vec<Vec<u8>>,
    /// Whether the attestation led to a root of the model at the registration.
    #[serde(default)]
    pub is_model_proven: bool,
    pub(crate) key: COSEKey,
}

impl Credential {
    /// The credential as bytes to store.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the output of [`Self::to_bytes`]; anything else is [`RefusalKind::Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CeremonyRefusal> {
        serde_json::from_slice(bytes)
            .map_err(|_| CeremonyRefusal::new(RefusalKind::Malformed, "the stored credential cannot be read"))
    }

    /// Whether its key is proven to be bound to hardware: it is bound to its device, and of a model
    /// with a verified attestation that is known to store keys in hardware.
    pub fn is_hardware(&self, models: AuthenticatorModels<'_>) -> bool {
        !self.is_backup_eligible && self.is_model_proven && models.is_hardware(self.aaguid)
    }

    /// The credential in the library's form. User verification follows from the ceremony's policy alone, and
    /// not from the registration's.
    pub(crate) fn to_core(&self) -> Core {
        Core {
            cred_id: self.id.clone(),
            cred: self.key.clone(),
            counter: self.sign_count,
            transports: None,
            user_verified: self.user_verified,
            backup_eligible: self.is_backup_eligible,
            backup_state: self.is_backed_up,
            registration_policy: UserVerificationPolicy::Discouraged_DO_NOT_USE,
            extensions: RegisteredExtensions::none(),
            attestation: ParsedAttestation::default(),
            attestation_format: AttestationFormat::None,
        }
    }
}

/// The algorithms that a registration offers, the preferred first. The library cannot verify EdDSA.
pub(crate) const ALGORITHMS: [COSEAlgorithm; 2] = [COSEAlgorithm::ES256, COSEAlgorithm::RS256];

/// Refuses a key with a curve that is not its algorithm's, which the library accepts.
pub(crate) fn check_key(key: &COSEKey) -> Result<(), CeremonyRefusal> {
    let fits = match (&key.type_, &key.key) {
        (COSEAlgorithm::ES256, COSEKeyType::EC_EC2(key)) => key.curve == ECDSACurve::SECP256R1,
        (COSEAlgorithm::RS256, COSEKeyType::RSA(_)) => true,
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(CeremonyRefusal::new(RefusalKind::Algorithm, "the key is not of its algorithm"))
    }
}

mod certificates {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::answer::{from_base64, to_base64};

    pub fn serialize<S: Serializer>(chain: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(chain.iter().map(|certificate| to_base64(certificate)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u8>>, D::Error> {
        let chain = Vec::<String>::deserialize(deserializer)?;
        let certificates = chain.iter().map(|text| from_base64(text)).collect::<Option<_>>();
        certificates.ok_or_else(|| D::Error::custom("no base64url"))
    }
}
