//! Constraints between options of one owner, and the strict substitute of an invalid value where nothing may be
//! open by mistake.

use super::{Entry, Form, Owner, ProviderOption, TenantOption, UserStoreOption, form};

/// A constraint of an option by another of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// At least the value of this option.
    AtLeast(&'static str),
    /// Set, where this option is.
    NeededBy(&'static str),
    /// Set, unless this option is unset, or has this value.
    NeededUnless(&'static str, &'static str),
}

/// The options that depend on others of their owner.
const CONSTRAINTS: &[(Owner, &str, Constraint)] = &[
    (
        Owner::UserStore,
        UserStoreOption::PASSWORD_MAX_LENGTH.name(),
        Constraint::AtLeast(UserStoreOption::PASSWORD_MIN_LENGTH.name()),
    ),
    (
        Owner::UserStore,
        UserStoreOption::LOGIN_THROTTLING_MAX_DELAY.name(),
        Constraint::AtLeast(UserStoreOption::LOGIN_THROTTLING_INITIAL_DELAY.name()),
    ),
    (
        Owner::UserStore,
        UserStoreOption::TEMPORARY_ACCESS_PASS_MAX_LIFETIME.name(),
        Constraint::AtLeast(UserStoreOption::TEMPORARY_ACCESS_PASS_DEFAULT_LIFETIME.name()),
    ),
    (
        Owner::UserStore,
        UserStoreOption::EMAIL_SENDER_ADDRESS.name(),
        Constraint::NeededBy(UserStoreOption::MAIL_SERVER_CONFIG.name()),
    ),
    // a claim that an administrator of a tenant there can set must come from a trusted tenant
    (
        Owner::OpenIdConnect,
        ProviderOption::SCIM_UNIQUE_IDENTIFIER_VALUES.name(),
        Constraint::NeededUnless(ProviderOption::SCIM_SUBJECT_CLAIM.name(), "sub"),
    ),
    (
        Owner::Tenant,
        TenantOption::REFRESH_TOKEN_ABSOLUTE_LIFETIME.name(),
        Constraint::AtLeast(TenantOption::REFRESH_TOKEN_LIFETIME.name()),
    ),
    (
        Owner::Tenant,
        TenantOption::SESSION_ABSOLUTE_LIFETIME.name(),
        Constraint::AtLeast(TenantOption::SESSION_LIFETIME.name()),
    ),
    (
        Owner::Tenant,
        TenantOption::SESSION_ABSOLUTE_LIFETIME.name(),
        Constraint::AtLeast(TenantOption::BROWSER_SESSION_LIFETIME.name()),
    ),
];

impl Constraint {
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
    /// Its constraints by other options of its owner.
    pub fn constraints(&self) -> impl Iterator<Item = Constraint> {
        let own = CONSTRAINTS.iter().filter(|(owner, name, _)| *owner == self.owner && *name == self.name);
        own.map(|(.., constraint)| *constraint)
    }

    /// The options of its owner that are constrained by it.
    pub fn dependent(&self) -> impl Iterator<Item = &'static Entry> {
        let (owner, name) = (self.owner, self.name);
        let own =
            CONSTRAINTS.iter().filter(move |(of, _, constraint)| *of == owner && constraint.other() == name);
        own.filter_map(|(owner, name, _)| owner.entry(name))
    }

    /// Whether its value is a limit. A tenant with an invalid one refuses all sign-ins; other options concern
    /// appearance.
    pub const fn is_limit(&self) -> bool {
        matches!(self.form, Form::Flag | Form::Number(..) | Form::Span(..) | Form::Choice(_))
    }

    /// The most restrictive value.
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
    use super::{CONSTRAINTS, Constraint};
    use crate::settings::{CATALOGUE, Owner};

    #[test]
    fn constraints_name_known_options_and_hold_for_defaults() {
        for (owner, name, constraint) in CONSTRAINTS {
            let (own, other) = (owner.entry(name).unwrap(), owner.entry(constraint.other()).unwrap());
            assert!(own.constraints().any(|one| one == *constraint));
            assert!(other.dependent().any(|entry| entry.name == *name));
            assert!(!constraint.contradicts(own, own.default, other.default), "{name}");
        }
    }

    #[test]
    fn contradicting_values_are_detected() {
        let longest = Owner::UserStore.entry("PasswordMaxLength").unwrap();
        let constraint = longest.constraints().next().unwrap();
        for (most, least, is_wrong) in
            [("128", "200", true), ("200", "200", false), ("", "200", true), ("many", "8", false)]
        {
            assert_eq!(constraint.contradicts(longest, most, least), is_wrong, "{most} {least}");
        }
        let absolute = Owner::Tenant.entry("SessionAbsoluteLifetime").unwrap();
        for constraint in absolute.constraints() {
            assert!(constraint.contradicts(absolute, "P7D", "14.00:00:00"), "{constraint:?}");
        }
        let sender = Owner::UserStore.entry("EMailSenderAddress").unwrap();
        let constraint = Constraint::NeededBy("MailServerConfig");
        assert!(
            constraint.contradicts(sender, "", "{}")
                && !constraint.contradicts(sender, "a@b", "{}")
                && !constraint.contradicts(sender, "", "")
        );
    }

    #[test]
    fn the_strictest_value_is_valid() {
        for entry in CATALOGUE.iter() {
            assert!(entry.form.fits(&entry.strictest()), "{}", entry.name);
        }
    }
}
