//! What client apps may ask for, by section 4 of the specification of sign-in.

use super::asking;
use crate::{
    Addressing, Authentication, AuthorizationRequest, Checked, ClientFacts, Code, Refusal, ResponseType,
    STANDARD_SCOPES, Scope, SecurityProfile, SignInFacts, Terms, check_request, grantable_scope,
};

const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const ALL_TYPES: &str =
    "code,code id_token,code id_token token,code token,id_token,id_token token,token,none";
const LAX: Terms = Terms { is_pkce_required: false, is_pushed: false, is_signed: false };
const PUSHED: Terms = Terms { is_pushed: true, ..LAX };
const PUSHED_AND_SIGNED: Terms = Terms { is_signed: true, ..PUSHED };

fn facts() -> SignInFacts<'static> {
    with(&ClientFacts::default())
}

fn with(client: &ClientFacts<'static>) -> SignInFacts<'static> {
    SignInFacts {
        client: ClientFacts { allowed_response_types: ALL_TYPES, ..*client },
        allow_user_login: true,
        scope_filter_enabled: false,
        has_groups: true,
        scopes: &["read", "write"],
    }
}

fn check(changes: &[(&str, &str)], facts: &SignInFacts<'_>, terms: Terms) -> Result<Checked, Refusal> {
    let parameters = asking(changes);
    let addressing = Addressing::read(&parameters).unwrap();
    check_request(AuthorizationRequest::read(&addressing, &parameters).unwrap(), facts, terms)
}

/// Checks a request with everything that any response type needs.
fn check_type(response_type: ResponseType, facts: &SignInFacts<'_>, terms: Terms) -> Option<Code> {
    let asked = [
        ("response_type", response_type.name()),
        ("nonce", "n"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    check(&asked, facts, terms).err().map(|refusal| refusal.code)
}

#[test]
fn a_plain_request_passes() {
    let checked = check(&[], &facts(), LAX).unwrap();
    assert_eq!(checked.scope.to_string(), "openid email");
    assert!(checked.is_openid());
    assert_eq!(checked.request.state.as_deref(), Some("a state"));
}

#[test]
fn allowed_response_types_alone() {
    for allowed in ResponseType::ALL {
        let facts = SignInFacts {
            client: ClientFacts { allowed_response_types: allowed.name(), ..ClientFacts::default() },
            ..facts()
        };
        for asked in ResponseType::ALL {
            let refused = (asked != allowed).then_some(Code::UnauthorizedClient);
            assert_eq!(check_type(asked, &facts, LAX), refused, "{asked:?} {allowed:?}");
        }
    }
    // words in any order, also in what is allowed
    let client =
        ClientFacts { allowed_response_types: " token id_token  code ,none", ..ClientFacts::default() };
    let facts = SignInFacts { client, ..facts() };
    let asked = [("response_type", "id_token code token"), ("nonce", "n")];
    assert!(check(&asked, &facts, LAX).is_ok());
    assert!(check(&[("response_type", "none")], &facts, LAX).is_ok());
    assert_eq!(check(&[], &facts, LAX).unwrap_err().code, Code::UnauthorizedClient);
}

#[test]
fn nobody_signs_in_without_allow_user_login() {
    let facts = SignInFacts { allow_user_login: false, ..facts() };
    for asked in ResponseType::ALL {
        assert_eq!(check_type(asked, &facts, LAX), Some(Code::UnauthorizedClient));
    }
}

#[test]
fn access_tokens_in_the_answer_are_refused_where_they_are_bound_or_under_a_profile() {
    let bound = |is_by_key: bool| {
        Some(Authentication {
            dpop_bound_access_tokens: is_by_key,
            require_certificate_bound_access_tokens: !is_by_key,
            ..Authentication::default()
        })
    };
    for is_by_key in [true, false] {
        let facts = with(&ClientFacts { authentication: bound(is_by_key), ..ClientFacts::default() });
        for asked in ResponseType::ALL {
            let refused = asked.token.then_some(Code::UnauthorizedClient);
            assert_eq!(check_type(asked, &facts, LAX), refused, "{asked:?}");
        }
    }
    for security_profile in [
        SecurityProfile::Fapi1Advanced,
        SecurityProfile::Fapi2SecurityProfile,
        SecurityProfile::Fapi2MessageSigning,
    ] {
        let facts = with(&ClientFacts { security_profile, ..ClientFacts::default() });
        for asked in ResponseType::ALL.into_iter().filter(|asked| asked.token) {
            assert_eq!(check_type(asked, &facts, PUSHED_AND_SIGNED), Some(Code::UnauthorizedClient));
        }
    }
}

#[test]
fn nonce_is_required_with_an_id_token_in_the_answer() {
    for asked in ResponseType::ALL {
        let refused = check(&[("response_type", asked.name())], &facts(), LAX).err();
        assert_eq!(refused.map(|refusal| refusal.code), asked.id_token.then_some(Code::InvalidRequest));
        assert_eq!(check_type(asked, &facts(), LAX), None);
    }
}

#[test]
fn without_openid_it_is_plain_oauth() {
    let checked = check(&[("scope", "read")], &facts(), LAX).unwrap();
    assert!(!checked.is_openid());
    let checked = check(&[("scope", "")], &facts(), LAX).unwrap();
    assert!(!checked.is_openid() && checked.scope.is_empty());
    for response_type in ["id_token", "code id_token", "id_token token", "code id_token token"] {
        for scope in ["", "read"] {
            let asked = [("response_type", response_type), ("nonce", "n"), ("scope", scope)];
            assert_eq!(check(&asked, &facts(), LAX).unwrap_err().code, Code::InvalidRequest);
        }
    }
}

#[test]
fn pkce_is_required_of_whom_the_specification_says() {
    let default = ClientFacts::default();
    let second = SecurityProfile::Fapi2SecurityProfile;
    let first = SecurityProfile::Fapi1Advanced;
    let required = Terms { is_pkce_required: true, ..LAX };
    for (client, terms, is_required) in [
        (default, LAX, false),
        (default, required, true),
        (ClientFacts { is_public: true, ..default }, LAX, true),
        (ClientFacts { is_native_application: true, ..default }, LAX, true),
        (ClientFacts { security_profile: second, ..default }, PUSHED, true),
        (
            ClientFacts { security_profile: SecurityProfile::Fapi2MessageSigning, ..default },
            PUSHED_AND_SIGNED,
            true,
        ),
        (ClientFacts { security_profile: first, ..default }, Terms { is_signed: true, ..LAX }, false),
        (ClientFacts { security_profile: first, ..default }, PUSHED_AND_SIGNED, true),
    ] {
        let without = check(&[("response_mode", "jwt")], &with(&client), terms);
        assert_eq!(without.is_err(), is_required, "{client:?} {terms:?}");
        assert!(without.is_ok_and(|checked| checked.is_openid()) || is_required);
        let asked =
            [("response_mode", "jwt"), ("code_challenge", CHALLENGE), ("code_challenge_method", "S256")];
        assert!(check(&asked, &with(&client), terms).is_ok(), "{client:?} {terms:?}");
    }
    // only a code is redeemed
    for response_type in ["id_token", "token", "id_token token", "none"] {
        assert!(check(&[("response_type", response_type), ("nonce", "n")], &facts(), required).is_ok());
    }
    for response_type in ["code id_token", "code token", "code id_token token"] {
        let refused = check(&[("response_type", response_type), ("nonce", "n")], &facts(), required);
        assert_eq!(refused.unwrap_err().code, Code::InvalidRequest);
    }
}

#[test]
fn profiles_hold_at_run_time() {
    let of = |security_profile| with(&ClientFacts { security_profile, ..ClientFacts::default() });
    let signed = Terms { is_signed: true, ..LAX };
    for (profile, terms, mode, response_type, refused) in [
        (SecurityProfile::Fapi1Advanced, signed, "fragment", "code id_token", None),
        (SecurityProfile::Fapi1Advanced, signed, "jwt", "code", None),
        (SecurityProfile::Fapi1Advanced, signed, "query", "code", Some(Code::InvalidRequest)),
        (SecurityProfile::Fapi1Advanced, LAX, "jwt", "code", Some(Code::InvalidRequest)),
        (SecurityProfile::Fapi1Advanced, signed, "fragment", "id_token", Some(Code::UnauthorizedClient)),
        (SecurityProfile::Fapi1Advanced, signed, "jwt", "none", Some(Code::UnauthorizedClient)),
        (SecurityProfile::Fapi2SecurityProfile, PUSHED, "query", "code", None),
        (SecurityProfile::Fapi2SecurityProfile, LAX, "query", "code", Some(Code::InvalidRequest)),
        (
            SecurityProfile::Fapi2SecurityProfile,
            PUSHED,
            "fragment",
            "code id_token",
            Some(Code::UnauthorizedClient),
        ),
        (SecurityProfile::Fapi2MessageSigning, PUSHED_AND_SIGNED, "query", "code", None),
        (SecurityProfile::Fapi2MessageSigning, PUSHED, "query", "code", Some(Code::InvalidRequest)),
        (SecurityProfile::Fapi2MessageSigning, signed, "query", "code", Some(Code::InvalidRequest)),
    ] {
        let asked = [
            ("response_type", response_type),
            ("response_mode", mode),
            ("nonce", "n"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        let found = check(&asked, &of(profile), terms).err().map(|refusal| refusal.code);
        assert_eq!(found, refused, "{profile:?} {terms:?} {mode} {response_type}");
    }
    let client = ClientFacts { require_pushed_authorization_requests: true, ..ClientFacts::default() };
    assert_eq!(check(&[], &with(&client), LAX).unwrap_err().code, Code::InvalidRequest);
    assert!(check(&[], &with(&client), PUSHED).is_ok());
}

#[test]
fn scopes_are_standard_or_the_client_apps_own() {
    let without_groups = SignInFacts { has_groups: false, ..facts() };
    let filtered = SignInFacts { scope_filter_enabled: true, scopes: &["read", "email"], ..facts() };
    for (facts, asked, granted) in [
        (
            &facts(),
            "openid profile email phone groups offline_access",
            Some("openid profile email phone groups offline_access"),
        ),
        (&facts(), "openid read write", Some("openid read write")),
        // foreign ones are left out
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
        let scope = grantable_scope(Some(&Scope::parse(asked).unwrap()), facts);
        match (&scope, granted) {
            (Ok(scope), Some(granted)) => assert_eq!(scope.to_string(), granted),
            (Err(refusal), None) => assert_eq!(refusal.code, Code::InvalidScope),
            _ => panic!("{asked}: {scope:?}"),
        }
        let checked = check(&[("scope", asked)], facts, LAX);
        assert_eq!(checked.map(|checked| checked.scope), scope);
    }
    assert!(grantable_scope(None, &filtered).unwrap().is_empty());
    assert!(STANDARD_SCOPES.iter().all(|word| Scope::parse(word).is_ok()));
}

#[test]
fn offline_access_needs_a_code() {
    for asked in ResponseType::ALL {
        let changes = [("response_type", asked.name()), ("nonce", "n"), ("scope", "openid offline_access")];
        let checked = check(&changes, &facts(), LAX).unwrap();
        assert_eq!(checked.scope.has("offline_access"), asked.code, "{asked:?}");
    }
}
