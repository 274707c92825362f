//! Access tokens (RFC 9068): made here, verified here, remembered once verified.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::Timestamp;
use chancery_resource::random;
use jsonwebtoken::{Algorithm, Header, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Keyring, MANAGEMENT_AUDIENCE, USER_STORE_AUDIENCE};

/// How long an access token is good, in seconds.
const LIFETIME: i64 = 3600;
/// Tokens remembered.
const REMEMBERED: usize = 10_000;
/// A token longer than this is none of ours.
const MAX_LENGTH: usize = 4096;

/// What a token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The management service; its tokens serve the user store service too.
    Management,
    /// The user store service.
    UserStore,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    sub: Uuid,
    client_id: Uuid,
    aud: Vec<String>,
    iat: i64,
    exp: i64,
    jti: String,
}

/// A token that was verified.
#[derive(Debug)]
pub struct Seen {
    /// The client app.
    pub client_id: Uuid,
    audience: Vec<String>,
    expires: i64,
}

impl Seen {
    /// Whether the token is meant for a service.
    pub fn is_for(&self, audience: Audience) -> bool {
        let has = |name: &str| self.audience.iter().any(|audience| audience == name);
        has(MANAGEMENT_AUDIENCE) || (audience == Audience::UserStore && has(USER_STORE_AUDIENCE))
    }
}

/// Makes and verifies tokens.
pub struct Bearer {
    /// The keys.
    pub keyring: Keyring,
    /// Who issues.
    pub issuer: String,
    validation: Validation,
    remembered: RwLock<HashMap<String, Arc<Seen>>>,
}

impl Bearer {
    /// With these keys, as this issuer.
    pub fn new(keyring: Keyring, issuer: String) -> Self {
        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_issuer(&[&issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
        // the audience depends on the operation, and the time is the caller's clock
        validation.validate_aud = false;
        validation.validate_exp = false;
        Self { keyring, issuer, validation, remembered: RwLock::default() }
    }

    /// Makes a token for a client app; with it, its lifetime in seconds.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn issue(
        &self,
        client_id: Uuid,
        audience: Vec<String>,
        now: Timestamp,
    ) -> Result<(String, i64), jsonwebtoken::errors::Error> {
        let (key_id, key) = &self.keyring.token_key;
        let mut header = Header::new(Algorithm::ES256);
        header.typ = Some("at+jwt".into());
        header.kid = Some(key_id.clone());
        let issued = now.0.div_euclid(1000);
        let claims = Claims {
            iss: self.issuer.clone(),
            sub: client_id,
            client_id,
            aud: audience,
            iat: issued,
            exp: issued + LIFETIME,
            jti: BASE64_URL_SAFE_NO_PAD.encode(random::<16>()),
        };
        Ok((jsonwebtoken::encode(&header, &claims, key)?, LIFETIME))
    }

    /// Verifies a token; one seen before costs a look-up. `None`: not ours, broken or expired.
    pub fn verify(&self, token: &str, now: Timestamp) -> Option<Arc<Seen>> {
        let now = now.0.div_euclid(1000);
        let known = self.remembered.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned();
        let seen = match known {
            Some(seen) => seen,
            None => self.verify_new(token, now)?,
        };
        (now < seen.expires).then_some(seen)
    }

    fn verify_new(&self, token: &str, now: i64) -> Option<Arc<Seen>> {
        if token.len() > MAX_LENGTH {
            return None;
        }
        let header = jsonwebtoken::decode_header(token).ok()?;
        let is_access_token = header.typ.is_some_and(|typ| typ.eq_ignore_ascii_case("at+jwt"));
        if !is_access_token || header.alg != Algorithm::ES256 {
            return None;
        }
        let key = self.keyring.token_keys.get(&header.kid?)?;
        let claims = jsonwebtoken::decode::<Claims>(token, key, &self.validation).ok()?.claims;
        let Claims { client_id, aud, exp, .. } = claims;
        let seen = Arc::new(Seen { client_id, audience: aud, expires: exp });
        let mut remembered = self.remembered.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED {
            remembered.retain(|_, seen| now < seen.expires);
        }
        if remembered.len() >= REMEMBERED {
            // all still good: to forget them costs a verification each
            remembered.clear();
        }
        remembered.insert(token.to_owned(), Arc::clone(&seen));
        Some(seen)
    }
}
