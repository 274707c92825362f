//! From an upload to what is kept of it.

use std::collections::HashMap;

use aws_lc_rs::digest::{Context, SHA256};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD},
};
use chancery_certificate::{Format, Iterations, PrivateKey, Read, read_within};
use chancery_record::{Form, Others, Record as _, Secret, Value, read_draft, read_json};
use chancery_resource::{Call, Problem, ProblemKind, Proposed, Purpose, Stored, Tx, Violation, Work};

use super::{CERT_STORE, CertStore, CertificateInput, CertificateStorageFormat};
use crate::subscription::resolve::{put, resolve_subscription, text_in, wrong};

/// The member of an upload told apart, which only a creation makes.
const INPUT: &str = "certificate_input";

/// What was read of uploads, each by what it is.
type Known = HashMap<[u8; 32], Result<Kept, Refused>>;

/// Settles whom rows are for, and what their uploads hold. Opening a file can take long, so it is
/// done between two transactions.
pub fn read_upload(
    call: &Call,
    tx: &mut Tx<'_>,
    rows: &mut [Proposed<'_>],
) -> Result<Vec<Violation>, Problem> {
    let targets = [("apply_to_tenant_id", "tenant"), ("apply_to_subscription_id", "subscription")];
    let is_global = |values: &[Value]| {
        matches!(text_in(&CERT_STORE, values, "cert_type"), Some("Default" | "AuditTrailSigning"))
    };
    let mut violations = resolve_subscription(&call.context, tx, &CERT_STORE, rows, &targets, is_global)?;
    let mut uploads = Vec::with_capacity(rows.len());
    for (place, row) in rows.iter_mut().enumerate() {
        let store = CertStore::from_values(row.values.clone())?;
        settle_target(place, row, &store, &mut violations);
        uploads.push(uploaded(&store, row.was, says_format(call)));
    }
    if uploads.iter().flatten().flatten().filter(|upload| upload.is_slow()).count() > MAX_SLOW {
        let detail = format!(
            "A call takes at most {MAX_SLOW} files that are under a password or PKCS #12: opening one takes long."
        );
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    let known = call.result::<Known>(0)?;
    let wanted: Vec<Upload> = uploads.iter().flatten().flatten().cloned().collect();
    let Some(known) = known else {
        if !wanted.is_empty() {
            let read = move || {
                let mut left = Iterations::full();
                wanted.iter().map(|upload| (upload.digest(), upload.read(&mut left))).collect::<Known>()
            };
            return Err(call.need(Work::new(Purpose::Certificate, read)));
        }
        return Ok(finish(rows, uploads, &Known::new(), violations));
    };
    Ok(finish(rows, uploads, &known, violations))
}

fn settle_target(place: usize, row: &mut Proposed<'_>, store: &CertStore, violations: &mut Vec<Violation>) {
    if row.was.is_some() && store.cert_type.is_global() != store.subscription_id.is_none() {
        violations.push(wrong(
            place,
            "cert_type",
            "does not change between what is everyone's and what is not",
        ));
    }
    let apply_to = match (store.apply_to_tenant_id, store.apply_to_subscription_id) {
        (Some(_), _) => "Tenant",
        (_, Some(_)) => "Subscription",
        _ => "Global",
    };
    put(&CERT_STORE, row.values, "apply_to_type", apply_to);
}

/// Puts what was read into the rows.
fn finish(
    rows: &mut [Proposed<'_>],
    uploads: Vec<Result<Option<Upload>, Refused>>,
    known: &Known,
    mut violations: Vec<Violation>,
) -> Vec<Violation> {
    for ((place, row), upload) in rows.iter_mut().enumerate().zip(uploads) {
        let outcome = match upload {
            Ok(Some(upload)) => match known.get(&upload.digest()) {
                Some(Ok(kept)) => match row.was {
                    Some(was) if upload.member == INPUT && !kept.is_in(was) => {
                        Err((INPUT, "is set at creation alone: it cannot become another".to_owned()))
                    }
                    Some(_) if upload.member == INPUT => {
                        restore(row.values, row.was);
                        Ok(())
                    }
                    _ => {
                        kept.put(row.values);
                        Ok(())
                    }
                },
                Some(Err(refused)) => Err(refused.clone()),
                None => Err((upload.member, "was changed while it was read: send it again".to_owned())),
            },
            Ok(None) => {
                restore(row.values, row.was);
                Ok(())
            }
            Err(refused) => Err(refused),
        };
        put(&CERT_STORE, row.values, "password", Value::Null);
        put(&CERT_STORE, row.values, "certificate_input", Value::Null);
        if let Err((column, detail)) = outcome {
            violations.push(wrong(place, column, detail));
        }
    }
    violations
}

/// Why an upload is refused: the member, and what to do.
type Refused = (&'static str, String);

#[derive(Clone)]
struct Upload {
    member: &'static str,
    format: CertificateStorageFormat,
    data: Vec<u8>,
    private_key: Option<Secret>,
    password: Option<Secret>,
}

/// The most files of a call that can take seconds each to open.
const MAX_SLOW: usize = 32;

impl Upload {
    /// Whether keys may have to be derived from a password, as often as the file says.
    const fn is_slow(&self) -> bool {
        self.password.is_some() || matches!(self.format, CertificateStorageFormat::Pkcs12)
    }

    /// What tells it from another.
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

    fn read(&self, left: &mut Iterations) -> Result<Kept, Refused> {
        let format = match self.format {
            CertificateStorageFormat::Pkcs12 => Format::Pkcs12,
            CertificateStorageFormat::Pem => Format::Pem,
            CertificateStorageFormat::Der => Format::Der,
        };
        let key = self.private_key.as_ref().map(Secret::expose);
        let read = read_within(format, &self.data, key, self.password.as_ref(), left);
        read.map(|read| Kept::of(self, read)).map_err(|refusal| (self.member, refusal.to_string()))
    }
}

/// What is kept of an upload: columns and values, the private key apart.
struct Kept {
    values: Vec<(&'static str, Value)>,
    private_key: Option<Secret>,
}

impl Kept {
    fn of(upload: &Upload, read: Read) -> Self {
        let facts = read.facts;
        let cut = |text: String, most: usize| Value::Text(text.chars().take(most).collect());
        let protection = if upload.password.is_some() { "Password" } else { "None" };
        let values = vec![
            ("certificate", Value::Bytes(read.certificate)),
            ("certificate_storage_format", upload.format.name().into()),
            ("certificate_password_protection", protection.into()),
            ("thumbprint", facts.thumbprint.into()),
            ("valid_from", facts.valid_from.0.into()),
            ("valid_to", facts.valid_to.0.into()),
            ("issuer", cut(facts.issuer, 2000)),
            ("serial_number", cut(facts.serial_number, 256)),
            ("subject", cut(facts.subject, 2000)),
            ("certificate_has_private_key", read.private_key.is_some().into()),
        ];
        let encoded = |key: &PrivateKey| Secret::new(BASE64_STANDARD.encode(key.expose_pkcs8().expose()));
        Self { values, private_key: read.private_key.as_ref().map(encoded) }
    }

    /// Whether a row has it already.
    fn is_in(&self, was: &Stored) -> bool {
        let kept = |column| CERT_STORE.field_index(column).map(|place| was.value(place));
        let is_there =
            self.values.iter().any(|(column, value)| *column == "certificate" && kept(column) == Some(value));
        is_there
            && (self.private_key.is_none() || kept("certificate_has_private_key") == Some(&Value::Bool(true)))
    }

    fn put(&self, values: &mut [Value]) {
        for (column, value) in &self.values {
            put(&CERT_STORE, values, column, value.clone());
        }
        let key = self.private_key.as_ref().map(|key| String::from_utf8_lossy(key.expose()).into_owned());
        put(&CERT_STORE, values, "private_key", key);
    }
}

/// Whether the operation's form has a member for the format.
fn says_format(call: &Call) -> bool {
    let format = |field: &&chancery_record::Field| field.column == "certificate_storage_format";
    call.request.op.shape.fields.iter().find(format).is_none_or(|field| field.access.shown)
}

/// What a body uploads, if it does.
fn uploaded(store: &CertStore, was: Option<&Stored>, says_format: bool) -> Result<Option<Upload>, Refused> {
    if let Some(input) = &store.certificate_input {
        return read_input(&input.0).map(Some);
    }
    let before =
        was.map(|was| CERT_STORE.field_index("certificate").map_or(&Value::Null, |place| was.value(place)));
    match (&store.certificate, before) {
        (None, None) => Err(("certificate", "is missing: send certificate or certificateInput".to_owned())),
        (None, Some(_)) => Ok(None),
        (Some(file), Some(Value::Bytes(before))) if file.0 == *before => Ok(None),
        (Some(file), _) => Ok(Some(Upload {
            member: "certificate",
            // a form without that member leaves it to the file
            format: if says_format { store.certificate_storage_format } else { format_of(&file.0) },
            data: file.0.clone(),
            private_key: None,
            password: store.password.as_ref().map(|text| Secret::new(text.as_str())),
        })),
    }
}

/// The format of a file as its first bytes show it: PEM is text, a certificate begins with a sequence in
/// its sequence (RFC 5280), PKCS #12 with a number.
fn format_of(file: &[u8]) -> CertificateStorageFormat {
    let length = file.get(1).copied().unwrap_or_default();
    let inside = if length < 0x80 { 2 } else { 2 + usize::from(length & 0x7f) };
    match (file.first(), file.get(inside)) {
        (Some(b'-'), _) => CertificateStorageFormat::Pem,
        (Some(0x30), Some(0x30)) => CertificateStorageFormat::Der,
        _ => CertificateStorageFormat::Pkcs12,
    }
}

fn read_input(text: &str) -> Result<Upload, Refused> {
    let member = INPUT;
    let broken = || (member, "cannot be read".to_owned());
    let json = read_json(text.as_bytes()).map_err(|_| broken())?;
    let draft = read_draft(CertificateInput::FIELDS, Others::Named(&[]), Form::Create, &json, "");
    let draft = draft.map_err(|_| broken())?;
    let input =
        CertificateInput::from_values(draft.to_new(CertificateInput::FIELDS)).map_err(|_| broken())?;
    let file = |text: &str, name: &str| {
        if text.trim_start().starts_with("-----BEGIN") {
            return Ok(text.as_bytes().to_vec());
        }
        let text: String = text.split_whitespace().collect();
        let decoded = BASE64_STANDARD.decode(&text).or_else(|_| BASE64_STANDARD_NO_PAD.decode(&text));
        decoded.map_err(|_| (member, format!("{name} must be PEM or base64")))
    };
    Ok(Upload {
        member,
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

/// Keeps what was there: no new certificate was sent.
fn restore(values: &mut [Value], was: Option<&Stored>) {
    let Some(was) = was else { return };
    for column in [
        "certificate",
        "certificate_storage_format",
        "certificate_password_protection",
        "certificate_has_private_key",
        "private_key",
    ] {
        if let Some(place) = CERT_STORE.field_index(column) {
            put(&CERT_STORE, values, column, was.value(place).clone());
        }
    }
}
