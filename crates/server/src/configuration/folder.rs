//! The folder of a set: its documents, its secrets and its memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use chancery_configuration::{Document, Kind, Memory, Problem, read_documents};
use chancery_record::read_json_within;
use serde_json::Value;

use crate::{
    config::secrets::{credential, credentials},
    login::plain,
    private_file::read_private_text,
    start_error::BoxError,
};

/// The file of the set's memory of servers.
const APPLIED: &str = ".applied.json";
/// The most bytes of one file.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// The most values of one file.
const MAX_VALUES: usize = 4_000_000;

/// A folder with documents.
#[derive(Default)]
pub struct Folder {
    path: PathBuf,
    /// The documents of all files.
    pub documents: Vec<Document>,
    /// The files, each with the number of its first document.
    files: Vec<(usize, String)>,
    /// The secrets that the documents name, as far as they are given.
    pub secrets: BTreeMap<String, String>,
    /// The memory of the set, by the server's URL.
    memories: BTreeMap<String, Memory>,
    /// The memory of an unknown server.
    nothing: Memory,
}

impl Folder {
    /// Reads all `.json` files of a folder, in the order of their names, and the set's memory.
    pub fn read(path: &Path) -> Result<Self, BoxError> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && Path::new(&name).extension().is_some_and(|end| end == "json") {
                names.push(name);
            }
        }
        names.sort_unstable();
        let mut folder = Self { path: path.to_owned(), ..Self::default() };
        for name in names {
            let json: Value = read_json(&path.join(&name), true)?;
            let first = folder.documents.len();
            folder.files.push((first, name));
            match read_documents(json, first) {
                Ok(documents) => folder.documents.extend(documents),
                Err(problems) => {
                    let lines: Vec<String> =
                        problems.iter().map(|problem| folder.describe(problem)).collect();
                    return Err(lines.join("\nchancery: ").into());
                }
            }
        }
        let applied = path.join(APPLIED);
        if applied.exists() {
            folder.memories = read_json(&applied, false)?;
        }
        Ok(folder)
    }

    /// Writes documents, a file for each kind that has some; returns the number of files. An existing file whose kind has
    /// none becomes empty.
    pub fn write(path: &Path, kinds: &[Kind], documents: &[Document]) -> Result<usize, BoxError> {
        fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut count = 0;
        for kind in kinds {
            let own = documents.iter().filter(|document| document.kind == kind.name);
            let own: Vec<Value> = own.map(Document::to_json).collect();
            let file = path.join(format!("{}.json", kind.name));
            if !own.is_empty() || file.exists() {
                write_json(&file, &Value::from(own))?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Finds secrets, in the folder of `$CREDENTIALS_DIRECTORY` or in the environment.
    pub fn find_secrets(&mut self, names: &BTreeSet<String>) -> Result<(), BoxError> {
        let credentials = credentials();
        for name in names {
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(
                    format!("{name:?} is no name of a secret: letters, digits, _ and - make one").into()
                );
            }
            let secret = match credential(credentials.as_deref(), name) {
                Some(file) => Some(read_private_text(&file)?.as_str().to_owned()),
                None => env::var(name).ok(),
            };
            // from any source, trailing line ends and blanks are trimmed
            let secret = secret.as_deref().map(str::trim_end).filter(|secret| !secret.is_empty());
            if let Some(secret) = secret {
                self.secrets.insert(name.clone(), secret.to_owned());
            }
        }
        Ok(())
    }

    /// The set's memory of a server.
    pub fn memory_of(&self, server: &str) -> &Memory {
        self.memories.get(server).unwrap_or(&self.nothing)
    }

    /// Changes the set's memory of a server, on the disk, too.
    pub fn remember(&mut self, server: &str, change: impl FnOnce(&mut Memory)) -> Result<(), BoxError> {
        let memory = self.memories.entry(server.to_owned()).or_default();
        let before = memory.clone();
        change(memory);
        if *memory == before {
            return Ok(());
        }
        let json = serde_json::to_value(&self.memories)?;
        write_json(&self.path.join(APPLIED), &json)
    }

    /// Describes a problem with the file and the pointer in it.
    pub fn describe(&self, problem: &Problem) -> String {
        let Some(number) = problem.document else { return problem.detail.clone() };
        let file = self.files.iter().rev().find(|(first, _)| *first <= number);
        let (first, name) = file.map_or((0, ""), |(first, name)| (*first, name.as_str()));
        format!("{name}#/{}{}: {}", number - first, problem.pointer, problem.detail)
    }
}

/// Reads a JSON file; one that people write strictly: of a repeated member, one would be ignored silently.
fn read_json<T: serde::de::DeserializeOwned>(path: &Path, is_typed: bool) -> Result<T, BoxError> {
    let located = |error: &dyn std::fmt::Display| format!("{}: {error}", plain(&path.display().to_string()));
    let about = fs::metadata(path).map_err(|error| located(&error))?;
    if !about.is_file() {
        // opening a pipe would wait for its writer
        return Err(located(&"is no regular file").into());
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    if read.map_err(|error| located(&error))? as u64 > MAX_FILE_BYTES {
        return Err(located(&"is larger than 64 MiB").into());
    }
    // some editors put a byte order mark before UTF-8
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    if is_typed {
        read_json_within(text, MAX_VALUES).map_err(|error| located(&error.0))?;
    }
    Ok(serde_json::from_slice(text).map_err(|error| located(&error))?)
}

/// Writes a file atomically; once it returns, it is on the disk.
fn write_json(path: &Path, json: &Value) -> Result<(), BoxError> {
    let located = |error: std::io::Error| format!("{}: {error}", path.display());
    let text = serde_json::to_string_pretty(json)?;
    let temporary = path.with_extension("json.new");
    let mut file = fs::File::create(&temporary).map_err(located)?;
    file.write_all((text + "\n").as_bytes()).and_then(|()| file.sync_all()).map_err(located)?;
    Ok(fs::rename(&temporary, path).map_err(located)?)
}
