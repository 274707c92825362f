//! The token endpoint: client credentials (RFC 6749, section 4.4; resources by RFC 8707).

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_record::{Secret, Timestamp, Value, fold};
use chancery_resource::MasterKey;
use chancery_store::{Error, Mode, Store};
use percent_encoding::percent_decode_str;
use serde_json::json;
use uuid::Uuid;

use crate::{Bearer, MANAGEMENT_AUDIENCE, USER_STORE_AUDIENCE};

/// What a client sent.
pub struct TokenRequest {
    /// The form's members.
    pub form: Vec<(String, String)>,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// When.
    pub now: Timestamp,
}

/// A token for the client.
pub struct TokenGrant {
    /// The JSON of the answer.
    pub body: String,
}

/// A refusal by RFC 6749, section 5.2.
#[derive(Debug)]
pub struct OAuthError {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub error: &'static str,
    /// What to do about it.
    pub description: &'static str,
}

impl OAuthError {
    const fn new(status: u16, error: &'static str, description: &'static str) -> Self {
        Self { status, error, description }
    }

    /// The JSON of the answer.
    pub fn body(&self) -> String {
        json!({ "error": self.error, "error_description": self.description }).to_string()
    }
}

const INVALID_CLIENT: OAuthError =
    OAuthError::new(401, "invalid_client", "Unknown client, wrong secret, or the client may not get tokens.");

struct Credentials {
    client: String,
    secret: Secret,
}

impl TokenRequest {
    /// Grants a token, or says why not.
    ///
    /// # Errors
    /// The refusal.
    pub async fn grant(
        self,
        store: &Store,
        bearer: &Bearer,
        master: &MasterKey,
    ) -> Result<TokenGrant, OAuthError> {
        if let Some(twice) = self.find_twice() {
            return Err(OAuthError::new(400, "invalid_request", twice));
        }
        let credentials = self.credentials()?;
        match self.one("grant_type") {
            Some("client_credentials") => {}
            Some(_) => {
                let wanted = "This server grants by client_credentials.";
                return Err(OAuthError::new(400, "unsupported_grant_type", wanted));
            }
            None => return Err(OAuthError::new(400, "invalid_request", "grant_type is missing.")),
        }
        let audience = self.audience()?;
        let client = authenticate(store, master, credentials, self.now).await?;
        let (token, lifetime) = bearer
            .issue(client, audience, self.now)
            .map_err(|_| OAuthError::new(500, "server_error", "The token cannot be signed."))?;
        let body = json!({ "access_token": token, "token_type": "Bearer", "expires_in": lifetime });
        Ok(TokenGrant { body: body.to_string() })
    }

    fn one(&self, name: &str) -> Option<&str> {
        self.form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn find_twice(&self) -> Option<&'static str> {
        let single = ["grant_type", "client_id", "client_secret"];
        let twice = |name: &&str| self.form.iter().filter(|(key, _)| key == name).count() > 1;
        single.iter().any(twice).then_some("A parameter is there twice.")
    }

    /// `client_secret_basic` or `client_secret_post`, and only one of them.
    fn credentials(&self) -> Result<Credentials, OAuthError> {
        let posted = (self.one("client_id"), self.one("client_secret"));
        let Some(header) = &self.authorization else {
            let (Some(client), Some(secret)) = posted else { return Err(INVALID_CLIENT) };
            return Ok(Credentials { client: client.to_owned(), secret: Secret::new(secret) });
        };
        if posted.1.is_some() {
            let detail = "Send the secret in the header or in the body, not in both.";
            return Err(OAuthError::new(400, "invalid_request", detail));
        }
        let found = parse_basic(header).ok_or(INVALID_CLIENT)?;
        if posted.0.is_some_and(|client| client != found.client) {
            let detail = "client_id is another than in the header.";
            return Err(OAuthError::new(400, "invalid_request", detail));
        }
        Ok(found)
    }

    fn audience(&self) -> Result<Vec<String>, OAuthError> {
        let ours = [MANAGEMENT_AUDIENCE, USER_STORE_AUDIENCE];
        let asked: Vec<&str> =
            self.form.iter().filter(|(key, _)| key == "resource").map(|(_, value)| value.as_str()).collect();
        if asked.iter().any(|name| !ours.contains(name)) {
            let known = "There are the resources PlatformManagementService and PlatformUserStoreService.";
            return Err(OAuthError::new(400, "invalid_target", known));
        }
        let granted = ours.iter().filter(|name| asked.is_empty() || asked.contains(name));
        Ok(granted.map(|name| (*name).to_owned()).collect())
    }
}

/// Basic credentials; both parts are form-encoded first (RFC 6749, section 2.3.1).
fn parse_basic(header: &str) -> Option<Credentials> {
    let (scheme, rest) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(BASE64_STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (client, secret) = decoded.split_once(':')?;
    let decode = |text: &str| {
        percent_decode_str(&text.replace('+', " ")).decode_utf8().ok().map(std::borrow::Cow::into_owned)
    };
    Some(Credentials { client: decode(client)?, secret: Secret::new(decode(secret)?) })
}

/// The client app that these credentials prove. The work is the same whether it exists or not.
async fn authenticate(
    store: &Store,
    master: &MasterKey,
    credentials: Credentials,
    now: Timestamp,
) -> Result<Uuid, OAuthError> {
    let digest = Secret::new(master.secret_digest(credentials.secret.expose()));
    let (condition, key) = match Uuid::try_parse(&credentials.client) {
        Ok(id) => ("a.id = ?1", Value::Id(id)),
        Err(_) => ("a.name_key = ?1", Value::Text(fold(&credentials.client))),
    };
    let text = format!(
        "SELECT a.id, a.enabled, a.allow_client_credential_login, s.digest, s.expiry FROM client_app a \
         LEFT JOIN client_app_secret s ON s.client_app_id = a.id WHERE {condition} LIMIT 1000"
    );
    let found = store.run("Authenticate", Mode::Quick, None, move |tx| {
        let mut clients = Vec::new();
        let mut proven = false;
        tx.query(&text, std::slice::from_ref(&key), |row| {
            let client = row.id(0)?;
            if !clients.contains(&client) {
                clients.push(client);
            }
            let usable = row.bool(1)? && row.bool(2)?;
            let current = row.is_null(4)? || row.int(4)? > now.0;
            let fits = !row.is_null(3)? && digest.matches(row.bytes(3)?);
            proven |= usable & current & fits;
            Ok(())
        })?;
        // a name that more than one client app has names none
        Ok::<_, Error>((clients, proven))
    });
    match found.await {
        Ok((clients, true)) => match clients.as_slice() {
            [client] => Ok(*client),
            _ => Err(INVALID_CLIENT),
        },
        Ok(_) => Err(INVALID_CLIENT),
        Err(_) => Err(OAuthError::new(503, "temporarily_unavailable", "The storage cannot serve this now.")),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_basic;

    #[test]
    fn basic_parts_are_form_encoded() {
        // "a%20b:c%3Ad+e"
        let credentials = parse_basic("basic YSUyMGI6YyUzQWQrZQ==").unwrap();
        assert_eq!(credentials.client, "a b");
        assert_eq!(credentials.secret.expose(), b"c:d e");
        for wrong in ["", "Basic", "Basic !!!", "Bearer YTpi", "Basic YQ=="] {
            assert!(parse_basic(wrong).is_none(), "{wrong}");
        }
    }
}
