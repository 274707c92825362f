//! The location of a database. It stays the same after a failover, a rename of the host or a move of the
//! folder, and differs on a copy.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::UNIX_EPOCH};

use crate::{Error, Tx};

/// The location of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseLocation {
    /// On PostgreSQL the system identifier and the OID of the database, on SQLite the inode of the file.
    pub location: String,
    /// The creation time of a SQLite file, in nanoseconds since 1970, if the file system has it. New file
    /// systems often assign the same inodes.
    pub created: Option<String>,
}

/// A promoted standby has the same values, and so has a renamed host.
const ON_POSTGRES: &str = "SELECT 'system ' || system_identifier::text || ', database ' || \
    (SELECT oid::text FROM pg_database WHERE datname = current_database()) FROM pg_control_system()";

impl DatabaseLocation {
    /// Whether both are the same location. Creation times are compared only if both are known.
    pub fn is(&self, other: &Self) -> bool {
        let is_same_age = match (&self.created, &other.created) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.location == other.location && is_same_age
    }

    /// The location as one text.
    pub fn to_text(&self) -> String {
        self.created
            .as_ref()
            .map_or_else(|| self.location.clone(), |created| format!("{}, {created}", self.location))
    }

    /// Parses such a text.
    pub fn of_text(text: &str) -> Self {
        match text.rsplit_once(", ") {
            Some((location, created)) => {
                Self { location: location.to_owned(), created: Some(created.to_owned()) }
            }
            None => Self { location: text.to_owned(), created: None },
        }
    }

    /// The location of a file.
    pub(crate) fn of_file(path: &Path) -> Result<Self, Error> {
        let unreadable = |error: std::io::Error| Error::Unavailable(format!("{}: {error}", path.display()));
        let metadata = fs::metadata(path).map_err(unreadable)?;
        let created = metadata.created().ok().and_then(|created| created.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            location: format!("inode {}", metadata.ino()),
            created: created
                .filter(|created| !created.is_zero())
                .map(|created| created.as_nanos().to_string()),
        })
    }

    /// The location of a database on a PostgreSQL server.
    pub(crate) fn on_postgres(tx: &mut Tx<'_>) -> Result<Self, Error> {
        let location = tx.one(ON_POSTGRES, &[], |row| Ok(row.text(0)?.to_owned()))?;
        let missing = || Error::Internal("the database does not tell where it is".into());
        Ok(Self { location: location.ok_or_else(missing)?, created: None })
    }
}

#[cfg(test)]
mod tests {
    use super::DatabaseLocation;

    fn location(location: &str, created: Option<&str>) -> DatabaseLocation {
        DatabaseLocation { location: location.to_owned(), created: created.map(str::to_owned) }
    }

    #[test]
    fn the_same_inode_with_another_creation_time_is_another_location() {
        let own = location("inode 13", Some("7"));
        assert!(own.is(&location("inode 13", Some("7"))) && own.is(&location("inode 13", None)));
        assert!(!own.is(&location("inode 13", Some("8"))));
        assert_eq!(DatabaseLocation::of_text(&own.to_text()), own);
        assert_eq!(
            DatabaseLocation::of_text(&location("inode 13", None).to_text()),
            location("inode 13", None)
        );
        assert!(!own.is(&location("inode 14", Some("7"))) && !own.is(&location("inode 14", None)));
    }

    #[test]
    fn a_moved_file_keeps_its_location_and_a_copy_gets_another() {
        let folder = std::env::temp_dir().join(format!("place-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let (original, moved, copy) = (folder.join("a"), folder.join("b"), folder.join("c"));
        std::fs::write(&original, b"data").unwrap();
        let was = DatabaseLocation::of_file(&original).unwrap();
        std::fs::rename(&original, &moved).unwrap();
        std::fs::copy(&moved, &copy).unwrap();
        assert!(DatabaseLocation::of_file(&moved).unwrap().is(&was));
        assert!(!DatabaseLocation::of_file(&copy).unwrap().is(&was));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
