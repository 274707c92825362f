//! The parts of an attestation object that the library does not return: the AAGUID and the certificates.

use serde_cbor_2::Value;
use webauthn_rs_core::{
    internals::AuthenticatorData,
    proto::{ParsedAttestationData, Registration},
};

use crate::{Attestation, AuthenticatorModels, CeremonyRefusal, Policy, RefusalKind, answer::malformed};

/// The parts of an attestation object that a policy checks.
pub(crate) struct AttestationData {
    pub aaguid: [u8; 16],
    /// The certificates (DER), the authenticator's own first.
    pub chain: Vec<Vec<u8>>,
}

impl AttestationData {
    pub(crate) fn read(object: &[u8]) -> Result<Self, CeremonyRefusal> {
        let unread = || malformed("the attestation object cannot be read");
        let object: Value = serde_cbor_2::from_slice(object).map_err(|_| unread())?;
        let Some(Value::Bytes(data)) = member(&object, "authData") else { return Err(unread()) };
        let data = AuthenticatorData::<Registration>::try_from(data.as_slice())?;
        let credential = data.acd.ok_or_else(unread)?;
        let chain = match member(&object, "attStmt").and_then(|statement| member(statement, "x5c")) {
            Some(Value::Array(certificates)) => certificates.as_slice(),
            _ => &[],
        };
        let chain = chain.iter().filter_map(|certificate| match certificate {
            Value::Bytes(der) => Some(der.clone()),
            _ => None,
        });
        Ok(Self { aaguid: credential.aaguid, chain: chain.collect() })
    }

    /// Drops certificates that verified nothing: the library accepts any content in a statement of the format
    /// `none`.
    pub(crate) fn retain_verified(&mut self, checked: &ParsedAttestationData) {
        use ParsedAttestationData as Data;
        if !matches!(checked, Data::Basic(_) | Data::AttCa(_) | Data::AnonCa(_)) {
            self.chain.clear();
        }
    }

    /// Checks that the policy admits this authenticator. A list of admitted models means little if any
    /// authenticator can claim to be on it. So with a list, certificates are required that chain to a root of the
    /// model. Without a list, certificates are not required, but with direct attestation those of a known model must
    /// be its own.
    pub(crate) fn check(
        &self,
        policy: &Policy,
        models: AuthenticatorModels<'_>,
        proved: &ParsedAttestationData,
    ) -> Result<(), CeremonyRefusal> {
        if !policy.admits(self.aaguid) {
            return Err(CeremonyRefusal::new(
                RefusalKind::Authenticator,
                "the make of authenticator is not admitted",
            ));
        }
        models.check_desired(self.aaguid)?;
        let is_listed = !policy.allowed_aaguids.is_empty();
        let is_requested = matches!(policy.attestation, Attestation::Direct | Attestation::Enterprise);
        if is_listed || (is_requested && !self.chain.is_empty() && models.has_roots(self.aaguid)) {
            return models.check_chain(self.aaguid, &self.chain, proved);
        }
        Ok(())
    }
}

fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(members) = object else { return None };
    members.get(&Value::Text(name.to_owned()))
}
