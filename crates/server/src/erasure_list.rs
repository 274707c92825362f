//! The list of erased people, which is stored separately from the database: people who were erased after a backup are erased again
//! when it is restored.

use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_fetch::Outbound;
use chancery_resource::{MasterKey, random};
use chancery_store::selectable;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Config, StartError, start_error::BoxError};

/// The purpose from which the HMAC key of lines is derived.
const PURPOSE: &str = "erasure";
/// The longest line that is read, in bytes.
const LONGEST: u64 = 1 << 10;
/// How much of the end of a file a process reads at its start, in bytes.
const TAIL: u64 = 1 << 20;
/// How far below the highest listed number an erasure can still be committed: ten minutes. The high bits of a number are the
/// microseconds since 1970.
const LATE: i64 = 10 * 60 * 1_000_000;
/// The extension of the files in a folder.
const ENDING: &str = "jsonl";

selectable! {
    /// A person who was erased.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Erasure {
        /// The number of the audit entry of the erasure.
        pub number: i64 = "number",
        /// The number of the user store; 0 is the configuration.
        pub store: i64 = "store",
        /// The resource: a user of a store, or a platform user.
        pub resource: String = "resource",
        /// The person's id.
        pub person: Uuid = "person",
    }
}

/// A line of the list.
#[derive(Deserialize, Serialize)]
struct Line {
    number: i64,
    store: i64,
    resource: String,
    person: Uuid,
    signature: String,
}

impl Erasure {
    /// The bytes that the HMAC covers.
    fn text(&self) -> String {
        format!("{}/{}/{}/{}", self.number, self.store, self.resource, self.person)
    }

    fn to_line(&self, master: &MasterKey) -> String {
        let Self { number, store, resource, person } = self.clone();
        let signature = BASE64_URL_SAFE_NO_PAD.encode(master.sign(PURPOSE, self.text().as_bytes()));
        let line = Line { number, store, resource, person, signature };
        // serializing text and numbers does not fail
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    }

    fn of_line(line: &[u8], master: &MasterKey) -> Result<Self, &'static str> {
        let read: Line = serde_json::from_slice(line).map_err(|_| "is none of a list of erasures")?;
        let Line { number, store, resource, person, signature } = read;
        let erasure = Self { number, store, resource, person };
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
        if master.has_signed(PURPOSE, erasure.text().as_bytes(), &signature) {
            Ok(erasure)
        } else {
            Err("was not written by this installation: its signature does not fit")
        }
    }
}

/// Reads the lines of a list, file by file.
///
/// # Errors
/// A file cannot be read; a line was not written by this installation.
pub fn read(
    path: &Path,
    master: &MasterKey,
    mut each: impl FnMut(Erasure) -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    for file in files(path).map_err(failed)? {
        let mut reader = BufReader::new(File::open(&file).map_err(failed)?);
        let mut number = 0;
        while let Some(line) = next_line(&mut reader).map_err(failed)? {
            number += 1;
            let erasure = Erasure::of_line(&line, master)
                .map_err(|why| format!("{}, line {number}: it {why}", file.display()))?;
            each(erasure)?;
        }
    }
    Ok(())
}

/// The files of a list: itself, or those in its folder.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for file in fs::read_dir(path)? {
        let file = file?.path();
        if file.extension().is_some_and(|ending| ending == ENDING) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// The next complete line without its end. An incomplete line was interrupted while it was written, and is written again.
fn next_line(reader: &mut impl io::BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') => Ok(Some(line)),
        _ if line.len() as u64 + 1 == LONGEST => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long for a list of erasures"))
        }
        _ => Ok(None),
    }
}

/// A list as a process writes it; it also reads what other processes write to it.
pub struct ErasureList {
    path: PathBuf,
    own: PathBuf,
    master: MasterKey,
    /// How far each file was read.
    read: HashMap<PathBuf, u64>,
    /// The highest listed number.
    last: i64,
    /// The listed numbers within the window below the highest one.
    recent: BTreeSet<i64>,
}

impl ErasureList {
    /// The list to which this process writes, if one is configured. On a copy it is not written, since erasures there are not those
    /// of the installation.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn configured(
        config: &Config,
        outbound: &Outbound,
        master: &MasterKey,
    ) -> Result<Option<Self>, StartError> {
        let Some(path) = config.erasure_list.as_ref().filter(|_| !outbound.is_copy()) else {
            return Ok(None);
        };
        let list = Self::open(path, master.clone());
        let failed = |error| StartError::new(format!("the list of erasures {}", path.display()), error);
        list.map(Some).map_err(failed)
    }

    /// Opens a list: a file or an existing folder. A missing file is created.
    ///
    /// # Errors
    /// It cannot be written or read, or the end of it was not written by this installation.
    pub fn open(path: &Path, master: MasterKey) -> io::Result<Self> {
        let own = if path.is_dir() {
            path.join(format!("{}.{ENDING}", Uuid::from_bytes(random::<16>())))
        } else {
            path.to_owned()
        };
        let mut list = Self {
            path: path.to_owned(),
            own,
            master,
            read: HashMap::new(),
            last: 0,
            recent: BTreeSet::new(),
        };
        let file = list.own_file()?;
        if path.is_dir() {
            // created only to test that the folder is writable; a process without erasures leaves no file
            drop(file);
            fs::remove_file(&list.own)?;
        }
        list.catch_up()?;
        Ok(list)
    }

    fn own_file(&self) -> io::Result<File> {
        OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(&self.own)
    }

    /// The number after which erasures may be missing in the list.
    pub const fn position(&self) -> i64 {
        self.last.saturating_sub(LATE)
    }

    /// Reads the lines written since the last time.
    fn catch_up(&mut self) -> io::Result<()> {
        for path in files(&self.path)? {
            let mut file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let length = file.metadata()?.len();
            let is_new = !self.read.contains_key(&path);
            let mut at =
                self.read.get(&path).copied().unwrap_or_else(|| length.saturating_sub(TAIL)).min(length);
            let is_cut = is_new && at > 0;
            file.seek(SeekFrom::Start(at))?;
            let mut reader = BufReader::new(file);
            let mut is_first = true;
            while let Some(line) = next_line(&mut reader)? {
                at += line.len() as u64 + 1;
                // the first line may be incomplete, because reading starts within the file
                if !(is_cut && std::mem::take(&mut is_first)) {
                    let wrong = |why| {
                        let why = format!("{}: a line {why}", path.display());
                        io::Error::new(io::ErrorKind::InvalidData, why)
                    };
                    self.note(Erasure::of_line(&line, &self.master).map_err(wrong)?.number);
                }
            }
            self.read.insert(path, at);
        }
        Ok(())
    }

    fn note(&mut self, number: i64) {
        self.last = self.last.max(number);
        self.recent.insert(number);
        while self.recent.first().is_some_and(|first| *first <= self.position()) {
            self.recent.pop_first();
        }
    }

    /// Appends the erasures that are not listed yet, and syncs the file.
    ///
    /// # Errors
    /// The file cannot be written or read.
    pub fn add(&mut self, erasures: &[Erasure]) -> io::Result<()> {
        let is_new = |list: &Self, erasure: &&Erasure| !list.recent.contains(&erasure.number);
        if !erasures.iter().any(|erasure| is_new(self, &erasure)) {
            return Ok(());
        }
        let mut file = self.own_file()?;
        // other processes may write to it; the lock ends with the file
        file.lock()?;
        cut_broken_end(&mut file)?;
        self.catch_up()?;
        let new: Vec<&Erasure> = erasures.iter().filter(|erasure| is_new(self, erasure)).collect();
        let text: String = new.iter().map(|erasure| erasure.to_line(&self.master)).collect();
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        self.catch_up()
    }
}

/// Truncates an incomplete line at the end, so that the next one is complete.
fn cut_broken_end(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    let from = length.saturating_sub(LONGEST);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    file.take(LONGEST).read_to_end(&mut end)?;
    let whole = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
    if whole < end.len() as u64 { file.set_len(from + whole) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _, path::PathBuf};

    use chancery_resource::MasterKey;
    use uuid::Uuid;

    use super::{Erasure, ErasureList, LATE, read};

    fn folder() -> PathBuf {
        let folder = std::env::temp_dir()
            .join(format!("erasures-{}", Uuid::from_bytes(chancery_resource::random::<16>())));
        fs::create_dir(&folder).unwrap();
        folder
    }

    fn erased(number: i64) -> Erasure {
        let person = Uuid::from_u128(number.unsigned_abs().into());
        Erasure { number, store: 1, resource: "User".to_owned(), person }
    }

    fn numbers(path: &std::path::Path, master: &MasterKey) -> Result<Vec<i64>, String> {
        let mut numbers = Vec::new();
        read(path, master, |erasure| {
            numbers.push(erasure.number);
            Ok(())
        })
        .map_err(|error| error.to_string())?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    #[test]
    fn each_erasure_is_listed_once_also_by_the_next_process_and_by_another() {
        let (folder, master) = (folder(), MasterKey::generate());
        let path = folder.join("list");
        let mut list = ErasureList::open(&path, master.clone()).unwrap();
        let mut other = ErasureList::open(&path, master.clone()).unwrap();
        list.add(&[erased(LATE + 1), erased(LATE + 3)]).unwrap();
        other.add(&[erased(LATE + 1), erased(LATE + 2), erased(LATE + 3)]).unwrap();
        let mut next = ErasureList::open(&path, master.clone()).unwrap();
        next.add(&[erased(LATE + 2), erased(LATE + 4)]).unwrap();
        list.add(&[erased(LATE + 4)]).unwrap();
        assert_eq!(numbers(&path, &master).unwrap(), [1, 2, 3, 4].map(|number| LATE + number));
        assert_eq!(next.position(), 4);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_line_that_broke_off_is_written_again() {
        let (folder, master) = (folder(), MasterKey::generate());
        let path = folder.join("list");
        ErasureList::open(&path, master.clone()).unwrap().add(&[erased(1)]).unwrap();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"number\":2,\"st").unwrap();
        assert_eq!(numbers(&path, &master).unwrap(), [1]);
        ErasureList::open(&path, master.clone()).unwrap().add(&[erased(1), erased(2)]).unwrap();
        assert_eq!(numbers(&path, &master).unwrap(), [1, 2]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_has_a_file_for_each_process() {
        let (folder, master) = (folder(), MasterKey::generate());
        let mut one = ErasureList::open(&folder, master.clone()).unwrap();
        let mut other = ErasureList::open(&folder, master.clone()).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        one.add(&[erased(1)]).unwrap();
        other.add(&[erased(1), erased(2)]).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        assert_eq!(
            numbers(&folder, &master).unwrap(),
            [1, 2],
            "what another process wrote is not written again"
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn lines_of_others_are_refused() {
        let (folder, master) = (folder(), MasterKey::generate());
        let path = folder.join("list");
        ErasureList::open(&path, master.clone()).unwrap().add(&[erased(7)]).unwrap();
        assert!(numbers(&path, &MasterKey::generate()).unwrap_err().contains("line 1"));
        assert!(ErasureList::open(&path, MasterKey::generate()).is_err());
        let changed = fs::read_to_string(&path).unwrap().replace("\"store\":1", "\"store\":2");
        fs::write(&path, changed).unwrap();
        assert!(numbers(&path, &master).unwrap_err().contains("signature"));
        fs::write(&path, "nonsense\n").unwrap();
        assert!(numbers(&path, &master).unwrap_err().contains("none of a list"));
        fs::remove_dir_all(folder).unwrap();
    }
}
