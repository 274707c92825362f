//! The settings of a mail server: the option `MailServerConfig`.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::Secret;

/// The bounds of a timeout, in milliseconds; one beyond them is clamped.
const TIMEOUT: (u64, u64) = (1_000, 120_000);
const DEFAULT_TIMEOUT: u64 = 30_000;
/// The maximum length of a host name (RFC 1035, section 2.3.4).
const HOST: usize = 253;
const CREDENTIAL: usize = 1024;

/// The connection settings of an SMTP server.
#[derive(Clone, Debug)]
pub struct MailServerSettings {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether TLS starts with the first byte (RFC 8314); otherwise STARTTLS (RFC 3207) where it is offered.
    pub tls_from_start: bool,
    /// Name and password.
    pub credentials: Option<(String, Secret)>,
    /// The time for one mail, from connecting to the server's last reply.
    pub timeout: Duration,
}

impl MailServerSettings {
    /// Reads the option's JSON text: `MailType` (`SMTP`, or absent), `Host`, `Port` (absent: 465
    /// with `EnableSSL`, else 25), `EnableSSL`, `UserName`, `Password`, `Timeout` (milliseconds,
    /// 30 000 when absent, clamped to 1 000 to 120 000). Names are read in any case, other
    /// members are ignored, null is the same as absent.
    ///
    /// # Errors
    /// The reason, without any of the values.
    pub fn read(json: &str) -> Result<Self, String> {
        // serde's own message can contain a value
        let value: Value = serde_json::from_str(json).map_err(|_| "the text is not JSON".to_owned())?;
        let Value::Object(members) = value else { return Err("the JSON is not an object".to_owned()) };
        if let Some(kind) = text(&members, "MailType")?
            && !kind.eq_ignore_ascii_case("SMTP")
        {
            return Err("MailType is not SMTP".to_owned());
        }
        let host = text(&members, "Host")?.map(str::trim).filter(|host| !host.is_empty());
        let host = host.ok_or("Host is missing")?;
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        if host.len() > HOST || !host.bytes().all(is_host) {
            return Err("Host is no host name and no IP address".to_owned());
        }
        let tls_from_start = match member(&members, "EnableSSL") {
            None => false,
            Some(value) => value.as_bool().ok_or("EnableSSL is not true or false")?,
        };
        let port = match number(&members, "Port")? {
            None if tls_from_start => 465,
            None => 25,
            Some(port) => {
                u16::try_from(port).ok().filter(|port| *port > 0).ok_or("Port is not 1 to 65535")?
            }
        };
        let timeout = match number(&members, "Timeout")? {
            Some(0) => return Err("Timeout is 0 milliseconds".to_owned()),
            timeout => timeout.unwrap_or(DEFAULT_TIMEOUT).clamp(TIMEOUT.0, TIMEOUT.1),
        };
        let user = text(&members, "UserName")?.filter(|user| !user.is_empty());
        let password = text(&members, "Password")?.unwrap_or_default();
        if user.is_none() && !password.is_empty() {
            return Err("Password is given without UserName".to_owned());
        }
        for (name, value) in [("UserName", user.unwrap_or_default()), ("Password", password)] {
            if value.len() > CREDENTIAL || value.contains(char::is_control) {
                return Err(format!("{name} is too long or holds a control character"));
            }
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            tls_from_start,
            credentials: user.map(|user| (user.to_owned(), Secret::new(password))),
            timeout: Duration::from_millis(timeout),
        })
    }
}

fn member<'m>(members: &'m Map<String, Value>, name: &str) -> Option<&'m Value> {
    let entry = members.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    entry.map(|(_, value)| value).filter(|value| !value.is_null())
}

fn text<'m>(members: &'m Map<String, Value>, name: &str) -> Result<Option<&'m str>, String> {
    let read = |value: &'m Value| value.as_str().ok_or_else(|| format!("{name} is not text"));
    member(members, name).map(read).transpose()
}

fn number(members: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    let read = |value: &Value| value.as_u64().ok_or_else(|| format!("{name} is not a whole number"));
    member(members, name).map(read).transpose()
}
