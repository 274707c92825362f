//! What tokens tell is what the dry run (`/ClaimRule/evaluate`) says of the same claims, and what a preview says of the person: random
//! rule sets.

use std::collections::BTreeMap;

use chancery_testkit::{World, on_both_engines};
use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};

use super::{
    BASE, Home,
    claim_rules::{tokens, told, userinfo},
    claims, first,
    preview::{assert_told, person, preview},
};
use crate::id;

/// How many rule sets are tried on each engine, unless `CHANCERY_SEQUENCES` says it.
const SETS: usize = 24;
/// Types that rules look for and make: of the platform, of an entry of the user, of neither, and protected.
const TYPES: [&str; 9] =
    ["email", "email_verified", "nickname", "name", "groups", "department", "role", "badge", "sub"];
const VALUES: [&str; 5] = ["true", "Sales", "ann@example.com", "a", "b"];
/// The claims of the platform that the test's user has, with their scopes.
const SCOPES: [(&str, &str); 9] = [
    ("name", "profile"),
    ("given_name", "profile"),
    ("family_name", "profile"),
    ("nickname", "profile"),
    ("preferred_username", "profile"),
    ("updated_at", "profile"),
    ("email", "email"),
    ("email_verified", "email"),
    ("groups", "groups"),
];

/// `PROPTEST_RNG_SEED` says what the rule sets grow from.
fn seed() -> [u8; 32] {
    let set = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok());
    let number: u64 = set.unwrap_or(20_261_128);
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    seed
}

/// A pattern that finds some of the words.
fn pattern(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just(String::new()),
        4 => select(words).prop_map(|word| format!("^{word}$")),
        1 => select(words).prop_map(|word| word.chars().take(1).collect()),
    ]
}

fn target() -> impl Strategy<Value = &'static str> {
    select(&["ClaimType", "ClaimValue", "ClaimTypeAndValue"][..])
}

/// A rule without its place.
fn rule() -> impl Strategy<Value = Value> {
    let what = (select(&["Filter", "Transform", "Add", "Remove", "Remove"][..]), target(), target());
    let goes = (
        select(&["None", "IdToken", "AccessToken", "IdTokenAndAccessToken", "IdTokenAndAccessToken"][..]),
        select(&["Always", "Always", "OnRequest"][..]),
        select(&["All", "Platform", "IdentityProvider"][..]),
        0..3_i64,
    );
    let finds = (pattern(&TYPES), pattern(&VALUES), pattern(&TYPES), pattern(&VALUES));
    (what, goes, finds, select(&TYPES[..]), select(&VALUES[..]), 0..4_usize).prop_map(
        |(what, goes, finds, new_type, new_value, level)| {
            json!({
                "name": "random", "ruleType": what.0, "filterTarget": what.1, "transformTarget": what.2,
                "destination": goes.0, "disclosureMode": goes.1, "inputSource": goes.2, "priority": goes.3,
                "typeEvaluationRule": finds.0, "valueEvaluationRule": finds.1,
                "typeTransformationRule": finds.2, "valueTransformationRule": finds.3,
                "typeTransformationReplacement": new_type, "valueTransformationReplacement": new_value,
                "level": level,
            })
        },
    )
}

/// Puts a rule into force for the app.
fn in_force(mut rule: Value, home: &Home, instance: &Value) -> Value {
    let level = rule.as_object_mut().unwrap().remove("level").unwrap();
    let apps = json!([{ "id": home.app["id"] }]);
    match level.as_u64() {
        Some(0) => rule["ruleLevel"] = json!("Subscription"),
        Some(1) => {
            rule["ruleLevel"] = json!("Tenant");
            rule["applyToTenantId"] = json!(home.tenant);
        }
        Some(2) => {
            rule["ruleLevel"] = json!("ClientApp");
            rule["clientApps"] = apps;
        }
        _ => {
            rule["ruleLevel"] = json!("ClientAppIdpInstance");
            rule["clientApps"] = apps;
            rule["applyToIdpInstanceId"] = instance["id"].clone();
        }
    }
    rule
}

/// The claims of a token as the dry run takes them: one for each value.
fn as_claims(members: &Value) -> Vec<Value> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut all = Vec::new();
    for (name, value) in members.as_object().unwrap().iter().filter(|(name, _)| *name != "sub") {
        let values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        all.extend(values.iter().map(|value| json!({ "type": name, "value": text(value) })));
    }
    all
}

/// What the documents say of one place, by what the dry run says.
fn expected(evaluated: &Value, input: &[Value], scope: &str, place: &str) -> BTreeMap<String, Vec<String>> {
    let mut told = BTreeMap::<String, Vec<String>>::new();
    for claim in evaluated["claims"].as_array().unwrap() {
        let (name, value) = (claim["type"].as_str().unwrap(), claim["value"].as_str().unwrap());
        let destination = if place == "access_token" { "AccessToken" } else { "IdToken" };
        let goes = claim["destination"] == destination || claim["destination"] == "IdTokenAndAccessToken";
        let is_sent = place != "access_token" || claim["rules"] != json!([]);
        let has = |word: &str| scope.split(' ').any(|one| one == word);
        let plain = json!({ "type": name, "value": value });
        let is_disclosed = match SCOPES.iter().find(|(known, _)| *known == name) {
            Some((_, "groups")) => true,
            Some((_, word)) => has(word),
            None if name == "department" && input.contains(&plain) => has("profile"),
            None => claim["onRequest"] == false || has(name),
        };
        if goes && is_sent && is_disclosed {
            told.entry(name.to_owned()).or_default().push(value.to_owned());
        }
    }
    for values in told.values_mut() {
        values.sort();
        values.dedup();
    }
    told
}

/// The same form of what a token tells, without the claims of the protocol.
fn of_token(told: &Value) -> BTreeMap<String, Vec<String>> {
    let protocol = [
        "iss",
        "aud",
        "exp",
        "iat",
        "jti",
        "nonce",
        "auth_time",
        "acr",
        "amr",
        "azp",
        "sid",
        "client_id",
        "at_hash",
        "scope",
        "tid",
        "gid",
        "sub",
    ];
    let mut all = BTreeMap::<String, Vec<String>>::new();
    for claim in as_claims(told).iter().filter(|claim| !protocol.contains(&claim["type"].as_str().unwrap())) {
        let (name, value) = (claim["type"].as_str().unwrap(), claim["value"].as_str().unwrap());
        all.entry(name.to_owned()).or_default().push(value.to_owned());
    }
    for values in all.values_mut() {
        values.sort();
    }
    all
}

/// An app that is told all, with a user who has an entry and groups.
async fn home_with_facts(world: &World) -> Home {
    let home = Home::with(world, json!({ "includeGroupsClaims": true })).await;
    for key in ["badge", "role"] {
        world.make("ClientAppScope", json!({ "clientAppId": home.app["id"], "key": key, "name": key })).await;
    }
    let one = world.path(&format!("/User/{}", id(&home.user)));
    let mut user = world.admin.get(&one).await.is(200).json();
    user.as_object_mut().unwrap().retain(|_, value| !value.is_array());
    user["nickname"] = json!("Sales");
    world.admin.put(&one, user).await.expect(202);
    let entry = json!({ "key": "department", "value": "Sales" });
    world.admin.post(&world.path(&format!("/user/{}/UserProfile", id(&home.user))), entry).await.expect(202);
    for name in ["a", "b"] {
        let group = world.group(name).await;
        let groups = world.path(&format!("/User/{}/groups", id(&home.user)));
        world.admin.post(&groups, json!({ "relatedIds": [group["id"]] })).await.expect(202);
    }
    home
}

on_both_engines! {
    async fn tokens_tell_what_the_dry_run_says(world: World) {
        let home = home_with_facts(&world).await;
        let instance = first(&world, "/IdpInstance").await;
        let person = person(&world).await;
        let [_, mut known, _] = told(&world, &home, &[("scope", "openid profile email phone groups")]).await;
        known.as_object_mut().unwrap().remove("sub");
        let input = as_claims(&known);
        let scopes = ["openid profile email badge offline_access", "openid role offline_access", "openid profile groups offline_access"];
        let mut refresh = Vec::new();
        for scope in scopes {
            let tokens = tokens(&world, &home, &[("scope", scope)]).await;
            refresh.push((scope, tokens["refresh_token"].as_str().unwrap().to_owned()));
        }
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed());
        let mut runner = TestRunner::new_with_rng(Config::default(), random);
        let mut seen = 0;
        let sets = std::env::var("CHANCERY_SEQUENCES").ok().and_then(|text| text.parse().ok()).unwrap_or(SETS);
        for set in 0..sets {
            let rules = proptest::collection::vec(rule(), 1..7).new_tree(&mut runner).unwrap().current();
            let rules: Vec<Value> = rules.into_iter().map(|rule| in_force(rule, &home, &instance)).collect();
            let made = world.admin.post(&format!("{BASE}/ClaimRule/batch"), json!(rules)).await.is(200).json();
            let asked = json!({
                "claims": input, "clientAppId": home.app["id"], "idpInstanceId": instance["id"], "tenantId": home.tenant,
            });
            let evaluated = world.admin.post(&format!("{BASE}/ClaimRule/evaluate"), asked).await.is(200).json();
            let (scope, token) = &refresh[set % refresh.len()];
            let tokens = home.refresh_at(&world.anonymous, token).await.is(200).json();
            let info = userinfo(&world, &tokens).await;
            let issued = [claims(&tokens["id_token"]), info.clone(), claims(&tokens["access_token"])];
            assert_told(&preview(&world, &home, &person, json!({ "scope": scope })).await, &issued);
            for (place, told) in [
                ("id_token", claims(&tokens["id_token"])), ("userinfo", info), ("access_token", claims(&tokens["access_token"])),
            ] {
                let told = of_token(&told);
                seen += told.len();
                assert_eq!(told, expected(&evaluated, &input, scope, place), "set {set} {place}: {rules:#?}\n{evaluated:#}");
            }
            let ids: Vec<&str> = made.as_array().unwrap().iter().map(id).collect();
            world.admin.delete_with(&format!("{BASE}/ClaimRule/batch"), json!(ids)).await.expect(204);
        }
        assert!(seen > sets, "the rules leave claims to compare");
    }
}
