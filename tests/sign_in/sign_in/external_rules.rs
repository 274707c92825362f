//! Claim rules run on a provider's claims before they set fields of a platform user.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    SignInApp,
    browser::Browser,
    change,
    external::{people, set_up, sign_in_with, tokens},
    relate,
};
use crate::{
    id,
    provider_trial::{allow_loopback, stub_provider::Behaviour},
};

async fn rule(world: &World, home: &SignInApp, about: Value) -> Value {
    let mut rule = json!({
        "inputSource": "IdentityProvider", "ruleLevel": "Subscription", "applyToSubscriptionId": home.app["subscriptionId"],
    });
    rule.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
    world.make("ClaimRule", rule).await
}

/// A rule of the subscription that renames a claim.
async fn rename_rule(world: &World, home: &SignInApp, from: &str, to: &str, priority: i32) -> Value {
    rule(world, home, json!({
        "name": format!("{from} to {to}"), "ruleType": "Transform", "filterTarget": "ClaimType", "transformTarget": "ClaimType",
        "typeEvaluationRule": format!("^{from}$"), "typeTransformationRule": "^.*$", "typeTransformationReplacement": to,
        "priority": priority,
    }))
    .await
}

/// Assigns the instance to another tenant, too.
async fn share(world: &World, home: &SignInApp, instance: &Value) {
    let subscription = &home.app["subscriptionId"];
    let other = world.make("Tenant", json!({ "name": "Other", "subscriptionId": subscription })).await;
    let tenants = [home.tenant.as_str(), id(&other)];
    relate(world, &format!("/IdpInstance/{}/tenants", id(instance)), &tenants).await;
}

on_both_engines! {
    [allow_loopback]
    /// Rules of the subscription set fields. Those of a client app do not, nor those of a tenant that shares the instance with
    /// another one.
    async fn claim_rules_set_fields_of_platform_users(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        share(&world, &home, &instance).await;
        let provider_claims = json!({
            "given_name": "Ada", "family_name": "Lovelace", "department": "Analysis", "email": "ada@example.com",
        });
        provider.behave(Behaviour { claims: provider_claims, ..Behaviour::default() });
        rule(&world, &home, json!({
            "name": "names", "ruleType": "Remove", "filterTarget": "ClaimType", "typeEvaluationRule": "^family_name$", "priority": 1,
        }))
        .await;
        for (from, to, priority) in [("department", "organizational_unit", 2), ("given_name", "nickname", 3)] {
            let created = rename_rule(&world, &home, from, to, priority).await;
            // in addition, so that all other claims are forwarded
            rule(&world, &home, json!({
                "name": format!("all but {from}"), "ruleType": "Remove", "filterTarget": "ClaimType",
                "typeEvaluationRule": format!("^{from}$"), "priority": priority,
            }))
            .await;
            assert_eq!(created["isActive"], true);
        }
        rule(&world, &home, json!({
            "name": "of the app", "ruleType": "Remove", "filterTarget": "ClaimType", "typeEvaluationRule": "^email$", "priority": 1,
            "ruleLevel": "ClientApp", "applyToSubscriptionId": null, "clientApps": [{ "id": home.app["id"] }],
        }))
        .await;
        rule(&world, &home, json!({
            "name": "of the tenant", "ruleType": "Transform", "filterTarget": "ClaimType", "transformTarget": "ClaimValue",
            "typeEvaluationRule": "^department$", "valueTransformationRule": "^.*$", "valueTransformationReplacement": "Finance",
            "priority": 1, "ruleLevel": "Tenant", "applyToSubscriptionId": null, "applyToTenantId": home.tenant,
        }))
        .await;
        tokens(&world, &home, &provider, &[]).await;
        let person = people(&world, &instance).await.remove(0);
        let fields = ["firstName", "lastName", "organizationalUnit", "emailAddress"].map(|field| person[field].clone());
        assert_eq!(fields, [Value::Null, Value::Null, json!("Analysis"), json!("ada@example.com")]);
    }

    /// Rules of a tenant set fields while no other tenant has the instance.
    async fn rules_of_the_only_tenant_set_fields_of_platform_users(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let provider_claims = json!({ "given_name": "Ada", "family_name": "Lovelace" });
        provider.behave(Behaviour { claims: provider_claims, ..Behaviour::default() });
        rule(&world, &home, json!({
            "name": "of the tenant", "ruleType": "Remove", "filterTarget": "ClaimType", "typeEvaluationRule": "^family_name$",
            "priority": 1, "ruleLevel": "Tenant", "applyToSubscriptionId": null, "applyToTenantId": home.tenant,
        }))
        .await;
        let names = async || {
            tokens(&world, &home, &provider, &[]).await;
            let person = people(&world, &instance).await.remove(0);
            (person["firstName"].clone(), person["lastName"].clone())
        };
        assert_eq!(names().await, (json!("Ada"), Value::Null));
        share(&world, &home, &instance).await;
        assert_eq!(names().await, (json!("Ada"), json!("Lovelace")));
    }

    /// Rules cannot set an e-mail address.
    async fn claim_rules_cannot_set_an_email_address(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let provider_claims = json!({ "email": "ada@example.com", "work": "ada@work.example", "given_name": "Ada" });
        provider.behave(Behaviour { claims: provider_claims.clone(), user_info: provider_claims, ..Behaviour::default() });
        let created = rule(&world, &home, json!({
            "name": "mallory", "ruleType": "Transform", "filterTarget": "ClaimType", "transformTarget": "ClaimValue",
            "typeEvaluationRule": "^email$", "valueTransformationRule": "^.*$", "valueTransformationReplacement": "mallory@example.com",
        }))
        .await;
        tokens(&world, &home, &provider, &[]).await;
        assert_eq!(people(&world, &instance).await[0]["emailAddress"], Value::Null);
        // another claim of the provider is accepted
        change(&world, &format!("/ClaimRule/{}", id(&created)), json!({ "isActive": false })).await;
        rename_rule(&world, &home, "work", "email", 1).await;
        rule(&world, &home, json!({
            "name": "email goes", "ruleType": "Remove", "filterTarget": "ClaimType", "typeEvaluationRule": "^(email|work)$", "priority": 1,
        }))
        .await;
        tokens(&world, &home, &provider, &[]).await;
        let person = people(&world, &instance).await.remove(0);
        assert_eq!((&person["emailAddress"], &person["firstName"]), (&json!("ada@work.example"), &json!("Ada")));
    }

    /// If the rules fail nobody can sign in.
    async fn failing_claim_rules_refuse_the_sign_in(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let created = rule(&world, &home, json!({
            "name": "broken", "ruleType": "Filter", "filterTarget": "ClaimType", "typeEvaluationRule": "^a$",
        }))
        .await;
        assert_eq!(created["isActive"], true);
        world.sql(vec![("UPDATE claim_rule SET type_evaluation_rule = '('", vec![])]).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("Continue with Partner") && page.html.contains("role=\"alert\""), "{}", page.html);
        assert_eq!(people(&world, &instance).await.len(), 0);
    }
}
