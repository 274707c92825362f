//! The options in effect for one owner.

use std::{collections::HashMap, marker::PhantomData};

use super::{Entry, Form, Owner, Setting, TenantOption, UserStoreOption, ValueType};

/// The options of one owner: the values set, and the catalogue's default where a value is missing, empty or
/// invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options<F> {
    owner: Owner,
    values: HashMap<String, String>,
    of: PhantomData<F>,
}

impl<F> Options<F> {
    /// The options of an owner of the family, with these values set, by name.
    pub const fn of(owner: Owner, values: HashMap<String, String>) -> Self {
        Self { owner, values, of: PhantomData }
    }

    /// The same, where an invalid value counts as the strictest one, instead of the default.
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

    /// An option that contradicts another, if any.
    pub fn contradiction(&self) -> Option<&'static str> {
        let own = |name: &str| self.values.get(name).map_or("", String::as_str);
        let contradicting = self.owner.entries().find(|entry| {
            entry
                .constraints()
                .any(|constraint| constraint.contradicts(entry, own(entry.name), own(constraint.other())))
        });
        contradicting.map(|entry| entry.name)
    }

    /// The value in effect.
    pub fn get<T: ValueType>(&self, setting: Setting<F, T>) -> T::Value<'_> {
        T::read(self.text(setting))
    }

    /// The text in effect, whatever the type.
    pub fn text<T>(&self, setting: Setting<F, T>) -> &str {
        self.in_effect(&setting.entry)
    }

    /// Whether a text other than the empty one is in effect.
    pub fn is_set<T>(&self, setting: Setting<F, T>) -> bool {
        !self.text(setting).is_empty()
    }

    fn in_effect(&self, entry: &Entry) -> &str {
        match self.values.get(entry.name).map(String::as_str) {
            Some(text) if !text.is_empty() && is_in_effect(entry, text) => text,
            _ => entry.default,
        }
    }
}

impl Options<UserStoreOption> {
    /// Whether the store is configured to send mail.
    pub fn sends_mail(&self) -> bool {
        self.is_set(UserStoreOption::MAIL_SERVER_CONFIG) && self.is_set(UserStoreOption::EMAIL_SENDER_ADDRESS)
    }

    /// The options of a user store, with these values set, by name.
    pub const fn new(values: HashMap<String, String>) -> Self {
        Self::of(Owner::UserStore, values)
    }
}

impl Options<TenantOption> {
    /// The options of a tenant, with these values set, by name.
    pub const fn new(values: HashMap<String, String>) -> Self {
        Self::of(Owner::Tenant, values)
    }
}

/// Whether a text is in effect. A secret may still be encrypted here, so that its form cannot be checked. A
/// list of authenticator models stays in effect in part, because an empty list would admit all. A name stays,
/// because identities are stored under it.
fn is_in_effect(entry: &Entry, text: &str) -> bool {
    entry.secret || matches!(entry.form, Form::Aaguids | Form::Name) || entry.form.fits(text)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use crate::settings::{Options, TenantOption, UserStoreOption};

    #[test]
    fn a_missing_empty_or_invalid_value_falls_back_to_the_default() {
        let values = [
            ("PasswordMinLength", "12"),
            ("PasswordMaxLength", "many"),
            ("TemporaryLockDuration", "00:01:00"),
            ("UserLockNotificationRecipients", "a@example.org, b@example.org"),
            ("LoginThrottlingEnabled", "FALSE"),
            ("ClaimIssuer", ""),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let options = Options::<UserStoreOption>::new(HashMap::from(values));
        assert_eq!(
            (
                options.get(UserStoreOption::PASSWORD_MIN_LENGTH),
                options.get(UserStoreOption::PASSWORD_MAX_LENGTH)
            ),
            (12, 128)
        );
        assert_eq!(options.get(UserStoreOption::TEMPORARY_LOCK_DURATION), 60_000);
        assert_eq!(options.get(UserStoreOption::LOGIN_THROTTLING_MAX_DELAY), 30_000);
        assert_eq!(
            options.get(UserStoreOption::USER_LOCK_NOTIFICATION_RECIPIENTS),
            ["a@example.org", "b@example.org"]
        );
        assert!(
            !options.get(UserStoreOption::LOGIN_THROTTLING_ENABLED)
                && options.get(UserStoreOption::TEMPORARY_LOCK_ENABLED)
        );
        assert_eq!(options.get(UserStoreOption::CLAIM_ISSUER), "UserStore");
        assert_eq!(options.contradiction(), None);
        assert_eq!(options.strict().get(UserStoreOption::PASSWORD_MAX_LENGTH), 1);
    }

    #[test]
    fn an_invalid_list_of_authenticator_models_does_not_admit_all() {
        let set = HashMap::from([("PasskeyAllowedAaguids".to_owned(), "a security key".to_owned())]);
        let options = Options::<UserStoreOption>::new(set);
        assert_eq!(options.get(UserStoreOption::PASSKEY_ALLOWED_AAGUIDS), "a security key");
        assert_eq!(options.strict().get(UserStoreOption::PASSKEY_ALLOWED_AAGUIDS), "a security key");
    }

    #[test]
    fn an_invalid_name_stays_in_effect() {
        let set = HashMap::from([("ClaimIssuer".to_owned(), "Contoso ".to_owned())]);
        assert_eq!(Options::<UserStoreOption>::new(set).get(UserStoreOption::CLAIM_ISSUER), "Contoso ");
    }

    #[test]
    fn a_contradiction_is_reported() {
        let with = |name: &str, value: &str| {
            Options::<TenantOption>::new(HashMap::from([(name.to_owned(), value.to_owned())])).contradiction()
        };
        assert_eq!(with("SessionAbsoluteLifetime", "P7D"), Some("SessionAbsoluteLifetime"));
        assert_eq!(with("SessionLifetime", "P100D"), Some("SessionAbsoluteLifetime"));
        assert_eq!(with("SessionAbsoluteLifetime", "PT1H"), Some("SessionAbsoluteLifetime"));
        assert_eq!(with("SessionLifetime", "P90D"), None);
    }
}
