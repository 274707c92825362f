//! Writing JSON: the wire form, and the canonical form of RFC 8785.

use base64::{Engine as _, prelude::BASE64_STANDARD};

use uuid::Uuid;

use crate::{Cell, Field, Kind, Timestamp, Value, format_timestamp, value::Encoding};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes a value in the wire form of its kind.
pub fn write_cell(kind: &Kind, cell: Cell<'_>, out: &mut Vec<u8>) {
    match (cell, kind) {
        (Cell::Null, _) => out.extend_from_slice(b"null"),
        (Cell::Bool(value), _) => write_bool(value, out),
        (Cell::Int(value), Kind::Bool) => write_bool(value != 0, out),
        (Cell::Int(value), Kind::Time) => {
            out.push(b'"');
            format_timestamp(Timestamp(value), out);
            out.push(b'"');
        }
        (Cell::Int(value), _) => write_int(value, out),
        // stored as the name, written as its index
        (Cell::Text(text), Kind::Numbered(names)) => match names.iter().position(|name| *name == text) {
            Some(index) => out.extend_from_slice(index.to_string().as_bytes()),
            None => out.extend_from_slice(b"null"),
        },
        (Cell::Text(text), Kind::Ids | Kind::Texts(_) | Kind::Pairs(_)) => {
            out.extend_from_slice(text.as_bytes());
        }
        (Cell::Text(text), _) => write_string(text, out),
        (Cell::Id(id), _) => write_id(id, out),
        // SQLite returns an id as its bytes
        (Cell::Bytes(bytes), Kind::Id) => write_id(Uuid::from_slice(bytes).unwrap_or_default(), out),
        (Cell::Bytes(bytes), Kind::Bytes(Encoding::Hex)) => {
            out.push(b'"');
            write_hex(bytes, out);
            out.push(b'"');
        }
        (Cell::Bytes(bytes), _) => {
            out.push(b'"');
            out.extend_from_slice(BASE64_STANDARD.encode(bytes).as_bytes());
            out.push(b'"');
        }
    }
}

/// A value in the wire form of its kind.
pub fn json_of(kind: &Kind, cell: Cell<'_>) -> serde_json::Value {
    match (cell, kind) {
        (Cell::Null, _) => serde_json::Value::Null,
        (Cell::Bool(value), _) => value.into(),
        (Cell::Int(value), Kind::Bool) => (value != 0).into(),
        (Cell::Text(text), Kind::Text(_)) => text.into(),
        (cell, kind) => {
            let mut text = Vec::new();
            write_cell(kind, cell, &mut text);
            serde_json::from_slice(&text).unwrap_or_default()
        }
    }
}

fn write_id(id: Uuid, out: &mut Vec<u8>) {
    let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
    out.push(b'"');
    out.extend_from_slice(id.hyphenated().encode_lower(&mut buffer).as_bytes());
    out.push(b'"');
}

fn write_bool(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

fn write_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        let digits = [byte >> 4, byte & 15].map(|digit| HEX.get(usize::from(digit)).copied());
        out.extend(digits.into_iter().flatten());
    }
}

/// Writes a JSON string with the escapes of RFC 8785: the short ones, `\u00xx` for the other control
/// characters, everything else as it is.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\')) {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain);
        if let Some((byte, after)) = from.split_first() {
            write_escape(*byte, out);
            rest = after;
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u00");
            write_hex(&[byte], out);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// The canonical JSON (RFC 8785) of some fields: members sorted, no white space. All names are ASCII, so byte
/// order is the order of UTF-16 units that the RFC requires; numbers are whole.
pub fn canonical_json<'a>(members: impl IntoIterator<Item = (&'a Field, &'a Value)>) -> String {
    let mut members: Vec<_> = members.into_iter().collect();
    members.sort_unstable_by(|(left, _), (right, _)| left.wire().cmp(right.wire()));
    let mut out = Vec::with_capacity(64 * members.len());
    for (index, (field, value)) in members.into_iter().enumerate() {
        out.push(if index == 0 { b'{' } else { b',' });
        write_string(field.wire(), &mut out);
        out.push(b':');
        write_cell(&field.kind, value.cell(), &mut out);
    }
    if out.is_empty() {
        out.push(b'{');
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{write_cell, write_string};
    use crate::{Cell, Kind, value::Encoding};

    #[test]
    fn strings_are_what_serde_writes() {
        for text in ["", "plain", "a\"b\\c", "\u{0}\u{8}\u{c}\n\r\t\u{1f}", "ü 漢 😀", "\u{7f}"] {
            let mut out = Vec::new();
            write_string(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(text).unwrap());
        }
    }

    #[test]
    fn a_value_is_written_in_the_form_of_its_kind() {
        let written = |kind: Kind, cell: Cell<'_>| {
            let mut out = Vec::new();
            write_cell(&kind, cell, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(Kind::Bool, Cell::Int(1)), "true");
        assert_eq!(written(Kind::Time, Cell::Int(0)), "\"1970-01-01T00:00:00.000Z\"");
        assert_eq!(written(Kind::Bytes(Encoding::Hex), Cell::Bytes(&[0xab, 1])), "\"ab01\"");
        assert_eq!(written(Kind::Bytes(Encoding::Base64), Cell::Bytes(&[1])), "\"AQ==\"");
    }
}
