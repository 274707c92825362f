//! `prompt`: the required pages, or none (OpenID Connect Core 1.0, section 3.1.2.1).

use crate::{ErrorCode, ProtocolError};

/// The pages that a request requires, independent of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// `login`: a new sign-in.
    pub login: bool,
    /// `consent`: a new consent.
    pub consent: bool,
    /// `select_account`: a choice between accounts.
    pub select_account: bool,
}

/// The value of `prompt`. By default, no page is required or forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// `none`: no page may be shown.
    None,
    /// Pages may be shown, and these are required.
    Pages(Pages),
}

impl Default for Prompt {
    fn default() -> Self {
        Self::Pages(Pages::default())
    }
}

impl Prompt {
    /// Parses the words of `prompt`.
    ///
    /// # Errors
    /// `invalid_request`: `none` is combined with other words, or a word is unknown and could require a page. `create` is
    /// not supported (Initiating User Registration via OpenID Connect 1.0, section 4).
    pub fn parse(text: &str) -> Result<Self, ProtocolError> {
        if text == "none" {
            return Ok(Self::None);
        }
        let mut pages = Pages::default();
        for word in text.split(' ') {
            match word {
                "login" => pages.login = true,
                "consent" => pages.consent = true,
                "select_account" => pages.select_account = true,
                "none" => return Err(refuse("prompt: none is alone.")),
                "create" => return Err(refuse("prompt: nobody registers here.")),
                _ => return Err(refuse("prompt is none, or words of login, consent and select_account.")),
            }
        }
        Ok(Self::Pages(pages))
    }
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidRequest, detail)
}

#[cfg(test)]
mod tests {
    use super::{Pages, Prompt};
    use crate::ErrorCode;

    #[test]
    fn none_must_be_alone_and_other_words_combine() {
        let login = Pages { login: true, ..Pages::default() };
        assert_eq!(Prompt::parse("none"), Ok(Prompt::None));
        assert_eq!(Prompt::parse("login"), Ok(Prompt::Pages(login)));
        assert_eq!(Prompt::parse("login login"), Ok(Prompt::Pages(login)));
        assert_eq!(
            Prompt::parse("select_account consent login"),
            Ok(Prompt::Pages(Pages { login: true, consent: true, select_account: true }))
        );
        for wrong in [
            "none login",
            "login none",
            "none none",
            "create",
            "login create",
            "Login",
            "login  consent",
            " ",
        ] {
            assert_eq!(Prompt::parse(wrong).unwrap_err().code, ErrorCode::InvalidRequest, "{wrong}");
        }
    }
}
