//! The console, as a browser without script sees it.

mod acts;
mod budget;
mod care;
mod certificate;
mod configuration;
mod connecting;
mod deleted;
mod deliveries;
mod editor;
mod file;
mod grant;
mod groups;
mod health;
mod import;
mod listen;
mod many;
mod oneself;
mod order;
mod overview;
mod owned;
mod pattern;
mod proof;
mod provider_trial;
mod provider_wizard;
mod readiness;
mod recovery;
mod register;
mod replacement;
mod rights;
mod rotation;
mod safety;
mod session;
mod settings;
mod setup;
mod sign_ins;
mod tenant;
mod tokens;
mod trail;
mod tree;
mod trial;
mod twice;
mod welcome;

use chancery_testkit::World;
use serde_json::{Value, json};

use crate::{
    id,
    roles::assign_role,
    sign_in::browser::{Browser, Page},
};

const PASSWORD: &str = "four lively grey herons";
const BASE: &str = "/api/management/v2";

/// A value in a query.
fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A user of the default store with a password; the platform user.
pub async fn person(world: &World, login_name: &str) -> Value {
    // the tests are not about the offer of a passkey
    world.set_option("PasskeyEnrolment", "Off").await;
    let address = format!("{login_name}@example.com");
    let body = json!({ "loginName": login_name, "emailAddress": address, "firstName": "Ada", "lastName": "Lovelace" });
    let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
    let reset = world.path(&format!("/User/{}/password/reset", id(&user)));
    world.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    let filter = encode(&format!("emailAddress eq \"{address}\""));
    let people = world.admin.get(&format!("{BASE}/ApplicationUser?filter={filter}")).await.is(200).json();
    people[0].clone()
}

/// Assigns a role to a person.
pub async fn assign(world: &World, person: &Value, role: &str, target: Value) -> Value {
    assign_role(world, "PlatformUser", person, role, target).await
}

/// Signs in on the way to this page; returns the page.
pub async fn sign_in(browser: &mut Browser, path: &str, login_name: &str) -> Page {
    let page = browser.open(path).await;
    assert!(page.html.contains("name=\"password\""), "a sign-in comes first: {}", page.html);
    let next = browser.type_password(&page, login_name, PASSWORD).await;
    browser.open(&next.redirect_target()).await
}

/// A browser in which a `SystemAdmin` uses the console.
async fn administrator(world: &World) -> Browser {
    let ada = person(world, "ada").await;
    assign(world, &ada, "SystemAdmin", json!({})).await;
    let mut browser = Browser::new(world);
    let page = sign_in(&mut browser, "/console", "ada").await;
    assert!(page.status == 200 && page.html.contains("Hello, Ada"), "{}: {}", page.status, page.html);
    browser
}

/// Posts a form of a page of the console, with the headers of a browser.
async fn post(
    world: &World,
    browser: &mut Browser,
    page: &Page,
    path: &str,
    fields: &[(&str, &str)],
) -> Page {
    let csrf = page.field("csrf");
    let fields: Vec<_> = [("csrf", csrf.as_str())].into_iter().chain(fields.iter().copied()).collect();
    browser.post(path, &fields, &[("origin", &world.base)]).await
}

/// A value of a hidden field, unescaped.
fn hidden(page: &Page, name: &str) -> String {
    unescaped(&page.field(name))
}

/// The text of a page, unescaped.
fn unescaped(text_of_page: &str) -> String {
    let known =
        [("&quot;", "\""), ("&#34;", "\""), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    known.iter().fold(text_of_page.to_owned(), |text, (written, meant)| text.replace(written, meant))
}
