//! One user: found by name, read, created.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Bench, Interface, PreparedStore, SCIM_BASE, compare, load_figures};
use crate::{
    fault::Result,
    load::{self, Maker},
    people::{self, Person},
    results::Figures,
    target::{Target, USERS},
    workloads::{
        administrators::{commits_and_retries, retry_percent},
        create,
    },
};

/// Finding a user by the name.
pub const FIND: &str = "SCIM, userName eq, 1 client";
/// Reading a user.
pub const READ: &str = "SCIM, read by id, 16 clients";
/// Creating users.
pub const CREATE: &str = "SCIM, create, 16 clients";
/// Creating users with enterprise attributes.
pub const ENTERPRISE: &str = "SCIM, create with 6 enterprise attributes, 16 clients";

const CLIENTS: usize = 16;
const CORE: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
const EXTENSION: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

/// Finds random users by their names.
pub async fn find(bench: &mut Bench, store: &PreparedStore, round: u64) -> Result<()> {
    let users = bench.users;
    let maker = |interface: Interface, target: Target| -> Maker {
        let (path, field) = match interface {
            Interface::Scim(_) => (format!("{SCIM_BASE}/Users"), "userName"),
            Interface::Version2(_) => (USERS.to_owned(), "loginName"),
        };
        Arc::new(move |random, out| {
            let name = people::login_name(random.below(users));
            target.write("GET", &format!("{path}?filter={field}%20eq%20%22{name}%22"), b"", out);
        })
    };
    compare(bench, store, (FIND, round), bench.plan(1, 200), maker).await
}

/// Reads random users.
pub async fn read(bench: &mut Bench, store: &PreparedStore, round: u64) -> Result<()> {
    let users = bench.users;
    let maker = |interface: Interface, target: Target| -> Maker {
        let path = match interface {
            Interface::Scim(_) => format!("{SCIM_BASE}/Users"),
            Interface::Version2(_) => USERS.to_owned(),
        };
        Arc::new(move |random, out| {
            let id = people::user_id(random.below(users));
            target.write("GET", &format!("{path}/{id}"), b"", out);
        })
    };
    compare(bench, store, (READ, round), bench.plan(CLIENTS, 200), maker).await
}

/// Creates users: through version 2, and through SCIM with core attributes and with more.
pub async fn create(bench: &mut Bench, store: &PreparedStore, round: u64) -> Result<()> {
    let [administrator, directory] = store.interfaces();
    let maker = create::maker(store.administrator.clone());
    let by_version_2 = run_create(bench, store, administrator, &maker).await?;
    for (name, is_enterprise) in [(CREATE, false), (ENTERPRISE, true)] {
        bench.record(name, administrator.name(), round, by_version_2.clone());
        let (target, users) = (store.directory.clone(), bench.users);
        let maker: Maker = Arc::new(move |random, out| {
            let manager = is_enterprise.then(|| people::user_id(random.below(users)));
            let body = body(&create::new_person(), manager).to_string();
            target.write("POST", &format!("{SCIM_BASE}/Users"), body.as_bytes(), out);
        });
        let values = run_create(bench, store, directory, &maker).await?;
        bench.record(name, directory.name(), round, values);
    }
    Ok(())
}

async fn run_create(
    bench: &Bench,
    store: &PreparedStore,
    interface: Interface,
    maker: &Maker,
) -> Result<Figures> {
    let target = store.target(interface);
    let before = commits_and_retries(&store.administrator).await?;
    let outcome = load::run(target, bench.plan(CLIENTS, 201), maker).await?;
    let after = commits_and_retries(&store.administrator).await?;
    let mut values = load_figures(target, &outcome);
    values.insert("repeated_percent".to_owned(), retry_percent(&[before], &[after]));
    Ok(values)
}

/// A new user as a directory sends it; with a manager it has all six enterprise attributes.
fn body(person: &Person, manager: Option<Uuid>) -> Value {
    let name = json!({ "givenName": person.first_name, "familyName": person.last_name });
    let mut body = json!({
        "schemas": [CORE], "userName": person.login_name, "externalId": person.id, "name": name, "active": true,
        "emails": [{ "value": person.email_address, "type": "work", "primary": true }],
    });
    if let (Some(manager), Some(members)) = (manager, body.as_object_mut()) {
        let attributes = json!({
            "employeeNumber": person.phone_number, "costCenter": "4130", "organization": "Example Works",
            "division": "Theme Park", "department": "Tour Operations", "manager": { "value": manager },
        });
        members.insert("schemas".to_owned(), json!([CORE, EXTENSION]));
        members.insert(EXTENSION.to_owned(), attributes);
    }
    body
}
