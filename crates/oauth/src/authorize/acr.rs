//! `acr_values`: the demanded authentication context classes, and two instructions for the sign-in (OpenID Connect Core
//! 1.0, section 3.1.2.1).

use crate::{ErrorCode, ProtocolError};

/// The prefix of the instruction that names the tenant.
const TENANT: &str = "tenant:";
/// The prefix of the instruction that names the instance of an identity provider.
const INSTANCE: &str = "idp:";

/// The parsed words of `acr_values`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcrValues {
    /// The authentication context classes, the preferred one first. One of the known ones is required.
    pub classes: Vec<String>,
    /// The id of the tenant to sign in to.
    pub tenant: Option<String>,
    /// The id or name of the identity provider's instance to sign in with.
    pub instance: Option<String>,
}

impl AcrValues {
    /// Parses the words.
    ///
    /// # Errors
    /// `invalid_request`: there are two tenants or instances, or a name is empty.
    pub fn parse(text: &str) -> Result<Self, ProtocolError> {
        let mut values = Self::default();
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            if let Some(id) = word.strip_prefix(TENANT) {
                set(&mut values.tenant, id)?;
            } else if let Some(name) = word.strip_prefix(INSTANCE) {
                set(&mut values.instance, name)?;
            } else if !values.classes.iter().any(|seen| seen == word) {
                values.classes.push(word.to_owned());
            }
        }
        Ok(values)
    }
}

/// Sets an instruction. It may be repeated with the same name.
fn set(field: &mut Option<String>, name: &str) -> Result<(), ProtocolError> {
    if name.is_empty() || field.as_ref().is_some_and(|before| before != name) {
        let detail = "acr_values names two tenants or instances, or one without its name.";
        return Err(ProtocolError::new(ErrorCode::InvalidRequest, detail));
    }
    *field = Some(name.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::AcrValues;
    use crate::ErrorCode;

    #[test]
    fn instructions_are_split_off() {
        let values = AcrValues::parse("phr tenant:7 mfa idp:default  phr urn:x:y").unwrap();
        assert_eq!(values.classes, ["phr", "mfa", "urn:x:y"]);
        assert_eq!((values.tenant.as_deref(), values.instance.as_deref()), (Some("7"), Some("default")));
        assert_eq!(AcrValues::parse("").unwrap(), AcrValues::default());
        assert_eq!(AcrValues::parse("tenant:7 tenant:7").unwrap().tenant.as_deref(), Some("7"));
        for wrong in ["tenant:7 tenant:8", "idp:a idp:b", "tenant:", "phr idp:"] {
            assert_eq!(AcrValues::parse(wrong).unwrap_err().code, ErrorCode::InvalidRequest, "{wrong}");
        }
    }
}
