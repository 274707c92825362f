//! Tokens and rights.

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use chancery_testkit::on_both_engines;
use http::Method;
use serde_json::{Value, json};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const SECRET: &str = "the+root+secret+of+the+tests";

on_both_engines! {
    /// Stale rights are looked up once and cached again, not with every request.
    async fn stale_rights_are_cached_again(world: World) {
        let remembered = || world.app.rights.recall(Some(world.admin.token()), Some("default"));
        world.admin.get(&world.path("/User")).await.expect(200);
        let before = remembered().unwrap().epoch;
        world.sql(Vec::new()).await;
        for _ in 0..2 {
            world.admin.get(&world.path("/User")).await.expect(200);
        }
        assert!(remembered().is_some_and(|known| known.epoch > before));
        // by any name of the store
        assert!(world.app.rights.recall(None, Some("DEFAULT")).is_some());
    }

    /// Creating an identity provider instance also creates its options; the security epoch advances once for all of these rows.
    async fn a_change_of_many_rows_advances_the_epoch_once(world: World) {
        let types = world.all("IdpType").await;
        let user_store = types.as_array().unwrap().iter().find(|one| one["name"] == "UserStore").unwrap();
        let before = world.app.store.epoch().await.unwrap();
        world.make("IdpInstance", json!({ "name": "new", "idpTypeId": user_store["id"] })).await;
        assert_eq!(world.app.store.epoch().await.unwrap(), before + 1);
    }

    /// `/metrics` requires current rights: a disabled client app, a removed role and a
    /// revoked token end the access at once.
    async fn metrics_are_shown_by_current_rights(world: World) {
        let reader = world.client("reader", &[("SystemAdmin", None, None)]).await;
        reader.get("/metrics").await.expect(200);
        world.sql(vec![("UPDATE client_app SET enabled = FALSE WHERE name = 'reader'", Vec::new())]).await;
        reader.get("/metrics").await.expect(401);
        world.sql(vec![("UPDATE client_app SET enabled = TRUE WHERE name = 'reader'", Vec::new())]).await;
        reader.get("/metrics").await.expect(200);
        let takes = "DELETE FROM client_app_role WHERE client_app_id = (SELECT id FROM client_app WHERE name = 'reader')";
        world.sql(vec![(takes, Vec::new())]).await;
        reader.get("/metrics").await.expect(403);
        let posted = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}");
        let token = world.anonymous.ask_for_token(&posted).await.is(200).json()["access_token"].as_str().unwrap().to_owned();
        world.anonymous.with_token(&token).get("/metrics").await.expect(200);
        let form = format!("client_id=root&client_secret={SECRET}&token={token}").into_bytes();
        world.anonymous.send(Method::POST, "/connect/revoke", &[FORM], form).await.expect(200);
        world.anonymous.with_token(&token).get("/metrics").await.expect(401);
    }

    /// - Effect of `ClientAppSecret.clientAppId`: The secret authenticates this app.
    /// - Effect of `ClientAppSecret.secret`: The app authenticates with this value.
    async fn tokens_are_granted_to_clients_that_prove_themselves(world: World) {
        let base = &world.base;
        let discovery = world.anonymous.get("/.well-known/openid-configuration").await.is(200).json();
        assert_eq!(discovery["issuer"], *base);
        assert_eq!(discovery["token_endpoint"], format!("{base}/connect/token"));
        let posted = format!("grant_type=client_credentials&client_id=ROOT&client_secret={SECRET}");
        let answer = world.anonymous.ask_for_token(&posted).await.is(200);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let grant = answer.json();
        assert_eq!((&grant["token_type"], &grant["expires_in"]), (&json!("Bearer"), &json!(3600)));
        let token = grant["access_token"].as_str().unwrap();
        let part = |index: usize| -> Value {
            serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(index).unwrap()).unwrap()).unwrap()
        };
        assert_eq!((&part(0)["typ"], &part(0)["alg"]), (&json!("at+jwt"), &json!("ES256")));
        assert_eq!(part(1)["aud"], json!(["PlatformManagementService", "PlatformUserStoreService"]));
        assert_eq!(part(1)["iss"], *base);
        assert_eq!(part(1)["sub"], part(1)["client_id"]);
        let keys = world.anonymous.get("/.well-known/jwks.json").await.is(200).json();
        assert_eq!(keys["keys"][0]["kid"], part(0)["kid"]);
        assert!(keys["keys"][0].get("d").is_none());
        world.anonymous.with_token(token).get(&world.path("/User")).await.expect(200);

        let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("root:{SECRET}")));
        let headers = [FORM, ("authorization", basic.as_str())];
        world.anonymous.send(Method::POST, "/connect/token", &headers, b"grant_type=client_credentials".to_vec()).await.expect(200);
    }

    /// ClientApp.allowClientCredentialLogin
    ///
    /// - Effect of `ClientApp.allowClientCredentialLogin`: The app gets tokens for itself by the client credentials grant.
    async fn an_app_gets_client_credentials_tokens_only_where_allowed(world: World) {
        let app = world.make("ClientApp", json!({ "name": "c", "allowClientCredentialLogin": true })).await;
        let secret = world.make("ClientAppSecret", json!({ "clientAppId": app["id"] })).await;
        let secret = secret["secret"].as_str().unwrap();
        let form = format!("grant_type=client_credentials&client_id={}&client_secret={secret}", crate::id(&app));
        world.anonymous.ask_for_token(&form).await.expect(200);
        let path = format!("/api/management/v2/ClientApp/{}", crate::id(&app));
        let denied = json!({ "allowClientCredentialLogin": false, "concurrencyToken": app["concurrencyToken"] });
        world.admin.patch(&path, denied).await.expect(202);
        world.anonymous.ask_for_token(&form).await.expect(401);
    }

    async fn refusals_of_the_token_endpoint(world: World) {
        for (form, status, error) in [
            ("grant_type=client_credentials&client_id=root&client_secret=wrong".to_owned(), 401, "invalid_client"),
            (format!("grant_type=client_credentials&client_id=nobody&client_secret={SECRET}"), 401, "invalid_client"),
            ("grant_type=client_credentials&client_id=root".to_owned(), 401, "invalid_client"),
            (format!("grant_type=password&client_id=root&client_secret={SECRET}"), 400, "unsupported_grant_type"),
            (format!("client_id=root&client_secret={SECRET}"), 400, "invalid_request"),
            (format!("grant_type=client_credentials&client_id=root&client_id=root&client_secret={SECRET}"), 400, "invalid_request"),
            (format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}&resource=x"), 400, "invalid_target"),
        ] {
            let answer = world.anonymous.ask_for_token(&form).await.is(status);
            assert_eq!(answer.json()["error"], error, "{form}");
            assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
        }
        let unknown = format!("grant_type=password&client_id=root&client_secret={SECRET}");
        let problem = world.anonymous.ask_for_token(&unknown).await.is(400).json();
        let served = world.anonymous.get("/.well-known/openid-configuration").await.is(200).json();
        for grant in served["grant_types_supported"].as_array().unwrap() {
            assert!(problem["error_description"].as_str().unwrap().contains(grant.as_str().unwrap()), "{problem}");
        }
        assert!(served["revocation_endpoint_auth_methods_supported"].as_array().unwrap().contains(&json!("none")));
        // a charset changes nothing: the form is ASCII
        let form = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}").into_bytes();
        let headers = [("content-type", "application/x-www-form-urlencoded; charset=ISO-8859-1")];
        world.anonymous.send(Method::POST, "/connect/token", &headers, form).await.expect(200);
        let headers = [("content-type", "application/json")];
        world.anonymous.send(Method::POST, "/connect/token", &headers, b"{}".to_vec()).await.expect(400);
        world.anonymous.get("/connect/token").await.problem(405, "method-not-allowed");
    }

    async fn audiences_limit_tokens(world: World) {
        let form = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}&resource=PlatformUserStoreService");
        let grant = world.anonymous.ask_for_token(&form).await.is(200).json();
        let caller = world.anonymous.with_token(grant["access_token"].as_str().unwrap());
        caller.get(&world.path("/User")).await.expect(200);
        caller.get("/api/management/v2/Customer").await.problem(401, "unauthorized");
        let form = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}&resource=PlatformManagementService");
        let grant = world.anonymous.ask_for_token(&form).await.is(200).json();
        let caller = world.anonymous.with_token(grant["access_token"].as_str().unwrap());
        caller.get(&world.path("/User")).await.expect(200);
        caller.get("/api/management/v2/Customer").await.expect(200);
    }

    async fn bad_tokens_are_challenged(world: World) {
        let users = world.path("/User");
        let answer = world.anonymous.get(&users).await;
        assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"chancery\""));
        answer.problem(401, "unauthorized");
        let form = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}");
        let good = world.anonymous.ask_for_token(&form).await.is(200).json()["access_token"].as_str().unwrap().to_owned();
        let (head, rest) = good.split_once('.').unwrap();
        let (claims, signature) = rest.split_once('.').unwrap();
        let none = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"at+jwt"}"#);
        let changed = format!("{head}.{}.{signature}", claims.replace('a', "b"));
        for token in ["x", &format!("{none}.{claims}."), &changed, &format!("{head}.{claims}."), &"a".repeat(6000)] {
            let answer = world.anonymous.with_token(token).get(&users).await;
            assert!(answer.header("www-authenticate").unwrap().contains("invalid_token"));
            answer.problem(401, "unauthorized");
        }
    }

    async fn changed_rights_apply_at_once(world: World) {
        let reader = world.client("reader", &[("AuditTrailReader", None, None)]).await;
        let users = world.path("/User");
        reader.get(&users).await.problem(403, "forbidden");
        reader.get(&world.path("/CustomAuditTrail")).await.expect(200);
        let grant = "UPDATE client_app_role SET role_type = 'SystemAdmin' WHERE role_type = 'AuditTrailReader'";
        world.sql(vec![(grant, vec![])]).await;
        reader.get(&users).await.expect(200);
        world.sql(vec![("UPDATE client_app SET enabled = FALSE WHERE name = 'reader'", vec![])]).await;
        reader.get(&users).await.problem(401, "unauthorized");
        let form = "grant_type=client_credentials&client_id=reader&client_secret=secret+of+a+client";
        world.anonymous.ask_for_token(form).await.expect(401);
        world.sql(vec![("UPDATE client_app SET enabled = TRUE WHERE name = 'reader'", vec![])]).await;
        reader.get(&users).await.expect(200);
        world.sql(vec![("UPDATE idp_instance SET is_active = FALSE WHERE name = 'default'", vec![])]).await;
        world.admin.get(&users).await.problem(404, "not-found");
    }

    /// - Effect of `ClientAppSecret.expiry`: The secret is refused from this time on.
    async fn an_expired_secret_gets_no_token(world: World) {
        let app = world.make("ClientApp", json!({ "name": "c", "allowClientCredentialLogin": true })).await;
        let body = json!({ "clientAppId": app["id"], "expiry": "2099-01-01T00:00:00Z" });
        let secret = world.make("ClientAppSecret", body).await;
        let secret = secret["secret"].as_str().unwrap();
        let form = format!("grant_type=client_credentials&client_id={}&client_secret={secret}", crate::id(&app));
        world.anonymous.ask_for_token(&form).await.expect(200);
        world.sql(vec![("UPDATE client_app_secret SET expiry = 1 WHERE expiry IS NOT NULL", vec![])]).await;
        world.anonymous.ask_for_token(&form).await.expect(401);
    }
}
