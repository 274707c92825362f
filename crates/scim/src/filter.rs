//! Filters and orders in SCIM's names, as filters and orders on the fields of a home.

use chancery_record::parse_id;
use chancery_resource::{Expression, Literal, Operator, parse_filter};

use crate::{
    Attribute, Home, Place, Refusal, ResourceType, ScimType,
    name::{Target, find},
    patch::element,
};

/// What a filter asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Every resource matches.
    Always,
    /// None does.
    Never,
    /// Those whose fields match this filter.
    When(Expression),
}

/// Reads a filter in SCIM's names.
///
/// # Errors
/// Text that is no filter, or one about what the home cannot look for.
pub fn condition_of(of: &'static ResourceType, home: Home, text: &str) -> Result<Condition, Refusal> {
    let filter =
        parse_filter(text).map_err(|problem| Refusal::wrong(ScimType::InvalidFilter, problem.detail))?;
    Asked { of, home }.translated(&filter)
}

/// The field that a list is sorted by.
///
/// # Errors
/// A name that gives no order here.
pub fn sort_field(of: &'static ResourceType, home: Home, name: &str) -> Result<&'static str, Refusal> {
    let refused = || {
        let name: String = name.chars().take(100).collect();
        Refusal::wrong(ScimType::InvalidValue, format!("{} are not sorted by {name}", of.about))
    };
    let target = find(of, home, name).ok_or_else(refused)?;
    let is_value = target.part.is_none_or(|part| part.name == "value");
    match (target.attribute.name, target.attribute.place(home), target.leaf().place(home)) {
        ("emails", Place::One { field, .. }, _) if is_value => Ok(field),
        (
            "id" | "userName" | "name" | "displayName" | "meta",
            _,
            Place::Field(field) | Place::Seen(field),
        ) => Ok(field),
        _ => Err(refused()),
    }
}

struct Asked {
    of: &'static ResourceType,
    home: Home,
}

/// Where elements of an attribute come from.
enum Source {
    /// The one element that a field is.
    Field(&'static str),
    /// The members of a set.
    Set(&'static str),
}

/// A comparison without its attribute.
#[derive(Clone, Copy)]
struct Test<'a> {
    operator: Operator,
    value: &'a Literal,
    column: usize,
}

impl Test<'_> {
    /// The test on an id: no text but a UUID is one, and who asks for another asks for nobody.
    fn of_id(&self) -> Condition {
        match (self.operator, self.value) {
            (Operator::Equal, Literal::Text(text)) if parse_id(text).is_none() => Condition::Never,
            (Operator::NotEqual, Literal::Text(text)) if parse_id(text).is_none() => Condition::Always,
            _ => self.of("id", None),
        }
    }

    fn of(&self, attribute: &str, part: Option<&str>) -> Condition {
        Condition::When(Expression::Compare {
            attribute: attribute.into(),
            part: part.map(str::to_owned),
            operator: self.operator,
            value: self.value.clone(),
            column: self.column,
        })
    }
}

impl Asked {
    fn translated(&self, filter: &Expression) -> Result<Condition, Refusal> {
        Ok(match filter {
            Expression::And(left, right) => both(self.translated(left)?, self.translated(right)?),
            Expression::Or(left, right) => either(self.translated(left)?, self.translated(right)?),
            Expression::Not(inner) => not(self.translated(inner)?),
            Expression::Compare { attribute, part, operator, value, column } => {
                let name =
                    part.as_ref().map_or_else(|| attribute.clone(), |part| format!("{attribute}.{part}"));
                let target = find(self.of, self.home, &name).ok_or_else(|| refused(&name, *column))?;
                self.compared(&target, &Test { operator: *operator, value, column: *column })?
            }
            Expression::Some { attribute, inner, column } => {
                let target = find(self.of, self.home, attribute)
                    .filter(|target| target.part.is_none())
                    .ok_or_else(|| refused(attribute, *column))?;
                self.some(target.attribute, inner, *column)?
            }
        })
    }

    fn compared(&self, target: &Target, test: &Test<'_>) -> Result<Condition, Refusal> {
        let attribute = target.attribute;
        // of several values none is null: it is asked whether there is one (RFC 7643, section 2.5)
        if attribute.many && matches!(test.value, Literal::Null) {
            let present = Test { operator: Operator::Present, ..*test };
            match test.operator {
                Operator::Equal => return Ok(not(self.compared(target, &present)?)),
                Operator::NotEqual => return self.compared(target, &present),
                _ => {}
            }
        }
        if !attribute.many {
            let value = attribute.part(self.home, "value");
            let leaf = target.part.or(value).unwrap_or(attribute);
            return match leaf.place(self.home) {
                Place::Seen("createdOn") => Err(refused(leaf.name, test.column)),
                Place::Seen("id") => Ok(test.of_id()),
                Place::Field(field) | Place::Seen(field) => Ok(test.of(field, None)),
                Place::Entry(key) => in_entries(key, test).ok_or_else(|| refused(leaf.name, test.column)),
                _ => Err(refused(leaf.name, test.column)),
            };
        }
        let part = match target.part {
            Some(part) => part,
            None => attribute.part(self.home, "value").ok_or_else(|| refused(attribute.name, test.column))?,
        };
        let sources = self.sources(attribute, test.column)?;
        let mut found = Condition::Never;
        for (source, of_type) in sources {
            let one = match (&source, part.name) {
                (Source::Field(field), "value") => test.of(field, None),
                (Source::Set(set), "value") if test.operator == Operator::Present => test.of(set, None),
                (Source::Set(_), "value") => within(&source, test.of_id(), test.column),
                _ => within(&source, fixed(&source, part, of_type, test)?, test.column),
            };
            found = either(found, one);
        }
        Ok(found)
    }

    /// `attribute[inner]`.
    fn some(
        &self,
        attribute: &'static Attribute,
        inner: &Expression,
        column: usize,
    ) -> Result<Condition, Refusal> {
        if !attribute.many {
            return Err(refused(attribute.name, column));
        }
        let mut found = Condition::Never;
        for (source, of_type) in self.sources(attribute, column)? {
            let matching = self.element(&source, attribute, of_type, inner)?;
            found = either(found, within(&source, matching, column));
        }
        Ok(found)
    }

    /// Where the elements come from, each source with the type of its elements.
    fn sources(&self, attribute: &Attribute, column: usize) -> Result<Vec<(Source, &'static str)>, Refusal> {
        match attribute.place(self.home) {
            Place::One { field, of_type, .. } => Ok(vec![(Source::Field(field), of_type)]),
            Place::Sets { sets, .. } => {
                Ok(sets.iter().map(|(set, of_type)| (Source::Set(set), *of_type)).collect())
            }
            _ => Err(refused(attribute.name, column)),
        }
    }

    /// The condition on one element of a source.
    fn element(
        &self,
        source: &Source,
        attribute: &'static Attribute,
        of_type: &'static str,
        filter: &Expression,
    ) -> Result<Condition, Refusal> {
        let inner = |inner: &Expression| self.element(source, attribute, of_type, inner);
        Ok(match filter {
            Expression::And(left, right) => both(inner(left)?, inner(right)?),
            Expression::Or(left, right) => either(inner(left)?, inner(right)?),
            Expression::Not(one) => not(inner(one)?),
            Expression::Compare { attribute: name, part: None, operator, value, column } => {
                let part = attribute.part(self.home, name).ok_or_else(|| refused(name, *column))?;
                let test = Test { operator: *operator, value, column: *column };
                match (source, part.name) {
                    (Source::Field(field), "value") => test.of(field, None),
                    (Source::Set(_), "value") => test.of_id(),
                    _ => fixed(source, part, of_type, &test)?,
                }
            }
            Expression::Compare { attribute: name, column, .. }
            | Expression::Some { attribute: name, column, .. } => return Err(refused(name, *column)),
        })
    }
}

/// The set of a user's profile entries.
const ENTRIES: &str = "userProfiles";

/// The condition that a user has a profile entry whose value passes; `None` for tests that entries do not take.
fn in_entries(key: &str, test: &Test<'_>) -> Option<Condition> {
    if test.operator == Operator::Equal && matches!(test.value, Literal::Null) {
        return in_entries(key, &Test { operator: Operator::Present, ..*test }).map(not);
    }
    if !matches!(test.operator, Operator::Equal | Operator::StartsWith | Operator::Present) {
        return None;
    }
    let key = Literal::Text(key.to_owned());
    let is_it = Test { operator: Operator::Equal, value: &key, column: test.column }.of("key", None);
    match both(is_it, test.of("value", None)) {
        Condition::When(inner) => {
            let (attribute, inner) = (ENTRIES.into(), Box::new(inner));
            Some(Condition::When(Expression::Some { attribute, inner, column: test.column }))
        }
        other => Some(other),
    }
}

/// The outcome of a test on a part that is the same for all elements of a source.
fn fixed(
    source: &Source,
    part: &'static Attribute,
    of_type: &'static str,
    test: &Test<'_>,
) -> Result<Condition, Refusal> {
    let value = match (source, part.name) {
        (_, "type") => of_type.into(),
        (Source::Field(_), "primary") => true.into(),
        _ => return Err(refused(part.name, test.column)),
    };
    let holds = element::compare(part, test.operator, Some(&value), test.value);
    Ok(if holds { Condition::Always } else { Condition::Never })
}

/// The condition that a source has an element that matches.
fn within(source: &Source, matching: Condition, column: usize) -> Condition {
    let present = |name: &str| {
        let test = Test { operator: Operator::Present, value: &Literal::Null, column };
        test.of(name, None)
    };
    match (source, matching) {
        (_, Condition::Never) => Condition::Never,
        (Source::Field(field), matching) => both(present(field), matching),
        (Source::Set(set), Condition::Always) => present(set),
        // lists find the members of one item by this form at once
        (
            Source::Set(set),
            Condition::When(Expression::Compare { attribute, part: None, operator, value, column }),
        ) => Test { operator, value: &value, column }.of(set, Some(&attribute)),
        (Source::Set(set), Condition::When(inner)) => {
            Condition::When(Expression::Some { attribute: (*set).into(), inner: Box::new(inner), column })
        }
    }
}

fn both(left: Condition, right: Condition) -> Condition {
    match (left, right) {
        (Condition::Never, _) | (_, Condition::Never) => Condition::Never,
        (Condition::Always, other) | (other, Condition::Always) => other,
        (Condition::When(left), Condition::When(right)) => {
            Condition::When(Expression::And(Box::new(left), Box::new(right)))
        }
    }
}

fn either(left: Condition, right: Condition) -> Condition {
    match (left, right) {
        (Condition::Always, _) | (_, Condition::Always) => Condition::Always,
        (Condition::Never, other) | (other, Condition::Never) => other,
        (Condition::When(left), Condition::When(right)) => {
            Condition::When(Expression::Or(Box::new(left), Box::new(right)))
        }
    }
}

fn not(condition: Condition) -> Condition {
    match condition {
        Condition::Always => Condition::Never,
        Condition::Never => Condition::Always,
        Condition::When(inner) => Condition::When(Expression::Not(Box::new(inner))),
    }
}

fn refused(name: &str, column: usize) -> Refusal {
    let name: String = name.chars().take(100).collect();
    Refusal::wrong(ScimType::InvalidFilter, format!("Column {column}: nothing is found by {name} here."))
}

#[cfg(test)]
mod tests {
    use chancery_resource::parse_filter;

    use super::{Condition, condition_of, sort_field};
    use crate::{GROUP, Home, ResourceType, ScimType, USER};

    /// Both filters without their columns.
    fn check(of: &'static ResourceType, home: Home, filter: &str, expected: &str) {
        let found = condition_of(of, home, filter).unwrap();
        let expected = match expected {
            "always" => Condition::Always,
            "never" => Condition::Never,
            text => Condition::When(parse_filter(text).unwrap()),
        };
        let shown = |condition: &Condition| {
            let text = format!("{condition:?}");
            let mut parts = text.split("column: ");
            let first = parts.next().unwrap().to_owned();
            parts.fold(first, |text, part| text + part.trim_start_matches(char::is_numeric))
        };
        assert_eq!(shown(&found), shown(&expected), "{filter}");
    }

    #[test]
    fn names_become_fields() {
        let core = "urn:ietf:params:scim:schemas:core:2.0:User";
        let enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
        for (filter, expected) in [
            ("USERNAME eq \"ada\"".to_owned(), "loginName eq \"ada\""),
            (format!("{core}:userName eq \"ada\""), "loginName eq \"ada\""),
            (format!("{core}:name.familyName sw \"L\""), "lastName sw \"L\""),
            (
                "externalId eq \"7\" and not (active eq true)".to_owned(),
                "externalUniqueIdentifier eq \"7\" and not (isUserActive eq true)",
            ),
            (
                "meta.lastModified gt \"2026-01-01T00:00:00Z\"".to_owned(),
                "lastEntry gt \"2026-01-01T00:00:00Z\"",
            ),
        ] {
            check(&USER, Home::Store, &filter, expected);
        }
        check(
            &USER,
            Home::Provider,
            &format!("{enterprise}:department eq \"E\""),
            "organizationalUnit eq \"E\"",
        );
        check(&USER, Home::Provider, &format!("{enterprise}:manager eq \"7\""), "managerId eq \"7\"");
    }

    #[test]
    fn entries_are_found_by_their_keys() {
        check(&USER, Home::Store, "title sw \"C\"", "userProfiles[key eq \"title\" and value sw \"C\"]");
        check(
            &USER,
            Home::Store,
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:costCenter pr",
            "userProfiles[key eq \"costCenter\" and value pr]",
        );
    }

    #[test]
    fn the_mapped_address_is_primary_and_for_work() {
        for (filter, expected) in [
            ("emails.value eq \"a\"", "emailAddress eq \"a\""),
            ("emails eq \"a\"", "emailAddress eq \"a\""),
            ("emails[type eq \"work\"].value eq \"a\"", "emailAddress pr and emailAddress eq \"a\""),
            ("emails[type eq \"work\" and value eq \"a\"]", "emailAddress pr and emailAddress eq \"a\""),
            ("emails[primary eq true]", "emailAddress pr"),
            ("emails.type eq \"work\"", "emailAddress pr"),
            ("emails[type eq \"home\"].value eq \"a\"", "never"),
            ("not (emails[type eq \"home\"])", "always"),
            ("userName eq \"x\" or emails.type eq \"home\"", "loginName eq \"x\""),
        ] {
            check(&USER, Home::Store, filter, expected);
        }
    }

    #[test]
    fn members_are_found_in_their_sets() {
        let id = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
        let both = format!("memberUsers.id eq \"{id}\" or memberGroups.id eq \"{id}\"");
        check(&GROUP, Home::Store, &format!("members.value eq \"{id}\""), &both);
        check(&GROUP, Home::Store, &format!("members[value eq \"{id}\"]"), &both);
        let of_type = format!("members[value eq \"{id}\" and type eq \"User\"]");
        check(&GROUP, Home::Store, &of_type, &format!("memberUsers.id eq \"{id}\""));
        check(&GROUP, Home::Store, "members.type eq \"Group\"", "memberGroups pr");
        let groups = format!("groups.value eq \"{id}\"");
        check(&USER, Home::Store, &groups, &format!("memberOfGroups.id eq \"{id}\""));
        check(&USER, Home::Store, "groups pr", "memberOfGroups pr");
    }

    #[test]
    fn nobody_has_an_id_that_is_none() {
        check(&USER, Home::Store, "id eq \"nobody\"", "never");
        check(&USER, Home::Provider, "id ne \"nobody\"", "always");
        check(&USER, Home::Store, "groups.value eq \"nobody\"", "never");
        check(&USER, Home::Store, "groups.value ne \"nobody\"", "memberOfGroups pr");
        check(&GROUP, Home::Store, "members[value eq \"nobody\"]", "never");
    }

    #[test]
    fn what_is_null_is_what_there_is_not() {
        check(&USER, Home::Store, "groups.value eq null", "not (memberOfGroups pr)");
        check(&GROUP, Home::Store, "members eq null", "not (memberUsers pr or memberGroups pr)");
        check(&USER, Home::Store, "emails.value ne null", "emailAddress pr");
        check(&USER, Home::Store, "title eq null", "not (userProfiles[key eq \"title\" and value pr])");
    }

    #[test]
    fn what_cannot_be_found_is_refused() {
        for filter in [
            "nobody pr",
            "roles.value eq \"x\"",
            "password eq \"x\"",
            "name[givenName pr]",
            "emails[nobody pr]",
            "emails[value[type pr]]",
            "userName",
            "members.display eq \"x\"",
            "groups.primary eq true",
            "title co \"x\"",
            "meta.created pr",
        ] {
            let refusal = condition_of(&USER, Home::Store, filter).unwrap_err();
            assert_eq!(refusal.scim_type, Some(ScimType::InvalidFilter), "{filter}");
        }
    }

    #[test]
    fn some_names_give_an_order() {
        assert_eq!(sort_field(&USER, Home::Store, "username"), Ok("loginName"));
        assert_eq!(sort_field(&USER, Home::Provider, "name.familyName"), Ok("lastName"));
        assert_eq!(sort_field(&USER, Home::Store, "emails.value"), Ok("emailAddress"));
        assert_eq!(sort_field(&GROUP, Home::Store, "displayName"), Ok("name"));
        assert_eq!(sort_field(&USER, Home::Store, "meta.created"), Ok("createdOn"));
        for name in ["title", "displayName", "emails.type", "name", "active", "members"] {
            let refusal = sort_field(&USER, Home::Store, name).unwrap_err();
            assert_eq!(refusal.scim_type, Some(ScimType::InvalidValue), "{name}");
        }
    }
}
