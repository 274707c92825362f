//! The results of a verification: findings, a summary, errors.

use std::{fmt, io};

use chancery_record::Timestamp;

use crate::note::NoteError;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FindingKind {
    /// The head line contradicts its checkpoint.
    Head,
    /// The head's checkpoint is missing or not signed by a known key.
    Checkpoint,
    /// Head and checkpoints are of different logs.
    Origin,
    /// The list of the tree's leaves is missing, changed or out of order.
    Tile,
    /// The tree's root differs from the checkpoint's.
    Root,
    /// The file ends too early.
    Cut,
    /// A line cannot be read.
    Malformed,
    /// An entry's signature does not hold.
    Signature,
    /// An entry's contents do not match its digests.
    Content,
    /// Contents of a person are erased, but the person was never deleted.
    Erasure,
    /// An entry differs from the one in the tree at its position.
    Altered,
    /// An entry of the tree is missing.
    Removed,
    /// The file has an entry that the tree does not have.
    Inserted,
    /// An entry is at the position of another.
    Reordered,
    /// The file has an entry twice.
    Duplicated,
}

/// One fault of an exported trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of fault.
    pub kind: FindingKind,
    /// The position in the tree that the finding is about, from 0.
    pub position: Option<u64>,
    /// The number of the entry that the finding is about.
    pub id: Option<i64>,
    /// Details for people.
    pub detail: String,
}

/// The summary of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The log's name.
    pub origin: String,
    /// The time of the export as stated in the file. It is unproven.
    pub exported_on: Timestamp,
    /// The number of entries in the file.
    pub entries: u64,
    /// The number of entries whose contents are erased.
    pub erased: u64,
    /// The number of entries that the head's checkpoint covers, where it can be trusted.
    pub checkpoint: Option<u64>,
    /// The number of findings. The trail is valid when there are none.
    pub findings: u64,
}

/// Why an export could not be verified.
#[derive(Debug)]
pub enum VerifyError {
    /// Reading failed.
    Read(io::Error),
    /// The first line is not the head of an export.
    NotAnExport(String),
    /// The checkpoint provided by the caller cannot be trusted.
    Checkpoint(NoteError),
    /// More persons were deleted or erased than fit in memory.
    TooManyPersons,
}

/// The recipient of findings, with their number so far.
pub(crate) struct Report<'a> {
    pub count: u64,
    sink: &'a mut dyn FnMut(Finding),
}

impl<'a> Report<'a> {
    pub fn new(sink: &'a mut dyn FnMut(Finding)) -> Self {
        Self { count: 0, sink }
    }

    /// Reports a finding about the file.
    pub fn file(&mut self, kind: FindingKind, detail: impl Into<String>) {
        self.add(Finding { kind, position: None, id: None, detail: detail.into() });
    }

    /// Reports a finding about a position.
    pub fn at(&mut self, kind: FindingKind, position: u64, detail: impl Into<String>) {
        self.add(Finding { kind, position: Some(position), id: None, detail: detail.into() });
    }

    /// Reports a finding about an entry.
    pub fn entry(&mut self, kind: FindingKind, position: u64, id: i64, detail: impl Into<String>) {
        self.add(Finding { kind, position: Some(position), id: Some(id), detail: detail.into() });
    }

    fn add(&mut self, finding: Finding) {
        self.count += 1;
        (self.sink)(finding);
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Head => "wrong head",
            Self::Checkpoint => "wrong checkpoint",
            Self::Origin => "wrong origin",
            Self::Tile => "wrong tile",
            Self::Root => "wrong root",
            Self::Cut => "cut",
            Self::Malformed => "malformed",
            Self::Signature => "wrong signature",
            Self::Content => "wrong content",
            Self::Erasure => "wrong erasure",
            Self::Altered => "altered",
            Self::Removed => "removed",
            Self::Inserted => "inserted",
            Self::Reordered => "reordered",
            Self::Duplicated => "duplicated",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.kind)?;
        if let Some(position) = self.position {
            write!(formatter, ", position {position}")?;
        }
        if let Some(id) = self.id {
            write!(formatter, ", entry {id}")?;
        }
        write!(formatter, ": {}", self.detail)
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(formatter, "the file cannot be read: {error}"),
            Self::NotAnExport(reason) => {
                write!(formatter, "the file is no export of an audit trail: {reason}")
            }
            Self::Checkpoint(error) => write!(formatter, "the checkpoint cannot be trusted: {error}"),
            Self::TooManyPersons => write!(formatter, "the trail has more deleted persons than can be held"),
        }
    }
}

impl std::error::Error for VerifyError {}

impl From<io::Error> for VerifyError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{Finding, FindingKind};

    #[test]
    fn a_finding_is_one_line() {
        let finding =
            Finding { kind: FindingKind::Removed, position: Some(3), id: None, detail: "it is gone".into() };
        assert_eq!(finding.to_string(), "removed, position 3: it is gone");
    }
}
