//! Batch actions: numbers are shown first, then the action runs in one transaction.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, Browser, Page, administrator, care::undo, post, proof::expire_proofs, unescaped};
use crate::id;

const USERS: &str = "/console/store/default/User";
pub const BATCH: &str = "/console/store/default/User/batch";

/// Users with these login names and a number.
async fn workers(world: &World, count: usize) -> Vec<Value> {
    let bodies: Vec<Value> =
        (0..count).map(|number| json!({ "loginName": format!("worker{number:04}") })).collect();
    let created = world.admin.post(&world.path("/User/batch"), json!(bodies)).await.is(200).json();
    created.as_array().unwrap().clone()
}

/// Requests an action on these rows; returns the confirmation page.
async fn request_action(
    world: &World,
    browser: &mut Browser,
    act: &[(&str, &str)],
    chosen: &[&Value],
) -> Page {
    let page = browser.open(USERS).await;
    let fields: Vec<_> =
        act.iter().copied().chain(chosen.iter().map(|user| ("selected", id(user)))).collect();
    post(world, browser, &page, BATCH, &fields).await
}

/// Sends the form of a confirmation page, with all its fields.
pub async fn confirm(world: &World, browser: &mut Browser, page: &Page, path: &str) -> Page {
    let form = page.html.split("<form class=\"card\"").nth(1).unwrap().split("</form>").next().unwrap();
    let fields: Vec<(&str, String)> = form
        .split("type=\"hidden\" name=\"")
        .skip(1)
        .map(|rest| {
            let (name, rest) = rest.split_once("\" value=\"").unwrap();
            (name, unescaped(rest.split('"').next().unwrap()))
        })
        .collect();
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    browser.post(path, &fields, &[("origin", &world.base)]).await
}

async fn read(world: &World, user: &Value) -> Value {
    world.admin.get(&world.path(&format!("/User/{}", id(user)))).await.is(200).json()
}

on_both_engines! {
    /// The numbers of changed, unchanged and missing rows are shown first; the request itself changes nothing.
    async fn a_batch_action_shows_numbers_before_it_runs(world: World) {
        let mut browser = administrator(&world).await;
        let users = workers(&world, 4).await;
        let state = |user: &Value| world.path(&format!("/User/{}/state", id(user)));
        world.admin.post(&state(&users[1]), json!({ "isUserActive": false })).await.expect(200);
        world.admin.delete(&world.path(&format!("/User/{}", id(&users[3])))).await.expect(204);
        let all: Vec<&Value> = users.iter().collect();
        let response = request_action(&world, &mut browser, &[("act", "deactivate")], &all).await;
        for fact in ["<h1>Deactivate: 2</h1>", "2 to be changed: worker0000, worker0002", "1 unchanged", "1 no longer present"] {
            assert!(response.html.contains(fact), "{fact}: {}", response.html);
        }
        assert_eq!(read(&world, &users[0]).await["isUserActive"], json!(true));
        let done = confirm(&world, &mut browser, &response, BATCH).await;
        assert!(done.address.contains("done=done") && done.html.contains("Undo"), "{}", done.html);
        for number in [0, 1, 2] {
            assert_eq!(read(&world, &users[number]).await["isUserActive"], json!(false), "{number}");
        }
        // rows in the requested state stay unchanged
        undo(&world, &mut browser, done).await;
        let active = [read(&world, &users[0]).await, read(&world, &users[1]).await, read(&world, &users[2]).await];
        assert_eq!(active.map(|user| user["isUserActive"].clone()), [json!(true), json!(false), json!(true)]);
        let nothing = request_action(&world, &mut browser, &[("act", "activate")], &[&users[0]]).await;
        assert!(nothing.html.contains("Nothing to do"), "{}", nothing.html);
    }

    /// Locks of every kind are removed for all rows of a view, and each change is an audit trail entry.
    async fn all_rows_of_a_filter_are_unlocked(world: World) {
        let mut browser = administrator(&world).await;
        let users = workers(&world, 60).await;
        let locked: Vec<Value> = users.iter().map(|user| json!({ "id": id(user), "isUserLocked": true })).collect();
        world.admin.post(&world.path("/User/state/batch"), json!(locked)).await.expect(200);
        let fields = [("act", "unlock"), ("all", "true"), ("view", "locked")];
        let response = request_action(&world, &mut browser, &fields, &[&users[0]]).await;
        assert!(response.html.contains("<h1>Unlock: 60</h1>") && response.html.contains("(+55)"), "{}", response.html);
        let done = confirm(&world, &mut browser, &response, BATCH).await;
        assert!(done.address.contains("view=locked&done=done"), "{}", done.address);
        assert!(done.html.contains("Nothing found"), "{}", done.html);
    }

    /// Refused rows are left out, even hundreds: an API error lists at most a hundred at a time.
    async fn hundreds_of_refused_rows_are_left_out_of_a_batch(world: World) {
        let mut browser = administrator(&world).await;
        workers(&world, 420).await;
        let fields = [("act", "remove-passwords"), ("all", "true"), ("q", "worker")];
        let response = request_action(&world, &mut browser, &fields, &[]).await;
        assert!(response.status == 200 && response.html.contains("420 refused"), "{}: {}", response.status, response.html);
    }

    /// An action applies to the results of a search, by login name and by other names.
    async fn a_batch_action_applies_to_search_results(world: World) {
        let mut browser = administrator(&world).await;
        workers(&world, 12).await;
        world.admin.post(&world.path("/User"), json!({ "loginName": "gh", "firstName": "Grace", "lastName": "Hopper" })).await.expect(201);
        for (q, count) in [("worker000", 10), ("grace hop", 1), ("nobody", 0)] {
            let response = request_action(&world, &mut browser, &[("act", "deactivate"), ("all", "true"), ("q", q)], &[]).await;
            assert!(response.html.contains(&format!("<h1>Deactivate: {count}</h1>")), "{q}: {}", response.html);
        }
    }

    async fn many_users_join_and_leave_a_group(world: World) {
        let mut browser = administrator(&world).await;
        let (users, group) = (workers(&world, 3).await, world.group("Rowers").await);
        let all: Vec<&Value> = users.iter().collect();
        let which = request_action(&world, &mut browser, &[("act", "add")], &all).await;
        assert!(which.html.contains("name=\"group\"") && which.html.contains(id(&users[2])), "{}", which.html);
        let add = [("act", "add"), ("group", id(&group))];
        let response = request_action(&world, &mut browser, &add, &all[..2]).await;
        assert!(response.html.contains("2 to be changed"), "{}", response.html);
        confirm(&world, &mut browser, &response, BATCH).await.answer.expect(200);
        let response = request_action(&world, &mut browser, &add, &all).await;
        assert!(response.html.contains("Rowers</li>") && response.html.contains("1 to be changed") && response.html.contains("2 unchanged"), "{}", response.html);
        let done = confirm(&world, &mut browser, &response, BATCH).await;
        let members = async || {
            let group = world.admin.get(&world.path(&format!("/Group/{}", id(&group)))).await.is(200).json();
            group["memberUsers"].as_array().unwrap().len()
        };
        assert_eq!(members().await, 3);
        undo(&world, &mut browser, done).await;
        assert_eq!(members().await, 2);
        let response = request_action(&world, &mut browser, &[("act", "take-out"), ("group", id(&group))], &all).await;
        confirm(&world, &mut browser, &response, BATCH).await.answer.expect(200);
        assert_eq!(members().await, 0);
    }

    /// A row that was deleted before the confirmation is named, nothing is done, and the action can be validated again.
    async fn a_row_deleted_meanwhile_stops_the_batch(world: World) {
        let mut browser = administrator(&world).await;
        let users = workers(&world, 3).await;
        let all: Vec<&Value> = users.iter().collect();
        let response = request_action(&world, &mut browser, &[("act", "delete")], &all).await;
        assert!(response.html.contains("<h1>Delete: 3</h1>"), "{}", response.html);
        world.admin.delete(&world.path(&format!("/User/{}", id(&users[1])))).await.expect(204);
        let stopped = confirm(&world, &mut browser, &response, BATCH).await;
        assert!(stopped.status == 409 && stopped.html.contains(id(&users[1])), "{}", stopped.html);
        read(&world, &users[0]).await;
        let again = confirm(&world, &mut browser, &stopped, BATCH).await;
        assert!(again.html.contains("<h1>Delete: 2</h1>"), "{}", again.html);
        world.set_option("UserDeletionQuarantineEnabled", "true").await;
        let gone = confirm(&world, &mut browser, &again, BATCH).await;
        assert!(gone.html.contains("Deleted"), "{}", gone.html);
        world.admin.get(&world.path(&format!("/User/{}", id(&users[0])))).await.expect(404);
        undo(&world, &mut browser, gone).await;
        read(&world, &users[0]).await;
        read(&world, &users[2]).await;
    }

    /// A row that was changed after the numbers were shown is named, for any action, and nothing is done.
    async fn a_row_changed_meanwhile_stops_the_batch(world: World) {
        let mut browser = administrator(&world).await;
        let (users, group) = (workers(&world, 3).await, world.group("Rowers").await);
        let all: Vec<&Value> = users.iter().collect();
        let member = json!({ "relatedIds": [id(&users[2])] });
        world.admin.post(&world.path(&format!("/Group/{}/users", id(&group))), member).await.expect(202);
        let acts = [("deactivate", 3), ("add", 2), ("delete", 3)];
        for (act, count) in acts {
            let fields = [("act", act), ("group", id(&group))];
            let response = request_action(&world, &mut browser, &fields, &all).await;
            assert!(response.html.contains(&format!(": {count}</h1>")), "{act}: {}", response.html);
            let user = read(&world, &users[1]).await;
            let change = json!({ "nickname": act, "concurrencyToken": user["concurrencyToken"] });
            world.admin.patch(&world.path(&format!("/User/{}", id(&user))), change).await.expect(202);
            let stopped = confirm(&world, &mut browser, &response, BATCH).await;
            assert_eq!(stopped.status, 409, "{act}: {}", stopped.html);
            assert!(stopped.html.contains("worker0001: was changed meanwhile"), "{act}: {}", stopped.html);
            assert!(!stopped.html.contains("worker0000"), "{act}: {}", stopped.html);
            let as_before = read(&world, &users[0]).await;
            assert_eq!((&as_before["isUserActive"], &as_before["memberOfGroups"]), (&json!(true), &json!([])), "{act}");
        }
        let response = request_action(&world, &mut browser, &[("act", "deactivate")], &all).await;
        // sending the same form again is idempotent, although the action changed the rows itself
        for _ in 0..2 {
            let done = confirm(&world, &mut browser, &response, BATCH).await;
            assert!(done.address.contains("done=done"), "{}: {}", done.status, done.html);
        }
    }

    /// Refused rows are listed with the reason, and the others are changed. A repeated submission applies once.
    async fn refused_rows_are_left_out_of_a_batch(world: World) {
        let mut browser = administrator(&world).await;
        let tenant = world.admin.get(&format!("{BASE}/Tenant")).await.is(200).json()[0].clone();
        let held = tenant["subscriptionId"].as_str().unwrap().to_owned();
        let customer = world.admin.get(&format!("{BASE}/Customer")).await.is(200).json()[0].clone();
        let free = world.make("Subscription", json!({ "name": "Free", "customerId": customer["id"] })).await;
        let page = browser.open("/console/Subscription").await;
        let path = "/console/Subscription/batch";
        let fields = [("act", "delete"), ("selected", id(&free)), ("selected", &held)];
        let response = post(&world, &mut browser, &page, path, &fields).await;
        assert!(response.html.contains("1 to be changed: Free") && response.html.contains("1 refused, and omitted"), "{}", response.html);
        for _ in 0..2 {
            let done = confirm(&world, &mut browser, &response, path).await;
            assert!(done.html.contains("Deleted"), "{}", done.html);
        }
        let left = world.admin.get(&format!("{BASE}/Subscription")).await.is(200).json();
        assert!(left.as_array().unwrap().iter().all(|one| id(one) != id(&free)));
    }

    /// Deleting more than a hundred rows requires reauthentication, and the undo of many rows is on a page of its own.
    async fn many_deletions_require_reauthentication(world: World) {
        let mut browser = administrator(&world).await;
        workers(&world, 101).await;
        let fields = [("act", "deactivate"), ("all", "true"), ("q", "worker")];
        let response = request_action(&world, &mut browser, &fields, &[]).await;
        assert!(response.html.contains("<h1>Deactivate: 101</h1>"), "more than a search tells: {}", response.html);
        let done = confirm(&world, &mut browser, &response, BATCH).await;
        assert!(done.html.contains("undo this"), "{}", done.html);
        let back = confirm(&world, &mut browser, &done, BATCH).await;
        assert!(back.html.contains("undo this"), "{}", back.html);
        let inactive = browser.open(&format!("{USERS}?view=inactive")).await;
        assert!(!inactive.html.contains("worker"), "{}", inactive.html);
        expire_proofs(&world).await;
        let fields = [("act", "delete"), ("all", "true"), ("q", "worker")];
        let held = request_action(&world, &mut browser, &fields, &[]).await;
        assert!(held.status == 401 && held.html.contains("Is it you?"), "{}", held.html);
        let fields = [("act", "delete"), ("all", "true"), ("q", "worker000")];
        let response = request_action(&world, &mut browser, &fields, &[]).await;
        assert!(response.html.contains("<h1>Delete: 10</h1>"), "{}", response.html);
    }

    /// The view of deleted rows offers restore only.
    async fn many_users_are_restored(world: World) {
        let mut browser = administrator(&world).await;
        world.set_option("UserDeletionQuarantineEnabled", "true").await;
        let users = workers(&world, 3).await;
        let ids: Vec<&str> = users.iter().map(id).collect();
        world.admin.delete_with(&world.path("/User/batch"), json!(ids)).await.expect(204);
        let list = browser.open(&format!("{USERS}?view=deleted")).await;
        assert!(list.html.contains("value=\"restore\"") && !list.html.contains("value=\"delete\""), "{}", list.html);
        let wrong = request_action(&world, &mut browser, &[("act", "delete"), ("all", "true"), ("view", "deleted")], &[]).await;
        assert_eq!(wrong.status, 404);
        let response = request_action(&world, &mut browser, &[("act", "restore"), ("all", "true"), ("view", "deleted")], &[]).await;
        assert!(response.html.contains("<h1>Restore: 3</h1>"), "{}", response.html);
        confirm(&world, &mut browser, &response, BATCH).await.answer.expect(200);
        read(&world, &users[2]).await;
    }

    /// More rows than a batch are refused with an explanation, and so are unknown actions.
    async fn too_many_rows_and_unknown_actions_are_refused(world: World) {
        let mut browser = administrator(&world).await;
        let none = request_action(&world, &mut browser, &[("act", "delete")], &[]).await;
        assert!(none.status == 400 && none.html.contains("Choose 1 to 10000"), "{}", none.html);
        let filtered = request_action(&world, &mut browser, &[("act", "delete"), ("view", "inactive")], &[]).await;
        assert!(filtered.html.contains(&format!("href=\"{USERS}?view=inactive\"")), "the way back to the list as it was: {}", filtered.html);
        for act in ["", "erase", "Delete"] {
            assert_eq!(request_action(&world, &mut browser, &[("act", act)], &[]).await.status, 404, "{act}");
        }
        let page = browser.open("/console/Tenant").await;
        let wrong = post(&world, &mut browser, &page, "/console/Tenant/batch", &[("act", "unlock"), ("selected", "x")]).await;
        assert_eq!(wrong.status, 404);
    }
}
