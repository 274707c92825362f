//! The signed payload: the list of authenticator models, read as far as possible.

use std::collections::{BTreeMap, HashMap};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::parse_day;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use uuid::Uuid;
use x509_cert::{Certificate, der::Decode as _};

use crate::{AuthenticatorModel, MetadataRefusal, RefusalKind, Snapshot, Status};

/// The maximum number of reasons for skipping that are stored: enough to see the fault.
const MAX_REASONS: usize = 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    no: i64,
    next_update: String,
    #[serde(borrow)]
    entries: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    /// The id of the model. Only FIDO2 authenticators have one.
    aaguid: Option<String>,
    metadata_statement: Option<Statement>,
    status_reports: Vec<Report>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(default)]
    description: String,
    #[serde(default)]
    attestation_types: Vec<String>,
    #[serde(default)]
    attestation_root_certificates: Vec<String>,
    #[serde(default)]
    key_protection: Vec<String>,
}

/// The key protections (FIDO Registry of Predefined Values, section 3.2) that software alone cannot break.
const HARDWARE: [&str; 2] = ["hardware", "secure_element"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    status: String,
    effective_date: Option<Value>,
}

/// Reads the payload. An entry or certificate that cannot be read is counted and left out: a manufacturer's
/// mistake must not hide the compromises of others.
pub(crate) fn read(json: &[u8], sum: &str) -> Result<Snapshot, MetadataRefusal> {
    let payload: Payload<'_> = serde_json::from_slice(json).map_err(|_| {
        MetadataRefusal::new(RefusalKind::Payload, "what is signed is not metadata of version 3")
    })?;
    let next_update = parse_day(&payload.next_update)
        .ok_or_else(|| MetadataRefusal::new(RefusalKind::Payload, "the date of the next update is none"))?;
    let mut reader = Reader::default();
    for (index, entry) in payload.entries.iter().enumerate() {
        if let Err(reason) = reader.entry(entry) {
            reader.skipped += 1;
            reader.note(format!("entry {index}: {reason}"));
        }
    }
    Ok(Snapshot {
        no: payload.no,
        version: format!("{}-{}", payload.no, sum.get(..12).unwrap_or(sum)),
        next_update,
        entries: payload.entries.len(),
        skipped: reader.skipped,
        skipped_roots: reader.skipped_roots,
        reasons: reader.reasons,
        models: reader.models,
        roots: reader.roots,
    })
}

#[derive(Default)]
struct Reader {
    models: BTreeMap<Uuid, AuthenticatorModel>,
    roots: Vec<Vec<u8>>,
    /// The index of each root, as many models share one.
    known: HashMap<Vec<u8>, usize>,
    skipped: usize,
    skipped_roots: usize,
    reasons: Vec<String>,
}

impl Reader {
    fn entry(&mut self, entry: &RawValue) -> Result<(), &'static str> {
        let entry: Entry =
            serde_json::from_str(entry.get()).map_err(|_| "a member is missing or of another form")?;
        let Some(aaguid) = entry.aaguid else { return Ok(()) };
        let aaguid = Uuid::try_parse(&aaguid).map_err(|_| "the AAGUID is none")?;
        if aaguid.is_nil() {
            // authenticators that do not disclose their model have this AAGUID: an entry would be for all of
            // them
            return Err("the AAGUID is that of no make");
        }
        let statement = entry.metadata_statement.unwrap_or_default();
        let roots: Vec<usize> = statement
            .attestation_root_certificates
            .iter()
            .filter_map(|text| {
                let root = self.root(text);
                if root.is_none() {
                    self.skipped_roots += 1;
                    self.note(format!("a root of {aaguid} is no certificate"));
                }
                root
            })
            .collect();
        // two entries for one model both apply
        let model = self.models.entry(aaguid).or_default();
        if model.name.is_empty() {
            model.name = statement.description;
        }
        model.is_hardware |=
            statement.key_protection.iter().any(|protection| HARDWARE.contains(&protection.as_str()));
        for kind in statement.attestation_types {
            if !model.attestation_types.contains(&kind) {
                model.attestation_types.push(kind);
            }
        }
        for root in roots {
            if !model.roots.contains(&root) {
                model.roots.push(root);
            }
        }
        model.statuses.extend(entry.status_reports.into_iter().map(|report| Status {
            // a date that cannot be read must hide no compromise: it counts as past
            since: report.effective_date.as_ref().and_then(Value::as_str).and_then(parse_day),
            status: report.status,
        }));
        Ok(())
    }

    /// The index of a root certificate, given in base64. One that the library for attestations could not read
    /// is left out.
    fn root(&mut self, text: &str) -> Option<usize> {
        let text: String = text.split_ascii_whitespace().collect();
        let der = BASE64_STANDARD.decode(text).ok()?;
        if let Some(known) = self.known.get(&der) {
            return Some(*known);
        }
        Certificate::from_der(&der).ok()?;
        self.roots.push(der.clone());
        self.known.insert(der, self.roots.len() - 1);
        Some(self.roots.len() - 1)
    }

    fn note(&mut self, reason: String) {
        if self.reasons.len() < MAX_REASONS {
            self.reasons.push(reason);
        }
    }
}
