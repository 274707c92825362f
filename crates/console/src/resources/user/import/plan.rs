//! The plan of an import: new, changed and unchanged users, and errors.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chancery_record::{Field, fold};
use chancery_resource::{MAX_BATCH, Problem};
use serde_json::{Map, Value, json};

use super::{
    cells,
    columns::{self, Column},
    csv::{self, Record},
    existing::{Existing, text},
};
use crate::{
    pages::form::fresh_id,
    shell::{directory::Resource, visit::Visit, words::Words},
};

/// Maximum number of groups in a file.
pub const MAX_GROUPS: usize = 200;

/// An error in a cell.
pub struct CellError {
    /// Its line in the file.
    pub line: usize,
    /// Its column.
    pub column: String,
    /// Its text.
    pub cell: String,
    /// The error message.
    pub what: String,
}

/// A row that causes a change.
pub struct Planned {
    /// Its line in the file.
    pub line: usize,
    /// The login name.
    pub login: String,
    /// The body of the user; `None` if only memberships change.
    pub body: Option<Map<String, Value>>,
}

/// The plan of an import.
#[derive(Default)]
pub struct Plan {
    /// New users.
    pub new: Vec<Planned>,
    /// Changed users.
    pub changed: Vec<Planned>,
    /// Number of unchanged users.
    pub same: usize,
    /// Errors.
    pub wrong: Vec<CellError>,
    /// Headings of ignored columns.
    pub left_out: Vec<String>,
    /// The users to add to groups, by group id.
    pub joined: BTreeMap<String, Vec<String>>,
}

/// A parsed file.
pub struct Table {
    columns: Vec<(String, Column)>,
    rows: Vec<Record>,
}

impl Table {
    /// Parses a file.
    ///
    /// # Errors
    /// The file is no table, lacks login names, has a duplicate column, or has too many rows.
    pub fn read(words: &Words, resource: &Resource, text: &str) -> Result<Self, Problem> {
        let say = |key: &str, what: &str| Problem::invalid(words.page(key).replace("{n}", what));
        let mut rows = csv::read(text).map_err(|line| say("import_quotes", &line.to_string()))?;
        if rows.len() < 2 {
            return Err(say("import_empty", ""));
        }
        let head = rows.remove(0);
        if rows.len() > MAX_BATCH {
            return Err(say("import_bound", &MAX_BATCH.to_string()));
        }
        let columns: Vec<(String, Column)> = head
            .cells
            .into_iter()
            .map(|heading| {
                let column = columns::of(resource, &heading);
                (heading, column)
            })
            .collect();
        let mut seen = BTreeSet::new();
        for (heading, column) in &columns {
            let name = match column {
                Column::Field(field) => field.wire(),
                Column::Groups => "groups",
                Column::Unknown => continue,
            };
            if !seen.insert(name) {
                return Err(say("import_twice", heading));
            }
        }
        if !seen.contains("loginName") {
            return Err(say("import_no_login", &words.field("loginName")));
        }
        Ok(Self { columns, rows })
    }

    /// Whether a column contains groups.
    pub fn has_groups(&self) -> bool {
        self.columns.iter().any(|(_, column)| matches!(column, Column::Groups))
    }

    /// The non-empty cells of a row, with their columns.
    fn cells<'a>(&'a self, row: &'a Record) -> impl Iterator<Item = (&'a str, Column, &'a str)> {
        let filled = self.columns.iter().zip(&row.cells).filter(|(_, cell)| !cell.is_empty());
        filled.map(|((heading, column), cell)| (heading.as_str(), *column, cell.as_str()))
    }

    fn login<'a>(&'a self, row: &'a Record) -> &'a str {
        let is_it = |column: Column| matches!(column, Column::Field(field) if field.wire() == "loginName");
        self.cells(row).find(|(_, column, _)| is_it(*column)).map_or("", |(.., cell)| cell)
    }

    /// The login names of all rows.
    pub fn logins(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| self.login(row)).filter(|login| !login.is_empty())
    }

    /// The names of groups in all rows.
    pub fn group_names(&self) -> BTreeSet<&str> {
        let cells = self.rows.iter().flat_map(|row| self.cells(row));
        let named = cells.filter(|(_, column, _)| matches!(column, Column::Groups));
        named.flat_map(|(.., cell)| cells::groups(cell)).collect()
    }

    /// The changes to the existing users and groups.
    pub fn plan(&self, visit: &Visit<'_>, resource: &Resource, existing: &Existing) -> Plan {
        let mut plan = Plan::default();
        let unknown = self
            .columns
            .iter()
            .filter(|(heading, column)| matches!(column, Column::Unknown) && !heading.is_empty());
        plan.left_out = unknown.map(|(heading, _)| heading.clone()).collect();
        let mut seen: HashMap<String, usize> = HashMap::new();
        for row in &self.rows {
            let login = self.login(row);
            let before = if login.is_empty() { None } else { seen.insert(fold(login), row.line) };
            let what = match before {
                Some(line) => visit.words.page("import_again").replace("{n}", &line.to_string()),
                None if login.is_empty() => visit.words.page("import_no_name").to_owned(),
                None if row.cells.len() > self.columns.len() => visit.words.page("import_wide").to_owned(),
                None => {
                    self.plan_row(visit.words, resource, row, existing, &mut plan);
                    continue;
                }
            };
            let column = visit.words.field("loginName");
            plan.wrong.push(CellError { line: row.line, column, cell: login.to_owned(), what });
        }
        plan
    }

    fn plan_row(
        &self,
        words: &Words,
        resource: &Resource,
        row: &Record,
        existing: &Existing,
        plan: &mut Plan,
    ) {
        let was = existing.people.get(&fold(self.login(row)));
        let mut values: Vec<(&'static Field, Value)> = Vec::new();
        let mut groups: Vec<&String> = Vec::new();
        let before = plan.wrong.len();
        for (heading, column, cell) in self.cells(row) {
            let mut refuse = |key: &str, cell: &str| {
                let what = words.page(key).to_owned();
                plan.wrong.push(CellError {
                    line: row.line,
                    column: heading.to_owned(),
                    cell: cell.to_owned(),
                    what,
                });
            };
            match column {
                Column::Field(field) => match cells::value(field, cell) {
                    Some(value) => values.push((field, value)),
                    None => refuse("import_no_value", cell),
                },
                Column::Groups => {
                    for name in cells::groups(cell) {
                        match existing.groups.get(&fold(name)) {
                            Some(id) => groups.push(id),
                            None => refuse("import_no_group", name),
                        }
                    }
                }
                Column::Unknown => {}
            }
        }
        if plan.wrong.len() > before {
            return;
        }
        let id = was.map_or_else(fresh_id, |was| text(was, "id"));
        let joins: Vec<&String> = groups.into_iter().filter(|group| !is_member(was, group)).collect();
        let body = body(resource, was, &values, &id);
        let is_changed = body.is_some() || !joins.is_empty();
        for group in joins {
            let members = plan.joined.entry(group.clone()).or_default();
            if !members.contains(&id) {
                members.push(id.clone());
            }
        }
        let planned = Planned { line: row.line, login: self.login(row).to_owned(), body };
        match was {
            None => plan.new.push(planned),
            Some(_) if is_changed => plan.changed.push(planned),
            Some(_) => plan.same += 1,
        }
    }
}

fn is_member(was: Option<&Value>, group: &str) -> bool {
    let groups = was.and_then(|was| was["memberOfGroups"].as_array());
    groups.is_some_and(|groups| groups.iter().any(|one| one["id"] == json!(group)))
}

/// The body of a user with the values of the file; `None` if nothing changes.
fn body(
    resource: &Resource,
    was: Option<&Value>,
    values: &[(&'static Field, Value)],
    id: &str,
) -> Option<Map<String, Value>> {
    let mut body = Map::new();
    if let Some(was) = was {
        let differs = |(field, value): &(&Field, Value)| was[field.wire()] != *value;
        if !values.iter().any(differs) {
            return None;
        }
        let own = columns::fields(resource).map(|field| (field.wire().to_owned(), was[field.wire()].clone()));
        body.extend(own);
        body.insert("concurrencyToken".to_owned(), was["concurrencyToken"].clone());
        // the confirmation belongs to the previous address
        for (address, confirmed) in
            [("emailAddress", "emailAddressConfirmed"), ("phoneNumber", "phoneNumberConfirmed")]
        {
            if values.iter().any(|one| one.0.wire() == address && differs(one)) {
                body.remove(confirmed);
            }
        }
    }
    body.extend(values.iter().map(|(field, value)| (field.wire().to_owned(), value.clone())));
    body.insert("id".to_owned(), json!(id));
    Some(body)
}
