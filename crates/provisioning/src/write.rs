//! Writes the fields of a resource as the body of a creation or of a change in version 2.

use chancery_record::{Draft, Form as BodyForm, Json, Value};
use chancery_resource::{
    Call, OwnerRow, Problem, StoredRow, Tx, Writer, change_row, create_row, delete, insert, load, load_by,
    load_keys, new_row, select_by, update,
};
use chancery_scim::{Fields, ScimError, ScimType, pointer_of};
use chancery_userstore::{
    user::{USER, User},
    user_profile::{USER_PROFILE, UserProfile},
};
use serde_json::{Map, Value as Serde};

use crate::{form::Form, reach, related::Entries};

/// Members of a body of version 2.
pub type Body = Map<String, Serde>;

/// The body of a creation.
pub fn new_body(fields: &Fields) -> Body {
    let given = fields.fields.iter().filter(|(_, value)| !value.is_null());
    let mut body: Body = given.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    if !fields.extra.is_empty() {
        body.insert(extra().into(), Serde::Object(fields.extra.clone()).to_string().into());
    }
    body
}

/// The changed members between two states. Booleans that the new state omits stay.
pub fn changes(before: &Fields, after: &Fields) -> Body {
    let changed = after.fields.iter().filter(|(name, value)| {
        let was = before.fields.get(*name).unwrap_or(&Serde::Null);
        was != *value && !(value.is_null() && was.is_boolean())
    });
    let mut body: Body = changed.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    if before.extra != after.extra {
        let extra_json = Serde::Object(after.extra.clone());
        body.insert(
            extra().into(),
            if after.extra.is_empty() { Serde::Null } else { extra_json.to_string().into() },
        );
    }
    body
}

fn extra() -> &'static str {
    User::SCIM_EXTRA.field().wire()
}

/// Marks a written e-mail address as confirmed, if the directory's addresses count as confirmed.
pub fn confirm(call: &Call, body: &mut Body) {
    let writes = body.get(User::EMAIL_ADDRESS.field().wire()).is_some_and(|address| !address.is_null());
    if writes && reach::directory(&call.context).confirms_email {
        body.insert(User::EMAIL_ADDRESS_CONFIRMED.field().wire().into(), true.into());
    }
}

/// Creates a row; its number is not known yet.
///
/// # Errors
/// An invalid body, with the names of version 2.
pub fn create(call: &Call, tx: &mut Tx<'_>, body: Body) -> Result<StoredRow, Problem> {
    let writer = call.writer();
    create_row(writer, tx, None, draft(writer, BodyForm::Create, body)?)
}

/// Reads a body of version 2 by the field table.
fn draft(writer: Writer<'_>, form: BodyForm, body: Body) -> Result<Draft, Problem> {
    let body = Json::from_serde(Serde::Object(body));
    writer.shape.read(form, &body, "").map_err(Problem::wrong)
}

/// Reads a new row back, to get its number.
pub fn read_back(call: &Call, tx: &mut Tx<'_>, form: Form, row: &StoredRow) -> Result<StoredRow, Problem> {
    // a user is found by name: a look-up by id reads the end of its index, which all others write
    if let Some(name) = row.text(User::LOGIN_NAME).filter(|_| form.stores_entries()) {
        let sql = select_by(&call.context, form.shape, User::LOGIN_NAME, name);
        return load_by(&call.context, tx, form.shape, None, &sql);
    }
    load(&call.context, tx, form.shape, None, Value::Id(row.as_owner(form.shape)?.id))
}

/// Changes a row and returns it. `If-Match` was checked: its tag is that of this API.
///
/// # Errors
/// As [`create`].
pub fn change(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    was: &StoredRow,
    mut body: Body,
) -> Result<StoredRow, Problem> {
    if let Some(token) = form.shape.fields.iter().find(|field| field.is_token())
        && let Value::Text(current) = token.value(&was.values)
    {
        body.insert(token.wire().into(), current.as_str().into());
    }
    let (writer, id) = (call.writer(), was.as_owner(form.shape)?.id);
    let draft = draft(writer, BodyForm::MergePatch, body)?;
    change_row(writer, tx, None, Value::Id(id), BodyForm::MergePatch, draft)?;
    reach::find(&call.context, tx, form, id)
}

/// Writes the changed profile entries; whether there are any.
///
/// # Errors
/// An invalid value of an entry.
pub fn entries(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    before: &Fields,
    after: &Fields,
) -> Result<bool, Problem> {
    let was = |key: &str| before.entries.get(key).unwrap_or(&Serde::Null);
    let differ: Vec<(&str, &Serde)> = after
        .entries
        .iter()
        .map(|(key, value)| (*key, value))
        .filter(|(key, value)| was(key) != *value)
        .collect();
    if differ.is_empty() {
        return Ok(false);
    }
    let owner = row.as_owner(&USER)?;
    let keys: Vec<Value> = differ.iter().map(|(key, _)| Value::from(*key)).collect();
    let mut existing = load_keys(&call.context, tx, &USER_PROFILE, Some(&owner), &keys)?;
    for (key, value) in differ {
        match (existing.remove(key), value) {
            (Some(entry), Serde::Null) => delete(&call.context, tx, &USER_PROFILE, &entry)?,
            (None, Serde::Null) => {}
            (Some(entry), value) => {
                let mut values = entry.values.clone();
                UserProfile::VALUE.field().set(&mut values, entry_value(form, key, value)?);
                UserProfile::CONCURRENCY_TOKEN.field().set(&mut values, call.context.new_token());
                update(&call.context, tx, &USER_PROFILE, &entry, &values)?;
            }
            (None, value) => add_entry(call, tx, &owner, key, entry_value(form, key, value)?)?,
        }
    }
    Ok(true)
}

/// Writes the profile entries of a new user, and returns them.
///
/// # Errors
/// An invalid value of an entry.
pub fn new_entries(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    fields: &Fields,
) -> Result<Entries, Problem> {
    let (owner, mut written) = (row.as_owner(&USER)?, Entries::new());
    for (key, value) in fields.entries.iter().filter(|(_, value)| !value.is_null()) {
        let value = entry_value(form, key, value)?;
        if let Value::Text(text) = &value {
            written.insert((*key).to_owned(), text.clone());
        }
        add_entry(call, tx, &owner, key, value)?;
    }
    Ok(written)
}

fn add_entry(call: &Call, tx: &mut Tx<'_>, owner: &OwnerRow, key: &str, value: Value) -> Result<(), Problem> {
    let mut values = vec![Value::Null; USER_PROFILE.fields.len()];
    UserProfile::KEY.field().set(&mut values, key.into());
    UserProfile::VALUE.field().set(&mut values, value);
    let values = new_row(&call.context, &USER_PROFILE, Some(owner), values)?;
    insert(&call.context, tx, &USER_PROFILE, Some(owner), &values)
}

fn entry_value(form: Form, key: &str, value: &Serde) -> Result<Value, Problem> {
    let text = value.as_str().unwrap_or_default().to_owned();
    let checked = chancery_record::EntryValue::RULE.check(text);
    let at = || pointer_of(form.of, form.target, key).unwrap_or_default();
    checked
        .map(Value::Text)
        .map_err(|wrong| ScimError::new(ScimType::InvalidValue, format!("/{} {wrong}", at())).into())
}
