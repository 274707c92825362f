//! Settings, and whole rows, that are stored as documented and that this release does not serve. Their use is refused: an answer that
//! is less private than its setting would not be noticed. The sentence of a declaration is told where the use is refused, and by
//! `chancery check-upgrade`; the console shows what is declared here with a badge.

use crate::{ClientFacts, Code, Refusal, SecurityProfile, profile::response_types};

/// Where a setting is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The authorization endpoint, and device authorization.
    Authorization,
    /// An authorization request that asks for it: another response type, or by a request object (RFC 9101).
    WhenAsked,
    /// All tokens for a person, and the claims about the person.
    Person,
    /// Every access token.
    AccessToken,
    /// The UserInfo endpoint.
    UserInfo,
    /// The introspection endpoint, asked by the client app.
    Introspection,
}

/// A setting that is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// The member, as it is named on the wire.
    pub member: &'static str,
    /// What is refused.
    pub used_at: Use,
    /// Why, for the developer of the client app.
    pub detail: &'static str,
}

type IsSet = fn(&ClientFacts<'_>) -> bool;

const UNSERVED: [(&str, Use, IsSet, &str); 10] = [
    (
        "subjectType",
        Use::Person,
        |facts| facts.is_pairwise,
        "The client app has subjectType Pairwise, which this server does not support.",
    ),
    (
        "idTokenEncryptedResponseAlg",
        Use::Person,
        |facts| facts.id_token_encryption.alg.is_some(),
        "The client app has idTokenEncryptedResponseAlg, and this server does not encrypt ID tokens.",
    ),
    (
        "accessTokenEncryptionEnabledOverride",
        Use::AccessToken,
        |facts| facts.encrypts_access_tokens,
        "The client app has accessTokenEncryptionEnabledOverride, and this server does not encrypt access tokens.",
    ),
    (
        "userinfoEncryptedResponseAlg",
        Use::UserInfo,
        |facts| facts.userinfo_encryption.alg.is_some(),
        "The client app has userinfoEncryptedResponseAlg, and this server does not encrypt UserInfo responses.",
    ),
    (
        "introspectionEncryptedResponseAlg",
        Use::Introspection,
        |facts| facts.introspection_encryption.alg.is_some(),
        "The client app has introspectionEncryptedResponseAlg, and this server does not encrypt introspection responses.",
    ),
    (
        "requirePushedAuthorizationRequests",
        Use::Authorization,
        |facts| facts.require_pushed_authorization_requests,
        "The client app has requirePushedAuthorizationRequests, and this server does not support pushed authorization requests.",
    ),
    (
        "securityProfile",
        Use::Authorization,
        |facts| facts.security_profile != SecurityProfile::None,
        "The client app has a FAPI profile, and this server does not support its authorization requests.",
    ),
    (
        "allowedResponseTypes",
        Use::WhenAsked,
        |facts| response_types(facts).iter().any(|name| !matches!(name.as_str(), "code" | "none")),
        "The client app has response types other than code and none, which this server does not support.",
    ),
    (
        "requestObjectSigningAlg",
        Use::WhenAsked,
        |facts| facts.request_object_signing_alg.is_some(),
        "The client app has requestObjectSigningAlg, and this server does not support request objects.",
    ),
    (
        "requestObjectEncryptionAlg",
        Use::WhenAsked,
        |facts| facts.request_object_encryption.alg.is_some(),
        "The client app has requestObjectEncryptionAlg, and this server does not support request objects.",
    ),
];

/// The settings of a client app that are not served, in a fixed order.
pub fn unserved(facts: &ClientFacts<'_>) -> Vec<Unserved> {
    let set = UNSERVED.iter().filter(|(_, _, is_set, _)| is_set(facts));
    set.map(|(member, used_at, _, detail)| Unserved { member, used_at: *used_at, detail }).collect()
}

/// Refuses a use of settings that are not served.
///
/// # Errors
/// `unauthorized_client`, since an administrator must change the client app.
pub fn check_use(unserved: &[Unserved], used_at: Use) -> Result<(), Refusal> {
    let found = unserved.iter().find(|one| one.used_at == used_at);
    found.map_or(Ok(()), |found| Err(Refusal::new(Code::UnauthorizedClient, found.detail)))
}

/// Rows of a resource that are stored as documented and not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnservedRows {
    /// The resource.
    pub resource: &'static str,
    /// The member that is not served, as it is named on the wire.
    pub member: &'static str,
    /// What is refused, and why.
    pub detail: &'static str,
}

/// Identities of client apps at other issuers.
pub const FEDERATED_IDENTITIES: UnservedRows = UnservedRows {
    resource: "ClientAppFederatedIdentity",
    member: "issuer",
    detail: "The assertion must have the id of the client app as iss and sub: this server does not support tokens of other issuers \
             (federated identities).",
};

/// Addresses of request objects (RFC 9101).
pub const REQUEST_URIS: UnservedRows = UnservedRows {
    resource: "ClientAppRequestUri",
    member: "uri",
    detail: "This server does not support request_uri: authorization requests with one are refused.",
};

const UNSERVED_ROWS: [UnservedRows; 2] = [FEDERATED_IDENTITIES, REQUEST_URIS];

/// What of a resource's row is not served; `text_of` tells the text of a member.
pub fn unserved_row<'t>(
    resource: &str,
    text_of: impl Fn(&str) -> Option<&'t str>,
) -> Option<&'static UnservedRows> {
    let is_unserved = |rows: &&UnservedRows| rows.resource == resource && text_of(rows.member).is_some();
    UNSERVED_ROWS.iter().find(is_unserved)
}

#[cfg(test)]
mod tests {
    use super::unserved_row;

    #[test]
    fn rows_are_known_by_the_member_that_is_not_served() {
        assert!(unserved_row("ClientAppRequestUri", |_| Some("https://app.example/request.jwt")).is_some());
        assert!(unserved_row("ClientAppRequestUri", |_| None).is_none());
        assert!(unserved_row("IdpInstance", |_| Some("Facebook")).is_none());
    }
}
