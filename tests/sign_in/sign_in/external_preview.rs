//! The preview of tokens of external people equals their tokens.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{
    BASE, claim_rules, claims,
    external::{people, set_up, tokens},
    preview,
};
use crate::{
    id,
    provider_trial::{allow_loopback, stub_provider::Behaviour},
};

on_both_engines! {
    [allow_loopback]
    async fn a_preview_of_an_external_person_matches_the_tokens(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let provider_claims = json!({ "given_name": "Ada", "family_name": "Lovelace", "department": "Analysis", "nickname": "Countess" });
        provider.behave(Behaviour { claims: provider_claims, ..Behaviour::default() });
        let rule = json!({
            "name": "department", "ruleType": "Filter", "ruleLevel": "ClientAppIdpInstance", "inputSource": "IdentityProvider",
            "typeEvaluationRule": "^department$", "applyToIdpInstanceId": instance["id"], "clientApps": [{ "id": home.app["id"] }],
        });
        world.make("ClaimRule", rule).await;
        let issued = tokens(&world, &home, &provider, &[("scope", "openid profile email")]).await;
        let documents = [
            claims(&issued["id_token"]),
            claim_rules::userinfo(&world, &issued).await,
            claims(&issued["access_token"]),
        ];
        assert_eq!(documents[0]["department"], "Analysis");
        let person = people(&world, &instance).await.remove(0);
        let shown = preview::preview(&world, &home, id(&person), json!({ "scope": "openid profile email" })).await;
        assert_eq!(shown["idpInstanceId"], instance["id"], "{shown:#}");
        preview::assert_matches(&shown, &documents);
        // without a session the claims that the platform stores are left
        world.admin.post(&format!("{BASE}/ApplicationUser/{}/signout", id(&person)), json!(null)).await.expect(204);
        let shown = preview::preview(&world, &home, id(&person), json!({ "scope": "openid profile email" })).await;
        let names: Vec<&str> =
            shown["idToken"]["claims"].as_array().unwrap().iter().map(|claim| claim["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"given_name") && !names.contains(&"department"), "{names:?}");
        // it requires read access to the people of the instance
        let body = json!({ "platformUserId": person["id"] });
        let path = format!("{BASE}/ClientApp/{}/tokens/preview", id(&home.app));
        let tenant = home.tenant.parse().unwrap();
        let roles = [("TenantAdmin", Some(tenant), None), ("ApplicationDataReader", Some(tenant), None)];
        world.client("reader", &roles).await.post(&path, body.clone()).await.problem(403, "forbidden");
        let administrator = world.client("administrator", &[("SubscriptionAdmin", None, None)]).await;
        assert_eq!(administrator.post(&path, body).await.is(200).json()["refusal"], json!(null));
    }
}
