//! The options in effect for one owner.

use std::collections::HashMap;

use super::{CATALOGUE, Entry, Form, Owner, catalogue::find, form};

/// The options of one owner: the values set, and the catalogue's default where a value is missing, empty or
/// invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    owner: Owner,
    values: HashMap<String, String>,
}

impl Options {
    /// The options of an owner, with these values set, by name.
    pub const fn new(owner: Owner, values: HashMap<String, String>) -> Self {
        Self { owner, values }
    }

    /// The same, where what is wrong counts as the strictest value, and not as the default.
    #[must_use]
    pub fn strict(mut self) -> Self {
        for entry in self.owner.entries() {
            if let Some(value) = self.values.get_mut(entry.name)
                && !is_in_effect(entry, value)
            {
                *value = entry.strictest();
            }
        }
        self
    }

    /// An option that contradicts another, if one does.
    pub fn contradiction(&self) -> Option<&'static str> {
        let own = |name: &str| self.values.get(name).map_or("", String::as_str);
        let wrong = self.owner.entries().find(|entry| {
            entry.beside().any(|beside| beside.contradicts(entry, own(entry.name), own(beside.other())))
        });
        wrong.map(|entry| entry.name)
    }

    /// The text in effect.
    pub fn text(&self, name: &str) -> &str {
        let entry = self.entry(name);
        let given = self.values.get(name).map(String::as_str).filter(|text| !text.is_empty());
        match (given, entry) {
            (Some(text), Some(entry)) if is_in_effect(entry, text) => text,
            (Some(text), None) => text,
            (_, Some(entry)) => entry.default,
            (None, None) => "",
        }
    }

    /// A truth value.
    pub fn flag(&self, name: &str) -> bool {
        form::flag(self.text(name)).unwrap_or(false)
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> i64 {
        form::number(self.text(name)).unwrap_or(0)
    }

    /// A length of time in milliseconds.
    pub fn span(&self, name: &str) -> i64 {
        form::span(self.text(name)).unwrap_or(0)
    }

    /// The parts of a list, without blanks around them.
    pub fn list(&self, name: &str) -> Vec<&str> {
        self.text(name).split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
    }

    /// Every option of the catalogue with the text in effect, in the catalogue's order.
    pub fn effective(&self) -> impl Iterator<Item = (&'static Entry, &str)> {
        let own = CATALOGUE.iter().filter(|entry| entry.owner == self.owner);
        own.map(|entry| (entry, self.text(entry.name)))
    }

    fn entry(&self, name: &str) -> Option<&'static Entry> {
        let entry = find(self.owner, name);
        debug_assert!(entry.is_some() || self.values.contains_key(name), "{name} is in no catalogue");
        entry
    }
}

/// Whether a text is in effect. A secret may still be encrypted here, so that its form cannot be checked. Of a list of models the
/// part that can be read stays, because an empty list would admit all. A name stays, because identities are stored under it.
fn is_in_effect(entry: &Entry, text: &str) -> bool {
    entry.secret || matches!(entry.form, Form::Aaguids | Form::Name) || entry.form.fits(text)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use crate::settings::{Options, Owner};

    #[test]
    fn what_is_missing_empty_or_broken_is_the_default() {
        let values = [
            ("PasswordMinLength", "12"),
            ("PasswordMaxLength", "many"),
            ("TemporaryLockDuration", "00:01:00"),
            ("PasskeyAllowedOrigins", "https://a.example, https://b.example"),
            ("LoginThrottlingEnabled", "FALSE"),
            ("ClaimIssuer", ""),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let options = Options::new(Owner::UserStore, HashMap::from(values));
        assert_eq!((options.number("PasswordMinLength"), options.number("PasswordMaxLength")), (12, 128));
        assert_eq!(options.span("TemporaryLockDuration"), 60_000);
        assert_eq!(options.span("LoginThrottlingMaxDelay"), 30_000);
        assert_eq!(options.list("PasskeyAllowedOrigins"), ["https://a.example", "https://b.example"]);
        assert!(!options.flag("LoginThrottlingEnabled") && options.flag("TemporaryLockEnabled"));
        assert_eq!(options.text("ClaimIssuer"), "UserStore");
        assert_eq!(options.contradiction(), None);
        assert_eq!(options.strict().number("PasswordMaxLength"), 1);
    }

    #[test]
    fn a_list_of_models_that_is_wrong_does_not_admit_all() {
        let set = HashMap::from([("PasskeyAllowedAaguids".to_owned(), "a security key".to_owned())]);
        let options = Options::new(Owner::UserStore, set);
        assert_eq!(options.text("PasskeyAllowedAaguids"), "a security key");
        assert_eq!(options.strict().text("PasskeyAllowedAaguids"), "a security key");
    }

    #[test]
    fn a_wrong_name_stays_in_effect() {
        let set = HashMap::from([("ClaimIssuer".to_owned(), "Contoso ".to_owned())]);
        assert_eq!(Options::new(Owner::UserStore, set).text("ClaimIssuer"), "Contoso ");
    }

    #[test]
    fn a_contradiction_is_named() {
        let with = |name: &str, value: &str| {
            Options::new(Owner::Tenant, HashMap::from([(name.to_owned(), value.to_owned())])).contradiction()
        };
        assert_eq!(with("SessionAbsoluteLifetime", "P7D"), Some("SessionAbsoluteLifetime"));
        assert_eq!(with("SessionLifetime", "P100D"), Some("SessionAbsoluteLifetime"));
        assert_eq!(with("SessionAbsoluteLifetime", "PT1H"), Some("SessionAbsoluteLifetime"));
        assert_eq!(with("SessionLifetime", "P90D"), None);
    }
}
