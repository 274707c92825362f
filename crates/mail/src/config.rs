//! The mail server of a store: the option `MailServerConfig`.

use std::time::Duration;

use chancery_fetch::Networks;
use chancery_record::{MailServerSettings, Secret};

/// An SMTP server and how to talk to it.
#[derive(Clone, Debug)]
pub struct MailServer {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Whether TLS starts with the first byte (RFC 8314); otherwise STARTTLS (RFC 3207) where it is offered.
    pub(crate) tls_from_start: bool,
    pub(crate) credentials: Option<(String, Secret)>,
    /// The time for one mail, from connecting to the server's last reply.
    pub(crate) timeout: Duration,
    pub(crate) extra_root: Option<Vec<u8>>,
    /// The networks that the server may be in besides the public internet.
    pub(crate) networks: Networks,
}

impl MailServer {
    /// Reads the option's JSON text (see [`MailServerSettings`]).
    ///
    /// # Errors
    /// The mistake, without any of the values.
    pub fn parse(json: &str) -> Result<Self, String> {
        let MailServerSettings { host, port, tls_from_start, credentials, timeout } =
            MailServerSettings::read(json)?;
        Ok(Self {
            host,
            port,
            tls_from_start,
            credentials,
            timeout,
            extra_root: None,
            networks: Networks::default(),
        })
    }

    /// Allows the mail server to be in these networks, besides the public internet. A store's administrator
    /// configures it, who is no administrator of the network that this server runs in.
    #[must_use]
    pub fn within(mut self, networks: Networks) -> Self {
        self.networks = networks;
        self
    }

    /// Trusts this root certificate (DER), too: for tests. The operating system's roots are always trusted,
    /// so an operator adds a root there.
    #[must_use]
    pub fn trusting(mut self, root: Vec<u8>) -> Self {
        self.extra_root = Some(root);
        self
    }
}

/// Whether the option's text can be used.
pub fn is_valid(json: &str) -> bool {
    MailServer::parse(json).is_ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{MailServer, is_valid};

    #[test]
    fn a_full_configuration_is_read_in_any_case() {
        let server = MailServer::parse(
            r#"{"mailtype": "smtp", "HOST": "mail.example.com", "port": 587, "enableSsl": false,
                "userName": "mailer", "PASSWORD": "tulip", "timeout": 5000, "Comment": [1]}"#,
        )
        .unwrap();
        assert_eq!((server.host.as_str(), server.port), ("mail.example.com", 587));
        assert!(!server.tls_from_start);
        assert_eq!(server.timeout, Duration::from_secs(5));
        let (user, password) = server.credentials.unwrap();
        assert_eq!(user, "mailer");
        assert_eq!(password.expose(), b"tulip");
    }

    #[test]
    fn an_absent_member_has_its_default() {
        let plain = MailServer::parse(r#"{"Host": "::1", "UserName": null, "Password": ""}"#).unwrap();
        assert_eq!((plain.port, plain.timeout), (25, Duration::from_secs(30)));
        assert!(plain.credentials.is_none());
        assert_eq!(MailServer::parse(r#"{"Host": "a", "EnableSSL": true}"#).unwrap().port, 465);
    }

    #[test]
    fn a_timeout_is_clamped_to_its_bounds() {
        for (configured, bounded) in [(1, 1_000), (120_001, 120_000), (7_000, 7_000)] {
            let server = MailServer::parse(&format!(r#"{{"Host": "a", "Timeout": {configured}}}"#)).unwrap();
            assert_eq!(server.timeout, Duration::from_millis(bounded), "{configured}");
        }
    }

    #[test]
    fn a_mistake_is_reported_with_its_member() {
        for (json, expected) in [
            ("", "the text is not JSON"),
            ("[]", "the JSON is not an object"),
            ("{}", "Host is missing"),
            (r#"{"Host": " "}"#, "Host is missing"),
            (r#"{"Host": 1}"#, "Host is not text"),
            (r#"{"Host": "a b"}"#, "Host is no host name and no IP address"),
            (r#"{"Host": "a", "MailType": "Exchange"}"#, "MailType is not SMTP"),
            (r#"{"Host": "a", "Port": 0}"#, "Port is not 1 to 65535"),
            (r#"{"Host": "a", "Port": "25"}"#, "Port is not a whole number"),
            (r#"{"Host": "a", "EnableSSL": "yes"}"#, "EnableSSL is not true or false"),
            (r#"{"Host": "a", "Timeout": 0}"#, "Timeout is 0 milliseconds"),
            (r#"{"Host": "a", "Password": "tulip"}"#, "Password is given without UserName"),
        ] {
            assert_eq!(MailServer::parse(json).unwrap_err(), expected, "{json}");
            assert!(!is_valid(json));
        }
    }

    proptest! {
        #[test]
        fn no_message_and_no_print_shows_the_password(
            host in prop_oneof![Just(String::new()), Just("a".to_owned()), ".{0,8}"],
            port in prop_oneof![Just(25), any::<i64>()],
            after in prop_oneof![Just(""), Just("\n"), Just("\\")],
        ) {
            let json = serde_json::json!({
                "Host": host, "Port": port, "UserName": "u", "Password": format!("tulip{after}"),
            });
            for text in [json.to_string(), json["Password"].to_string(), format!("{json}{after}x")] {
                let shown = format!("{:?}", MailServer::parse(&text));
                prop_assert!(!shown.contains("tulip"), "{shown}");
            }
        }
    }
}
