//! Version 1 of both services: its representations, its patches, and its deprecation.

mod custom_operations;
mod deprecation;
mod equivalence;
mod management;
mod migration_guide;
mod patch;
mod rights;
mod users;

use serde_json::{Value, json};

/// The id of no row.
pub const UNKNOWN_ID: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
/// The base of the management service.
pub const BASE: &str = "/api/management/v1";

/// A path of the default store's administration.
pub fn at(rest: &str) -> String {
    format!("/api/userstore/v1/default/administration{rest}")
}

/// An array of links in a body.
pub fn ids(items: &[&Value]) -> Value {
    items.iter().map(|item| json!({ "id": item["id"] })).collect()
}

/// The names in an array of links, sorted.
pub fn names(set: &Value) -> Vec<&str> {
    let mut names = crate::each(set, "name");
    names.sort_unstable();
    names
}
