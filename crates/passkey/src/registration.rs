//! The registration ceremony (WebAuthn Level 3, section 7.1).

use serde_json::{Value, json};
use uuid::Uuid;
use webauthn_rs_core::proto::{
    AttestationConveyancePreference, AuthenticatorAttestationResponseRaw, RegisterPublicKeyCredential,
    RegistrationExtensionsClientOutputs,
};

use crate::{
    Attestation, AuthenticatorModels, CeremonyRefusal, Credential, Policy, RefusalKind,
    answer::{
        MAX_ATTESTATION, MAX_CLIENT_DATA, bytes, check_origin, credential_id_of, malformed, response_of,
        to_base64,
    },
    attestation::AttestationData,
    credential::{ALGORITHMS, check_key},
    state::{State, check_verified, relying_party},
};

/// The user of the new credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's id; its 16 bytes are the user handle that the authenticator stores.
    pub id: Uuid,
    /// The login name, which an authenticator shows to a person with several.
    pub login_name: String,
    /// The name to show; the login name where this is empty.
    pub display_name: String,
}

/// Starts a registration. Returns the options for the client as JSON (which
/// `PublicKeyCredential.parseCreationOptionsFromJSON` accepts) and the state to finish with, which must be
/// hidden from the client and used once. `existing` are the ids of the user's credentials: an authenticator
/// that holds one of them creates no second.
pub fn start_registration(
    policy: &Policy,
    user: &User,
    existing: &[Vec<u8>],
) -> Result<(Value, Vec<u8>), CeremonyRefusal> {
    let relying_party = relying_party(policy)?;
    let display_name = if user.display_name.is_empty() { &user.login_name } else { &user.display_name };
    let (attestation, word) = match policy.attestation {
        Attestation::None => (AttestationConveyancePreference::None, "none"),
        Attestation::Indirect => (AttestationConveyancePreference::Indirect, "indirect"),
        Attestation::Direct => (AttestationConveyancePreference::Direct, "direct"),
        // the library does not support enterprise attestation
        Attestation::Enterprise => (AttestationConveyancePreference::Direct, "enterprise"),
    };
    let builder = relying_party
        .new_challenge_register_builder(user.id.as_bytes(), &user.login_name, display_name)?
        .require_resident_key(true)
        .user_verification_policy(policy.user_verification.into())
        .credential_algorithms(ALGORITHMS.to_vec())
        .attestation(attestation);
    let (options, core) = relying_party.generate_challenge_register(builder)?;
    let mut options =
        serde_json::to_value(options.public_key).map_err(|_| malformed("the options cannot be written"))?;
    let existing: Vec<String> = existing.iter().map(|id| to_base64(id)).collect();
    let excluded = existing.iter().map(|id| json!({"type": "public-key", "id": id}));
    if let Some(members) = options.as_object_mut() {
        members.insert("excludeCredentials".to_owned(), excluded.collect());
        members.insert("attestation".to_owned(), word.into());
    }
    Ok((options, State::Registration { core, user: user.id, existing }.to_bytes()))
}

/// Finishes a registration with the client's answer (`credential.toJSON()`).
///
/// The library checks type, challenge, relying party, presence and verification of the user, the algorithm
/// and the attestation's signature. Checked here: the origin as text and framing, that the answer is of the
/// credential that was created, that the user does not have it already, the key's curve, the current policy,
/// that it admits the model of authenticator and the metadata do not call it undesired, and that the
/// attestation's certificates are the model's where the policy depends on it.
pub fn finish_registration(
    policy: &Policy,
    models: AuthenticatorModels<'_>,
    state: &[u8],
    answer: &Value,
) -> Result<Credential, CeremonyRefusal> {
    let relying_party = relying_party(policy)?;
    let State::Registration { core, user, existing } = State::from_bytes(state)? else {
        return Err(malformed("the state is of an authentication"));
    };
    let id = credential_id_of(answer)?;
    let response = response_of(answer)?;
    let client_data = bytes(response, "clientDataJSON", MAX_CLIENT_DATA)?;
    let object = bytes(response, "attestationObject", MAX_ATTESTATION)?;
    check_origin(policy, &client_data)?;
    let mut attested = AttestationData::read(&object)?;
    let verified = relying_party.register_credential(
        &RegisterPublicKeyCredential {
            id: to_base64(&id),
            raw_id: id.clone(),
            response: AuthenticatorAttestationResponseRaw {
                attestation_object: object,
                client_data_json: client_data,
                transports: None,
            },
            type_: "public-key".to_owned(),
            extensions: RegistrationExtensionsClientOutputs::default(),
        },
        &core,
        None,
    )?;
    if verified.cred_id != id {
        return Err(malformed("the answer is about another credential than the one made"));
    }
    if existing.contains(&to_base64(&id)) {
        return Err(CeremonyRefusal::new(
            RefusalKind::AlreadyRegistered,
            "the user has this credential already",
        ));
    }
    attested.retain_verified(&verified.attestation.data);
    check_key(&verified.cred)?;
    check_verified(policy, verified.user_verified)?;
    attested.check(policy, models, &verified.attestation.data)?;
    Ok(Credential {
        id,
        user,
        aaguid: attested.aaguid,
        sign_count: verified.counter,
        is_backup_eligible: verified.backup_eligible,
        is_backed_up: verified.backup_state,
        user_verified: verified.user_verified,
        transports: transports_of(response),
        is_model_proven: models
            .check_chain(attested.aaguid, &attested.chain, &verified.attestation.data)
            .is_ok(),
        attestation_chain: attested.chain,
        key: verified.cred,
    })
}

/// The known transports of the answer. They are a hint to the client, so unknown ones are left out.
fn transports_of(response: &Value) -> Vec<String> {
    let reported = response.get("transports").and_then(Value::as_array);
    ["ble", "hybrid", "internal", "nfc", "smart-card", "usb"]
        .into_iter()
        .filter(|known| reported.is_some_and(|reported| reported.iter().any(|one| one == known)))
        .map(str::to_owned)
        .collect()
}
