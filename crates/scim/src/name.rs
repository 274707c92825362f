//! Names of attributes, and paths of a PATCH: `name.familyName`, `emails[type eq "work"].value`, each also
//! behind its schema's URN and a colon.

use chancery_resource::{Expression, parse_filter};

use crate::{Attribute, Home, Refusal, ResourceType, Schema, ScimType};

/// The longest path, in bytes.
const MAX_PATH_BYTES: usize = 8192;

/// What a name or a path names.
#[derive(Clone, Debug)]
pub struct Target {
    /// The attribute's schema.
    pub schema: &'static Schema,
    /// The attribute.
    pub attribute: &'static Attribute,
    /// Which of its elements.
    pub filter: Option<Expression>,
    /// Which of its parts.
    pub part: Option<&'static Attribute>,
}

impl Target {
    /// The attribute that is written: the part, where there is one.
    pub fn leaf(&self) -> &'static Attribute {
        self.part.unwrap_or(self.attribute)
    }
}

/// The schema whose URN begins the text, and the rest: without a URN the core schema and the whole text.
pub fn split_urn<'a>(of: &ResourceType, text: &'a str) -> (&'static Schema, &'a str) {
    let behind = |schema: &Schema| {
        let (urn, rest) = text.split_at_checked(schema.urn.len())?;
        let rest = if rest.is_empty() { rest } else { rest.strip_prefix(':')? };
        urn.eq_ignore_ascii_case(schema.urn).then_some(rest)
    };
    of.schemas().find_map(|schema| behind(schema).map(|rest| (schema, rest))).unwrap_or((of.core, text))
}

/// What a name without a filter names; `None` where the home has no such attribute.
pub fn find(of: &ResourceType, home: Home, text: &str) -> Option<Target> {
    let (schema, name) = split_urn(of, text);
    let (name, part) = name.split_once('.').map_or((name, None), |(name, part)| (name, Some(part)));
    let attribute = of.find(schema, home, name)?;
    let part = match part {
        Some(part) => Some(attribute.part(home, part)?),
        None => None,
    };
    Some(Target { schema, attribute, filter: None, part })
}

/// Reads a path.
///
/// # Errors
/// A path that names nothing, or whose filter cannot be read.
pub fn read_path(of: &ResourceType, home: Home, path: &str) -> Result<Target, Refusal> {
    let unknown = || {
        let detail = format!("{} has no attribute at this path: {}", of.name, shortened(path));
        Refusal::wrong(ScimType::InvalidPath, detail)
    };
    if path.len() > MAX_PATH_BYTES {
        return Err(unknown());
    }
    let Some((name, rest)) = path.trim().split_once('[') else {
        return find(of, home, path.trim()).ok_or_else(unknown);
    };
    let end = filter_end(rest).ok_or_else(unknown)?;
    let (filter, rest) = (rest.get(..end).unwrap_or_default(), rest.get(end + 1..).unwrap_or_default());
    let target = find(of, home, name).filter(|target| target.part.is_none()).ok_or_else(unknown)?;
    if !target.attribute.many {
        let detail = format!("{} has one value: a filter has nothing to choose from", target.attribute.name);
        return Err(Refusal::wrong(ScimType::InvalidPath, detail));
    }
    let part = match rest.strip_prefix('.') {
        Some(part) => Some(target.attribute.part(home, part).ok_or_else(unknown)?),
        None if rest.is_empty() => None,
        None => return Err(unknown()),
    };
    let filter =
        parse_filter(filter).map_err(|problem| Refusal::wrong(ScimType::InvalidFilter, problem.detail))?;
    Ok(Target { filter: Some(filter), part, ..target })
}

/// Where the bracket that is open closes, outside of strings.
fn filter_end(text: &str) -> Option<usize> {
    let (mut in_string, mut escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            ']' if !in_string => return Some(at),
            _ => {}
        }
    }
    None
}

/// The beginning of a text, for sentences.
fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::read_path;
    use crate::{GROUP, Home, ScimType, USER};

    /// Schema, attribute, part, and whether there is a filter.
    fn named(path: &str) -> Option<(&'static str, &'static str, Option<&'static str>, bool)> {
        let target = read_path(&USER, Home::Store, path).ok()?;
        let part = target.part.map(|part| part.name);
        Some((target.schema.name, target.attribute.name, part, target.filter.is_some()))
    }

    #[test]
    fn names_are_read_in_any_case_and_with_their_urn() {
        assert_eq!(named("USERNAME"), Some(("User", "userName", None, false)));
        assert_eq!(named("name.familyname"), Some(("User", "name", Some("familyName"), false)));
        let core = "URN:ietf:params:scim:schemas:core:2.0:user:name.givenName";
        assert_eq!(named(core), Some(("User", "name", Some("givenName"), false)));
        let urn = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
        let department = format!("{urn}:Department");
        assert_eq!(named(&department), Some(("EnterpriseUser", "department", None, false)));
        let manager = format!("{urn}:manager.value");
        assert_eq!(named(&manager), Some(("EnterpriseUser", "manager", Some("value"), false)));
    }

    #[test]
    fn filters_choose_elements() {
        let work = Some(("User", "emails", Some("value"), true));
        assert_eq!(named(r#"emails[type eq "work"].value"#), work);
        assert_eq!(named(r#"emails[value eq "a]\"b"]"#), Some(("User", "emails", None, true)));
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for path in [
            "",
            "nobody",
            "name.nobody",
            "emails[type eq \"work\"",
            "emails[type pr]x",
            "department",
            "a.b.c",
        ] {
            let refusal = read_path(&USER, Home::Store, path).unwrap_err();
            assert_eq!(refusal.scim_type, Some(ScimType::InvalidPath), "{path}");
        }
        let refusal = read_path(&USER, Home::Store, "name[givenName pr]").unwrap_err();
        assert_eq!(refusal.scim_type, Some(ScimType::InvalidPath));
        let refusal = read_path(&USER, Home::Store, "emails[type is 1]").unwrap_err();
        assert_eq!(refusal.scim_type, Some(ScimType::InvalidFilter));
    }

    #[test]
    fn each_home_knows_its_own_attributes() {
        let title = |home| read_path(&USER, home, "title").unwrap().attribute.is_ignored(home);
        assert!(title(Home::Provider) && !title(Home::Store), "what only stores keep is ignored elsewhere");
        assert!(read_path(&GROUP, Home::Provider, "members").is_ok());
    }
}
