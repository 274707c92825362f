//! Where a database is: what a failover, a renamed host and a moved folder leave as it is, and a copy does not.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::UNIX_EPOCH};

use crate::{Error, Tx};

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of PostgreSQL the system identifier and the database's OID, of SQLite the file's inode.
    pub place: String,
    /// When a SQLite file was made, in nanoseconds since 1970, where its file system tells: new file systems number their
    /// files alike.
    pub born: Option<String>,
}

/// A standby that is promoted keeps both, and so does a host that is renamed.
const ON_POSTGRES: &str = "SELECT 'system ' || system_identifier::text || ', database ' || \
    (SELECT oid::text FROM pg_database WHERE datname = current_database()) FROM pg_control_system()";

impl Place {
    /// Whether both are the same place. Where one does not know when its file was made, the rest counts.
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

    /// From such a text.
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
