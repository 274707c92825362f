//! E-mail addresses that must be one user's alone: EmailMustBeUnique and LoginByEmailEnabled.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use crate::{
    each, id, pointers,
    signing::{Person, set},
};

async fn create(world: &World, body: Value) -> Value {
    world.admin.post(&world.path("/User"), body).await.is(201).json()
}

/// The pointers of a conflict.
async fn taken(world: &World, body: Value) -> Vec<String> {
    let problem = world.admin.post(&world.path("/User"), body).await.problem(409, "conflict");
    pointers(&problem).into_iter().map(str::to_owned).collect()
}

fn user(login_name: &str, address: &str) -> Value {
    json!({ "loginName": login_name, "emailAddress": address })
}

on_both_engines! {
    async fn need_not_be_unique_without_an_option(world: World) {
        create(&world, user("a", "x@example.com")).await;
        create(&world, user("b", "x@example.com")).await;
        create(&world, user("x@example.com", "b@example.com")).await;
        let batch = json!([user("c", "x@example.com"), user("d", "x@example.com")]);
        world.admin.post(&world.path("/User/batch"), batch).await.expect(200);
    }

    /// EmailMustBeUnique: without regard to case, the quarantined included; login names are no
    /// addresses then.
    ///
    /// - Effect of `UserStore options.EmailMustBeUnique`: A mail address that another user has is refused.
    async fn are_unique_where_they_must_be(world: World) {
        set(&world.admin, "EmailMustBeUnique", "true").await;
        let ada = Person::new(&world, user("ada", "Ada@Example.com")).await;
        assert_eq!(taken(&world, user("b", "aDA@example.COM")).await, ["/emailAddress"]);
        let bob = Person::new(&world, user("ada@example.com", "bob@example.com")).await;
        create(&world, json!({ "loginName": "c" })).await;
        create(&world, json!({ "loginName": "d" })).await;
        // every operation that sets an address
        let patch = json!({ "emailAddress": "ada@example.com", "concurrencyToken": bob.read().await["concurrencyToken"] });
        for answer in [
            world.admin.patch(&bob.path, patch.clone()).await,
            world.admin.put(&bob.path, patch.clone()).await,
            world.admin.put(&format!("{}/emailaddress", bob.path), patch.clone()).await,
        ] {
            assert_eq!(pointers(&answer.problem(409, "conflict")), ["/emailAddress"]);
        }
        // the user's own address is not taken
        let same = ada.patch(json!({ "emailAddress": "ADA@example.com", "firstName": "Ada" })).await;
        assert_eq!(same["emailAddress"], "ADA@example.com");
        world.admin.delete(&ada.path).await.expect(204);
        assert_eq!(taken(&world, user("e", "ada@example.com")).await, ["/emailAddress"]);
        ada.call("restore-deletion").await.expect(200);
        ada.patch(json!({ "emailAddress": "other@example.com" })).await;
        bob.patch(json!({ "emailAddress": "ada@example.com" })).await;
        // each store is its own
        world.other_store("other").await;
        world.admin.post("/api/userstore/v2/other/administration/User", user("f", "ada@example.com")).await.expect(201);
    }

    /// LoginByEmailEnabled: neither an address nor a login name may be the sign-in name of another user.
    async fn are_not_another_s_login_name_where_they_sign_in(world: World) {
        set(&world.admin, "LoginByEmailEnabled", "true").await;
        let ada = Person::new(&world, user("ada", "ada@example.com")).await;
        let own = Person::new(&world, user("own@example.com", "own@example.com")).await;
        assert_eq!(taken(&world, user("b", "ADA@example.com")).await, ["/emailAddress"]);
        assert_eq!(taken(&world, json!({ "loginName": "Ada@example.com" })).await, ["/loginName"]);
        assert_eq!(taken(&world, user("c", "OWN@example.com")).await, ["/emailAddress"]);
        assert_eq!(taken(&world, user("ADA@example.com", "own@example.com")).await, ["/loginName", "/emailAddress"]);
        let named = Person::new(&world, json!({ "loginName": "named@example.com" })).await;
        assert_eq!(taken(&world, user("d", "Named@example.com")).await, ["/emailAddress"]);
        world.admin.delete(&named.path).await.expect(204);
        assert_eq!(taken(&world, user("d", "Named@example.com")).await, ["/emailAddress"]);
        world.admin.delete(&ada.path).await.expect(204);
        assert_eq!(taken(&world, json!({ "loginName": "ada@example.com" })).await, ["/loginName"]);
        let patch = json!({ "loginName": "ADA@example.com", "concurrencyToken": own.read().await["concurrencyToken"] });
        assert_eq!(pointers(&world.admin.patch(&own.path, patch).await.problem(409, "conflict")), ["/loginName"]);
        own.patch(json!({ "loginName": "own" })).await;
        own.patch(json!({ "loginName": "Own@example.com" })).await;
    }

    /// Within a batch, too; an address that the batch itself gives up is free.
    async fn are_unique_within_a_batch(world: World) {
        set(&world.admin, "LoginByEmailEnabled", "true").await;
        let batch = world.path("/User/batch");
        let mixed = json!([user("a", "a@example.com"), user("b", "A@example.com"), user("a@example.com", "c@example.com"), user("d", "d@example.com"), user("e", "b@example.com"), user("B@example.com", "f@example.com")]);
        let problem = world.admin.post(&batch, mixed).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/1/emailAddress", "/2/loginName", "/5/loginName"]);
        let created = world.admin.post(&batch, json!([user("a", "a@example.com"), user("b", "b@example.com"), user("c", "c@example.com")])).await.is(200).json();
        let update = |index: usize, address: &str| json!({ "id": created[index]["id"], "emailAddress": address, "concurrencyToken": created[index]["concurrencyToken"] });
        let problem = world.admin.put(&batch, json!([update(0, "new@example.com"), update(1, "C@example.com")])).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/1/emailAddress"]);
        let problem = world.admin.put(&batch, json!([update(2, "c@example.com"), update(1, "C@example.com")])).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/1/emailAddress"]);
        // two exchange theirs
        let swapped = world.admin.put(&batch, json!([update(0, "b@example.com"), update(1, "a@example.com")])).await.is(200).json();
        assert_eq!(each(&swapped, "emailAddress"), ["b@example.com", "a@example.com"]);
        let many: Vec<Value> = (0..1200).map(|number| user(&format!("u{number}"), &format!("u{}@example.com", number % 1199))).collect();
        let problem = world.admin.post(&batch, json!(many)).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/1199/emailAddress"]);
        let mut many: Vec<Value> = (0..1200).map(|number| user(&format!("u{number}"), &format!("u{number}@example.com"))).collect();
        many[700]["emailAddress"] = json!("C@example.com");
        let problem = world.admin.post(&batch, json!(many)).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/700/emailAddress"]);
    }

    /// Users with an unchanged address are not checked again.
    async fn unchanged_addresses_are_not_checked_again(world: World) {
        let (a, b) = (create(&world, user("a", "x@example.com")).await, create(&world, user("b", "x@example.com")).await);
        set(&world.admin, "EmailMustBeUnique", "true").await;
        set(&world.admin, "LoginByEmailEnabled", "true").await;
        let one = world.path(&format!("/User/{}", id(&a)));
        let mut body = a.clone();
        body["firstName"] = json!("A");
        let a = world.admin.put(&one, body).await.is(202).json();
        let update = |user: &Value| json!({ "id": user["id"], "emailAddress": "X@example.com", "lastName": "L", "concurrencyToken": user["concurrencyToken"] });
        world.admin.put(&world.path("/User/batch"), json!([update(&a), update(&b)])).await.expect(200);
    }

    /// Two at once: the first one wins.
    async fn are_unique_among_concurrent_writes(world: World) {
        set(&world.admin, "EmailMustBeUnique", "true").await;
        let path = world.path("/User");
        let calls = (0..6).map(|number| world.admin.post(&path, user(&format!("u{number}"), "x@example.com")));
        let answers = futures_util::future::join_all(calls).await;
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409, 409, 409, 409]);
    }
}
