//! The UserInfo endpoint (OpenID Connect Core 1.0, section 5.3): claims about the person of an access token.

use chancery_auth::Claims;
use chancery_oauth::OPENID;
use chancery_record::Timestamp;
use chancery_resource::{Problem, StoreError, Tx};
use chancery_store::{Mode, Row};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    grant::Grant,
    person::{self, Admitted},
    provider::Provider,
};

/// Why there are no claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserInfoRefusal {
    /// The token is none of a person, or its grant has ended.
    InvalidToken,
    /// The token is not of `openid`.
    InsufficientScope,
}

/// The claims of each scope (OpenID Connect Core 1.0, section 5.4): the claim, and its column.
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

/// The claims that say what a person is, each with its column.
pub fn person_claims() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROFILE.iter().chain([&EMAIL, &PHONE]).copied()
}

impl Provider<'_> {
    /// The claims that an access token, whose signature and binding are verified, gives.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn userinfo(
        self,
        claims: &Claims,
        now: Timestamp,
    ) -> Result<Result<Value, UserInfoRefusal>, Problem> {
        let Some(grant) = claims.gid else { return Ok(Err(UserInfoRefusal::InvalidToken)) };
        let scope: Vec<String> =
            claims.scope.iter().flat_map(|scope| scope.split(' ').map(str::to_owned)).collect();
        if !scope.iter().any(|word| word == OPENID) {
            return Ok(Err(UserInfoRefusal::InsufficientScope));
        }
        let Some(application) = self.applications.find(self.store, claims.client_id).await? else {
            return Ok(Err(UserInfoRefusal::InvalidToken));
        };
        let (person, master) = (claims.sub, self.context.master.clone());
        let found = self.store.run("UserInfo", Mode::Quick, None, move |tx| {
            let Some(grant) = Grant::find(tx, &master, grant)? else { return Ok(None) };
            let granted = &grant.granted;
            let serves = application.serving(granted.tenant, granted.issuing).is_some();
            if granted.person != person || grant.application != application.id || !serves {
                return Ok(None);
            }
            let of = (granted.person, granted.instance);
            let Ok(admitted) = person::admit(tx, &application, of, granted.tenant, now)? else {
                return Ok(None);
            };
            let claims = read(tx, person, &admitted, &scope)?;
            if !application.includes_groups {
                return Ok(claims);
            }
            let groups = person::group_names(tx, admitted.user)?;
            Ok::<_, Problem>(claims.map(|mut claims| {
                claims.insert("groups".to_owned(), json!(groups));
                claims
            }))
        });
        Ok(found.await?.map(Value::Object).ok_or(UserInfoRefusal::InvalidToken))
    }
}

fn read(
    tx: &mut Tx<'_>,
    person: Uuid,
    admitted: &Admitted,
    scope: &[String],
) -> Result<Option<Map<String, Value>>, Problem> {
    let columns: Vec<&str> = PROFILE.iter().chain([&EMAIL, &PHONE]).map(|(_, column)| *column).collect();
    let text = format!(
        "SELECT {}, email_address_confirmed, phone_number_confirmed FROM user_account \
         WHERE store = ?1 AND rid = ?2",
        columns.join(", ")
    );
    let has = |word: &str| scope.iter().any(|one| one == word);
    let found = tx.one(&text, &[admitted.store.into(), admitted.user.into()], |row| {
        let mut claims = Map::new();
        claims.insert("sub".to_owned(), json!(person));
        if has("profile") {
            for (column, (claim, _)) in PROFILE.iter().enumerate() {
                add(&mut claims, claim, row, column)?;
            }
            let names = ["given_name", "middle_name", "family_name"];
            let names: Vec<&str> =
                names.iter().filter_map(|name| claims.get(*name).and_then(Value::as_str)).collect();
            if !names.is_empty() {
                claims.insert("name".to_owned(), json!(names.join(" ")));
            }
        }
        let (email, phone) = (PROFILE.len(), PROFILE.len() + 1);
        if has("email") && add(&mut claims, EMAIL.0, row, email)? {
            claims.insert("email_verified".to_owned(), json!(row.bool(phone + 1)?));
        }
        if has("phone") && add(&mut claims, PHONE.0, row, phone)? {
            claims.insert("phone_number_verified".to_owned(), json!(row.bool(phone + 2)?));
        }
        Ok(claims)
    })?;
    Ok(found)
}

/// Adds a claim whose column is set; whether it is.
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
