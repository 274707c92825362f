//! Validates stored rows as a write of the same values is validated: a release can have stricter rules, and
//! stored rows are not changed.

use chancery_record::{Column, DefaultValue, Draft, Field, Kind, Provided, Sealing, Value, violation_of};
use chancery_store::{Error, Row, Tx};

use crate::{FieldFault, MasterKey, Problem, Shape, open_secret, seal::sealed::is_sealed};

/// Rows that are read at a time, and those of resources whose items can be large.
const CHUNK_SIZES: (i64, i64) = (100, 8);
/// The most characters of a name that are reported.
const MAX_NAME: usize = 100;

/// A stored row that a write would refuse, with the reason.
#[derive(Debug)]
pub struct StoredViolation {
    /// The name of the resource.
    pub kind: &'static str,
    /// The row's key.
    pub key: String,
    /// The display name of the row; empty if it has none.
    pub name: String,
    /// The field's name on the wire.
    pub field: &'static str,
    /// The reason.
    pub why: String,
}

/// Validates a stored row beyond its fields and its record's rules: gets its values, unsealed.
pub type FindViolations = fn(&mut Tx<'_>, &Shape, &[Value]) -> Result<Vec<FieldFault>, Problem>;

impl Shape {
    /// Validates the next rows after a row number, and reports the violations of each. The schema may be that
    /// of an older release: columns that do not exist yet have their defaults. Returns the number of the last
    /// row; `None` if there are no more.
    pub fn check_stored(
        &'static self,
        tx: &mut Tx<'_>,
        master: &MasterKey,
        after: i64,
        check_further: FindViolations,
        report: &mut dyn FnMut(StoredViolation),
    ) -> Result<Option<i64>, Problem> {
        if !self.fields.iter().any(is_written) {
            return Ok(None);
        }
        let columns = tx.columns(self.table)?;
        let is_read = |field: &&Field| {
            field.access.column == Column::Own && columns.iter().any(|column| column == field.column)
        };
        let read: Vec<&'static Field> = self.fields.iter().filter(is_read).collect();
        if columns.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = read.iter().map(|field| field.column).collect();
        let count = if self.reads.large { CHUNK_SIZES.1 } else { CHUNK_SIZES.0 };
        let text = format!(
            "SELECT t.rid, {} FROM {} t WHERE t.rid > ?1 ORDER BY t.rid LIMIT {count}",
            names.join(", "),
            self.table
        );
        let (mut last, mut rows) = (None, Vec::new());
        tx.query(&text, &[Value::Int(after)], |row| {
            last = Some(row.int(0)?);
            rows.push(self.stored_values(&read, row)?);
            Ok(())
        })?;
        for mut values in rows {
            let mut faults = self.unseal(master, &mut values);
            if faults.is_empty() {
                faults = self.violations_of(&values)?;
            }
            if faults.is_empty() {
                faults = check_further(tx, self, &values)?;
            }
            for (field, why) in faults {
                report(self.refusal(&values, field, why));
            }
        }
        Ok(last)
    }

    fn stored_values(&self, read: &[&'static Field], row: &Row<'_>) -> Result<Vec<Value>, Error> {
        let mut values: Vec<Value> = self.fields.iter().map(substitute).collect();
        for (column, field) in read.iter().enumerate() {
            field.set(&mut values, row.value(column + 1, &field.kind)?);
        }
        Ok(values)
    }

    /// Decrypts sealed values; a value that cannot be decrypted is reported.
    fn unseal(&self, master: &MasterKey, values: &mut [Value]) -> Vec<FieldFault> {
        let key = self.key().map_or(Value::Null, |key| key.value(values).clone());
        let mut faults = Vec::new();
        for field in self.fields.iter().filter(|field| field.access.sealing == Sealing::Secret) {
            let Value::Text(text) = field.value(values) else { continue };
            if !is_sealed(text) {
                continue;
            }
            let plain = open_secret(master, self.table, field.column, &key, text);
            if plain.is_none() {
                faults.push((field, "does not open with this master key".to_owned()));
            }
            field.set(values, plain.into());
        }
        faults
    }

    /// The violations of the fields and of the record's rules by these values.
    fn violations_of(&self, values: &[Value]) -> Result<Vec<FieldFault>, Problem> {
        let written = self.fields.iter().filter(|field| is_written(field));
        let violations = written.filter_map(|field| Some((field, violation_of(field, field.value(values))?)));
        let mut faults: Vec<FieldFault> = violations.collect();
        if let (Some(apply), true) = (self.writes.apply, faults.is_empty()) {
            let unchanged = Draft(vec![Provided::Nothing; self.fields.len()]);
            let (_, wrong) = apply(values.to_vec(), Some(values), &unchanged, false)?;
            faults.extend(wrong);
        }
        Ok(faults)
    }

    fn refusal(&self, values: &[Value], field: &'static Field, why: String) -> StoredViolation {
        let key = match self.key().map(|key| key.value(values)) {
            Some(Value::Id(id)) => id.to_string(),
            Some(Value::Int(number)) => number.to_string(),
            Some(Value::Text(text)) => shortened(text),
            _ => String::new(),
        };
        let mut fields: Vec<&Field> = self.fields.iter().filter(|field| is_identifying(field)).collect();
        fields.sort_by_key(|field| !field.is_name());
        let text = fields.iter().find_map(|field| match field.value(values) {
            Value::Text(text) if !text.is_empty() => Some(shortened(text)),
            _ => None,
        });
        let name = text.unwrap_or_default();
        StoredViolation { kind: self.name, key, name, field: field.wire(), why }
    }
}

/// Whether callers write the field.
fn is_written(field: &Field) -> bool {
    let access = field.access;
    access.column == Column::Own && (access.create || access.put || access.patch) && !field.is_token()
}

/// Whether the text of a field can identify the row to people.
fn is_identifying(field: &Field) -> bool {
    let is_open = field.access.shown && field.access.sealing == Sealing::Open;
    is_open && matches!(field.kind, Kind::Text(_)) && !field.is_token()
}

/// The substitute for a field that is not read: its default, or a neutral value.
fn substitute(field: &Field) -> Value {
    if field.access.default != DefaultValue::None {
        return field.access.default.to_value();
    }
    match field.kind {
        _ if field.nullable => Value::Null,
        Kind::Id => Value::Id(uuid::Uuid::nil()),
        Kind::Bool => Value::Bool(false),
        Kind::Int { min, .. } => Value::Int(min),
        Kind::Time => Value::Int(0),
        Kind::Bytes(_) => Value::Bytes(Vec::new()),
        Kind::Choice(names) | Kind::Numbered(names) => names.first().copied().into(),
        Kind::Text(_) => "".into(),
        Kind::Ids | Kind::Texts(_) => "[]".into(),
        Kind::Object(_) | Kind::Pairs(_) => "{}".into(),
    }
}

/// Text for one line: escaped and shortened.
fn shortened(text: &str) -> String {
    text.chars().take(MAX_NAME).flat_map(char::escape_debug).collect()
}
