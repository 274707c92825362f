//! The last use of secrets and keys is recorded when they authenticate, and written by a job.

use chancery_store::{Error, Mode};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    app, assert_oauth_error,
    assertion::{key_set, present},
    configure, request_token, secret,
};
use crate::{
    id, run_job,
    signer::{Signer, assert_with_secret, claims},
    until,
};

/// The used secrets and key sets of an app, as far as written.
async fn used(world: &World, app: &Value) -> Vec<Uuid> {
    run_job(world, "uses").await;
    let app = Uuid::try_parse(id(app)).unwrap();
    let read = world.app.store.run("Uses", Mode::Quick, None, move |tx| {
        let text = "SELECT credential_id FROM client_credential_use WHERE client_app_id = ?1";
        let mut used = Vec::new();
        tx.query(text, &[app.into()], |row| {
            used.push(row.id(0)?);
            Ok(())
        })?;
        Ok::<_, Error>(used)
    });
    read.await.unwrap()
}

/// The id of the only secret of an app.
async fn only(world: &World, app: &Value) -> Uuid {
    let all = world.all(&format!("ClientAppSecret/clientapp/{}", id(app))).await;
    assert_eq!(all.as_array().unwrap().len(), 1);
    Uuid::try_parse(id(&all[0])).unwrap()
}

on_both_engines! {
    /// Each method of client authentication records its credential; a failed one records nothing.
    async fn the_credential_of_each_authentication_is_recorded(world: World) {
        let plain = app(&world, "plain", json!({})).await;
        let value = secret(&world, &plain).await;
        assert_oauth_error(request_token(&world, &plain, "not the secret of this app", &[]).await, 401, "invalid_client");
        assert!(used(&world, &plain).await.is_empty(), "a guess is no use");
        request_token(&world, &plain, &value, &[]).await.expect(200);
        let first = only(&world, &plain).await;
        until("the secret is told", async || used(&world, &plain).await == [first]).await;

        let signing = app(&world, "signing", json!({})).await;
        configure(&world, &signing, "client_secret_jwt", json!({})).await;
        let value = secret(&world, &signing).await;
        let own = only(&world, &signing).await;
        // a second secret exists
        secret(&world, &signing).await;
        present(&world, &assert_with_secret(value.as_bytes(), &claims(&world, &signing, json!({})))).await.expect(200);
        until("the secret that signed is told", async || used(&world, &signing).await == [own]).await;

        let keyed = app(&world, "keyed", json!({})).await;
        configure(&world, &keyed, "private_key_jwt", json!({})).await;
        let (old, new) = (Signer::new("old"), Signer::new("new"));
        key_set(&world, &keyed, "old", json!({ "jwks": old.jwks() })).await;
        let set = key_set(&world, &keyed, "new", json!({ "jwks": new.jwks() })).await;
        present(&world, &new.assert(&claims(&world, &keyed, json!({})))).await.expect(200);
        let set = Uuid::try_parse(id(&set)).unwrap();
        until("the key set is told", async || used(&world, &keyed).await == [set]).await;
    }
}
