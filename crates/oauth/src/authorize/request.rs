//! The parameters of an authorization request (RFC 6749, section 4.1.1; OpenID Connect Core 1.0, section 3.1.2.1).

use std::fmt;

use super::{
    acr::AcrValues, claims_request::ClaimsRequest, prompt::Prompt, request_object::RequestObject,
    response_target::ResponseTarget,
};
use crate::{
    Challenge, ErrorCode, ProtocolError, ResponseMode, ResponseType, Scope,
    claims::from_base64,
    exchange::{MAX_TARGETS, parse_targets},
    parameters::Parameters,
};

/// The maximum length of `nonce`, in characters.
const MAX_NONCE: usize = 1024;
/// The known parameters without an effect. They must not be repeated.
const WITHOUT_EFFECT: [&str; 2] = ["display", "claims_locales"];

/// The parameters with an effect. Others are rejected or ignored, and need not be stored.
const RECOGNIZED: [&str; 18] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "response_mode",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "prompt",
    "max_age",
    "login_hint",
    "id_token_hint",
    "ui_locales",
    "claims",
    "acr_values",
    "resource",
    "dpop_jkt",
];

/// Drops the parameters without an effect, so that a stored request stays small. The others parse to the same request.
pub fn recognized_parameters(parameters: Vec<(String, String)>) -> Vec<(String, String)> {
    parameters.into_iter().filter(|(name, _)| RECOGNIZED.contains(&name.as_str())).collect()
}

/// A well-formed authorization request. [`check_request`](crate::check_request) validates it for the client app.
#[derive(Clone, PartialEq)]
pub struct AuthorizationRequest {
    /// `client_id`
    pub client_id: String,
    /// `redirect_uri`
    pub redirect_uri: String,
    /// `response_type`
    pub response_type: ResponseType,
    /// `response_mode`, or the default of the response type.
    pub response_mode: ResponseMode,
    /// `scope`
    pub scope: Option<Scope>,
    /// `state`, up to 4,096 characters.
    pub state: Option<String>,
    /// `nonce`, up to 1,024 characters.
    pub nonce: Option<String>,
    /// `code_challenge` with the method S256.
    pub challenge: Option<Challenge>,
    /// `prompt`
    pub prompt: Prompt,
    /// `max_age`: the maximum age of the authentication, in seconds. Greater values are reduced to the maximum of the type.
    pub max_age: Option<u32>,
    /// `login_hint`
    pub login_hint: Option<String>,
    /// `id_token_hint`, not yet verified.
    pub id_token_hint: Option<String>,
    /// The language tags of `ui_locales`, the preferred one first.
    pub ui_locales: Vec<String>,
    /// `claims`
    pub claims: ClaimsRequest,
    /// `acr_values`
    pub acr_values: AcrValues,
    /// `resource`, at most 32 (RFC 8707, section 2.1).
    pub resources: Vec<String>,
    /// `dpop_jkt`: the thumbprint of the key that the code is bound to (RFC 9449, section 10).
    pub dpop_jkt: Option<String>,
}

impl AuthorizationRequest {
    /// Parses a request after the first stage, from the same parameters. The parameters of a request object or a pushed
    /// request are parsed like those of a query; a nested request object is rejected.
    ///
    /// # Errors
    /// To be sent by redirect, with [`ResponseTarget::options`]: `invalid_request`, `unsupported_response_type`,
    /// `invalid_scope`, `invalid_target`, `request_not_supported` or `request_uri_not_supported`.
    pub fn read(target: &ResponseTarget, parameters: &[(String, String)]) -> Result<Self, ProtocolError> {
        // first: with a request object, other parameters are ignored
        if let Some(object) = RequestObject::find(parameters)? {
            return Err(object.refusal());
        }
        let parameters = Parameters(parameters);
        let owned = |name| parameters.one(name).map(|value| value.map(str::to_owned));
        for name in WITHOUT_EFFECT {
            parameters.one(name)?;
        }
        if parameters.one("authorization_details")?.is_some() {
            // if it were ignored, something else would be granted (RFC 9396)
            return Err(refuse("authorization_details is not taken."));
        }
        let state = parameters.state()?.map(str::to_owned);
        let response_type = read_response_type(parameters)?;
        Ok(Self {
            client_id: target.client_id.clone(),
            redirect_uri: target.redirect_uri.clone(),
            response_type,
            response_mode: ResponseMode::read(parameters.one("response_mode")?, response_type)?,
            scope: parameters.one("scope")?.map(Scope::parse).transpose()?,
            state,
            nonce: parameters
                .bounded("nonce", MAX_NONCE, "nonce has more than 1024 characters.")?
                .map(str::to_owned),
            challenge: read_challenge(parameters)?,
            prompt: parameters.one("prompt")?.map(Prompt::parse).transpose()?.unwrap_or_default(),
            max_age: parameters.one("max_age")?.map(read_seconds).transpose()?,
            login_hint: owned("login_hint")?,
            id_token_hint: owned("id_token_hint")?,
            ui_locales: parameters.ui_locales()?,
            claims: parameters.one("claims")?.map(ClaimsRequest::parse).transpose()?.unwrap_or_default(),
            acr_values: parameters.one("acr_values")?.map(AcrValues::parse).transpose()?.unwrap_or_default(),
            resources: parse_targets(parameters.several("resource", MAX_TARGETS)?.into_iter())?,
            dpop_jkt: parameters.one("dpop_jkt")?.map(read_thumbprint).transpose()?,
        })
    }
}

fn read_response_type(parameters: Parameters<'_>) -> Result<ResponseType, ProtocolError> {
    let name = parameters.one("response_type")?.ok_or(refuse("response_type is missing."))?;
    let detail = "response_type is code, id_token, token, words of these, or none.";
    ResponseType::named(name).ok_or(ProtocolError::new(ErrorCode::UnsupportedResponseType, detail))
}

/// Reads challenge and method. Without a method it is `plain` (RFC 7636, section 4.3), which is rejected because it
/// discloses the verifier in the request.
fn read_challenge(parameters: Parameters<'_>) -> Result<Option<Challenge>, ProtocolError> {
    match (parameters.one("code_challenge")?, parameters.one("code_challenge_method")?) {
        (None, None) => Ok(None),
        (Some(challenge), Some("S256")) => {
            let detail = "code_challenge is not 43 characters of base64url.";
            Challenge::read(challenge).map(Some).ok_or(refuse(detail))
        }
        (Some(_), _) => Err(refuse("code_challenge_method is S256.")),
        (None, Some(_)) => Err(refuse("code_challenge is missing.")),
    }
}

fn read_seconds(text: &str) -> Result<u32, ProtocolError> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // digits fail to parse only if there are too many
        Ok(text.parse().unwrap_or(u32::MAX))
    } else {
        Err(refuse("max_age is whole seconds, not below zero."))
    }
}

fn read_thumbprint(text: &str) -> Result<String, ProtocolError> {
    let is_hash = from_base64(text).is_some_and(|bytes| bytes.len() == 32);
    if is_hash { Ok(text.to_owned()) } else { Err(refuse("dpop_jkt is no SHA-256 thumbprint in base64url.")) }
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidRequest, detail)
}

impl fmt::Debug for AuthorizationRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AuthorizationRequest(hidden)")
    }
}
