//! Reading the lines of an export, one at a time, each of bounded length.

use std::io::{self, BufRead, Read as _};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::{Timestamp, parse_timestamp};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    export::{FORMAT, TILE},
    tree::Hash,
};

/// The maximum length of a line, in bytes.
pub const MAX_LINE: u64 = 64 << 20;

/// The maximum length of a tile's line, in bytes: a full tile's line has about 12,000.
const MAX_TILE_LINE: usize = 16 << 10;

/// The first line of an export.
pub(crate) struct Head {
    pub origin: String,
    pub checkpoint: Option<String>,
    pub size: u64,
    pub exported_on: Timestamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HeadLine {
    format: String,
    origin: String,
    checkpoint: Option<String>,
    size: u64,
    exported_on: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TileLine {
    tile: u64,
    leaves: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndLine {
    end: u64,
}

/// An entry's line.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EntryLine {
    pub position: u64,
    pub id: i64,
    pub timestamp: String,
    pub user: Option<String>,
    pub area: String,
    pub primary_key: String,
    pub category: String,
    pub action: String,
    pub data_source: String,
    #[serde(default)]
    pub person: PersonMember,
    pub original_content: Option<String>,
    pub current_content: Option<String>,
    pub original_salt: Option<String>,
    pub current_salt: Option<String>,
    pub original_digest: Option<String>,
    pub current_digest: Option<String>,
    pub signature: String,
    pub signature_public_key_info: String,
}

/// The person whose contents an entry has.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(from = "Option<Uuid>")]
pub(crate) enum PersonMember {
    /// The line lacks the member, as lines of release 0.1.0 do.
    #[default]
    Absent,
    NoPerson,
    Person(Uuid),
}

impl From<Option<Uuid>> for PersonMember {
    fn from(person: Option<Uuid>) -> Self {
        person.map_or(Self::NoPerson, Self::Person)
    }
}

impl PersonMember {
    pub const fn id(self) -> Option<Uuid> {
        match self {
            Self::Absent | Self::NoPerson => None,
            Self::Person(id) => Some(id),
        }
    }
}

/// A line after the first.
pub(crate) enum Line {
    /// A tile's index and leaves; `None` where the leaves are unreadable.
    Tile(u64, Option<Vec<Hash>>),
    Entry(Box<EntryLine>),
    End(u64),
    /// An unreadable line, with the reason.
    Malformed(String),
}

/// Reads an export line by line.
pub(crate) struct Lines<R> {
    reader: R,
    number: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub const fn new(reader: R) -> Self {
        Self { reader, number: 0, buffer: Vec::new() }
    }

    /// Reads the first line; the error is the reason why it is not a head.
    pub fn head(&mut self) -> io::Result<Result<Head, String>> {
        if !self.advance()? {
            return Ok(Err("it is empty".to_owned()));
        }
        Ok(read_head(&self.buffer))
    }

    pub fn next(&mut self) -> io::Result<Option<Line>> {
        if !self.advance()? {
            return Ok(None);
        }
        let line = if self.buffer.len() as u64 > MAX_LINE {
            Err(format!("it is longer than {MAX_LINE} bytes"))
        } else {
            read_line(&self.buffer)
        };
        Ok(Some(line.unwrap_or_else(|reason| Line::Malformed(format!("line {}: {reason}", self.number)))))
    }

    /// Reads the next line into the buffer; of a line that is too long, one byte more than allowed. Returns
    /// `false` at the end of the file.
    fn advance(&mut self) -> io::Result<bool> {
        self.buffer.clear();
        let limit = MAX_LINE + 1;
        if self.reader.by_ref().take(limit).read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        } else if self.buffer.len() as u64 == limit {
            self.reader.skip_until(b'\n')?;
        }
        Ok(true)
    }
}

fn read_head(line: &[u8]) -> Result<Head, String> {
    let head: HeadLine = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if head.format != FORMAT {
        return Err(format!("its format is not {FORMAT}"));
    }
    let exported_on = parse_timestamp(&head.exported_on).ok_or("its time of export is none")?;
    Ok(Head { origin: head.origin, checkpoint: head.checkpoint, size: head.size, exported_on })
}

fn read_line(line: &[u8]) -> Result<Line, String> {
    let error_text = |error: serde_json::Error| error.to_string();
    if line.starts_with(b"{\"tile\":") {
        if line.len() > MAX_TILE_LINE {
            return Err(format!("a tile longer than {MAX_TILE_LINE} bytes"));
        }
        let TileLine { tile, leaves } = serde_json::from_slice(line).map_err(error_text)?;
        let hash = |text: String| BASE64_STANDARD.decode(text).ok()?.try_into().ok();
        let leaves: Option<Vec<Hash>> = leaves.into_iter().map(hash).collect();
        return Ok(Line::Tile(tile, leaves.filter(|leaves| leaves.len() as u64 <= TILE)));
    }
    if line.starts_with(b"{\"end\":") {
        let EndLine { end } = serde_json::from_slice(line).map_err(error_text)?;
        return Ok(Line::End(end));
    }
    serde_json::from_slice(line).map(Line::Entry).map_err(error_text)
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read as _};

    use super::{Line, Lines, MAX_LINE};

    #[test]
    fn an_overlong_line_is_reported_and_skipped() {
        let long = std::io::repeat(b' ').take(MAX_LINE + 5);
        let text = long.chain(&b"\n{\"end\":3}\n{\"end\":4}"[..]);
        let mut lines = Lines::new(BufReader::new(text));
        assert!(
            matches!(lines.next(), Ok(Some(Line::Malformed(reason))) if reason.contains("line 1: it is longer"))
        );
        assert!(matches!(lines.next(), Ok(Some(Line::End(3)))));
        assert!(matches!(lines.next(), Ok(Some(Line::End(4)))));
        assert!(matches!(lines.next(), Ok(None)));
    }

    #[test]
    fn ambiguous_lines_are_malformed() {
        for text in [
            "",
            "[]",
            "{\"end\":3,\"end\":4}",
            "{\"end\":-1}",
            "{\"end\":1,\"x\":1}",
            "{\"tile\":0,\"leaves\":[1]}",
            "{\"id\":1}",
        ] {
            let text = format!("{text}\n");
            assert!(matches!(Lines::new(text.as_bytes()).next(), Ok(Some(Line::Malformed(_)))), "{text}");
        }
        let text = "{\"tile\":0,\"leaves\":[\"AA==\"]}";
        assert!(matches!(Lines::new(text.as_bytes()).next(), Ok(Some(Line::Tile(0, None)))));
    }

    #[test]
    fn a_head_of_another_format_is_rejected() {
        for text in [
            "",
            "{}",
            "{\"format\":\"chancery-audit-2\",\"origin\":\"\",\"checkpoint\":null,\"size\":0,\"exportedOn\":\"2026-01-01\"}",
        ] {
            assert!(Lines::new(text.as_bytes()).head().unwrap().is_err(), "{text}");
        }
    }
}
