//! Refresh tokens. They are not stored: a token consists of its grant, its generation, and a keyed digest of both.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::Secret;
use chancery_resource::MasterKey;
use uuid::Uuid;

use super::Grant;

const ID: usize = 16;
const GENERATION: usize = 4;
const DIGEST: usize = 32;

/// A presented refresh token.
pub struct RefreshToken {
    /// The grant that it names.
    pub grant: Uuid,
    /// Its generation.
    pub generation: i64,
    digest: Vec<u8>,
}

impl RefreshToken {
    /// Parses a possible refresh token: longer than a reference token, shorter than a signed one.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (id, rest) = bytes.split_at_checked(ID)?;
        let (generation, digest) =
            rest.split_at_checked(GENERATION).filter(|(_, digest)| digest.len() == DIGEST)?;
        let generation = u32::from_be_bytes(generation.try_into().ok()?);
        Some(Self {
            grant: Uuid::from_slice(id).ok()?,
            generation: generation.into(),
            digest: digest.to_vec(),
        })
    }

    /// The refresh token of a grant's current generation.
    pub fn of(master: &MasterKey, grant: &Grant) -> String {
        let message = message(grant, grant.generation);
        let token = [message.as_slice(), &digest(master, grant, &message)].concat();
        BASE64_URL_SAFE_NO_PAD.encode(token)
    }

    /// Whether this installation issued it for this grant.
    pub fn is_of(&self, master: &MasterKey, grant: &Grant) -> bool {
        let expected = digest(master, grant, &message(grant, self.generation));
        Secret::new(expected).matches(&self.digest)
    }
}

/// Generations are counted from 0, one per use: 32 bits suffice.
fn message(grant: &Grant, generation: i64) -> Vec<u8> {
    let generation = u32::try_from(generation).unwrap_or(u32::MAX);
    [grant.id.as_bytes().as_slice(), &generation.to_be_bytes()].concat()
}

fn digest(master: &MasterKey, grant: &Grant, message: &[u8]) -> Vec<u8> {
    master.digest("refresh-token", &[grant.salt.as_slice(), message].concat())
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;
    use chancery_resource::MasterKey;
    use uuid::Uuid;

    use super::RefreshToken;
    use crate::grant::{Grant, granted::Granted};

    fn grant(id: u128) -> Grant {
        let id = Uuid::from_u128(id);
        let granted = Granted {
            person: id,
            tenant: id,
            issuing: None,
            instance: id,
            session: None,
            auth_time: 0,
            proven_at: None,
            acr: "sfa".into(),
            amr: vec!["pwd".into()],
            scope: "openid offline_access".into(),
            resources: Vec::new(),
            cnf: None,
            requested: crate::grant::claims_request::RequestedClaims::default(),
            provider_claims: Vec::new(),
        };
        Grant::new(id, id, granted, Timestamp(0))
    }

    #[test]
    fn a_refresh_token_is_bound_to_its_grant_and_generation() {
        let (master, mut grant) = (MasterKey::generate(), grant(1));
        let text = RefreshToken::of(&master, &grant);
        let token = RefreshToken::read(&text).unwrap();
        assert_eq!((token.grant, token.generation), (grant.id, 0));
        assert!(token.is_of(&master, &grant));
        assert!(!token.is_of(&MasterKey::generate(), &grant));
        // the digest covers the token's own generation, so that a previous one is still recognized
        grant.generation = 1;
        assert!(token.is_of(&master, &grant));
        assert_ne!(RefreshToken::of(&master, &grant), text);
        grant.salt = vec![0; 16];
        assert!(!token.is_of(&master, &grant));
    }

    #[test]
    fn malformed_refresh_tokens_are_not_accepted() {
        let (master, grant) = (MasterKey::generate(), grant(1));
        let text = RefreshToken::of(&master, &grant);
        for bad in ["", "a", "!", &text[..20]] {
            assert!(RefreshToken::read(bad).is_none(), "{bad}");
        }
        for cut in [&text[..text.len() - 4], &text[..28]] {
            assert!(RefreshToken::read(cut).is_none_or(|token| !token.is_of(&master, &grant)));
        }
    }
}
