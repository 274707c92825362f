//! Version 1 of both services: its forms, its patches, and that it is on its way out.

mod deprecation;
mod management;
mod migrating;
mod patch;
mod rights;
mod rows;
mod sameness;
mod users;

use serde_json::{Value, json};

/// An id that nobody has.
pub const NOBODY: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
/// The base of the management service.
pub const BASE: &str = "/api/management/v1";

/// A path of the default store's administration.
pub fn at(rest: &str) -> String {
    format!("/api/userstore/v1/default/administration{rest}")
}

/// A set as a body lists it.
pub fn ids(items: &[&Value]) -> Value {
    items.iter().map(|item| json!({ "id": item["id"] })).collect()
}

/// The names in a set, in order of the alphabet.
pub fn names(set: &Value) -> Vec<&str> {
    let mut names = crate::each(set, "name");
    names.sort_unstable();
    names
}
