//! The settings of a client app and its authentication configuration that the rules between them depend on.

/// `tokenEndpointAuthMethod`: the client authentication method, by its registered name (RFC 7591, section 2; RFC 8705,
/// section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The secret in the header.
    ClientSecretBasic,
    /// The secret in the body.
    ClientSecretPost,
    /// An assertion with a MAC by the secret.
    ClientSecretJwt,
    /// An assertion signed with the private key.
    PrivateKeyJwt,
    /// A certificate of a trusted authority.
    TlsClientAuth,
    /// A self-signed certificate of the client's key sets.
    SelfSignedTlsClientAuth,
    /// No authentication: a public client.
    None,
}

impl Method {
    /// All methods; the index of each is its number in version 1.
    pub const ALL: [Self; 7] = [
        Self::ClientSecretBasic,
        Self::ClientSecretPost,
        Self::ClientSecretJwt,
        Self::PrivateKeyJwt,
        Self::TlsClientAuth,
        Self::SelfSignedTlsClientAuth,
        Self::None,
    ];

    /// The method's registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::ClientSecretJwt => "client_secret_jwt",
            Self::PrivateKeyJwt => "private_key_jwt",
            Self::TlsClientAuth => "tls_client_auth",
            Self::SelfSignedTlsClientAuth => "self_signed_tls_client_auth",
            Self::None => "none",
        }
    }

    /// The method with a registered name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// `securityProfile`: the profile that a client app conforms to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SecurityProfile {
    /// None.
    #[default]
    None,
    /// FAPI 1.0, part 2: Advanced.
    Fapi1Advanced,
    /// FAPI 2.0 Security Profile.
    Fapi2SecurityProfile,
    /// FAPI 2.0 Message Signing.
    Fapi2MessageSigning,
}

/// The encryption of a kind of message for the client (RFC 7516).
#[derive(Clone, Copy, Debug, Default)]
pub struct Encryption<'a> {
    /// The key management algorithm.
    pub alg: Option<&'a str>,
    /// The content encryption algorithm.
    pub enc: Option<&'a str>,
}

/// The authentication configuration.
#[derive(Clone, Copy, Debug)]
pub struct Authentication<'a> {
    /// `tokenEndpointAuthMethod`
    pub method: Method,
    /// `requireCertificateBoundAccessTokens`
    pub require_certificate_bound_access_tokens: bool,
    /// `dpopBoundAccessTokens`
    pub dpop_bound_access_tokens: bool,
    /// `requireDpopNonce`
    pub require_dpop_nonce: bool,
    /// `tlsClientAuthSubjectDn`
    pub tls_client_auth_subject_dn: Option<&'a str>,
    /// `tlsClientAuthSanDns`
    pub tls_client_auth_san_dns: Option<&'a str>,
    /// `tlsClientAuthSanUri`
    pub tls_client_auth_san_uri: Option<&'a str>,
    /// `tlsClientAuthSanIp`
    pub tls_client_auth_san_ip: Option<&'a str>,
    /// `tlsClientAuthSanEmail`
    pub tls_client_auth_san_email: Option<&'a str>,
}

impl Default for Authentication<'_> {
    /// The defaults of a client app without a configuration.
    fn default() -> Self {
        Self {
            method: Method::ClientSecretBasic,
            require_certificate_bound_access_tokens: false,
            dpop_bound_access_tokens: false,
            require_dpop_nonce: false,
            tls_client_auth_subject_dn: None,
            tls_client_auth_san_dns: None,
            tls_client_auth_san_uri: None,
            tls_client_auth_san_ip: None,
            tls_client_auth_san_email: None,
        }
    }
}

/// The settings of a client app after a write. The default is a new client app.
#[expect(clippy::struct_excessive_bools, reason = "the members of a client app are what they are")]
#[derive(Clone, Copy, Debug)]
pub struct ClientSettings<'a> {
    /// `isPublic`
    pub is_public: bool,
    /// `isNativeApplication`
    pub is_native_application: bool,
    /// `allowClientCredentialLogin`
    pub allow_client_credential_login: bool,
    /// `requirePushedAuthorizationRequests`
    pub require_pushed_authorization_requests: bool,
    /// `allowedResponseTypes`, comma-separated.
    pub allowed_response_types: &'a str,
    /// `securityProfile`
    pub security_profile: SecurityProfile,
    /// Whether `subjectType` is Pairwise.
    pub is_pairwise: bool,
    /// `sectorIdentifierUri`
    pub sector_identifier_uri: Option<&'a str>,
    /// The login redirect URIs.
    pub redirect_uris: &'a [&'a str],
    /// `idTokenEncryptedResponseAlg`, `idTokenEncryptedResponseEnc`
    pub id_token_encryption: Encryption<'a>,
    /// `userinfoEncryptedResponseAlg`, `userinfoEncryptedResponseEnc`
    pub userinfo_encryption: Encryption<'a>,
    /// `introspectionEncryptedResponseAlg`, `introspectionEncryptedResponseEnc`
    pub introspection_encryption: Encryption<'a>,
    /// Whether `accessTokenEncryptionEnabledOverride` is true.
    pub encrypts_access_tokens: bool,
    /// `requestObjectEncryptionAlg`, `requestObjectEncryptionEnc`
    pub request_object_encryption: Encryption<'a>,
    /// `requestObjectSigningAlg`
    pub request_object_signing_alg: Option<&'a str>,
    /// The authentication configuration, if there is one.
    pub authentication: Option<Authentication<'a>>,
}

impl ClientSettings<'_> {
    /// The allowed response types, each with its words sorted.
    pub fn response_types(&self) -> Vec<String> {
        let sorted = |name: &str| {
            let mut words: Vec<&str> = name.split_ascii_whitespace().collect();
            words.sort_unstable();
            words.join(" ")
        };
        self.allowed_response_types.split(',').map(sorted).filter(|name| !name.is_empty()).collect()
    }
}

impl Default for ClientSettings<'_> {
    fn default() -> Self {
        Self {
            is_public: false,
            is_native_application: false,
            allow_client_credential_login: false,
            require_pushed_authorization_requests: false,
            allowed_response_types: "code",
            security_profile: SecurityProfile::None,
            is_pairwise: false,
            sector_identifier_uri: None,
            redirect_uris: &[],
            id_token_encryption: Encryption::default(),
            userinfo_encryption: Encryption::default(),
            introspection_encryption: Encryption::default(),
            encrypts_access_tokens: false,
            request_object_encryption: Encryption::default(),
            request_object_signing_alg: None,
            authentication: None,
        }
    }
}
