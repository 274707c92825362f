//! The German texts of a declaration, for the console. English ones are the readable form of its name, and its documentation.

/// The German texts of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct German {
    /// Its label. `None` where others of the same name have it, too: it is then in `crates/console/texts/de.toml`.
    pub label: Option<&'static str>,
    /// Its description. `None` where it has none, or where others have the same: it is then in that file.
    pub hint: Option<&'static str>,
}

/// The German texts of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GermanNames {
    /// Its name, singular.
    pub one: &'static str,
    /// Its name, plural.
    pub many: &'static str,
    /// Its description, where the console shows one.
    pub about: Option<&'static str>,
}

/// The German texts that `#[de(..)]` of a declaration names: a label and a description, `_` for a label that is shared.
#[doc(hidden)]
#[macro_export]
macro_rules! german {
    () => {
        $crate::German { label: None, hint: None }
    };
    (_, $hint:literal) => {
        $crate::German { label: None, hint: Some($hint) }
    };
    ($label:literal) => {
        $crate::German { label: Some($label), hint: None }
    };
    ($label:literal, $hint:literal) => {
        $crate::German { label: Some($label), hint: Some($hint) }
    };
}

/// The German texts that `#[de(..)]` of a resource names: its name in singular and plural, and its description.
#[doc(hidden)]
#[macro_export]
macro_rules! german_names {
    () => {
        None
    };
    ($one:literal, $many:literal) => {
        Some($crate::GermanNames { one: $one, many: $many, about: None })
    };
    ($one:literal, $many:literal, $about:literal) => {
        Some($crate::GermanNames { one: $one, many: $many, about: Some($about) })
    };
}
