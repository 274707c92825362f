//! Parameters of a request, with the rules for repetition and NUL (RFC 6749, section 3.1).

use crate::{ErrorCode, ProtocolError};

/// The maximum length of `state`, in characters.
const MAX_STATE: usize = 4096;
/// The maximum number of language tags.
const MAX_LOCALES: usize = 32;
/// The maximum length of a language tag, in bytes (RFC 5646, section 4.4.1).
const MAX_LOCALE: usize = 35;

/// The decoded parameters of a request. Parameters that are not read by name are ignored, even if repeated.
#[derive(Clone, Copy)]
pub struct Parameters<'a>(pub &'a [(String, String)]);

impl<'a> Parameters<'a> {
    /// A parameter that must not be repeated; `None` if it is absent or empty.
    ///
    /// # Errors
    /// `invalid_request`: it is repeated, even without values, or contains NUL.
    pub fn one(self, name: &str) -> Result<Option<&'a str>, ProtocolError> {
        let mut values = self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let value = values.next().unwrap_or_default();
        if values.next().is_some() {
            return Err(refuse("A parameter is there twice."));
        }
        check_no_nul(value)?;
        Ok(Some(value).filter(|value| !value.is_empty()))
    }

    /// The values of a parameter that may be repeated, without empty ones.
    ///
    /// # Errors
    /// `invalid_request`: it occurs more than `max_count` times, or contains NUL.
    pub fn several(self, name: &str, max_count: usize) -> Result<Vec<&'a str>, ProtocolError> {
        let values = || self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        if values().nth(max_count).is_some() {
            return Err(refuse("A parameter is there too often."));
        }
        values().try_for_each(check_no_nul)?;
        Ok(values().filter(|value| !value.is_empty()).collect())
    }

    /// A parameter of at most `max_length` characters.
    ///
    /// # Errors
    /// `invalid_request` as [`Self::one`], or with `too_long`.
    pub fn bounded(
        self,
        name: &str,
        max_length: usize,
        too_long: &'static str,
    ) -> Result<Option<&'a str>, ProtocolError> {
        match self.one(name)? {
            Some(value) if value.chars().nth(max_length).is_some() => Err(refuse(too_long)),
            value => Ok(value),
        }
    }

    /// `state`, which is returned unchanged.
    pub fn state(self) -> Result<Option<&'a str>, ProtocolError> {
        self.bounded("state", MAX_STATE, "state has more than 4096 characters.")
    }

    /// The language tags of `ui_locales`, the preferred one first. Other words are ignored, because it is only a
    /// preference.
    pub fn ui_locales(self) -> Result<Vec<String>, ProtocolError> {
        let is_tag = |word: &&str| {
            let is_tag_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !word.is_empty() && word.len() <= MAX_LOCALE && word.bytes().all(is_tag_byte)
        };
        let tags = self.one("ui_locales")?.unwrap_or_default().split(' ').filter(is_tag);
        Ok(tags.take(MAX_LOCALES).map(str::to_owned).collect())
    }
}

fn check_no_nul(value: &str) -> Result<(), ProtocolError> {
    if value.contains('\0') { Err(refuse("A parameter holds NUL.")) } else { Ok(()) }
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidRequest, detail)
}
