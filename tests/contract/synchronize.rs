//! Synchronizing: platform users and groups follow those of a store.

use chancery_store::Mode;
use chancery_testkit::{Client, Engine, World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{each, id, signing::texts};

const USERS: &str = "/api/management/v2/ApplicationUser";
const GROUPS: &str = "/api/management/v2/ApplicationGroup";
const UNKNOWN_ID: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";

/// Synchronizes; the counts as processed, created, updated, deleted, failed.
async fn synchronize(client: &Client, path: &str) -> [i64; 5] {
    let answer = client.post(path, json!(null)).await.is(200).json();
    assert_eq!(answer.as_object().unwrap().len(), 5, "{answer}");
    ["processed", "created", "updated", "deleted", "failed"].map(|count| answer[count].as_i64().unwrap())
}

async fn synchronize_users(world: &World) -> [i64; 5] {
    synchronize(&world.admin, &world.path("/User/synchronize")).await
}

async fn platform_users(world: &World) -> Vec<Value> {
    world.admin.get(USERS).await.is(200).json().as_array().unwrap().clone()
}

/// The platform user of a user.
async fn mirror_of(world: &World, user: &Value) -> Value {
    let path = format!("{USERS}?filter=identities.subject%20eq%20%22{}%22", id(user));
    world.admin.get(&path).await.is(200).json()[0].clone()
}

async fn set_option(world: &World, name: &str, value: &str) {
    let all = "/api/management/v2/Option";
    let rows = world.admin.get(&format!("{all}?filter=name%20eq%20%22{name}%22")).await.is(200).json();
    let change = json!({ "value": value, "concurrencyToken": rows[0]["concurrencyToken"] });
    world.admin.patch(&format!("{all}/{}", id(&rows[0])), change).await.expect(202);
}

async fn default_tenant(world: &World) -> Uuid {
    let read = world.app.store.run("Test", Mode::Long, None, |tx| {
        tx.one("SELECT id FROM tenant WHERE name_key = 'default'", &[], |row| row.id(0))
    });
    read.await.unwrap().unwrap()
}

/// Creates users with this prefix of login names; returns their ids.
async fn many_users(world: &World, name: &str, count: usize) -> Vec<String> {
    let bodies: Vec<Value> =
        (0..count).map(|number| json!({ "loginName": format!("{name}{number}") })).collect();
    let users = world.admin.post(&world.path("/User/batch"), json!(bodies)).await.is(200).json();
    each(&users, "id").into_iter().map(str::to_owned).collect()
}

on_both_engines! {
    async fn users_are_mirrored_followed_and_removed(world: World) {
        let body = json!({
            "loginName": "ada", "firstName": "Ada", "lastName": "Lovelace", "emailAddress": "ada@example.com",
            "picture": "https://example.com/ada.png",
        });
        let ada = world.admin.post(&world.path("/User"), body).await.is(201).json();
        let bob = world.user("bob").await;
        assert_eq!(synchronize_users(&world).await, [2, 2, 0, 0, 0]);
        let mirror = mirror_of(&world, &ada).await;
        let identity = &mirror["identities"][0];
        let expected = json!({
            "id": mirror["id"], "firstName": "Ada", "lastName": "Lovelace", "emailAddress": "ada@example.com",
            "organizationalUnit": null, "picture": "https://example.com/ada.png", "managerId": null,
            "concurrencyToken": mirror["concurrencyToken"],
            "identities": [{
                "id": identity["id"], "idpInstanceId": ada["instanceId"], "issuer": "UserStore", "subject": ada["id"],
                "isUserStoreIdentity": true, "lifecycleStatus": "Active",
            }],
            "userProfiles": [],
        });
        assert_eq!(mirror, expected);
        assert_ne!(mirror["id"], ada["id"], "ids are unique in a store, not beyond it");
        let one = format!("{USERS}/{}", id(&mirror));
        assert_eq!(world.admin.get(&one).await.is(200).json(), mirror);

        // again: nothing changes
        let before = platform_users(&world).await;
        assert_eq!(synchronize_users(&world).await, [2, 0, 0, 0, 0]);
        assert_eq!(platform_users(&world).await, before);

        // a change of a mirrored member is copied; another is not
        let change = json!({ "lastName": "King", "picture": "", "concurrencyToken": ada["concurrencyToken"] });
        world.admin.patch(&world.path(&format!("/User/{}", id(&ada))), change).await.expect(202);
        let change = json!({ "nickname": "Bobby", "concurrencyToken": bob["concurrencyToken"] });
        world.admin.patch(&world.path(&format!("/User/{}", id(&bob))), change).await.expect(202);
        assert_eq!(synchronize_users(&world).await, [2, 0, 1, 0, 0]);
        let changed = world.admin.get(&one).await.is(200).json();
        assert_eq!((&changed["lastName"], &changed["picture"]), (&json!("King"), &json!(null)));
        assert_eq!(changed["identities"], mirror["identities"]);
        assert_ne!(changed["concurrencyToken"], mirror["concurrencyToken"]);

        // a user in quarantine is hidden, and comes back whole
        let was = mirror_of(&world, &bob).await;
        world.admin.delete(&world.path(&format!("/User/{}", id(&bob)))).await.expect(204);
        assert_eq!(synchronize_users(&world).await, [1, 0, 0, 1, 0]);
        world.admin.get(&format!("{USERS}/{}", id(&was))).await.problem(404, "not-found");
        world.admin.post(&world.path(&format!("/User/{}/restore-deletion", id(&bob))), json!(null)).await.expect(200);
        assert_eq!(synchronize_users(&world).await, [2, 1, 0, 0, 0]);
        assert_eq!(mirror_of(&world, &bob).await["id"], was["id"], "what refers to the id holds again");
    }

    async fn groups_are_mirrored_followed_and_removed(world: World) {
        let (sales, staff) = (world.group("Sales").await, world.group("Staff").await);
        let path = world.path("/Group/synchronize");
        assert_eq!(synchronize(&world.admin, &path).await, [2, 2, 0, 0, 0]);
        assert_eq!(synchronize(&world.admin, &path).await, [2, 0, 0, 0, 0]);
        let groups = world.admin.get(&format!("{GROUPS}?sortBy=name")).await.is(200).json();
        assert_eq!(each(&groups, "name"), ["Sales", "Staff"]);
        let mirror = &groups[0];
        assert_eq!(mirror["identities"][0]["subject"], sales["id"]);
        assert_eq!(mirror.as_object().unwrap().len(), 4, "id, name, concurrencyToken, identities");
        let change = json!({ "name": "Sellers", "concurrencyToken": sales["concurrencyToken"] });
        world.admin.patch(&world.path(&format!("/Group/{}", id(&sales))), change).await.expect(202);
        world.admin.delete(&world.path(&format!("/Group/{}", id(&staff)))).await.expect(204);
        assert_eq!(synchronize(&world.admin, &path).await, [1, 0, 1, 1, 0]);
        assert_eq!(world.admin.get(&format!("{GROUPS}/{}", id(mirror))).await.is(200).json()["name"], "Sellers");
        world.admin.get(&format!("{GROUPS}/{}", id(&groups[1]))).await.problem(404, "not-found");
        assert_eq!(platform_users(&world).await, Vec::<Value>::new(), "users are synchronized apart");
    }

    /// Each change has its entry in the configuration's trail, and personal data in it is sealed.
    async fn changes_are_audited(world: World) {
        let ada = world.user("ada").await;
        synchronize_users(&world).await;
        let change = json!({ "firstName": "Ada", "concurrencyToken": ada["concurrencyToken"] });
        world.admin.patch(&world.path(&format!("/User/{}", id(&ada))), change).await.expect(202);
        synchronize_users(&world).await;
        let mirror = mirror_of(&world, &ada).await;
        world.admin.delete(&world.path(&format!("/User/{}", id(&ada)))).await.expect(204);
        synchronize_users(&world).await;
        let entries = texts(
            &world,
            "SELECT action || ' ' || primary_key FROM audit_entry WHERE area = 'ApplicationUser' AND store = 0 \
             AND data_source = 'management' AND actor IS NOT NULL ORDER BY rid",
        );
        let id = id(&mirror);
        assert_eq!(entries.await, [format!("Added {id}"), format!("Modified {id}"), format!("Modified {id}")]);
        let contents = texts(&world, "SELECT current_content FROM audit_entry WHERE area = 'ApplicationUser' AND current_content IS NOT NULL");
        assert!(contents.await.iter().all(|content| !content.contains('"')), "contents are under the person's key: no JSON");
        let events = texts(&world, "SELECT envelope FROM outbox_event ORDER BY id").await;
        let events = events.iter().filter(|event| event.contains("platform.management.applicationuser."));
        let kinds: Vec<Value> = events.map(|event| serde_json::from_str::<Value>(event).unwrap()["type"].clone()).collect();
        assert_eq!(kinds, ["created", "updated", "hidden"].map(|kind| format!("platform.management.applicationuser.{kind}")));
    }

    async fn an_erased_user_leaves_no_mirror(world: World) {
        let (ada, bob) = (world.user("ada").await, world.user("bob").await);
        synchronize_users(&world).await;
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&ada))), json!(null)).await.expect(204);
        let left = platform_users(&world).await;
        assert_eq!(left.iter().map(|user| &user["identities"][0]["subject"]).collect::<Vec<_>>(), [&bob["id"]]);
        assert_eq!(synchronize_users(&world).await, [1, 0, 0, 0, 0]);
    }

    async fn lists_take_every_parameter(world: World) {
        for (login_name, last_name) in [("a", "Young"), ("b", "adams"), ("c", "Brown"), ("d", "Zorn")] {
            let body = json!({ "loginName": login_name, "lastName": last_name });
            world.admin.post(&world.path("/User"), body).await.expect(201);
        }
        let nameless = world.user("e").await;
        synchronize_users(&world).await;
        let (tenant, instance) = (default_tenant(&world).await, nameless["instanceId"].as_str().unwrap());
        for list in [USERS.to_owned(), format!("{USERS}/tenant/{tenant}"), format!("{USERS}/idpinstance/{instance}")] {
            let all = world.admin.get(&list).await.is(200).json();
            let mut sorted = each(&all, "id");
            sorted.sort_unstable();
            assert_eq!((each(&all, "id"), sorted.len()), (sorted.clone(), 5), "{list}");
            let rows = world.admin.get(&format!("{list}?filter=lastName%20co%20%22A%22%20or%20lastName%20eq%20%22zorn%22&sortBy=lastName")).await.is(200).json();
            assert_eq!(each(&rows, "lastName"), ["adams", "Zorn"], "{list}");
            let mut page = world.admin.get(&format!("{list}?sortBy=lastName&sortOrder=descending&count=2&includeTotal=true")).await.is(200);
            assert_eq!(page.header("x-total-count"), Some("5"));
            let mut names = Vec::new();
            loop {
                names.extend(page.json().as_array().unwrap().iter().map(|user| user["lastName"].clone()));
                let Some(next) = page.next() else { break };
                page = world.admin.get(&next).await.is(200);
            }
            assert_eq!(names, [json!("Zorn"), json!("Young"), json!("Brown"), json!("adams"), json!(null)]);
            let none = world.admin.get(&format!("{list}?filter=identities%5Bsubject%20eq%20%22{UNKNOWN_ID}%22%5D")).await.is(200).json();
            assert_eq!(none, json!([]));
            world.admin.get(&format!("{list}?filter=idpInstanceId%20pr")).await.problem(400, "invalid-request");
        }
        assert_eq!(world.admin.get(&format!("{GROUPS}/tenant/{tenant}")).await.is(200).json(), json!([]));
    }

    async fn an_unknown_parent_is_not_found(world: World) {
        for path in [USERS, GROUPS] {
            for parent in ["tenant", "idpinstance"] {
                world.admin.get(&format!("{path}/{parent}/{UNKNOWN_ID}")).await.problem(404, "not-found");
                world.admin.get(&format!("{path}/{parent}/x")).await.problem(400, "invalid-request");
            }
            world.admin.get(&format!("{path}/{UNKNOWN_ID}")).await.problem(404, "not-found");
        }
    }

    async fn each_sees_what_its_scope_holds(world: World) {
        let ada = world.user("ada").await;
        let other = world.other_store("other").await;
        // the same id in another store is another person
        let twin = json!({ "loginName": "twin", "id": ada["id"], "lastName": "Twin" });
        let twin = world.admin.post("/api/userstore/v2/other/administration/User", twin).await.is(201).json();
        assert_eq!(twin["id"], ada["id"]);
        synchronize_users(&world).await;
        assert_eq!(synchronize(&world.admin, "/api/userstore/v2/other/administration/User/synchronize").await, [1, 1, 0, 0, 0]);
        let all = platform_users(&world).await;
        assert_eq!(all.len(), 2);
        let (ours, theirs) = if all[0]["lastName"] == "Twin" { (&all[1], &all[0]) } else { (&all[0], &all[1]) };

        let (tenant, store) = (default_tenant(&world).await, ada["instanceId"].as_str().unwrap().parse().unwrap());
        let of_tenant = format!("{USERS}/tenant/{tenant}");
        let (of_store, of_other) = (format!("{USERS}/idpinstance/{store}"), format!("{USERS}/idpinstance/{other}"));
        let reader = "ApplicationDataReader";
        for (name, role, seen, tenant_is, other_is) in [
            ("everywhere", (reader, None, None), 2, 200, 200),
            ("in-tenant", (reader, Some(tenant), None), 1, 200, 404),
            ("in-store", (reader, None, Some(store)), 1, 404, 404),
            ("tenant-admin", ("TenantAdmin", Some(tenant), None), 1, 200, 404),
            ("store-admin", ("UserStoreAdmin", None, Some(store)), 1, 404, 404),
            ("subscription-admin", ("SubscriptionAdmin", None, None), 1, 200, 404),
            ("customer-admin", ("CustomerAdmin", None, None), 1, 200, 404),
        ] {
            let client = world.client(name, &[role]).await;
            let list = client.get(USERS).await.is(200).json();
            assert_eq!(list.as_array().unwrap().len(), seen, "{name}");
            client.get(&format!("{USERS}/{}", id(ours))).await.expect(200);
            client.get(&format!("{USERS}/{}", id(theirs))).await.expect(if seen == 2 { 200 } else { 404 });
            client.get(&of_tenant).await.expect(tenant_is);
            assert_eq!(each(&client.get(&of_store).await.is(200).json(), "id"), [id(ours)], "{name}");
            client.get(&of_other).await.expect(other_is);
        }
        let other_store_admin = world.client("elsewhere", &[("UserStoreAdmin", None, Some(other))]).await;
        assert_eq!(each(&other_store_admin.get(USERS).await.is(200).json(), "id"), [id(theirs)]);
        other_store_admin.get(&format!("{USERS}/{}", id(ours))).await.problem(404, "not-found");
        other_store_admin.get(&of_store).await.problem(404, "not-found");
        let unprivileged = world.client("nobody", &[("AuditTrailReader", None, None)]).await;
        unprivileged.get(USERS).await.problem(403, "forbidden");
        // to synchronize takes the store's administrator
        other_store_admin.post(&world.path("/User/synchronize"), json!(null)).await.problem(404, "not-found");
        let reader = world.client("reader", &[(reader, None, None)]).await;
        reader.post(&world.path("/User/synchronize"), json!(null)).await.problem(403, "forbidden");
    }

    /// Many users are processed in batches; a dry run reads all of them and changes nothing.
    async fn a_large_store_is_synchronized_in_batches(world: World) {
        let ids = many_users(&world, "u", 2600).await;
        let dry = synchronize(&world.admin, &world.path("/User/synchronize?dryRun=true")).await;
        assert_eq!(dry, [2600, 2600, 0, 0, 0]);
        assert_eq!(platform_users(&world).await.len(), 0, "a dry run changes nothing");
        assert_eq!(synchronize_users(&world).await, [2600, 2600, 0, 0, 0]);
        assert_eq!(synchronize_users(&world).await, [2600, 0, 0, 0, 0]);
        let mirrors = platform_users(&world).await;
        let mut subjects: Vec<&str> = mirrors.iter().map(|user| user["identities"][0]["subject"].as_str().unwrap()).collect();
        subjects.sort_unstable();
        let mut expected: Vec<&str> = ids.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(subjects, expected);

        // whole batches are gone, and some in between
        world.admin.delete_with(&world.path("/User/batch"), json!(&ids[..1700])).await.expect(204);
        many_users(&world, "new", 30).await;
        let dry = synchronize(&world.admin, &world.path("/User/synchronize?dryRun=true")).await;
        assert_eq!(dry, [930, 30, 0, 1700, 0]);
        assert_eq!(synchronize_users(&world).await, [930, 30, 0, 1700, 0]);
        assert_eq!(platform_users(&world).await.len(), 930);
        let metrics = world.admin.get("/metrics").await.is(200);
        let metrics = String::from_utf8_lossy(&metrics.bytes).into_owned();
        let line = "chancery_operation_items_total{operation=\"SynchronizeAllUsers\"} ";
        let items = metrics.lines().find_map(|text| text.strip_prefix(line)).unwrap();
        assert_eq!(items, (3 * 2600 + 2 * 930).to_string());
    }

    /// Statistics that PostgreSQL took while an import was not committed say that tables are empty: plans based on that must
    /// not read all of a table for each row of another.
    async fn many_are_deleted_where_tables_look_empty(world: World) {
        let ids = many_users(&world, "u", 1500).await;
        assert_eq!(synchronize_users(&world).await, [1500, 1500, 0, 0, 0]);
        if world.engine == Engine::Postgres {
            world.sql(vec![
                ("ANALYZE", vec![]),
                ("UPDATE pg_class SET reltuples = 0 WHERE relname LIKE 'application_%' OR relname LIKE 'audit_%'", vec![]),
                ("DELETE FROM pg_statistic WHERE starelid = 'application_user'::regclass", vec![]),
            ]).await;
        }
        world.admin.delete_with(&world.path("/User/batch"), json!(&ids[..1000])).await.expect(204);
        assert_eq!(synchronize_users(&world).await, [500, 0, 0, 1000, 0]);
    }

    async fn two_runs_at_once_make_no_duplicates(world: World) {
        many_users(&world, "u", 1500).await;
        let (path, admin) = (world.path("/User/synchronize"), &world.admin);
        let (one, other) = tokio::join!(synchronize(admin, &path), synchronize(admin, &path));
        assert_eq!((one[0], other[0]), (1500, 1500));
        assert_eq!(one[1] + other[1], 1500, "each was made once");
        assert_eq!(platform_users(&world).await.len(), 1500);
        assert_eq!(synchronize_users(&world).await, [1500, 0, 0, 0, 0]);
    }

    async fn a_read_only_store_still_synchronizes(world: World) {
        world.user("ada").await;
        set_option(&world, "IsDatabaseReadOnlyMode", "true").await;
        world.admin.post(&world.path("/User"), json!({ "loginName": "b" })).await.problem(409, "conflict");
        assert_eq!(synchronize_users(&world).await, [1, 1, 0, 0, 0]);
    }

    /// - Effect of `UserStore options.ClaimIssuer`: Identities and claims of the store's people name this issuer.
    async fn the_issuer_is_the_store_s(world: World) {
        let ada = world.user("ada").await;
        synchronize_users(&world).await;
        set_option(&world, "ClaimIssuer", "https://issuer.example").await;
        assert_eq!(synchronize_users(&world).await, [1, 0, 1, 0, 0]);
        assert_eq!(synchronize_users(&world).await, [1, 0, 0, 0, 0]);
        assert_eq!(mirror_of(&world, &ada).await["identities"][0]["issuer"], "https://issuer.example");
    }

    /// A row that was written into the database by hand delays no other one.
    async fn rows_that_do_not_fit_are_counted(world: World) {
        let (ada, bob) = (world.user("ada").await, world.user("bob").await);
        synchronize_users(&world).await;
        let (ada, bob): (Uuid, Uuid) = (id(&ada).parse().unwrap(), id(&bob).parse().unwrap());
        world.sql(vec![
            ("UPDATE user_account SET first_name = '' WHERE id = ?1", vec![ada.into()]),
            ("UPDATE user_account SET first_name = 'Bob' WHERE id = ?1", vec![bob.into()]),
        ]).await;
        world.user("carol").await;
        assert_eq!(synchronize_users(&world).await, [3, 1, 1, 0, 1]);
        assert_eq!(platform_users(&world).await.len(), 3, "it stays as it was");
    }

    /// A user that another instance has taken over is left to it.
    async fn users_of_another_instance_are_left_alone(world: World) {
        let (ada, bob) = (world.user("ada").await, world.user("bob").await);
        let other = world.other_store("other").await;
        synchronize_users(&world).await;
        let ada_is = id(&mirror_of(&world, &ada).await).parse::<Uuid>().unwrap();
        world.sql(vec![
            ("UPDATE application_user SET idp_instance_id = ?1 WHERE id = ?2", vec![other.into(), ada_is.into()]),
            (
                "UPDATE application_identity SET lifecycle_status = 'Replaced' WHERE subject = ?1",
                vec![id(&bob).into()],
            ),
        ]).await;
        for user in [&ada, &bob] {
            let change = json!({ "lastName": "X", "concurrencyToken": user["concurrencyToken"] });
            world.admin.patch(&world.path(&format!("/User/{}", id(user))), change).await.expect(202);
        }
        assert_eq!(synchronize_users(&world).await, [2, 0, 0, 0, 0]);
        for user in [&ada, &bob] {
            world.admin.delete(&world.path(&format!("/User/{}", id(user)))).await.expect(204);
        }
        assert_eq!(synchronize_users(&world).await, [0, 0, 0, 0, 0]);
        assert!(platform_users(&world).await.iter().all(|user| user["lastName"].is_null()));
    }

    async fn an_idempotency_key_gives_the_first_answer_again(world: World) {
        many_users(&world, "u", 600).await;
        let path = world.path("/User/synchronize");
        let send = || world.admin.send(http::Method::POST, &path, &[("idempotency-key", "k")], Vec::new());
        let first = send().await.is(200);
        assert_eq!(first.json()["created"], 600);
        let again = send().await.is(200);
        assert_eq!((again.json(), again.header("idempotency-replayed")), (first.json(), Some("true")));
    }
}
