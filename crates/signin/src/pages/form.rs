//! The fields of a form.

use chancery_record::Secret;

/// The fields of a form.
#[derive(Clone, Copy)]
pub struct Form<'a>(pub &'a [(String, String)]);

impl<'a> Form<'a> {
    /// A field, if it is there.
    pub fn field(self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A field's text; empty if it is missing.
    pub(super) fn text(self, name: &str) -> String {
        self.field(name).unwrap_or_default().to_owned()
    }

    /// A name, without blanks around it.
    pub(super) fn name(self, name: &str) -> String {
        self.field(name).unwrap_or_default().trim().to_owned()
    }

    /// A secret field.
    pub(super) fn secret(self, name: &str) -> Secret {
        Secret::new(self.field(name).unwrap_or_default())
    }

    /// The alternative that was chosen on a page of second factors.
    pub(super) fn alternative(self) -> Option<&'a str> {
        self.field("choice").or_else(|| self.field("resend"))
    }

    /// The answer of an authenticator, if there is one.
    pub(super) fn credential(self) -> Option<&'a str> {
        self.field("credential").filter(|text| !text.is_empty())
    }
}
