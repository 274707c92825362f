//! What was read, to be asked and to be kept.

use std::collections::BTreeMap;

use chancery_record::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Kind, Refusal};

/// The statuses that FIDO calls undesired: a make in one of them proves nothing.
const UNDESIRED: [&str; 5] = [
    "ATTESTATION_KEY_COMPROMISE",
    "REVOKED",
    "USER_KEY_PHYSICAL_COMPROMISE",
    "USER_KEY_REMOTE_COMPROMISE",
    "USER_VERIFICATION_BYPASS",
];

/// What one text of the metadata service said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its number, which grows with every text.
    pub no: i64,
    /// The number and the first 12 digits of the SHA-256 of what was signed: tells two texts
    /// apart that have one number.
    pub version: String,
    /// When the next text is due.
    #[serde(with = "milliseconds")]
    pub next_update: Timestamp,
    /// How many entries it had, also those of U2F and UAF, which no passkey is made by.
    pub entries: usize,
    /// How many of them could not be read and were left out.
    pub skipped: usize,
    /// How many root certificates could not be read and were left out.
    pub skipped_roots: usize,
    /// Why the first of both were left out.
    pub reasons: Vec<String>,
    pub(crate) makes: BTreeMap<Uuid, Make>,
    /// Each once (DER); a make names them by their place.
    #[serde(with = "certificates")]
    pub(crate) roots: Vec<Vec<u8>>,
}

/// What is known of one make of authenticator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Make {
    /// What a person calls it; empty if nobody said.
    pub name: String,
    /// What was reported of it, in the order of the text.
    pub statuses: Vec<Status>,
    /// How it attests, e.g. `basic_full`.
    pub attestation_types: Vec<String>,
    pub(crate) roots: Vec<usize>,
}

/// A report about a make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// FIDO's word, known or not.
    pub status: String,
    /// From when on; none: as long as it is reported.
    #[serde(with = "optional_milliseconds")]
    pub since: Option<Timestamp>,
}

impl Snapshot {
    /// What is known of a make.
    pub fn make(&self, aaguid: [u8; 16]) -> Option<&Make> {
        self.makes.get(&Uuid::from_bytes(aaguid))
    }

    /// All makes with what is known of them, in the order of their AAGUIDs.
    pub fn makes(&self) -> impl Iterator<Item = ([u8; 16], &Make)> {
        self.makes.iter().map(|(aaguid, make)| (aaguid.into_bytes(), make))
    }

    /// What a person calls a make.
    pub fn name(&self, aaguid: [u8; 16]) -> Option<&str> {
        self.make(aaguid).map(|make| make.name.as_str()).filter(|name| !name.is_empty())
    }

    /// The statuses of a make that are in effect at a time.
    pub fn statuses(&self, aaguid: [u8; 16], now: Timestamp) -> impl Iterator<Item = &str> {
        let reports = self.make(aaguid).into_iter().flat_map(|make| &make.statuses);
        reports
            .filter(move |report| report.since.is_none_or(|since| since <= now))
            .map(|report| report.status.as_str())
    }

    /// Whether a make is compromised or withdrawn at a time. It stays so when a later report calls
    /// it mended or says which version is meant: a credential does not prove its version. A make
    /// of which nothing is known is not.
    pub fn is_undesired(&self, aaguid: [u8; 16], now: Timestamp) -> bool {
        self.statuses(aaguid, now).any(|status| UNDESIRED.contains(&status))
    }

    /// The certificates (DER) that an attestation of a make must lead to, or be. Each can be read;
    /// that it is valid is for whoever verifies an attestation to say. Where there is none, no
    /// attestation of the make can be trusted.
    pub fn roots(&self, aaguid: [u8; 16]) -> impl Iterator<Item = &[u8]> {
        let places = self.make(aaguid).into_iter().flat_map(|make| &make.roots);
        places.filter_map(|place| self.roots.get(*place)).map(Vec::as_slice)
    }

    /// The snapshot as bytes to store, about 400 KB for FIDO's.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads what [`Self::to_bytes`] wrote; anything else is [`Kind::Malformed`]. Nothing is
    /// verified again: the bytes are as good as the place where they were kept.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Refusal> {
        serde_json::from_slice(bytes)
            .map_err(|_| Refusal::new(Kind::Malformed, "the stored metadata cannot be read"))
    }
}

/// How a new snapshot relates to the one in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It follows, or is the first.
    Newer,
    /// It has the same number: nothing changes.
    Same,
    /// It was before. BatchRows it would bring back what was true before a compromise was known, so
    /// it is refused.
    Older,
}

/// Whether a snapshot may follow the one with a number.
pub fn accepts(current_no: Option<i64>, new: &Snapshot) -> Step {
    match current_no.map(|current| new.no.cmp(&current)) {
        None | Some(std::cmp::Ordering::Greater) => Step::Newer,
        Some(std::cmp::Ordering::Equal) => Step::Same,
        Some(std::cmp::Ordering::Less) => Step::Older,
    }
}

mod milliseconds {
    use chancery_record::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    // serde's `with` hands a reference
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
