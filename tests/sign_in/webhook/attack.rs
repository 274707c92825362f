//! Receivers that hang, send wrong responses, redirect or point into the server's own network.

use chancery_testkit::{Receiver, on_both_engines};
use serde_json::json;

use super::{subscribed, subscriptions, to_this_machine, until};
use crate::id;

on_both_engines! {
    /// Addresses in every notation: unless the operator allows it, no address of this machine or its network is called.
    async fn internal_addresses_cannot_be_called(world: World) {
        let receiver = Receiver::start().await;
        let port = receiver.url.rsplit(':').next().unwrap().split('/').next().unwrap().to_owned();
        for host in [
            "127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254",
            "[fd00::1]", "[fe80::1]", "0.0.0.0", "[::]",
        ] {
            let body = json!({ "name": host, "url": format!("https://{host}:{port}/hook") });
            let creation = world.admin.post(&subscriptions(&world), body).await;
            if creation.status == 400 {
                continue;
            }
            let path = format!("{}/{}", subscriptions(&world), id(&creation.is(201).json()));
            let tested = world.admin.post(&format!("{path}/test"), json!({})).await.is(200).json();
            assert_eq!((tested["delivered"].clone(), tested["status"].clone()), (json!(false), json!(null)), "{host}");
            let problem = tested["problem"].as_str().unwrap();
            assert!(problem.contains("public internet") || problem.contains("no address"), "{host}: {problem}");
        }
        assert!(receiver.received().is_empty());
    }
}

on_both_engines! {
    [to_this_machine]
    /// A redirect is a failure, and is not followed; nothing of the response is revealed.
    async fn redirects_are_failures(world: World) {
        let (inner, mut outer) = (Receiver::start().await, Receiver::start().await);
        let (path, _) = subscribed(&world, &outer, json!({ "types": ["platform.userstore.user.created"] })).await;
        outer.answer(&format!("302 Found\r\nlocation: {}", inner.url));
        world.user("ada").await;
        outer.until(|got| got.len() == 2).await;
        let row = until(&world, &path, |row| row["waiting"] == 1).await;
        assert_eq!(row["lastFailure"], "the receiver answered 302");
        assert!(inner.received().is_empty());
    }

    /// A hanging receiver does not delay others.
    async fn a_hanging_receiver_does_not_delay_others(world: World) {
        let (silent, mut quick) = (Receiver::start().await, Receiver::start().await);
        let created = json!({ "types": ["platform.userstore.user.created"] });
        subscribed(&world, &silent, created.clone()).await;
        subscribed(&world, &quick, created).await;
        silent.answer("nothing");
        for number in 0..20 {
            world.user(&format!("u{number}")).await;
        }
        quick.until(|got| got.len() == 21).await;
        // an unresponsive receiver gets one request at a time: its waiting deliveries occupy no slots
        assert!(silent.received().len() <= 1 + 1, "{}", silent.received().len());
    }

    /// After ten failures in a row a receiver is called once a minute, and its status says so.
    async fn a_failing_receiver_is_paused(world: World) {
        let mut receiver = Receiver::start().await;
        let (path, _) = subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.created"], "ordering": "None" })).await;
        receiver.answer("503 No");
        for number in 0..30 {
            world.user(&format!("u{number}")).await;
        }
        receiver.until(|got| got.len() > 10).await;
        let row = until(&world, &path, |row| row["status"] == "Failing" && row["waiting"].as_i64() >= Some(10)).await;
        assert_eq!(row["lastFailure"], "the receiver answered 503");
        let paused = world.app.store.run("Test", chancery_store::Mode::Quick, None, |tx| {
            tx.one("SELECT paused_until FROM event_subscriber", &[], |row| row.int(0))
        });
        let paused: Result<Option<i64>, chancery_store::Error> = paused.await;
        assert!(paused.unwrap().unwrap() > 0);
        assert!(receiver.received().len() <= 1 + 10 + 8, "{}", receiver.received().len());
    }

    /// `Retry-After` delays the next attempt, but does not bring it forward: the attempts would be used up before the
    /// receiver is available.
    async fn retry_after_only_delays_attempts(world: World) {
        let mut receiver = Receiver::start().await;
        let (path, _) = subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.created"] })).await;
        receiver.answer("429 Slow\r\nretry-after: 1");
        world.user("ada").await;
        receiver.until(|got| got.len() == 2).await;
        receiver.answer("200 OK");
        let got = receiver.until(|got| got.len() == 3).await;
        assert_eq!(got[1].header("webhook-id"), got[2].header("webhook-id"));
        let attempted_on = |index: usize| got[index].header("webhook-timestamp").parse::<i64>().unwrap();
        assert!(attempted_on(2) - attempted_on(1) >= 5, "{} s", attempted_on(2) - attempted_on(1));
        until(&world, &path, |row| row["waiting"] == 0).await;
    }

    /// Deliveries that were postponed while the clock was ahead do not wait until that time.
    async fn a_clock_that_was_set_back_delays_no_deliveries(world: World) {
        let mut receiver = Receiver::start().await;
        let (path, _) = subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.created"] })).await;
        receiver.answer("503 No");
        world.user("ada").await;
        until(&world, &path, |row| row["waiting"] == 1 && !row["lastFailure"].is_null()).await;
        let days = 8 * 24 * 3_600_000_i64;
        world.sql(vec![
            ("UPDATE event_delivery SET due_on = due_on + ?1", vec![days.into()]),
            ("UPDATE event_subscriber SET paused_until = (SELECT max(due_on) FROM event_delivery)", vec![]),
        ]).await;
        receiver.answer("200 OK");
        world.user("bob").await;
        receiver.until(|got| got.len() >= 4).await;
        until(&world, &path, |row| row["waiting"] == 0).await;
    }
}
