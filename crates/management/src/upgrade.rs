//! Stored rows that this release no longer accepts, beyond the rules of their records.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use chancery_oauth::{normalize_resource, unsupported_row};
use chancery_record::Value;
use chancery_resource::{FieldFault, LIST, PLATFORM, Problem, Shape, StoredViolation, Tx, selectable};
use uuid::Uuid;

use crate::{
    client_app::{
        CLIENT_APP,
        profile::unsupported_fields,
        scope_and_resource::{CLIENT_APP_RESOURCE, ClientAppResource},
    },
    custom_view::{self, CUSTOM_VIEW},
    option::{self, OPTION},
};

/// Faults for which this release refuses a stored row: options with values that cannot work, alone or together, views with
/// elements or attributes that are not allowed, and rows that are not served: settings of client apps, federated
/// identities and request URIs.
pub fn refusals(tx: &mut Tx<'_>, shape: &Shape, values: &[Value]) -> Result<Vec<FieldFault>, Problem> {
    if std::ptr::eq(shape, &raw const OPTION) {
        return option::refusals(tx, values);
    }
    if std::ptr::eq(shape, &raw const CUSTOM_VIEW) {
        return Ok(custom_view::refusals(values));
    }
    if std::ptr::eq(shape, &raw const CLIENT_APP) {
        return unsupported_fields(values);
    }
    Ok(unsupported(shape, values).into_iter().collect())
}

/// The fault of a row that is not served at all.
fn unsupported(shape: &Shape, values: &[Value]) -> Option<FieldFault> {
    let field = |member: &str| shape.fields.iter().find(|field| field.is_named(member));
    let text_of = |member: &str| match field(member)?.value(values) {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let unsupported = unsupported_row(shape.name, text_of)?;
    Some((field(unsupported.member)?, unsupported.detail.to_owned()))
}

/// Approximate number of resources that are compared at a time; their keys are in memory.
const MAX_COMPARED: i64 = 50_000;

/// Reports resources of client apps that are one URI in two spellings (RFC 3986, sections 6.2.2 and 6.2.3). Each still matches
/// its own spelling; a new row with a further spelling is refused.
pub fn double_spellings(tx: &mut Tx<'_>, report: &mut dyn FnMut(StoredViolation)) -> Result<(), Problem> {
    let count = tx.one("SELECT count(*) FROM client_app_resource", &[], |row| row.int(0))?.unwrap_or(0);
    let shares = u64::try_from(count / MAX_COMPARED).unwrap_or(0) + 1;
    (0..shares).try_for_each(|share| compare_spellings(tx, share, shares, report))
}

selectable! {
    /// A resource of a client app.
    struct StoredResource<'r> {
        rid: i64 = "rid",
        id: Uuid = "id",
        key: &'r str = "key",
    }
}

/// Compares the resources with normal forms in one of the shares.
fn compare_spellings(
    tx: &mut Tx<'_>,
    share: u64,
    shares: u64,
    report: &mut dyn FnMut(StoredViolation),
) -> Result<(), Problem> {
    // normal form to first spelling
    let mut first: HashMap<String, String> = HashMap::new();
    let mut after = Some(0);
    let text = format!(
        "SELECT {} FROM client_app_resource WHERE rid > ?1 ORDER BY rid LIMIT {LIST}",
        StoredResource::COLUMNS
    );
    while let Some(rid) = after.take() {
        tx.query(&text, &[Value::Int(rid)], |row| {
            let StoredResource { rid, id, key } = StoredResource::read(row)?;
            after = Some(rid);
            let normal = normalize_resource(key);
            if PLATFORM.contains(&key) || hash(&normal) % shares != share {
                return Ok(());
            }
            if first.entry(normal).or_insert_with(|| key.to_owned()) != key {
                report(StoredViolation {
                    kind: CLIENT_APP_RESOURCE.name,
                    key: id.to_string(),
                    name: key.escape_debug().take(100).collect(),
                    field: ClientAppResource::KEY.field().wire(),
                    why: "is the same address as that of another row, which spells it otherwise".to_owned(),
                });
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
