//! Redirect and request URIs of a client app.

use chancery_oauth::is_claimable;
use chancery_record::{DefaultValue, FIXED, KEY, OPEN, SHOWN, Token, Url, choice_types, id_types, record};
use chancery_resource::{
    Findings, Op, Parent, ProposedRow, Reach, Rules, Shape, Unique, Violation, added, added_at, standard,
};

use super::{CLIENT_APP, ClientAppId, profile::check_uris};
use crate::violation::violation_at;

id_types! {
    /// The id of a request URI.
    ClientAppRequestUriId,
    /// The id of a redirect URI.
    ClientAppRedirectUriId,
}

choice_types! {
    /// When users are redirected there.
    RedirectUriType {
        /// When they have signed in.
        Login,
        /// When they have signed out.
        Logout,
    }
}

record! {
    /// A request URI of a client app: the address of request objects (RFC 9101).
    #[de("Anfrageadresse", "Anfrageadressen", "Eine Adresse von Request-Objekten einer Client-App (RFC 9101).")]
    pub struct ClientAppRequestUri {
        /// The request URI.
        id: ClientAppRequestUriId = KEY,
        /// The address: https, without a fragment that is a name.
        #[de(_, "Die Adresse: https, ohne ein Fragment, das ein Name ist.")]
        uri: Url = OPEN,
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// Concurrency token. It changes with every write to the request URI.
        concurrency_token: Token = SHOWN,
    }
}

record! {
    /// A redirect URI of a client app (RFC 6749, section 3.1.2).
    #[de("Umleitungsadresse", "Umleitungsadressen", "Eine Umleitungsadresse einer Client-App (RFC 6749, Abschnitt 3.1.2).")]
    pub struct ClientAppRedirectUri {
        /// The redirect URI.
        id: ClientAppRedirectUriId = KEY,
        /// The absolute URI, without a fragment.
        #[de(_, "Die absolute URI, ohne Fragment.")]
        uri: Url = OPEN,
        /// When users are redirected there.
        #[de("Zweck", "Wann Benutzer dorthin umgeleitet werden.")]
        redirect_uri_type: RedirectUriType = OPEN.or(DefaultValue::Text("Login")),
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// Concurrency token. It changes with every write to the redirect URI.
        concurrency_token: Token = SHOWN,
    }
}

/// The scheme of an absolute URI.
pub fn scheme(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once(':')?;
    let mut letters = scheme.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic());
    let good = begins && letters.all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    (good && !rest.is_empty() && !uri.contains(char::is_whitespace)).then_some(scheme)
}

/// The host of an http URI, without port and user info.
pub fn host(uri: &str) -> Option<&str> {
    let (_, rest) = uri.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host =
        if host.starts_with('[') { host.split_inclusive(']').next()? } else { host.split(':').next()? };
    (!host.is_empty()).then_some(host)
}

impl Rules for ClientAppRequestUri {
    fn check(&self, wrong: &mut Findings) {
        let uri = self.uri.as_str();
        if !scheme(uri).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) || host(uri).is_none() {
            wrong.add(Self::URI, "must be an https address");
        }
    }
}

impl Rules for ClientAppRedirectUri {
    fn check(&self, wrong: &mut Findings) {
        let uri = self.uri.as_str();
        let Some(scheme) = scheme(uri) else {
            wrong.add(Self::URI, "must be a whole address, such as https://app.example.com/back");
            return;
        };
        if uri.contains('#') {
            wrong.add(Self::URI, "must not have a fragment (RFC 6749, section 3.1.2)");
        }
        if !is_claimable(scheme) {
            wrong.add(
                Self::URI,
                "must use https, http on loopback, or a private-use scheme (RFC 8252, section 7.1); this one belongs to a browser, the system or another protocol",
            );
        }
        let loopback = ["localhost", "127.0.0.1", "[::1]"];
        let is_local = host(uri).is_some_and(|host| loopback.contains(&host));
        if scheme.eq_ignore_ascii_case("http") && !is_local {
            wrong.add(Self::URI, "must be https, but for the device itself (localhost, 127.0.0.1, [::1])");
        }
        if scheme.to_ascii_lowercase().starts_with("http") && host(uri).is_none() {
            wrong.add(Self::URI, "must have a host");
        }
        if uri
            .split_once("://")
            .is_some_and(|(_, rest)| rest.split(['/', '?']).next().is_some_and(|part| part.contains('@')))
        {
            wrong.add(Self::URI, "must not contain a user name");
        }
    }
}

/// The shape of request URIs.
pub static CLIENT_APP_REQUEST_URI: Shape = Shape::of::<ClientAppRequestUri>(
    "ClientAppRequestUri",
    "client_app_request_uri",
    Reach::Of(ClientAppRequestUri::CLIENT_APP_ID.field(), &CLIENT_APP),
)
.belonging(&[Parent::new(ClientAppRequestUri::CLIENT_APP_ID, &CLIENT_APP)])
.unique(&[
    Unique::new("client_app_request_uri__id", &[ClientAppRequestUri::ID.field()]),
    Unique::new(
        "client_app_request_uri__client_app_id__uri",
        &[ClientAppRequestUri::CLIENT_APP_ID.field(), ClientAppRequestUri::URI.field()],
    ),
])
.ruled::<ClientAppRequestUri>();

/// The shape of redirect URIs.
pub static CLIENT_APP_REDIRECT_URI: Shape = Shape::of::<ClientAppRedirectUri>(
    "ClientAppRedirectUri",
    "client_app_redirect_uri",
    Reach::Of(ClientAppRedirectUri::CLIENT_APP_ID.field(), &CLIENT_APP),
)
.sensitive()
.belonging(&[Parent::new(ClientAppRedirectUri::CLIENT_APP_ID, &CLIENT_APP)])
.unique(&[
    Unique::new("client_app_redirect_uri__id", &[ClientAppRedirectUri::ID.field()]),
    Unique::new(
        "client_app_redirect_uri__client_app_id__uri__redirect_uri_type",
        &[
            ClientAppRedirectUri::CLIENT_APP_ID.field(),
            ClientAppRedirectUri::URI.field(),
            ClientAppRedirectUri::REDIRECT_URI_TYPE.field(),
        ],
    )
    .reported_at(ClientAppRedirectUri::URI),
])
.ruled::<ClientAppRedirectUri>()
.removable()
.bumps_epoch()
.validate_rows(|_, tx, rows| {
    let mut violations = check_uris(tx, rows)?;
    violations.extend(check_wildcards(rows));
    Ok(violations)
});

/// Refuses a new address with `*`: on other servers it is a wildcard, but here it would match nothing (RFC 9700,
/// section 2.1).
fn check_wildcards(rows: &[ProposedRow<'_>]) -> Vec<Violation> {
    let is_new = |row: &ProposedRow<'_>, uri: &str| {
        row.was.is_none_or(|was| ClientAppRedirectUri::URI.text(&was.values) != Some(uri))
    };
    let has_wildcard = |row: &ProposedRow<'_>| {
        row.text(ClientAppRedirectUri::URI).is_some_and(|uri| uri.contains('*') && is_new(row, uri))
    };
    let rows = rows.iter().enumerate().filter(|(_, row)| has_wildcard(row));
    let detail = "must not have *: addresses match exactly, so register each one";
    rows.map(|(index, _)| violation_at(index, ClientAppRedirectUri::URI, detail)).collect()
}

/// Operations on request URIs. The documents list the batches and the PATCH.
pub static REQUEST_URIS: [Op; 9] = added_at(
    standard!(
        "ClientAppRequestUri",
        "/ClientAppRequestUri",
        TenantMember,
        SubscriptionAdmin,
        &CLIENT_APP_REQUEST_URI
    ),
    [0, 1, 2, 4, 5],
);
/// Operations on redirect URIs.
pub static REDIRECT_URIS: [Op; 9] = added(standard!(
    "ClientAppRedirectUri",
    "/ClientAppRedirectUri",
    TenantMember,
    SubscriptionAdmin,
    &CLIENT_APP_REDIRECT_URI
));

#[cfg(test)]
mod tests {
    use super::{host, scheme};

    #[test]
    fn scheme_and_host_are_parsed() {
        assert_eq!(scheme("com.example.app:/back"), Some("com.example.app"));
        assert_eq!(scheme("back"), None);
        assert_eq!(scheme("1x:y"), None);
        assert_eq!(host("https://user@a.example:8443/x"), Some("a.example"));
        assert_eq!(host("http://[::1]:80/x"), Some("[::1]"));
        assert_eq!(host("https:///x"), None);
    }
}
