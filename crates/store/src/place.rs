//! The location of a database. It stays the same after a failover, a rename of the host or a move of the folder, and differs on a copy.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::UNIX_EPOCH};

use crate::{Error, Tx};

/// The location of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// On PostgreSQL the system identifier and the OID of the database, on SQLite the inode of the file.
    pub place: String,
    /// The creation time of a SQLite file, in nanoseconds since 1970, if the file system has it. New file systems often assign the
    /// same inodes.
    pub born: Option<String>,
}

/// A promoted standby keeps both values, and so does a renamed host.
const ON_POSTGRES: &str = "SELECT 'system ' || system_identifier::text || ', database ' || \
    (SELECT oid::text FROM pg_database WHERE datname = current_database()) FROM pg_control_system()";

impl Place {
    /// Whether both are the same location. Creation times are compared only if both are known.
    pub fn is(&self, other: &Self) -> bool {
        let is_as_old = match (&self.born, &other.born) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.place == other.place && is_as_old
    }

    /// The place as one text.
    pub fn to_text(&self) -> String {
        self.born.as_ref().map_or_else(|| self.place.clone(), |born| format!("{}, {born}", self.place))
    }

    /// Parses such a text.
    pub fn of_text(text: &str) -> Self {
        match text.rsplit_once(", ") {
            Some((place, born)) => Self { place: place.to_owned(), born: Some(born.to_owned()) },
            None => Self { place: text.to_owned(), born: None },
        }
    }

    /// The place of a file.
    pub(crate) fn of_file(path: &Path) -> Result<Self, Error> {
        let unread = |error: std::io::Error| Error::Unavailable(format!("{}: {error}", path.display()));
        let facts = fs::metadata(path).map_err(unread)?;
        let made = facts.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            place: format!("inode {}", facts.ino()),
            born: made.filter(|made| !made.is_zero()).map(|made| made.as_nanos().to_string()),
        })
    }

    /// The place of a database on a PostgreSQL server.
    pub(crate) fn on_postgres(tx: &mut Tx<'_>) -> Result<Self, Error> {
        let place = tx.one(ON_POSTGRES, &[], |row| Ok(row.text(0)?.to_owned()))?;
        let untold = || Error::Internal("the database does not tell where it is".into());
        Ok(Self { place: place.ok_or_else(untold)?, born: None })
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    fn place(place: &str, born: Option<&str>) -> Place {
        Place { place: place.to_owned(), born: born.map(str::to_owned) }
    }

    #[test]
    fn a_file_of_the_same_number_that_was_made_at_another_time_is_another() {
        let own = place("inode 13", Some("7"));
        assert!(own.is(&place("inode 13", Some("7"))) && own.is(&place("inode 13", None)));
        assert!(!own.is(&place("inode 13", Some("8"))));
        assert_eq!(Place::of_text(&own.to_text()), own);
        assert_eq!(Place::of_text(&place("inode 13", None).to_text()), place("inode 13", None));
        assert!(!own.is(&place("inode 14", Some("7"))) && !own.is(&place("inode 14", None)));
    }

    #[test]
    fn a_file_keeps_its_place_when_it_is_moved_and_a_copy_has_another() {
        let folder = std::env::temp_dir().join(format!("place-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let (here, there, copy) = (folder.join("a"), folder.join("b"), folder.join("c"));
        std::fs::write(&here, b"data").unwrap();
        let was = Place::of_file(&here).unwrap();
        std::fs::rename(&here, &there).unwrap();
        std::fs::copy(&there, &copy).unwrap();
        assert!(Place::of_file(&there).unwrap().is(&was));
        assert!(!Place::of_file(&copy).unwrap().is(&was));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
