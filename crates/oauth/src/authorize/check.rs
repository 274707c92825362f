//! Whether a client app may ask for what an authorization request asks for.

use super::request::AuthorizationRequest;
use crate::{
    ClientFacts, Code, Refusal, Scope, SecurityProfile,
    profile::response_types,
    scope::{GROUPS, OFFLINE_ACCESS, OPENID, STANDARD_SCOPES},
};

/// A client app that asks, as it is now.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignInFacts<'a> {
    /// Its members and its authentication configuration; keys and encryption are not looked at.
    pub client: ClientFacts<'a>,
    /// `allowUserLogin`
    pub allow_user_login: bool,
    /// `scopeFilterEnabled`
    pub scope_filter_enabled: bool,
    /// `includeGroupsClaims`
    pub has_groups: bool,
    /// The keys of `clientAppScopes`.
    pub scopes: &'a [&'a str],
}

/// What the server demands of a request, and how the request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Whether the client app's `pkce`, or the tenant's PkceRequired, asks for PKCE. Where the tenant is not known yet, the
    /// strictest of those that may be it.
    pub is_pkce_required: bool,
    /// Whether the parameters were pushed (RFC 9126).
    pub is_pushed: bool,
    /// Whether the parameters are those of a signed request object (RFC 9101).
    pub is_signed: bool,
}

/// A request that the client app may make.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Checked {
    /// The request.
    pub request: AuthorizationRequest,
    /// The scope that can be granted: what was asked for without what is not the client app's. The answer names
    /// it where it differs (RFC 6749, section 3.3).
    pub scope: Scope,
}

impl Checked {
    /// Whether the request is one of OpenID Connect. Without `openid` it is plain OAuth, and there is no ID token.
    pub fn is_openid(&self) -> bool {
        self.scope.has(OPENID)
    }
}

/// Checks a request of a client app that is known, with a redirect URI of its own.
///
/// # Errors
/// To be told by redirect: `unauthorized_client`, `invalid_request` or `invalid_scope`.
pub fn check_request(
    request: AuthorizationRequest,
    facts: &SignInFacts<'_>,
    terms: Terms,
) -> Result<Checked, Refusal> {
    check_response_type(&request, facts)?;
    check_profile(&request, &facts.client, terms)?;
    check_openid(&request)?;
    check_challenge(&request, &facts.client, terms)?;
    let mut scope = grantable_scope(request.scope.as_ref(), facts)?;
    if !request.response_type.code {
        // no refresh token comes without a code (OpenID Connect Core 1.0, section 11)
        scope = scope.filter(|word| word != OFFLINE_ACCESS);
    }
    Ok(Checked { request, scope })
}

/// The part of a scope that a client app can be granted: its own words and the standard ones, of which a client
/// app with the filter has `openid` alone, and one that is not told groups does not have `groups`.
///
/// # Errors
/// `invalid_scope` where nothing is left, or the client app has the filter and something is left out.
pub fn grantable_scope(asked: Option<&Scope>, facts: &SignInFacts<'_>) -> Result<Scope, Refusal> {
    let Some(asked) = asked else { return Ok(Scope::default()) };
    let is_standard = |word: &str| {
        word == OPENID
            || (!facts.scope_filter_enabled
                && STANDARD_SCOPES.contains(&word)
                && (word != GROUPS || facts.has_groups))
    };
    let granted = asked.filter(|word| is_standard(word) || facts.scopes.contains(&word));
    if granted.is_empty() || (facts.scope_filter_enabled && granted != *asked) {
        Err(Refusal::new(Code::InvalidScope, "The client app does not have this scope."))
    } else {
        Ok(granted)
    }
}

/// Whether a client app can be granted this word of a scope.
pub fn may_have(word: &str, facts: &SignInFacts<'_>) -> bool {
    let Ok(asked) = Scope::parse(word) else { return false };
    grantable_scope(Some(&asked), facts).is_ok_and(|granted| granted.has(word))
}

/// All that a client app can be granted, as far as one scope holds it.
pub fn whole_scope(facts: &SignInFacts<'_>) -> Scope {
    let all = STANDARD_SCOPES.into_iter().chain(facts.scopes.iter().copied());
    Scope::of_first(all.filter(|word| may_have(word, facts)))
}

fn check_response_type(request: &AuthorizationRequest, facts: &SignInFacts<'_>) -> Result<(), Refusal> {
    let asked = request.response_type;
    if !facts.allow_user_login {
        return Err(unauthorized("Nobody signs in to this client app."));
    }
    if !response_types(&facts.client).iter().any(|name| name == asked.name()) {
        return Err(unauthorized("The client app may not use this response_type."));
    }
    let authentication = facts.client.authentication.unwrap_or_default();
    let is_bound =
        authentication.dpop_bound_access_tokens || authentication.require_certificate_bound_access_tokens;
    // nothing can bind a token that a browser hands over
    if asked.token && (is_bound || facts.client.security_profile != SecurityProfile::None) {
        return Err(unauthorized("The client app gets access tokens from the token endpoint alone."));
    }
    Ok(())
}

/// FAPI 1.0 Advanced, section 5.2.2; FAPI 2.0 Security Profile, section 5.3.2.2; FAPI 2.0 Message Signing, section
/// 5.3.1; RFC 9126, section 5.
fn check_profile(
    request: &AuthorizationRequest,
    client: &ClientFacts<'_>,
    terms: Terms,
) -> Result<(), Refusal> {
    use SecurityProfile::{Fapi1Advanced, Fapi2MessageSigning, Fapi2SecurityProfile};
    let profile = client.security_profile;
    let is_second = matches!(profile, Fapi2SecurityProfile | Fapi2MessageSigning);
    let asked = request.response_type.name();
    if (is_second && asked != "code")
        || (profile == Fapi1Advanced && !matches!(asked, "code" | "code id_token"))
    {
        return Err(unauthorized("The profile of the client app does not allow this response_type."));
    }
    if profile == Fapi1Advanced && asked == "code" && !request.response_mode.is_signed {
        return Err(invalid(
            "The profile of the client app asks for code id_token, or a signed response_mode.",
        ));
    }
    if (client.require_pushed_authorization_requests || is_second) && !terms.is_pushed {
        return Err(invalid("The client app must push its requests."));
    }
    if matches!(profile, Fapi1Advanced | Fapi2MessageSigning) && !terms.is_signed {
        return Err(invalid("The client app must sign its requests."));
    }
    Ok(())
}

/// OpenID Connect Core 1.0, sections 3.2.2.1 and 3.3.2.11.
fn check_openid(request: &AuthorizationRequest) -> Result<(), Refusal> {
    if !request.response_type.id_token {
        return Ok(());
    }
    if !request.scope.as_ref().is_some_and(|scope| scope.has(OPENID)) {
        return Err(invalid("An ID token needs the scope openid."));
    }
    // else an ID token of another answer could be put in
    if request.nonce.is_none() { Err(invalid("nonce is missing.")) } else { Ok(()) }
}

/// RFC 9700, section 2.1.1; FAPI 1.0 Advanced, section 5.2.2, item 18; FAPI 2.0 Security Profile, section 5.3.2.2.
fn check_challenge(
    request: &AuthorizationRequest,
    client: &ClientFacts<'_>,
    terms: Terms,
) -> Result<(), Refusal> {
    use SecurityProfile::{Fapi1Advanced, Fapi2MessageSigning, Fapi2SecurityProfile};
    let by_profile = match client.security_profile {
        SecurityProfile::None => false,
        Fapi1Advanced => terms.is_pushed,
        Fapi2SecurityProfile | Fapi2MessageSigning => true,
    };
    let is_required =
        client.is_public || client.is_native_application || by_profile || terms.is_pkce_required;
    if request.response_type.code && is_required && request.challenge.is_none() {
        Err(invalid("code_challenge is missing: use PKCE with S256."))
    } else {
        Ok(())
    }
}

const fn unauthorized(detail: &'static str) -> Refusal {
    Refusal::new(Code::UnauthorizedClient, detail)
}

const fn invalid(detail: &'static str) -> Refusal {
    Refusal::new(Code::InvalidRequest, detail)
}
