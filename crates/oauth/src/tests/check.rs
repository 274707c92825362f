//! Validation of authorization requests for client apps.

use super::request_parameters;
use crate::{
    Authentication, AuthorizationRequest, CheckedRequest, ClientSettings, ErrorCode, ProtocolError,
    RequestSecurity, ResponseTarget, ResponseType, STANDARD_SCOPES, Scope, SecurityProfile, SignInFacts,
    check_request, grantable_scope,
};

const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const ALL_TYPES: &str =
    "code,code id_token,code id_token token,code token,id_token,id_token token,token,none";
const UNPROTECTED: RequestSecurity =
    RequestSecurity { is_pkce_required: false, is_pushed: false, is_signed: false };
const PUSHED: RequestSecurity = RequestSecurity { is_pushed: true, ..UNPROTECTED };
const PUSHED_AND_SIGNED: RequestSecurity = RequestSecurity { is_signed: true, ..PUSHED };

fn facts() -> SignInFacts<'static> {
    facts_of(&ClientSettings::default())
}

fn facts_of(client: &ClientSettings<'static>) -> SignInFacts<'static> {
    SignInFacts {
        client: ClientSettings { allowed_response_types: ALL_TYPES, ..*client },
        allow_user_login: true,
        scope_filter_enabled: false,
        has_groups: true,
        scopes: &["read", "write"],
    }
}

fn check(
    changes: &[(&str, &str)],
    facts: &SignInFacts<'_>,
    security: RequestSecurity,
) -> Result<CheckedRequest, ProtocolError> {
    let parameters = request_parameters(changes);
    let target = ResponseTarget::read(&parameters).unwrap();
    check_request(AuthorizationRequest::read(&target, &parameters).unwrap(), facts, security)
}

/// Checks a request with the parameters that all response types need.
fn check_type(
    response_type: ResponseType,
    facts: &SignInFacts<'_>,
    security: RequestSecurity,
) -> Option<ErrorCode> {
    let requested = [
        ("response_type", response_type.name()),
        ("nonce", "n"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    check(&requested, facts, security).err().map(|refusal| refusal.code)
}

#[test]
fn a_plain_request_passes() {
    let checked = check(&[], &facts(), UNPROTECTED).unwrap();
    assert_eq!(checked.scope.to_string(), "openid email");
    assert!(checked.is_openid());
    assert_eq!(checked.request.state.as_deref(), Some("a state"));
}

#[test]
fn only_allowed_response_types_pass() {
    for allowed in ResponseType::ALL {
        let facts = SignInFacts {
            client: ClientSettings { allowed_response_types: allowed.name(), ..ClientSettings::default() },
            ..facts()
        };
        for requested in ResponseType::ALL {
            let refused = (requested != allowed).then_some(ErrorCode::UnauthorizedClient);
            assert_eq!(check_type(requested, &facts, UNPROTECTED), refused, "{requested:?} {allowed:?}");
        }
    }
    // words in any order, also in what is allowed
    let client =
        ClientSettings { allowed_response_types: " token id_token  code ,none", ..ClientSettings::default() };
    let facts = SignInFacts { client, ..facts() };
    let requested = [("response_type", "id_token code token"), ("nonce", "n")];
    assert!(check(&requested, &facts, UNPROTECTED).is_ok());
    assert!(check(&[("response_type", "none")], &facts, UNPROTECTED).is_ok());
    assert_eq!(check(&[], &facts, UNPROTECTED).unwrap_err().code, ErrorCode::UnauthorizedClient);
}

#[test]
fn sign_in_requires_allow_user_login() {
    let facts = SignInFacts { allow_user_login: false, ..facts() };
    for requested in ResponseType::ALL {
        assert_eq!(check_type(requested, &facts, UNPROTECTED), Some(ErrorCode::UnauthorizedClient));
    }
}

#[test]
fn a_token_in_the_response_is_rejected_if_bound_or_under_a_profile() {
    let bound = |is_by_key: bool| {
        Some(Authentication {
            dpop_bound_access_tokens: is_by_key,
            require_certificate_bound_access_tokens: !is_by_key,
            ..Authentication::default()
        })
    };
    for is_by_key in [true, false] {
        let facts =
            facts_of(&ClientSettings { authentication: bound(is_by_key), ..ClientSettings::default() });
        for requested in ResponseType::ALL {
            let refused = requested.token.then_some(ErrorCode::UnauthorizedClient);
            assert_eq!(check_type(requested, &facts, UNPROTECTED), refused, "{requested:?}");
        }
    }
    for security_profile in [
        SecurityProfile::Fapi1Advanced,
        SecurityProfile::Fapi2SecurityProfile,
        SecurityProfile::Fapi2MessageSigning,
    ] {
        let facts = facts_of(&ClientSettings { security_profile, ..ClientSettings::default() });
        for requested in ResponseType::ALL.into_iter().filter(|requested| requested.token) {
            assert_eq!(check_type(requested, &facts, PUSHED_AND_SIGNED), Some(ErrorCode::UnauthorizedClient));
        }
    }
}

#[test]
fn nonce_is_required_with_an_id_token_in_the_response() {
    for requested in ResponseType::ALL {
        let refused = check(&[("response_type", requested.name())], &facts(), UNPROTECTED).err();
        assert_eq!(
            refused.map(|refusal| refusal.code),
            requested.id_token.then_some(ErrorCode::InvalidRequest)
        );
        assert_eq!(check_type(requested, &facts(), UNPROTECTED), None);
    }
}

#[test]
fn without_openid_it_is_plain_oauth() {
    let checked = check(&[("scope", "read")], &facts(), UNPROTECTED).unwrap();
    assert!(!checked.is_openid());
    let checked = check(&[("scope", "")], &facts(), UNPROTECTED).unwrap();
    assert!(!checked.is_openid() && checked.scope.is_empty());
    for response_type in ["id_token", "code id_token", "id_token token", "code id_token token"] {
        for scope in ["", "read"] {
            let requested = [("response_type", response_type), ("nonce", "n"), ("scope", scope)];
            assert_eq!(check(&requested, &facts(), UNPROTECTED).unwrap_err().code, ErrorCode::InvalidRequest);
        }
    }
}

#[test]
fn pkce_is_required_by_settings_and_profiles() {
    let default = ClientSettings::default();
    let fapi_2 = SecurityProfile::Fapi2SecurityProfile;
    let fapi_1 = SecurityProfile::Fapi1Advanced;
    let required = RequestSecurity { is_pkce_required: true, ..UNPROTECTED };
    for (client, security, is_required) in [
        (default, UNPROTECTED, false),
        (default, required, true),
        (ClientSettings { is_public: true, ..default }, UNPROTECTED, true),
        (ClientSettings { is_native_application: true, ..default }, UNPROTECTED, true),
        (ClientSettings { security_profile: fapi_2, ..default }, PUSHED, true),
        (
            ClientSettings { security_profile: SecurityProfile::Fapi2MessageSigning, ..default },
            PUSHED_AND_SIGNED,
            true,
        ),
        (
            ClientSettings { security_profile: fapi_1, ..default },
            RequestSecurity { is_signed: true, ..UNPROTECTED },
            false,
        ),
        (ClientSettings { security_profile: fapi_1, ..default }, PUSHED_AND_SIGNED, true),
    ] {
        let without = check(&[("response_mode", "jwt")], &facts_of(&client), security);
        assert_eq!(without.is_err(), is_required, "{client:?} {security:?}");
        assert!(without.is_ok_and(|checked| checked.is_openid()) || is_required);
        let requested =
            [("response_mode", "jwt"), ("code_challenge", CHALLENGE), ("code_challenge_method", "S256")];
        assert!(check(&requested, &facts_of(&client), security).is_ok(), "{client:?} {security:?}");
    }
    // without a code there is no redemption
    for response_type in ["id_token", "token", "id_token token", "none"] {
        assert!(check(&[("response_type", response_type), ("nonce", "n")], &facts(), required).is_ok());
    }
    for response_type in ["code id_token", "code token", "code id_token token"] {
        let refused = check(&[("response_type", response_type), ("nonce", "n")], &facts(), required);
        assert_eq!(refused.unwrap_err().code, ErrorCode::InvalidRequest);
    }
}

#[test]
fn profiles_are_enforced_for_requests() {
    let of = |security_profile| facts_of(&ClientSettings { security_profile, ..ClientSettings::default() });
    let signed = RequestSecurity { is_signed: true, ..UNPROTECTED };
    for (profile, security, mode, response_type, refused) in [
        (SecurityProfile::Fapi1Advanced, signed, "fragment", "code id_token", None),
        (SecurityProfile::Fapi1Advanced, signed, "jwt", "code", None),
        (SecurityProfile::Fapi1Advanced, signed, "query", "code", Some(ErrorCode::InvalidRequest)),
        (SecurityProfile::Fapi1Advanced, UNPROTECTED, "jwt", "code", Some(ErrorCode::InvalidRequest)),
        (SecurityProfile::Fapi1Advanced, signed, "fragment", "id_token", Some(ErrorCode::UnauthorizedClient)),
        (SecurityProfile::Fapi1Advanced, signed, "jwt", "none", Some(ErrorCode::UnauthorizedClient)),
        (SecurityProfile::Fapi2SecurityProfile, PUSHED, "query", "code", None),
        (
            SecurityProfile::Fapi2SecurityProfile,
            UNPROTECTED,
            "query",
            "code",
            Some(ErrorCode::InvalidRequest),
        ),
        (
            SecurityProfile::Fapi2SecurityProfile,
            PUSHED,
            "fragment",
            "code id_token",
            Some(ErrorCode::UnauthorizedClient),
        ),
        (SecurityProfile::Fapi2MessageSigning, PUSHED_AND_SIGNED, "query", "code", None),
        (SecurityProfile::Fapi2MessageSigning, PUSHED, "query", "code", Some(ErrorCode::InvalidRequest)),
        (SecurityProfile::Fapi2MessageSigning, signed, "query", "code", Some(ErrorCode::InvalidRequest)),
    ] {
        let requested = [
            ("response_type", response_type),
            ("response_mode", mode),
            ("nonce", "n"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        let error = check(&requested, &of(profile), security).err().map(|refusal| refusal.code);
        assert_eq!(error, refused, "{profile:?} {security:?} {mode} {response_type}");
    }
    let client = ClientSettings { require_pushed_authorization_requests: true, ..ClientSettings::default() };
    assert_eq!(check(&[], &facts_of(&client), UNPROTECTED).unwrap_err().code, ErrorCode::InvalidRequest);
    assert!(check(&[], &facts_of(&client), PUSHED).is_ok());
}

#[test]
fn scopes_are_standard_or_of_the_client_app() {
    let without_groups = SignInFacts { has_groups: false, ..facts() };
    let filtered = SignInFacts { scope_filter_enabled: true, scopes: &["read", "email"], ..facts() };
    for (facts, requested, granted) in [
        (
            &facts(),
            "openid profile email phone groups offline_access",
            Some("openid profile email phone groups offline_access"),
        ),
        (&facts(), "openid read write", Some("openid read write")),
        // words of other client apps are dropped
        (&facts(), "openid foreign read", Some("openid read")),
        (&facts(), "foreign", None),
        (&facts(), "OpenID", None),
        (&without_groups, "openid profile groups", Some("openid profile")),
        (&without_groups, "groups", None),
        (&filtered, "openid read email", Some("openid read email")),
        (&filtered, "openid", Some("openid")),
        (&filtered, "openid profile", None),
        (&filtered, "openid offline_access", None),
        (&filtered, "openid foreign", None),
    ] {
        let scope = grantable_scope(Some(&Scope::parse(requested).unwrap()), facts);
        match (&scope, granted) {
            (Ok(scope), Some(granted)) => assert_eq!(scope.to_string(), granted),
            (Err(refusal), None) => assert_eq!(refusal.code, ErrorCode::InvalidScope),
            _ => panic!("{requested}: {scope:?}"),
        }
        let checked = check(&[("scope", requested)], facts, UNPROTECTED);
        assert_eq!(checked.map(|checked| checked.scope), scope);
    }
    assert!(grantable_scope(None, &filtered).unwrap().is_empty());
    assert!(STANDARD_SCOPES.iter().all(|word| Scope::parse(word).is_ok()));
}

#[test]
fn offline_access_requires_a_code() {
    for requested in ResponseType::ALL {
        let changes =
            [("response_type", requested.name()), ("nonce", "n"), ("scope", "openid offline_access")];
        let checked = check(&changes, &facts(), UNPROTECTED).unwrap();
        assert_eq!(checked.scope.has("offline_access"), requested.code, "{requested:?}");
    }
}
