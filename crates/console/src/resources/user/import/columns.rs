//! Mapping of columns to fields: by labels in either language, and by wire names.

use chancery_record::{Field, Kind};

use crate::shell::{directory::Resource, words::Words};

/// The contents of a column.
#[derive(Clone, Copy)]
pub enum Column {
    /// Values of a field.
    Field(&'static Field),
    /// Names of groups.
    Groups,
    /// Ignored.
    Unknown,
}

/// Names of fields in other programs.
const OTHERS: [(&str, &str); 24] = [
    ("login", "loginName"),
    ("username", "loginName"),
    ("benutzername", "loginName"),
    ("benutzer", "loginName"),
    ("anmeldename", "loginName"),
    ("kennung", "loginName"),
    ("givenname", "firstName"),
    ("forename", "firstName"),
    ("vorname", "firstName"),
    ("familyname", "lastName"),
    ("surname", "lastName"),
    ("nachname", "lastName"),
    ("familienname", "lastName"),
    ("email", "emailAddress"),
    ("mail", "emailAddress"),
    ("phone", "phoneNumber"),
    ("telephone", "phoneNumber"),
    ("telefon", "phoneNumber"),
    ("mobile", "phoneNumber"),
    ("language", "locale"),
    ("sprache", "locale"),
    ("timezone", "zoneinfo"),
    ("active", "isUserActive"),
    ("aktiv", "isUserActive"),
];
/// Names of columns with groups.
const GROUPS: [&str; 5] = ["groups", "group", "gruppen", "gruppe", "memberofgroups"];

/// The importable fields: those that can be set at creation and changed later.
pub fn fields(resource: &Resource) -> impl Iterator<Item = &'static Field> {
    let fits = |field: &&Field| {
        let is_value = !matches!(
            field.kind,
            Kind::Bytes(_) | Kind::Object(_) | Kind::Ids | Kind::Texts(_) | Kind::Pairs(_) | Kind::Id
        );
        field.access.create && field.access.patch && !field.access.key && !field.is_token() && is_value
    };
    resource.shape.fields.iter().filter(fits)
}

/// The contents of a column with this heading.
pub fn of(resource: &Resource, heading: &str) -> Column {
    let plain = plain(heading);
    if GROUPS.contains(&plain.as_str()) {
        return Column::Groups;
    }
    let labelled = |tag: &str, field: &Field| self::plain(&Words::of([tag]).field(field.wire())) == plain;
    let named = |field: &&'static Field| {
        self::plain(field.wire()) == plain
            || ["en", "de"].iter().any(|tag| labelled(tag, field))
            || OTHERS.contains(&(plain.as_str(), field.wire()))
    };
    fields(resource).find(named).map_or(Column::Unknown, Column::Field)
}

/// Letters and digits only, in lower case: `E-Mail address` is `emailaddress`.
fn plain(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{Column, fields, of};
    use crate::shell::directory::find;

    #[test]
    fn headings_are_known_in_both_languages() {
        crate::resources::fill();
        let user = find("User", true).unwrap();
        for (heading, wire) in [
            ("loginName", "loginName"),
            ("Login name", "loginName"),
            ("Benutzername", "loginName"),
            ("E-Mail", "emailAddress"),
            ("E-mail address", "emailAddress"),
            ("E-Mail-Adresse", "emailAddress"),
            (" VORNAME ", "firstName"),
            ("Nachname", "lastName"),
            ("user valid to", "userValidTo"),
        ] {
            let Column::Field(field) = of(user, heading) else { panic!("{heading}") };
            assert_eq!(field.wire(), wire, "{heading}");
        }
        assert!(matches!(of(user, "Gruppen"), Column::Groups));
        for heading in ["", "Department", "id", "concurrencyToken", "isUserLocked", "passwordHash"] {
            assert!(matches!(of(user, heading), Column::Unknown), "{heading}");
        }
        assert!(fields(user).count() > 15);
    }
}
