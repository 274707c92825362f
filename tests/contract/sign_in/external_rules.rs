//! Claim rules run on a provider's claims before they set fields of a platform user.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    Home,
    browser::Browser,
    change,
    external::{come_by, people, set_up, tokens},
};
use crate::{
    id,
    provider_trial::{of_this_machine, stand_in::Behaviour},
};

async fn rule(world: &World, home: &Home, about: Value) -> Value {
    let mut rule = json!({
        "inputSource": "IdentityProvider", "ruleLevel": "Subscription", "applyToSubscriptionId": home.app["subscriptionId"],
    });
    rule.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
    world.make("ClaimRule", rule).await
}

/// A rule of the subscription that gives a claim another type.
async fn renames(world: &World, home: &Home, from: &str, to: &str, priority: i32) -> Value {
    rule(world, home, json!({
        "name": format!("{from} to {to}"), "ruleType": "Transform", "filterTarget": "ClaimType", "transformTarget": "ClaimType",
        "typeEvaluationRule": format!("^{from}$"), "typeTransformationRule": "^.*$", "typeTransformationReplacement": to,
        "priority": priority,
    }))
    .await
}

on_both_engines! {
    [of_this_machine]
    /// Rules of the subscription decide what fields hold. Those of a client app do not, nor those of a tenant, which shares its people with
    /// other tenants.
    async fn fields_are_what_rules_forward(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let told = json!({ "given_name": "Ada", "family_name": "Lovelace", "department": "Analysis", "email": "ada@example.com" });
        provider.behave(Behaviour { claims: told, ..Behaviour::default() });
        rule(&world, &home, json!({
            "name": "names", "ruleType": "Remove", "filterTarget": "ClaimType", "typeEvaluationRule": "^family_name$", "priority": 1,
        }))
        .await;
        for (from, to, priority) in [("department", "organizational_unit", 2), ("given_name", "nickname", 3)] {
            let made = renames(&world, &home, from, to, priority).await;
            // beside it, so that all else goes on
            rule(&world, &home, json!({
                "name": format!("all but {from}"), "ruleType": "Remove", "filterTarget": "ClaimType",
                "typeEvaluationRule": format!("^{from}$"), "priority": priority,
            }))
            .await;
            assert_eq!(made["isActive"], true);
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

    /// Whoever writes rules gives nobody an address.
    async fn rules_make_no_address(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let told = json!({ "email": "ada@example.com", "work": "ada@work.example", "given_name": "Ada" });
        provider.behave(Behaviour { claims: told.clone(), user_info: told, ..Behaviour::default() });
        let made = rule(&world, &home, json!({
            "name": "mallory", "ruleType": "Transform", "filterTarget": "ClaimType", "transformTarget": "ClaimValue",
            "typeEvaluationRule": "^email$", "valueTransformationRule": "^.*$", "valueTransformationReplacement": "mallory@example.com",
        }))
        .await;
        tokens(&world, &home, &provider, &[]).await;
        assert_eq!(people(&world, &instance).await[0]["emailAddress"], Value::Null);
        // another one that the provider told is taken
        change(&world, &format!("/ClaimRule/{}", id(&made)), json!({ "isActive": false })).await;
        renames(&world, &home, "work", "email", 1).await;
        rule(&world, &home, json!({
            "name": "email goes", "ruleType": "Remove", "filterTarget": "ClaimType", "typeEvaluationRule": "^(email|work)$", "priority": 1,
        }))
        .await;
        tokens(&world, &home, &provider, &[]).await;
        let person = people(&world, &instance).await.remove(0);
        assert_eq!((&person["emailAddress"], &person["firstName"]), (&json!("ada@work.example"), &json!("Ada")));
    }

    /// Rules that cannot run let nobody in without them.
    async fn rules_that_cannot_run_let_nobody_in(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let made = rule(&world, &home, json!({
            "name": "broken", "ruleType": "Filter", "filterTarget": "ClaimType", "typeEvaluationRule": "^a$",
        }))
        .await;
        assert_eq!(made["isActive"], true);
        world.sql(vec![("UPDATE claim_rule SET type_evaluation_rule = '('", vec![])]).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = come_by(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("Continue with Partner") && page.html.contains("role=\"alert\""), "{}", page.html);
        assert_eq!(people(&world, &instance).await.len(), 0);
    }
}
