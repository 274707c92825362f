//! Parameters of a request: which of them may be there twice, and what none may hold (RFC 6749, section 3.1).

use crate::{Code, Refusal};

/// The most characters of `state`.
const MAX_STATE: usize = 4096;
/// The most language tags that are looked at, and the bytes that one may have (RFC 5646, section 4.4.1).
const MAX_LOCALES: usize = 32;
const MAX_LOCALE: usize = 35;

/// The parameters of a request, decoded. What nobody asks for by its name is ignored, however often it is there.
#[derive(Clone, Copy)]
pub struct Parameters<'a>(pub &'a [(String, String)]);

impl<'a> Parameters<'a> {
    /// A parameter that may be there once; `None` where it is absent or has no value.
    ///
    /// # Errors
    /// `invalid_request` where it is there twice, even without values, or holds NUL.
    pub fn one(self, name: &str) -> Result<Option<&'a str>, Refusal> {
        let mut values = self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let value = values.next().unwrap_or_default();
        if values.next().is_some() {
            return Err(refuse("A parameter is there twice."));
        }
        has_no_nul(value)?;
        Ok(Some(value).filter(|value| !value.is_empty()))
    }

    /// The values of a parameter that may be repeated, without empty ones.
    ///
    /// # Errors
    /// `invalid_request` where it is there more than `most` times, or holds NUL.
    pub fn several(self, name: &str, most: usize) -> Result<Vec<&'a str>, Refusal> {
        let values = || self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        if values().nth(most).is_some() {
            return Err(refuse("A parameter is there too often."));
        }
        values().try_for_each(has_no_nul)?;
        Ok(values().filter(|value| !value.is_empty()).collect())
    }

    /// A parameter of at most so many characters.
    ///
    /// # Errors
    /// `invalid_request` as [`Self::one`], or with `too_long`.
    pub fn bounded(
        self,
        name: &str,
        most: usize,
        too_long: &'static str,
    ) -> Result<Option<&'a str>, Refusal> {
        match self.one(name)? {
            Some(value) if value.chars().nth(most).is_some() => Err(refuse(too_long)),
            value => Ok(value),
        }
    }

    /// `state`, which comes back as it was.
    pub fn state(self) -> Result<Option<&'a str>, Refusal> {
        self.bounded("state", MAX_STATE, "state has more than 4096 characters.")
    }

    /// `ui_locales`: language tags, the preferred one first. It is a wish, so what is no tag is left out.
    pub fn ui_locales(self) -> Result<Vec<String>, Refusal> {
        let is_tag = |word: &&str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !word.is_empty() && word.len() <= MAX_LOCALE && word.bytes().all(is_part)
        };
        let tags = self.one("ui_locales")?.unwrap_or_default().split(' ').filter(is_tag);
        Ok(tags.take(MAX_LOCALES).map(str::to_owned).collect())
    }
}

fn has_no_nul(value: &str) -> Result<(), Refusal> {
    if value.contains('\0') { Err(refuse("A parameter holds NUL.")) } else { Ok(()) }
}

const fn refuse(detail: &'static str) -> Refusal {
    Refusal::new(Code::InvalidRequest, detail)
}
