//! The rules of the FAPI profiles for client apps: FAPI 1.0 part 2 Advanced, FAPI 2.0 Security Profile and
//! FAPI 2.0 Message Signing.

use crate::{
    ClientSettings, Method, SecurityProfile,
    finding::Findings,
    uri::{has_scheme, host_of},
};

/// Checks the rules of the client app's profile.
pub fn check(facts: &ClientSettings<'_>, findings: &mut Findings) {
    match facts.security_profile {
        SecurityProfile::None => {}
        SecurityProfile::Fapi1Advanced => {
            check_common(facts, findings);
            check_fapi_1(facts, findings);
        }
        SecurityProfile::Fapi2SecurityProfile | SecurityProfile::Fapi2MessageSigning => {
            check_common(facts, findings);
            check_fapi_2(facts, findings);
        }
    }
}

/// FAPI 1.0 Advanced, section 5.2.2; FAPI 2.0 Security Profile, section 5.3.2.
fn check_common(facts: &ClientSettings<'_>, findings: &mut Findings) {
    findings.require(!facts.is_public, "isPublic", "Turn it off: FAPI is for confidential client apps.");
    let method = facts.authentication.unwrap_or_default().method;
    findings.require(
        matches!(method, Method::PrivateKeyJwt | Method::TlsClientAuth | Method::SelfSignedTlsClientAuth),
        "tokenEndpointAuthMethod",
        "FAPI asks for private_key_jwt, tls_client_auth or self_signed_tls_client_auth: \
         set it in the authentication configuration first.",
    );
}

/// FAPI 1.0 Baseline, section 5.2.2; Advanced, sections 5.2.2 and 8.6.
fn check_fapi_1(facts: &ClientSettings<'_>, findings: &mut Findings) {
    findings.require(
        facts.redirect_uris.iter().all(|uri| has_scheme(uri, "https")),
        "clientAppRedirectUris",
        "FAPI 1.0 asks for https in redirect URIs.",
    );
    findings.require(
        facts.authentication.unwrap_or_default().require_certificate_bound_access_tokens,
        "requireCertificateBoundAccessTokens",
        "Turn it on: FAPI 1.0 Advanced binds access tokens to the client's certificate.",
    );
    findings.require(
        matches!(facts.request_object_signing_alg, Some("PS256" | "ES256")),
        "requestObjectSigningAlg",
        "Use PS256 or ES256: FAPI 1.0 Advanced asks for signed request objects.",
    );
    findings.require(
        facts.response_types().iter().all(|name| matches!(name.as_str(), "code" | "code id_token")),
        "allowedResponseTypes",
        "Use code id_token, or code with signed answers (JARM).",
    );
}

/// FAPI 2.0 Security Profile, sections 5.3.2 and 5.4.1; FAPI 2.0 Message Signing, section 5.3.1.
fn check_fapi_2(facts: &ClientSettings<'_>, findings: &mut Findings) {
    let authentication = facts.authentication.unwrap_or_default();
    let is_secure = |uri: &&str| {
        let is_loopback = host_of(uri).is_some_and(|host| host == "127.0.0.1" || host == "::1");
        has_scheme(uri, "https") || (facts.is_native_application && (is_loopback || !has_scheme(uri, "http")))
    };
    findings.require(
        facts.redirect_uris.iter().all(is_secure),
        "clientAppRedirectUris",
        "FAPI asks for https in redirect URIs; a native application may use its own scheme or the loopback address.",
    );
    findings.require(
        authentication.dpop_bound_access_tokens || authentication.require_certificate_bound_access_tokens,
        "dpopBoundAccessTokens",
        "Turn this or requireCertificateBoundAccessTokens on: FAPI 2.0 binds access tokens to their client.",
    );
    findings.require(
        facts.require_pushed_authorization_requests,
        "requirePushedAuthorizationRequests",
        "Turn it on: FAPI 2.0 asks for pushed authorization requests.",
    );
    findings.require(
        facts.response_types().iter().all(|name| name == "code"),
        "allowedResponseTypes",
        "Use code only: FAPI 2.0 allows no other.",
    );
    let signing = facts.request_object_signing_alg;
    findings.require(
        matches!(signing, None | Some("PS256" | "ES256" | "EdDSA" | "Ed25519")),
        "requestObjectSigningAlg",
        "Use PS256, ES256 or EdDSA: FAPI 2.0 allows no other.",
    );
    findings.require(
        facts.security_profile != SecurityProfile::Fapi2MessageSigning || signing.is_some(),
        "requestObjectSigningAlg",
        "Set PS256, ES256 or EdDSA: FAPI 2.0 Message Signing asks for signed request objects.",
    );
}
