//! Rules of a security profile between a client app, its authentication configuration and its redirect
//! URIs: checked whenever one of these changes.

use std::collections::{HashMap, HashSet};

use chancery_oauth::{
    Authentication, ClientSettings, Encryption, Method, SecurityProfile, Use, findings, unsupported_settings,
};
use chancery_record::{CertificateName, Field, FieldOf, Mismatch, Record, Url, Value};
use chancery_resource::{FieldFault, LIST, Problem, ProposedRow, Shape, Sql, Tx, Violation};
use uuid::Uuid;

use super::{
    CLIENT_APP, ClientApp, ClientAppId, SubjectType,
    configuration::{CLIENT_APP_AUTHENTICATION_CONFIGURATION, ClientAppAuthenticationConfiguration},
    uri::{CLIENT_APP_REDIRECT_URI, ClientAppRedirectUri, RedirectUriType},
};
use crate::violation::violation_at;

type Configuration = ClientAppAuthenticationConfiguration;

/// The stored client apps, with their configurations and redirect URIs.
#[derive(Default)]
struct Stored {
    apps: HashMap<Uuid, ClientApp>,
    configurations: HashMap<Uuid, Configuration>,
    /// The login redirect URIs of each client app, by their ids.
    uris: HashMap<Uuid, HashMap<Uuid, String>>,
}

impl Stored {
    fn load(tx: &mut Tx<'_>, apps: &[Uuid]) -> Result<Self, Problem> {
        let mut stored = Self::default();
        for app in load_records(tx, &CLIENT_APP, ClientApp::ID, apps)? {
            stored.apps.insert(app.id.0, app);
        }
        let configuration = &CLIENT_APP_AUTHENTICATION_CONFIGURATION;
        for one in load_records(tx, configuration, Configuration::CLIENT_APP_ID, apps)? {
            stored.configurations.insert(one.client_app_id.0, one);
        }
        let of_app = ClientAppRedirectUri::CLIENT_APP_ID;
        for one in load_records(tx, &CLIENT_APP_REDIRECT_URI, of_app, apps)? {
            stored.store_uri(&one);
        }
        Ok(stored)
    }

    /// Adds a redirect URI for logins, or removes one that is now for logouts, to which no rule applies.
    fn store_uri(&mut self, one: &ClientAppRedirectUri) {
        let uris = self.uris.entry(one.client_app_id.0).or_default();
        match one.redirect_uri_type {
            RedirectUriType::Login => uris.insert(one.id.0, one.uri.as_str().to_owned()),
            RedirectUriType::Logout => uris.remove(&one.id.0),
        };
    }
}

/// The rows of a resource with one of these ids in the field.
fn load_records<R: Record>(
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    field: FieldOf<R, ClientAppId>,
    ids: &[Uuid],
) -> Result<Vec<R>, Problem> {
    let columns: Vec<&str> = shape.fields.iter().map(|field| field.column).collect();
    let mut rows = Vec::new();
    for chunk in ids.chunks(LIST) {
        let text = format!("SELECT {} FROM {} WHERE {field} IN ", columns.join(", "), shape.table);
        let mut sql = Sql::new(text);
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            let values = shape.fields.iter().enumerate().map(|(at, field)| row.value(at, &field.kind));
            rows.push(values.collect::<Result<Vec<_>, _>>()?);
            Ok(())
        })?;
    }
    Ok(rows.into_iter().map(R::from_values).collect::<Result<_, _>>()?)
}

/// The client apps that rows belong to, each once.
fn apps_of<R: Record>(
    rows: &[ProposedRow<'_>],
    field: FieldOf<R, ClientAppId>,
) -> Result<Vec<Uuid>, Mismatch> {
    let apps = rows.iter().map(|row| row.get(field).map(|app| app.0)).collect::<Result<HashSet<_>, _>>()?;
    Ok(apps.into_iter().collect())
}

/// Reports client apps that break the rules of their profile.
pub fn check_apps(tx: &mut Tx<'_>, rows: &[ProposedRow<'_>]) -> Result<Vec<Violation>, Problem> {
    let stored = Stored::load(tx, &apps_of(rows, ClientApp::ID)?)?;
    let mut violations = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let app = ClientApp::from_values(row.values.clone())?;
        let uris: Vec<&str> =
            stored.uris.get(&app.id.0).into_iter().flat_map(HashMap::values).map(String::as_str).collect();
        report(
            &CLIENT_APP,
            ClientApp::ID.field(),
            index,
            &facts(&app, stored.configurations.get(&app.id.0), &uris),
            &mut violations,
        );
    }
    Ok(violations)
}

/// Reports configurations that break the rules of their client apps' profiles.
pub fn check_configurations(tx: &mut Tx<'_>, rows: &[ProposedRow<'_>]) -> Result<Vec<Violation>, Problem> {
    let shape = &CLIENT_APP_AUTHENTICATION_CONFIGURATION;
    let stored = Stored::load(tx, &apps_of(rows, Configuration::CLIENT_APP_ID)?)?;
    let mut violations = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let configuration = Configuration::from_values(row.values.clone())?;
        let id = configuration.client_app_id.0;
        let Some(app) = stored.apps.get(&id) else { continue };
        let uris: Vec<&str> =
            stored.uris.get(&id).into_iter().flat_map(HashMap::values).map(String::as_str).collect();
        report(
            shape,
            Configuration::CLIENT_APP_ID.field(),
            index,
            &facts(app, Some(&configuration), &uris),
            &mut violations,
        );
    }
    Ok(violations)
}

/// Reports redirect URIs that break the rules of their client apps' profiles; those of one request count together.
pub fn check_uris(tx: &mut Tx<'_>, rows: &[ProposedRow<'_>]) -> Result<Vec<Violation>, Problem> {
    let shape = &CLIENT_APP_REDIRECT_URI;
    let mut stored = Stored::load(tx, &apps_of(rows, ClientAppRedirectUri::CLIENT_APP_ID)?)?;
    let mut violations = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let new = ClientAppRedirectUri::from_values(row.values.clone())?;
        let id = new.client_app_id.0;
        stored.store_uri(&new);
        let Some(app) = stored.apps.get(&id) else { continue };
        let uris: Vec<&str> =
            stored.uris.get(&id).into_iter().flat_map(HashMap::values).map(String::as_str).collect();
        let own = ClientAppRedirectUri::URI.field();
        report(shape, own, index, &facts(app, stored.configurations.get(&id), &uris), &mut violations);
    }
    Ok(violations)
}

/// A sentence's text as it continues after a member's name.
fn in_a_sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut letters = text.chars();
    let first = letters.next();
    // a first word in capitals is a name and stays as it is
    match first.filter(|_| !letters.clone().next().is_some_and(char::is_uppercase)) {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => text.to_owned(),
    }
}

/// The settings of a stored client app that this release does not serve.
pub fn unsupported_fields(values: &[Value]) -> Result<Vec<FieldFault>, Problem> {
    let app = ClientApp::from_values(values.to_vec())?;
    let unsupported_uses = unsupported_settings(&facts(&app, None, &[]))
        .into_iter()
        .filter(|one| one.used_at != Use::WhenRequested);
    let named = unsupported_uses.filter_map(|one| {
        let field = CLIENT_APP.fields.iter().find(|field| field.is_named(one.member))?;
        Some((field, one.detail.to_owned()))
    });
    Ok(named.collect())
}

/// Adds a violation at the member of the body, or at another member where the body lacks that one.
fn report(
    shape: &'static Shape,
    other: &'static Field,
    index: usize,
    facts: &ClientSettings<'_>,
    violations: &mut Vec<Violation>,
) {
    for finding in findings(facts) {
        let own = shape.fields.iter().find(|field| field.is_named(finding.member));
        let detail = in_a_sentence(finding.detail);
        violations.push(match own {
            Some(field) => violation_at(index, field, detail),
            None => violation_at(index, other, format!("contradicts {}: {detail}", finding.member)),
        });
    }
}

fn facts<'a>(
    app: &'a ClientApp,
    configuration: Option<&'a Configuration>,
    uris: &'a [&'a str],
) -> ClientSettings<'a> {
    let encryption =
        |alg: Option<super::EncryptionAlgorithm>, enc: Option<super::ContentEncryption>| Encryption {
            alg: alg.map(super::EncryptionAlgorithm::name),
            enc: enc.map(super::ContentEncryption::name),
        };
    ClientSettings {
        is_public: app.is_public,
        is_native_application: app.is_native_application,
        allow_client_credential_login: app.allow_client_credential_login,
        require_pushed_authorization_requests: app.require_pushed_authorization_requests,
        allowed_response_types: app.allowed_response_types.as_str(),
        security_profile: match app.security_profile {
            super::SecurityProfile::None => SecurityProfile::None,
            super::SecurityProfile::Fapi1Advanced => SecurityProfile::Fapi1Advanced,
            super::SecurityProfile::Fapi2SecurityProfile => SecurityProfile::Fapi2SecurityProfile,
            super::SecurityProfile::Fapi2MessageSigning => SecurityProfile::Fapi2MessageSigning,
        },
        is_pairwise: app.subject_type == SubjectType::Pairwise,
        sector_identifier_uri: app.sector_identifier_uri.as_ref().map(Url::as_str),
        redirect_uris: uris,
        id_token_encryption: encryption(
            app.id_token_encrypted_response_alg,
            app.id_token_encrypted_response_enc,
        ),
        userinfo_encryption: encryption(
            app.userinfo_encrypted_response_alg,
            app.userinfo_encrypted_response_enc,
        ),
        encrypts_access_tokens: app.access_token_encryption_enabled_override == Some(true),
        introspection_encryption: encryption(
            app.introspection_encrypted_response_alg,
            app.introspection_encrypted_response_enc,
        ),
        request_object_encryption: encryption(
            app.request_object_encryption_alg,
            app.request_object_encryption_enc,
        ),
        request_object_signing_alg: app.request_object_signing_alg.map(super::SigningAlgorithm::name),
        authentication: configuration.map(authentication),
    }
}

fn authentication(configuration: &Configuration) -> Authentication<'_> {
    Authentication {
        method: Method::named(configuration.token_endpoint_auth_method.name())
            .unwrap_or(Method::ClientSecretBasic),
        require_certificate_bound_access_tokens: configuration.require_certificate_bound_access_tokens,
        dpop_bound_access_tokens: configuration.dpop_bound_access_tokens,
        require_dpop_nonce: configuration.require_dpop_nonce,
        tls_client_auth_subject_dn: configuration
            .tls_client_auth_subject_dn
            .as_ref()
            .map(CertificateName::as_str),
        tls_client_auth_san_dns: configuration.tls_client_auth_san_dns.as_ref().map(CertificateName::as_str),
        tls_client_auth_san_uri: configuration.tls_client_auth_san_uri.as_ref().map(CertificateName::as_str),
        tls_client_auth_san_ip: configuration.tls_client_auth_san_ip.as_ref().map(CertificateName::as_str),
        tls_client_auth_san_email: configuration
            .tls_client_auth_san_email
            .as_ref()
            .map(CertificateName::as_str),
    }
}
