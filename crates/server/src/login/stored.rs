//! The tokens of a login, in a file of the person's own.

use std::{
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{ErrorKind, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use chancery_record::{Secret, Timestamp};
use serde_json::{Value, json};

use super::{
    lacks,
    remote::{EndpointError, Endpoints, Remote},
};

use crate::start_error::BoxError;

/// The rights of all but the owner in a file's mode.
const OTHERS: u32 = 0o077;

/// The tokens of a login, and their endpoints.
pub struct StoredLogin {
    client: String,
    token_endpoint: String,
    revocation_endpoint: String,
    /// The access token.
    pub access_token: Secret,
    /// When the access token expires, in milliseconds since 1970.
    pub expires_on: i64,
    refresh_token: Option<Secret>,
}

impl StoredLogin {
    /// Whether it is of the server at this URL.
    pub fn is_at(&self, server: &str) -> bool {
        let server = server.trim_end_matches('/');
        let has_host = server.split_once("://").is_some_and(|(_, host)| !host.is_empty());
        let below = self.token_endpoint.strip_prefix(server);
        has_host && below.is_some_and(|path| path.starts_with('/'))
    }

    /// The login from an answer of a token endpoint.
    pub fn of(given: &Value, client: &str, endpoints: Endpoints, now: Timestamp) -> Result<Self, BoxError> {
        let mut stored = Self {
            client: client.to_owned(),
            token_endpoint: endpoints.token,
            revocation_endpoint: endpoints.revocation,
            access_token: Secret::new(""),
            expires_on: 0,
            refresh_token: None,
        };
        stored.take(given, now)?;
        Ok(stored)
    }

    fn take(&mut self, given: &Value, now: Timestamp) -> Result<(), BoxError> {
        let text = |name: &str| given.get(name).and_then(Value::as_str);
        self.access_token = Secret::new(text("access_token").ok_or_else(|| lacks("access_token"))?);
        let seconds = given.get("expires_in").and_then(Value::as_i64).unwrap_or(0);
        self.expires_on = now.0.saturating_add(seconds.saturating_mul(1000));
        // without a new refresh token the former one stays
        self.refresh_token = text("refresh_token").map(Secret::new).or(self.refresh_token.take());
        Ok(())
    }

    /// Requests another access token.
    pub async fn refresh(&mut self, remote: &Remote, now: Timestamp) -> Result<(), BoxError> {
        let over = || "the login is over: run chancery login again".to_owned();
        let token = self.refresh_token.as_ref().map(exposed).ok_or_else(over)?;
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token.as_str()),
            ("client_id", self.client.as_str()),
        ];
        let given = remote.post_form(&self.token_endpoint, &form).await.map_err(|refusal| match refusal {
            EndpointError::Answered(code, _) if code == "invalid_grant" => over(),
            other => other.message(),
        })?;
        self.take(&given, now)
    }

    /// Revokes the grant: by the refresh token, else the access token.
    pub async fn revoke(&self, remote: &Remote) -> Result<(), BoxError> {
        let token = exposed(self.refresh_token.as_ref().unwrap_or(&self.access_token));
        let form = [("token", token.as_str()), ("client_id", self.client.as_str())];
        remote.post_for_status(&self.revocation_endpoint, &form).await
    }

    fn to_json(&self) -> Value {
        json!({
            "client_id": self.client,
            "token_endpoint": self.token_endpoint,
            "revocation_endpoint": self.revocation_endpoint,
            "access_token": exposed(&self.access_token),
            "expires_on": self.expires_on,
            "refresh_token": self.refresh_token.as_ref().map(exposed),
        })
    }

    fn from_json(text: &[u8]) -> Option<Self> {
        let stored: Value = serde_json::from_slice(text).ok()?;
        let text = |name: &str| stored.get(name)?.as_str().map(str::to_owned);
        Some(Self {
            client: text("client_id")?,
            token_endpoint: text("token_endpoint")?,
            revocation_endpoint: text("revocation_endpoint")?,
            access_token: Secret::new(text("access_token")?),
            expires_on: stored.get("expires_on")?.as_i64()?,
            refresh_token: text("refresh_token").map(Secret::new),
        })
    }
}

fn exposed(secret: &Secret) -> String {
    String::from_utf8_lossy(secret.expose()).into_owned()
}

/// The folder of a person's login.
pub struct LoginFolder(PathBuf);

impl LoginFolder {
    /// The folder of the current user.
    pub fn own() -> Result<Self, BoxError> {
        let named = |name| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let folder = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")));
        let folder = folder.ok_or("neither XDG_CONFIG_HOME nor HOME names a folder to keep tokens in")?;
        Ok(Self(folder.join("chancery")))
    }

    /// The file with the tokens.
    pub fn file(&self) -> PathBuf {
        self.0.join("login.json")
    }

    /// Waits until no other process uses the file: of two that refresh at once the later one would show a refresh
    /// token that was replaced, which ends a login.
    pub fn lock(&self) -> Result<Locked<'_>, BoxError> {
        let path = self.0.join("login.lock");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(|error| message(&self.0, &error))?;
        let mut options = OpenOptions::new();
        let lock = options.create(true).append(true).mode(0o600).open(&path);
        let lock =
            lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(|error| message(&path, &error))?;
        Ok(Locked { folder: self, _lock: lock })
    }
}

/// A login that no other process uses meanwhile.
pub struct Locked<'a> {
    folder: &'a LoginFolder,
    _lock: File,
}

impl Locked<'_> {
    /// Reads the stored login, if there is one.
    pub fn read(&self) -> Result<Option<StoredLogin>, BoxError> {
        let path = self.folder.file();
        match read_own(&path) {
            Ok(text) => StoredLogin::from_json(&text).map(Some).ok_or_else(|| {
                format!("{}: this is no login; remove the file and log in again", path.display()).into()
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(message(&path, &error).into()),
        }
    }

    /// Stores tokens atomically, readable by their owner alone.
    pub fn write(&self, stored: &StoredLogin) -> Result<(), BoxError> {
        let (path, new) = (self.folder.file(), self.folder.0.join("login.new"));
        // the file of an interrupted process may have another mode
        let _ = fs::remove_file(&new);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&new);
        let written = file.and_then(|mut file| {
            file.write_all(stored.to_json().to_string().as_bytes())?;
            file.sync_all()
        });
        Ok(written.and_then(|()| fs::rename(&new, &path)).map_err(|error| message(&path, &error))?)
    }

    /// Removes the stored tokens.
    pub fn remove(&self) -> Result<(), BoxError> {
        let path = self.folder.file();
        Ok(fs::remove_file(&path).map_err(|error| message(&path, &error))?)
    }
}

/// Reads a file that no other user can read or write: an attacker who changed it would choose the recipient of the tokens.
fn read_own(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode();
    if mode & OTHERS != 0 {
        let why = "others may read or change it: chmod 600 it if nobody did, else remove it and log in again";
        return Err(std::io::Error::new(ErrorKind::PermissionDenied, why));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(text)
}

fn message(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;
    use serde_json::json;

    use super::{Endpoints, StoredLogin, exposed};

    fn stored() -> StoredLogin {
        let given = json!({ "access_token": "a", "expires_in": 60, "refresh_token": "r" });
        let endpoint = |name: &str| format!("https://id.example/{name}");
        let endpoints = Endpoints { device: endpoint("d"), token: endpoint("t"), revocation: endpoint("r") };
        StoredLogin::of(&given, "app", endpoints, Timestamp(1_000)).unwrap()
    }

    #[test]
    fn a_stored_login_is_read_again() {
        let text = stored().to_json().to_string();
        let read = StoredLogin::from_json(text.as_bytes()).unwrap();
        assert_eq!(read.to_json(), stored().to_json());
        assert_eq!((exposed(&read.access_token).as_str(), read.expires_on), ("a", 61_000));
        for bad in ["", "[]", "{}", "{\"client_id\":1}"] {
            assert!(StoredLogin::from_json(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_login_is_of_one_server() {
        for own in ["https://id.example", "https://id.example/"] {
            assert!(stored().is_at(own), "{own}");
        }
        for other in [
            "https://id",
            "https://id.example.net",
            "http://id.example",
            "https:",
            "https://",
            "",
            "https://id.example@evil.example",
        ] {
            assert!(!stored().is_at(other), "{other}");
        }
    }

    #[test]
    fn a_refresh_token_stays_where_the_answer_has_none() {
        let mut stored = stored();
        stored.take(&json!({ "access_token": "b" }), Timestamp(5)).unwrap();
        assert_eq!(stored.refresh_token.as_ref().map(exposed).as_deref(), Some("r"));
        stored.take(&json!({ "access_token": "b", "refresh_token": "s" }), Timestamp(5)).unwrap();
        assert_eq!(stored.refresh_token.as_ref().map(exposed).as_deref(), Some("s"));
        assert!(stored.take(&json!({}), Timestamp(5)).is_err());
    }
}
