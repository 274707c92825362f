//! The authentication ceremony (WebAuthn Level 3, section 7.2).

use serde_json::{Value, json};
use webauthn_rs_core::proto::{
    AuthenticationExtensionsClientOutputs, AuthenticatorAssertionResponseRaw, PublicKeyCredential,
};

use crate::{
    AuthenticatorModels, CeremonyRefusal, Credential, Policy, RefusalKind,
    answer::{
        MAX_AUTHENTICATOR_DATA, MAX_CLIENT_DATA, MAX_SIGNATURE, bytes, check_origin, credential_id_of,
        malformed, response_of, to_base64, user_handle_of,
    },
    state::{State, check_verified, relying_party},
};

/// The changes to a credential by its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthenticationResult {
    /// The counter to store.
    pub sign_count: u32,
    /// Whether the credential is now copied to other devices.
    pub backed_up: bool,
    /// Whether the authenticator verified its user.
    pub user_verified: bool,
}

/// Starts an authentication. Returns the options for the client as JSON (which
/// `PublicKeyCredential.parseRequestOptionsFromJSON` accepts) and the state to finish with, which must be
/// hidden from the client and used once. `allowed` are the user's credentials; with `None` any user may
/// answer if the authenticator names them. An empty list looks to the client like `None` and admits no answer:
/// it is for a login name that does not exist.
pub fn start_authentication(
    policy: &Policy,
    allowed: Option<&[Credential]>,
) -> Result<(Value, Vec<u8>), CeremonyRefusal> {
    let relying_party = relying_party(policy)?;
    let builder = relying_party
        .new_challenge_authenticate_builder(Vec::new(), Some(policy.user_verification.into()))?;
    let (options, core) = relying_party.generate_challenge_authenticate(builder)?;
    let mut options =
        serde_json::to_value(options.public_key).map_err(|_| malformed("the options cannot be written"))?;
    let allowed_credentials = allowed.unwrap_or_default().iter().map(|credential| {
        let id = to_base64(&credential.id);
        match credential.transports.as_slice() {
            [] => json!({"type": "public-key", "id": id}),
            transports => json!({"type": "public-key", "id": id, "transports": transports}),
        }
    });
    if let Some(members) = options.as_object_mut() {
        members.insert("allowCredentials".to_owned(), allowed_credentials.collect());
    }
    let allowed = allowed.map(|some| some.iter().map(|credential| to_base64(&credential.id)).collect());
    Ok((options, State::Authentication { core, allowed }.to_bytes()))
}

/// Finishes an authentication with the client's answer (`credential.toJSON()`) and the credential that it is
/// of, see [`credential_id_of`]. The caller stores [`AuthenticationResult`] and uses up the state
/// in one transaction.
///
/// The library checks type, challenge, relying party, presence and verification of the user, that
/// a credential does not change its backup eligibility, the signature, and that a counter grows
/// ([`RefusalKind::SignCount`], where the stored or the new one is not 0). Checked here: the origin as
/// text and framing, that the credential may answer and is the named user's, that its model is
/// still admitted and not compromised, and the current policy.
pub fn finish_authentication(
    policy: &Policy,
    models: AuthenticatorModels<'_>,
    state: &[u8],
    answer: &Value,
    credential: &Credential,
) -> Result<AuthenticationResult, CeremonyRefusal> {
    let relying_party = relying_party(policy)?;
    let State::Authentication { core, allowed } = State::from_bytes(state)? else {
        return Err(malformed("the state is of a registration"));
    };
    let id = credential_id_of(answer)?;
    let is_allowed = allowed.as_ref().is_none_or(|ids| ids.contains(&to_base64(&id)));
    if id != credential.id || !is_allowed {
        return Err(CeremonyRefusal::new(RefusalKind::UnknownCredential, "the credential may not answer"));
    }
    match user_handle_of(answer)? {
        Some(user) if user == credential.user.as_bytes() => {}
        // the authenticator must name the user only if no login name did
        None if allowed.is_some() => {}
        _ => {
            return Err(CeremonyRefusal::new(
                RefusalKind::UserHandle,
                "the answer does not name the credential's user",
            ));
        }
    }
    let response = response_of(answer)?;
    let client_data = bytes(response, "clientDataJSON", MAX_CLIENT_DATA)?;
    check_origin(policy, &client_data)?;
    let assertion = PublicKeyCredential {
        id: to_base64(&id),
        raw_id: id,
        response: AuthenticatorAssertionResponseRaw {
            authenticator_data: bytes(response, "authenticatorData", MAX_AUTHENTICATOR_DATA)?,
            client_data_json: client_data,
            signature: bytes(response, "signature", MAX_SIGNATURE)?,
            user_handle: None,
        },
        extensions: AuthenticationExtensionsClientOutputs::default(),
        type_: "public-key".to_owned(),
    };
    let result = relying_party.authenticate_single_credential(&assertion, &core, &credential.to_core())?;
    check_verified(policy, result.user_verified())?;
    if !policy.admits(credential.aaguid) {
        return Err(CeremonyRefusal::new(
            RefusalKind::Authenticator,
            "the make of authenticator is not admitted any more",
        ));
    }
    models.check_desired(credential.aaguid)?;
    Ok(AuthenticationResult {
        sign_count: result.counter(),
        backed_up: result.backup_state(),
        user_verified: result.user_verified(),
    })
}
