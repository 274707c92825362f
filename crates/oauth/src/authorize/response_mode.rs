//! How the answer gets to the client (OAuth 2.0 Multiple Response Type Encoding Practices 1.0, section 2.1; OAuth
//! 2.0 Form Post Response Mode 1.0; JWT Secured Authorization Response Mode 1.0).

use crate::{Code, Refusal, ResponseType};

/// Which part of a request to the redirect URI has the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// The query.
    Query,
    /// The fragment, which a browser does not send.
    Fragment,
    /// The body of a form that the browser posts.
    FormPost,
}

/// A response mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResponseMode {
    /// Which part has the answer.
    pub transport: Transport,
    /// Whether the answer is one signed JWT.
    pub is_signed: bool,
}

impl ResponseMode {
    /// The names of all response modes. `jwt` is a signed answer in the default part.
    pub const NAMES: [&str; 7] =
        ["query", "fragment", "form_post", "jwt", "query.jwt", "fragment.jwt", "form_post.jwt"];

    /// The default of a response type: the fragment where a token is in the answer, else the query.
    pub const fn default_of(response_type: ResponseType) -> Self {
        let transport =
            if response_type.has_front_channel_token() { Transport::Fragment } else { Transport::Query };
        Self { transport, is_signed: false }
    }

    /// Reads the response mode that was asked for with a response type.
    ///
    /// # Errors
    /// `invalid_request` where it is not known, or would show a token in a query.
    pub fn read(asked: Option<&str>, response_type: ResponseType) -> Result<Self, Refusal> {
        let default = Self::default_of(response_type);
        let Some(asked) = asked else { return Ok(default) };
        let (name, is_signed) = match asked.strip_suffix("jwt") {
            None => (asked, false),
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

const fn refuse(detail: &'static str) -> Refusal {
    Refusal::new(Code::InvalidRequest, detail)
}

#[cfg(test)]
mod tests {
    use super::{ResponseMode, Transport};
    use crate::{Code, ResponseType};

    fn read(asked: &str, response_type: &str) -> Option<(Transport, bool)> {
        let response_type = ResponseType::named(response_type).unwrap();
        match ResponseMode::read(Some(asked).filter(|asked| !asked.is_empty()), response_type) {
            Ok(mode) => Some((mode.transport, mode.is_signed)),
            Err(refusal) => {
                assert_eq!(refusal.code, Code::InvalidRequest);
                None
            }
        }
    }

    #[test]
    fn the_default_is_query_and_with_a_token_fragment() {
        for response_type in ResponseType::ALL {
            let wanted = if matches!(response_type.name(), "code" | "none") {
                Transport::Query
            } else {
                Transport::Fragment
            };
            assert_eq!(read("", response_type.name()), Some((wanted, false)));
            assert_eq!(read("jwt", response_type.name()), Some((wanted, true)));
        }
    }

    #[test]
    fn each_mode_by_its_name() {
        use Transport::{FormPost, Fragment, Query};
        for (asked, code, token) in [
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
            assert_eq!(read(asked, "code"), code, "{asked}");
            assert_eq!(read(asked, "none"), code, "{asked}");
            for with_token in ["token", "id_token", "code id_token", "code token", "code id_token token"] {
                assert_eq!(read(asked, with_token), token, "{asked} {with_token}");
            }
        }
        assert!(ResponseMode::NAMES.iter().all(|name| read(name, "code").is_some()));
    }
}
