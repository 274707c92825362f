//! Issuing and opening of access tokens.

use std::sync::{Arc, PoisonError, RwLock};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_fetch::Policy;
use chancery_oauth::{Algorithm, Nonces};
use chancery_record::Timestamp;
use chancery_resource::{AuditSigner, MasterKey, random};
use chancery_store::{Error, Mode, StateTable, Store, Tx};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::{
    Claims, ClientApp, Issuer, Keyring,
    authenticated_clients::AuthenticatedClients,
    issuer::{ServingTenants, issuer_url},
    keyring::TokenKey,
    remote_keys::RemoteKeys,
    signer::{ACCESS_TOKEN, ID_TOKEN, UnverifiedToken, sign},
    signing_certificate::Certificates,
    uses::CredentialUses,
};

/// The random bytes of a reference token.
const REFERENCE_BYTES: usize = 32;
/// The characters of a reference token: those bytes in base64url.
const REFERENCE_LENGTH: usize = 43;

/// Issues and opens access tokens.
pub struct TokenService {
    /// The installation's own signing keys.
    pub keyring: Keyring,
    /// The URL of the installation: its issuer, and the beginning of the tenants' issuers.
    pub public_url: String,
    /// The key of the digest that authenticates claims, see [`Claims::authenticate`].
    pub(crate) master: MasterKey,
    /// Nonces for DPoP.
    pub nonces: Nonces,
    /// Keys that client apps publish at their `jwksUri`.
    pub(crate) remote: RemoteKeys,
    /// Client apps that authenticated by a secret.
    pub(crate) authenticated_clients: AuthenticatedClients,
    /// Recent uses of client credentials.
    pub uses: CredentialUses,
    tenants: ServingTenants,
    certificates: RwLock<Arc<Certificates>>,
}

/// The claims of an ID token hint.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct IdTokenHint {
    iss: String,
    /// The person.
    pub sub: Uuid,
    /// The client app that it was issued to.
    pub aud: Uuid,
    /// The tenant.
    pub tid: Uuid,
}

/// A presented token, before its rights are looked up.
#[derive(Debug)]
pub enum OpenedToken {
    /// A JWT whose signature is verified, with the epoch at which it was valid. `None`: it is valid at any, since a key of the
    /// installation signed it.
    Signed(Arc<Claims>, Option<i64>),
    /// The digest of a possible reference token.
    Reference(Vec<u8>),
}

impl TokenService {
    /// Issues with these keys, at this URL. `policy` bounds where client apps' keys are fetched from.
    pub fn new(keyring: Keyring, public_url: String, master: MasterKey, policy: Policy) -> Self {
        Self {
            nonces: Nonces::new(&master.derive("dpop-nonce")),
            remote: RemoteKeys::new(policy),
            authenticated_clients: AuthenticatedClients::default(),
            uses: CredentialUses::default(),
            tenants: ServingTenants::default(),
            certificates: RwLock::default(),
            keyring,
            public_url,
            master,
        }
    }

    /// The policy of destinations that administrators configure.
    pub const fn destinations(&self) -> &Policy {
        &self.remote.policy
    }

    /// The installation as an issuer.
    pub fn installation(&self) -> Issuer {
        Issuer { url: self.public_url.clone(), tenant: None }
    }

    /// The tenant of this id as an issuer, while the tenant is active.
    pub async fn issuer_of(&self, store: &Store, tenant: &str) -> Result<Option<Issuer>, Error> {
        let tenant_found = self.tenants.find(store, tenant).await?;
        Ok(tenant_found.map(|tenant| Issuer {
            url: issuer_url(&self.public_url, Some(tenant.id)),
            tenant: Some(tenant),
        }))
    }

    /// Signs claims with the issuer's first key. A key that cannot be used is an error: another key instead would sign
    /// for a foreign issuer.
    ///
    /// # Errors
    /// A certificate's key that cannot be opened or cannot sign; errors of the store.
    pub(crate) async fn sign(
        &self,
        store: &Store,
        claims: &Claims,
        certificates: &Certificates,
        issuer: &Issuer,
        now: Timestamp,
    ) -> Result<String, Error> {
        let typ = self.type_of(store, claims, certificates.epoch).await?;
        self.sign_with_first_key(claims, typ, &self.keyring.token_key, certificates, issuer, now)
    }

    /// The `typ` of an access token with these claims. The tenant's option AccessTokenHeaderType decides, but never for the
    /// services of the platform.
    async fn type_of(&self, store: &Store, claims: &Claims, epoch: i64) -> Result<&'static str, Error> {
        let Some(tenant) = claims.tid.filter(|_| !claims.has_rights()) else { return Ok(ACCESS_TOKEN) };
        let issuing_tenant = self.tenants.since(store, tenant, epoch).await?;
        Ok(if issuing_tenant.is_some_and(|tenant| tenant.has_plain_type) { ID_TOKEN } else { ACCESS_TOKEN })
    }

    /// Issues an access token to a client app: signed, or a reference that is stored.
    ///
    /// # Errors
    /// A certificate's key that cannot be opened or cannot sign; errors of the store.
    pub async fn issue(
        &self,
        store: &Store,
        claims: &mut Claims,
        app: &ClientApp,
        issuer: &Issuer,
        now: Timestamp,
        epoch: i64,
    ) -> Result<String, Error> {
        claims.authenticate(&self.master);
        if !app.gets_references {
            let certificates = self.certificates_since(store, epoch).await?;
            return self.sign(store, claims, &certificates, issuer, now).await;
        }
        let (token, digest) = self.make_reference();
        let claims = claims.clone();
        store.run("StoreReference", Mode::Write, None, move |tx| claims.store(tx, &digest)).await?;
        Ok(token)
    }

    /// Signs an ID token, or a token of this other `typ`, with the issuer's first key, the installation's by RS256.
    /// `claims` builds the claims for an algorithm; `epoch` is a security epoch that was read for this request.
    ///
    /// # Errors
    /// A certificate's key that cannot be opened or cannot sign; errors of the store.
    pub async fn sign_id_token(
        &self,
        store: &Store,
        typ: &str,
        claims: impl FnOnce(&str) -> serde_json::Value,
        issuer: &Issuer,
        now: Timestamp,
        epoch: i64,
    ) -> Result<String, Error> {
        let certificates = self.certificates_since(store, epoch).await?;
        let algorithm = certificates.signing(issuer.tenant, now).map_or("RS256", |one| one.algorithm.name());
        let claims = claims(algorithm);
        self.sign_with_first_key(&claims, typ, &self.keyring.id_token_key, &certificates, issuer, now)
    }

    /// The claims of an ID token that this issuer issued, expired or not. It is only a hint: the owner of an uploaded
    /// certificate can sign one.
    pub async fn open_id_token(
        &self,
        store: &Store,
        token: &str,
        issuer: &Issuer,
        now: Timestamp,
    ) -> Result<Option<IdTokenHint>, Error> {
        let Some(unverified) = UnverifiedToken::read_id_token(token) else { return Ok(None) };
        let kid = unverified.header.kid.as_str();
        let hint: Option<IdTokenHint> = if let Some(key) = self.keyring.id_token_keys.get(kid) {
            unverified.verified(key, Algorithm::Rs256)
        } else {
            let certificates = self.certificates(store).await?;
            let mut named = certificates.named(kid, now).filter(|one| one.may_sign_at(issuer.tenant_id()));
            named.find_map(|one| unverified.verified(&one.public, one.algorithm))
        };
        Ok(hint.filter(|hint| hint.iss == issuer.url))
    }

    fn sign_with_first_key(
        &self,
        claims: &impl Serialize,
        typ: &str,
        own: &TokenKey,
        certificates: &Certificates,
        issuer: &Issuer,
        now: Timestamp,
    ) -> Result<String, Error> {
        let signed = match certificates.signing(issuer.tenant, now) {
            Some(one) => {
                let key = one.private(&self.master).ok_or_else(|| {
                    Error::Internal(format!("the private key of cert store {} cannot be opened", one.id))
                })?;
                sign(key, &one.kid, Some(&one.x5t), typ, claims)
            }
            None => sign(&own.private, &own.kid, None, typ, claims),
        };
        signed.ok_or_else(|| Error::Internal("the key for tokens cannot sign".into()))
    }

    /// Makes a reference token; returns it with the digest that it is stored by.
    pub(crate) fn make_reference(&self) -> (String, Vec<u8>) {
        let token = BASE64_URL_SAFE_NO_PAD.encode(random::<REFERENCE_BYTES>());
        let digest = self.reference_digest(&token);
        (token, digest)
    }

    fn reference_digest(&self, token: &str) -> Vec<u8> {
        self.master.digest("reference-token", token.as_bytes())
    }

    /// Opens a token as far as possible without the database. `None`: this installation did not issue it. Unless
    /// `is_current`, cached certificates are tried first: the caller must compare the epoch in the result with the current
    /// one.
    pub(crate) async fn open(
        &self,
        store: &Store,
        token: &str,
        is_current: bool,
        now: Timestamp,
    ) -> Result<Option<OpenedToken>, Error> {
        let Some(unverified) = UnverifiedToken::read(token) else {
            let is_reference = token.len() == REFERENCE_LENGTH && !token.contains('.');
            return Ok(is_reference.then(|| OpenedToken::Reference(self.reference_digest(token))));
        };
        let kid = unverified.header.kid.as_str();
        // tokens for the services of the platform always have the `typ` of access tokens
        let is_valid =
            |claims: &Claims| self.is_issued(claims) && !(unverified.has_plain_type() && claims.has_rights());
        if let Some(key) = self.keyring.token_keys.get(kid) {
            let claims = unverified.verified(key, Algorithm::Es256);
            return Ok(claims.filter(is_valid).map(|claims| OpenedToken::Signed(claims.into(), None)));
        }
        let open_by = |certificates: &Certificates| {
            let claims = certificates.named(kid, now).find_map(|one| {
                let claims: Claims = unverified.verified(&one.public, one.algorithm)?;
                one.may_sign_at(claims.issuing_tenant()).then_some(claims)
            });
            let claims = claims.filter(is_valid)?;
            Some(OpenedToken::Signed(claims.into(), Some(certificates.epoch)))
        };
        if !is_current {
            let cached = Arc::clone(&self.certificates.read().unwrap_or_else(PoisonError::into_inner));
            if let Some(opened) = open_by(&cached) {
                return Ok(Some(opened));
            }
        }
        Ok(open_by(self.certificates(store).await?.as_ref()))
    }

    fn is_issued(&self, claims: &Claims) -> bool {
        claims.iss == issuer_url(&self.public_url, claims.issuing_tenant())
            && claims.are_authentic(&self.master)
    }

    /// The signing certificates as they are now.
    pub(crate) async fn certificates(&self, store: &Store) -> Result<Arc<Certificates>, Error> {
        self.certificates_since(store, store.epoch().await?).await
    }

    /// The signing certificates as they were at an epoch, or later.
    pub(crate) async fn certificates_since(
        &self,
        store: &Store,
        epoch: i64,
    ) -> Result<Arc<Certificates>, Error> {
        let before = Arc::clone(&self.certificates.read().unwrap_or_else(PoisonError::into_inner));
        if before.epoch >= epoch {
            return Ok(before);
        }
        let previous = Arc::clone(&before);
        let loaded = store
            .run("SigningCertificates", Mode::Quick, None, move |tx| load_certificates(tx, &previous))
            .await?;
        if loaded.epoch > before.epoch {
            let mut current = self.certificates.write().unwrap_or_else(PoisonError::into_inner);
            if current.epoch < loaded.epoch {
                for cert_store in loaded.newly_unreadable(&current) {
                    tracing::error!(
                        %cert_store,
                        "a signing certificate cannot be read: another key signs in its place"
                    );
                }
                *current = Arc::clone(&loaded);
            }
        }
        Ok(loaded)
    }

    /// Lets the current certificates of the cert store sign the audit trail. Their public keys are stored and published
    /// before they sign, and never deleted, as the signatures remain. A private key that cannot be opened is logged and
    /// another key signs: every entry names its key. Rejecting changes instead would also reject the one that repairs the
    /// certificate.
    /// # Errors
    /// Errors of the store.
    pub async fn certify(&self, store: &Store, signer: &AuditSigner, now: Timestamp) -> Result<(), Error> {
        let certificates = self.certificates(store).await?;
        if certificates.epoch == signer.certified_at() {
            return Ok(());
        }
        let (mut usable, mut broken) = (Vec::new(), Vec::new());
        for one in certificates.for_audit() {
            match one.private(&self.master) {
                Some(key) => usable.extend(one.audit_key(key).map(|key| (one, key))),
                None => broken.push(one.id),
            }
        }
        let new = usable.iter().filter(|(_, key)| !signer.knows(key));
        let new: Vec<_> = new.map(|(one, _)| (one.kid.clone(), one.jwk.to_string())).collect();
        if !new.is_empty() {
            store.run("KeepAuditKeys", Mode::Write, None, move |tx| store_audit_keys(tx, &new, now)).await?;
        }
        for cert_store in broken.iter().filter(|id| !signer.broken().contains(id)) {
            tracing::error!(
                %cert_store,
                "the private key of a certificate for the audit trail cannot be opened: another key signs in its place"
            );
        }
        signer.certify(certificates.epoch, usable.into_iter().map(|(_, key)| key).collect(), broken);
        Ok(())
    }

    /// The public keys that ever signed an audit trail, as a JWK set.
    pub async fn audit_jwks(&self, store: &Store) -> Result<String, Error> {
        let own = self.keyring.audit_jwks.clone();
        store.run("AuditKeys", Mode::Quick, None, move |tx| all_audit_keys(tx, own.clone())).await
    }

    /// The public keys of an issuer's tokens, as a JWK set.
    pub async fn jwks(&self, store: &Store, issuer: &Issuer, now: Timestamp) -> Result<String, Error> {
        let mut keys = self.keyring.token_jwks.clone();
        keys.extend(self.certificates(store).await?.jwks(issuer.tenant, now));
        Ok(json!({ "keys": keys }).to_string())
    }
}

/// Returns the loaded certificates if the epoch is the same, else loads them again.
fn load_certificates(tx: &mut Tx<'_>, before: &Arc<Certificates>) -> Result<Arc<Certificates>, Error> {
    let epoch = tx.epoch()?;
    if epoch == before.epoch {
        return Ok(Arc::clone(before));
    }
    Certificates::load(tx, epoch, before).map(Arc::new)
}

fn store_audit_keys(tx: &mut Tx<'_>, keys: &[(String, String)], now: Timestamp) -> Result<(), Error> {
    let text =
        StateTable::AuditKey.insert("(key_id, jwk, created_on) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING");
    keys.iter().try_for_each(|(id, jwk)| {
        tx.queue(&text, vec![id.as_str().into(), jwk.as_str().into(), now.0.into()])
    })
}

/// The public keys that signed entries of the audit trail, as a JWK set: these, and those of certificates.
///
/// # Errors
/// A stored key that cannot be read.
pub fn all_audit_keys(tx: &mut Tx<'_>, mut keys: Vec<serde_json::Value>) -> Result<String, Error> {
    tx.query("SELECT jwk FROM audit_key ORDER BY created_on, key_id", &[], |row| {
        let broken = |_| Error::Internal("a kept key of the audit trail cannot be read".into());
        keys.push(serde_json::from_str(row.text(0)?).map_err(broken)?);
        Ok(())
    })?;
    Ok(json!({ "keys": keys }).to_string())
}
