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
    remote::{Endpoints, Refusal, Remote},
};

/// The rights of all but the owner in a file's mode.
const OTHERS: u32 = 0o077;

/// The tokens of a login, and where they came from.
pub struct Kept {
    client: String,
    token_endpoint: String,
    revocation_endpoint: String,
    /// The access token.
    pub access_token: Secret,
    /// When it is over, in milliseconds since 1970.
    pub expires_on: i64,
    refresh_token: Option<Secret>,
}

impl Kept {
    /// Whether it is of the server at this URL.
    pub fn is_at(&self, server: &str) -> bool {
        let server = server.trim_end_matches('/');
        let has_host = server.split_once("://").is_some_and(|(_, host)| !host.is_empty());
        let below = self.token_endpoint.strip_prefix(server);
        has_host && below.is_some_and(|path| path.starts_with('/'))
    }

    /// What a token endpoint gave just now.
    pub fn of(given: &Value, client: &str, endpoints: Endpoints, now: Timestamp) -> Result<Self, String> {
        let mut kept = Self {
            client: client.to_owned(),
            token_endpoint: endpoints.token,
            revocation_endpoint: endpoints.revocation,
            access_token: Secret::new(""),
            expires_on: 0,
            refresh_token: None,
        };
        kept.take(given, now)?;
        Ok(kept)
    }

    fn take(&mut self, given: &Value, now: Timestamp) -> Result<(), String> {
        let text = |name: &str| given.get(name).and_then(Value::as_str);
        self.access_token = Secret::new(text("access_token").ok_or_else(|| lacks("access_token"))?);
        let seconds = given.get("expires_in").and_then(Value::as_i64).unwrap_or(0);
        self.expires_on = now.0.saturating_add(seconds.saturating_mul(1000));
        // where none comes along the one of before stays
        self.refresh_token = text("refresh_token").map(Secret::new).or(self.refresh_token.take());
        Ok(())
    }

    /// Gets another access token.
    pub async fn refresh(&mut self, remote: &Remote, now: Timestamp) -> Result<(), String> {
        let over = || "the login is over: run chancery login again".to_owned();
        let token = self.refresh_token.as_ref().map(exposed).ok_or_else(over)?;
        let asked = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token.as_str()),
            ("client_id", self.client.as_str()),
        ];
        let given = remote.ask(&self.token_endpoint, &asked).await.map_err(|refusal| match refusal {
            Refusal::Answered(code, _) if code == "invalid_grant" => over(),
            other => other.told(),
        })?;
        self.take(&given, now)
    }

    /// Ends what was granted: by the refresh token, else the access token.
    pub async fn revoke(&self, remote: &Remote) -> Result<(), String> {
        let token = exposed(self.refresh_token.as_ref().unwrap_or(&self.access_token));
        let form = [("token", token.as_str()), ("client_id", self.client.as_str())];
        remote.tell(&self.revocation_endpoint, &form).await
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
        let kept: Value = serde_json::from_slice(text).ok()?;
        let text = |name: &str| kept.get(name)?.as_str().map(str::to_owned);
        Some(Self {
            client: text("client_id")?,
            token_endpoint: text("token_endpoint")?,
            revocation_endpoint: text("revocation_endpoint")?,
            access_token: Secret::new(text("access_token")?),
            expires_on: kept.get("expires_on")?.as_i64()?,
            refresh_token: text("refresh_token").map(Secret::new),
        })
    }
}

fn exposed(secret: &Secret) -> String {
    String::from_utf8_lossy(secret.expose()).into_owned()
}

/// The folder where a person's login is kept.
pub struct Place(PathBuf);

impl Place {
    /// The folder of who runs the program.
    pub fn own() -> Result<Self, String> {
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
    pub fn lock(&self) -> Result<Locked<'_>, String> {
        let path = self.0.join("login.lock");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(|error| told(&self.0, &error))?;
        let mut options = OpenOptions::new();
        let lock = options.create(true).append(true).mode(0o600).open(&path);
        let lock = lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(|error| told(&path, &error))?;
        Ok(Locked { place: self, _lock: lock })
    }
}

/// A login that no other process uses meanwhile.
pub struct Locked<'a> {
    place: &'a Place,
    _lock: File,
}

impl Locked<'_> {
    /// Reads what is kept, if anything is.
    pub fn read(&self) -> Result<Option<Kept>, String> {
        let path = self.place.file();
        match read_own(&path) {
            Ok(text) => Kept::from_json(&text).map(Some).ok_or_else(|| {
                format!("{}: this is no login; remove the file and log in again", path.display())
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(told(&path, &error)),
        }
    }

    /// Keeps tokens, readable by their owner alone: whole, or as they were.
    pub fn write(&self, kept: &Kept) -> Result<(), String> {
        let (path, new) = (self.place.file(), self.place.0.join("login.new"));
        // what an interrupted process left behind may have another mode
        let _ = fs::remove_file(&new);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&new);
        let written = file.and_then(|mut file| {
            file.write_all(kept.to_json().to_string().as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&new, &path)).map_err(|error| told(&path, &error))
    }

    /// Keeps the tokens no longer.
    pub fn remove(&self) -> Result<(), String> {
        let path = self.place.file();
        fs::remove_file(&path).map_err(|error| told(&path, &error))
    }
}

/// Reads a file that nobody else can read or write: whoever changed it would choose where the tokens go.
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

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;
    use serde_json::json;

    use super::{Endpoints, Kept, exposed};

    fn kept() -> Kept {
        let given = json!({ "access_token": "a", "expires_in": 60, "refresh_token": "r" });
        let endpoint = |name: &str| format!("https://id.example/{name}");
        let endpoints = Endpoints { device: endpoint("d"), token: endpoint("t"), revocation: endpoint("r") };
        Kept::of(&given, "app", endpoints, Timestamp(1_000)).unwrap()
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let text = kept().to_json().to_string();
        let read = Kept::from_json(text.as_bytes()).unwrap();
        assert_eq!(read.to_json(), kept().to_json());
        assert_eq!((exposed(&read.access_token).as_str(), read.expires_on), ("a", 61_000));
        for bad in ["", "[]", "{}", "{\"client_id\":1}"] {
            assert!(Kept::from_json(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_login_is_of_one_server() {
        for own in ["https://id.example", "https://id.example/"] {
            assert!(kept().is_at(own), "{own}");
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
            assert!(!kept().is_at(other), "{other}");
        }
    }

    #[test]
    fn a_refresh_token_stays_where_none_comes_along() {
        let mut kept = kept();
        kept.take(&json!({ "access_token": "b" }), Timestamp(5)).unwrap();
        assert_eq!(kept.refresh_token.as_ref().map(exposed).as_deref(), Some("r"));
        kept.take(&json!({ "access_token": "b", "refresh_token": "s" }), Timestamp(5)).unwrap();
        assert_eq!(kept.refresh_token.as_ref().map(exposed).as_deref(), Some("s"));
        assert!(kept.take(&json!({}), Timestamp(5)).is_err());
    }
}
