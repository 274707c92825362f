//! What people need to sign in, for each seeded user: a platform user with an identity, a password, a session. Each has
//! postponed the offer of a passkey, as most returning people have, so that a sign-in by password leads to the app at
//! once.

use std::{fs, path::Path};

use chancery_credential::hash::{Parameters, hash};
use chancery_flow::{Method, Proof};
use chancery_record::{Secret, Timestamp, Value};
use chancery_resource::{MasterKey, PersonKey};
use uuid::Uuid;

use super::folded;
use crate::{
    clock,
    fault::{Context as _, Result, fault},
    peers::rows::Cell,
    people,
};

/// Selects the store's instance and subscription, and the tenant that has it.
pub const STORE_IDS: &str = "SELECT i.id, i.subscription_id, t.id FROM idp_instance i \
    JOIN tenant_idp_instance m ON m.idp_instance_rid = i.rid JOIN tenant t ON t.rid = m.tenant_rid \
    WHERE i.name_key = 'default'";
/// How long seeded sessions last, in ms: longer than seeded databases are stored.
const LIFETIME: i64 = 10 * 365 * 24 * 3600 * 1000;

/// A table that is filled, and the row of a user in it.
pub struct Table {
    /// The table's name.
    pub name: &'static str,
    /// The columns of a row.
    pub columns: &'static str,
    /// The values of the columns, for the user of this number.
    pub row: fn(&SignInSeed, u64) -> Result<Vec<Cell>>,
}

/// The tables, referenced tables first.
pub const TABLES: [Table; 5] = [
    Table {
        name: "application_user",
        columns: "rid, id, subscription_id, idp_instance_id, first_name, first_name_key, last_name, last_name_key, \
            email_address, email_address_key, audit_key, concurrency_token",
        row: platform_user,
    },
    Table {
        name: "application_identity",
        columns: "rid, id, application_user_rid, idp_instance_id, issuer, subject, is_user_store_identity, \
            lifecycle_status",
        row: identity,
    },
    Table { name: "user_password", columns: "user_rid, hash, changed_on", row: password },
    Table {
        name: "sign_in_session",
        columns: "id, browser, tenant_id, person_id, proofs, is_kept, started_on, used_on, expires_on, \
            idp_instance_id",
        row: session,
    },
    Table { name: "offer_rest", columns: "person_id, offer, expires_on", row: postponed_passkey_offer },
];

/// The data that every seeded sign-in shares.
pub struct SignInSeed {
    store: Uuid,
    subscription: Uuid,
    tenant: Uuid,
    master: MasterKey,
    /// The hash of everybody's password. It is the same one, because each hash takes as long as a sign-in.
    hash: String,
    now: Timestamp,
}

impl SignInSeed {
    /// Makes it from the ids that [`STORE_IDS`] selects and the folder with the server's master key.
    pub fn new([store, subscription, tenant]: [Uuid; 3], files: &Path) -> Result<Self> {
        let master = fs::read(files.join("master.key")).context("the master key")?;
        let master = MasterKey::new(&master).ok_or_else(|| fault("the master key has another length"))?;
        let hash = hash(&Secret::new(people::PASSWORD), &Parameters::default()).context("a password")?;
        let now = Timestamp(i64::try_from(clock::now_micros() / 1000)?);
        Ok(Self { store, subscription, tenant, master, hash, now })
    }
}

/// The row number of a user, and of the platform user who is that user.
fn rid(number: u64) -> Result<Cell> {
    Ok(Cell::Int(i64::try_from(number + 1)?))
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn platform_user(seed: &SignInSeed, number: u64) -> Result<Vec<Cell>> {
    let (person, id) = (people::person(number), people::platform_user_id(number));
    let Value::Bytes(key) = PersonKey::generate(&seed.master, id) else {
        return Err(fault("a person's key is no bytes"));
    };
    Ok(vec![
        rid(number)?,
        Cell::Id(id),
        Cell::Id(seed.subscription),
        Cell::Id(seed.store),
        text(person.first_name),
        Cell::Text(folded(person.first_name)),
        text(&person.last_name),
        Cell::Text(folded(&person.last_name)),
        text(&person.email_address),
        Cell::Text(folded(&person.email_address)),
        Cell::Bytes(key),
        Cell::Text(person.concurrency_token),
    ])
}

fn identity(seed: &SignInSeed, number: u64) -> Result<Vec<Cell>> {
    Ok(vec![
        rid(number)?,
        Cell::Id(people::identity_id(number)),
        rid(number)?,
        Cell::Id(seed.store),
        text("default"),
        Cell::Text(people::user_id(number).to_string()),
        Cell::Bool(true),
        text("Active"),
    ])
}

fn password(seed: &SignInSeed, number: u64) -> Result<Vec<Cell>> {
    Ok(vec![rid(number)?, text(&seed.hash), Cell::Int(seed.now.0)])
}

fn session(seed: &SignInSeed, number: u64) -> Result<Vec<Cell>> {
    let person = people::platform_user_id(number);
    let proof =
        Proof { person, instance: seed.store, method: Method::Password, credential: None, at: seed.now };
    let browser = seed.master.digest("sign-in-session", people::session_cookie(number).as_bytes());
    let end = Cell::Int(seed.now.0 + LIFETIME);
    Ok(vec![
        Cell::Id(people::session_id(number)),
        Cell::Bytes(browser),
        Cell::Id(seed.tenant),
        Cell::Id(person),
        Cell::Text(serde_json::to_string(&[proof])?),
        Cell::Bool(true),
        Cell::Int(seed.now.0),
        // the last use lies in the future, so that looking a session up does not write it
        end.clone(),
        end,
        Cell::Id(seed.store),
    ])
}

#[expect(clippy::unnecessary_wraps, reason = "other tables have rows that cannot be made")]
fn postponed_passkey_offer(seed: &SignInSeed, number: u64) -> Result<Vec<Cell>> {
    Ok(vec![Cell::Id(people::platform_user_id(number)), text("passkey"), Cell::Int(seed.now.0 + LIFETIME)])
}
