//! The rows that a client app is read from.

use chancery_oauth::{ClientSettings, Encryption, KeySetStatus, unsupported_settings};
use chancery_record::Timestamp;
use chancery_store::selectable;
use uuid::Uuid;

use super::{ClientApp, Configuration, KeySet, Method};
use crate::signing_certificate::lifetime;

selectable! {
    /// A client app as it is stored, with its authentication configuration.
    pub struct ClientAppRow<'r>(serves) {
        /// By the condition of [`serves`](super::serves).
        is_served: bool = "{serves}",
        id: Uuid = "a.id",
        subscription: Uuid = "a.subscription_id",
        is_enabled: bool = "a.enabled",
        is_allowed: bool = "a.allow_client_credential_login",
        is_public: bool = "a.is_public",
        token_type: &'r str = "a.access_token_type",
        filters_scopes: bool = "a.scope_filter_enabled",
        filters_resources: bool = "a.resource_filter_enabled",
        security_profile: &'r str = "a.security_profile",
        method: Option<&'r str> = "c.token_endpoint_auth_method",
        needs_certificate: Option<bool> = "c.require_certificate_bound_access_tokens",
        needs_dpop: Option<bool> = "c.dpop_bound_access_tokens",
        needs_nonce: Option<bool> = "c.require_dpop_nonce",
        subject_dn: Option<&'r str> = "c.tls_client_auth_subject_dn",
        san_dns: Option<&'r str> = "c.tls_client_auth_san_dns",
        san_uri: Option<&'r str> = "c.tls_client_auth_san_uri",
        san_ip: Option<&'r str> = "c.tls_client_auth_san_ip",
        san_email: Option<&'r str> = "c.tls_client_auth_san_email",
        encrypts_access_tokens: Option<bool> = "a.access_token_encryption_enabled_override",
        introspection_alg: Option<&'r str> = "a.introspection_encrypted_response_alg",
    }
}

selectable! {
    /// A key set as it is stored.
    pub struct KeySetRow<'r> from "FROM client_app_key_set WHERE key_use = 'Signing' AND status IN ('Active', 'Retiring') \
        AND client_app_id" {
        status: &'r str = "status",
        valid_from: Option<Timestamp> = "valid_from",
        valid_to: Option<Timestamp> = "valid_to",
        jwks: Option<&'r str> = "jwks",
        jwks_uri: Option<&'r str> = "jwks_uri",
        certificate: Option<&'r [u8]> = "certificate",
        kid: Option<&'r str> = "kid",
        algorithm: Option<&'r str> = "algorithm",
        id: Uuid = "id",
    }
}

/// Text that is set and not empty.
fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

impl From<ClientAppRow<'_>> for ClientApp {
    fn from(row: ClientAppRow<'_>) -> Self {
        let names = [row.subject_dn, row.san_dns, row.san_uri, row.san_ip, row.san_email];
        Self {
            id: row.id,
            subscription: row.subscription,
            enabled: row.is_served && row.is_enabled,
            is_allowed: row.is_allowed,
            is_public: row.is_public,
            gets_references: row.token_type == "Reference",
            filters_scopes: row.filters_scopes,
            filters_resources: row.filters_resources,
            unsupported_settings: unsupported_settings(&ClientSettings {
                encrypts_access_tokens: row.encrypts_access_tokens == Some(true),
                introspection_encryption: Encryption { alg: filled(row.introspection_alg), enc: None },
                ..ClientSettings::default()
            }),
            is_fapi: row.security_profile != "None",
            is_fapi2: row.security_profile.starts_with("Fapi2"),
            needs_signed_introspection: row.security_profile == "Fapi2MessageSigning",
            configuration: Configuration {
                method: row.method.map_or(Method::Either, Method::named),
                needs_certificate: row.needs_certificate == Some(true),
                needs_dpop: row.needs_dpop == Some(true),
                needs_nonce: row.needs_nonce == Some(true),
                names: names.map(|name| filled(name).map(str::to_owned)),
            },
            secrets: Vec::new(),
            key_sets: Vec::new(),
            scopes: Vec::new(),
            resources: Vec::new(),
            lifetime: lifetime(None) / 1000,
        }
    }
}

impl KeySetRow<'_> {
    /// The key set; `None` if it is not valid yet, or not any more.
    pub fn usable(&self, now: Timestamp) -> Option<KeySet> {
        let status = KeySetStatus::named(self.status)?;
        status.is_usable(self.valid_from, self.valid_to, now).then(|| KeySet {
            id: self.id,
            jwks: self.jwks.map(str::to_owned),
            jwks_uri: self.jwks_uri.map(str::to_owned),
            certificate: self.certificate.map(<[u8]>::to_vec),
            kid: self.kid.map(str::to_owned),
            algorithm: self.algorithm.map(str::to_owned),
        })
    }
}
