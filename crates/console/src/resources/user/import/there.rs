//! Who and what a file names, as far as it is there.

use std::collections::HashMap;

use chancery_record::fold;
use chancery_resource::Problem;
use chancery_userstore::group::GROUP;
use serde_json::Value;

use super::plan::Table;
use crate::{
    pages::look_up::{Reading, rows_by},
    shell::{
        directory::{self, Resource},
        visit::Visit,
    },
};

/// Who and what is there.
#[derive(Default)]
pub struct There {
    /// People, by login names as they are compared.
    pub people: HashMap<String, Value>,
    /// The ids of groups, by names as they are compared.
    pub groups: HashMap<String, String>,
}

/// Finds who and what a file names.
///
/// # Errors
/// The operations' own.
pub async fn find(visit: &Visit<'_>, resource: &'static Resource, table: &Table) -> Result<There, Problem> {
    let mut there = There::default();
    let list = visit.need(resource.list)?;
    let reading = Reading { is_whole: table.has_groups(), ..Reading::default() };
    let logins: Vec<&str> = table.logins().collect();
    for row in rows_by(visit, (list, "loginName"), &logins, reading).await? {
        there.people.insert(fold(&text(&row, "loginName")), row);
    }
    if table.has_groups() {
        let groups = directory::of_shape(&GROUP).and_then(|groups| groups.list);
        let names: Vec<&str> = table.group_names().into_iter().collect();
        let list = (visit.need(groups)?, "name");
        for row in rows_by(visit, list, &names, Reading::default()).await? {
            there.groups.insert(fold(&text(&row, "name")), text(&row, "id"));
        }
    }
    Ok(there)
}

/// A member of a row.
pub fn text(row: &Value, member: &str) -> String {
    row[member].as_str().unwrap_or_default().to_owned()
}
