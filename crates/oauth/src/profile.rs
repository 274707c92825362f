//! The rules between the settings of a client app and its authentication configuration.

use std::collections::BTreeSet;

use crate::{
    Algorithm, Authentication, ClientSettings, Encryption, Method, ResponseType, fapi,
    finding::{Finding, Findings},
    uri::{has_scheme, host_of},
};

/// The supported key management algorithms for messages to a client (RFC 7518, section 4.1), without `RSA1_5` and
/// symmetric ones.
pub const KEY_ENCRYPTION: [&str; 5] =
    ["RSA-OAEP-256", "RSA-OAEP", "ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A256KW"];
/// The supported content encryption algorithms (RFC 7518, section 5.1).
const CONTENT_ENCRYPTION: [&str; 4] = ["A128CBC-HS256", "A256CBC-HS512", "A128GCM", "A256GCM"];

/// All violated rules, in a fixed order.
pub fn findings(facts: &ClientSettings<'_>) -> Vec<Finding> {
    let mut findings = Findings::default();
    check_encryption(facts, &mut findings);
    check_requests(facts, &mut findings);
    check_subjects(facts, &mut findings);
    check_public(facts, &mut findings);
    if let Some(authentication) = &facts.authentication {
        check_authentication(authentication, &mut findings);
    }
    fapi::check(facts, &mut findings);
    findings.into_list()
}

fn check_encryption(facts: &ClientSettings<'_>, findings: &mut Findings) {
    let pairs = [
        ("idTokenEncryptedResponseAlg", "idTokenEncryptedResponseEnc", facts.id_token_encryption),
        ("userinfoEncryptedResponseAlg", "userinfoEncryptedResponseEnc", facts.userinfo_encryption),
        (
            "introspectionEncryptedResponseAlg",
            "introspectionEncryptedResponseEnc",
            facts.introspection_encryption,
        ),
        ("requestObjectEncryptionAlg", "requestObjectEncryptionEnc", facts.request_object_encryption),
    ];
    for (alg_member, enc_member, Encryption { alg, enc }) in pairs {
        findings.require(
            alg.is_none_or(|alg| KEY_ENCRYPTION.contains(&alg)),
            alg_member,
            "Use RSA-OAEP-256, RSA-OAEP, ECDH-ES, ECDH-ES+A128KW or ECDH-ES+A256KW.",
        );
        findings.require(
            enc.is_none_or(|enc| CONTENT_ENCRYPTION.contains(&enc)),
            enc_member,
            "Use A128CBC-HS256, A256CBC-HS512, A128GCM or A256GCM.",
        );
        findings.require(
            alg.is_some() || enc.is_none(),
            enc_member,
            "Set the Alg that belongs to this Enc too.",
        );
    }
}

fn check_requests(facts: &ClientSettings<'_>, findings: &mut Findings) {
    let is_asymmetric = |name| Algorithm::named(name).is_some_and(|algorithm| !algorithm.is_symmetric());
    findings.require(
        facts.request_object_signing_alg.is_none_or(is_asymmetric),
        "requestObjectSigningAlg",
        "Use RS, PS or ES with 256, 384 or 512, or EdDSA.",
    );
    let types = facts.response_types();
    findings.require(
        types.iter().all(|name| ResponseType::named(name).is_some()),
        "allowedResponseTypes",
        "Use code, token, id_token, their combinations or none, with commas between them.",
    );
}

/// OpenID Connect Core 1.0, section 8.1.
fn check_subjects(facts: &ClientSettings<'_>, findings: &mut Findings) {
    let hosts: BTreeSet<String> = facts.redirect_uris.iter().filter_map(|uri| host_of(uri)).collect();
    findings.require(
        !facts.is_pairwise || facts.sector_identifier_uri.is_some() || hosts.len() <= 1,
        "sectorIdentifierUri",
        "Set it: the redirect URIs have several hosts, and pairwise subjects need one sector.",
    );
    findings.require(
        facts.sector_identifier_uri.is_none_or(|uri| has_scheme(uri, "https") && host_of(uri).is_some()),
        "sectorIdentifierUri",
        "Use an https URL.",
    );
}

/// A public client has no credentials (RFC 6749, section 2.1).
fn check_public(facts: &ClientSettings<'_>, findings: &mut Findings) {
    let method = facts.authentication.map(|authentication| authentication.method);
    // without a configuration there is no method
    findings.require(
        !facts.is_public || method.is_none_or(|method| method == Method::None),
        "tokenEndpointAuthMethod",
        "Use none: the client app is public.",
    );
    findings.require(
        facts.is_public || method != Some(Method::None),
        "tokenEndpointAuthMethod",
        "Use another method than none, or make the client app public.",
    );
    findings.require(
        !facts.is_public || !facts.allow_client_credential_login,
        "allowClientCredentialLogin",
        "Turn it off: a public client app has no credentials.",
    );
}

fn check_authentication(authentication: &Authentication<'_>, findings: &mut Findings) {
    findings.require(
        !authentication.require_dpop_nonce || authentication.dpop_bound_access_tokens,
        "requireDpopNonce",
        "Turn dpopBoundAccessTokens on too, or this off.",
    );
    let names = [
        ("tlsClientAuthSubjectDn", authentication.tls_client_auth_subject_dn),
        ("tlsClientAuthSanDns", authentication.tls_client_auth_san_dns),
        ("tlsClientAuthSanUri", authentication.tls_client_auth_san_uri),
        ("tlsClientAuthSanIp", authentication.tls_client_auth_san_ip),
        ("tlsClientAuthSanEmail", authentication.tls_client_auth_san_email),
    ];
    let set = || names.iter().filter(|(_, value)| value.is_some_and(|value| !value.is_empty()));
    // RFC 8705, section 2.1.2
    if authentication.method != Method::TlsClientAuth {
        set().for_each(|(member, _)| findings.add(member, "Leave it empty: only tls_client_auth uses it."));
    } else if set().count() == 0 {
        findings.add("tlsClientAuthSubjectDn", "Set this or one of tlsClientAuthSanDns, Uri, Ip and Email.");
    } else if set().count() > 1 {
        set().for_each(|(member, _)| findings.add(member, "Set exactly one of the tlsClientAuth members."));
    }
}
