//! Questionnaire answers of users, stored in their fields and entries.

use chancery_record::{EntryValue, Field, Key, Kind, Record as _, Value};
use chancery_resource::{
    Context, OwnerRow, Problem, ProposedRow, StoreError, StoredRow, Tx, insert, load_keys, load_rows,
    new_row, update,
};

use crate::{
    UserId,
    user::{USER, User, find_taken_by},
    user_profile::{USER_PROFILE, UserProfile},
};

const FIELDS: [&Field; 13] = [
    User::FIRST_NAME.field(),
    User::LAST_NAME.field(),
    User::MIDDLE_NAME.field(),
    User::NICKNAME.field(),
    User::EMAIL_ADDRESS.field(),
    User::PHONE_NUMBER.field(),
    User::PROFILE.field(),
    User::PICTURE.field(),
    User::WEBSITE.field(),
    User::GENDER.field(),
    User::BIRTHDATE.field(),
    User::ZONEINFO.field(),
    User::LOCALE.field(),
];

/// The fields that answers can fill in.
pub const fn fields() -> &'static [&'static Field] {
    &FIELDS
}

/// The field that an answer under this key fills in; `None`: the answer becomes an entry.
pub fn field_of(key: &str) -> Option<&'static Field> {
    FIELDS.into_iter().find(|field| field.is_named(key))
}

/// Whether an answer under this key is an address of the user, to which links and codes are sent.
pub fn is_contact(key: &str) -> bool {
    [User::EMAIL_ADDRESS.field(), User::PHONE_NUMBER.field()].iter().any(|field| field.is_named(key))
}

/// The answer in the form of the field of this key; unchanged if the key has no field. `None`: the field does not accept it.
pub fn normalize(key: &str, answer: String) -> Option<String> {
    match field_of(key).map(|field| field.kind) {
        Some(Kind::Text(rule)) => rule.check(answer).ok(),
        Some(_) => None,
        None => Some(answer),
    }
}

/// The key of an answer that must be unique in the store, and that another user has.
pub struct NotUnique(pub String);

/// Stores the answers of a user, by their keys: in fields, or as entries if there is no such field. Stores nothing if one of them
/// is taken.
///
/// # Errors
/// An answer that [`normalize`] rejects.
pub fn store(
    context: &Context,
    tx: &mut Tx<'_>,
    user: i64,
    answers: &[(String, String)],
) -> Result<Result<(), NotUnique>, Problem> {
    let row = load_rows(context, tx, &USER, &[user])?.pop().ok_or_else(|| Problem::not_found(USER.name))?;
    let (fields, entries): (Vec<_>, Vec<_>) = answers.iter().partition(|(key, _)| field_of(key).is_some());
    if !fields.is_empty()
        && let Err(taken) = fill_in(context, tx, &row, &fields)?
    {
        return Ok(Err(taken));
    }
    if !entries.is_empty() {
        write_entries(context, tx, &row.as_owner(&USER)?, &entries)?;
    }
    Ok(Ok(()))
}

fn fill_in(
    context: &Context,
    tx: &mut Tx<'_>,
    row: &StoredRow,
    answers: &[&(String, String)],
) -> Result<Result<(), NotUnique>, Problem> {
    let mut values = row.values.clone();
    for (key, answer) in answers {
        if let Some(field) = field_of(key) {
            field.set(&mut values, answer.as_str().into());
        }
    }
    // the ownership of a typed value is not proven
    for (of, confirmed) in [
        (User::EMAIL_ADDRESS.field(), User::EMAIL_ADDRESS_CONFIRMED),
        (User::PHONE_NUMBER.field(), User::PHONE_NUMBER_CONFIRMED),
    ] {
        if of.value(&values) != of.value(&row.values) {
            confirmed.set(&mut values, false)?;
        }
    }
    let taken = find_taken_by(context, tx, &[ProposedRow { was: Some(row), values: &mut values }])?;
    if let Some(taken) = taken.first() {
        return Ok(Err(NotUnique(taken.field.wire().to_owned())));
    }
    for field in USER.fields.iter().filter(|field| field.is_token()) {
        field.set(&mut values, context.new_token());
    }
    update(context, tx, &USER, row, &values)?;
    Ok(Ok(()))
}

/// Adds entries, and updates existing ones.
fn write_entries(
    context: &Context,
    tx: &mut Tx<'_>,
    owner: &OwnerRow,
    answers: &[&(String, String)],
) -> Result<(), Problem> {
    let keys: Vec<Value> = answers.iter().map(|(key, _)| key.as_str().into()).collect();
    let known = load_keys(context, tx, &USER_PROFILE, Some(owner), &keys)?;
    for (key, answer) in answers {
        let value = Some(EntryValue::new(answer.clone()).map_err(StoreError::Internal)?);
        let concurrency_token = chancery_record::FieldType::from_value(context.new_token())?;
        if let Some(was) = known.get(key) {
            let mut values = was.values.clone();
            UserProfile::VALUE.set(&mut values, value)?;
            UserProfile::CONCURRENCY_TOKEN.set(&mut values, concurrency_token)?;
            update(context, tx, &USER_PROFILE, was, &values)?;
            continue;
        }
        let key = Key::new(key.clone()).map_err(StoreError::Internal)?;
        let instance_id = crate::InstanceId(context.scope.of_store()?.id);
        let entry = UserProfile { instance_id, user_id: UserId(owner.id), key, value, concurrency_token };
        let values = new_row(context, &USER_PROFILE, Some(owner), entry.into_values())?;
        insert(context, tx, &USER_PROFILE, Some(owner), &values)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{FIELDS, field_of, is_contact, normalize};

    #[test]
    fn answers_fill_in_the_field_of_their_key() {
        assert_eq!(field_of("firstName").map(|field| field.column), Some("first_name"));
        for key in ["firstname", "given_name", "loginName", "isUserActive", "department", ""] {
            assert!(field_of(key).is_none(), "{key}");
        }
        assert!(is_contact("emailAddress") && is_contact("phoneNumber") && !is_contact("firstName"));
    }

    #[test]
    fn answers_are_normalized_by_their_field() {
        assert_eq!(normalize("firstName", " Ada ".to_owned()).as_deref(), Some("Ada"));
        assert_eq!(normalize("birthdate", "soon".to_owned()), None);
        assert_eq!(normalize("website", "javascript:alert(1)".to_owned()), None);
        assert_eq!(normalize("department", " soon ".to_owned()).as_deref(), Some(" soon "));
        for field in FIELDS {
            assert_eq!(normalize(field.wire(), "a\0b".to_owned()), None, "{}", field.wire());
        }
    }
}
