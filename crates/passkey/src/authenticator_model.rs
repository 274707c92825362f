//! The known models of authenticators, and the check of attestations by them.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use chancery_record::Timestamp;
use chancery_trust::Snapshot;
use uuid::Uuid;
use webauthn_rs_core::{
    attestation::verify_attestation_ca_chain,
    proto::{AttestationCaListBuilder, ParsedAttestationData},
};

use crate::{CeremonyRefusal, RefusalKind};

/// The metadata of authenticator models at a time; without a snapshot, no model is known.
#[derive(Clone, Copy, Debug)]
pub struct AuthenticatorModels<'a> {
    snapshot: Option<&'a Snapshot>,
    now: Timestamp,
}

impl<'a> AuthenticatorModels<'a> {
    /// The metadata of a snapshot at a time.
    pub const fn new(snapshot: Option<&'a Snapshot>, now: Timestamp) -> Self {
        Self { snapshot, now }
    }

    /// A model's name for people, if it is known.
    pub fn name(&self, aaguid: [u8; 16]) -> Option<&'a str> {
        self.snapshot?.name(aaguid)
    }

    /// Whether a model stores its keys in hardware.
    pub fn is_hardware(&self, aaguid: [u8; 16]) -> bool {
        self.snapshot.and_then(|snapshot| snapshot.model(aaguid)).is_some_and(|model| model.is_hardware)
    }

    /// Whether a model is known to be compromised or withdrawn.
    pub fn is_undesired(&self, aaguid: [u8; 16]) -> bool {
        self.snapshot.is_some_and(|snapshot| snapshot.is_undesired(aaguid, self.now))
    }

    /// Refuses a model that is compromised or withdrawn.
    pub(crate) fn check_desired(&self, aaguid: [u8; 16]) -> Result<(), CeremonyRefusal> {
        if self.is_undesired(aaguid) {
            let detail = "the make of authenticator is known to be compromised or withdrawn";
            return Err(CeremonyRefusal::new(RefusalKind::Authenticator, detail));
        }
        Ok(())
    }

    /// Whether roots of a model's attestations are known.
    pub(crate) fn has_roots(&self, aaguid: [u8; 16]) -> bool {
        self.roots(aaguid).next().is_some()
    }

    fn roots(&self, aaguid: [u8; 16]) -> impl Iterator<Item = &'a [u8]> {
        self.snapshot.into_iter().flat_map(move |snapshot| snapshot.roots(aaguid))
    }

    /// Checks that the certificates of an attestation chain to a root of the model, or are one. `chain` are
    /// those of `proved`, in DER.
    pub(crate) fn check_chain(
        &self,
        aaguid: [u8; 16],
        chain: &[Vec<u8>],
        proved: &ParsedAttestationData,
    ) -> Result<(), CeremonyRefusal> {
        let refused = |detail: &str| Err(CeremonyRefusal::new(RefusalKind::Attestation, detail));
        if chain.is_empty() {
            return refused("the make of authenticator is not attested");
        }
        if !self.has_roots(aaguid) {
            return refused("nothing is known that the attestation of this make could be checked with");
        }
        // a model may name an intermediate certificate, or the authenticator's own, instead of a root
        let to = chain.iter().position(|own| self.roots(aaguid).any(|root| root == own));
        if to == Some(0) {
            return Ok(());
        }
        let proved = up_to(proved, to.unwrap_or(chain.len()));
        let mut roots = AttestationCaListBuilder::new();
        for root in self.roots(aaguid) {
            // a root that the library cannot read proves nothing
            let _ = roots.insert_device_der(root, Uuid::from_bytes(aaguid), String::new(), BTreeMap::new());
        }
        match verify_attestation_ca_chain(&proved, &roots.build(), time(self.now)) {
            Ok(Some(_)) => Ok(()),
            _ => refused("the attestation does not lead to a root of the make of authenticator"),
        }
    }
}

/// The first certificates of an attestation.
fn up_to(proved: &ParsedAttestationData, count: usize) -> ParsedAttestationData {
    use ParsedAttestationData as Data;
    match proved {
        Data::Basic(chain) => Data::Basic(chain.iter().take(count).cloned().collect()),
        Data::AttCa(chain) => Data::AttCa(chain.iter().take(count).cloned().collect()),
        Data::AnonCa(chain) => Data::AnonCa(chain.iter().take(count).cloned().collect()),
        other => other.clone(),
    }
}

fn time(now: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(now.0).unwrap_or(0))
}
