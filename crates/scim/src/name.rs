//! Attribute names and PATCH paths (RFC 7644, section 3.10): `name.familyName`, `emails[type eq "work"].value`, each also
//! with its schema's URN and a colon in front.

use chancery_resource::{Expression, parse_filter};

use crate::{Attribute, ResourceType, Schema, ScimError, ScimType, Target};

/// The longest path, in bytes.
const MAX_PATH_BYTES: usize = 8192;

/// A parsed attribute name or path.
#[derive(Clone, Debug)]
pub struct AttributePath {
    /// The attribute's schema.
    pub schema: &'static Schema,
    /// The attribute.
    pub attribute: &'static Attribute,
    /// The filter that selects elements.
    pub filter: Option<Expression>,
    /// The sub-attribute.
    pub part: Option<&'static Attribute>,
}

impl AttributePath {
    /// The attribute that is written: the sub-attribute, if there is one.
    pub fn leaf(&self) -> &'static Attribute {
        self.part.unwrap_or(self.attribute)
    }
}

/// Splits a schema's URN off the text; without a URN the core schema and the whole text.
pub fn split_urn<'a>(of: &ResourceType, text: &'a str) -> (&'static Schema, &'a str) {
    let after_urn = |schema: &Schema| {
        let (urn, rest) = text.split_at_checked(schema.urn.len())?;
        let rest = if rest.is_empty() { rest } else { rest.strip_prefix(':')? };
        urn.eq_ignore_ascii_case(schema.urn).then_some(rest)
    };
    of.schemas().find_map(|schema| after_urn(schema).map(|rest| (schema, rest))).unwrap_or((of.core, text))
}

/// Resolves a name without a filter; `None` if the target has no such attribute.
pub fn find(of: &ResourceType, target: Target, text: &str) -> Option<AttributePath> {
    let (schema, name) = split_urn(of, text);
    let (name, part) = name.split_once('.').map_or((name, None), |(name, part)| (name, Some(part)));
    let attribute = of.find(schema, target, name)?;
    let part = match part {
        Some(part) => Some(attribute.part(target, part)?),
        None => None,
    };
    Some(AttributePath { schema, attribute, filter: None, part })
}

/// Parses a PATCH path.
///
/// # Errors
/// An unknown attribute, or a filter that cannot be parsed.
pub fn read_path(of: &ResourceType, target: Target, path: &str) -> Result<AttributePath, ScimError> {
    let unknown = || {
        let detail = format!("{} has no attribute at this path: {}", of.name, shortened(path));
        ScimError::new(ScimType::InvalidPath, detail)
    };
    if path.len() > MAX_PATH_BYTES {
        return Err(unknown());
    }
    let Some((name, rest)) = path.trim().split_once('[') else {
        return find(of, target, path.trim()).ok_or_else(unknown);
    };
    let end = filter_end(rest).ok_or_else(unknown)?;
    let (filter, rest) = (rest.get(..end).unwrap_or_default(), rest.get(end + 1..).unwrap_or_default());
    let path = find(of, target, name).filter(|path| path.part.is_none()).ok_or_else(unknown)?;
    if !path.attribute.many {
        let detail = format!("{} has one value: a filter has nothing to choose from", path.attribute.name);
        return Err(ScimError::new(ScimType::InvalidPath, detail));
    }
    let part = match rest.strip_prefix('.') {
        Some(part) => Some(path.attribute.part(target, part).ok_or_else(unknown)?),
        None if rest.is_empty() => None,
        None => return Err(unknown()),
    };
    let filter =
        parse_filter(filter).map_err(|problem| ScimError::new(ScimType::InvalidFilter, problem.detail))?;
    Ok(AttributePath { filter: Some(filter), part, ..path })
}

/// The position of the closing bracket, outside of strings.
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
    use crate::{GROUP, ScimType, Target, USER};

    /// Schema, attribute, part, and whether there is a filter.
    fn named(path: &str) -> Option<(&'static str, &'static str, Option<&'static str>, bool)> {
        let path = read_path(&USER, Target::Store, path).ok()?;
        let part = path.part.map(|part| part.name);
        Some((path.schema.name, path.attribute.name, part, path.filter.is_some()))
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
    fn unknown_paths_are_rejected() {
        for path in [
            "",
            "nobody",
            "name.nobody",
            "emails[type eq \"work\"",
            "emails[type pr]x",
            "department",
            "a.b.c",
        ] {
            let error = read_path(&USER, Target::Store, path).unwrap_err();
            assert_eq!(error.scim_type, Some(ScimType::InvalidPath), "{path}");
        }
        let error = read_path(&USER, Target::Store, "name[givenName pr]").unwrap_err();
        assert_eq!(error.scim_type, Some(ScimType::InvalidPath));
        let error = read_path(&USER, Target::Store, "emails[type is 1]").unwrap_err();
        assert_eq!(error.scim_type, Some(ScimType::InvalidFilter));
    }

    #[test]
    fn each_target_has_its_own_attributes() {
        let title = |target| read_path(&USER, target, "title").unwrap().attribute.is_ignored(target);
        assert!(
            title(Target::Provider) && !title(Target::Store),
            "what only stores keep is ignored elsewhere"
        );
        assert!(read_path(&GROUP, Target::Provider, "members").is_ok());
    }
}
