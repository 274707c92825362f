//! Certificates of the cert store that sign access tokens and the audit trail: the selection by issuer, and how long each
//! is published.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_certificate::{PrivateKey, facts_of};
use chancery_oauth::{Algorithm, PublicKey};
use chancery_record::{Secret, Timestamp, Value};
use chancery_resource::settings::{Options, TenantOption};
use chancery_resource::{AuditKey, MasterKey, open_secret};
use chancery_store::{Error, Tx, selectable};
use serde_json::json;
use uuid::Uuid;

use crate::{IssuingTenant, signer::algorithms};

/// The most certificates of one type, subscription and tenant that are read: those that expire last. So none crowds out
/// those of another.
const MAX_PER_OWNER: usize = 20;

/// A certificate whose key signs.
pub struct SigningCertificate {
    /// The cert store's id.
    pub id: Uuid,
    version: String,
    /// The id of the key: its thumbprint.
    pub kid: String,
    /// The SHA-256 thumbprint of the certificate.
    pub x5t: String,
    /// The public key.
    pub public: PublicKey,
    /// The one algorithm by which the key signs.
    pub algorithm: Algorithm,
    /// The public key as it is published.
    pub jwk: serde_json::Value,
    for_audit: bool,
    is_default: bool,
    subscription: Option<Uuid>,
    tenant: Option<Uuid>,
    valid_from: i64,
    valid_to: i64,
    sealed: String,
    private: OnceLock<Option<Arc<PrivateKey>>>,
}

impl SigningCertificate {
    /// The private key, decrypted at its first use.
    pub fn private(&self, master: &MasterKey) -> Option<&Arc<PrivateKey>> {
        self.private
            .get_or_init(|| {
                let key = Value::Id(self.id);
                let text = open_secret(master, "cert_store", "private_key", &key, &self.sealed)?;
                let der = Secret::new(BASE64_STANDARD.decode(Secret::new(text).expose()).ok()?);
                PrivateKey::read(der.expose(), None).ok().map(Arc::new)
            })
            .as_ref()
    }

    /// The decrypted private key as an audit key, if it can sign the audit trail.
    pub fn audit_key(&self, private: &Arc<PrivateKey>) -> Option<AuditKey> {
        AuditKey::of_certificate(Arc::clone(private), self.valid_from..self.valid_to)
    }

    /// Whether the certificate may have signed a token of this tenant's issuer, or of the installation's. A
    /// subscription's certificate is accepted for any tenant here: the claims authenticate the issuer.
    pub fn may_sign_at(&self, tenant: Option<Uuid>) -> bool {
        self.is_default || (tenant.is_some() && (self.tenant.is_none() || self.tenant == tenant))
    }

    /// Whether the certificate's key is one of this issuer's.
    fn is_of(&self, issuer: Option<IssuingTenant>) -> bool {
        let is_of = |issuer: IssuingTenant| match self.tenant {
            Some(tenant) => tenant == issuer.id,
            None => self.subscription == Some(issuer.subscription),
        };
        self.is_default || issuer.is_some_and(is_of)
    }

    const fn is_valid(&self, now: Timestamp) -> bool {
        self.valid_from <= now.0 && now.0 < self.valid_to
    }
}

selectable! {
    /// A certificate of the cert store that should sign.
    struct StoredCertificate<'r> {
        id: Uuid = "id",
        version: &'r str = "concurrency_token",
        certificate: &'r [u8] = "certificate",
        sealed: &'r str = "private_key",
        cert_type: &'r str = "cert_type",
        subscription: Option<Uuid> = "apply_to_subscription_id",
        tenant: Option<Uuid> = "apply_to_tenant_id",
        valid_from: i64 = "valid_from",
        valid_to: i64 = "valid_to",
    }
}

impl StoredCertificate<'_> {
    /// The certificate with its public key; `None` if it cannot be read, or its key cannot sign.
    fn parse(&self) -> Option<SigningCertificate> {
        let facts = facts_of(self.certificate).ok()?;
        let spki = &facts.subject_public_key_info;
        let public = PublicKey::from_spki(spki).ok()?;
        let kid = public.thumbprint();
        let mut jwk = chancery_certificate::PublicKey::from_spki(spki)?.jwk(&kid);
        let (_, algorithm) = algorithms(facts.key)?;
        let x5t = facts.thumbprint_sha256;
        let members = jwk.as_object_mut()?;
        members.insert("use".into(), json!("sig"));
        members.insert("alg".into(), json!(algorithm.name()));
        members.insert("x5t#S256".into(), json!(x5t));
        Some(SigningCertificate {
            id: self.id,
            version: self.version.to_owned(),
            kid,
            x5t,
            public,
            algorithm,
            jwk,
            for_audit: self.cert_type == "AuditTrailSigning",
            is_default: self.cert_type == "Default",
            subscription: self.subscription,
            tenant: self.tenant,
            valid_from: self.valid_from,
            valid_to: self.valid_to,
            sealed: self.sealed.to_owned(),
            private: OnceLock::new(),
        })
    }
}

/// The signing certificates at an epoch.
#[derive(Default)]
pub struct Certificates {
    /// The epoch at which they were read.
    pub epoch: i64,
    all: Vec<Arc<SigningCertificate>>,
    /// The ids and versions of cert stores that should sign and cannot be read.
    unreadable: HashSet<(Uuid, String)>,
    /// The longest lifetime of a token, in milliseconds.
    max_lifetime: i64,
}

impl Certificates {
    /// The certificate that signs for an issuer: the tenant's, else its subscription's, else the default one;
    /// for the installation, the default one. Of several, the one that expires last.
    pub fn signing(&self, issuer: Option<IssuingTenant>, now: Timestamp) -> Option<&SigningCertificate> {
        let usable = self.for_tokens().filter(|one| one.is_valid(now) && one.is_of(issuer));
        let specificity = |one: &SigningCertificate| match (one.tenant, one.subscription) {
            (Some(_), _) => 2,
            (_, Some(_)) => 1,
            _ => 0,
        };
        usable.max_by_key(|one| (specificity(one), one.valid_to, one.id)).map(Arc::as_ref)
    }

    /// The cert stores that should sign and cannot be read, and were not among those of `before`.
    pub fn newly_unreadable<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = Uuid> {
        self.unreadable.difference(&before.unreadable).map(|(id, _)| *id)
    }

    fn for_tokens(&self) -> impl Iterator<Item = &Arc<SigningCertificate>> {
        self.all.iter().filter(|one| !one.for_audit)
    }

    /// The certificates for the audit trail, in the order in which they are preferred: those of its type,
    /// then the default ones, each from the one that expires last.
    pub fn for_audit(&self) -> impl Iterator<Item = &SigningCertificate> {
        let own = self.all.iter().filter(|one| one.for_audit);
        own.chain(self.all.iter().filter(|one| one.is_default)).map(Arc::as_ref)
    }

    /// The certificates of this key id that may have signed a current token: also one that has expired, until
    /// its last token has, and one that is not valid yet, as this clock may be behind.
    pub fn named<'a>(&'a self, kid: &'a str, now: Timestamp) -> impl Iterator<Item = &'a SigningCertificate> {
        let all = self.for_tokens().map(Arc::as_ref);
        all.filter(move |one| one.kid == kid && self.is_published(one, now))
    }

    /// The public keys of an issuer, each once. Future ones are included, so that verifiers know them in
    /// time.
    pub fn jwks(&self, issuer: Option<IssuingTenant>, now: Timestamp) -> Vec<serde_json::Value> {
        let mut kids_seen = HashSet::new();
        let published = self.for_tokens().filter(|one| one.is_of(issuer) && self.is_published(one, now));
        published.filter(|one| kids_seen.insert(&one.kid)).map(|one| one.jwk.clone()).collect()
    }

    const fn is_published(&self, one: &SigningCertificate, now: Timestamp) -> bool {
        now.0 < one.valid_to.saturating_add(self.max_lifetime)
    }

    /// Reads the certificates. Those of `before` that did not change are reused.
    pub fn load(tx: &mut Tx<'_>, epoch: i64, before: &Self) -> Result<Self, Error> {
        let text = format!(
            "SELECT {} FROM (SELECT c.*, ROW_NUMBER() OVER \
             (PARTITION BY cert_type, apply_to_subscription_id, apply_to_tenant_id ORDER BY valid_to DESC, id) \
             AS place FROM cert_store c WHERE certificate_has_private_key \
             AND (cert_type IN ('AuditTrailSigning', 'Default') OR (cert_type = 'OidcTokenSigning' \
             AND (apply_to_subscription_id IS NOT NULL OR apply_to_tenant_id IS NOT NULL)))) AS c \
             WHERE place <= {MAX_PER_OWNER} ORDER BY valid_to DESC, id",
            StoredCertificate::COLUMNS
        );
        let (mut all, mut unreadable) = (Vec::new(), HashSet::new());
        let before: HashMap<Uuid, &Arc<SigningCertificate>> =
            before.all.iter().map(|one| (one.id, one)).collect();
        tx.query(&text, &[], |row| {
            let stored = StoredCertificate::read(row)?;
            if let Some(cached) = before.get(&stored.id).filter(|one| one.version == stored.version) {
                all.push(Arc::clone(cached));
            } else if let Some(certificate) = stored.parse() {
                all.push(Arc::new(certificate));
            } else {
                unreadable.insert((stored.id, stored.version.to_owned()));
            }
            Ok(())
        })?;
        let mut max_lifetime = lifetime(None);
        if !all.is_empty() {
            let text = "SELECT DISTINCT value FROM option_value \
                WHERE name = 'AccessTokenLifetime' AND apply_to_tenant_id IS NOT NULL";
            tx.query(text, &[], |row| {
                max_lifetime = max_lifetime.max(lifetime(Some(row.text(0)?)));
                Ok(())
            })?;
        }
        Ok(Self { epoch, all, unreadable, max_lifetime })
    }
}

/// The lifetime of a token by a tenant's option `AccessTokenLifetime`, in milliseconds: a second at least.
pub fn lifetime(option: Option<&str>) -> i64 {
    let setting = TenantOption::ACCESS_TOKEN_LIFETIME;
    let value = option.map(|text| (setting.name().to_owned(), text.to_owned()));
    Options::<TenantOption>::new(value.into_iter().collect()).get(setting).max(1000)
}
