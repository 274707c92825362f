//! Reading JSON strictly: duplicate members, excessive depth and invalid text are refused.

use std::{cell::Cell, collections::HashSet, fmt};

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::shortened;

/// The maximum depth of JSON.
pub const MAX_DEPTH: usize = 32;
/// The maximum number of values of one text, where no other bound is given: each takes some hundred bytes.
pub const MAX_VALUES: usize = 1_000_000;

/// A JSON value. An object keeps the order of its members and has each name once.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number. No field accepts one, so its digits are not stored.
    Number,
    /// A string.
    Text(String),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The member of an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// The same value as JSON text without white space; `None` where it contains a number that is not whole,
    /// whose digits are not stored.
    pub fn to_text(&self) -> Option<String> {
        fn is_exact(json: &Json) -> bool {
            match json {
                Json::Number => false,
                Json::Array(items) => items.iter().all(is_exact),
                Json::Object(members) => members.iter().all(|(_, value)| is_exact(value)),
                Json::Null | Json::Bool(_) | Json::Int(_) | Json::Text(_) => true,
            }
        }
        is_exact(self).then(|| self.to_serde().to_string())
    }

    /// The same value for libraries that use `serde_json`'s; a number that is not whole becomes null.
    pub fn to_serde(&self) -> serde_json::Value {
        match self {
            Self::Null | Self::Number => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Text(text) => text.as_str().into(),
            Self::Array(items) => items.iter().map(Self::to_serde).collect(),
            Self::Object(members) => {
                members.iter().map(|(name, value)| (name.clone(), value.to_serde())).collect()
            }
        }
    }

    /// Converts a value that a library returned.
    pub fn from_serde(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::Number(number) => number.as_i64().map_or(Self::Number, Self::Int),
            serde_json::Value::String(text) => Self::Text(text),
            serde_json::Value::Array(items) => Self::Array(items.into_iter().map(Self::from_serde).collect()),
            serde_json::Value::Object(members) => Self::Object(
                members.into_iter().map(|(name, value)| (name, Self::from_serde(value))).collect(),
            ),
        }
    }

    /// The type of the value, as a word for people.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a truth value",
            Self::Int(_) => "a whole number",
            Self::Number => "a number",
            Self::Text(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// The reason why a text is refused as JSON, with line and column.
#[derive(Debug, PartialEq, Eq)]
pub struct JsonError(pub String);

/// Reads one JSON text.
///
/// # Errors
/// Malformed JSON, a member twice, more than [`MAX_DEPTH`] levels or [`MAX_VALUES`] values, unpaired
/// surrogates.
pub fn read_json(bytes: &[u8]) -> Result<Json, JsonError> {
    read_json_within(bytes, MAX_VALUES)
}

/// Reads one JSON text of at most `most` values.
///
/// # Errors
/// As [`read_json`].
pub fn read_json_within(bytes: &[u8], most: usize) -> Result<Json, JsonError> {
    let (mut reader, left) = (serde_json::Deserializer::from_slice(bytes), Cell::new(most));
    let level = Level { depth: 0, most, left: &left };
    let json = level.deserialize(&mut reader).map_err(|error| JsonError(error.to_string()))?;
    reader.end().map_err(|error| JsonError(error.to_string()))?;
    Ok(json)
}

#[derive(Clone, Copy)]
struct Level<'a> {
    depth: usize,
    most: usize,
    /// The remaining number of values.
    left: &'a Cell<usize>,
}

impl Level<'_> {
    fn nested<E: de::Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format_args!("nested more than {MAX_DEPTH} levels deep")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    fn count<E: de::Error>(self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.ok_or_else(|| E::custom(format_args!("more than {} values", self.most)))?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = Json;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(i64::try_from(value).map_or(Json::Number, Json::Int))
    }
    #[expect(clippy::cast_possible_truncation, reason = "exact: whole and within 2^53")]
    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        // 1.0 and 1e3 are whole numbers to JSON Schema and to most clients
        let whole = value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0;
        Ok(if whole { Json::Int(value as i64) } else { Json::Number })
    }
    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let level = self.nested()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(level)? {
            self.count()?;
            array.push(item);
        }
        Ok(Json::Array(array))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let level = self.nested()?;
        let mut object: Vec<(String, Json)> = Vec::new();
        while let Some(name) = members.next_key::<String>()? {
            self.count()?;
            object.push((name, members.next_value_seed(level)?));
        }
        match twice(&object) {
            Some(name) => Err(de::Error::custom(format_args!("member {:?} is there twice", shortened(name)))),
            None => Ok(Json::Object(object)),
        }
    }
}

/// A name that occurs twice in an object.
fn twice(object: &[(String, Json)]) -> Option<&str> {
    let names = || object.iter().map(|(name, _)| name.as_str());
    if object.len() <= 32 {
        return names()
            .enumerate()
            .find(|(at, name)| names().take(*at).any(|seen| seen == *name))
            .map(|(_, name)| name);
    }
    let mut seen = HashSet::with_capacity(object.len());
    names().find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use super::{Json, read_json, read_json_within};

    fn problem(text: &str) -> String {
        read_json(text.as_bytes()).unwrap_err().0
    }

    #[test]
    fn reads_values() {
        assert_eq!(
            read_json(b"[1, 1.0, 1.5, true]").unwrap(),
            Json::Array(vec![Json::Int(1), Json::Int(1), Json::Number, Json::Bool(true)])
        );
    }

    /// A1: the memory of a body is limited by a bound, not by the body.
    #[test]
    fn values_are_counted() {
        assert!(read_json_within(b"[{\"a\": [1]}, 2]", 4).is_ok());
        let refused = read_json_within(b"[{\"a\": [1]}, 2]", 3).unwrap_err();
        assert!(refused.0.contains("more than 3 values"), "{refused:?}");
        let long = "n".repeat(100_000);
        assert!(problem(&format!("{{\"{long}\": 1, \"{long}\": 2}}")).len() < 500);
    }

    #[test]
    fn refuses_ambiguous_json() {
        assert!(problem(r#"{"a": 1, "a": 2}"#).contains("\"a\" is there twice"));
        let many: Vec<String> = (0..40).map(|n| format!("\"m{n}\": 1")).collect();
        assert!(problem(&format!("{{{}, \"m3\": 2}}", many.join(","))).contains("twice"));
        assert!(problem(&"[".repeat(100)).contains("nested more than"));
        assert!(read_json(br#""\ud800""#).is_err());
        assert!(problem("{} {}").contains("trailing"));
        assert!(!problem("").is_empty());
        assert!(read_json(b"\"\xff\"").is_err());
    }
}
