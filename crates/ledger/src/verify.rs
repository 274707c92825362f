//! Verifying an export, in one pass. Besides the current line and tile, only the persons that were deleted or
//! erased are in memory.

use std::io::BufRead;

use crate::{
    check::check,
    erasure::Erasures,
    export::TILE,
    finding::{Finding, FindingKind, Report, Summary, VerifyError},
    keys::AuditKeys,
    line::{EntryLine, Head, Line, Lines, PersonMember},
    note::Checkpoint,
    roots::Roots,
    tile::{Tile, report_early},
    tree::Hash,
};

/// Verifies an exported trail: that each entry is signed by one of the keys and has the contents that were
/// signed, and that the entries are those of the head's checkpoint, complete and in the tree's order. A
/// `checkpoint` from another source additionally shows that the trail continues from it; one of a larger size
/// shows that the file was cut. Findings go to `report` as they occur.
///
/// No file can prove by itself that its head is the newest. For this a checkpoint must be stored where it
/// cannot be replaced.
///
/// # Errors
/// Every [`VerifyError`]; the rest of the trail is then unverified.
pub fn verify(
    reader: impl BufRead,
    keys: &AuditKeys,
    checkpoint: Option<&str>,
    report: &mut dyn FnMut(Finding),
) -> Result<Summary, VerifyError> {
    let given = checkpoint.map(|note| Checkpoint::open(note, keys));
    let given = given.transpose().map_err(VerifyError::Checkpoint)?;
    let mut lines = Lines::new(reader);
    let head = lines.head()?.map_err(VerifyError::NotAnExport)?;
    let mut trail = Trail::begin(&head, given, keys, Report::new(report));
    while let Some(line) = lines.next()? {
        trail.line(line)?;
    }
    Ok(trail.finish(head))
}

/// The state of a verification while the trail is read.
struct Trail<'a> {
    keys: &'a AuditKeys,
    report: Report<'a>,
    roots: Roots,
    erasures: Erasures,
    /// The number of entries that the head states.
    size: u64,
    checkpoint: Option<u64>,
    tile: Option<Tile>,
    /// The number of the next tile.
    next: u64,
    ended: bool,
    entries: u64,
    /// Whether its entries have the member `person`, according to the first of them.
    has_persons: Option<bool>,
    erased: u64,
}

impl<'a> Trail<'a> {
    fn begin(head: &Head, given: Option<Checkpoint>, keys: &'a AuditKeys, mut report: Report<'a>) -> Self {
        let own = open_head(head, keys, &mut report);
        let checkpoint = own.as_ref().map(|own| own.size);
        let size = checkpoint.unwrap_or(head.size);
        let given = given.filter(|given| {
            if given.origin != head.origin {
                let detail =
                    format!("the checkpoint given is of {}, the file of {}", given.origin, head.origin);
                report.file(FindingKind::Origin, detail);
            } else if given.size > size {
                let detail =
                    format!("the checkpoint given covers {} entries, the file only {size}", given.size);
                report.at(FindingKind::Cut, size, detail);
            }
            given.origin == head.origin
        });
        let own = own.map(|own| (own, "its checkpoint"));
        let roots = Roots::new(own.into_iter().chain(given.map(|given| (given, "the checkpoint given"))));
        Self {
            keys,
            report,
            roots,
            erasures: Erasures::default(),
            size,
            checkpoint,
            tile: None,
            next: 0,
            ended: false,
            entries: 0,
            has_persons: None,
            erased: 0,
        }
    }

    fn line(&mut self, line: Line) -> Result<(), VerifyError> {
        match line {
            Line::Entry(entry) => self.entry(&entry)?,
            Line::Malformed(reason) => self.report.file(FindingKind::Malformed, reason),
            Line::Tile(..) | Line::End(_) if self.ended => {
                self.report.file(FindingKind::Malformed, "a tile or an end stands after the end");
            }
            Line::Tile(number, leaves) => self.tile(number, leaves),
            Line::End(number) => {
                self.ended = true;
                if number != self.size {
                    let detail =
                        format!("the end line says {number} entries, there have to be {}", self.size);
                    self.report.file(FindingKind::Cut, detail);
                }
            }
        }
        Ok(())
    }

    fn tile(&mut self, number: u64, leaves: Option<Vec<Hash>>) {
        if number < self.next {
            if let Some(early) = self.tile.take_if(|tile| tile.number == number && !tile.announced) {
                early.report_early(&mut self.report);
                self.open(number, true, leaves);
            } else {
                let detail = "its line stands there twice or out of order";
                self.report.at(FindingKind::Tile, number * TILE, detail);
            }
        } else if number >= self.size.div_ceil(TILE) {
            self.report.file(FindingKind::Tile, format!("tile {number} is behind the end of the tree"));
        } else {
            self.close(false);
            if number > self.next {
                let (first, last) = (self.next * TILE, number * TILE - 1);
                let detail = format!("all is missing up to position {last}");
                self.report.at(FindingKind::Tile, first, detail);
                self.roots.gap();
            }
            self.open(number, true, leaves);
        }
    }

    fn entry(&mut self, entry: &EntryLine) -> Result<(), VerifyError> {
        let checked = check(entry, self.keys, &mut self.report);
        self.entries += 1;
        let has_person = entry.person != PersonMember::Absent;
        if *self.has_persons.get_or_insert(has_person) != has_person {
            let detail =
                "it and the first entry are of different forms: only one of them has a person, or none";
            self.report.entry(FindingKind::Malformed, checked.position, checked.id, detail);
        }
        self.erased += u64::from(checked.erased);
        self.erasures.record(entry, &checked, &mut self.report)?;
        let position = checked.position;
        if self.ended {
            self.report.entry(FindingKind::Inserted, position, checked.id, "it stands after the end");
            return Ok(());
        }
        // an entry of the next tile: that tile's line may be missing
        let is_next = position < self.size && position / TILE == self.next;
        if is_next && self.tile.as_ref().is_none_or(Tile::is_full) {
            self.close(false);
            self.open(self.next, false, None);
        }
        match &mut self.tile {
            Some(tile) => tile.insert(checked, self.size, &mut self.report),
            None if position < self.size => report_early(&checked, &mut self.report),
            None => {
                self.report.entry(FindingKind::Inserted, position, checked.id, "the tree does not have it");
            }
        }
        Ok(())
    }

    fn open(&mut self, number: u64, announced: bool, leaves: Option<Vec<Hash>>) {
        let tile = Tile::new(number, announced, leaves, self.size);
        if tile.is_invalid() {
            let detail = "its line has not as many hashes as it has leaves";
            self.report.at(FindingKind::Tile, tile.first(), detail);
        }
        self.tile = Some(tile);
        self.next = number + 1;
    }

    fn close(&mut self, cut: bool) -> Option<u64> {
        let tile = self.tile.take()?;
        if !tile.announced {
            self.report.at(FindingKind::Tile, tile.first(), "its line is missing");
        }
        tile.close(cut, &mut self.roots, &mut self.report)
    }

    fn finish(mut self, head: Head) -> Summary {
        let missing = self.close(!self.ended);
        let end = missing.unwrap_or_else(|| self.size.min(self.next.saturating_mul(TILE)));
        if end < self.size {
            let detail = format!("it and all after it are missing, {} entries", self.size - end);
            self.report.at(FindingKind::Cut, end, detail);
        } else if !self.ended {
            self.report.file(FindingKind::Cut, "the end line is missing");
        }
        self.roots.finish(&mut self.report);
        self.erasures.finish(&mut self.report);
        Summary {
            origin: head.origin,
            exported_on: head.exported_on,
            entries: self.entries,
            erased: self.erased,
            checkpoint: self.checkpoint,
            findings: self.report.count,
        }
    }
}

/// The head's checkpoint, where it is trusted. Reports the faults of it.
fn open_head(head: &Head, keys: &AuditKeys, report: &mut Report<'_>) -> Option<Checkpoint> {
    let Some(note) = &head.checkpoint else {
        if head.size > 0 {
            report.file(FindingKind::Checkpoint, "a trail with entries has none");
        }
        return None;
    };
    let checkpoint = match Checkpoint::open(note, keys) {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            report.file(FindingKind::Checkpoint, error.to_string());
            return None;
        }
    };
    if checkpoint.origin != head.origin {
        let detail = format!("the head says {}, its checkpoint {}", head.origin, checkpoint.origin);
        report.file(FindingKind::Origin, detail);
    }
    if checkpoint.size != head.size {
        let detail = format!("it says {} entries, its checkpoint {}", head.size, checkpoint.size);
        report.file(FindingKind::Head, detail);
    }
    Some(checkpoint)
}
