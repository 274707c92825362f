//! Atomic changes of files, which survive an interruption and a power loss.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// A path with a suffix appended to the file name.
pub fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Removes a file, if it exists.
pub fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Syncs the folder of a file, so that its creation or a rename survives a power loss.
pub fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| ".".as_ref()))?.sync_all()
}

/// Writes or replaces a file atomically; it is readable by its owner only.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = with_suffix(path, "new");
    // the file of an interrupted call may have another mode
    remove(&new)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder(path)
}
