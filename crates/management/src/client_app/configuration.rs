//! Authentication configurations: how a client app authenticates, and what its tokens are bound to.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
};

use chancery_certificate::normalised_name;
use chancery_record::{
    CertificateName, DefaultValue, FieldOf, KEY, OPEN, Record as _, SHOWN, Token, Value, choice_types, record,
};
use chancery_resource::{
    Context, Findings, LIST, Op, Parent, Problem, ProposedRow, Reach, Rules, Shape, Sql, Tx, Unique,
    Violation, Writer, standard,
};
use uuid::Uuid;

use super::{
    CLIENT_APP, ClientAppId, administrator, controller::note, profile::check_configurations, uri::scheme,
};
use crate::violation::conflict_at;

choice_types! {
    /// The authentication method at the token endpoint, by the names of the IANA registry.
    TokenEndpointAuthMethod {
        /// Its secret, in the header.
        ClientSecretBasic = "client_secret_basic",
        /// Its secret, in the body.
        ClientSecretPost = "client_secret_post",
        /// An assertion signed with its secret.
        ClientSecretJwt = "client_secret_jwt",
        /// An assertion signed with its key.
        PrivateKeyJwt = "private_key_jwt",
        /// A certificate by its name (RFC 8705).
        TlsClientAuth = "tls_client_auth",
        /// A certificate of its key sets (RFC 8705).
        SelfSignedTlsClientAuth = "self_signed_tls_client_auth",
        /// Not at all.
        None = "none",
    }
}

const NO: DefaultValue = DefaultValue::Bool(false);

record! {
    /// Client authentication of a client app. Without a configuration, the client app authenticates with its secret in the header
    /// (`client_secret_basic`).
    #[de(
        "Authentifizierung einer Client-App",
        "Authentifizierung von Client-Apps",
        "Die Client-Authentifizierung einer Client-App. Solange nichts angegeben ist, authentifiziert sie sich mit ihrem Geheimnis im Kopf (`client_secret_basic`)."
    )]
    pub struct ClientAppAuthenticationConfiguration {
        /// The client app.
        client_app_id: ClientAppId = KEY,
        /// Client authentication method.
        #[de("Authentifizierungsmethode", "Die Methode der Client-Authentifizierung.")]
        token_endpoint_auth_method: TokenEndpointAuthMethod = OPEN.or(DefaultValue::Text("client_secret_basic")),
        /// Whether the tokens of the client app are bound to its client certificate (RFC 8705).
        #[de("Zugriffstoken an Zertifikate binden", "Ob die Token der Client-App an ihr Client-Zertifikat gebunden sind (RFC 8705).")]
        require_certificate_bound_access_tokens: bool = OPEN.or(NO),
        /// Whether the tokens of the client app are bound to a key for which it proves possession (DPoP, RFC 9449).
        #[de(
            "Zugriffstoken an Schlüssel binden (DPoP)",
            "Ob die Token der Client-App an einen Schlüssel gebunden sind, dessen Besitz sie nachweist (DPoP, RFC 9449)."
        )]
        dpop_bound_access_tokens: bool = OPEN.or(NO),
        /// Whether DPoP proofs must contain a nonce of this server.
        #[de("Nonces in DPoP-Nachweisen verlangen", "Ob DPoP-Nachweise eine Nonce dieses Servers enthalten müssen.")]
        require_dpop_nonce: bool = OPEN.or(NO),
        /// Subject of the client certificate, a distinguished name (RFC 4514).
        #[de("Zertifikat: Inhaber", "Der Inhaber des Client-Zertifikats, ein Distinguished Name (RFC 4514).")]
        tls_client_auth_subject_dn: Option<CertificateName> = OPEN,
        /// A DNS name in the client certificate (subject alternative name).
        #[de("Zertifikat: DNS-Name", "Ein DNS-Name im Client-Zertifikat (Subject Alternative Name).")]
        tls_client_auth_san_dns: Option<CertificateName> = OPEN,
        /// A URI in the client certificate (subject alternative name).
        #[de("Zertifikat: URI", "Eine URI im Client-Zertifikat (Subject Alternative Name).")]
        tls_client_auth_san_uri: Option<CertificateName> = OPEN,
        /// An IP address in the client certificate (subject alternative name).
        #[de("Zertifikat: IP-Adresse", "Eine IP-Adresse im Client-Zertifikat (Subject Alternative Name).")]
        tls_client_auth_san_ip: Option<CertificateName> = OPEN,
        /// An e-mail address in the client certificate (subject alternative name).
        #[de("Zertifikat: E-Mail-Adresse", "Eine E-Mail-Adresse im Client-Zertifikat (Subject Alternative Name).")]
        tls_client_auth_san_email: Option<CertificateName> = OPEN,
        /// Concurrency token. It changes with every write to the configuration.
        concurrency_token: Token = SHOWN,
    }
}

/// A member that names a certificate: its field, its value, its check, and the description of valid values.
type Member<'a> = (
    FieldOf<ClientAppAuthenticationConfiguration, Option<CertificateName>>,
    &'a Option<CertificateName>,
    &'a dyn Fn(&str) -> bool,
    &'a str,
);

impl Rules for ClientAppAuthenticationConfiguration {
    fn check(&self, wrong: &mut Findings) {
        let is_name = |text: &str| normalised_name(text).is_some_and(|name| !name.is_empty());
        let is_host = |text: &str| {
            let is_label = |label: &str| {
                (1..=63).contains(&label.len())
                    && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_*".contains(&byte))
            };
            text.len() <= 253 && text.split('.').all(is_label)
        };
        let is_uri = |text: &str| scheme(text).is_some();
        let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
        // as a certificate has it: no mail is sent to it
        let is_mail = |text: &str| {
            let parts = text.split_once('@');
            let is_part = |part: &str| !part.is_empty() && !part.contains(['@', ' ']);
            parts.is_some_and(|(local, domain)| is_part(local) && is_part(domain))
        };
        let members: [Member<'_>; 5] = [
            (
                Self::TLS_CLIENT_AUTH_SUBJECT_DN,
                &self.tls_client_auth_subject_dn,
                &is_name,
                "a name such as CN=client,O=Example (RFC 4514)",
            ),
            (
                Self::TLS_CLIENT_AUTH_SAN_DNS,
                &self.tls_client_auth_san_dns,
                &is_host,
                "the name of a host such as client.example.com",
            ),
            (
                Self::TLS_CLIENT_AUTH_SAN_URI,
                &self.tls_client_auth_san_uri,
                &is_uri,
                "a whole URI such as https://client.example.com",
            ),
            (
                Self::TLS_CLIENT_AUTH_SAN_IP,
                &self.tls_client_auth_san_ip,
                &is_address,
                "an IP address such as 192.0.2.7 or 2001:db8::7",
            ),
            (
                Self::TLS_CLIENT_AUTH_SAN_EMAIL,
                &self.tls_client_auth_san_email,
                &is_mail,
                "an e-mail address such as client@example.com",
            ),
        ];
        for (field, given, fits, expected) in members {
            if given.as_ref().is_some_and(|given| !fits(given.as_str())) {
                wrong.add(field, format!("must be {expected}"));
            }
        }
    }
}

/// The shape of authentication configurations.
pub static CLIENT_APP_AUTHENTICATION_CONFIGURATION: Shape =
    Shape::of::<ClientAppAuthenticationConfiguration>(
        "ClientAppAuthenticationConfiguration",
        "client_app_authentication_configuration",
        Reach::Of(ClientAppAuthenticationConfiguration::CLIENT_APP_ID.field(), &CLIENT_APP),
    )
    .belonging(&[Parent::new(ClientAppAuthenticationConfiguration::CLIENT_APP_ID, &CLIENT_APP)])
    .unique(&[Unique::new(
        "client_app_authentication_configuration__client_app_id",
        &[ClientAppAuthenticationConfiguration::CLIENT_APP_ID.field()],
    )])
    .found_by_token()
    .ruled::<ClientAppAuthenticationConfiguration>()
    .validate_rows(check)
    .after_write(|context, tx, values| {
        note(context, tx, ClientAppAuthenticationConfiguration::CLIENT_APP_ID.get(values)?)
    })
    .on_purge(refuse_for_fapi)
    .postcondition(administrator::require_system_admin)
    .bumps_epoch();

/// Refuses to delete the configuration of a client app with a FAPI profile: without one a client app authenticates by
/// its secret, which FAPI does not allow.
fn refuse_for_fapi(_: &mut Context, tx: &mut Tx<'_>, apps: &[Uuid]) -> Result<(), Problem> {
    let mut sql = Sql::new("SELECT name FROM client_app WHERE security_profile <> 'None' AND id IN ");
    sql.add_list(apps.iter().copied().map(Value::Id));
    let fapi_app = tx.one(&sql.text, &sql.parameters, |row| Ok(row.text(0)?.to_owned()))?;
    fapi_app.map_or(Ok(()), |name| {
        Err(Problem::conflict(format!(
            "The client app {name:?} has a FAPI profile, which asks for its configuration. Set its securityProfile to None first."
        )))
    })
}

/// Validates that a client app with `client_secret_jwt` has a secret that can sign.
fn check(_: Writer<'_>, tx: &mut Tx<'_>, rows: &mut [ProposedRow<'_>]) -> Result<Vec<Violation>, Problem> {
    let mut violations = check_configurations(tx, rows)?;
    let signing = TokenEndpointAuthMethod::ClientSecretJwt;
    let mut rows_by_app = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        let proposed = ClientAppAuthenticationConfiguration::from_values(row.values.clone())?;
        if proposed.token_endpoint_auth_method == signing {
            rows_by_app.insert(proposed.client_app_id.0, index);
        }
    }
    let apps: Vec<Uuid> = rows_by_app.keys().copied().collect();
    let with_sealed = with_sealed_secret(tx, &apps)?;
    let with_secret = ids(tx, "SELECT client_app_id FROM client_app_secret WHERE TRUE", &apps)?;
    for (app, index) in rows_by_app {
        if with_secret.contains(&app) && !with_sealed.contains(&app) {
            let detail = "needs a secret that is kept for signing: delete the client app's secrets, set this, then make a new one";
            violations.push(conflict_at(
                index,
                ClientAppAuthenticationConfiguration::TOKEN_ENDPOINT_AUTH_METHOD,
                detail,
            ));
        }
    }
    Ok(violations)
}

fn ids(tx: &mut Tx<'_>, begin: &str, apps: &[Uuid]) -> Result<HashSet<Uuid>, Problem> {
    let mut found = HashSet::new();
    for chunk in apps.chunks(LIST) {
        let mut sql = Sql::new(format!("{begin} AND client_app_id IN "));
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            found.insert(row.id(0)?);
            Ok(())
        })?;
    }
    Ok(found)
}

fn with_sealed_secret(tx: &mut Tx<'_>, apps: &[Uuid]) -> Result<HashSet<Uuid>, Problem> {
    ids(tx, "SELECT client_app_id FROM client_app_secret WHERE sealed_secret IS NOT NULL", apps)
}

/// The client apps that authenticate by `client_secret_jwt`.
pub fn with_client_secret_jwt(tx: &mut Tx<'_>, apps: &[Uuid]) -> Result<HashSet<Uuid>, Problem> {
    ids(
        tx,
        "SELECT client_app_id FROM client_app_authentication_configuration \
         WHERE token_endpoint_auth_method = 'client_secret_jwt'",
        apps,
    )
}

/// The operations on authentication configurations.
pub static OPERATIONS: [Op; 9] = standard!(
    "ClientAppAuthenticationConfiguration",
    "/ClientAppAuthenticationConfiguration",
    TenantMember,
    SubscriptionAdmin,
    &CLIENT_APP_AUTHENTICATION_CONFIGURATION
);
