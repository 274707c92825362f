//! Cert stores: certificates, some with private keys, which no response contains.

mod look_up;
mod upload;

use chancery_application::by_certificates;
use chancery_record::{
    Bytes, DefaultValue, Description, FIXED, FieldType, HIDDEN, JsonText, KEY, Kind, Mismatch, Name, OPEN,
    Record, SHOWN, Sealing, ShortText, Timestamp, Token, Value, choice_types, id_types, record,
};
use chancery_resource::{
    CarriedBy, Figure, FigureSource, FigureUnit, Findings, Links, Op, Parent, Protection, ProvidedFields,
    Reach, Relation, Rules, Shape, Unique, relation, standard,
};

use crate::{
    idp_instance::IDP_INSTANCE,
    link::{IDP_INSTANCE_CERT_STORE, within_subscription},
    location::ApplyToType,
    subscription::{SUBSCRIPTION, SubscriptionId},
    tenant::{TENANT, TenantId},
};

pub use look_up::OPERATIONS as LOOK_UPS;

/// The figures of certificates, for operators.
pub static FIGURES: [Figure; 1] = [Figure {
    name: "signing_certificate_end_time",
    help: "When the first tenant, subscription, the audit trail or all are left without a signing certificate; 0 for none",
    unit: FigureUnit::Time,
    source: FigureSource::Query(
        "SELECT coalesce(min(last), 0) FROM (SELECT max(valid_to) AS last FROM cert_store \
         WHERE certificate_has_private_key AND (cert_type IN ('Default', 'AuditTrailSigning') \
         OR (cert_type = 'OidcTokenSigning' \
         AND (apply_to_tenant_id IS NOT NULL OR apply_to_subscription_id IS NOT NULL))) \
         GROUP BY cert_type, apply_to_subscription_id, apply_to_tenant_id) AS ends",
    ),
}];

id_types! {
    /// The id of a cert store.
    CertStoreId
}

choice_types! {
    /// The use of a certificate.
    CertType {
        /// Fallback where no other certificate applies; global.
        Default,
        /// Signing tokens.
        OidcTokenSigning,
        /// Encrypting tokens.
        OidcTokenEncryption,
        /// Verifying tokens of Active Directory Federation Services.
        AdfsOAuthTokenSigning,
        /// Signing the audit trail; global.
        AuditTrailSigning,
    }
    /// The file format of an upload.
    CertificateStorageFormat {
        /// PKCS #12, the certificate with its key.
        Pkcs12,
        /// PEM, the certificate and perhaps its key.
        Pem,
        /// DER, the certificate.
        Der,
    }
    /// The password protection of an upload.
    CertificatePasswordProtection {
        /// It was not.
        None,
        /// It was.
        Password,
    }
}

impl CertType {
    /// Whether certificates of this type are global.
    pub const fn is_global(self) -> bool {
        matches!(self, Self::Default | Self::AuditTrailSigning)
    }
}

record! {
    /// An upload, as distinct from the certificate that it holds.
    pub struct CertificateInput {
        /// Format of the upload.
        format: CertificateStorageFormat = OPEN.or(DefaultValue::Text("Pkcs12")),
        /// The file: PEM as text, the others as base64.
        data: JsonText = OPEN,
        /// The private key, if it is in a separate file: PEM as text, DER as base64.
        private_key: Option<JsonText> = OPEN,
        /// The password.
        password: Option<ShortText> = OPEN,
    }
}

/// An upload as JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInputText(pub String);

impl FieldType for CertificateInputText {
    const KIND: Kind = Kind::Object(<CertificateInput as Record>::FIELDS);
    fn into_value(self) -> Value {
        Value::Text(self.0)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        if let Value::Text(text) = value { Ok(Self(text)) } else { Err(Mismatch("")) }
    }
}

record! {
    /// A certificate, optionally with its private key.
    #[de("Zertifikat", "Zertifikate", "Ein Zertifikat, optional mit seinem privaten Schlüssel.")]
    pub struct CertStore {
        /// The cert store.
        id: CertStoreId = KEY,
        /// Its name.
        name: Name = OPEN,
        /// What it is for.
        description: Option<Description> = OPEN,
        /// Use of the certificate.
        #[de("Zweck", "Der Verwendungszweck des Zertifikats.")]
        cert_type: CertType = OPEN,
        /// The certificate. Requests contain the file as base64, responses the certificate as DER. If the certificate is absent or
        /// unchanged, the private key is kept.
        #[de(_, "Das Zertifikat. Fehlt es oder ist es unverändert, bleibt der private Schlüssel erhalten.")]
        certificate: Option<Bytes> = OPEN,
        /// The password of the file. It is never returned.
        #[de(_, "Das Kennwort der Datei. Es wird nie gezeigt.")]
        password: Option<ShortText> = OPEN.unstored(),
        /// The parsed upload, instead of `certificate` and `password`.
        #[de("Zertifikatsdatei", "Das gelesene Zertifikat, anstelle von Datei und Kennwort.")]
        certificate_input: Option<CertificateInputText> = FIXED.unstored().write_only(),
        /// SHA-1 thumbprint of the certificate.
        #[de("Fingerabdruck")]
        thumbprint: Option<Name> = SHOWN.like("A9993E364706816ABA3E25717850C26C9CD0D89D"),
        /// Time from which the certificate is valid.
        valid_from: Option<Timestamp> = SHOWN,
        /// Time until which the certificate is valid.
        valid_to: Option<Timestamp> = SHOWN,
        /// Distinguished name of the certificate issuer (RFC 4514).
        issuer: Option<Description> = SHOWN.like("CN=Example CA"),
        /// Serial number of the certificate.
        #[de("Seriennummer")]
        serial_number: Option<Name> = SHOWN.like("01"),
        /// Distinguished name of the certificate subject (RFC 4514).
        subject: Option<Description> = SHOWN.like("CN=client.example.com"),
        /// Level that the certificate applies to. It follows from `applyToSubscriptionId` and `applyToTenantId`.
        apply_to_type: Option<ApplyToType> = SHOWN,
        /// The subscription that owns the certificate. None for a global certificate.
        #[de(_, "Das Abonnement, dem das Zertifikat gehört. Keines bei einem globalen Zertifikat.")]
        subscription_id: Option<SubscriptionId> = FIXED,
        /// The subscription that it is for.
        apply_to_subscription_id: Option<SubscriptionId> = OPEN,
        /// The tenant that it is for.
        apply_to_tenant_id: Option<TenantId> = OPEN,
        /// Format of the uploaded file.
        #[de("Format der Datei", "Das Format der hochgeladenen Datei.")]
        certificate_storage_format: CertificateStorageFormat = OPEN.or(DefaultValue::Text("Pkcs12")),
        /// Whether the file was protected by a password.
        #[de("Kennwort der Datei", "Ob die Datei mit einem Kennwort geschützt war.")]
        certificate_password_protection: CertificatePasswordProtection = OPEN.or(DefaultValue::Text("None")),
        /// Whether the private key of the certificate is stored here.
        #[de("Mit privatem Schlüssel")]
        certificate_has_private_key: bool = SHOWN.or(DefaultValue::Bool(false)).repeated(),
        /// The private key, encrypted.
        #[de("Privater Schlüssel")]
        private_key: Option<JsonText> = HIDDEN.sealed(Sealing::Secret),
        /// Concurrency token. It changes with every write to the cert store.
        concurrency_token: Token = SHOWN,
    }
}

impl Rules for CertStore {
    fn adjust(&mut self, was: Option<&Self>, provided: &ProvidedFields<'_, Self>) {
        // a repeated certificateInput is compared with the stored certificate, so the member is left empty
        if was.is_some() && self.certificate_input.is_some() && !provided.contains(Self::CERTIFICATE) {
            self.certificate = None;
        }
    }

    fn check(&self, wrong: &mut Findings) {
        if self.apply_to_subscription_id.is_some() && self.apply_to_tenant_id.is_some() {
            wrong.add(Self::APPLY_TO_TENANT_ID, "must be empty beside applyToSubscriptionId");
        }
        let is_for_some = self.apply_to_subscription_id.is_some() || self.apply_to_tenant_id.is_some();
        if self.cert_type.is_global() && is_for_some {
            let detail =
                format!("must not be {} for a part: such a certificate is everyone's", self.cert_type.name());
            wrong.add(Self::CERT_TYPE, detail);
        }
        if self.certificate_input.is_some() && self.certificate.is_some() {
            wrong.add(Self::CERTIFICATE_INPUT, "must be empty beside certificate");
        }
    }
}

/// Every field but name and description affects who signs in at the instances that use the certificate.
static PROTECTION: Protection = Protection::new(
    by_certificates,
    CarriedBy::WhoSignsIn,
    &[CertStore::NAME.field(), CertStore::DESCRIPTION.field()],
    Links::AllBut(&[]),
);

impl CertStore {
    /// The identity provider instances that use the certificate.
    pub const IDP_INSTANCES: Relation = Relation::new(
        "idpInstances",
        "The identity provider instances that use the certificate.",
        IDP_INSTANCE_CERT_STORE.reverse(),
        &IDP_INSTANCE,
    )
    .guarded(within_subscription);
}

/// The shape of cert stores.
pub static CERT_STORE: Shape = Shape::of::<CertStore>(
    "CertStore",
    "cert_store",
    Reach::Tenant(CertStore::SUBSCRIPTION_ID.field(), CertStore::APPLY_TO_TENANT_ID.field()),
)
.sensitive()
.belonging(&[
    Parent::new(CertStore::APPLY_TO_SUBSCRIPTION_ID, &SUBSCRIPTION),
    // its signatures admit nobody here: the platform verifies its own proof of a token
    Parent::new(CertStore::APPLY_TO_TENANT_ID, &TENANT).open(),
])
.protected_by(&PROTECTION)
.unique(&[Unique::new("cert_store__id", &[CertStore::ID.field()])])
.relations(const { &[CertStore::IDP_INSTANCES] })
.ruled::<CertStore>()
.validate_rows(upload::read_upload)
.bumps_epoch();

/// The operations on cert stores.
pub static OPERATIONS: [Op; 9] = standard!("CertStore", "/CertStore", TenantAdmin, TenantAdmin, &CERT_STORE);
/// Operations on a cert store's instances.
pub static IDP_INSTANCES: [Op; 3] = relation!(
    "CertStoreIdpInstances",
    "/CertStore/{id}/idpinstances",
    SubscriptionAdmin,
    &CERT_STORE,
    CertStore::IDP_INSTANCES
);
