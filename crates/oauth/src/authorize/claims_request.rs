//! `claims`: claims that are requested by name (OpenID Connect Core 1.0, section 5.5).

use chancery_record::{Json, read_json};

use crate::{ErrorCode, ProtocolError};

/// The maximum length of the parameter, in bytes.
const MAX_LENGTH: usize = 8 * 1024;

/// A requested claim (section 5.5.1).
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedClaim {
    /// The claim's name.
    pub name: String,
    /// Whether the client requires the claim (`essential`).
    pub is_essential: bool,
    /// The requested values (`value`, `values`), the preferred one first; empty if any value is accepted.
    pub values: Vec<Json>,
}

impl RequestedClaim {
    /// The values that are text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.values
            .iter()
            .filter_map(|value| if let Json::Text(text) = value { Some(text.as_str()) } else { None })
    }
}

/// The requested claims, by destination.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimsRequest {
    /// Claims for the UserInfo response.
    pub userinfo: Vec<RequestedClaim>,
    /// Claims for the ID token.
    pub id_token: Vec<RequestedClaim>,
}

impl ClaimsRequest {
    /// Parses the parameter. Unknown members are ignored.
    ///
    /// # Errors
    /// `invalid_request`: it is too long or no JSON object, or a member is malformed.
    pub fn parse(text: &str) -> Result<Self, ProtocolError> {
        if text.len() > MAX_LENGTH {
            return Err(refuse("claims is longer than 8 KiB."));
        }
        let json =
            read_json(text.as_bytes()).map_err(|_| refuse("claims is no JSON, or has a member twice."))?;
        if !matches!(json, Json::Object(_)) {
            return Err(refuse("claims is no JSON object."));
        }
        Ok(Self { userinfo: claims(json.get("userinfo"))?, id_token: claims(json.get("id_token"))? })
    }

    /// The request of a claim for the ID token.
    pub fn in_id_token(&self, name: &str) -> Option<&RequestedClaim> {
        self.id_token.iter().find(|claim| claim.name == name)
    }

    /// The authentication context classes of an essential `acr`, of which one is required (section 5.5.1.1), in addition to
    /// `acr_values`.
    pub fn required_acr_values(&self) -> Vec<&str> {
        self.in_id_token("acr")
            .filter(|acr| acr.is_essential)
            .into_iter()
            .flat_map(RequestedClaim::texts)
            .collect()
    }
}

fn claims(member: Option<&Json>) -> Result<Vec<RequestedClaim>, ProtocolError> {
    match member {
        None | Some(Json::Null) => Ok(Vec::new()),
        Some(Json::Object(members)) => members.iter().map(|(name, options)| claim(name, options)).collect(),
        Some(_) => Err(refuse("userinfo and id_token of claims are JSON objects.")),
    }
}

fn claim(name: &str, options: &Json) -> Result<RequestedClaim, ProtocolError> {
    if !matches!(options, Json::Null | Json::Object(_)) {
        return Err(refuse("Each claim of claims has null or a JSON object."));
    }
    let is_essential = match options.get("essential") {
        None => false,
        Some(Json::Bool(is_essential)) => *is_essential,
        Some(_) => return Err(refuse("essential of claims is true or false.")),
    };
    let values = match (options.get("value"), options.get("values")) {
        (None, None) => Vec::new(),
        (Some(value), None) => vec![value.clone()],
        (None, Some(Json::Array(values))) => values.clone(),
        (None, Some(_)) => return Err(refuse("values of claims is an array.")),
        (Some(_), Some(_)) => return Err(refuse("A claim of claims has value or values.")),
    };
    Ok(RequestedClaim { name: name.to_owned(), is_essential, values })
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidRequest, detail)
}

#[cfg(test)]
mod tests {
    use chancery_record::Json;
    use proptest::prelude::*;

    use super::ClaimsRequest;
    use crate::ErrorCode;

    // OpenID Connect Core 1.0, section 5.5
    const EXAMPLE: &str = r#"{
        "userinfo": {
            "given_name": {"essential": true}, "nickname": null, "email": {"essential": true},
            "email_verified": {"essential": true}, "picture": null, "http://example.info/claims/groups": null
        },
        "id_token": {
            "auth_time": {"essential": true},
            "acr": {"values": ["urn:mace:incommon:iap:silver"]}
        }
    }"#;

    #[test]
    fn the_example_of_the_specification_is_parsed() {
        let claims = ClaimsRequest::parse(EXAMPLE).unwrap();
        let essential: Vec<&str> = claims
            .userinfo
            .iter()
            .filter(|claim| claim.is_essential)
            .map(|claim| claim.name.as_str())
            .collect();
        assert_eq!(claims.userinfo.len(), 6);
        assert_eq!(essential, ["given_name", "email", "email_verified"]);
        assert!(claims.in_id_token("auth_time").unwrap().is_essential);
        let acr = claims.in_id_token("acr").unwrap();
        assert_eq!(acr.texts().collect::<Vec<_>>(), ["urn:mace:incommon:iap:silver"]);
        // a voluntary claim is no demand
        assert!(claims.required_acr_values().is_empty());
        assert!(claims.in_id_token("email").is_none());
    }

    #[test]
    fn an_essential_acr_is_required() {
        let claims =
            ClaimsRequest::parse(r#"{"id_token":{"acr":{"essential":true,"values":["phr",1,"mfa"]}}}"#);
        assert_eq!(claims.unwrap().required_acr_values(), ["phr", "mfa"]);
        let claims =
            ClaimsRequest::parse(r#"{"id_token":{"acr":{"essential":true,"value":"mfa"}}}"#).unwrap();
        assert_eq!(claims.required_acr_values(), ["mfa"]);
        assert_eq!(claims.in_id_token("acr").unwrap().values, [Json::Text("mfa".to_owned())]);
    }

    #[test]
    fn unknown_members_are_ignored() {
        for text in ["{}", r#"{"other":1}"#, r#"{"userinfo":null,"id_token":{}}"#] {
            assert_eq!(ClaimsRequest::parse(text), Ok(ClaimsRequest::default()), "{text}");
        }
        assert!(ClaimsRequest::parse(r#"{"userinfo":{"a":{"purpose":"b"}}}"#).is_ok());
    }

    #[test]
    fn malformed_parameters_are_rejected() {
        let long = format!(r#"{{"userinfo":{{"{}":null}}}}"#, "x".repeat(8192));
        for wrong in [
            "",
            "null",
            "[]",
            "openid",
            "{",
            "{} {}",
            r#"{"userinfo":{"a":null,"a":null}}"#,
            r#"{"userinfo":[]}"#,
            r#"{"userinfo":{"a":true}}"#,
            r#"{"id_token":{"a":{"essential":"yes"}}}"#,
            r#"{"id_token":{"a":{"values":"b"}}}"#,
            r#"{"id_token":{"a":{"value":"b","values":["b"]}}}"#,
            &"[".repeat(8000),
            &long,
        ] {
            assert_eq!(ClaimsRequest::parse(wrong).unwrap_err().code, ErrorCode::InvalidRequest, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(text in "[\\[\\]{}\":,a-c0-9 ]{0,60}|\\PC{0,60}") {
            if let Ok(claims) = ClaimsRequest::parse(&text) {
                prop_assert_eq!(text.trim_start().chars().next(), Some('{'));
                prop_assert!(claims.required_acr_values().len() <= text.len());
            }
        }
    }
}
