//! One user: found by name, read, created.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Bench, By, HOME, Site, compare, measured};
use crate::{
    fault::Result,
    load::{self, Maker},
    people::{self, Person},
    results::Figures,
    target::{Target, USERS},
    workloads::{
        administrators::{repeated, share},
        create,
    },
};

/// Finding a user by the name.
pub const FIND: &str = "SCIM, userName eq, 1 client";
/// Reading a user.
pub const READ: &str = "SCIM, read by id, 16 clients";
/// Creating users.
pub const CREATE: &str = "SCIM, create, 16 clients";
/// Creating users of whom the directory knows more.
pub const ENTERPRISE: &str = "SCIM, create with 6 enterprise attributes, 16 clients";

const CLIENTS: usize = 16;
const CORE: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
const EXTENSION: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

/// Finds random users by their names.
pub async fn find(bench: &mut Bench, site: &Site, round: u64) -> Result<()> {
    let users = bench.users;
    let maker = |by: By, target: Target| -> Maker {
        let (path, field) = match by {
            By::Scim(_) => (format!("{HOME}/Users"), "userName"),
            By::Version2(_) => (USERS.to_owned(), "loginName"),
        };
        Arc::new(move |chance, out| {
            let name = people::login_name(chance.below(users));
            target.write("GET", &format!("{path}?filter={field}%20eq%20%22{name}%22"), b"", out);
        })
    };
    compare(bench, site, (FIND, round), bench.plan(1, 200), maker).await
}

/// Reads random users.
pub async fn read(bench: &mut Bench, site: &Site, round: u64) -> Result<()> {
    let users = bench.users;
    let maker = |by: By, target: Target| -> Maker {
        let path = match by {
            By::Scim(_) => format!("{HOME}/Users"),
            By::Version2(_) => USERS.to_owned(),
        };
        Arc::new(move |chance, out| {
            let id = people::user_id(chance.below(users));
            target.write("GET", &format!("{path}/{id}"), b"", out);
        })
    };
    compare(bench, site, (READ, round), bench.plan(CLIENTS, 200), maker).await
}

/// Creates users: by version 2, and by SCIM with core attributes and with others.
pub async fn create(bench: &mut Bench, site: &Site, round: u64) -> Result<()> {
    let [administrator, directory] = site.both();
    let maker = create::maker(site.administrator.clone());
    let by_version_2 = created(bench, site, administrator, &maker).await?;
    for (name, is_enterprise) in [(CREATE, false), (ENTERPRISE, true)] {
        bench.note(name, administrator.name(), round, by_version_2.clone());
        let (target, users) = (site.directory.clone(), bench.users);
        let maker: Maker = Arc::new(move |chance, out| {
            let manager = is_enterprise.then(|| people::user_id(chance.below(users)));
            let body = body(&create::newcomer(), manager).to_string();
            target.write("POST", &format!("{HOME}/Users"), body.as_bytes(), out);
        });
        let told = created(bench, site, directory, &maker).await?;
        bench.note(name, directory.name(), round, told);
    }
    Ok(())
}

async fn created(bench: &Bench, site: &Site, by: By, maker: &Maker) -> Result<Figures> {
    let target = site.target(by);
    let before = repeated(&site.administrator).await?;
    let outcome = load::run(target, bench.plan(CLIENTS, 201), maker).await?;
    let after = repeated(&site.administrator).await?;
    let mut told = measured(target, &outcome);
    told.insert("repeated_percent".to_owned(), share(&[before], &[after]));
    Ok(told)
}

/// A new user as a directory tells of one; of somebody who has a manager it knows all six enterprise attributes.
fn body(person: &Person, manager: Option<Uuid>) -> Value {
    let name = json!({ "givenName": person.first_name, "familyName": person.last_name });
    let mut body = json!({
        "schemas": [CORE], "userName": person.login_name, "externalId": person.id, "name": name, "active": true,
        "emails": [{ "value": person.email_address, "type": "work", "primary": true }],
    });
    if let (Some(manager), Some(members)) = (manager, body.as_object_mut()) {
        let known = json!({
            "employeeNumber": person.phone_number, "costCenter": "4130", "organization": "Example Works",
            "division": "Theme Park", "department": "Tour Operations", "manager": { "value": manager },
        });
        members.insert("schemas".to_owned(), json!([CORE, EXTENSION]));
        members.insert(EXTENSION.to_owned(), known);
    }
    body
}
