//! The open questionnaire items of a person at a tenant.

use std::collections::HashSet;

use chancery_application::ApplicationUser;
use chancery_flow::Identified;
use chancery_management::user_questionnaire_item::{Item, ValidationFormat};
use chancery_record::{Field, FieldType as _, Value};
use chancery_resource::{StoreError, Tx};
use chancery_store::{Row, selectable};
use chancery_userstore::answers;
use uuid::Uuid;

use super::Admitted;

/// The maximum of items on one page. Further ones follow on the next.
const MAX_ITEMS: usize = 20;
/// The maximum of bytes of the answers of one page, form-encoded. A form has 64 KiB at most, some of which is for
/// other fields.
const MAX_BYTES: usize = 62 << 10;

/// The fields of external users that hold an answer under their names.
const FIELDS: [&Field; 5] = [
    ApplicationUser::FIRST_NAME.field(),
    ApplicationUser::LAST_NAME.field(),
    ApplicationUser::EMAIL_ADDRESS.field(),
    ApplicationUser::ORGANIZATIONAL_UNIT.field(),
    ApplicationUser::PICTURE.field(),
];

selectable! {
    /// A questionnaire item as it is stored.
    struct ItemRow<'r> {
        id: Uuid = "q.id",
        key: String = "q.key",
        label: String = "q.label",
        is_required: bool = "q.is_required",
        min_length: Option<i64> = "q.min_length",
        max_length: Option<i64> = "q.max_length",
        format: &'r str = "q.validation_format",
        pattern: Option<String> = "q.validation_pattern",
    }
}

/// Selects the items without an entry under their key, of these `entries` (table and owner), that are required or
/// that were never shown to the person. The values of fields are not known here, so the limit has room for one item
/// of each.
fn select_items(entries: &str, owner: &str, fields: usize) -> String {
    format!(
        "SELECT {} FROM user_questionnaire_item q WHERE q.tenant_id = ?1 AND (q.is_required OR NOT EXISTS \
         (SELECT 1 FROM questionnaire_mark m WHERE m.person_id = ?2 AND m.item_id = q.id)) AND NOT EXISTS \
         (SELECT 1 FROM {entries} e WHERE e.{owner} = ?3 AND e.key = q.key AND e.value <> '') \
         ORDER BY q.is_required DESC, q.position, q.key LIMIT {}",
        ItemRow::COLUMNS,
        MAX_ITEMS + fields
    )
}

fn read_item(row: &Row<'_>) -> Result<Item, StoreError> {
    let ItemRow { id, key, label, is_required, min_length, max_length, format, pattern } =
        ItemRow::read(row)?;
    let unknown = |_| StoreError::Internal("an item has a format that is not known".into());
    let format = ValidationFormat::from_value(format.into()).map_err(unknown)?;
    Ok(Item { id, key, label, is_required, min_length, max_length, format, pattern })
}

/// The due items of a tenant for a person, required ones first: those without an answer that are required or were
/// never shown to the person.
pub fn read(tx: &mut Tx<'_>, identified: &Identified, admitted: &Admitted) -> Result<Vec<Item>, StoreError> {
    let (owner, fields, entries, table, key) = match &admitted.user {
        Some(user) => (
            user.user,
            answers::fields(),
            ("user_profile", "user_rid"),
            "user_account WHERE store = ?1 AND rid = ?2",
            vec![Value::Int(user.store), Value::Int(user.user)],
        ),
        None => (
            admitted.person,
            &FIELDS[..],
            ("platform_profile", "application_user_rid"),
            "application_user WHERE rid = ?1",
            vec![Value::Int(admitted.person)],
        ),
    };
    let columns: Vec<&str> = fields.iter().map(|field| field.column).collect();
    let of_fields = format!("SELECT {} FROM {table}", columns.join(", "));
    let of_items = select_items(entries.0, entries.1, fields.len());
    let of_person = [identified.tenant.into(), identified.person.into(), Value::Int(owner)];
    let (mut items, mut filled) = (Vec::new(), HashSet::new());
    tx.query_all(&[(&of_items, &of_person), (&of_fields, &key)], &mut |index, row| {
        if index == 0 {
            items.push(read_item(row)?);
            return Ok(());
        }
        for (column, field) in fields.iter().enumerate() {
            if !row.is_null(column)? {
                filled.insert(field.wire());
            }
        }
        Ok(())
    })?;
    items.retain(|item| !filled.contains(item.key.as_str()));
    items.truncate(fitting(&items));
    Ok(items)
}

/// How many of these items fit on one page.
fn fitting(items: &[Item]) -> usize {
    let mut room = MAX_BYTES;
    let fits = |item: &&Item| {
        let rest = room.checked_sub(item.field_bytes());
        room = rest.unwrap_or_default();
        rest.is_some()
    };
    items.iter().take(MAX_ITEMS).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use chancery_management::user_questionnaire_item::{Item, ValidationFormat};
    use uuid::Uuid;

    use super::{MAX_BYTES, MAX_ITEMS, fitting};

    fn items(lengths: &[Option<i64>]) -> Vec<Item> {
        let item = |max_length: &Option<i64>| Item {
            id: Uuid::nil(),
            key: "team".to_owned(),
            label: "Which team?".to_owned(),
            is_required: true,
            min_length: None,
            max_length: *max_length,
            format: ValidationFormat::None,
            pattern: None,
        };
        lengths.iter().map(item).collect()
    }

    #[test]
    fn a_page_has_as_many_items_as_fit_one_form() {
        assert_eq!(fitting(&items(&[None; 30])), MAX_ITEMS);
        // the longest answer that there is has a page of its own, at least
        assert_eq!(fitting(&items(&[Some(4_000), Some(4_000)])), 1);
        assert_eq!(fitting(&items(&[Some(9_000), Some(100), None])), 3);
        assert_eq!(fitting(&items(&[Some(1_100), None, Some(4_000), None])), 2);
        let all = items(&[None; MAX_ITEMS]);
        assert!(all.iter().map(Item::field_bytes).sum::<usize>() <= MAX_BYTES);
    }
}
