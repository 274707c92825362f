//! The cost of a request on PostgreSQL: the statements and round trips that it waits for, counted where they are sent.

use std::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use chancery_store::{Error, Mode};
use chancery_testkit::{Engine, World, on_both_engines};
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};

use super::{
    app,
    assertion::{key_set, present},
    configure, form, request_token, secret,
};
use crate::{
    cost::{cost, two_connections},
    id,
    signer::{Signer, claims},
    until,
};

/// How often a request is sent.
const TIMES: usize = 8;

/// Statements and round trips so far.
fn counted(world: &World) -> (u64, u64) {
    let figures = world.app.store.figures();
    (figures.statements, figures.round_trips)
}

async fn nothing(_: usize) {}

on_both_engines! {
    [two_connections]

    async fn a_read_takes_one_round_trip(world: World) {
        if world.engine == Engine::Sqlite {
            return;
        }
        let user = world.user("ada").await;
        let path = world.path(&format!("/User/{}", id(&user)));
        let read = async |()| { world.admin.get(&path).await.expect(200) };
        // the user with the check of the epoch, and its groups
        assert_eq!(cost(&world, TIMES, nothing, read).await, (2, 1));
        let forget = async |_| { world.app.rights.forget(world.app.store.epoch().await.unwrap()) };
        // before that the epoch, what revokes the token, its caller, the store, the store's options
        assert_eq!(cost(&world, TIMES, forget, read).await, (7, 2));
        let unknown_path = world.path(&format!("/User/{}", uuid::Uuid::nil()));
        let miss = async |()| { world.admin.get(&unknown_path).await.expect(404) };
        assert_eq!(cost(&world, TIMES, nothing, miss).await, (2, 1));
    }

    async fn a_token_takes_one_round_trip_and_one_more_for_writes(world: World) {
        if world.engine == Engine::Sqlite {
            return;
        }
        let own = app(&world, "own", json!({})).await;
        let value = secret(&world, &own).await;
        let request = async |()| { request_token(&world, &own, &value, &[]).await.expect(200) };
        assert_eq!(cost(&world, TIMES, nothing, request).await, (1, 1), "the epoch");
        world.make("ClientAppScope", json!({ "clientAppId": own["id"], "key": "read" })).await;
        let request = async |()| { request_token(&world, &own, &value, &[("scope", "read")]).await.expect(200) };
        assert_eq!(cost(&world, TIMES, nothing, request).await, (2, 1), "scopes and resources");
        let wrong = async |()| { request_token(&world, &own, "wrong", &[]).await.expect(401) };
        let unknown_app = json!({ "id": uuid::Uuid::from_u128(7) });
        let unknown = async |()| { request_token(&world, &unknown_app, "wrong", &[]).await.expect(401) };
        let rejection_cost = cost(&world, TIMES, nothing, wrong).await;
        assert_eq!(rejection_cost, (7, 1), "the epoch and the client app whole");
        assert_eq!(cost(&world, TIMES, nothing, unknown).await, rejection_cost, "it is read as if it was there");

        let signer = Signer::new("one");
        let signing = app(&world, "signing", json!({})).await;
        key_set(&world, &signing, "one", json!({ "jwks": signer.jwks() })).await;
        configure(&world, &signing, "private_key_jwt", json!({})).await;
        let request = async |()| { present(&world, &signer.assert(&claims(&world, &signing, json!({})))).await.expect(200) };
        assert_eq!(cost(&world, TIMES, nothing, request).await, (11, 2), "and the assertion, with its transaction");
        let referring = app(&world, "referring", json!({ "accessTokenType": "Reference" })).await;
        let value = secret(&world, &referring).await;
        let request = async |()| { request_token(&world, &referring, &value, &[]).await.expect(200) };
        assert_eq!(cost(&world, TIMES, nothing, request).await, (5, 2), "the epoch, and the token");
    }

    async fn introspection_of_a_client_app_s_token_takes_one_round_trip(world: World) {
        if world.engine == Engine::Sqlite {
            return;
        }
        let own = app(&world, "own", json!({})).await;
        let value = secret(&world, &own).await;
        let token = request_token(&world, &own, &value, &[]).await.is(200).json()["access_token"].as_str().unwrap().to_owned();
        let introspect = async |app: &Value, secret: &str, token: &str| {
            let body = form(&[("token", token), ("client_id", id(app)), ("client_secret", secret)]);
            let headers = [("content-type", "application/x-www-form-urlencoded")];
            world.anonymous.send(Method::POST, "/connect/introspect", &headers, body).await.is(200).json()["active"] == json!(true)
        };
        let request = async |()| { assert!(introspect(&own, &value, &token).await) };
        assert_eq!(cost(&world, TIMES, nothing, request).await, (1, 1), "the epoch: client app and token are cached");
        let forget = async |_| { world.app.rights.forget(world.app.store.epoch().await.unwrap()) };
        assert_eq!(cost(&world, TIMES, forget, request).await, (3, 1), "the epoch, what revokes the token, its caller");
        let other = app(&world, "other", json!({})).await;
        let other_secret = secret(&world, &other).await;
        let request = async |()| { assert!(!introspect(&other, &other_secret, &token).await) };
        assert_eq!(cost(&world, TIMES, nothing, request).await, (2, 1), "the epoch, and whether it is a SystemAdmin");
    }

    /// Concurrent reads of the epoch share one query, which begins after all of them.
    async fn concurrent_reads_of_the_epoch_share_a_query(world: World) {
        if world.engine == Engine::Sqlite {
            return;
        }
        let (gate, held) = (Arc::new((Mutex::new(false), Condvar::new())), Arc::new(AtomicUsize::new(0)));
        for _ in 0..2 {
            let (store, gate, held) = (world.app.store.clone(), Arc::clone(&gate), Arc::clone(&held));
            chancery_testkit::spawn(async move {
                let hold = store.run("Hold", Mode::Quick, None, move |_| {
                    held.fetch_add(1, Ordering::SeqCst);
                    drop(gate.1.wait_while(gate.0.lock().unwrap(), |open| !*open).unwrap());
                    Ok::<(), Error>(())
                });
                hold.await
            });
        }
        until("both connections are held", || async { held.load(Ordering::SeqCst) == 2 }).await;
        let before = counted(&world);
        let reads = join_all((0..100).map(|_| world.app.store.epoch()));
        let open = async {
            *gate.0.lock().unwrap() = true;
            gate.1.notify_all();
        };
        let (epochs, ()) = tokio::join!(reads, open);
        let epoch = epochs[0].clone().unwrap();
        assert!(epochs.iter().all(|read| *read == Ok(epoch)), "{epochs:?}");
        let queries = counted(&world).0 - before.0;
        assert!(queries < 50, "100 who asked cost {queries} statements, with what the server asks by itself");
        world.sql(Vec::new()).await;
        assert_eq!(world.app.store.epoch().await, Ok(epoch + 1));
    }
}
