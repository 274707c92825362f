//! Passwords removed from people who have passkeys, and restored within thirty days.

use chancery_testkit::{Answer, World, on_both_engines};
use serde_json::{Value, json};

use crate::{
    authenticator::make_ready,
    each, id,
    passkey::event_types,
    signing::{FIRST, Person, SECOND, set_mail_server},
};

/// A password that was never used before.
const THIRD: &str = "seven slow green snails";

async fn remove(world: &World, users: Value) -> Answer {
    world.admin.post(&world.path("/User/password/remove/batch"), users).await
}

async fn restore(world: &World, users: Value) -> Answer {
    world.admin.post(&world.path("/User/password/restore/batch"), users).await
}

async fn status(world: &World, user: &str) -> Value {
    let path = world.path(&format!("/passkey-security/users/{user}"));
    world.admin.get(&path).await.is(200).json()["readiness"]["passwordCredentialStatus"].clone()
}

/// New users without passwords.
async fn people<'a, const COUNT: usize>(world: &'a World, names: [&str; COUNT]) -> [Person<'a>; COUNT] {
    let mut people = Vec::new();
    for name in names {
        people.push(Person::new(world, json!({ "loginName": name })).await);
    }
    people.try_into().ok().unwrap()
}

/// Each element that was refused, and why.
fn reasons(problem: &Value) -> Vec<(&str, &str)> {
    let errors = problem["errors"].as_array().unwrap().iter();
    errors.map(|one| (one["pointer"].as_str().unwrap(), one["detail"].as_str().unwrap())).collect()
}

on_both_engines! {
    /// A removed password signs nobody in, and has an audit entry; restored it is the same password.
    async fn a_password_goes_and_comes_back(world: World) {
        let [ada] = people(&world, ["ada"]).await;
        make_ready(&world, &[&ada.read().await]).await;
        let (before, token) = (ada.entries().await.len(), ada.read().await["concurrencyToken"].clone());
        let dry = world.path("/User/password/remove/batch?dryRun=true");
        world.admin.post(&dry, json!([ada.id])).await.expect(200);
        assert_eq!(status(&world, &ada.id).await, "Active");

        let gone = remove(&world, json!([ada.id])).await.is(200).json();
        assert_eq!((each(&gone, "id"), gone[0]["concurrencyToken"] == token), (vec![ada.id.as_str()], false));
        assert_eq!(status(&world, &ada.id).await, "Removed");
        ada.change(FIRST, SECOND).await.problem(400, "invalid-request");
        assert_eq!(reasons(&remove(&world, json!([ada.id])).await.problem(409, "conflict")),
            [("/0", "is not ready to live without a password: PasswordNotSet")]);

        restore(&world, json!([ada.id])).await.expect(200);
        assert_eq!(status(&world, &ada.id).await, "Active");
        // the wrong attempt is reset
        ada.call("lockout/reset").await.expect(200);
        ada.change(FIRST, SECOND).await.expect(200);
        let entries = ada.entries().await;
        assert_eq!(entries.len(), before + 3, "{entries:?}");
        let types = event_types(&world).await;
        assert_eq!(types[types.len() - 2..], ["PasswordRemoved", "PasswordRestored"]);
    }

    /// All or none: each user who is not ready is named with the reasons.
    async fn users_who_are_not_ready_keep_their_passwords(world: World) {
        let [ada, bob, eve] = people(&world, ["ada", "bob", "eve"]).await;
        make_ready(&world, &[&ada.read().await, &eve.read().await]).await;
        eve.post("state", json!({ "isUserLocked": true })).await.expect(200);
        let refused = remove(&world, json!([ada.id, bob.id, eve.id])).await.problem(409, "conflict");
        let refused = reasons(&refused);
        assert_eq!(refused.iter().map(|(at, _)| *at).collect::<Vec<_>>(), ["/1", "/2"]);
        assert!(refused[0].1.contains("InsufficientUsableCredentials"), "{refused:?}");
        assert_eq!(refused[1].1, "is not ready to live without a password: UserLocked");
        assert_eq!(status(&world, &ada.id).await, "Active");
        for (body, status) in [
            (json!([ada.id, ada.id]), 400), (json!(["ada"]), 400), (json!([7]), 400), (json!({}), 400),
            (json!([ada.id, "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"]), 404),
        ] {
            remove(&world, body.clone()).await.expect(status);
            restore(&world, body).await.expect(status);
        }
    }

    /// Former passwords do not become the password, and cannot be set again.
    async fn the_history_stays_history(world: World) {
        world.set_option("PasswordHistoryCount", "5").await;
        let [ada] = people(&world, ["ada"]).await;
        make_ready(&world, &[&ada.read().await]).await;
        ada.reset(SECOND).await.expect(200);
        remove(&world, json!([ada.id])).await.expect(200);
        for former in [FIRST, SECOND] {
            ada.change(former, THIRD).await.problem(400, "invalid-request");
            ada.reset(former).await.problem(400, "invalid-request");
            ada.call("lockout/reset").await.expect(200);
        }
        ada.reset(THIRD).await.expect(200);
        for former in [FIRST, SECOND] {
            ada.reset(former).await.problem(400, "invalid-request");
        }
    }

    /// A new password ends the possibility of a restore, and so do thirty days; mails from before set none.
    async fn the_way_back_ends(world: World) {
        let [ada, bob] = people(&world, ["ada", "bob"]).await;
        for person in [&ada, &bob] {
            person.patch(json!({ "emailAddress": format!("{}@example.com", person.id) })).await;
        }
        make_ready(&world, &[&ada.read().await, &bob.read().await]).await;
        set_mail_server(&world.admin).await;
        let token = ada.token().await;
        remove(&world, json!([ada.id, bob.id])).await.expect(200);
        ada.redeem(&token, SECOND).await.problem(400, "invalid-request");
        ada.reset(SECOND).await.expect(200);
        let refused = restore(&world, json!([bob.id, ada.id])).await.problem(409, "conflict");
        assert_eq!(reasons(&refused), [("/1", "has a password")]);
        world.sql(vec![("UPDATE removed_password SET expires_on = 1", vec![])]).await;
        let refused = restore(&world, json!([bob.id])).await.problem(409, "conflict");
        assert_eq!(reasons(&refused), [("/0", "has no password that was taken away in the last 30 days")]);
    }

    /// More than one batch, with one who is not ready among them.
    async fn many_passwords_are_removed_in_batches(world: World) {
        let people: Vec<Value> = (0..600).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        let people = world.admin.post(&world.path("/User/batch"), json!(people)).await.is(200).json();
        let ids: Vec<&str> = people.as_array().unwrap().iter().map(id).collect();
        let refused = remove(&world, json!(ids)).await.problem(409, "conflict");
        assert!(refused["detail"].as_str().unwrap().starts_with("600 of the elements"), "{refused}");
    }
}
