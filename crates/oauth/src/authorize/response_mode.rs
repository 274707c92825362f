//! Response modes (OAuth 2.0 Multiple Response Type Encoding Practices 1.0, section 2.1; OAuth 2.0 Form Post Response Mode
//! 1.0; JWT Secured Authorization Response Mode 1.0).

use crate::{ErrorCode, ProtocolError, ResponseType};

/// The part of the request to the redirect URI that has the response parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// The query.
    Query,
    /// The fragment, which browsers do not send.
    Fragment,
    /// The form-encoded body.
    FormPost,
}

/// A response mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResponseMode {
    /// The part that has the response parameters.
    pub transport: Transport,
    /// Whether the response is a signed JWT.
    pub is_signed: bool,
}

impl ResponseMode {
    /// The names of all response modes. `jwt` is a signed response in the default part.
    pub const NAMES: [&str; 7] =
        ["query", "fragment", "form_post", "jwt", "query.jwt", "fragment.jwt", "form_post.jwt"];

    /// The default of a response type: the fragment if the response has a token, otherwise the query.
    pub const fn default_of(response_type: ResponseType) -> Self {
        let transport =
            if response_type.has_front_channel_token() { Transport::Fragment } else { Transport::Query };
        Self { transport, is_signed: false }
    }

    /// Parses the requested response mode for a response type.
    ///
    /// # Errors
    /// `invalid_request`: it is unknown, or would send a token in a query.
    pub fn read(requested: Option<&str>, response_type: ResponseType) -> Result<Self, ProtocolError> {
        let default = Self::default_of(response_type);
        let Some(requested) = requested else { return Ok(default) };
        let (name, is_signed) = match requested.strip_suffix("jwt") {
            None => (requested, false),
            Some("") => return Ok(Self { is_signed: true, ..default }),
            Some(name) => (name.strip_suffix('.').unwrap_or_default(), true),
        };
        let transport = match name {
            "query" if response_type.has_front_channel_token() => {
                return Err(refuse("response_mode: a token is not sent in a query."));
            }
            "query" => Transport::Query,
            "fragment" => Transport::Fragment,
            "form_post" => Transport::FormPost,
            _ => return Err(refuse("response_mode is not known.")),
        };
        Ok(Self { transport, is_signed })
    }
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidRequest, detail)
}

#[cfg(test)]
mod tests {
    use super::{ResponseMode, Transport};
    use crate::{ErrorCode, ResponseType};

    fn read(requested: &str, response_type: &str) -> Option<(Transport, bool)> {
        let response_type = ResponseType::named(response_type).unwrap();
        match ResponseMode::read(Some(requested).filter(|requested| !requested.is_empty()), response_type) {
            Ok(mode) => Some((mode.transport, mode.is_signed)),
            Err(refusal) => {
                assert_eq!(refusal.code, ErrorCode::InvalidRequest);
                None
            }
        }
    }

    #[test]
    fn the_default_is_the_query_and_with_a_token_the_fragment() {
        for response_type in ResponseType::ALL {
            let expected = if matches!(response_type.name(), "code" | "none") {
                Transport::Query
            } else {
                Transport::Fragment
            };
            assert_eq!(read("", response_type.name()), Some((expected, false)));
            assert_eq!(read("jwt", response_type.name()), Some((expected, true)));
        }
    }

    #[test]
    fn each_response_mode_has_its_name() {
        use Transport::{FormPost, Fragment, Query};
        for (requested, code, token) in [
            ("query", Some((Query, false)), None),
            ("fragment", Some((Fragment, false)), Some((Fragment, false))),
            ("form_post", Some((FormPost, false)), Some((FormPost, false))),
            ("query.jwt", Some((Query, true)), None),
            ("fragment.jwt", Some((Fragment, true)), Some((Fragment, true))),
            ("form_post.jwt", Some((FormPost, true)), Some((FormPost, true))),
            ("web_message", None, None),
            ("Query", None, None),
            ("queryjwt", None, None),
            (".jwt", None, None),
            ("jwt.jwt", None, None),
            ("query ", None, None),
        ] {
            assert_eq!(read(requested, "code"), code, "{requested}");
            assert_eq!(read(requested, "none"), code, "{requested}");
            for with_token in ["token", "id_token", "code id_token", "code token", "code id_token token"] {
                assert_eq!(read(requested, with_token), token, "{requested} {with_token}");
            }
        }
        assert!(ResponseMode::NAMES.iter().all(|name| read(name, "code").is_some()));
    }
}
