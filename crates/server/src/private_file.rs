//! Files that hold a secret: who may read them, and how they are read.

use std::{
    fmt::Display,
    fs::{File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use zeroize::Zeroizing;

/// The largest file that is read as a secret, in bytes. A secret is a line of text or some keys; a larger file was named by mistake.
const MAX_BYTES: u64 = 64 << 10;
/// The mode bits of others, and the group's bits for write and execute.
const NEVER: u32 = 0o037;
/// The group's bit for read.
const GROUP_READS: u32 = 0o040;
/// The user id of root.
const ROOT: u32 = 0;

/// Refuses a file with a secret that others can read or change: its mode must grant nothing to others. The group may read it only if
/// the file belongs to root or to a user other than this process's, which is how secrets are provided to the server's group. A file
/// of the server's own user does not need a group.
///
/// # Errors
/// The mode grants too much; the error says how to change it.
pub fn check_private(path: &Path) -> io::Result<()> {
    check_mode(path, &path.metadata().map_err(|error| named(path, error.kind(), &error))?)
}

/// An error that names the file.
fn named(path: &Path, kind: io::ErrorKind, why: &dyn Display) -> io::Error {
    io::Error::new(kind, format!("{}: {why}", path.display()))
}

fn check_mode(path: &Path, facts: &Metadata) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let Some(why) = exposure(facts.mode(), facts.uid(), own) else { return Ok(()) };
    let mode = if facts.uid() == own { "600" } else { "640" };
    let why = format!("{why}. It holds a secret: chmod {mode} it");
    Err(named(path, io::ErrorKind::PermissionDenied, &why))
}

/// Why a file of this mode and owner is not private to a process of the user `own`.
fn exposure(mode: u32, owner: u32, own: u32) -> Option<&'static str> {
    if mode & NEVER != 0 {
        return Some("users other than its owner have rights to it");
    }
    let is_handed_out = owner == ROOT || owner != own;
    (mode & GROUP_READS != 0 && !is_handed_out).then_some("its group can read it")
}

/// Reads a secret text from a file that only its owner can read.
///
/// # Errors
/// As [`read_private`]; the file is not UTF-8.
pub fn read_private_text(path: &Path) -> io::Result<Zeroizing<String>> {
    let bytes = read_private(path)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| named(path, io::ErrorKind::InvalidData, &"it is no text: it is not UTF-8"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Reads a secret from a file that is private.
///
/// # Errors
/// The file cannot be read, is not private, or is too large for a secret. The error names the file.
pub fn read_private(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let failed = |error: io::Error| named(path, error.kind(), &error);
    let file = File::open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    check_mode(path, &facts)?;
    if !facts.is_file() {
        return Err(named(path, io::ErrorKind::InvalidInput, &"it is no file"));
    }
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        let why = format!("it has more than {} KiB, which is no secret", MAX_BYTES >> 10);
        return Err(named(path, io::ErrorKind::InvalidInput, &why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::exposure;

    /// The server's user is 1000, root is 0, and 7 provides secrets.
    #[test]
    fn a_secret_is_readable_by_its_owner_and_the_group_of_a_file_that_was_handed_out() {
        for (mode, owner) in [
            (0o600, 1000),
            (0o400, 1000),
            (0o400, 0),
            // as systemd and Kubernetes provide credentials
            (0o440, 0),
            (0o640, 0),
            (0o640, 7),
        ] {
            assert_eq!(exposure(0o100_000 | mode, owner, 1000), None, "{mode:o} of {owner}");
        }
        for (mode, owner) in [
            (0o640, 1000),
            (0o440, 1000),
            (0o604, 1000),
            (0o644, 0),
            (0o444, 0),
            (0o660, 0),
            (0o602, 7),
            (0o601, 1000),
        ] {
            assert!(exposure(0o100_000 | mode, owner, 1000).is_some(), "{mode:o} of {owner}");
        }
        assert_eq!(exposure(0o640, 0, 0), None, "root's own, as a container of root gets it");
        assert!(exposure(0o644, 0, 0).is_some());
    }
}
