//! The endpoints besides the services: their paths, and how they are answered.

use chancery_signin::RESET_PATH;
use http::Method;

use self::{
    Property::{NeedsSignIn, OfBrowsers, OfClients, OpenToScripts, Published, ShowsPages, Typed},
    SystemRoute as Route,
};

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
    /// A file that pages embed.
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

/// A property of an endpoint, besides its paths and methods.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Property {
    /// People type its address: a trailing slash is ignored.
    Typed,
    /// Scripts of any site may read the answer: it depends on no cookie.
    OpenToScripts,
    /// The answer is the same for everybody, and may be cached if it is revalidated each time.
    Published,
    /// It answers with pages that redirect, and shows problems on pages.
    ShowsPages,
    /// Browsers request it, for people who sign in or out.
    OfBrowsers,
    /// It is served only where people sign in.
    NeedsSignIn,
    /// A request to it names a client app.
    OfClients,
}

/// An endpoint.
struct Endpoint {
    route: SystemRoute,
    path: &'static str,
    tenant_paths: &'static [&'static str],
    methods: &'static [Method],
    properties: &'static [Property],
}

const fn row(
    route: SystemRoute,
    path: &'static str,
    tenant_paths: &'static [&'static str],
    methods: &'static [Method],
    properties: &'static [Property],
) -> Endpoint {
    Endpoint { route, path, tenant_paths, methods, properties }
}

const READ: &[Method] = &[Method::GET, Method::HEAD];
const GET: &[Method] = &[Method::GET];
const POST: &[Method] = &[Method::POST];
const GET_POST: &[Method] = &[Method::GET, Method::POST];
/// The handler checks the method.
const ANY: &[Method] = &[];

/// All endpoints, in the order of [`SystemRoute`].
static ENDPOINTS: [Endpoint; 28] = [
    row(Route::Root, "/", &[], READ, &[]),
    row(Route::Live, "/health/live", &[], READ, &[]),
    row(Route::Ready, "/health/ready", &[], READ, &[]),
    row(Route::Metrics, "/metrics", &[], READ, &[]),
    row(
        Route::Discovery,
        "/.well-known/openid-configuration",
        &["/t/{tenant}/.well-known/openid-configuration", "/.well-known/openid-configuration/t/{tenant}"],
        READ,
        &[OpenToScripts],
    ),
    row(
        Route::OAuthDiscovery,
        "/.well-known/oauth-authorization-server",
        &["/.well-known/oauth-authorization-server/t/{tenant}"],
        READ,
        &[OpenToScripts],
    ),
    row(
        Route::Keys,
        "/.well-known/jwks.json",
        &["/t/{tenant}/.well-known/jwks.json"],
        READ,
        &[OpenToScripts],
    ),
    row(Route::AuditKeys, "/.well-known/audit-keys.json", &[], READ, &[Published]),
    row(Route::Token, "/connect/token", &["/t/{tenant}/connect/token"], POST, &[OpenToScripts, OfClients]),
    row(
        Route::Introspect,
        "/connect/introspect",
        &["/t/{tenant}/connect/introspect"],
        POST,
        &[OpenToScripts, OfClients],
    ),
    row(Route::Revoke, "/connect/revoke", &["/t/{tenant}/connect/revoke"], POST, &[OpenToScripts, OfClients]),
    row(
        Route::Authorize,
        "/connect/authorize",
        &["/t/{tenant}/connect/authorize"],
        GET_POST,
        &[ShowsPages, OfBrowsers, NeedsSignIn, OfClients],
    ),
    row(
        Route::UserInfo,
        "/connect/userinfo",
        &["/t/{tenant}/connect/userinfo"],
        GET_POST,
        &[OpenToScripts, NeedsSignIn],
    ),
    row(
        Route::EndSession,
        "/connect/endsession",
        &["/t/{tenant}/connect/endsession"],
        GET_POST,
        &[ShowsPages, OfBrowsers, NeedsSignIn, OfClients],
    ),
    row(
        Route::DeviceAuthorization,
        "/connect/deviceauthorization",
        &["/t/{tenant}/connect/deviceauthorization"],
        POST,
        &[OpenToScripts, NeedsSignIn, OfClients],
    ),
    row(
        Route::Device,
        "/device",
        &["/t/{tenant}/device"],
        GET_POST,
        &[Typed, ShowsPages, OfBrowsers, NeedsSignIn],
    ),
    row(
        Route::PasswordReset,
        RESET_PATH,
        &["/t/{tenant}/password/reset"],
        GET_POST,
        &[Typed, ShowsPages, OfBrowsers, NeedsSignIn],
    ),
    row(
        Route::SignInPage,
        "/signin/{step}",
        &["/t/{tenant}/signin/{step}"],
        GET_POST,
        &[ShowsPages, OfBrowsers, NeedsSignIn],
    ),
    row(Route::Content, "/content/{*location}", &[], READ, &[]),
    row(Route::Console, "/console", &[], GET_POST, &[Typed, ShowsPages]),
    row(Route::ConsolePage, "/console/{*page}", &[], GET_POST, &[ShowsPages]),
    row(Route::External, "/external/{instanceId}/callback", &[], GET, &[ShowsPages, NeedsSignIn]),
    row(Route::Scim, "/api/scim/v2/{idpInstance}", &[], ANY, &[]),
    row(Route::ScimPath, "/api/scim/v2/{idpInstance}/{*path}", &[], ANY, &[]),
    row(Route::Documentation, "/openapi", &[], READ, &[Typed, Published]),
    row(Route::Document, "/openapi/{document}", &[], READ, &[Published]),
    row(Route::ProblemPage, "/problems/{kind}", &[], READ, &[Published]),
    row(Route::EventSchema, "/schemas/event/{type}/1.json", &[], READ, &[]),
];

impl SystemRoute {
    /// All endpoints.
    pub fn all() -> impl Iterator<Item = Self> {
        ENDPOINTS.iter().map(|endpoint| endpoint.route)
    }

    #[expect(clippy::indexing_slicing, reason = "a test compares the order of the rows")]
    const fn row(self) -> &'static Endpoint {
        &ENDPOINTS[self as usize]
    }

    fn has(self, property: Property) -> bool {
        self.row().properties.contains(&property)
    }

    /// The endpoint's path.
    pub const fn path(self) -> &'static str {
        self.row().path
    }

    /// The paths of the endpoint for a tenant's issuer: below the issuer, and for well-known documents also
    /// in the form of RFC 8414, section 3.1.
    pub const fn tenant_paths(self) -> &'static [&'static str] {
        self.row().tenant_paths
    }

    /// The methods that are allowed; none are listed where the handler checks them.
    pub const fn methods(self) -> &'static [Method] {
        self.row().methods
    }

    /// Whether people type its address: a trailing slash is ignored.
    pub fn is_typed(self) -> bool {
        self.has(Typed)
    }

    /// Whether scripts of any site may read the answer: it depends on no cookie.
    pub fn is_open_to_scripts(self) -> bool {
        self.has(OpenToScripts)
    }

    /// Whether the answer is the same for everybody, and may be cached if it is revalidated each time.
    pub fn is_published(self) -> bool {
        self.has(Published)
    }

    /// Whether it answers with pages that redirect, and shows problems on pages.
    pub fn shows_pages(self) -> bool {
        self.has(ShowsPages)
    }

    /// Whether browsers request it, for people who sign in or out.
    pub fn is_of_browsers(self) -> bool {
        self.has(OfBrowsers)
    }

    /// Whether it is served only where people sign in.
    pub fn needs_sign_in(self) -> bool {
        self.has(NeedsSignIn)
    }

    /// Whether a request to it names a client app.
    pub fn is_of_clients(self) -> bool {
        self.has(OfClients)
    }
}

#[cfg(test)]
mod tests {
    use super::ENDPOINTS;

    #[test]
    fn the_rows_are_in_the_order_of_the_routes() {
        for (index, endpoint) in ENDPOINTS.iter().enumerate() {
            assert_eq!(endpoint.route as usize, index, "{}", endpoint.path);
        }
    }
}
