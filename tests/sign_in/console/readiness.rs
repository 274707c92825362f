//! Passwordless readiness of a user store: numbers, explanations and users.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{Browser, administrator, assign, care::undo, many::confirm, person, post, sign_in};
use crate::{authenticator::make_ready, id, signing::Person};

const READINESS: &str = "/console/store/default/readiness";

on_both_engines! {
    /// Each reason has a number, a remedy, and a list of users.
    async fn each_readiness_reason_shows_its_users(world: World) {
        let mut browser = administrator(&world).await;
        let body = json!({ "loginName": "grace", "firstName": "Grace", "lastName": "Hopper", "isUserActive": false });
        world.admin.post(&world.path("/User"), body).await.expect(201);
        let home = browser.open("/console").await;
        assert!(home.html.contains(&format!("href=\"{READINESS}\"")), "{}", home.html);
        let page = browser.open(READINESS).await;
        assert!(page.status == 200 && page.html.contains("0 ready of 2"), "{}", page.html);
        assert!(page.html.contains("May not sign in") && page.html.contains("Too few passkeys"), "{}", page.html);
        assert!(page.html.contains("As required now: 2"), "{}", page.html);
        let behind = browser.open(&format!("{READINESS}?reason=UserInactive")).await;
        assert!(behind.html.contains("Grace Hopper") && !behind.html.contains(">Ada Lovelace</a>"), "{}", behind.html);
        let empty = browser.open(&format!("{READINESS}?reason=UserLocked")).await;
        assert!(empty.html.contains("Nothing found"), "{}", empty.html);
        let unknown = browser.open(&format!("{READINESS}?reason=Nonsense")).await;
        assert_eq!(unknown.status, 400, "{}", unknown.html);
    }

    /// Another number of required passkeys is simulated without changing anything.
    async fn another_number_of_passkeys_can_be_simulated(world: World) {
        let mut browser = administrator(&world).await;
        let one = browser.open(&format!("{READINESS}?required=0")).await;
        assert!(one.status == 200 && !one.html.contains("reason=InsufficientUsableCredentials"), "{}", one.html);
        let two = browser.open(&format!("{READINESS}?required=2")).await;
        assert!(two.html.contains("reason=InsufficientUsableCredentials&amp;required=2")
            || two.html.contains("reason=InsufficientUsableCredentials&#x26;required=2"), "{}", two.html);
    }

    /// Ready users are selected on their page; others are left out, and the undo is on the page of users without a
    /// password.
    async fn passwords_are_removed_from_ready_users(world: World) {
        const USERS: &str = "/console/store/default/User/batch";
        let mut browser = administrator(&world).await;
        let (grace, alan) = (Person::named(&world, "grace").await, Person::named(&world, "alan").await);
        make_ready(&world, &[&grace.read().await]).await;
        let ready = browser.open(&format!("{READINESS}?reason=Ready")).await;
        assert!(ready.html.contains("Remove passwords") && !ready.html.contains("name=\"all\""), "{}", ready.html);
        let fields = [("act", "remove-passwords"), ("selected", grace.id.as_str()), ("selected", alan.id.as_str())];
        let response = post(&world, &mut browser, &ready, USERS, &fields).await;
        for fact in ["<h1>Remove passwords: 1</h1>", "1 to be changed: grace", "alan: is not ready"] {
            assert!(response.html.contains(fact), "{fact}: {}", response.html);
        }
        let done = confirm(&world, &mut browser, &response, USERS).await;
        assert!(done.address.contains("done=done") && done.html.contains("Undo"), "{}", done.html);
        let status = async || {
            let overview = world.path(&format!("/passkey-security/users/{}", grace.id));
            world.admin.get(&overview).await.is(200).json()["readiness"]["passwordCredentialStatus"].clone()
        };
        assert_eq!(status().await, "Removed");
        undo(&world, &mut browser, done).await;
        assert_eq!(status().await, "Active");

        let remove = json!([id(&grace.read().await)]);
        world.admin.post(&world.path("/User/password/remove/batch"), remove).await.expect(200);
        let without = browser.open(&format!("{READINESS}?reason=PasswordNotSet")).await;
        let fields = [("act", "give-back-passwords"), ("selected", grace.id.as_str())];
        let response = post(&world, &mut browser, &without, USERS, &fields).await;
        confirm(&world, &mut browser, &response, USERS).await.answer.expect(200);
        assert_eq!(status().await, "Active");
    }

    /// Users without a role in the store see neither the page nor a link to it.
    async fn the_readiness_page_requires_a_role(world: World) {
        let reader = person(&world, "reader").await;
        assign(&world, &reader, "AuditTrailReader", json!({})).await;
        let mut browser = Browser::new(&world);
        let page = sign_in(&mut browser, "/console", "reader").await;
        assert!(!page.html.contains(READINESS), "{}", page.html);
        let status = browser.open(READINESS).await.status;
        assert!(status == 403 || status == 404, "{status}");
    }
}
