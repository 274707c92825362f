//! Isolation of subscriptions: no read operation shows an administrator rows of another subscription.

use std::collections::HashMap;

use chancery_record::Value;
use chancery_resource::{Action, Method, Op, Reply};
use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use crate::{
    fixtures::{Fixtures, create_fixtures},
    id,
    pattern::{create, key_of, operations, rows},
};

/// Path prefixes that are refused to these roles altogether.
const REFUSED: [(&str, &[&str]); 3] = [
    ("/Customer", &["SubscriptionAdmin"]),
    ("/CustomAuditTrail", &["SubscriptionAdmin", "CustomerAdmin"]),
    ("/passkey-trust", &["SubscriptionAdmin", "CustomerAdmin"]),
];

/// Operations on global rows: types have no subscription.
const GLOBAL: [&str; 1] = ["GetIdpType"];

/// Path parameters that are not ids of rows: the resource, the parameter and its value.
const PARAMETERS: [(&str, &str, &str); 6] = [
    ("CertStore", "{type}", "OidcTokenSigning"),
    ("Option", "{type}", "Tenant"),
    ("Option", "{name}", "SessionSliding"),
    ("IdpType", "{name}", "Google"),
    ("CustomView", "{viewName}", "SignIn"),
    ("ApplicationUserProfile", "{applicationUserId}", "{ApplicationUser 1}"),
];

/// The rows in `Default`: the fixtures, and the key of one row of each resource.
struct Existing {
    fixtures: Fixtures,
    keys: HashMap<&'static str, String>,
}

async fn existing(world: &World) -> Existing {
    crate::sign_in::create_sign_in_data(world).await;
    let fixtures = create_fixtures(&world.admin).await;
    let mut keys = HashMap::new();
    for row in rows() {
        let created = create(world, &fixtures, &row, 1).await;
        keys.insert(row.resource, key_of(row.resource, &created).to_owned());
    }
    let request = json!({
        "platformUserId": "{ApplicationUser 1}", "replacementIdpInstanceId": "{IdpInstance 1}",
        "replacementUniqueUserId": "somebody", "replacementIssuer": "https://work.example", "reason": "Lost",
    });
    let created = world.make("identity-replacements", fixtures.fill(&request, 1)).await;
    keys.insert("IdentityReplacement", id(&created).to_owned());
    for resource in ["SignInSession", "SignInGrant", "SignInConsent", "SignInFactor", "SignInRecord"] {
        keys.insert(resource, id(&world.all(resource).await[0]).to_owned());
    }
    keys.insert("DirectoryRefusal", create_directory_refusal(world).await);
    keys.insert("ClientAppRefusal", crate::sign_in::create_refusal(world, &keys["ClientApp"]).await);
    // its deliveries are read by its own id
    keys.insert("EventDelivery", keys["EventSubscription"].clone());
    for resource in ["ApplicationUser", "ApplicationGroup"] {
        keys.insert(resource, fixtures.text(&format!("{{{resource} 1}}"), 0));
    }
    keys.insert("ApplicationUserProfile", insert_questionnaire_answer(world, &keys["ApplicationUser"]).await);
    Existing { fixtures, keys }
}

/// Inserts an answer to a questionnaire; its key.
async fn insert_questionnaire_answer(world: &World, user: &str) -> String {
    let insert = "INSERT INTO platform_profile (application_user_rid, key, value, concurrency_token) \
        SELECT rid, 'an-answer', 'x', 'a-token' FROM application_user WHERE id = ?1";
    world.sql(vec![(insert, vec![Value::Id(user.parse().unwrap())])]).await;
    "an-answer".to_owned()
}

/// Lets a directory try to delete a user with a role; the id of the recorded refusal.
async fn create_directory_refusal(world: &World) -> String {
    let leaver = world.user("leaver").await;
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    let filter = format!("ApplicationUser?filter=identities.subject%20eq%20%22{}%22", id(&leaver));
    let user = world.all(&filter).await[0].clone();
    let role =
        json!({ "principalType": "PlatformUser", "principalId": user["id"], "roleType": "SystemAdmin" });
    world.make("RoleAssignment", role).await;
    let token = json!({ "name": "a directory", "reach": "All" });
    let token = world.admin.post(&world.path("/ScimToken"), token).await.is(201).json();
    let directory = world.admin.with_token(token["token"].as_str().unwrap());
    assert_eq!(directory.delete(&format!("/api/scim/v2/default/Users/{}", id(&leaver))).await.status, 403);
    id(&world.all("DirectoryRefusal").await[0]).to_owned()
}

/// The path of an operation, with [`PARAMETERS`] substituted.
fn substituted(op: &Op) -> String {
    PARAMETERS
        .iter()
        .filter(|(resource, ..)| *resource == op.shape.name)
        .fold(op.path.to_owned(), |path, &(_, parameter, word)| path.replace(parameter, word))
}

/// The expected status for this role in another subscription.
fn expected(op: &Op, role: &str) -> u16 {
    let is_refused = REFUSED.iter().any(|(start, roles)| op.path.starts_with(start) && roles.contains(&role));
    if is_refused {
        403
    } else if GLOBAL.contains(&op.name) || !substituted(op).contains('{') {
        200
    } else {
        404
    }
}

impl Existing {
    /// The address at which an operation reads an existing row.
    fn address(&self, op: &Op) -> String {
        let path = substituted(op).replace("{principalId}", &format!("{{{} 1}}", op.shape.name));
        let path = path.replace("{eventSubscriptionId}", "{id}");
        // entries of the audit trail have numbers
        let key = self.keys.get(op.shape.name).map_or("1", String::as_str);
        let address = self.fixtures.address(&path, key);
        assert!(!address.contains('{'), "{}: {address} has a parameter without a word", op.name);
        address
    }

    /// Texts that no response may contain: ids, locations and keys of existing rows.
    fn texts(&self) -> Vec<&str> {
        let own = self.keys.iter().filter(|(resource, _)| **resource != "IdpType");
        own.map(|(_, key)| key.as_str()).chain(self.fixtures.ids()).collect()
    }
}

/// Asserts that a SystemAdmin reads the rows at the same addresses.
async fn assert_exists(world: &World, existing: &Existing) {
    for op in operations().filter(|op| op.method == Method::Get) {
        let address = existing.address(op);
        match expected(op, "CustomerAdmin") {
            404 => world.admin.get(&address).await.expect(200),
            200 if matches!(op.action, Action::List) => {
                let shown = world.admin.get(&address).await.is(200).json().to_string();
                assert!(shown.contains(existing.keys[op.shape.name].as_str()), "{}: {shown}", op.name);
            }
            _ => {}
        }
    }
}

on_both_engines! {
    async fn nothing_of_another_subscription_is_read(world: World) {
        let existing = existing(&world).await;
        assert_exists(&world, &existing).await;
        let subscription = world.other_subscription("Far").await;
        let mut wrong = Vec::new();
        for role in ["SubscriptionAdmin", "CustomerAdmin"] {
            let far = world.client_in(&subscription, role, &[(role, None, None)]).await;
            for op in operations().filter(|op| op.method == Method::Get) {
                let (address, expected) = (existing.address(op), expected(op, role));
                let called = format!("{role}: {} at {address}", op.name);
                if op.reply == Reply::Events {
                    // an endless stream; its events are those of the feed
                    assert_eq!(far.status(&address).await, expected, "{called}");
                    continue;
                }
                let answer = far.get(&address).await;
                let status = answer.status.as_u16();
                if status != expected {
                    wrong.push(format!("{called} answered {status}, not {expected}"));
                }
                if status == 200 && !GLOBAL.contains(&op.name) {
                    let shown = String::from_utf8_lossy(&answer.bytes).into_owned();
                    let leaked = existing.texts().into_iter().filter(|text| shown.contains(*text));
                    wrong.extend(leaked.map(|text| format!("{called} shows {text}")));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
