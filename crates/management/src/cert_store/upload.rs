//! Uploads of certificates: reading a file into the fields of its cert store.

use std::collections::HashMap;

use aws_lc_rs::digest::{Context, SHA256};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD},
};
use chancery_certificate::{CertificateBundle, Format, Iterations, PrivateKey, is_pem, read_within};
use chancery_record::{Field, FieldOf, Form, Others, Record as _, Secret, Value, read_draft, read_json};
use chancery_resource::{
    Problem, ProblemKind, ProposedRow, Purpose, Shape, StoredRow, Tx, Violation, Work, Writer,
};

use super::{
    CertStore, CertType, CertificateInput, CertificateInputText, CertificatePasswordProtection as Protection,
    CertificateStorageFormat,
};
use crate::{location::ApplyToType, owning_subscription::resolve_subscription, violation::violation_at};

/// The member `certificateInput`: an upload apart from the certificate, set at creation alone.
const INPUT: FieldOf<CertStore, Option<CertificateInputText>> = CertStore::CERTIFICATE_INPUT;

/// The parsed uploads by digest.
type Parsed = HashMap<[u8; 32], Result<ParsedCertificate, UploadFault>>;

/// Resolves the targets of rows, and parses their uploads. Opening a file can take long, so it happens between
/// two transactions: the first run of the operation requests it, the second has the result.
pub fn read_upload(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let targets = [
        (CertStore::APPLY_TO_TENANT_ID.field(), "tenant"),
        (CertStore::APPLY_TO_SUBSCRIPTION_ID.field(), "subscription"),
    ];
    let is_global = |row: &ProposedRow<'_>| row.get(CertStore::CERT_TYPE).map(CertType::is_global);
    let own = CertStore::SUBSCRIPTION_ID;
    let mut violations = resolve_subscription(writer.context, tx, rows, own, &targets, is_global)?;
    let mut uploads = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter_mut().enumerate() {
        let store = CertStore::from_values(row.values.clone())?;
        settle_target(index, row, &store, &mut violations)?;
        uploads.push(uploaded(&store, row.was, has_format(writer.shape)));
    }
    if uploads.iter().flatten().flatten().filter(|upload| upload.is_slow()).count() > MAX_SLOW {
        let detail = format!(
            "A call takes at most {MAX_SLOW} files that are under a password or PKCS #12: opening one takes long."
        );
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    let parsed = writer.result::<Parsed>();
    let pending: Vec<Upload> = uploads.iter().flatten().flatten().cloned().collect();
    let Some(parsed) = parsed else {
        if !pending.is_empty() {
            let read = move || {
                let mut iterations = Iterations::full();
                pending
                    .iter()
                    .map(|upload| (upload.digest(), upload.read(&mut iterations)))
                    .collect::<Parsed>()
            };
            return Err(writer.need(Work::new(Purpose::Certificate, read)));
        }
        return finish(rows, uploads, &Parsed::new(), violations);
    };
    finish(rows, uploads, &parsed, violations)
}

fn settle_target(
    index: usize,
    row: &mut ProposedRow<'_>,
    store: &CertStore,
    violations: &mut Vec<Violation>,
) -> Result<(), Problem> {
    if row.was.is_some() && store.cert_type.is_global() != store.subscription_id.is_none() {
        violations.push(violation_at(
            index,
            CertStore::CERT_TYPE,
            "does not change between what is everyone's and what is not",
        ));
    }
    let apply_to = match (store.apply_to_tenant_id, store.apply_to_subscription_id) {
        (Some(_), _) => ApplyToType::Tenant,
        (_, Some(_)) => ApplyToType::Subscription,
        _ => ApplyToType::Global,
    };
    Ok(row.set(CertStore::APPLY_TO_TYPE, Some(apply_to))?)
}

/// Writes the parsed certificates into the rows.
fn finish(
    rows: &mut [ProposedRow<'_>],
    uploads: Vec<Result<Option<Upload>, UploadFault>>,
    parsed: &Parsed,
    mut violations: Vec<Violation>,
) -> Result<Vec<Violation>, Problem> {
    for ((index, row), upload) in rows.iter_mut().enumerate().zip(uploads) {
        let outcome = match upload {
            Ok(Some(upload)) => match parsed.get(&upload.digest()) {
                Some(Ok(certificate)) => match row.was {
                    Some(was) if upload.is_separate && !certificate.is_in(was)? => {
                        Err((INPUT.field(), "is set at creation alone: it cannot become another".to_owned()))
                    }
                    Some(_) if upload.is_separate => {
                        restore(row.values, row.was);
                        Ok(())
                    }
                    _ => {
                        certificate.write(row.values);
                        Ok(())
                    }
                },
                Some(Err(refused)) => Err(refused.clone()),
                None => Err((upload.member(), "was changed while it was read: send it again".to_owned())),
            },
            Ok(None) => {
                restore(row.values, row.was);
                Ok(())
            }
            Err(refused) => Err(refused),
        };
        row.set(CertStore::PASSWORD, None)?;
        row.set(INPUT, None)?;
        if let Err((member, detail)) = outcome {
            violations.push(violation_at(index, member, detail));
        }
    }
    Ok(violations)
}

/// The fault of an upload: the member, and what to do.
type UploadFault = (&'static Field, String);

#[derive(Clone)]
struct Upload {
    /// Whether the upload was sent as `certificateInput`.
    is_separate: bool,
    format: CertificateStorageFormat,
    data: Vec<u8>,
    private_key: Option<Secret>,
    password: Option<Secret>,
}

/// The maximum number of files in one call with keys derived from a password: each can take seconds to open.
const MAX_SLOW: usize = 32;

impl Upload {
    /// The member that the upload was sent in.
    const fn member(&self) -> &'static Field {
        if self.is_separate { INPUT.field() } else { CertStore::CERTIFICATE.field() }
    }

    /// Whether a key may have to be derived from a password, with as many iterations as the file demands.
    const fn is_slow(&self) -> bool {
        self.password.is_some() || matches!(self.format, CertificateStorageFormat::Pkcs12)
    }

    /// SHA-256 over all parts of the upload, which identifies it in the second run.
    fn digest(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        let secret = |secret: &'_ Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_vec());
        let parts = [
            Some(self.format.name().as_bytes().to_vec()),
            Some(self.data.clone()),
            secret(&self.private_key),
            secret(&self.password),
        ];
        for part in parts.iter().flatten() {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        context.finish().as_ref().try_into().unwrap_or_default()
    }

    fn read(&self, iterations: &mut Iterations) -> Result<ParsedCertificate, UploadFault> {
        let format = match self.format {
            CertificateStorageFormat::Pkcs12 => Format::Pkcs12,
            CertificateStorageFormat::Pem => Format::Pem,
            CertificateStorageFormat::Der => Format::Der,
        };
        let key = self.private_key.as_ref().map(Secret::expose);
        let read = read_within(format, &self.data, key, self.password.as_ref(), iterations);
        read.map(|read| ParsedCertificate::of(self, read))
            .map_err(|refusal| (self.member(), refusal.to_string()))
    }
}

/// The stored form of an upload: fields with their values, and the private key.
struct ParsedCertificate {
    values: Vec<(&'static Field, Value)>,
    private_key: Option<Secret>,
}

impl ParsedCertificate {
    fn of(upload: &Upload, read: CertificateBundle) -> Self {
        let facts = read.facts;
        let cut = |text: String, most: usize| Value::Text(text.chars().take(most).collect());
        let protection = if upload.password.is_some() { Protection::Password } else { Protection::None };
        let values = vec![
            (CertStore::CERTIFICATE.field(), Value::Bytes(read.certificate)),
            (CertStore::CERTIFICATE_STORAGE_FORMAT.field(), upload.format.name().into()),
            (CertStore::CERTIFICATE_PASSWORD_PROTECTION.field(), protection.name().into()),
            (CertStore::THUMBPRINT.field(), facts.thumbprint.into()),
            (CertStore::VALID_FROM.field(), facts.valid_from.0.into()),
            (CertStore::VALID_TO.field(), facts.valid_to.0.into()),
            (CertStore::ISSUER.field(), cut(facts.issuer, 2000)),
            (CertStore::SERIAL_NUMBER.field(), cut(facts.serial_number, 256)),
            (CertStore::SUBJECT.field(), cut(facts.subject, 2000)),
            (CertStore::CERTIFICATE_HAS_PRIVATE_KEY.field(), read.private_key.is_some().into()),
        ];
        let encoded = |key: &PrivateKey| Secret::new(BASE64_STANDARD.encode(key.expose_pkcs8().expose()));
        Self { values, private_key: read.private_key.as_ref().map(encoded) }
    }

    /// Whether a stored row already has the certificate, and a private key if the upload has one.
    fn is_in(&self, was: &StoredRow) -> Result<bool, Problem> {
        let certificate = CertStore::CERTIFICATE.field();
        let is_there = self
            .values
            .iter()
            .any(|(field, value)| field.is(certificate) && certificate.value(&was.values) == value);
        Ok(is_there && (self.private_key.is_none() || was.get(CertStore::CERTIFICATE_HAS_PRIVATE_KEY)?))
    }

    fn write(&self, values: &mut [Value]) {
        for (field, value) in &self.values {
            field.set(values, value.clone());
        }
        let key = self.private_key.as_ref().map(|key| String::from_utf8_lossy(key.expose()).into_owned());
        CertStore::PRIVATE_KEY.field().set(values, key.into());
    }
}

/// Whether the operation's form has a member for the storage format.
fn has_format(shape: &Shape) -> bool {
    let own = shape.own(CertStore::CERTIFICATE_STORAGE_FORMAT.field());
    own.is_none_or(|field| field.access.shown)
}

/// The upload of a body; `None` if the stored certificate remains.
fn uploaded(
    store: &CertStore,
    was: Option<&StoredRow>,
    has_format: bool,
) -> Result<Option<Upload>, UploadFault> {
    if let Some(input) = &store.certificate_input {
        return read_input(&input.0).map(Some);
    }
    let certificate = CertStore::CERTIFICATE.field();
    let before = was.map(|was| certificate.value(&was.values));
    match (&store.certificate, before) {
        (None, None) => Err((certificate, "is missing: send certificate or certificateInput".to_owned())),
        (None, Some(_)) => Ok(None),
        (Some(file), Some(Value::Bytes(before))) if file.0 == *before => Ok(None),
        (Some(file), _) => Ok(Some(Upload {
            is_separate: false,
            // a form without the member leaves the format to the file
            format: if has_format { store.certificate_storage_format } else { format_of(&file.0) },
            data: file.0.clone(),
            private_key: None,
            password: store.password.as_ref().map(|text| Secret::new(text.as_str())),
        })),
    }
}

/// The format of a file: PEM has a block, perhaps with text before it; a certificate begins with a sequence in
/// its sequence (RFC 5280), PKCS #12 with a number.
fn format_of(file: &[u8]) -> CertificateStorageFormat {
    if is_pem(file) {
        return CertificateStorageFormat::Pem;
    }
    let length = file.get(1).copied().unwrap_or_default();
    let inside = if length < 0x80 { 2 } else { 2 + usize::from(length & 0x7f) };
    match (file.first(), file.get(inside)) {
        (Some(0x30), Some(0x30)) => CertificateStorageFormat::Der,
        _ => CertificateStorageFormat::Pkcs12,
    }
}

fn read_input(text: &str) -> Result<Upload, UploadFault> {
    let member = INPUT.field();
    let broken = || (member, "cannot be read".to_owned());
    let json = read_json(text.as_bytes()).map_err(|_| broken())?;
    let draft = read_draft(CertificateInput::FIELDS, Others::Named(&[]), Form::Create, &json, "");
    let draft = draft.map_err(|_| broken())?;
    let input =
        CertificateInput::from_values(draft.to_new(CertificateInput::FIELDS)).map_err(|_| broken())?;
    let file = |text: &str, name: &str| {
        if is_pem(text.as_bytes()) {
            return Ok(text.as_bytes().to_vec());
        }
        let text: String = text.split_whitespace().collect();
        let decoded = BASE64_STANDARD.decode(&text).or_else(|_| BASE64_STANDARD_NO_PAD.decode(&text));
        decoded.map_err(|_| (member, format!("{name} must be PEM or base64")))
    };
    Ok(Upload {
        is_separate: true,
        format: input.format,
        data: file(input.data.as_str(), "data")?,
        private_key: input
            .private_key
            .as_ref()
            .map(|key| file(key.as_str(), "privateKey").map(Secret::new))
            .transpose()?,
        password: input.password.as_ref().map(|text| Secret::new(text.as_str())),
    })
}

/// Restores the stored certificate's fields: no new one was sent.
fn restore(values: &mut [Value], was: Option<&StoredRow>) {
    let Some(was) = was else { return };
    for field in [
        CertStore::CERTIFICATE.field(),
        CertStore::CERTIFICATE_STORAGE_FORMAT.field(),
        CertStore::CERTIFICATE_PASSWORD_PROTECTION.field(),
        CertStore::CERTIFICATE_HAS_PRIVATE_KEY.field(),
        CertStore::PRIVATE_KEY.field(),
    ] {
        field.set(values, field.value(&was.values).clone());
    }
}
