//! The display preferences of a person in the console.

use chancery_resource::{StateTable, StoreError, Tx};
use chancery_store::selectable;
use uuid::Uuid;

selectable! {
    /// A person's display preferences; empty if nothing was chosen.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ConsolePreference from "FROM console_preference WHERE person_id = ?1" {
        /// `light` or `dark`.
        pub theme: String = "theme",
        /// `en` or `de`.
        pub language: String = "language",
        /// `compact`.
        pub density: String = "density",
        /// The time zone of displayed times; empty: that of the browser.
        pub zone: String = "zone",
        /// `off`: single-letter shortcuts are disabled.
        pub single_keys: String = "single_keys",
    }
}

/// A person's display preferences; empty if nothing was chosen.
pub fn console_preference(tx: &mut Tx<'_>, person: Uuid) -> Result<ConsolePreference, StoreError> {
    let preference = tx.one(ConsolePreference::SELECT, &[person.into()], ConsolePreference::read)?;
    Ok(preference.unwrap_or_default())
}

/// Stores a person's display preferences.
pub fn store_console_preference(
    tx: &mut Tx<'_>,
    person: Uuid,
    preference: &ConsolePreference,
) -> Result<(), StoreError> {
    let text = StateTable::ConsolePreference.insert(
        "(person_id, theme, language, density, zone, single_keys) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (person_id) DO UPDATE SET theme = ?2, language = ?3, density = ?4, zone = ?5, single_keys = ?6",
    );
    let ConsolePreference { theme, language, density, zone, single_keys } = preference;
    let chosen = [theme, language, density, zone, single_keys].map(|text| text.as_str().into());
    tx.queue(&text, std::iter::once(person.into()).chain(chosen).collect())
}
