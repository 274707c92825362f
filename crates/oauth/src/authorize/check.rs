//! Validation of an authorization request for a client app.

use super::request::AuthorizationRequest;
use crate::{
    ClientSettings, ErrorCode, ProtocolError, Scope, SecurityProfile,
    scope::{GROUPS, OFFLINE_ACCESS, OPENID, STANDARD_SCOPES},
};

/// The current settings of the client app of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignInFacts<'a> {
    /// The settings and the authentication configuration; keys and encryption are ignored.
    pub client: ClientSettings<'a>,
    /// `allowUserLogin`
    pub allow_user_login: bool,
    /// `scopeFilterEnabled`
    pub scope_filter_enabled: bool,
    /// `includeGroupsClaims`
    pub has_groups: bool,
    /// The keys of `clientAppScopes`.
    pub scopes: &'a [&'a str],
}

/// The server's requirements on a request, and the protection of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSecurity {
    /// Whether the client app's `pkce`, or the tenant's PkceRequired, requires PKCE. While the tenant is unknown, the
    /// strictest of the possible tenants counts.
    pub is_pkce_required: bool,
    /// Whether the parameters were pushed (RFC 9126).
    pub is_pushed: bool,
    /// Whether the parameters come from a signed request object (RFC 9101).
    pub is_signed: bool,
}

/// A validated request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CheckedRequest {
    /// The request.
    pub request: AuthorizationRequest,
    /// The scope that can be granted: the requested one without words that the client app does not have. A response names
    /// it if it differs (RFC 6749, section 3.3).
    pub scope: Scope,
}

impl CheckedRequest {
    /// Whether it is an OpenID Connect request. Without `openid` it is plain OAuth, and no ID token is issued.
    pub fn is_openid(&self) -> bool {
        self.scope.has(OPENID)
    }
}

/// Validates a request with a verified client app and redirect URI.
///
/// # Errors
/// To be sent by redirect: `unauthorized_client`, `invalid_request` or `invalid_scope`.
pub fn check_request(
    request: AuthorizationRequest,
    facts: &SignInFacts<'_>,
    security: RequestSecurity,
) -> Result<CheckedRequest, ProtocolError> {
    check_response_type(&request, facts)?;
    check_profile(&request, &facts.client, security)?;
    check_openid(&request)?;
    check_challenge(&request, &facts.client, security)?;
    let mut scope = grantable_scope(request.scope.as_ref(), facts)?;
    if !request.response_type.code {
        // a refresh token requires a code (OpenID Connect Core 1.0, section 11)
        scope = scope.filter(|word| word != OFFLINE_ACCESS);
    }
    Ok(CheckedRequest { request, scope })
}

/// The part of a scope that a client app can be granted: its own words and the standard ones. Of the standard ones, a client
/// app with the scope filter has only `openid`, and one without groups claims does not have `groups`.
///
/// # Errors
/// `invalid_scope`: no word can be granted, or the client app has the scope filter and a word cannot be granted.
pub fn grantable_scope(requested: Option<&Scope>, facts: &SignInFacts<'_>) -> Result<Scope, ProtocolError> {
    let Some(requested) = requested else { return Ok(Scope::default()) };
    let is_standard = |word: &str| {
        word == OPENID
            || (!facts.scope_filter_enabled
                && STANDARD_SCOPES.contains(&word)
                && (word != GROUPS || facts.has_groups))
    };
    let granted = requested.filter(|word| is_standard(word) || facts.scopes.contains(&word));
    if granted.is_empty() || (facts.scope_filter_enabled && granted != *requested) {
        Err(ProtocolError::new(ErrorCode::InvalidScope, "The client app does not have this scope."))
    } else {
        Ok(granted)
    }
}

/// Whether a client app can be granted a scope word.
pub fn is_grantable(word: &str, facts: &SignInFacts<'_>) -> bool {
    let Ok(requested) = Scope::parse(word) else { return false };
    grantable_scope(Some(&requested), facts).is_ok_and(|granted| granted.has(word))
}

/// The maximum scope that a client app can be granted, up to the maximum size of a scope.
pub fn maximum_scope(facts: &SignInFacts<'_>) -> Scope {
    let all = STANDARD_SCOPES.into_iter().chain(facts.scopes.iter().copied());
    Scope::of_first(all.filter(|word| is_grantable(word, facts)))
}

fn check_response_type(request: &AuthorizationRequest, facts: &SignInFacts<'_>) -> Result<(), ProtocolError> {
    let response_type = request.response_type;
    if !facts.allow_user_login {
        return Err(unauthorized("Nobody signs in to this client app."));
    }
    if !facts.client.response_types().iter().any(|name| name == response_type.name()) {
        return Err(unauthorized("The client app may not use this response_type."));
    }
    let authentication = facts.client.authentication.unwrap_or_default();
    let is_bound =
        authentication.dpop_bound_access_tokens || authentication.require_certificate_bound_access_tokens;
    // a token in the authorization response cannot be bound
    if response_type.token && (is_bound || facts.client.security_profile != SecurityProfile::None) {
        return Err(unauthorized("The client app gets access tokens from the token endpoint alone."));
    }
    Ok(())
}

/// FAPI 1.0 Advanced, section 5.2.2; FAPI 2.0 Security Profile, section 5.3.2.2; FAPI 2.0 Message Signing, section
/// 5.3.1; RFC 9126, section 5.
fn check_profile(
    request: &AuthorizationRequest,
    client: &ClientSettings<'_>,
    security: RequestSecurity,
) -> Result<(), ProtocolError> {
    use SecurityProfile::{Fapi1Advanced, Fapi2MessageSigning, Fapi2SecurityProfile};
    let profile = client.security_profile;
    let is_fapi_2 = matches!(profile, Fapi2SecurityProfile | Fapi2MessageSigning);
    let response_type = request.response_type.name();
    if (is_fapi_2 && response_type != "code")
        || (profile == Fapi1Advanced && !matches!(response_type, "code" | "code id_token"))
    {
        return Err(unauthorized("The profile of the client app does not allow this response_type."));
    }
    if profile == Fapi1Advanced && response_type == "code" && !request.response_mode.is_signed {
        return Err(invalid(
            "The profile of the client app asks for code id_token, or a signed response_mode.",
        ));
    }
    if (client.require_pushed_authorization_requests || is_fapi_2) && !security.is_pushed {
        return Err(invalid("The client app must push its requests."));
    }
    if matches!(profile, Fapi1Advanced | Fapi2MessageSigning) && !security.is_signed {
        return Err(invalid("The client app must sign its requests."));
    }
    Ok(())
}

/// OpenID Connect Core 1.0, sections 3.2.2.1 and 3.3.2.11.
fn check_openid(request: &AuthorizationRequest) -> Result<(), ProtocolError> {
    if !request.response_type.id_token {
        return Ok(());
    }
    if !request.scope.as_ref().is_some_and(|scope| scope.has(OPENID)) {
        return Err(invalid("An ID token needs the scope openid."));
    }
    // without it, an ID token of another response could be injected
    if request.nonce.is_none() { Err(invalid("nonce is missing.")) } else { Ok(()) }
}

/// RFC 9700, section 2.1.1; FAPI 1.0 Advanced, section 5.2.2, item 18; FAPI 2.0 Security Profile, section 5.3.2.2.
fn check_challenge(
    request: &AuthorizationRequest,
    client: &ClientSettings<'_>,
    security: RequestSecurity,
) -> Result<(), ProtocolError> {
    use SecurityProfile::{Fapi1Advanced, Fapi2MessageSigning, Fapi2SecurityProfile};
    let is_required_by_profile = match client.security_profile {
        SecurityProfile::None => false,
        Fapi1Advanced => security.is_pushed,
        Fapi2SecurityProfile | Fapi2MessageSigning => true,
    };
    let is_required = client.is_public
        || client.is_native_application
        || is_required_by_profile
        || security.is_pkce_required;
    if request.response_type.code && is_required && request.challenge.is_none() {
        Err(invalid("code_challenge is missing: use PKCE with S256."))
    } else {
        Ok(())
    }
}

const fn unauthorized(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::UnauthorizedClient, detail)
}

const fn invalid(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidRequest, detail)
}
