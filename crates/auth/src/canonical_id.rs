//! Ids in their canonical form.

use uuid::Uuid;

/// Parses an id in its canonical form. Clients compare `aud` and `iss` letter by letter, so another spelling is another
/// id.
pub fn canonical_id(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|id| id.to_string() == text)
}
