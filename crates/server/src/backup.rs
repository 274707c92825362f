//! `chancery backup`: a copy of an embedded database and its manifest, made while the server may run.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use aws_lc_rs::digest::{Context, SHA256};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::format_timestamp;
use chancery_resource::MasterKey;
use chancery_store::{Settings, Store, Target, schema_version};
use chancery_web::now;
use serde::{Deserialize, Serialize};

use crate::{
    Config, StartError,
    key_file::read_master_key,
    start_error::BoxError,
    trail_check::check_trails,
    whole_file::{remove, replace, sync_folder, with_suffix},
};

pub const BACKUP_HELP: &str = "\
The server may run and write: the copy is one snapshot of the database. Every page is checked, and each
audit trail is verified against its last checkpoint. The file is synced before it gets its name, and an
existing file is not replaced. FILE.manifest.json has the version, the schema version, the id of the master
key, the checkpoints and the digest, with an HMAC. The master key is not part of the backup: store it
separately. To restore the backup, use chancery restore.

A PostgreSQL database is refused: use pg_dump for a dump, or pgBackRest or Barman for backups with a WAL
archive, and run chancery restore --in-place after restoring it.

Example:
  chancery --config chancery.toml backup --output /backup/chancery-monday";

/// The format of a manifest.
const FORMAT: &str = "chancery-backup-1";
/// The largest manifest that is read, in bytes: a checkpoint for each user store.
const LARGEST: u64 = 16 << 20;
/// The purpose from which the HMAC key of manifests is derived.
const PURPOSE: &str = "backup-manifest";

/// The manifest of a backup.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    format: String,
    /// The version of the program that made the backup.
    pub version: String,
    /// The schema version of that program.
    pub schema: i64,
    /// The id of the master key that decrypts it.
    pub master_key: String,
    /// When it was made (RFC 3339).
    pub made_on: String,
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// The SHA-256 digest of the file, as hex.
    pub sha256: String,
    /// The signed checkpoints of its audit trails.
    pub checkpoints: Vec<String>,
    /// An HMAC of all of these, under the master key.
    #[serde(default)]
    signature: String,
}

impl Manifest {
    /// The path of the manifest of a backup.
    pub fn path_of(backup: &Path) -> PathBuf {
        with_suffix(backup, "manifest.json")
    }

    /// The signed content.
    fn unsigned(&self) -> Vec<u8> {
        let unsigned = Self { signature: String::new(), ..self.clone() };
        // serializing text and numbers does not fail
        serde_json::to_vec(&unsigned).unwrap_or_default()
    }

    fn sign(&mut self, master: &MasterKey) {
        self.signature = BASE64_URL_SAFE_NO_PAD.encode(master.sign(PURPOSE, &self.unsigned()));
    }

    fn is_signed_by(&self, master: &MasterKey) -> bool {
        let signature = BASE64_URL_SAFE_NO_PAD.decode(&self.signature);
        signature.is_ok_and(|signature| master.has_signed(PURPOSE, &self.unsigned(), &signature))
    }

    /// Writes the manifest of a backup.
    fn write(&self, backup: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        replace(&Self::path_of(backup), &text)
    }

    /// Reads the manifest of a backup, and checks that it was made under this master key.
    ///
    /// # Errors
    /// It cannot be read, was made under another master key, or was changed.
    pub fn read(backup: &Path, master: &MasterKey) -> Result<Self, StartError> {
        let path = Self::path_of(backup);
        let failed =
            |why: BoxError| StartError::new(format!("the backup's manifest {}", path.display()), why);
        let mut text = Vec::new();
        let file = File::open(&path).map_err(|error| failed(error.into()))?;
        file.take(LARGEST).read_to_end(&mut text).map_err(|error| failed(error.into()))?;
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        if manifest.format != FORMAT {
            return Err(failed("its format is none that this program knows".into()));
        }
        if !master.knows(&manifest.master_key) {
            return Err(failed(format!(
                "the backup was made with the master key {}, and the one here is {}: put the right one in place",
                manifest.master_key,
                master.id()
            ).into()));
        }
        if !manifest.is_signed_by(master) {
            return Err(failed("it was changed: its signature does not fit".into()));
        }
        Ok(manifest)
    }
}

/// Removes the write-ahead log and the shared memory file of an SQLite database that no process has open.
pub fn remove_logs(database: &Path) -> io::Result<()> {
    for ending in ["-wal", "-shm"] {
        let mut name = database.as_os_str().to_owned();
        name.push(ending);
        remove(name.as_ref())?;
    }
    Ok(())
}

/// Removes an unfinished copy; errors are ignored.
pub fn discard(partial: &Path) {
    let _ = remove_logs(partial);
    let _ = remove(partial);
}

/// Copies all bytes of a reader, and returns their number and their SHA-256 digest.
pub fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<(u64, String)> {
    let (mut digest, mut bytes) = (Context::new(&SHA256), 0);
    let mut chunk = vec![0; 1 << 20];
    loop {
        let count = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let some = chunk.get(..count).unwrap_or_default();
        digest.update(some);
        to.write_all(some)?;
        bytes += count as u64;
    }
    let hex = digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
    Ok((bytes, hex.concat()))
}

fn failed(why: impl Into<BoxError>) -> StartError {
    StartError::new("cannot back up", why)
}

/// Copies the database to a file, and returns a report as text.
///
/// # Errors
/// The database is on PostgreSQL or does not exist, the file exists, or the copy is damaged.
pub async fn back_up(config: &Config, output: &Path) -> Result<String, StartError> {
    let Target::Sqlite(database) = &config.database else {
        return Err(failed(
            "the database is on PostgreSQL, whose own tools do it: pg_dump for a dump, pgBackRest or Barman for backups with \
              an archive. chancery restore --in-place follows when it was restored",
        ));
    };
    if fs::metadata(database).map_or(0, |facts| facts.len()) == 0 {
        return Err(failed(format!("there is no database at {}", database.display())));
    }
    if output.exists() {
        return Err(failed(format!("{} is there already: name another file", output.display())));
    }
    let master = read_master_key(&config.master_key_file)?;
    let partial = with_suffix(output, "partial");
    if partial.exists() {
        return Err(failed(format!(
            "{} is there: another backup is writing it, or one broke off and it can be removed",
            partial.display()
        )));
    }
    let (from, to) = (database.clone(), partial.clone());
    let copied = tokio::task::spawn_blocking(move || Store::back_up(&from, &to));
    copied.await.map_err(failed)?.map_err(failed)?;
    let done = finish(&partial, output, &master).await;
    if done.is_err() {
        discard(&partial);
    }
    done
}

/// Checks a copy, writes its manifest, and renames it to its final name.
async fn finish(partial: &Path, output: &Path, master: &MasterKey) -> Result<String, StartError> {
    let failed = |why: BoxError| StartError::new("the backup is not whole", why);
    let file = partial.to_owned();
    let checked = tokio::task::spawn_blocking(move || Store::check_file(&file));
    checked.await.map_err(|error| failed(error.into()))?.map_err(|error| failed(error.into()))?;
    let target = Target::Sqlite(partial.to_owned());
    let settings = Settings { connections: 1, ..Settings::default() };
    let opened = tokio::task::spawn_blocking(move || Store::open_to_read(&target, settings));
    let store = opened.await.map_err(|error| failed(error.into()))?.map_err(|error| failed(error.into()))?;
    let checkpoints = check_trails(&store, master).await;
    let _ = tokio::task::spawn_blocking(move || store.close()).await;
    let checkpoints = checkpoints?;
    let trails = checkpoints.len();
    let unwritten = |error: io::Error| StartError::new(format!("cannot write {}", output.display()), error);
    remove_logs(partial).map_err(unwritten)?;
    let mut file = File::open(partial).map_err(unwritten)?;
    let (bytes, sha256) = copy(&mut file, &mut io::sink()).map_err(unwritten)?;
    file.sync_all().map_err(unwritten)?;
    let mut made_on = Vec::new();
    format_timestamp(now(), &mut made_on);
    let mut manifest = Manifest {
        format: FORMAT.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        schema: schema_version(),
        master_key: master.id(),
        made_on: String::from_utf8(made_on).unwrap_or_default(),
        bytes,
        sha256,
        checkpoints,
        signature: String::new(),
    };
    manifest.sign(master);
    manifest.write(output).map_err(unwritten)?;
    fs::rename(partial, output).map_err(unwritten)?;
    sync_folder(output).map_err(unwritten)?;
    Ok(format!(
        "{}: {bytes} bytes, schema {}, checked whole and against {trails} checkpoints of audit trails. The master key {} is \
         needed to restore it, and is not in it.",
        output.display(),
        manifest.schema,
        manifest.master_key
    ))
}

#[cfg(test)]
mod tests {
    use chancery_resource::MasterKey;

    use super::{FORMAT, Manifest, copy};

    #[test]
    fn a_copy_returns_its_size_and_digest() {
        let mut to = Vec::new();
        let (bytes, digest) = copy(&mut b"abc".as_slice(), &mut to).unwrap();
        assert_eq!((bytes, to.as_slice()), (3, b"abc".as_slice()));
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_manifest_that_was_changed_or_is_of_another_key_is_refused() {
        let folder = std::env::temp_dir()
            .join(format!("manifest-{}", uuid::Uuid::from_bytes(chancery_resource::random::<16>())));
        std::fs::create_dir(&folder).unwrap();
        let (backup, master) = (folder.join("backup"), MasterKey::generate());
        let mut manifest =
            Manifest { format: FORMAT.to_owned(), master_key: master.id(), bytes: 7, ..Manifest::default() };
        manifest.sign(&master);
        manifest.write(&backup).unwrap();
        assert_eq!(Manifest::read(&backup, &master).unwrap().bytes, 7);
        let other = Manifest::read(&backup, &MasterKey::generate()).unwrap_err().to_string();
        assert!(other.contains(&master.id()), "{other}");
        manifest.bytes = 8;
        manifest.write(&backup).unwrap();
        let changed = Manifest::read(&backup, &master).unwrap_err().to_string();
        assert!(changed.contains("was changed"), "{changed}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
