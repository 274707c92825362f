//! Token exchange: the request (RFC 8693, section 2.1) and the claim `act` (section 4.1).

use chancery_record::{Json, Secret};
use serde_json::{Value, json};

use crate::{
    ErrorCode, ProtocolError, Scope,
    claims::{short_text, text},
};

/// The `grant_type` of token exchange.
pub const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// The prefix of token types (section 3).
const TYPE: &str = "urn:ietf:params:oauth:token-type:";
/// The maximum length of a token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;
/// The maximum number of targets of a request.
pub const MAX_TARGETS: usize = 32;
/// The maximum length of a target, in bytes.
const MAX_TARGET: usize = 2048;
/// The maximum number of actors in `act`.
const MAX_ACTORS: usize = 5;
/// The maximum length of the name of an actor or its issuer, in bytes.
const MAX_NAME: usize = 2048;
/// The parameters that must not be repeated. `resource` and `audience` may be.
const SINGLE: [&str; 7] = [
    "grant_type",
    "subject_token",
    "subject_token_type",
    "actor_token",
    "actor_token_type",
    "requested_token_type",
    "scope",
];

/// A supported token type. Refresh tokens and SAML assertions cannot be exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenType {
    /// An access token in any format.
    AccessToken,
    /// An ID token.
    IdToken,
    /// A JWT, whose `typ` decides.
    Jwt,
}

impl TokenType {
    /// The type with a registered name.
    pub fn named(name: &str) -> Option<Self> {
        match name.strip_prefix(TYPE)? {
            "access_token" => Some(Self::AccessToken),
            "id_token" => Some(Self::IdToken),
            "jwt" => Some(Self::Jwt),
            _ => None,
        }
    }

    /// The registered name, as in `issued_token_type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessToken => "urn:ietf:params:oauth:token-type:access_token",
            Self::IdToken => "urn:ietf:params:oauth:token-type:id_token",
            Self::Jwt => "urn:ietf:params:oauth:token-type:jwt",
        }
    }
}

/// Whether actor tokens are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorTokens {
    /// A request with an actor token is rejected.
    Refused,
    /// A request may have an actor token.
    Accepted,
}

/// A token to be exchanged, not yet verified.
#[derive(Debug)]
pub struct TypedToken {
    /// The token.
    pub token: Secret,
    /// The type in the request.
    pub kind: TokenType,
}

/// A token exchange request. Only access tokens are issued.
#[derive(Debug)]
pub struct TokenExchangeRequest {
    /// `subject_token`
    pub subject: TypedToken,
    /// `actor_token`: the party that acts for the subject.
    pub actor: Option<TypedToken>,
    /// `resource`: the services for the new token, by URL.
    pub resources: Vec<String>,
    /// `audience`: the services for the new token, by name.
    pub audiences: Vec<String>,
    /// The requested scope.
    pub scope: Option<Scope>,
}

/// Parses a token exchange request. A parameter without a value counts as absent (RFC 6749, section 3.2).
///
/// # Errors
/// `unsupported_grant_type`, `invalid_request`, `invalid_target` or `invalid_scope`.
pub fn parse_exchange(
    form: &[(String, String)],
    actors: ActorTokens,
) -> Result<TokenExchangeRequest, ProtocolError> {
    let all = |name: &'static str| {
        form.iter()
            .filter(move |(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    };
    let one = |name| all(name).next();
    // a repeated parameter is rejected even if it is empty
    if SINGLE.iter().any(|name| form.iter().filter(|(key, _)| key == name).count() > 1) {
        return Err(refuse("A parameter is there twice."));
    }
    match one("grant_type") {
        Some(GRANT_TYPE) => {}
        Some(_) => {
            return Err(ProtocolError::new(ErrorCode::UnsupportedGrantType, "This is no token exchange."));
        }
        None => return Err(refuse("grant_type is missing.")),
    }
    if one("requested_token_type").is_some_and(|name| TokenType::named(name) != Some(TokenType::AccessToken))
    {
        return Err(refuse("requested_token_type: only access tokens are issued."));
    }
    let subject = read_typed_token(one("subject_token"), one("subject_token_type"))?
        .ok_or(refuse("subject_token and subject_token_type are missing."))?;
    let actor = read_typed_token(one("actor_token"), one("actor_token_type"))?;
    if actor.is_some() && actors == ActorTokens::Refused {
        return Err(refuse("No actor_token is accepted."));
    }
    Ok(TokenExchangeRequest {
        subject,
        actor,
        resources: parse_targets(all("resource"))?,
        audiences: parse_targets(all("audience"))?,
        scope: one("scope").map(Scope::parse).transpose()?,
    })
}

/// Reads a token with its type: both are present, or neither.
fn read_typed_token(token: Option<&str>, kind: Option<&str>) -> Result<Option<TypedToken>, ProtocolError> {
    let (token, kind) = match (token, kind) {
        (None, None) => return Ok(None),
        (Some(token), Some(kind)) => (token, kind),
        _ => return Err(refuse("A token and its token type must both be there.")),
    };
    if token.len() > MAX_TOKEN {
        return Err(refuse("A token is longer than 16 KiB."));
    }
    let kind = TokenType::named(kind)
        .ok_or(refuse("Tokens of the types access_token, id_token and jwt can be exchanged."))?;
    Ok(Some(TypedToken { token: Secret::new(token), kind }))
}

/// Reads the targets of a request, which have no fragment (RFC 8707, section 2).
///
/// # Errors
/// `invalid_target`: one is malformed, or there are too many.
pub fn parse_targets<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<String>, ProtocolError> {
    let mut targets: Vec<String> = Vec::new();
    for name in names {
        let is_valid = name.len() <= MAX_TARGET && name.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_valid || name.contains('#') || targets.len() >= MAX_TARGETS {
            return Err(ProtocolError::new(
                ErrorCode::InvalidTarget,
                "A resource or audience is malformed, or there are too many.",
            ));
        }
        targets.push(name.to_owned());
    }
    Ok(targets)
}

/// One actor of the claim `act`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The actor's subject.
    pub sub: String,
    /// The issuer of the subject, if `act` has one.
    pub iss: Option<String>,
}

/// The actors of a token's claims, the current one first (section 4.1).
///
/// # Errors
/// `invalid_request`: `act` is malformed or nested too deep.
pub fn actors_of(claims: &Json) -> Result<Vec<Actor>, ProtocolError> {
    let mut actors = Vec::new();
    let mut level = claims;
    while let Some(act) = level.get("act") {
        let sub = short_text(act, "sub", MAX_NAME).ok_or(refuse("act has no sub."))?;
        if actors.len() >= MAX_ACTORS {
            return Err(refuse("act is nested too deep."));
        }
        let iss = match act.get("iss") {
            None => None,
            Some(_) if short_text(act, "iss", MAX_NAME).is_none() => {
                return Err(refuse("iss of act is no text."));
            }
            Some(_) => text(act, "iss").map(str::to_owned),
        };
        actors.push(Actor { sub: sub.to_owned(), iss });
        level = act;
    }
    Ok(actors)
}

/// Builds the claim `act` from actors, the current one first; `None` without actors.
///
/// # Errors
/// `invalid_request`: there are too many actors.
pub fn act_claim(actors: &[Actor]) -> Result<Option<Value>, ProtocolError> {
    if actors.len() > MAX_ACTORS {
        return Err(refuse("act is nested too deep."));
    }
    Ok(actors.iter().rev().fold(None, |inner, actor| {
        let mut act = json!({ "sub": actor.sub });
        if let Some(members) = act.as_object_mut() {
            members.extend(actor.iss.as_ref().map(|iss| ("iss".to_owned(), json!(iss))));
            members.extend(inner.map(|inner| ("act".to_owned(), inner)));
        }
        Some(act)
    }))
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidRequest, detail)
}
