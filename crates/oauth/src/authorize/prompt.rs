//! Which pages a request demands, or that there be none: `prompt` (OpenID Connect Core 1.0, section 3.1.2.1).

use crate::{Code, Refusal};

/// The pages that a request demands whatever the session says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// `login`: a new sign-in.
    pub login: bool,
    /// `consent`: consent, also where there is one.
    pub consent: bool,
    /// `select_account`: a choice between accounts.
    pub select_account: bool,
}

/// What `prompt` says. Without the parameter no page is demanded, and none forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// `none`: no page may be shown.
    None,
    /// Pages may be shown, and these are demanded.
    Pages(Pages),
}

impl Default for Prompt {
    fn default() -> Self {
        Self::Pages(Pages::default())
    }
}

impl Prompt {
    /// Reads the words of `prompt`.
    ///
    /// # Errors
    /// `invalid_request` where `none` is not alone, or a word is not known: to ignore it could show less than
    /// was demanded. `create` is not known (Initiating User Registration via OpenID Connect 1.0, section 4).
    pub fn parse(text: &str) -> Result<Self, Refusal> {
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

const fn refuse(detail: &'static str) -> Refusal {
    Refusal::new(Code::InvalidRequest, detail)
}

#[cfg(test)]
mod tests {
    use super::{Pages, Prompt};
    use crate::Code;

    #[test]
    fn none_is_alone_and_the_others_are_a_set() {
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
            assert_eq!(Prompt::parse(wrong).unwrap_err().code, Code::InvalidRequest, "{wrong}");
        }
    }
}
