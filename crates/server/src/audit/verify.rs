//! `chancery audit verify`: checks an exported trail against public keys, without a server.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Write},
    path::Path,
};

use chancery_ledger::{AuditKeys, Summary};
use chancery_record::format_timestamp;

use crate::start_error::BoxError;

/// Verifies an export and writes its findings, a line each, and a summary. Returns whether the trail is
/// sound.
pub fn verify(
    file: &Path,
    keys: &Path,
    checkpoint: Option<&Path>,
    out: &mut dyn Write,
) -> Result<bool, BoxError> {
    let named = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = |path: &Path| fs::read_to_string(path).map_err(|error| named(path, &error));
    let known = AuditKeys::from_jwks(&text(keys)?).map_err(|error| named(keys, &error))?;
    let note = checkpoint.map(text).transpose()?;
    let reader: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(file).map_err(|error| named(file, &error))?))
    };
    // the reader of the findings may have closed the pipe; the exit status counts all the same
    let summary = chancery_ledger::verify(reader, &known, note.as_deref(), &mut |finding| {
        let _ = writeln!(out, "{finding}");
    });
    let summary = summary.map_err(|error| named(file, &error))?;
    if summary.entries == 0 && summary.findings == 0 {
        return Err(named(file, &"there is no entry in it: it proves nothing").into());
    }
    let _ = writeln!(out, "{}", in_words(&summary));
    Ok(summary.findings == 0)
}

fn in_words(summary: &Summary) -> String {
    let Summary { origin, exported_on, entries, erased, checkpoint, findings } = summary;
    let mut time = Vec::new();
    format_timestamp(*exported_on, &mut time);
    let time = String::from_utf8_lossy(&time);
    let verdict = match findings {
        0 => "sound".to_owned(),
        1 => "NOT SOUND, 1 finding".to_owned(),
        many => format!("NOT SOUND, {many} findings"),
    };
    let covered =
        checkpoint.map_or_else(|| "no checkpoint".to_owned(), |size| format!("a checkpoint over {size}"));
    format!(
        "{verdict}: {origin}, {entries} entries, {covered}, {erased} with erased contents, exported {time}"
    )
}
