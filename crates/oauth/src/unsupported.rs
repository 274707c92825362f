//! Settings and rows that are stored as documented and that this release does not support. Their use is rejected, because a response that
//! is less private than its setting would not be noticed. The error and `chancery check-upgrade` report the text of a declaration; the
//! console shows a badge.

use crate::{ClientSettings, ErrorCode, ProtocolError, SecurityProfile};

/// The use of a setting that is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The authorization endpoint, and device authorization.
    Authorization,
    /// Authorization requests that require it: another response type, or a request object (RFC 9101).
    WhenRequested,
    /// All tokens for a user, and claims about the user.
    Person,
    /// Every access token.
    AccessToken,
    /// The UserInfo endpoint.
    UserInfo,
    /// The introspection endpoint for the client app.
    Introspection,
}

/// An unsupported setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedSetting {
    /// The member, by its wire name.
    pub member: &'static str,
    /// The rejected use.
    pub used_at: Use,
    /// The explanation for the developer of the client app.
    pub detail: &'static str,
}

type IsSet = fn(&ClientSettings<'_>) -> bool;

const UNSUPPORTED_SETTINGS: [(&str, Use, IsSet, &str); 10] = [
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
        Use::WhenRequested,
        |facts| facts.response_types().iter().any(|name| !matches!(name.as_str(), "code" | "none")),
        "The client app has response types other than code and none, which this server does not support.",
    ),
    (
        "requestObjectSigningAlg",
        Use::WhenRequested,
        |facts| facts.request_object_signing_alg.is_some(),
        "The client app has requestObjectSigningAlg, and this server does not support request objects.",
    ),
    (
        "requestObjectEncryptionAlg",
        Use::WhenRequested,
        |facts| facts.request_object_encryption.alg.is_some(),
        "The client app has requestObjectEncryptionAlg, and this server does not support request objects.",
    ),
];

/// The unsupported settings of a client app, in a fixed order.
pub fn unsupported_settings(facts: &ClientSettings<'_>) -> Vec<UnsupportedSetting> {
    let set = UNSUPPORTED_SETTINGS.iter().filter(|(_, _, is_set, _)| is_set(facts));
    set.map(|(member, used_at, _, detail)| UnsupportedSetting { member, used_at: *used_at, detail }).collect()
}

/// Rejects a use of unsupported settings.
///
/// # Errors
/// `unauthorized_client`: an administrator must change the client app.
pub fn check_use(settings: &[UnsupportedSetting], used_at: Use) -> Result<(), ProtocolError> {
    let setting = settings.iter().find(|setting| setting.used_at == used_at);
    setting.map_or(Ok(()), |setting| Err(ProtocolError::new(ErrorCode::UnauthorizedClient, setting.detail)))
}

/// Rows of a resource that are stored as documented and not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedRows {
    /// The resource.
    pub resource: &'static str,
    /// The unsupported member, by its wire name.
    pub member: &'static str,
    /// The explanation of the rejection.
    pub detail: &'static str,
}

/// Identities of client apps at other issuers.
pub const FEDERATED_IDENTITIES: UnsupportedRows = UnsupportedRows {
    resource: "ClientAppFederatedIdentity",
    member: "issuer",
    detail: "The assertion must have the id of the client app as iss and sub: this server does not support tokens of other issuers \
             (federated identities).",
};

/// URIs of request objects (RFC 9101).
pub const REQUEST_URIS: UnsupportedRows = UnsupportedRows {
    resource: "ClientAppRequestUri",
    member: "uri",
    detail: "This server does not support request_uri: authorization requests with one are refused.",
};

const UNSUPPORTED_ROWS: [UnsupportedRows; 2] = [FEDERATED_IDENTITIES, REQUEST_URIS];

/// The declaration for a resource's row, if it is unsupported; `text_of` returns the text of a member.
pub fn unsupported_row<'t>(
    resource: &str,
    text_of: impl Fn(&str) -> Option<&'t str>,
) -> Option<&'static UnsupportedRows> {
    let is_unsupported =
        |rows: &&UnsupportedRows| rows.resource == resource && text_of(rows.member).is_some();
    UNSUPPORTED_ROWS.iter().find(is_unsupported)
}

#[cfg(test)]
mod tests {
    use super::unsupported_row;

    #[test]
    fn rows_are_recognized_by_their_unsupported_member() {
        assert!(
            unsupported_row("ClientAppRequestUri", |_| Some("https://app.example/request.jwt")).is_some()
        );
        assert!(unsupported_row("ClientAppRequestUri", |_| None).is_none());
        assert!(unsupported_row("IdpInstance", |_| Some("Facebook")).is_none());
    }
}
