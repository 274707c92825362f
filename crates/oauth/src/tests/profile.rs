//! The rules between the settings of a client app.

use crate::{
    Authentication, ClientSettings, Encryption, Method, SecurityProfile, findings,
    uri::{has_scheme, host_of},
};

fn members(facts: &ClientSettings<'_>) -> Vec<&'static str> {
    findings(facts).iter().map(|finding| finding.member).collect()
}

fn authentication(method: Method) -> Authentication<'static> {
    Authentication { method, ..Authentication::default() }
}

fn with(authentication: Authentication<'static>) -> ClientSettings<'static> {
    ClientSettings { authentication: Some(authentication), ..ClientSettings::default() }
}

#[test]
fn a_new_client_app_violates_no_rule() {
    assert_eq!(findings(&ClientSettings::default()), []);
    assert_eq!(findings(&with(Authentication::default())), []);
    assert_eq!(findings(&ClientSettings { is_public: true, ..ClientSettings::default() }), []);
    for method in Method::ALL {
        assert_eq!(Method::named(method.name()), Some(method));
    }
}

#[test]
fn rules_of_encryption() {
    type Set = for<'a> fn(&mut ClientSettings<'a>, Encryption<'a>);
    let fields: [(&str, &str, Set); 4] = [
        ("idTokenEncryptedResponseAlg", "idTokenEncryptedResponseEnc", |facts, pair| {
            facts.id_token_encryption = pair;
        }),
        ("userinfoEncryptedResponseAlg", "userinfoEncryptedResponseEnc", |facts, pair| {
            facts.userinfo_encryption = pair;
        }),
        ("introspectionEncryptedResponseAlg", "introspectionEncryptedResponseEnc", |facts, pair| {
            facts.introspection_encryption = pair;
        }),
        ("requestObjectEncryptionAlg", "requestObjectEncryptionEnc", |facts, pair| {
            facts.request_object_encryption = pair;
        }),
    ];
    for (alg_member, enc_member, set) in fields {
        for (alg, enc, violated) in [
            (None, None, &[][..]),
            (Some("ECDH-ES"), None, &[]),
            (Some("RSA-OAEP-256"), Some("A256GCM"), &[]),
            (None, Some("A256GCM"), &[enc_member]),
            (Some("RSA1_5"), None, &[alg_member]),
            (Some("A128KW"), Some("A128GCM"), &[alg_member]),
            (Some("ECDH-ES"), Some("A192GCM"), &[enc_member]),
        ] {
            let mut facts = ClientSettings::default();
            set(&mut facts, Encryption { alg, enc });
            assert_eq!(members(&facts), violated, "{alg:?} {enc:?}");
        }
    }
}

#[test]
fn rules_of_requests() {
    for (signing, is_valid) in
        [("ES512", true), ("EdDSA", true), ("none", false), ("HS256", false), ("", false)]
    {
        let facts = ClientSettings { request_object_signing_alg: Some(signing), ..ClientSettings::default() };
        assert_eq!(members(&facts).is_empty(), is_valid, "{signing}");
    }
    for (types, is_valid) in [
        ("code", true),
        ("", true),
        ("code, id_token code , none", true),
        ("token id_token code", true),
        ("code,code id_token token,code token,id_token,id_token token,token", true),
        ("password", false),
        ("code,code code", false),
        ("none code", false),
    ] {
        let facts = ClientSettings { allowed_response_types: types, ..ClientSettings::default() };
        assert_eq!(members(&facts).is_empty(), is_valid, "{types}");
    }
}

#[test]
fn rules_of_subjects() {
    let (one, two) =
        (["https://a.example/x", "https://A.example:8443/y"], ["https://a.example", "https://b.example"]);
    let sector = Some("https://sector.example/uris.json");
    for (is_pairwise, uris, sector, is_valid) in [
        (true, &one, None, true),
        (true, &two, None, false),
        (true, &two, sector, true),
        (false, &two, None, true),
        (true, &two, Some("http://sector.example"), false),
        (false, &one, Some("sector"), false),
        (false, &one, Some("https:///"), false),
    ] {
        let facts = ClientSettings {
            is_pairwise,
            redirect_uris: uris,
            sector_identifier_uri: sector,
            ..ClientSettings::default()
        };
        assert_eq!(
            members(&facts),
            if is_valid { vec![] } else { vec!["sectorIdentifierUri"] },
            "{uris:?} {sector:?}"
        );
    }
}

#[test]
fn only_public_clients_use_the_method_none() {
    for (is_public, method, credentials, violated) in [
        (true, Some(Method::None), false, &[][..]),
        (true, None, false, &[]),
        (false, Some(Method::ClientSecretPost), true, &[]),
        (false, Some(Method::None), false, &["tokenEndpointAuthMethod"]),
        (true, Some(Method::ClientSecretBasic), false, &["tokenEndpointAuthMethod"]),
        (true, Some(Method::PrivateKeyJwt), false, &["tokenEndpointAuthMethod"]),
        (true, Some(Method::None), true, &["allowClientCredentialLogin"]),
        (true, None, true, &["allowClientCredentialLogin"]),
    ] {
        let facts = ClientSettings {
            is_public,
            allow_client_credential_login: credentials,
            authentication: method.map(authentication),
            ..ClientSettings::default()
        };
        assert_eq!(members(&facts), violated, "{is_public} {method:?} {credentials}");
    }
}

#[test]
fn rules_of_authentication() {
    let tls = authentication(Method::TlsClientAuth);
    let own = authentication(Method::SelfSignedTlsClientAuth);
    let basic = Authentication::default();
    let (dns, uri) = (Some("client.example"), Some("https://client.example"));
    for (authentication, violated) in [
        (Authentication { require_dpop_nonce: true, ..basic }, &["requireDpopNonce"][..]),
        (Authentication { require_dpop_nonce: true, dpop_bound_access_tokens: true, ..basic }, &[]),
        (tls, &["tlsClientAuthSubjectDn"]),
        (Authentication { tls_client_auth_san_dns: Some(""), ..tls }, &["tlsClientAuthSubjectDn"]),
        (Authentication { tls_client_auth_subject_dn: Some("CN=client"), ..tls }, &[]),
        (Authentication { tls_client_auth_san_dns: dns, ..tls }, &[]),
        (Authentication { tls_client_auth_san_uri: uri, ..tls }, &[]),
        (Authentication { tls_client_auth_san_ip: Some("::1"), ..tls }, &[]),
        (Authentication { tls_client_auth_san_email: Some("a@b.example"), ..tls }, &[]),
        (
            Authentication { tls_client_auth_san_dns: dns, tls_client_auth_san_uri: uri, ..tls },
            &["tlsClientAuthSanDns", "tlsClientAuthSanUri"],
        ),
        (own, &[]),
        (Authentication { tls_client_auth_san_dns: dns, ..own }, &["tlsClientAuthSanDns"]),
        (Authentication { tls_client_auth_subject_dn: dns, ..basic }, &["tlsClientAuthSubjectDn"]),
    ] {
        assert_eq!(members(&with(authentication)), violated, "{authentication:?}");
    }
}

/// A client app that conforms to a profile.
fn conforming(profile: SecurityProfile) -> ClientSettings<'static> {
    let is_fapi_1 = profile == SecurityProfile::Fapi1Advanced;
    let bound = Authentication {
        require_certificate_bound_access_tokens: is_fapi_1,
        dpop_bound_access_tokens: !is_fapi_1,
        ..authentication(Method::PrivateKeyJwt)
    };
    ClientSettings {
        security_profile: profile,
        require_pushed_authorization_requests: !is_fapi_1,
        request_object_signing_alg: Some("PS256"),
        redirect_uris: &["https://client.example/callback"],
        ..with(bound)
    }
}

type Change = fn(&mut ClientSettings<'_>);

fn change_method(facts: &mut ClientSettings<'_>, method: Method) {
    facts.authentication = facts.authentication.map(|before| Authentication { method, ..before });
}

fn check(profile: SecurityProfile, changes: &[(&[&str], Change)]) {
    assert_eq!(findings(&conforming(profile)), [], "{profile:?}");
    for (number, (violated, change)) in changes.iter().enumerate() {
        let mut facts = conforming(profile);
        change(&mut facts);
        assert_eq!(members(&facts), *violated, "{profile:?} {number}");
    }
}

const COMMON: [(&[&str], Change); 9] = [
    (&["tokenEndpointAuthMethod"], |facts| change_method(facts, Method::ClientSecretBasic)),
    (&["tokenEndpointAuthMethod"], |facts| change_method(facts, Method::ClientSecretPost)),
    (&["tokenEndpointAuthMethod"], |facts| change_method(facts, Method::ClientSecretJwt)),
    (&[], |facts| change_method(facts, Method::SelfSignedTlsClientAuth)),
    (&["isPublic", "tokenEndpointAuthMethod"], |facts| {
        facts.is_public = true;
        change_method(facts, Method::None);
    }),
    (&["clientAppRedirectUris"], |facts| facts.redirect_uris = &["http://client.example/"]),
    (&["clientAppRedirectUris"], |facts| facts.redirect_uris = &["http://127.0.0.1/"]),
    (&["clientAppRedirectUris"], |facts| {
        facts.is_native_application = true;
        facts.redirect_uris = &["http://127.0.0.1.example/"];
    }),
    (&["requestObjectSigningAlg"], |facts| facts.request_object_signing_alg = Some("RS256")),
];

#[test]
fn rules_of_fapi_1_advanced() {
    let profile = SecurityProfile::Fapi1Advanced;
    check(profile, &COMMON);
    check(
        profile,
        &[
            (&["clientAppRedirectUris"], |facts| {
                facts.is_native_application = true;
                facts.redirect_uris = &["http://127.0.0.1:9/"];
            }),
            (&["requestObjectSigningAlg"], |facts| facts.request_object_signing_alg = None),
            (&["requestObjectSigningAlg"], |facts| facts.request_object_signing_alg = Some("EdDSA")),
            (&[], |facts| facts.allowed_response_types = "id_token code,code"),
            (&["allowedResponseTypes"], |facts| facts.allowed_response_types = "code id_token token"),
            (&["requireCertificateBoundAccessTokens"], |facts| {
                let bound = Authentication {
                    dpop_bound_access_tokens: true,
                    ..authentication(Method::PrivateKeyJwt)
                };
                facts.authentication = Some(bound);
            }),
            (&["tokenEndpointAuthMethod", "requireCertificateBoundAccessTokens"], |facts| {
                facts.authentication = None;
            }),
        ],
    );
}

const FAPI_2: [(&[&str], Change); 7] = [
    (&[], |facts| {
        facts.is_native_application = true;
        facts.redirect_uris = &["http://127.0.0.1:9/", "http://[::1]/", "org.example:/callback"];
    }),
    (&["requirePushedAuthorizationRequests"], |facts| facts.require_pushed_authorization_requests = false),
    (&["allowedResponseTypes"], |facts| facts.allowed_response_types = "code,code id_token"),
    (&["dpopBoundAccessTokens"], |facts| {
        facts.authentication = Some(authentication(Method::PrivateKeyJwt));
    }),
    (&[], |facts| {
        let bound = Authentication {
            require_certificate_bound_access_tokens: true,
            tls_client_auth_san_dns: Some("client.example"),
            ..authentication(Method::TlsClientAuth)
        };
        facts.authentication = Some(bound);
    }),
    (&["tokenEndpointAuthMethod", "dpopBoundAccessTokens"], |facts| facts.authentication = None),
    (&[], |facts| facts.request_object_signing_alg = Some("EdDSA")),
];

#[test]
fn rules_of_fapi_2_security_profile() {
    check(SecurityProfile::Fapi2SecurityProfile, &COMMON);
    check(SecurityProfile::Fapi2SecurityProfile, &FAPI_2);
    check(SecurityProfile::Fapi2SecurityProfile, &[(&[], |facts| facts.request_object_signing_alg = None)]);
}

#[test]
fn rules_of_fapi_2_message_signing() {
    let profile = SecurityProfile::Fapi2MessageSigning;
    check(profile, &COMMON);
    check(profile, &FAPI_2);
    check(profile, &[(&["requestObjectSigningAlg"], |facts| facts.request_object_signing_alg = None)]);
}

#[test]
fn hosts_and_schemes_are_parsed() {
    for (uri, host) in [
        ("https://a@B.example:1/c?d", Some("b.example")),
        ("http://[::1]:80/", Some("::1")),
        ("https://a.example?b", Some("a.example")),
        ("https:///a", None),
        ("org.example:/callback", None),
        ("", None),
    ] {
        assert_eq!(host_of(uri).as_deref(), host, "{uri}");
    }
    assert!(has_scheme("HTTPS://a", "https") && !has_scheme("https", "https"));
}
