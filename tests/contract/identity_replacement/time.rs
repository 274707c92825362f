//! Expiry of requests.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    ALL, admin, body, current_user, events, new_instance, new_platform_user, path, read, request, statuses,
    step, texts,
};
use crate::id;

/// Sets the expiry to the past. The background job may close the request at any time.
async fn let_expire(world: &World, replacement: &Value) {
    let id: Uuid = id(replacement).parse().unwrap();
    world
        .sql(vec![("UPDATE identity_replacement SET expires_on = 1000 WHERE id = ?1", vec![id.into()])])
        .await;
}

async fn wait_until_closed(world: &World) {
    for _ in 0..200 {
        if texts(world, "SELECT status FROM identity_replacement WHERE open_user_id IS NOT NULL")
            .await
            .is_empty()
        {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the job does not close what expired");
}

on_both_engines! {
    async fn an_expired_request_allows_no_step(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let first = admin(&world, "first").await;
        for is_approved in [false, true] {
            let created = request(&world.admin, body(&user, &instance, "a")).await;
            if is_approved {
                step(&first, &created, "/approvals").await.expect(200);
            }
            let_expire(&world, &created).await;
            assert_eq!(read(&world, &created).await["status"], "Expired", "seen on every read");
            assert_eq!(first.get(&format!("{ALL}/queue")).await.is(200).json()["totalCount"], 0);
            let expired_path = format!("{ALL}?filter=status%20eq%20%22Expired%22%20and%20id%20eq%20%22{}%22", id(&created));
            assert_eq!(first.get(&expired_path).await.is(200).json().as_array().unwrap().len(), 1);
            for rest in ["/approvals", "/execute", "/cancel"] {
                step(&first, &created, rest).await.problem(409, "conflict");
            }
            first.post(&path(&created, "/proofs"), json!({ "identity": "Current" })).await.problem(409, "conflict");
            // the access closed it, and emitted one event
            assert_eq!(texts(&world, "SELECT status FROM identity_replacement WHERE open_user_id IS NOT NULL").await.len(), 0);
            assert_eq!(statuses(&current_user(&world, &user).await), ["Active"]);
            assert_eq!(read(&world, &created).await["replacementIdentity"]["lifecycleStatus"], "Revoked");
            let event_types = events(&world, &created).await;
            assert_eq!(event_types.last().map(String::as_str), Some("expired"));
            assert_eq!(event_types.iter().filter(|event| *event == "expired").count(), 1);
        }
        let entries = world.all("CustomAuditTrail?filter=area%20eq%20%22IdentityReplacement%22%20and%20action%20eq%20%22Modified%22").await;
        let status_of = |entry: &Value, side: &str| serde_json::from_str::<Value>(entry[side].as_str().unwrap()).unwrap()["status"].clone();
        let steps: Vec<(Value, Value)> = entries.as_array().unwrap().iter()
            .map(|entry| (status_of(entry, "originalContent"), status_of(entry, "currentContent"))).collect();
        let step = |from: &str, to: &str| (json!(from), json!(to));
        assert_eq!(steps, [step("PendingApproval", "Expired"), step("PendingApproval", "Approved"), step("Approved", "Expired")]);
    }

    /// A new request need not wait until the expired one is closed.
    async fn an_expired_request_does_not_block_a_new_one(world: World) {
        let (ada, bob) = (new_platform_user(&world, "ada").await, new_platform_user(&world, "bob").await);
        let instance = new_instance(&world, "work").await;
        let created = request(&world.admin, body(&ada, &instance, "a")).await;
        let_expire(&world, &created).await;
        let of_bob = request(&world.admin, body(&bob, &instance, "a")).await;
        let_expire(&world, &of_bob).await;
        request(&world.admin, body(&bob, &instance, "b")).await;
        request(&world.admin, body(&ada, &instance, "a")).await;
        assert_eq!(read(&world, &of_bob).await["status"], "Expired");
    }

    async fn the_job_closes_expired_requests(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let created = request(&world.admin, body(&user, &instance, "a")).await;
        let_expire(&world, &created).await;
        wait_until_closed(&world).await;
        assert_eq!(events(&world, &created).await, ["created", "expired"]);
        assert_eq!(statuses(&current_user(&world, &user).await), ["Active"]);
    }
}
