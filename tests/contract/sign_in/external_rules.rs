//! Claim rules before what a provider told sets the fields of a platform user.

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

async fn rule(world: &World, about: Value) -> Value {
    let mut rule = json!({ "inputSource": "IdentityProvider", "ruleLevel": "Tenant" });
    rule.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
    world.make("ClaimRule", rule).await
}

/// A rule of the tenant that gives a claim another type.
async fn renames(world: &World, home: &Home, from: &str, to: &str, priority: i32) -> Value {
    rule(world, json!({
        "name": format!("{from} to {to}"), "ruleType": "Transform", "filterTarget": "ClaimType", "transformTarget": "ClaimType",
        "typeEvaluationRule": format!("^{from}$"), "typeTransformationRule": "^.*$", "typeTransformationReplacement": to,
        "priority": priority, "applyToTenantId": home.tenant,
    }))
    .await
}

on_both_engines! {
    [of_this_machine]
    /// Rules of the tenant and of the subscription decide what fields hold; those of a client app do not.
    async fn fields_are_what_rules_forward(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let told = json!({ "given_name": "Ada", "family_name": "Lovelace", "department": "Analysis", "email": "ada@example.com" });
        provider.behave(Behaviour { claims: told, ..Behaviour::default() });
        rule(&world, json!({
            "name": "names", "ruleType": "Remove", "filterTarget": "ClaimType", "typeEvaluationRule": "^family_name$", "priority": 1,
            "ruleLevel": "Subscription", "applyToSubscriptionId": home.app["subscriptionId"],
        }))
        .await;
        for (from, to, priority) in [("department", "organizational_unit", 2), ("given_name", "nickname", 3)] {
            let made = renames(&world, &home, from, to, priority).await;
            // beside it, so that all else goes on
            rule(&world, json!({
                "name": format!("all but {from}"), "ruleType": "Remove", "filterTarget": "ClaimType",
                "typeEvaluationRule": format!("^{from}$"), "priority": priority, "applyToTenantId": home.tenant,
            }))
            .await;
            assert_eq!(made["isActive"], true);
        }
        rule(&world, json!({
            "name": "of the app", "ruleType": "Remove", "filterTarget": "ClaimType", "typeEvaluationRule": "^email$", "priority": 1,
            "ruleLevel": "ClientApp", "clientApps": [{ "id": home.app["id"] }],
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
        let made = rule(&world, json!({
            "name": "mallory", "ruleType": "Transform", "filterTarget": "ClaimType", "transformTarget": "ClaimValue",
            "typeEvaluationRule": "^email$", "valueTransformationRule": "^.*$", "valueTransformationReplacement": "mallory@example.com",
            "applyToTenantId": home.tenant,
        }))
        .await;
        tokens(&world, &home, &provider, &[]).await;
        assert_eq!(people(&world, &instance).await[0]["emailAddress"], Value::Null);
        // another one that the provider told is taken
        change(&world, &format!("/ClaimRule/{}", id(&made)), json!({ "isActive": false })).await;
        renames(&world, &home, "work", "email", 1).await;
        let (name, of) = ("email goes", json!({ "applyToTenantId": home.tenant }));
        let mut other = json!({ "name": name, "ruleType": "Remove", "filterTarget": "ClaimType", "typeEvaluationRule": "^(email|work)$", "priority": 1 });
        other.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
        rule(&world, other).await;
        tokens(&world, &home, &provider, &[]).await;
        let person = people(&world, &instance).await.remove(0);
        assert_eq!((&person["emailAddress"], &person["firstName"]), (&json!("ada@work.example"), &json!("Ada")));
    }

    /// Rules that cannot run let nobody in without them.
    async fn rules_that_cannot_run_let_nobody_in(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let made = rule(&world, json!({
            "name": "broken", "ruleType": "Filter", "filterTarget": "ClaimType", "typeEvaluationRule": "^a$", "applyToTenantId": home.tenant,
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
