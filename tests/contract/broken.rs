//! Broken data that security depends on is an error, and is not ignored.

use chancery_testkit::on_both_engines;
use rcgen::PKCS_ECDSA_P256_SHA256;
use serde_json::json;

use crate::{certificate::upload, id};

const TOKEN: &str = "grant_type=client_credentials&client_id=root&client_secret=the+root+secret+of+the+tests";

on_both_engines! {
    /// D: no other key signs for a certificate whose private key cannot be opened.
    async fn no_other_key_signs_for_a_broken_one(world: World) {
        upload(&world, &PKCS_ECDSA_P256_SHA256, 2080, json!({ "certType": "Default" })).await;
        let text = "UPDATE cert_store SET private_key = substr(private_key, 1, length(private_key) - 4) || 'AAAA'";
        world.sql(vec![(text, vec![])]).await;
        let answer = world.anonymous.ask_for_token(TOKEN).await.is(500);
        assert_eq!(answer.json()["error"], "server_error");
    }

    /// D: a person's key that cannot be opened prevents a change, which would otherwise be written in the clear.
    async fn personal_data_is_never_written_unencrypted(world: World) {
        let user = world.user("ada").await;
        let before = world.audit(1).await;
        let broken = chancery_record::Value::Bytes(vec![7; 60]);
        world.sql(vec![("UPDATE user_account SET audit_key = ?1", vec![broken])]).await;
        let path = world.path(&format!("/User/{}", id(&user)));
        let patch = json!({ "firstName": "Augusta", "concurrencyToken": user["concurrencyToken"] });
        world.admin.patch(&path, patch).await.problem(500, "internal");
        assert_eq!(world.admin.get(&path).await.is(200).json()["firstName"], json!(null));
        assert_eq!(world.audit(1).await[0]["id"], before[0]["id"]);
    }

    /// D: an unknown role does not vanish.
    async fn an_unknown_role_is_an_error(world: World) {
        let caller = world.client("caller", &[("SystemAdmin", None, None), ("AuditTrailReader", None, None)]).await;
        caller.get(&world.path("/User")).await.expect(200);
        let text = "UPDATE client_app_role SET role_type = 'Emperor' WHERE role_type = 'AuditTrailReader'";
        world.sql(vec![(text, vec![])]).await;
        caller.get(&world.path("/User")).await.problem(500, "internal");
        world.admin.get(&world.path("/User")).await.expect(200);
    }

    /// D: an unknown word of a claim rule does not become Filter.
    async fn a_rule_of_an_unknown_kind_is_an_error(world: World) {
        world.make("ClaimRule", json!({ "name": "r", "ruleType": "Remove", "ruleLevel": "Subscription" })).await;
        world.sql(vec![("UPDATE claim_rule SET rule_type = 'Forget'", vec![])]).await;
        let tenant = world.all("Tenant").await[0]["id"].clone();
        let body = json!({ "claims": [{ "type": "a", "value": "b" }], "tenantId": tenant });
        world.admin.post("/api/management/v2/ClaimRule/evaluate", body).await.problem(500, "internal");
    }
}
