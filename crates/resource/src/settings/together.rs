//! What options of one owner must be together, and what one that is wrong counts as where nothing may be open by mistake.

use super::{Entry, Form, Owner, ProviderOption, TenantOption, UserStoreOption, form};

/// What an option must be beside another of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// At least what the option of this name is.
    AtLeast(&'static str),
    /// Set, where the option of this name is.
    NeededBy(&'static str),
    /// Set, unless the option of this name is not set, or has this value.
    NeededUnless(&'static str, &'static str),
}

/// The options that depend on others of their owner.
const TOGETHER: &[(Owner, &str, Beside)] = &[
    (
        Owner::UserStore,
        UserStoreOption::PASSWORD_MAX_LENGTH.name(),
        Beside::AtLeast(UserStoreOption::PASSWORD_MIN_LENGTH.name()),
    ),
    (
        Owner::UserStore,
        UserStoreOption::LOGIN_THROTTLING_MAX_DELAY.name(),
        Beside::AtLeast(UserStoreOption::LOGIN_THROTTLING_INITIAL_DELAY.name()),
    ),
    (
        Owner::UserStore,
        UserStoreOption::TEMPORARY_ACCESS_PASS_MAX_LIFETIME.name(),
        Beside::AtLeast(UserStoreOption::TEMPORARY_ACCESS_PASS_DEFAULT_LIFETIME.name()),
    ),
    (
        Owner::UserStore,
        UserStoreOption::EMAIL_SENDER_ADDRESS.name(),
        Beside::NeededBy(UserStoreOption::MAIL_SERVER_CONFIG.name()),
    ),
    // a claim that an administrator of a tenant there can set must be told by a tenant that is trusted
    (
        Owner::OpenIdConnect,
        ProviderOption::SCIM_UNIQUE_IDENTIFIER_VALUES.name(),
        Beside::NeededUnless(ProviderOption::SCIM_SUBJECT_CLAIM.name(), "sub"),
    ),
    (
        Owner::Tenant,
        TenantOption::REFRESH_TOKEN_ABSOLUTE_LIFETIME.name(),
        Beside::AtLeast(TenantOption::REFRESH_TOKEN_LIFETIME.name()),
    ),
    (
        Owner::Tenant,
        TenantOption::SESSION_ABSOLUTE_LIFETIME.name(),
        Beside::AtLeast(TenantOption::SESSION_LIFETIME.name()),
    ),
    (
        Owner::Tenant,
        TenantOption::SESSION_ABSOLUTE_LIFETIME.name(),
        Beside::AtLeast(TenantOption::BROWSER_SESSION_LIFETIME.name()),
    ),
];

impl Beside {
    /// The name of the other option.
    pub const fn other(self) -> &'static str {
        match self {
            Self::AtLeast(name) | Self::NeededBy(name) | Self::NeededUnless(name, _) => name,
        }
    }

    /// Whether two values, each of its own form, contradict each other.
    pub fn contradicts(self, entry: &Entry, text: &str, other: &str) -> bool {
        match self {
            Self::AtLeast(name) => {
                let value = |text: &str, name: &str| {
                    let own = entry.owner.entry(name)?;
                    let text = if text.is_empty() || !own.form.fits(text) { own.default } else { text };
                    form::number(text).or_else(|| form::span(text))
                };
                value(text, entry.name) < value(other, name)
            }
            Self::NeededBy(_) => text.is_empty() && !other.is_empty(),
            Self::NeededUnless(_, value) => text.is_empty() && !other.is_empty() && other != value,
        }
    }
}

impl Entry {
    /// What it must be beside other options of its owner.
    pub fn beside(&self) -> impl Iterator<Item = Beside> {
        let own = TOGETHER.iter().filter(|(owner, name, _)| *owner == self.owner && *name == self.name);
        own.map(|(.., beside)| *beside)
    }

    /// The options of its owner that must be something beside it.
    pub fn dependent(&self) -> impl Iterator<Item = &'static Entry> {
        let (owner, name) = (self.owner, self.name);
        let own = TOGETHER.iter().filter(move |(of, _, beside)| *of == owner && beside.other() == name);
        own.filter_map(|(owner, name, _)| owner.entry(name))
    }

    /// Whether its value decides how much is allowed. A tenant with a wrong one lets nobody in; other options are of appearance.
    pub const fn is_limit(&self) -> bool {
        matches!(self.form, Form::Flag | Form::Number(..) | Form::Span(..) | Form::Choice(_))
    }

    /// The value by which the least is allowed.
    pub fn strictest(&self) -> String {
        match self.form {
            Form::Flag => {
                let strict = [TenantOption::PKCE_REQUIRED, TenantOption::EMAIL_CONFIRMATION_REQUIRED];
                strict.iter().any(|setting| setting.name() == self.name).to_string()
            }
            Form::Number(least, _) => least.to_string(),
            Form::Span(least, _) => format!("PT{}S", least / 1000),
            Form::Choice(words) => words.last().copied().unwrap_or_default().to_owned(),
            _ => self.default.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Beside, TOGETHER};
    use crate::settings::{CATALOGUE, Owner};

    #[test]
    fn what_depends_on_others_is_in_the_catalogue_and_right_by_default() {
        for (owner, name, beside) in TOGETHER {
            let (own, other) = (owner.entry(name).unwrap(), owner.entry(beside.other()).unwrap());
            assert!(own.beside().any(|one| one == *beside));
            assert!(other.dependent().any(|entry| entry.name == *name));
            assert!(!beside.contradicts(own, own.default, other.default), "{name}");
        }
    }

    #[test]
    fn values_contradict_each_other() {
        let longest = Owner::UserStore.entry("PasswordMaxLength").unwrap();
        let beside = longest.beside().next().unwrap();
        for (most, least, is_wrong) in
            [("128", "200", true), ("200", "200", false), ("", "200", true), ("many", "8", false)]
        {
            assert_eq!(beside.contradicts(longest, most, least), is_wrong, "{most} {least}");
        }
        let absolute = Owner::Tenant.entry("SessionAbsoluteLifetime").unwrap();
        for beside in absolute.beside() {
            assert!(beside.contradicts(absolute, "P7D", "14.00:00:00"), "{beside:?}");
        }
        let sender = Owner::UserStore.entry("EMailSenderAddress").unwrap();
        let beside = Beside::NeededBy("MailServerConfig");
        assert!(
            beside.contradicts(sender, "", "{}")
                && !beside.contradicts(sender, "a@b", "{}")
                && !beside.contradicts(sender, "", "")
        );
    }

    #[test]
    fn the_strictest_value_is_a_value() {
        for entry in CATALOGUE.iter() {
            assert!(entry.form.fits(&entry.strictest()), "{}", entry.name);
        }
    }
}
