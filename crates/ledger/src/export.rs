//! The export of an audit trail: JSON lines, in an order that can be verified in one pass.
//!
//! ```text
//! {"format":"chancery-audit-1","origin":"..","checkpoint":"..","size":N,"exportedOn":".."}
//! {"tile":0,"leaves":["..", ..]}        the hashes of up to 256 leaves, base64
//! {"id":.., .., "position":0}           then their entries, as the interface answers them
//! ..
//! {"tile":1,"leaves":["..", ..]}
//! ..
//! {"end":N}
//! ```
//!
//! Each line starts with the member that is written first here; an entry's members may be in any order. Every
//! tile except the last is full. The file has exactly the entries that the head's checkpoint covers; only for a
//! trail of size 0 may the checkpoint be null.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::{Timestamp, format_timestamp, write_string};

use crate::tree::Hash;

/// The name of the format, with its version.
pub const FORMAT: &str = "chancery-audit-1";

/// The number of leaves of a full tile.
pub const TILE: u64 = 256;

/// The error of an entry that is not a JSON object on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnObject;

impl fmt::Display for NotAnObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an entry is no JSON object on one line")
    }
}

impl std::error::Error for NotAnObject {}

/// Writes the first line: the log's origin, its signed checkpoint, and the number of entries.
pub fn write_head(
    origin: &str,
    checkpoint: Option<&str>,
    size: u64,
    exported_on: Timestamp,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"format\":\"");
    out.extend_from_slice(FORMAT.as_bytes());
    out.extend_from_slice(b"\",\"origin\":");
    write_string(origin, out);
    out.extend_from_slice(b",\"checkpoint\":");
    match checkpoint {
        Some(note) => write_string(note, out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(format!(",\"size\":{size},\"exportedOn\":\"").as_bytes());
    format_timestamp(exported_on, out);
    out.extend_from_slice(b"\"}\n");
}

/// Writes a tile's line: the hashes of up to 256 leaves, starting at `tile * 256`.
pub fn write_tile(tile: u64, leaves: &[Hash], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"tile\":{tile},\"leaves\":[").as_bytes());
    for (index, leaf) in leaves.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"\"" } else { b",\"" });
        out.extend_from_slice(BASE64_STANDARD.encode(leaf).as_bytes());
        out.push(b'"');
    }
    out.extend_from_slice(b"]}\n");
}

/// Writes an entry, given as the JSON object of the API, with its position.
///
/// # Errors
/// [`NotAnObject`].
pub fn write_entry(entry: &[u8], position: u64, out: &mut Vec<u8>) -> Result<(), NotAnObject> {
    let members = entry.strip_suffix(b"}").filter(|members| members.len() > 1).ok_or(NotAnObject)?;
    if !members.starts_with(b"{") || members.contains(&b'\n') {
        return Err(NotAnObject);
    }
    out.extend_from_slice(members);
    out.extend_from_slice(format!(",\"position\":{position}}}\n").as_bytes());
    Ok(())
}

/// Writes the last line.
pub fn write_end(size: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"end\":{size}}}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;

    use super::{NotAnObject, write_end, write_entry, write_head, write_tile};

    #[test]
    fn the_lines_are_as_documented() {
        let mut out = Vec::new();
        write_head("a/\"b", Some("x\n"), 2, Timestamp(0), &mut out);
        write_tile(0, &[[0; 32], [0xff; 32]], &mut out);
        assert_eq!(write_entry(b"{\"id\":7}", 0, &mut out), Ok(()));
        assert_eq!(write_entry(b"{\"id\":8\n}", 0, &mut out), Err(NotAnObject));
        assert_eq!(write_entry(b"{}", 0, &mut out), Err(NotAnObject));
        write_end(2, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"format\":\"chancery-audit-1\",\"origin\":\"a/\\\"b\",\"checkpoint\":\"x\\n\",\"size\":2,\
             \"exportedOn\":\"1970-01-01T00:00:00.000Z\"}\n\
             {\"tile\":0,\"leaves\":[\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\",\
             \"//////////////////////////////////////////8=\"]}\n\
             {\"id\":7,\"position\":0}\n{\"end\":2}\n"
        );
    }
}
