//! What is in a subscription is not there for those who administer another: every operation that reads.

use std::collections::HashMap;

use chancery_record::Value;
use chancery_resource::{Action, Method, Op, Reply};
use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{
    ground::{Ground, ground},
    pattern::{create, key_of, operations, rows},
};
use crate::id;

/// What begins with this is refused to these roles altogether, whatever is there (decisions, section 7).
const REFUSED: [(&str, &[&str]); 3] = [
    ("/Customer", &["SubscriptionAdmin"]),
    ("/CustomAuditTrail", &["SubscriptionAdmin", "CustomerAdmin"]),
    ("/passkey-trust", &["SubscriptionAdmin", "CustomerAdmin"]),
];

/// What is everyone's by design, though our own is asked for: types have no subscription.
const EVERYONES: [&str; 1] = ["GetIdpType"];

/// Parameters that name nothing of ours: the resource, the parameter and a word for it.
const WORDS: [(&str, &str, &str); 6] = [
    ("CertStore", "{type}", "OidcTokenSigning"),
    ("Option", "{type}", "Tenant"),
    ("Option", "{name}", "SessionSliding"),
    ("IdpType", "{name}", "Google"),
    ("CustomView", "{viewName}", "SignIn"),
    ("ApplicationUserProfile", "{applicationUserId}", "{ApplicationUser 1}"),
];

/// What is in `Default`: the ground, and the key of one of each resource.
struct Ours {
    ground: Ground,
    keys: HashMap<&'static str, String>,
}

async fn ours(world: &World) -> Ours {
    crate::sign_in::leave_traces(world).await;
    let ground = ground(&world.admin).await;
    let mut keys = HashMap::new();
    for row in rows() {
        let made = create(world, &ground, &row, 1).await;
        keys.insert(row.resource, key_of(row.resource, &made).to_owned());
    }
    let request = json!({
        "platformUserId": "{ApplicationUser 1}", "replacementIdpInstanceId": "{IdpInstance 1}",
        "replacementUniqueUserId": "somebody", "replacementIssuer": "https://work.example", "reason": "Lost",
    });
    let made = world.make("identity-replacements", ground.fill(&request, 1)).await;
    keys.insert("IdentityReplacement", id(&made).to_owned());
    for resource in ["SignInSession", "SignInGrant", "SignInConsent", "SignInFactor", "SignInRecord"] {
        keys.insert(resource, id(&world.all(resource).await[0]).to_owned());
    }
    keys.insert("DirectoryRefusal", refused_removal(world).await);
    keys.insert("ClientAppRefusal", crate::sign_in::leave_refusal(world, &keys["ClientApp"]).await);
    // its deliveries are read by its own id
    keys.insert("EventDelivery", keys["EventSubscription"].clone());
    for resource in ["ApplicationUser", "ApplicationGroup"] {
        keys.insert(resource, ground.text(&format!("{{{resource} 1}}"), 0));
    }
    keys.insert("ApplicationUserProfile", answer_of(world, &keys["ApplicationUser"]).await);
    Ours { ground, keys }
}

/// What a person answered to a questionnaire; its key.
async fn answer_of(world: &World, person: &str) -> String {
    let insert = "INSERT INTO platform_profile (application_user_rid, key, value, concurrency_token) \
        SELECT rid, 'an-answer', 'x', 'a-token' FROM application_user WHERE id = ?1";
    world.sql(vec![(insert, vec![Value::Id(person.parse().unwrap())])]).await;
    "an-answer".to_owned()
}

/// Has a directory want to remove somebody with a role; the id of what that leaves.
async fn refused_removal(world: &World) -> String {
    let leaver = world.user("leaver").await;
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    let filter = format!("ApplicationUser?filter=identities.subject%20eq%20%22{}%22", id(&leaver));
    let person = world.all(&filter).await[0].clone();
    let role =
        json!({ "principalType": "PlatformUser", "principalId": person["id"], "roleType": "SystemAdmin" });
    world.make("RoleAssignment", role).await;
    let token = json!({ "name": "a directory", "reach": "All" });
    let token = world.admin.post(&world.path("/ScimToken"), token).await.is(201).json();
    let directory = world.admin.with_token(token["token"].as_str().unwrap());
    assert_eq!(directory.delete(&format!("/api/scim/v2/default/Users/{}", id(&leaver))).await.status, 403);
    id(&world.all("DirectoryRefusal").await[0]).to_owned()
}

/// An operation's path with words for what names nothing of ours.
fn worded(op: &Op) -> String {
    WORDS
        .iter()
        .filter(|(resource, ..)| *resource == op.shape.name)
        .fold(op.path.to_owned(), |path, &(_, parameter, word)| path.replace(parameter, word))
}

/// The status for somebody who has this role elsewhere.
fn expected(op: &Op, role: &str) -> u16 {
    let is_refused = REFUSED.iter().any(|(start, roles)| op.path.starts_with(start) && roles.contains(&role));
    if is_refused {
        403
    } else if EVERYONES.contains(&op.name) || !worded(op).contains('{') {
        200
    } else {
        404
    }
}

impl Ours {
    /// The address at which an operation reads something of ours.
    fn address(&self, op: &Op) -> String {
        let path = worded(op).replace("{principalId}", &format!("{{{} 1}}", op.shape.name));
        let path = path.replace("{eventSubscriptionId}", "{id}");
        // entries of the audit trail have numbers
        let key = self.keys.get(op.shape.name).map_or("1", String::as_str);
        let address = self.ground.address(&path, key);
        assert!(!address.contains('{'), "{}: {address} has a parameter without a word", op.name);
        address
    }

    /// What must not be in any answer: ids, locations and keys of ours.
    fn texts(&self) -> Vec<&str> {
        let own = self.keys.iter().filter(|(resource, _)| **resource != "IdpType");
        own.map(|(_, key)| key.as_str()).chain(self.ground.ids()).collect()
    }
}

/// It is there: an administrator of everything reads it at the same addresses.
async fn assert_there(world: &World, ours: &Ours) {
    for op in operations().filter(|op| op.method == Method::Get) {
        let address = ours.address(op);
        match expected(op, "CustomerAdmin") {
            404 => world.admin.get(&address).await.expect(200),
            200 if matches!(op.action, Action::List) => {
                let shown = world.admin.get(&address).await.is(200).json().to_string();
                assert!(shown.contains(ours.keys[op.shape.name].as_str()), "{}: {shown}", op.name);
            }
            _ => {}
        }
    }
}

on_both_engines! {
    async fn nothing_of_another_subscription_is_read(world: World) {
        let ours = ours(&world).await;
        assert_there(&world, &ours).await;
        let subscription = world.other_subscription("Far").await;
        let mut wrong = Vec::new();
        for role in ["SubscriptionAdmin", "CustomerAdmin"] {
            let far = world.client_in(&subscription, role, &[(role, None, None)]).await;
            for op in operations().filter(|op| op.method == Method::Get) {
                let (address, expected) = (ours.address(op), expected(op, role));
                let called = format!("{role}: {} at {address}", op.name);
                if op.reply == Reply::Events {
                    // it never ends; its pieces are those of the feed
                    assert_eq!(far.status(&address).await, expected, "{called}");
                    continue;
                }
                let answer = far.get(&address).await;
                let status = answer.status.as_u16();
                if status != expected {
                    wrong.push(format!("{called} answered {status}, not {expected}"));
                }
                if status == 200 && !EVERYONES.contains(&op.name) {
                    let shown = String::from_utf8_lossy(&answer.bytes).into_owned();
                    let told = ours.texts().into_iter().filter(|text| shown.contains(*text));
                    wrong.extend(told.map(|text| format!("{called} shows {text}")));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
