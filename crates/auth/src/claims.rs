//! The claims of an access token (RFC 9068, section 2.2), and its audience.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_oauth::LEEWAY;
use chancery_record::{Secret, Timestamp};
use chancery_resource::{MANAGEMENT_AUDIENCE, MasterKey, USER_STORE_AUDIENCE, random};
use chancery_store::{Error, StateTable, Tx};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// The length of the random part at the beginning of a token's id; the rest authenticates the claims.
const RANDOM_LENGTH: usize = 22;

/// The services that a token may be used at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The management service; its tokens are accepted by the user store service too.
    Management,
    /// The user store service.
    UserStore,
}

/// The binding of a token (RFC 7800).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The thumbprint of a DPoP key (RFC 9449, section 6.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jkt: Option<String>,
    /// The thumbprint of a certificate (RFC 8705, section 3.1).
    #[serde(rename = "x5t#S256", skip_serializing_if = "Option::is_none")]
    pub x5t: Option<String>,
}

/// The claims of an access token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The issuer's URL.
    pub iss: String,
    /// The client app, or of a token with a grant the platform user, whose rights the token carries.
    pub sub: Uuid,
    /// The client app that the token was issued to.
    pub client_id: Uuid,
    /// The services and resources that the token is meant for.
    pub aud: Vec<String>,
    /// When the token was issued, in seconds since 1970.
    pub iat: i64,
    /// When the token expires, in seconds since 1970.
    pub exp: i64,
    /// The token's id, which vouches for the other claims, see [`Claims::authenticate`].
    pub jti: String,
    /// The scope of the token at foreign resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The binding of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cnf: Option<Confirmation>,
    /// The client apps that act for the subject (RFC 8693, section 4.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<Value>,
    /// The grant of a person's token; none is a token of a client app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<Uuid>,
    /// The tenant: of a person's token the one in which the person signed in, else the one that issued the token,
    /// and none for the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<Uuid>,
    /// When the person proved a first factor, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_time: Option<i64>,
    /// The class of the person's authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acr: Option<String>,
    /// How the person was authenticated (RFC 8176).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amr: Vec<String>,
    /// The ids of the tokens that this one was exchanged for, the last first. Revoking any of them revokes
    /// it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from_jti: Vec<String>,
    /// Claims added by claim rules about the person. None of them gives rights at this server's services.
    #[serde(flatten)]
    pub rule_claims: BTreeMap<String, Value>,
}

impl Claims {
    /// Sets an id that authenticates the claims. The owner of an uploaded certificate knows its private key and can sign
    /// with it. This server must accept only what it issued itself, so the id holds a keyed digest over all claims.
    pub fn authenticate(&mut self, master: &MasterKey) {
        self.jti = BASE64_URL_SAFE_NO_PAD.encode(random::<16>());
        let digest = self.digest(master);
        self.jti.push_str(&digest);
    }

    /// Whether this installation issued exactly these claims.
    pub fn are_authentic(&self, master: &MasterKey) -> bool {
        let Some((random_part, digest)) = self.jti.split_at_checked(RANDOM_LENGTH) else { return false };
        let digest_expected = Self { jti: random_part.to_owned(), ..self.clone() }.digest(master);
        Secret::new(digest_expected).matches(digest.as_bytes())
    }

    fn digest(&self, master: &MasterKey) -> String {
        // serializing text, numbers and lists of text does not fail
        let text = serde_json::to_vec(self).unwrap_or_default();
        let purpose = format!("access-token{}", master.era());
        BASE64_URL_SAFE_NO_PAD.encode(master.digest(&purpose, &text))
    }

    /// Stores the claims of a reference token under its digest.
    pub(crate) fn store(&self, tx: &mut Tx<'_>, digest: &[u8]) -> Result<(), Error> {
        let text =
            serde_json::to_string(self).map_err(|_| Error::Internal("claims cannot be written".into()))?;
        tx.queue(
            &StateTable::ReferenceToken.insert("(digest, claims, expires_on) VALUES (?1, ?2, ?3)"),
            vec![digest.to_vec().into(), text.into(), self.exp.saturating_mul(1000).into()],
        )
    }

    /// The tenant whose issuer issued the token; none is the installation.
    pub fn issuing_tenant(&self) -> Option<Uuid> {
        let (_, id) = self.iss.rsplit_once("/t/")?;
        Uuid::try_parse(id).ok()
    }

    /// Whether the token is meant for any service of the platform.
    pub fn has_rights(&self) -> bool {
        self.is_for(Audience::UserStore)
    }

    /// Whether the token is meant for a service.
    pub fn is_for(&self, audience: Audience) -> bool {
        let has = |name: &str| self.aud.iter().any(|audience| audience == name);
        has(MANAGEMENT_AUDIENCE) || (audience == Audience::UserStore && has(USER_STORE_AUDIENCE))
    }

    /// Whether the token has not expired, and was not issued in the future, [`LEEWAY`] aside.
    pub const fn is_current(&self, now: Timestamp) -> bool {
        let now = now.0.div_euclid(1000);
        now < self.exp && self.iat <= now.saturating_add(LEEWAY)
    }

    /// The thumbprint of the DPoP key that the token is bound to.
    pub fn jkt(&self) -> Option<&str> {
        self.cnf.as_ref()?.jkt.as_deref()
    }

    /// The thumbprint of the certificate that the token is bound to.
    pub fn x5t(&self) -> Option<&str> {
        self.cnf.as_ref()?.x5t.as_deref()
    }

    /// The scheme by which the token is presented: `DPoP` (RFC 9449) or `Bearer` (RFC 6750).
    pub fn token_type(&self) -> &'static str {
        if self.jkt().is_some() { "DPoP" } else { "Bearer" }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chancery_record::Timestamp;
    use chancery_resource::MasterKey;
    use uuid::Uuid;

    use super::Claims;

    fn claims() -> Claims {
        let id = Uuid::from_u128(1);
        Claims {
            iss: "https://id.example.com".into(),
            sub: id,
            client_id: id,
            aud: vec!["a".into()],
            iat: 1,
            exp: 2,
            jti: String::new(),
            scope: None,
            cnf: None,
            act: Some(serde_json::json!({ "sub": "b", "act": { "sub": "a" } })),
            gid: None,
            tid: None,
            auth_time: None,
            acr: None,
            amr: Vec::new(),
            from_jti: Vec::new(),
            rule_claims: BTreeMap::from([("role".to_owned(), serde_json::json!(["a", "b"]))]),
        }
    }

    /// Tokens with `iat` over 60 s in the future are rejected.
    #[test]
    fn a_token_issued_in_the_future_is_rejected() {
        let token = Claims { iat: 1_000, exp: 5_000, ..claims() };
        let is_current = |second: i64| token.is_current(Timestamp(second * 1000));
        assert!(!is_current(939) && is_current(940) && is_current(4_999) && !is_current(5_000));
    }

    #[test]
    fn an_id_authenticates_only_its_own_claims() {
        let master = MasterKey::generate();
        let id = Uuid::from_u128(1);
        let mut claims = claims();
        assert!(!claims.are_authentic(&master));
        claims.authenticate(&master);
        let again: Claims = serde_json::from_str(&serde_json::to_string(&claims).unwrap()).unwrap();
        assert!(again.are_authentic(&master));
        assert!(!again.are_authentic(&MasterKey::generate()));
        let forged = [
            Claims { sub: Uuid::from_u128(2), ..again.clone() },
            Claims { exp: 3, ..again.clone() },
            Claims { aud: Vec::new(), ..again.clone() },
            Claims { act: None, ..again.clone() },
            Claims { tid: Some(id), ..again.clone() },
            Claims { gid: Some(id), ..again.clone() },
            Claims { from_jti: vec!["a".into()], ..again.clone() },
            Claims { rule_claims: BTreeMap::new(), ..again.clone() },
            Claims { rule_claims: BTreeMap::from([("role".to_owned(), "c".into())]), ..again.clone() },
            Claims { jti: again.jti[..22].to_owned(), ..again.clone() },
            Claims { jti: "ä".repeat(40), ..again },
        ];
        assert!(forged.iter().all(|claims| !claims.are_authentic(&master)));
    }
}
