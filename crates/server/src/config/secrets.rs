//! Secrets in files: files that an option names, and credentials of a service manager such as systemd.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::{
    ConfigError,
    options::Options,
    private_file::{check_private, read_private_text},
};

/// The folder of credentials, as systemd names it.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// The folder of credentials, where there is one.
pub fn credentials() -> Option<PathBuf> {
    env::var_os(CREDENTIALS).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// The credential of this name, if it is there.
pub fn credential(folder: Option<&Path>, name: &str) -> Option<PathBuf> {
    folder.map(|folder| folder.join(name)).filter(|file| file.exists())
}

/// Replaces options that name files with secrets by the contents of the files, and reads the credentials. A secret has one source.
pub fn find(mut options: Options, credentials: Option<&Path>) -> Result<Options, ConfigError> {
    let file = options.root_client_secret_file.take();
    options.root_client_secret = text("root_client_secret", options.root_client_secret, file, credentials)?;
    let file = options.database_file.take();
    options.database = text("database", options.database, file, credentials)?;
    options.master_key_file =
        file_of("master_key_file", options.master_key_file, credential(credentials, "master_key"))?;
    options.tls_key = file_of("tls_key", options.tls_key, credential(credentials, "tls_key"))?;
    Ok(options)
}

/// A text secret: its value, a file, or the credential of its name. Line ends and spaces at its end are removed, as those of
/// variables are.
///
/// # Errors
/// It is given twice, or its file is not private, is blank, or is not text.
pub fn text(
    name: &str,
    given: Option<String>,
    file: Option<PathBuf>,
    credentials: Option<&Path>,
) -> Result<Option<String>, ConfigError> {
    let file = file_of(&format!("{name}_file"), file, credential(credentials, name))?;
    let file = match (&given, file) {
        (_, None) => return Ok(given),
        (Some(_), Some(file)) => {
            return Err(ConfigError(format!(
                "{name} is given twice, itself and by the file {}: give one of them alone",
                file.display()
            )));
        }
        (None, Some(file)) => file,
    };
    let text = read_private_text(&file).map_err(|error| ConfigError(format!("{name}: {error}")))?;
    match text.trim_end() {
        "" => Err(ConfigError(format!("{name}: {}: it holds nothing but white space", file.display()))),
        trimmed => Ok(Some(trimmed.to_owned())),
    }
}

/// The file of a secret: named by an option, or the credential. An option may name the credential itself.
fn file_of(
    option: &str,
    named: Option<PathBuf>,
    credential: Option<PathBuf>,
) -> Result<Option<PathBuf>, ConfigError> {
    match (named, credential) {
        (Some(named), Some(credential)) if !is_same(&named, &credential) => Err(ConfigError(format!(
            "{option} names {}, and there is the credential {}: give one of them alone",
            named.display(),
            credential.display()
        ))),
        (named, credential) => Ok(named.or(credential)),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Refuses a TOML file that holds a secret and that others can read.
///
/// # Errors
/// It does.
pub fn check_toml(path: &Path, options: &Options) -> Result<(), ConfigError> {
    let has_password = options.database.as_deref().is_some_and(has_password);
    if options.root_client_secret.is_none() && !has_password {
        return Ok(());
    }
    check_private(path).map_err(|error| ConfigError(error.to_string()))
}

/// Whether a connection string holds a password.
fn has_password(database: &str) -> bool {
    let after_scheme = database.split_once("://").map_or("", |(_, rest)| rest);
    let before_query = after_scheme.split_once('?').map_or(after_scheme, |(rest, _)| rest);
    let user = before_query.rsplit_once('@').map_or("", |(user, _)| user);
    user.contains(':') || database.contains("password=")
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt as _,
        path::{Path, PathBuf},
    };

    use super::{find, has_password};
    use crate::options::Options;

    /// A folder that is removed with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("chancery-secrets-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn with(&self, name: &str, content: impl AsRef<[u8]>, mode: u32) -> PathBuf {
            let file = self.0.join(name);
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            file
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn by_file(file: &Path) -> Options {
        Options { root_client_secret_file: Some(file.to_owned()), ..Options::default() }
    }

    fn error_of(options: Options, credentials: Option<&Path>) -> String {
        find(options, credentials).unwrap_err().0
    }

    #[test]
    fn a_secret_is_read_from_the_file_that_an_option_names_or_the_credential() {
        let folder = Folder::new("read");
        let file = folder.with("secret", "hush-hush-hush-hush \r\n", 0o600);
        let read = |options: Options, credentials| find(options, credentials).unwrap().root_client_secret;
        assert_eq!(read(by_file(&file), None).as_deref(), Some("hush-hush-hush-hush"));
        folder.with("root_client_secret", "another-another\n", 0o400);
        folder.with("master_key", [0; 32], 0o400);
        assert_eq!(read(Options::default(), Some(&folder.0)).as_deref(), Some("another-another"));
        let options = find(Options::default(), Some(&folder.0)).unwrap();
        assert_eq!(options.master_key_file, Some(folder.0.join("master_key")));
        assert_eq!((options.tls_key, options.database), (None, None));
        let same = by_file(&folder.0.join("root_client_secret"));
        assert_eq!(read(same, Some(&folder.0)).as_deref(), Some("another-another"), "one file, named twice");
    }

    #[test]
    fn a_secret_has_one_source() {
        let folder = Folder::new("twice");
        let file = folder.with("secret", "hush-hush-hush-hush", 0o600);
        let both = Options { root_client_secret: Some("x".into()), ..by_file(&file) };
        assert!(error_of(both, None).contains("root_client_secret is given twice"));
        folder.with("root_client_secret", "another", 0o400);
        assert!(error_of(by_file(&file), Some(&folder.0)).contains("one of them alone"));
        let itself = Options { root_client_secret: Some("x".into()), ..Options::default() };
        assert!(error_of(itself, Some(&folder.0)).contains("given twice"));
        folder.with("tls_key", "key", 0o400);
        let named = Options { tls_key: Some(file), ..Options::default() };
        fs::remove_file(folder.0.join("root_client_secret")).unwrap();
        assert!(error_of(named, Some(&folder.0)).contains("tls_key names"));
    }

    #[test]
    fn a_file_that_others_can_read_or_that_holds_no_secret_is_refused() {
        let folder = Folder::new("refused");
        for (content, mode, words) in [
            (&b"hush-hush-hush-hush"[..], 0o604, "other than its owner"),
            (b"hush-hush-hush-hush", 0o620, "other than its owner"),
            (b" \n", 0o600, "nothing but white space"),
            (b"", 0o600, "nothing but white space"),
            (b"\xff\xfe", 0o600, "UTF-8"),
            (&vec![b'x'; 65_537], 0o600, "64 KiB"),
        ] {
            let message = error_of(by_file(&folder.with("secret", content, mode)), None);
            assert!(message.contains(words) && message.contains("secret: "), "{words}: {message}");
        }
        assert!(error_of(by_file(&folder.0.join("absent")), None).contains("absent"));
    }

    #[test]
    fn passwords_of_connection_strings_are_seen() {
        for with in ["postgres://me:hush@db/x", "postgres://me@db/x?password=hush", "postgres://m:a@b@db/x"] {
            assert!(has_password(with), "{with}");
        }
        for without in ["postgres://me@db:5432/x", "postgres://db:1,db:2/x", "sqlite:/a:b@c"] {
            assert!(!has_password(without), "{without}");
        }
    }
}
