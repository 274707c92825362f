//! `chancery login`, `token` and `logout`: a person's own tokens for scripts, by the device grant (RFC 8628).

mod remote;
mod stored;

use std::{
    io::{Write as _, stdout},
    pin::Pin,
    time::Duration,
};

use chancery_record::Secret;
use chancery_resource::MANAGEMENT_AUDIENCE;
use chancery_web::now;
use clap::Args;
use serde_json::Value;

use self::{
    remote::{EndpointError, Endpoints, Remote},
    stored::{LoginFolder, StoredLogin},
};

use crate::start_error::BoxError;

pub use self::remote::plain;

/// The grant type of devices.
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The interval between two polls where the server does not state one, in seconds.
const INTERVAL: i64 = 5;
/// A token that expires within so many milliseconds is not printed any more.
const MARGIN: i64 = 30_000;

/// The help of `chancery login`, after the options.
pub const LOGIN_HELP: &str = "\
Prints an address and a code. Open the address in any browser, sign in, compare the code and let the
device in; then chancery token prints access tokens with the roles that are assigned to you. The tokens
are kept in $XDG_CONFIG_HOME/chancery/login.json or ~/.config/chancery/login.json, readable by you alone,
until chancery logout. One login is kept: another one takes its place.

The client app must be public (isPublic), let devices in (allowDeviceAuthorizationGrant), be assigned to
your tenant and your identity provider instance, and have the resource among its own; only a SystemAdmin
gives it one of the platform's, PlatformManagementService or PlatformUserStoreService. The server's
certificate must be trusted by this machine; SSL_CERT_FILE names further roots.

Examples:
  chancery login https://id.example.com --client 01a20629-644b-7002-8980-dbcc4960bb91
  curl -H \"authorization: Bearer $(chancery token)\" https://id.example.com/api/management/v2/Tenant
  chancery login https://id.example.com --client 01a20629-644b-7002-8980-dbcc4960bb91 \\
    --resource PlatformUserStoreService";

/// The help of `chancery token`.
pub const TOKEN_HELP: &str = "\
Prints nothing but the token of chancery login, and gets another one first where it is over.

Example:
  curl -H \"authorization: Bearer $(chancery token)\" https://id.example.com/api/management/v2/Tenant";

/// Where a person signs in, and for what.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The server's public URL, or a tenant's issuer: https://id.example.com/t/TENANT
    #[arg(value_name = "URL")]
    server: String,
    /// The id of the client app to sign in to
    #[arg(long, value_name = "ID")]
    client: String,
    /// What the tokens are for: a resource of the client app's
    #[arg(long, value_name = "NAME", default_value = MANAGEMENT_AUDIENCE)]
    resource: String,
}

/// Prints for people. A closed standard output is no error.
macro_rules! say {
    ($($words:tt)*) => {{ let _ = writeln!(stdout(), $($words)*); }};
}

/// Runs calls of a server. It is boxed, so that the runtime's code is there once.
pub fn wait_for<'a>(working: impl Future<Output = Result<(), BoxError>> + 'a) -> Result<(), BoxError> {
    let working: Pin<Box<dyn Future<Output = Result<(), BoxError>> + 'a>> = Box::pin(working);
    tokio::runtime::Runtime::new()?.block_on(working)
}

impl Login {
    /// Signs a person in, and stores the tokens.
    ///
    /// # Errors
    /// The person is not signed in; the message is for people.
    pub fn run(&self) -> Result<(), BoxError> {
        let folder = LoginFolder::own()?;
        wait_for(self.sign_in(&folder))
    }

    async fn sign_in(&self, folder: &LoginFolder) -> Result<(), BoxError> {
        let remote = Remote::default();
        let endpoints = remote.discover(self.server.trim_end_matches('/')).await?;
        let form = [
            ("client_id", self.client.as_str()),
            ("scope", "offline_access"),
            ("resource", self.resource.as_str()),
        ];
        let device = remote.post_form(&endpoints.device, &form).await.map_err(EndpointError::message)?;
        let text = |name: &str| device.get(name).and_then(Value::as_str).ok_or_else(|| lacks(name));
        let code = text("device_code")?;
        say!("Open   {}", plain(text("verification_uri")?));
        say!("Code   {}", plain(text("user_code")?));
        say!("Waiting until somebody signs in there and lets this device in.");
        let number = |name: &str| device.get(name).and_then(Value::as_i64);
        let end = now().0.saturating_add(number("expires_in").unwrap_or(0).saturating_mul(1000));
        let interval = number("interval").unwrap_or(INTERVAL).max(1);
        let given = self.poll(&remote, &endpoints, code, interval, end).await?;
        let stored = StoredLogin::of(&given, &self.client, endpoints, now())?;
        // the stored login is replaced under the lock: another process may be refreshing it
        let locked = folder.lock()?;
        let before = locked.read()?;
        locked.write(&stored)?;
        if let Some(before) = before {
            // a replaced login is of no use; if it cannot be revoked, it expires
            let _ = before.revoke(&remote).await;
        }
        say!("Logged in. chancery token prints an access token; chancery logout ends this.");
        Ok(())
    }

    /// Polls until the person has decided (RFC 8628, section 3.5).
    async fn poll(
        &self,
        remote: &Remote,
        endpoints: &Endpoints,
        code: &str,
        mut interval: i64,
        end: i64,
    ) -> Result<Value, BoxError> {
        let form = [("grant_type", DEVICE_CODE), ("device_code", code), ("client_id", self.client.as_str())];
        while now().0 < end {
            tokio::time::sleep(Duration::from_secs(interval.unsigned_abs())).await;
            match remote.post_form(&endpoints.token, &form).await {
                Ok(given) => return Ok(given),
                Err(refusal) => match refusal.code() {
                    Some("authorization_pending") => {}
                    // a server that cannot be reached now is polled less often, too
                    Some("slow_down") | None => interval = interval.saturating_add(5),
                    Some("access_denied") => return Err("the device was turned away".into()),
                    _ => return Err(refusal.message().into()),
                },
            }
        }
        Err("nobody let this device in: log in again for another code".into())
    }
}

/// Prints a valid access token.
///
/// # Errors
/// There is no login, or it has ended.
pub fn print_token() -> Result<(), BoxError> {
    say!("{}", String::from_utf8_lossy(valid()?.access_token.expose()));
    Ok(())
}

/// A valid access token of the login, for its own server: no other one gets it.
///
/// # Errors
/// There is no login at that server, or it has ended.
pub fn access_token(server: &str) -> Result<Secret, BoxError> {
    let stored = valid()?;
    if stored.is_at(server) {
        Ok(stored.access_token)
    } else {
        Err(format!("the login is at another server than {}: chancery login {0}", plain(server)).into())
    }
}

/// The login, with an access token that is valid for a while.
fn valid() -> Result<StoredLogin, BoxError> {
    let folder = LoginFolder::own()?;
    let locked = folder.lock()?;
    let mut stored = locked.read()?.ok_or("nobody is logged in: chancery login --help")?;
    if stored.expires_on <= now().0.saturating_add(MARGIN) {
        wait_for(stored.refresh(&Remote::default(), now()))?;
        locked.write(&stored)?;
    }
    Ok(stored)
}

/// Ends the login, at the server and here.
///
/// # Errors
/// The tokens cannot be revoked: then they stay, so that it can be tried again.
pub fn log_out() -> Result<(), BoxError> {
    let folder = LoginFolder::own()?;
    let locked = folder.lock()?;
    let Some(stored) = locked.read()? else {
        say!("Nobody is logged in.");
        return Ok(());
    };
    wait_for(stored.revoke(&Remote::default())).map_err(|why| {
        format!("{why}; the tokens are still good: try again, or remove {}", folder.file().display())
    })?;
    locked.remove()?;
    say!("Logged out.");
    Ok(())
}

fn lacks(name: &str) -> String {
    format!("the server's answer lacks {name}")
}
