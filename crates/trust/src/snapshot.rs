//! The snapshot of the metadata, to be queried and stored.

use std::collections::BTreeMap;

use chancery_record::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{MetadataRefusal, RefusalKind};

/// The statuses that FIDO calls undesired: an attestation of a model with one of them proves nothing.
const UNDESIRED: [&str; 5] = [
    "ATTESTATION_KEY_COMPROMISE",
    "REVOKED",
    "USER_KEY_PHYSICAL_COMPROMISE",
    "USER_KEY_REMOTE_COMPROMISE",
    "USER_VERIFICATION_BYPASS",
];

/// The metadata of one text of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The text's number, which grows with every text.
    pub no: i64,
    /// The number and the first 12 digits of the payload's SHA-256, which distinguishes two texts of one
    /// number.
    pub version: String,
    /// When the next text is due.
    #[serde(with = "milliseconds")]
    pub next_update: Timestamp,
    /// The number of entries, with those of U2F and UAF, which create no passkeys.
    pub entries: usize,
    /// The number of entries that could not be read and were left out.
    pub skipped: usize,
    /// The number of root certificates that could not be read and were left out.
    pub skipped_roots: usize,
    /// The reasons for leaving out the first of both.
    pub reasons: Vec<String>,
    // the name in stored snapshots
    #[serde(rename = "makes")]
    pub(crate) models: BTreeMap<Uuid, AuthenticatorModel>,
    /// The root certificates (DER), each once; models refer to them by index.
    #[serde(with = "certificates")]
    pub(crate) roots: Vec<Vec<u8>>,
}

/// The metadata of one model of authenticator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthenticatorModel {
    /// The name for people; empty if the metadata has none.
    pub name: String,
    /// The status reports, in the order of the text.
    pub statuses: Vec<Status>,
    /// The types of attestation, e.g. `basic_full`.
    pub attestation_types: Vec<String>,
    /// Whether its keys are stored in hardware (`keyProtection`).
    #[serde(default)]
    pub is_hardware: bool,
    pub(crate) roots: Vec<usize>,
}

/// A status report about a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// FIDO's name of the status, known here or not.
    pub status: String,
    /// When the status takes effect; `None`: for as long as it is reported.
    #[serde(with = "optional_milliseconds")]
    pub since: Option<Timestamp>,
}

impl Snapshot {
    /// The metadata of a model.
    pub fn model(&self, aaguid: [u8; 16]) -> Option<&AuthenticatorModel> {
        self.models.get(&Uuid::from_bytes(aaguid))
    }

    /// All models with their metadata, in the order of their AAGUIDs.
    pub fn models(&self) -> impl Iterator<Item = ([u8; 16], &AuthenticatorModel)> {
        self.models.iter().map(|(aaguid, model)| (aaguid.into_bytes(), model))
    }

    /// A model's name for people.
    pub fn name(&self, aaguid: [u8; 16]) -> Option<&str> {
        self.model(aaguid).map(|model| model.name.as_str()).filter(|name| !name.is_empty())
    }

    /// The statuses of a model that are in effect at a time.
    pub fn statuses(&self, aaguid: [u8; 16], now: Timestamp) -> impl Iterator<Item = &str> {
        let reports = self.model(aaguid).into_iter().flat_map(|model| &model.statuses);
        reports
            .filter(move |report| report.since.is_none_or(|since| since <= now))
            .map(|report| report.status.as_str())
    }

    /// Whether a model is compromised or withdrawn at a time. It stays so when a later report calls it fixed
    /// or restricts it to a version: a credential does not prove its version. An unknown model is not
    /// undesired.
    pub fn is_undesired(&self, aaguid: [u8; 16], now: Timestamp) -> bool {
        self.statuses(aaguid, now).any(|status| UNDESIRED.contains(&status))
    }

    /// The certificates (DER) that an attestation of a model must chain to, or be. Each is readable; whether
    /// it is valid is checked with the attestation. Without any, no attestation of the model can be trusted.
    pub fn roots(&self, aaguid: [u8; 16]) -> impl Iterator<Item = &[u8]> {
        let indices = self.model(aaguid).into_iter().flat_map(|model| &model.roots);
        indices.filter_map(|index| self.roots.get(*index)).map(Vec::as_slice)
    }

    /// The snapshot as bytes to store, about 400 KB for FIDO's.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the output of [`Self::to_bytes`]; anything else is [`RefusalKind::Malformed`]. Nothing is verified again:
    /// the bytes are as trustworthy as the storage they come from.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MetadataRefusal> {
        serde_json::from_slice(bytes)
            .map_err(|_| MetadataRefusal::new(RefusalKind::Malformed, "the stored metadata cannot be read"))
    }
}

/// How a new snapshot relates to the one in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotOrder {
    /// The new snapshot follows the current one, or is the first.
    Newer,
    /// The new snapshot has the same number: nothing changes.
    Same,
    /// The new snapshot has a lower number. It is refused: accepting it would roll back to before a
    /// compromise was known.
    Older,
}

/// Whether a snapshot may follow the one with this number.
pub fn accepts(current_no: Option<i64>, new: &Snapshot) -> SnapshotOrder {
    match current_no.map(|current| new.no.cmp(&current)) {
        None | Some(std::cmp::Ordering::Greater) => SnapshotOrder::Newer,
        Some(std::cmp::Ordering::Equal) => SnapshotOrder::Same,
        Some(std::cmp::Ordering::Less) => SnapshotOrder::Older,
    }
}

mod milliseconds {
    use chancery_record::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    // serde's `with` passes a reference
    #[expect(clippy::trivially_copy_pass_by_ref)]
    pub fn serialize<S: Serializer>(moment: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(moment.0)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp)
    }
}

mod optional_milliseconds {
    use chancery_record::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option)]
    pub fn serialize<S: Serializer>(moment: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        moment.map(|moment| moment.0).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map(Timestamp))
    }
}

mod certificates {
    use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(roots: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(roots.iter().map(|root| BASE64_STANDARD_NO_PAD.encode(root)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u8>>, D::Error> {
        let roots = Vec::<String>::deserialize(deserializer)?;
        let roots = roots.iter().map(|text| BASE64_STANDARD_NO_PAD.decode(text));
        roots.collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}
