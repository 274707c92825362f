//! What time alone makes of a request.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    ALL, admin, body, events, found, new_instance, new_person, path, person, read, request, statuses, step,
};
use crate::id;

/// As if the request had been made long ago. The background job may come upon it at any time.
async fn let_expire(world: &World, replacement: &Value) {
    let id: Uuid = id(replacement).parse().unwrap();
    world
        .sql(vec![("UPDATE identity_replacement SET expires_on = 1000 WHERE id = ?1", vec![id.into()])])
        .await;
}

async fn closed(world: &World) {
    for _ in 0..200 {
        if found(world, "SELECT status FROM identity_replacement WHERE open_user_id IS NOT NULL")
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
    async fn an_expired_request_is_over(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let first = admin(&world, "first").await;
        for approves in [false, true] {
            let made = request(&world.admin, body(&user, &instance, "a")).await;
            if approves {
                step(&first, &made, "/approvals").await.expect(200);
            }
            let_expire(&world, &made).await;
            assert_eq!(read(&world, &made).await["status"], "Expired", "seen on every read");
            assert_eq!(first.get(&format!("{ALL}/queue")).await.is(200).json()["totalCount"], 0);
            let path_of = format!("{ALL}?filter=status%20eq%20%22Expired%22%20and%20id%20eq%20%22{}%22", id(&made));
            assert_eq!(first.get(&path_of).await.is(200).json().as_array().unwrap().len(), 1);
            for rest in ["/approvals", "/execute", "/cancel"] {
                step(&first, &made, rest).await.problem(409, "conflict");
            }
            first.post(&path(&made, "/proofs"), json!({ "identity": "Current" })).await.problem(409, "conflict");
            // touched, it is closed for good, and told once
            assert_eq!(found(&world, "SELECT status FROM identity_replacement WHERE open_user_id IS NOT NULL").await.len(), 0);
            assert_eq!(statuses(&person(&world, &user).await), ["Active"]);
            assert_eq!(read(&world, &made).await["replacementIdentity"]["lifecycleStatus"], "Revoked");
            let told = events(&world, &made).await;
            assert_eq!(told.last().map(String::as_str), Some("expired"));
            assert_eq!(told.iter().filter(|event| *event == "expired").count(), 1);
        }
        let entries = world.all("CustomAuditTrail?filter=area%20eq%20%22IdentityReplacement%22%20and%20action%20eq%20%22Modified%22").await;
        let said = |entry: &Value, side: &str| serde_json::from_str::<Value>(entry[side].as_str().unwrap()).unwrap()["status"].clone();
        let steps: Vec<(Value, Value)> = entries.as_array().unwrap().iter()
            .map(|entry| (said(entry, "originalContent"), said(entry, "currentContent"))).collect();
        let step = |from: &str, to: &str| (json!(from), json!(to));
        assert_eq!(steps, [step("PendingApproval", "Expired"), step("PendingApproval", "Approved"), step("Approved", "Expired")]);
    }

    /// Who asks next need not wait for anybody to close what expired.
    async fn an_expired_request_is_in_nobody_s_way(world: World) {
        let (ada, bob) = (new_person(&world, "ada").await, new_person(&world, "bob").await);
        let instance = new_instance(&world, "work").await;
        let made = request(&world.admin, body(&ada, &instance, "a")).await;
        let_expire(&world, &made).await;
        let of_bob = request(&world.admin, body(&bob, &instance, "a")).await;
        let_expire(&world, &of_bob).await;
        request(&world.admin, body(&bob, &instance, "b")).await;
        request(&world.admin, body(&ada, &instance, "a")).await;
        assert_eq!(read(&world, &of_bob).await["status"], "Expired");
    }

    async fn the_job_closes_what_expired(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let made = request(&world.admin, body(&user, &instance, "a")).await;
        let_expire(&world, &made).await;
        closed(&world).await;
        assert_eq!(events(&world, &made).await, ["created", "expired"]);
        assert_eq!(statuses(&person(&world, &user).await), ["Active"]);
    }
}
