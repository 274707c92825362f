//! The catalogue of known options, made from their declarations.

use std::sync::LazyLock;

use super::{FactorOption, Form, ProviderOption, TenantOption, UserStoreOption};

/// The owner of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum Owner {
    UserStore,
    OpenIdConnect,
    AdfsOAuth,
    Microsoft,
    Google,
    Facebook,
    Twitter,
    MfaEmail,
    MfaTotp,
    MfaSms,
    Tenant,
}

/// An option of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The owner that has the option.
    pub owner: Owner,
    /// Its name.
    pub name: &'static str,
    /// The value in effect where none is set.
    pub default: &'static str,
    /// The form of its value.
    pub form: Form,
    /// Whether a value must be set.
    pub mandatory: bool,
    /// Whether its value is a secret: encrypted at rest, and shown to callers who may write it.
    pub secret: bool,
    /// Whether it has no influence on who signs in, by which proof, or where links and codes go. Other options
    /// may be changed only by administrators whose rights cover everyone who signs in by the owner.
    pub open: bool,
    /// Its German label in the console. `None` where several options share it: it is then in `crates/console/texts/de.toml`.
    pub german: Option<&'static str>,
}

impl Entry {
    pub(super) const fn new(owner: Owner, name: &'static str, default: &'static str, form: Form) -> Self {
        Self { owner, name, default, form, mandatory: false, secret: false, open: false, german: None }
    }

    pub(super) const fn german(self, label: &'static str) -> Self {
        Self { german: Some(label), ..self }
    }

    pub(super) const fn mandatory(self) -> Self {
        Self { mandatory: true, ..self }
    }

    pub(super) const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    pub(super) const fn open(self) -> Self {
        Self { open: true, ..self }
    }

    /// Whether a text is an invalid value.
    pub fn is_wrong(&self, text: &str) -> bool {
        (self.mandatory && text.is_empty()) || !self.form.fits(text)
    }
}

impl Owner {
    /// The owners of options by their type's name: the factory types, and tenants.
    pub const TYPES: [(&'static str, Self); 11] = [
        ("UserStore", Self::UserStore),
        ("OpenIdConnect", Self::OpenIdConnect),
        ("AdfsOAuth", Self::AdfsOAuth),
        ("Microsoft", Self::Microsoft),
        ("Google", Self::Google),
        ("Facebook", Self::Facebook),
        ("Twitter", Self::Twitter),
        ("email", Self::MfaEmail),
        ("totp", Self::MfaTotp),
        ("sms", Self::MfaSms),
        ("Tenant", Self::Tenant),
    ];

    /// The owner with this type name.
    pub fn of_type(name: &str) -> Option<Self> {
        Self::TYPES.iter().find(|(known, _)| *known == name).map(|(_, owner)| *owner)
    }

    /// The owner's type name.
    pub fn type_name(self) -> &'static str {
        Self::TYPES.iter().find(|(_, owner)| *owner == self).map_or("", |(name, _)| *name)
    }

    /// Whether it is a second factor.
    pub const fn is_second_factor(self) -> bool {
        matches!(self, Self::MfaEmail | Self::MfaTotp | Self::MfaSms)
    }

    /// The owner's options.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> {
        CATALOGUE.iter().filter(move |entry| entry.owner == self)
    }

    /// The owner's option of this name.
    pub fn entry(self, name: &str) -> Option<&'static Entry> {
        self.entries().find(|entry| entry.name == name)
    }
}

/// All options, by owner in the order in which they are declared.
pub static CATALOGUE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let families =
        [UserStoreOption::OPTIONS, ProviderOption::OPTIONS, FactorOption::OPTIONS, TenantOption::OPTIONS];
    let declared = || families.iter().copied().flatten();
    let of_owner = |owner: Owner| {
        let own = declared().filter(move |(owners, _)| owners.contains(&owner));
        own.map(move |(_, entry)| Entry { owner, ..*entry })
    };
    Owner::TYPES.iter().flat_map(|(_, owner)| of_owner(*owner)).collect()
});

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::CATALOGUE;

    #[test]
    fn defaults_are_valid_and_names_unique() {
        let mut seen = HashSet::new();
        for entry in CATALOGUE.iter() {
            assert!(entry.form.fits(entry.default), "{}", entry.name);
            assert!(seen.insert((entry.owner, entry.name)), "{} twice", entry.name);
        }
    }
}
