//! The endpoints besides the services: their paths, and how they are answered.

use chancery_signin::RESET_PATH;

/// An endpoint of the server itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemRoute {
    /// The address of the server itself.
    Root,
    /// Liveness.
    Live,
    /// Readiness.
    Ready,
    /// Metrics.
    Metrics,
    /// `OpenID` discovery.
    Discovery,
    /// Authorization server metadata (RFC 8414): the same document.
    OAuthDiscovery,
    /// The keys of access tokens, as a JWKS.
    Keys,
    /// The keys of the audit trail, as a JWKS.
    AuditKeys,
    /// The token endpoint.
    Token,
    /// Token introspection (RFC 7662).
    Introspect,
    /// Token revocation (RFC 7009).
    Revoke,
    /// The authorization endpoint.
    Authorize,
    /// The UserInfo endpoint.
    UserInfo,
    /// The end session endpoint.
    EndSession,
    /// The device authorization endpoint (RFC 8628).
    DeviceAuthorization,
    /// The page where a person types a device's code.
    Device,
    /// The pages of a forgotten password, of a tenant alone.
    PasswordReset,
    /// A page of a sign-in.
    SignInPage,
    /// A file that pages show.
    Content,
    /// The first page of the console.
    Console,
    /// Any other page of the console.
    ConsolePage,
    /// The callback of identity providers.
    External,
    /// The SCIM base of an identity provider instance.
    Scim,
    /// The SCIM paths below it.
    ScimPath,
    /// The page that shows the documentation.
    Documentation,
    /// The OpenAPI document of a service.
    Document,
    /// The description of a problem type.
    ProblemPage,
    /// The JSON Schema of a type of events.
    EventSchema,
}

/// The owner of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuerKind {
    /// The installation.
    Installation,
    /// The tenant that is the path's first parameter.
    Tenant,
}

impl SystemRoute {
    /// All endpoints.
    pub const ALL: [Self; 28] = [
        Self::Root,
        Self::Live,
        Self::Ready,
        Self::Metrics,
        Self::Discovery,
        Self::OAuthDiscovery,
        Self::Keys,
        Self::AuditKeys,
        Self::Token,
        Self::Introspect,
        Self::Revoke,
        Self::Authorize,
        Self::UserInfo,
        Self::EndSession,
        Self::DeviceAuthorization,
        Self::Device,
        Self::PasswordReset,
        Self::SignInPage,
        Self::Content,
        Self::Console,
        Self::ConsolePage,
        Self::External,
        Self::Scim,
        Self::ScimPath,
        Self::Documentation,
        Self::Document,
        Self::ProblemPage,
        Self::EventSchema,
    ];

    /// The endpoint's path.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Root => "/",
            Self::Live => "/health/live",
            Self::Ready => "/health/ready",
            Self::Metrics => "/metrics",
            Self::Discovery => "/.well-known/openid-configuration",
            Self::OAuthDiscovery => "/.well-known/oauth-authorization-server",
            Self::Keys => "/.well-known/jwks.json",
            Self::AuditKeys => "/.well-known/audit-keys.json",
            Self::Token => "/connect/token",
            Self::Introspect => "/connect/introspect",
            Self::Revoke => "/connect/revoke",
            Self::Authorize => "/connect/authorize",
            Self::UserInfo => "/connect/userinfo",
            Self::EndSession => "/connect/endsession",
            Self::DeviceAuthorization => "/connect/deviceauthorization",
            Self::Device => "/device",
            Self::PasswordReset => RESET_PATH,
            Self::SignInPage => "/signin/{step}",
            Self::Content => "/content/{*location}",
            Self::Console => "/console",
            Self::ConsolePage => "/console/{*page}",
            Self::External => "/external/{instanceId}/callback",
            Self::Scim => "/api/scim/v2/{idpInstance}",
            Self::ScimPath => "/api/scim/v2/{idpInstance}/{*path}",
            Self::Documentation => "/openapi",
            Self::Document => "/openapi/{document}",
            Self::ProblemPage => "/problems/{kind}",
            Self::EventSchema => "/schemas/event/{type}/1.json",
        }
    }

    /// The paths of the endpoint for a tenant's issuer: below the issuer, and for well-known documents also
    /// in the form of RFC 8414, section 3.1.
    pub const fn tenant_paths(self) -> &'static [&'static str] {
        match self {
            Self::Discovery => &[
                "/t/{tenant}/.well-known/openid-configuration",
                "/.well-known/openid-configuration/t/{tenant}",
            ],
            Self::OAuthDiscovery => &["/.well-known/oauth-authorization-server/t/{tenant}"],
            Self::Keys => &["/t/{tenant}/.well-known/jwks.json"],
            Self::Token => &["/t/{tenant}/connect/token"],
            Self::Introspect => &["/t/{tenant}/connect/introspect"],
            Self::Revoke => &["/t/{tenant}/connect/revoke"],
            Self::Authorize => &["/t/{tenant}/connect/authorize"],
            Self::UserInfo => &["/t/{tenant}/connect/userinfo"],
            Self::EndSession => &["/t/{tenant}/connect/endsession"],
            Self::DeviceAuthorization => &["/t/{tenant}/connect/deviceauthorization"],
            Self::Device => &["/t/{tenant}/device"],
            Self::PasswordReset => &["/t/{tenant}/password/reset"],
            Self::SignInPage => &["/t/{tenant}/signin/{step}"],
            _ => &[],
        }
    }

    /// Whether people type its address: a trailing slash is ignored.
    pub const fn is_typed(self) -> bool {
        matches!(self, Self::Console | Self::Device | Self::PasswordReset | Self::Documentation)
    }

    /// Whether scripts of any site may read the answer: it depends on no cookie.
    pub const fn is_open_to_scripts(self) -> bool {
        matches!(
            self,
            Self::Discovery
                | Self::OAuthDiscovery
                | Self::Keys
                | Self::Token
                | Self::Introspect
                | Self::Revoke
                | Self::DeviceAuthorization
                | Self::UserInfo
        )
    }

    /// Whether the answer is the same for everybody, and may be cached if it is revalidated each time.
    pub const fn is_published(self) -> bool {
        matches!(self, Self::AuditKeys | Self::Documentation | Self::Document | Self::ProblemPage)
    }

    /// Whether it answers with pages that redirect, and shows problems on pages.
    pub const fn shows_pages(self) -> bool {
        self.is_of_browsers() || matches!(self, Self::Console | Self::ConsolePage | Self::External)
    }

    /// Whether browsers request it, for people.
    pub const fn is_of_browsers(self) -> bool {
        matches!(
            self,
            Self::Authorize | Self::EndSession | Self::Device | Self::PasswordReset | Self::SignInPage
        )
    }
}
