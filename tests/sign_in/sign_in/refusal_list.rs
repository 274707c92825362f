//! Administrators of a client app see its refused requests, with the reasons.

use chancery::prune_batch;
use chancery_record::Timestamp;
use chancery_signin::{RefusedRequest, write_refused};
use chancery_store::{Error, Mode};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{BASE, PASSWORD, SignInApp, browser::Browser, encode, form, parameter};
use crate::{id, run_job};

const HOUR: i64 = 3_600_000;

/// Stores refusals, as the job does. The server's own job may have taken them before, and store them a moment later.
pub async fn record(world: &World) {
    run_job(world, "refused").await;
}

/// Sends a request of a client app that is refused; returns the id of the stored refusal.
pub async fn create_refusal(world: &World, app: &str) -> String {
    let address =
        format!("/connect/authorize?client_id={app}&response_type=code&redirect_uri=https://x.example/");
    world.anonymous.get(&address).await.expect(400);
    let filter = encode(&format!("clientAppId eq \"{app}\""));
    let rows = async || {
        record(world).await;
        world.all(&format!("ClientAppRefusal?filter={filter}")).await
    };
    crate::until("the request is listed", async || rows().await[0].is_object()).await;
    id(&rows().await[0]).to_owned()
}

async fn listed(world: &World) -> Vec<Value> {
    world.all("ClientAppRefusal?sortBy=endpoint").await.as_array().unwrap().clone()
}

/// Stores refused requests of these client apps, with this error and time.
async fn refuse(world: &World, apps: &[Uuid], error: &'static str, on: i64) {
    let context = std::sync::Arc::clone(&world.app.context);
    let request = |app: &Uuid| RefusedRequest {
        kind: (*app, "/connect/token", error),
        reason: format!("refused on {on}"),
        sent: "x".repeat(5_000),
        registered: String::new(),
        last_on: Timestamp(on),
    };
    let requests: Vec<RefusedRequest> = apps.iter().map(request).collect();
    let run =
        world.app.store.run("Test", Mode::Write, None, move |tx| write_refused(tx, &context, &requests));
    run.await.map_err(|error: Error| error.to_string()).unwrap();
}

on_both_engines! {
    async fn refused_requests_of_an_app_are_listed(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let other = "https://app.example/other?x=very-secret";
        browser.open(&home.request(&[("redirect_uri", other), ("login_hint", "ann@secret.example")])).await;
        let wrong = home.redeem(&world, "a-code-that-is-secret", &[("client_secret", "a-wrong-secret")]).await;
        wrong.expect(401);
        let unknown = form([("grant_type", "client_credentials"), ("client_id", "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"), ("client_secret", "x")].into_iter());
        world.anonymous.ask_for_token(&unknown).await.expect(401);
        crate::until("both are listed", async || {
            record(&world).await;
            listed(&world).await.len() >= 2
        })
        .await;
        let rows = listed(&world).await;
        let [authorize, token] = rows.as_slice() else { panic!("{rows:#?}") };
        for (row, endpoint, error) in [(authorize, "/connect/authorize", "unknown_redirect"), (token, "/connect/token", "invalid_client")] {
            assert_eq!((&row["endpoint"], &row["error"]), (&json!(endpoint), &json!(error)));
            assert_eq!((&row["clientAppId"], &row["firstOn"]), (&home.app["id"], &row["lastOn"]));
        }
        assert!(authorize["sent"].as_str().unwrap().contains("redirect_uri=\"https://app.example/other?..\""), "{authorize}");
        assert!(authorize["registered"].as_str().unwrap().contains("https://app.example/callback"), "{authorize}");
        assert!(authorize["reason"].as_str().unwrap().contains("redirect_uri"), "{authorize}");
        let text = json!(rows).to_string();
        for secret in ["very-secret", "ann@secret.example", "a-wrong-secret", "a-code-that-is-secret", home.secret.as_str()] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        let one = world.all(&format!("ClientAppRefusal/{}", id(token))).await;
        assert_eq!(&one, token);
        // a successful request stores nothing, and the same error no second row
        let page = browser.open(&home.request(&[])).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
        home.redeem(&world, "another", &[("client_secret", "a-wrong-secret")]).await.expect(401);
        record(&world).await;
        assert_eq!(listed(&world).await, rows);
    }

    async fn repeated_refusals_are_recorded_once_an_hour(world: World) {
        let app = world.make("ClientApp", json!({ "name": "app" })).await;
        let apps = [Uuid::try_parse(id(&app)).unwrap()];
        let begin = chancery_web::now().0;
        for (on, expected) in [(begin, begin), (begin + HOUR - 1, begin), (begin + HOUR, begin + HOUR)] {
            refuse(&world, &apps, "invalid_client", on).await;
            let rows = listed(&world).await;
            assert_eq!(rows.len(), 1);
            assert_eq!(rows[0]["reason"], format!("refused on {expected}"));
            assert_eq!(rows[0]["sent"].as_str().unwrap().len(), 4_000);
            assert_eq!(rows[0]["firstOn"] == rows[0]["lastOn"], expected == begin);
        }
        refuse(&world, &apps, "invalid_grant", begin).await;
        assert_eq!(listed(&world).await.len(), 2, "another kind");
    }

    async fn refusals_are_limited_and_deleted_with_the_app(world: World) {
        let app = world.make("ClientApp", json!({ "name": "app" })).await;
        let apps = [Uuid::try_parse(id(&app)).unwrap(), Uuid::from_u128(7)];
        for number in 0..60 {
            let error: &'static str = Box::leak(format!("error_{number}").into_boxed_str());
            refuse(&world, &apps, error, chancery_web::now().0).await;
        }
        assert_eq!(world.all("ClientAppRefusal?count=100").await.as_array().unwrap().len(), 50);
        let later = Timestamp(chancery_web::now().0 + 31 * 24 * HOUR);
        let run = world.app.store.run("Test", Mode::Write, None, move |tx| prune_batch(tx, later));
        run.await.map_err(|error: Error| error.to_string()).unwrap();
        assert_eq!(listed(&world).await.len(), 0, "they are listed for thirty days");
        refuse(&world, &apps, "invalid_client", chancery_web::now().0).await;
        let gone = format!("{}/ClientApp/{}", BASE, id(&app));
        world.admin.delete(&gone).await.expect(204);
        assert_eq!(listed(&world).await.len(), 0);
    }
}
