//! Existing users and groups that a file refers to.

use std::collections::HashMap;

use chancery_record::fold;
use chancery_resource::Problem;
use chancery_userstore::group::GROUP;
use serde_json::Value;

use super::plan::Table;
use crate::{
    pages::batch_lookup::{ReadOptions, rows_by},
    shell::{
        directory::{self, Resource},
        visit::Visit,
    },
};

/// Existing users and groups.
#[derive(Default)]
pub struct Existing {
    /// Users, by folded login name.
    pub people: HashMap<String, Value>,
    /// The ids of groups, by folded name.
    pub groups: HashMap<String, String>,
}

/// Looks up the users and groups that a file refers to.
pub async fn find(
    visit: &Visit<'_>,
    resource: &'static Resource,
    table: &Table,
) -> Result<Existing, Problem> {
    let mut existing = Existing::default();
    let list = visit.require(resource.list)?;
    let reading = ReadOptions { is_whole: table.has_groups(), ..ReadOptions::default() };
    let logins: Vec<&str> = table.logins().collect();
    for row in rows_by(visit, list, "loginName", &logins, reading).await? {
        existing.people.insert(fold(&text(&row, "loginName")), row);
    }
    if table.has_groups() {
        let groups = directory::of_shape(&GROUP).and_then(|groups| groups.list);
        let names: Vec<&str> = table.group_names().into_iter().collect();
        let list = visit.require(groups)?;
        for row in rows_by(visit, list, "name", &names, ReadOptions::default()).await? {
            existing.groups.insert(fold(&text(&row, "name")), text(&row, "id"));
        }
    }
    Ok(existing)
}

/// A member of a row.
pub fn text(row: &Value, member: &str) -> String {
    row[member].as_str().unwrap_or_default().to_owned()
}
