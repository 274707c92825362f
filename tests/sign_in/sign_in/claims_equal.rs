//! Tokens contain the result of the dry run (`/ClaimRule/evaluate`) for the same claims, and match the preview of the person: random
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
    BASE, SignInApp,
    claim_rules::{issued_claims, tokens, userinfo},
    claims, first,
    preview::{assert_matches, person, preview},
};
use crate::id;

/// Number of rule sets on each engine, unless `CHANCERY_SEQUENCES` sets it.
const SETS: usize = 24;
/// Types that rules match and add: built-in ones, an entry of the user, unknown and protected ones.
const TYPES: [&str; 9] =
    ["email", "email_verified", "nickname", "name", "groups", "department", "role", "badge", "sub"];
const VALUES: [&str; 5] = ["true", "Sales", "ann@example.com", "a", "b"];
/// The built-in claims of the test's user, with their scopes.
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

/// Seed of the rule sets; `PROPTEST_RNG_SEED` sets it.
fn seed() -> [u8; 32] {
    let set = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok());
    let number: u64 = set.unwrap_or(20_261_128);
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    seed
}

/// A pattern that matches some of the words.
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

/// A rule without its scope.
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

/// Applies a rule to the app.
fn applied_to(mut rule: Value, home: &SignInApp, instance: &Value) -> Value {
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

/// The claims of a token as input of the dry run: one for each value.
fn as_claims(members: &Value) -> Vec<Value> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut all = Vec::new();
    for (name, value) in members.as_object().unwrap().iter().filter(|(name, _)| *name != "sub") {
        let values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        all.extend(values.iter().map(|value| json!({ "type": name, "value": text(value) })));
    }
    all
}

/// Documented content of one token, by the result of the dry run.
fn expected(
    evaluated: &Value,
    input: &[Value],
    scope: &str,
    document: &str,
) -> BTreeMap<String, Vec<String>> {
    let mut result = BTreeMap::<String, Vec<String>>::new();
    for claim in evaluated["claims"].as_array().unwrap() {
        let (name, value) = (claim["type"].as_str().unwrap(), claim["value"].as_str().unwrap());
        let destination = if document == "access_token" { "AccessToken" } else { "IdToken" };
        let goes = claim["destination"] == destination || claim["destination"] == "IdTokenAndAccessToken";
        let is_sent = document != "access_token" || claim["rules"] != json!([]);
        let has = |word: &str| scope.split(' ').any(|one| one == word);
        let plain = json!({ "type": name, "value": value });
        let is_disclosed = match SCOPES.iter().find(|(known, _)| *known == name) {
            Some((_, "groups")) => true,
            Some((_, word)) => has(word),
            None if name == "department" && input.contains(&plain) => has("profile"),
            None => claim["onRequest"] == false || has(name),
        };
        if goes && is_sent && is_disclosed {
            result.entry(name.to_owned()).or_default().push(value.to_owned());
        }
    }
    for values in result.values_mut() {
        values.sort();
        values.dedup();
    }
    result
}

/// The same form of the claims of a token, without protocol claims.
fn of_token(token_claims: &Value) -> BTreeMap<String, Vec<String>> {
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
    for claim in
        as_claims(token_claims).iter().filter(|claim| !protocol.contains(&claim["type"].as_str().unwrap()))
    {
        let (name, value) = (claim["type"].as_str().unwrap(), claim["value"].as_str().unwrap());
        all.entry(name.to_owned()).or_default().push(value.to_owned());
    }
    for values in all.values_mut() {
        values.sort();
    }
    all
}

/// An app with access to all claims, and a user with an entry and groups.
async fn home_with_facts(world: &World) -> SignInApp {
    let home = SignInApp::with(world, json!({ "includeGroupsClaims": true })).await;
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
    async fn tokens_match_the_dry_run(world: World) {
        let home = home_with_facts(&world).await;
        let instance = first(&world, "/IdpInstance").await;
        let person = person(&world).await;
        let [_, mut known, _] = issued_claims(&world, &home, &[("scope", "openid profile email phone groups")]).await;
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
            let rules: Vec<Value> = rules.into_iter().map(|rule| applied_to(rule, &home, &instance)).collect();
            let created = world.admin.post(&format!("{BASE}/ClaimRule/batch"), json!(rules)).await.is(200).json();
            let request = json!({
                "claims": input, "clientAppId": home.app["id"], "idpInstanceId": instance["id"], "tenantId": home.tenant,
            });
            let evaluated = world.admin.post(&format!("{BASE}/ClaimRule/evaluate"), request).await.is(200).json();
            let (scope, token) = &refresh[set % refresh.len()];
            let tokens = home.refresh_at(&world.anonymous, token).await.is(200).json();
            let info = userinfo(&world, &tokens).await;
            let issued = [claims(&tokens["id_token"]), info.clone(), claims(&tokens["access_token"])];
            assert_matches(&preview(&world, &home, &person, json!({ "scope": scope })).await, &issued);
            for (document, actual) in [
                ("id_token", claims(&tokens["id_token"])), ("userinfo", info), ("access_token", claims(&tokens["access_token"])),
            ] {
                let actual = of_token(&actual);
                seen += actual.len();
                assert_eq!(actual, expected(&evaluated, &input, scope, document), "set {set} {document}: {rules:#?}\n{evaluated:#}");
            }
            let ids: Vec<&str> = created.as_array().unwrap().iter().map(id).collect();
            world.admin.delete_with(&format!("{BASE}/ClaimRule/batch"), json!(ids)).await.expect(204);
        }
        assert!(seen > sets, "the rules leave claims to compare");
    }
}
