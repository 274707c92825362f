//! Identity replacement: the queue, both identities side by side, and the pending action.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, Browser, administrator, assign, person, post, sign_in};
use crate::id;

const ALL: &str = "/console/IdentityReplacement";

/// An instance with users of an external provider.
async fn instance(world: &World) -> Value {
    let kinds = world.all("IdpType").await;
    let kind = kinds.as_array().unwrap().iter().find(|kind| kind["name"] == "OpenIdConnect").unwrap();
    let all = world.all("Subscription").await;
    let home = all.as_array().unwrap().iter().find(|one| one["name"] == "Default").unwrap();
    world
        .make("IdpInstance", json!({ "name": "work", "idpTypeId": kind["id"], "subscriptionId": home["id"] }))
        .await
}

/// A request of another administrator: the platform user, and the replacement.
async fn requested_replacement(world: &World) -> (Value, Value) {
    let (grace, instance) = (person(world, "grace").await, instance(world).await);
    let body = json!({
        "platformUserId": grace["id"], "replacementIdpInstanceId": instance["id"],
        "replacementUniqueUserId": "grace-at-work", "reason": "Lost her <telephone>",
    });
    // the actor who created the person at the browser cannot be approved by that person
    let asks = world.client("asks", &[("SystemAdmin", None, None)]).await;
    world.sql(vec![("DELETE FROM client_app_controller", vec![])]).await;
    let created = asks.post(&format!("{BASE}/identity-replacements"), body).await.is(201).json();
    (grace, created)
}

on_both_engines! {
    /// From the queue to the end, by an administrator who is not the requester.
    async fn a_replacement_is_approved_and_executed(world: World) {
        let mut browser = administrator(&world).await;
        let (grace, created) = requested_replacement(&world).await;
        let path = format!("{ALL}/{}", id(&created));
        let queue = browser.open(&format!("{ALL}?view=open")).await;
        assert!(queue.html.contains(&path) && queue.html.contains("Lost her &lt;telephone&gt;"), "{}", queue.html);
        assert!(queue.html.contains("0 / 1"), "{}", queue.html);
        let page = browser.open(&path).await;
        for expected in ["Replacement of an identity of Ada Lovelace", "grace-at-work", ">work<", "Approvals still required: 1", "0 of 1"] {
            assert!(page.html.contains(expected), "{expected}: {}", page.html);
        }
        assert!(page.html.contains(&format!("/console/ApplicationUser/{}", id(&grace))), "{}", page.html);
        assert!(!page.html.contains(&format!("{path}/Execute")), "what is not its turn is not offered");
        let proof = format!("{path}/ProveReplacementIdentity");
        for which in ["Current", "Replacement"] {
            let page = post(&world, &mut browser, &page, &proof, &[("identity", which)]).await;
            assert_eq!(page.status, 200, "{}", page.html);
        }
        let page = browser.open(&path).await;
        assert!(!page.html.contains("ProveReplacementIdentity") && !page.html.contains("not yet"), "{}", page.html);
        let approved = post(&world, &mut browser, &page, &format!("{path}/Approve"), &[]).await;
        assert!(approved.html.contains("can be executed") && approved.html.contains("1 of 1"), "{}", approved.html);
        let done = post(&world, &mut browser, &approved, &format!("{path}/Execute"), &[]).await;
        assert!(done.html.contains("The identity was replaced"), "{}", done.html);
        assert!(done.html.contains("sessions and tokens"), "{}", done.html);
        assert!(!done.html.contains(&format!("{path}/Cancel")), "{}", done.html);
    }

    /// Nobody approves the own request: the page says so, and the operation refuses.
    async fn nobody_approves_the_own_replacement_request(world: World) {
        let mut browser = administrator(&world).await;
        let (grace, instance) = (person(&world, "grace").await, instance(&world).await);
        let user = browser.open(&format!("/console/ApplicationUser/{}", id(&grace))).await;
        let new = format!("{ALL}/new?platformUserId={}", id(&grace));
        assert!(user.html.contains(&new), "{}", user.html);
        let page = browser.open(&new).await;
        assert!(page.html.contains("data-shown=\"Ada Lovelace\""), "{}", page.html);
        let fields = [
            ("platformUserId", id(&grace)), ("replacementIdpInstanceId", id(&instance)),
            ("replacementUniqueUserId", "grace-at-work"), ("reason", "Lost her telephone"),
            ("requiredApprovals", "2"), ("lifetimeMinutes", "60"),
        ];
        let empty: Vec<_> = fields.iter().copied().filter(|(name, _)| *name != "reason").collect();
        let refused = post(&world, &mut browser, &page, &format!("{ALL}/new"), &empty).await;
        assert!(refused.status == 400 && refused.html.contains("href=\"#f-reason\""), "{}", refused.html);
        let created = post(&world, &mut browser, &page, &format!("{ALL}/new"), &fields).await;
        assert!(created.html.contains("You requested this") && created.html.contains("0 of 2"), "{}", created.html);
        let open = world.all("identity-replacements").await[0].clone();
        let path = format!("{ALL}/{}", id(&open));
        assert!(!created.html.contains(&format!("{path}/Approve")) && !created.html.contains("ProveReplacement"), "{}", created.html);
        let refused = post(&world, &mut browser, &created, &format!("{path}/Approve"), &[]).await;
        assert_eq!(refused.status, 409, "{}", refused.html);
        let gone = post(&world, &mut browser, &created, &format!("{path}/Cancel"), &[]).await;
        assert!(gone.html.contains("Nothing was replaced"), "{}", gone.html);
    }

    /// Users without permission to decide see the pending action, and are offered nothing.
    async fn replacement_actions_require_permission(world: World) {
        let (_, created) = requested_replacement(&world).await;
        let reader = person(&world, "reader").await;
        let home = world.all("Subscription").await;
        let home = home.as_array().unwrap().iter().find(|one| one["name"] == "Default").unwrap();
        assign(&world, &reader, "SubscriptionAdmin", json!({ "applyToSubscriptionId": home["id"] })).await;
        let mut browser = Browser::new(&world);
        sign_in(&mut browser, "/console", "reader").await;
        let path = format!("{ALL}/{}", id(&created));
        let page = browser.open(&path).await;
        assert!(page.html.contains(&format!("{path}/Approve")), "{}", page.html);
        for hidden in ["/Cancel", "/Execute", "/ProveReplacementIdentity"] {
            assert!(!page.html.contains(&format!("{path}{hidden}")), "{hidden}: {}", page.html);
        }
        post(&world, &mut browser, &page, &format!("{path}/Cancel"), &[]).await.answer.expect(403);
    }
}
