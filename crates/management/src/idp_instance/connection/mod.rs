//! The connection to an external identity provider: the configuration of the instance, and the protocol exchange. A trial
//! and a sign-in use the same.

mod documents;
mod exchange;

use std::collections::HashMap;

use aws_lc_rs::digest::{SHA256, digest};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use chancery_certificate::{PrivateKey, facts_of};
use chancery_federation::{Check, Client, Discovery, ProviderKind, SigningKey, fixed_discovery};
use chancery_jwe::DecryptionKey;
use chancery_oauth::{Jwk, PublicKey};
use chancery_record::{Secret, Timestamp, Value};
use chancery_resource::{
    AppContext, MasterKey, StoreError, Tx, open_secret, selectable,
    settings::{Options, Owner, ProviderOption, Setting, words},
};
use uuid::Uuid;

pub use documents::{DOCUMENT_TTL_MS, Documents, ProviderClient, REDIRECT_MAX_AGE_MS, RETRY_MAX_AGE_MS};
pub use exchange::{Begun, Completed, Returned, Secrets, begin, complete, end_session_endpoint, parameters};

selectable! {
    /// A certificate that is linked to an instance; within a type, in descending order of their end.
    struct LinkedCertificate<'r> from "FROM cert_store c JOIN idp_instance_cert_store m ON m.cert_store_rid = c.rid \
        JOIN idp_instance i ON i.rid = m.idp_instance_rid \
        WHERE i.id = ?1 ORDER BY CASE WHEN c.cert_type = ?2 THEN 0 \
        WHEN c.cert_type IN ('OidcTokenSigning', 'OidcTokenEncryption') THEN 1 ELSE 2 END, c.valid_to DESC, c.id LIMIT 20" {
        id: Uuid = "c.id",
        name: &'r str = "c.name",
        kind: &'r str = "c.cert_type",
        certificate: &'r [u8] = "c.certificate",
        private_key: Option<&'r str> = "c.private_key",
        valid_from: Timestamp = "c.valid_from",
        valid_to: Timestamp = "c.valid_to",
    }
}

selectable! {
    /// An option of an instance.
    struct StoredOption<'r> from "FROM option_value WHERE apply_to_idp_instance_id = ?1" {
        name: &'r str = "name",
        value: &'r str = "value",
        id: Uuid = "id",
    }
}

/// The configuration of an instance, as far as a sign-in needs it.
pub struct Connection {
    /// This server as a client of the provider.
    pub client: Client,
    /// `ClientSecret`
    pub secret: Secret,
    /// The key of the linked certificate that signs, if there is one.
    pub signing: Option<SigningKey>,
    /// The keys of linked certificates that decrypt tokens.
    pub decryption_keys: Vec<DecryptionKey>,
    /// The keys by which AD FS signs access tokens, if such a certificate is linked: empty if no linked certificate can be used.
    pub token_keys: Option<Vec<Jwk>>,
    /// The endpoints of a provider that has fixed ones.
    pub fixed: Option<Discovery>,
    /// The path of the callback.
    pub path: String,
    /// The failed checks of options and certificates.
    pub checks: Vec<Check>,
}

impl Connection {
    /// Reads the connection of an instance of this kind.
    pub fn read(
        app: &AppContext,
        tx: &mut Tx<'_>,
        id: Uuid,
        kind: ProviderKind,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let (owner, is_addressed, has_resources) = match kind {
            ProviderKind::OpenIdConnect => (Owner::OpenIdConnect, true, true),
            ProviderKind::AdfsOAuth => (Owner::AdfsOAuth, true, true),
            ProviderKind::Microsoft => (Owner::Microsoft, false, false),
            ProviderKind::Google => (Owner::Google, false, false),
            ProviderKind::Facebook => (Owner::Facebook, false, false),
            ProviderKind::Twitter => (Owner::Twitter, false, false),
        };
        let options = options(&app.master, tx, owner, id.into())?;
        let listed = |setting| words(options.get(setting)).map(str::to_owned).collect();
        let only = |is_set: bool, setting: Setting<_, _>| if is_set { listed(setting) } else { Vec::new() };
        let path = callback_path(&id.to_string(), options.get(ProviderOption::CALLBACK_PATH));
        let authority = if is_addressed { options.get(ProviderOption::AUTHORITY) } else { "" };
        let client = Client {
            kind,
            authority: kind.authority(authority, &app.provider_addresses),
            id: options.get(ProviderOption::CLIENT_ID).to_owned(),
            scopes: listed(ProviderOption::ADDITIONAL_SCOPES),
            resources: only(has_resources, ProviderOption::REQUEST_RESOURCES),
            subject_claim: if kind == ProviderKind::OpenIdConnect {
                options.get(ProviderOption::SCIM_SUBJECT_CLAIM)
            } else {
                "sub"
            }
            .to_owned(),
            tenants: only(kind == ProviderKind::OpenIdConnect, ProviderOption::SCIM_UNIQUE_IDENTIFIER_VALUES),
            redirect_uri: format!("{}{path}", app.public_url),
        };
        let secret = Secret::new(options.get(ProviderOption::CLIENT_SECRET));
        let mut connection = Self {
            fixed: fixed_discovery(kind, &app.provider_addresses),
            client,
            secret,
            signing: None,
            decryption_keys: Vec::new(),
            token_keys: None,
            path,
            checks: Vec::new(),
        };
        connection.read_certificates(&app.master, tx, id.into(), now)?;
        connection.check_secret();
        connection.check_path(tx, id, options.get(ProviderOption::CALLBACK_PATH))?;
        connection.check_subject();
        Ok(connection)
    }

    /// With one path for each instance, no provider gets the code of another one (mix-up, RFC 9700, section 4.4). No option can be set to
    /// the path of another instance; of duplicates from an older release, the first counts.
    fn check_path(&mut self, tx: &mut Tx<'_>, instance: Uuid, path: &str) -> Result<(), StoreError> {
        if path.is_empty() {
            return Ok(());
        }
        let text = "SELECT apply_to_idp_instance_id FROM option_value WHERE name = 'CallbackPath' AND value = ?1 \
            ORDER BY rid LIMIT 1";
        let first = tx.one(text, &[path.into()], |row| row.id(0))?;
        if first.is_some_and(|first| first != instance) {
            let detail = "Another instance has the same CallbackPath: each must have its own.";
            self.checks.push(Check::failed("callback", detail).with_option("CallbackPath"));
        }
        Ok(())
    }

    /// This server authenticates to the provider by a secret, or by a certificate.
    fn check_secret(&mut self) {
        // the token certificate of AD FS means that it is no OpenID provider
        let is_proven = self.signing.is_some() && self.token_keys.is_none();
        if self.secret.expose().is_empty() && !is_proven {
            let detail = "ClientSecret is empty, and no linked certificate of type OidcTokenSigning can be used: set ClientSecret, or \
                link a certificate that is valid and has its key.";
            self.checks.push(Check::failed("secret", detail).with_option("ClientSecret"));
        }
    }

    /// The administrator of an organisation sets this claim, so it identifies a person within that organisation alone.
    fn check_subject(&mut self) {
        if self.client.subject_claim != "sub" && self.client.tenants.is_empty() {
            let detail =
                "ScimSubjectClaim needs ScimUniqueIdentifierValues: the organisations whose claim counts.";
            self.checks.push(Check::failed("subjectClaim", detail).with_option("ScimUniqueIdentifierValues"));
        }
    }

    /// Reads the usable linked certificates; within a type, in descending order of their end.
    fn read_certificates(
        &mut self,
        master: &MasterKey,
        tx: &mut Tx<'_>,
        instance: Value,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let kind = self.client.kind;
        let (is_oidc, is_adfs) = (kind.has_id_tokens(), kind == ProviderKind::AdfsOAuth);
        let first = if is_adfs { "AdfsOAuthTokenSigning" } else { "OidcTokenSigning" };
        tx.query(LinkedCertificate::SELECT, &[instance, first.into()], |row| {
            let LinkedCertificate { id, name, kind, certificate, private_key, valid_from, valid_to } =
                LinkedCertificate::read(row)?;
            let is_valid = (valid_from..valid_to).contains(&now);
            let key = || {
                let text = open_secret(master, "cert_store", "private_key", &Value::Id(id), private_key?)?;
                PrivateKey::read(&BASE64_STANDARD.decode(text).ok()?, None).ok()
            };
            let (is_of_use, is_used) = match kind {
                "OidcTokenSigning" if is_oidc => {
                    let x5t = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, certificate));
                    let found = Some(()).filter(|()| is_valid).and_then(|()| key());
                    let is_used = found.is_some();
                    if let (None, Some(key)) = (&self.signing, found) {
                        self.signing = Some(SigningKey { key, x5t });
                    }
                    (true, is_used)
                }
                "OidcTokenEncryption" if is_oidc => {
                    let found = Some(()).filter(|()| is_valid).and_then(|()| key());
                    let found = found.and_then(|key| DecryptionKey::read(key.expose_pkcs8()));
                    let is_used = found.is_some();
                    self.decryption_keys.extend(found);
                    (true, is_used)
                }
                "AdfsOAuthTokenSigning" if is_adfs => {
                    let found = facts_of(certificate).ok().filter(|_| is_valid);
                    let found =
                        found.and_then(|facts| PublicKey::from_spki(&facts.subject_public_key_info).ok());
                    let is_used = found.is_some();
                    self.token_keys.get_or_insert_default().extend(found.map(Jwk::of));
                    (true, is_used)
                }
                _ => (false, false),
            };
            if !is_used {
                let why = if is_of_use {
                    "it is not valid now, or has no key of a kind that serves"
                } else {
                    "certificates of this type are not used here"
                };
                let detail = format!("The linked certificate \"{name}\" of type {kind} is of no use: {why}.");
                self.checks.push(Check::failed("certificates", detail).with_option("certStores"));
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// The path of the redirect URI of the instance with this id, by its option `CallbackPath`, which may be empty.
pub fn callback_path(instance: &str, set: &str) -> String {
    if set.is_empty() { format!("/external/{instance}/callback") } else { set.to_owned() }
}

fn options(
    master: &MasterKey,
    tx: &mut Tx<'_>,
    owner: Owner,
    instance: Value,
) -> Result<Options<ProviderOption>, StoreError> {
    let mut values = HashMap::new();
    tx.query(StoredOption::SELECT, &[instance], |row| {
        let StoredOption { name, value, id } = StoredOption::read(row)?;
        let opened = open_secret(master, "option_value", "value", &Value::Id(id), value);
        values.insert(name.to_owned(), opened.unwrap_or_default());
        Ok(())
    })?;
    Ok(Options::of(owner, values))
}
