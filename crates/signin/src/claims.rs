//! The claims of a person that a client app gets for the granted scopes (OpenID Connect Core 1.0, section 5.4).

use std::sync::LazyLock;

use chancery_oauth::OPENID;
use chancery_resource::{Problem, StoreError, Tx};
use chancery_store::Row;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    application::Application,
    person::{self, Admitted},
};

/// The claims of the scope `profile`, each with its column.
const PROFILE: &[(&str, &str)] = &[
    ("given_name", "first_name"),
    ("family_name", "last_name"),
    ("middle_name", "middle_name"),
    ("nickname", "nickname"),
    ("preferred_username", "login_name"),
    ("profile", "profile"),
    ("picture", "picture"),
    ("website", "website"),
    ("gender", "gender"),
    ("birthdate", "birthdate"),
    ("zoneinfo", "zoneinfo"),
    ("locale", "locale"),
];
const EMAIL: (&str, &str) = ("email", "email_address");
const PHONE: (&str, &str) = ("phone_number", "phone_number");
/// The most group names in an ID token, and their most bytes: ID tokens are sent in addresses and cookies.
const MOST_GROUPS: usize = 500;
const MOST_GROUP_BYTES: usize = 4096;
/// The units of an entry's number in a second.
const NUMBERS_A_SECOND: i64 = 1_000_000;
/// The scopes whose claims are columns of the user.
const USER_SCOPES: [&str; 3] = ["profile", "email", "phone"];
/// The query for the columns of all claims, the confirmations and the number of the last audit entry.
static READ_USER: LazyLock<String> = LazyLock::new(|| {
    let columns: Vec<&str> = person_claims().map(|(_, column)| column).collect();
    format!(
        "SELECT {}, email_address_confirmed, phone_number_confirmed, last_entry FROM user_account \
         WHERE store = ?1 AND rid = ?2",
        columns.join(", ")
    )
});

/// The claims that say what a person is, each with its column.
pub fn person_claims() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROFILE.iter().chain([&EMAIL, &PHONE]).copied()
}

/// The claims at the UserInfo endpoint; `None` if the user does not exist any more.
///
/// # Errors
/// The store's.
pub fn at_userinfo(
    tx: &mut Tx<'_>,
    application: &Application,
    (person, admitted): (Uuid, &Admitted),
    scope: &str,
) -> Result<Option<Map<String, Value>>, Problem> {
    let Some(mut claims) = of_scopes(tx, admitted, scope)? else { return Ok(None) };
    claims.insert("sub".to_owned(), json!(person));
    if application.includes_groups {
        claims.insert("groups".to_owned(), json!(person::group_names(tx, admitted.user)?));
    }
    Ok(Some(claims))
}

/// The claims of the person in an ID token: those of the granted scopes if the client app's `idTokenClaims` is `Scopes`. If there are
/// too many groups, `groups_truncated` replaces them.
///
/// # Errors
/// The store's.
pub fn in_id_token(
    tx: &mut Tx<'_>,
    application: &Application,
    admitted: &Admitted,
    scope: &str,
) -> Result<Map<String, Value>, Problem> {
    if !application.tells_in_id_token || !has(scope, OPENID) {
        return Ok(Map::new());
    }
    let mut claims = Map::new();
    if USER_SCOPES.iter().any(|word| has(scope, word)) {
        claims = of_scopes(tx, admitted, scope)?.unwrap_or_default();
    }
    if application.includes_groups {
        let groups = person::group_names(tx, admitted.user)?;
        let is_short = groups.iter().map(String::len).sum::<usize>() <= MOST_GROUP_BYTES;
        if groups.len() <= MOST_GROUPS && is_short {
            claims.insert("groups".to_owned(), json!(groups));
        } else {
            claims.insert("groups_truncated".to_owned(), json!(true));
        }
    }
    Ok(claims)
}

fn has(scope: &str, word: &str) -> bool {
    scope.split(' ').any(|one| one == word)
}

fn of_scopes(
    tx: &mut Tx<'_>,
    admitted: &Admitted,
    scope: &str,
) -> Result<Option<Map<String, Value>>, Problem> {
    let found = tx.one(&READ_USER, &[admitted.store.into(), admitted.user.into()], |row| {
        let mut claims = Map::new();
        let (email, phone) = (PROFILE.len(), PROFILE.len() + 1);
        if has(scope, "profile") {
            add_profile(&mut claims, row, phone + 3)?;
        }
        if has(scope, "email") && add(&mut claims, EMAIL.0, row, email)? {
            claims.insert("email_verified".to_owned(), json!(row.bool(phone + 1)?));
        }
        if has(scope, "phone") && add(&mut claims, PHONE.0, row, phone)? {
            claims.insert("phone_number_verified".to_owned(), json!(row.bool(phone + 2)?));
        }
        Ok(claims)
    })?;
    Ok(found)
}

/// Adds the claims of `profile`. `name` falls back to the login name. The time of the last change of the user is part of the number of
/// its audit entry.
fn add_profile(claims: &mut Map<String, Value>, row: &Row<'_>, last_entry: usize) -> Result<(), StoreError> {
    for (column, (claim, _)) in PROFILE.iter().enumerate() {
        add(claims, claim, row, column)?;
    }
    let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
    let names: Vec<&str> =
        ["given_name", "middle_name", "family_name"].into_iter().filter_map(text).collect();
    let name =
        if names.is_empty() { text("preferred_username").map(str::to_owned) } else { Some(names.join(" ")) };
    claims.extend(name.map(|name| ("name".to_owned(), json!(name))));
    let changed = row.int(last_entry)?.div_euclid(NUMBERS_A_SECOND);
    if changed > 0 {
        claims.insert("updated_at".to_owned(), json!(changed));
    }
    Ok(())
}

/// Adds a claim if its column is set. Returns whether it is.
fn add(
    claims: &mut Map<String, Value>,
    claim: &str,
    row: &Row<'_>,
    column: usize,
) -> Result<bool, StoreError> {
    if row.is_null(column)? {
        return Ok(false);
    }
    claims.insert(claim.to_owned(), json!(row.text(column)?));
    Ok(true)
}
