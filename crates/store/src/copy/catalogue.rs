//! The tables of a database with their columns, keys and references, from the catalogue of either engine.

use std::collections::BTreeMap;

use chancery_record::Value;

use crate::{Error, Tx};

/// A table of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<String>,
    /// The positions of its primary key among the columns; empty if it has no key.
    pub(super) key: Vec<usize>,
    /// The last generated row number, if the database generates row numbers and never reuses them.
    pub last_number: Option<i64>,
    /// The tables that its foreign keys reference.
    parents: Vec<String>,
}

impl Table {
    /// The key of a row; `None` if the table has none.
    pub(super) fn key_of(&self, row: &[Value]) -> Option<Vec<Value>> {
        let key: Vec<Value> = self.key.iter().filter_map(|at| row.get(*at).cloned()).collect();
        (!key.is_empty()).then_some(key)
    }
}

const SQLITE_TABLES: &str =
    "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name";
const POSTGRES_TABLES: &str = "SELECT relname::TEXT FROM pg_class WHERE relkind = 'r' \
    AND relnamespace = current_schema()::regnamespace ORDER BY relname";
const SQLITE_KEY: &str = "SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk";
const POSTGRES_KEY: &str = "SELECT a.attname::TEXT FROM pg_index i \
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place) \
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
    WHERE i.indrelid = to_regclass(?1) AND i.indisprimary ORDER BY k.place";
const SQLITE_PARENTS: &str = "SELECT \"table\" FROM pragma_foreign_key_list(?1)";
const POSTGRES_PARENTS: &str = "SELECT c.relname::TEXT FROM pg_constraint f JOIN pg_class c ON c.oid = f.confrelid \
    WHERE f.conrelid = to_regclass(?1) AND f.contype = 'f'";
/// The sequence that generates the row numbers of a table.
const POSTGRES_SEQUENCE: &str = "SELECT pg_get_serial_sequence(?1, attname::TEXT) FROM pg_attribute \
    WHERE attrelid = to_regclass(?1) AND attidentity <> ''";

/// All tables of the schema, each after the tables that it references.
///
/// # Errors
/// The database's; tables that reference each other in a cycle.
pub fn tables(tx: &mut Tx<'_>) -> Result<Vec<Table>, Error> {
    let is_sqlite = tx.answers_at_once();
    let names = texts(tx, if is_sqlite { SQLITE_TABLES } else { POSTGRES_TABLES }, &[])?;
    let mut remaining = BTreeMap::new();
    for name in names {
        let parameters = [Value::from(name.as_str())];
        let columns = tx.columns(&name)?;
        let key = texts(tx, if is_sqlite { SQLITE_KEY } else { POSTGRES_KEY }, &parameters)?;
        let key = key.iter().filter_map(|part| columns.iter().position(|column| column == part)).collect();
        let parents = texts(tx, if is_sqlite { SQLITE_PARENTS } else { POSTGRES_PARENTS }, &parameters)?;
        let last_number = last_number(tx, &name)?;
        remaining.insert(name.clone(), Table { name, columns, key, last_number, parents });
    }
    in_order(remaining)
}

fn in_order(mut remaining: BTreeMap<String, Table>) -> Result<Vec<Table>, Error> {
    let mut ordered = Vec::new();
    while !remaining.is_empty() {
        let is_free = |table: &Table| !table.parents.iter().any(|parent| remaining.contains_key(parent));
        let free: Vec<String> =
            remaining.values().filter(|table| is_free(table)).map(|table| table.name.clone()).collect();
        if free.is_empty() {
            let names: Vec<&str> = remaining.keys().map(String::as_str).collect();
            return Err(Error::Internal(format!("tables refer to each other: {}", names.join(", "))));
        }
        ordered.extend(free.iter().filter_map(|name| remaining.remove(name)));
    }
    Ok(ordered)
}

fn last_number(tx: &mut Tx<'_>, table: &str) -> Result<Option<i64>, Error> {
    let parameters = [Value::from(table)];
    if tx.answers_at_once() {
        // this table does not exist before the first generated row number
        if tx.columns("sqlite_sequence")?.is_empty() {
            return Ok(None);
        }
        return number(tx, "SELECT seq FROM sqlite_sequence WHERE name = ?1", &parameters);
    }
    match texts(tx, POSTGRES_SEQUENCE, &parameters)?.first() {
        Some(sequence) => {
            let text = format!("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}");
            number(tx, &text, &[])
        }
        None => Ok(None),
    }
}

/// Sets the generator of a copied table, so that the next row number is above all numbers generated before the
/// copy.
pub fn set_last_number(tx: &mut Tx<'_>, table: &Table) -> Result<(), Error> {
    let name = Value::from(table.name.as_str());
    let copied_number = table.last_number.unwrap_or(0);
    if tx.answers_at_once() {
        let declared =
            "SELECT instr(sql, 'AUTOINCREMENT') FROM sqlite_master WHERE type = 'table' AND name = ?1";
        if number(tx, declared, std::slice::from_ref(&name))?.unwrap_or(0) == 0 {
            return Ok(());
        }
        let text = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
        if tx.execute_catalogue(text, &[name.clone(), copied_number.into()])? == 0 {
            let text = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)";
            tx.execute_catalogue(text, &[name, copied_number.into()])?;
        }
        return Ok(());
    }
    let Some(sequence) = texts(tx, POSTGRES_SEQUENCE, std::slice::from_ref(&name))?.first().cloned() else {
        return Ok(());
    };
    let Some(column) = table.key.first().and_then(|at| table.columns.get(*at)) else { return Ok(()) };
    let highest = number(tx, &format!("SELECT max({column}) FROM {}", table.name), &[])?.unwrap_or(0);
    let text = format!("SELECT setval('{sequence}', GREATEST(?1::BIGINT, 1), ?2)");
    let last = highest.max(copied_number);
    tx.query_catalogue(&text, &[last.into(), Value::Bool(last > 0)], &mut |_| Ok(()))
}

/// The texts of the first column.
fn texts(tx: &mut Tx<'_>, text: &str, parameters: &[Value]) -> Result<Vec<String>, Error> {
    let mut values = Vec::new();
    tx.query_catalogue(text, parameters, &mut |row| {
        values.push(row.text(0)?.to_owned());
        Ok(())
    })?;
    Ok(values)
}

/// The number of the first row; `None` where it is null or there is none.
fn number(tx: &mut Tx<'_>, text: &str, parameters: &[Value]) -> Result<Option<i64>, Error> {
    let mut value = None;
    tx.query_catalogue(text, parameters, &mut |row| {
        value = if row.is_null(0)? { None } else { Some(row.int(0)?) };
        Ok(())
    })?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Table, in_order};

    fn table(name: &str, parents: &[&str]) -> (String, Table) {
        let parents = parents.iter().map(|parent| (*parent).to_owned()).collect();
        let table =
            Table { name: name.to_owned(), columns: Vec::new(), key: Vec::new(), last_number: None, parents };
        (name.to_owned(), table)
    }

    #[test]
    fn tables_follow_the_tables_that_they_reference() {
        let all = [table("a", &["c", "b"]), table("b", &["c"]), table("c", &[]), table("d", &["elsewhere"])];
        let ordered = in_order(BTreeMap::from(all)).unwrap();
        let names: Vec<&str> = ordered.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["c", "d", "b", "a"]);
        let circle = BTreeMap::from([table("a", &["b"]), table("b", &["a"])]);
        assert!(in_order(circle).unwrap_err().to_string().contains("a, b"));
    }
}
