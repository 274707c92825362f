//! The connection to an OpenID provider: what an instance is set to, and what this server and the provider tell each other. A trial
//! and a sign-in use the same.

mod documents;
mod exchange;

use std::collections::HashMap;

use aws_lc_rs::digest::{SHA256, digest};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use chancery_certificate::PrivateKey;
use chancery_federation::{Check, Client, Kind, SigningKey};
use chancery_jwe::OpeningKey;
use chancery_record::{Secret, Timestamp, Value};
use chancery_resource::{
    AppContext, MasterKey, StoreError, Tx, open_secret,
    settings::{Options, Owner, words},
};
use uuid::Uuid;

pub use documents::{Asking, Documents};
pub use exchange::{Begun, Completed, Returned, Secrets, begin, complete, parameters};

/// What an instance is set to, as far as signing in there needs it.
pub struct Connection {
    /// What this server is at the provider.
    pub client: Client,
    /// `ClientSecret`
    pub secret: Secret,
    /// The key of the linked certificate that signs, if there is one.
    pub signing: Option<SigningKey>,
    /// The keys of linked certificates that open tokens.
    pub opening: Vec<OpeningKey>,
    /// The path of the callback.
    pub path: String,
    /// What is wrong with options and certificates themselves.
    pub checks: Vec<Check>,
}

impl Connection {
    /// Reads the connection of an instance of this kind.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn read(
        app: &AppContext,
        tx: &mut Tx<'_>,
        (id, kind): (Uuid, Kind),
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let owner = match kind {
            Kind::OpenIdConnect => Owner::OpenIdConnect,
            Kind::Microsoft => Owner::Microsoft,
            Kind::Google => Owner::Google,
        };
        let options = options(&app.master, tx, owner, id.into())?;
        let listed = |name: &str| words(options.text(name)).map(str::to_owned).collect();
        let is_open = kind == Kind::OpenIdConnect;
        let own = |name: &str| if is_open { listed(name) } else { Vec::new() };
        let path = match options.text("CallbackPath") {
            "" => format!("/external/{id}/callback"),
            path => path.to_owned(),
        };
        let authority = if is_open { options.text("Authority") } else { "" };
        let client = Client {
            kind,
            authority: kind.authority(authority).to_owned(),
            id: options.text("ClientId").to_owned(),
            scopes: listed("AdditionalScopes"),
            resources: own("RequestResources"),
            tenants: own("ScimUniqueIdentifierValues"),
            redirect_uri: format!("{}{path}", app.public_url),
        };
        let secret = Secret::new(options.text("ClientSecret"));
        let mut connection =
            Self { client, secret, signing: None, opening: Vec::new(), path, checks: Vec::new() };
        connection.read_certificates(&app.master, tx, id.into(), now)?;
        connection.check_path(tx, options.text("CallbackPath"))?;
        Ok(connection)
    }

    /// With one path for each instance, no provider gets the code of another one (mix-up, RFC 9700, section 4.4).
    fn check_path(&mut self, tx: &mut Tx<'_>, path: &str) -> Result<(), StoreError> {
        let text = "SELECT count(*) FROM option_value WHERE name = 'CallbackPath' AND value = ?1";
        let count = if path.is_empty() { None } else { tx.one(text, &[path.into()], |row| row.int(0))? };
        if count.unwrap_or_default() > 1 {
            let detail = "Another instance has the same CallbackPath: each must have its own.";
            self.checks.push(Check::failed("callback", detail).by("CallbackPath"));
        }
        Ok(())
    }

    /// Reads the linked certificates that are of use: of each type those that end last come first.
    fn read_certificates(
        &mut self,
        master: &MasterKey,
        tx: &mut Tx<'_>,
        instance: Value,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let text = "SELECT c.id, c.name, c.cert_type, c.certificate, c.private_key, c.valid_from, c.valid_to \
            FROM cert_store c JOIN idp_instance_cert_store m ON m.cert_store_rid = c.rid \
            JOIN idp_instance i ON i.rid = m.idp_instance_rid \
            WHERE i.id = ?1 ORDER BY c.cert_type NOT IN ('OidcTokenSigning', 'OidcTokenEncryption'), c.valid_to DESC, c.id \
            LIMIT 20";
        tx.query(text, &[instance], |row| {
            let (id, name, kind) = (row.id(0)?, row.text(1)?, row.text(2)?);
            let is_of_use = ["OidcTokenSigning", "OidcTokenEncryption"].contains(&kind);
            let is_valid = (row.int(5)?..row.int(6)?).contains(&now.0);
            let sealed = if row.is_null(4)? { None } else { Some(row.text(4)?) };
            let key = sealed.filter(|_| is_of_use && is_valid).and_then(|sealed| {
                let text = open_secret(master, "cert_store", "private_key", &Value::Id(id), sealed)?;
                PrivateKey::read(&BASE64_STANDARD.decode(text).ok()?, None).ok()
            });
            let is_used = match (kind, key) {
                ("OidcTokenSigning", Some(key)) => {
                    let x5t = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, row.bytes(3)?));
                    self.signing.get_or_insert(SigningKey { key, x5t });
                    true
                }
                ("OidcTokenEncryption", Some(key)) => {
                    let key = OpeningKey::read(key.expose_pkcs8());
                    let is_fit = key.is_some();
                    self.opening.extend(key);
                    is_fit
                }
                _ => false,
            };
            if !is_used {
                let why = if is_of_use {
                    "it is not valid now, or has no private key of a kind that serves"
                } else {
                    "certificates of this type are not used here"
                };
                let detail = format!("The linked certificate \"{name}\" of type {kind} is of no use: {why}.");
                self.checks.push(Check::failed("certificates", detail).by("certStores"));
            }
            Ok(())
        })?;
        Ok(())
    }
}

fn options(
    master: &MasterKey,
    tx: &mut Tx<'_>,
    owner: Owner,
    instance: Value,
) -> Result<Options, StoreError> {
    let mut values = HashMap::new();
    let text = "SELECT name, value, id FROM option_value WHERE apply_to_idp_instance_id = ?1";
    tx.query(text, &[instance], |row| {
        let (name, value) = (row.text(0)?, row.text(1)?);
        let opened = open_secret(master, "option_value", "value", &Value::Id(row.id(2)?), value);
        values.insert(name.to_owned(), opened.unwrap_or_default());
        Ok(())
    })?;
    Ok(Options::new(owner, values))
}
