//! The plan of a shape: statements and labels that are derived from it once.

use chancery_record::{Column, Field, Sealing};

use crate::{Personal, Shape};

/// The expression of the key of an entry's person, and the joins that find it. Persons of a user
/// store have entries in its trail, others in that of the configuration.
pub fn join_persons(persons: &[&Shape]) -> (String, String) {
    let (mut keys, mut joins) = (Vec::new(), String::new());
    for (number, person) in persons.iter().enumerate() {
        let Personal::Is(key) = person.personal else { continue };
        let trail = if person.reach.is_store() { format!("p{number}.store") } else { "0".to_owned() };
        keys.push(format!("p{number}.{}", key.column));
        let condition = format!(" p{number} ON t.store = {trail} AND p{number}.id = t.person");
        joins.extend([" LEFT JOIN ", person.table, &condition]);
    }
    (format!("COALESCE({}, NULL)", keys.join(", ")), joins)
}

/// The plan of a shape: statements and labels that are derived from it once.
pub struct Plan {
    /// `SELECT t.rid, t.a, t.b FROM table t WHERE `
    pub select: String,
    /// For each field, `"name":` as it is written; empty when the field is not shown.
    pub labels: Vec<String>,
    /// For each relation, `,"name":[`, or `,"name":` where it shows at most one.
    pub array_labels: Vec<String>,
    /// The index of the key among the fields.
    pub key: usize,
    /// The column of the key in `select`.
    pub key_column: Option<usize>,
    /// For an audit entry, the columns of `select` with its person and that person's key.
    pub person_columns: (usize, usize),
    /// The index of the concurrency token among the fields, if there is one.
    pub token: Option<usize>,
    /// The column of `select` with the number of the row's last audit entry; `None` where rows are entries
    /// themselves.
    pub last_entry_column: Option<usize>,
    /// The insert statement; its last parameter is the number of the row's first audit entry.
    pub insert: String,
    /// Whether fields are encrypted under the master key.
    pub seals: bool,
}

impl Plan {
    pub fn of(shape: &Shape) -> Self {
        let own = || shape.fields.iter().filter(|field| field.access.column == Column::Own);
        let read = || shape.fields.iter().filter(|field| field.access.column.is_read());
        let columns: Vec<String> = read().map(|field| format!("t.{}", field.column)).collect();
        let labels = shape
            .fields
            .iter()
            .map(|field| if field.access.shown { format!("\"{}\":", field.wire()) } else { String::new() });
        let mut insert: Vec<String> = Vec::new();
        if shape.reach.is_store() {
            insert.push("store".into());
        }
        insert.extend(shape.owner.map(|owner| owner.column.to_owned()));
        insert.extend(own().map(|field| field.column.to_owned()));
        insert.extend(own().filter(|field| field.access.folded).map(|field| format!("{}_key", field.column)));
        let (more, join) = match shape.personal {
            Personal::AuditOf(persons) => {
                let (key, joins) = join_persons(persons);
                (format!(", t.person, {key}"), joins)
            }
            _ => (String::new(), String::new()),
        };
        let is_entry = matches!(shape.personal, Personal::AuditOf(_));
        let last_entry = if is_entry { "" } else { ", t.last_entry" };
        insert.extend((!is_entry).then(|| "last_entry".to_owned()));
        let marks: Vec<String> = (1..=insert.len()).map(|number| format!("?{number}")).collect();
        Self {
            select: format!(
                "SELECT t.rid, {}{last_entry}{more} FROM {} t{join} WHERE ",
                columns.join(", "),
                shape.source()
            ),
            key_column: read().position(|field| field.access.key).map(|index| index + 1),
            person_columns: (columns.len() + 1, columns.len() + 2),
            last_entry_column: (!is_entry).then_some(columns.len() + 1),
            labels: labels.collect(),
            array_labels: shape
                .relations
                .iter()
                .map(|relation| format!(",\"{}\":{}", relation.name, if relation.single { "" } else { "[" }))
                .collect(),
            key: shape.fields.iter().position(|field| field.access.key).unwrap_or(0),
            token: shape.fields.iter().position(Field::is_token),
            seals: shape.fields.iter().any(|field| field.access.sealing == Sealing::Secret),
            insert: format!(
                "INSERT INTO {} ({}) VALUES ({})",
                shape.table,
                insert.join(", "),
                marks.join(", ")
            ),
        }
    }
}
