//! The preview of tokens (`PreviewTokens`) equals the tokens, and issues nothing.

use std::collections::BTreeMap;

use chancery_store::{Error, Mode, copy};
use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, SignInApp, change,
    claim_rules::{create_rule, issued_claims},
    encode, first, relate,
};
use crate::{id, pointers};

/// The documents of a preview, in the order of [`issued_claims`].
const DOCUMENTS: [&str; 3] = ["idToken", "userInfo", "accessToken"];

/// The platform user of the home's user.
pub async fn person(world: &World) -> String {
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    let filter = encode("emailAddress eq \"ann@example.com\"");
    id(&first(world, &format!("/ApplicationUser?filter={filter}")).await).to_owned()
}

fn path(home: &SignInApp) -> String {
    format!("{BASE}/ClientApp/{}/tokens/preview", id(&home.app))
}

/// The preview of a person, with further members in the request.
pub async fn preview(world: &World, home: &SignInApp, person: &str, more: Value) -> Value {
    previewed_by(&world.admin, home, person, more).await
}

async fn previewed_by(caller: &Client, home: &SignInApp, person: &str, more: Value) -> Value {
    let mut body = json!({ "platformUserId": person });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    caller.post(&path(home), body).await.is(200).json()
}

fn claims_of<'a>(previewed: &'a Value, document: &str) -> &'a Vec<Value> {
    previewed[document]["claims"].as_array().unwrap_or_else(|| panic!("{previewed:#}"))
}

/// A claim of a document.
fn claim<'a>(previewed: &'a Value, document: &str, name: &str) -> &'a Value {
    claims_of(previewed, document).iter().find(|claim| claim["name"] == name).unwrap_or(&Value::Null)
}

/// The reason why a claim is not in a document.
fn withheld<'a>(previewed: &'a Value, document: &str, name: &str) -> Option<&'a str> {
    let all = previewed[document]["withheld"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name)?["detail"].as_str()
}

/// Asserts that a preview equals these tokens. The request itself sends `nonce`.
pub fn assert_matches(previewed: &Value, issued: &[Value; 3]) {
    for (document, issued) in DOCUMENTS.into_iter().zip(issued) {
        let mut issued: BTreeMap<&str, &Value> =
            issued.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value)).collect();
        issued.remove("nonce");
        for claim in claims_of(previewed, document) {
            let name = claim["name"].as_str().unwrap();
            let actual =
                issued.remove(name).unwrap_or_else(|| panic!("{document} has no {name}: {issued:?}"));
            let is_of_sign_in = claim["from"] == "SignIn";
            assert!(is_of_sign_in || claim["value"] == *actual, "{document} {name}: {claim} {actual}");
            assert!(!is_of_sign_in || claim["value"].is_null(), "{claim}");
        }
        assert_eq!(issued, BTreeMap::new(), "{document}: {previewed:#}");
    }
}

/// A user with an entry, and groups at two depths.
async fn with_facts(world: &World, members: Value) -> SignInApp {
    let home = SignInApp::with(world, members).await;
    let entries = world.path(&format!("/user/{}/UserProfile", id(&home.user)));
    world.admin.post(&entries, json!({ "key": "department", "value": "Sales" })).await.expect(202);
    let [outer, inner] = [world.group("staff").await, world.group("sales").await];
    let children = world.path(&format!("/Group/{}/membergroups", id(&outer)));
    world.admin.post(&children, json!({ "relatedIds": [inner["id"]] })).await.expect(202);
    let groups = world.path(&format!("/User/{}/groups", id(&home.user)));
    world.admin.post(&groups, json!({ "relatedIds": [inner["id"]] })).await.expect(202);
    for key in ["badge", "orders"] {
        world.make("ClientAppScope", json!({ "clientAppId": home.app["id"], "key": key, "name": key })).await;
    }
    home
}

/// Rules of each level, one of them with disclosure on request; their ids by their names.
async fn rules(world: &World, home: &SignInApp) -> BTreeMap<&'static str, Value> {
    let instance = first(world, "/IdpInstance").await["id"].clone();
    let apps = json!([{ "id": home.app["id"] }]);
    let mut ids = BTreeMap::new();
    for (name, claim, members) in [
        ("subscription", ("level", "Subscription"), json!({})),
        ("tenant", ("level", "Tenant"), json!({ "ruleLevel": "Tenant", "applyToTenantId": home.tenant })),
        (
            "app",
            ("role", "reader"),
            json!({ "ruleLevel": "ClientApp", "clientApps": apps, "destination": "AccessToken" }),
        ),
        (
            "instance",
            ("badge", "4711"),
            json!({
                "ruleLevel": "ClientAppIdpInstance", "clientApps": apps, "applyToIdpInstanceId": instance, "disclosureMode": "OnRequest",
            }),
        ),
    ] {
        ids.insert(name, create_rule(world, claim, members).await["id"].clone());
    }
    // this one also adds the address of a person to the access token, and removes a nickname
    let body = json!({
        "name": "addresses", "ruleType": "Transform", "ruleLevel": "Subscription", "typeEvaluationRule": "^email$",
        "transformTarget": "ClaimValue", "valueTransformationRule": "@.*$", "valueTransformationReplacement": "@example.org", "priority": 1,
    });
    ids.insert("addresses", world.make("ClaimRule", body).await["id"].clone());
    let body = json!({
        "name": "others", "ruleType": "Remove", "ruleLevel": "Subscription", "typeEvaluationRule": "^(email|family_name)$", "priority": 1,
        "destination": "IdToken",
    });
    ids.insert("others", world.make("ClaimRule", body).await["id"].clone());
    ids
}

/// Tables that jobs write from the audit trail.
const OF_JOBS: [&str; 7] = [
    "audit_leaf",
    "audit_node",
    "audit_pending",
    "audit_tree",
    "event_pending",
    "event_place",
    "event_trail",
];

/// Row counts of the tables that operations write.
async fn row_counts(world: &World) -> BTreeMap<String, i64> {
    let counting = world.app.store.run("Test", Mode::Long, None, |tx| {
        let mut counts = BTreeMap::new();
        for table in copy::tables(tx)?.into_iter().filter(|table| !OF_JOBS.contains(&table.name.as_str())) {
            let text = format!("SELECT count(*) FROM {}", table.name);
            counts.insert(table.name, tx.one(&text, &[], |row| row.int(0))?.unwrap_or_default());
        }
        Ok::<_, Error>(counts)
    });
    counting.await.unwrap()
}

on_both_engines! {
    /// ID token, access token and userinfo, with rules at each level, groups, an entry, scopes and names.
    async fn a_preview_matches_the_tokens(world: World) {
        let home = with_facts(&world, json!({ "includeGroupsClaims": true })).await;
        let person = person(&world).await;
        let resource = json!({ "clientAppId": home.app["id"], "key": "https://orders.example/", "name": "Orders" });
        world.make("ClientAppResource", resource).await;
        let named = r#"{"userinfo":{"nickname":null,"badge":null},"id_token":{"given_name":null,"email":null}}"#;
        for has_rules in [false, true] {
            if has_rules {
                rules(&world, &home).await;
            }
            for (scope, claims, resource) in [
                ("openid profile email phone groups offline_access", "", ""),
                ("openid", "", "https://orders.example:443"),
                ("openid badge orders", "", ""),
                ("openid email", named, ""),
            ] {
                let request = [("scope", scope), ("claims", claims), ("resource", resource)];
                let issued = issued_claims(&world, &home, &request).await;
                let claims = Some(claims).filter(|claims| !claims.is_empty());
                let resources: Vec<&str> = [resource].into_iter().filter(|one| !one.is_empty()).collect();
                let parameters = json!({ "scope": scope, "claims": claims, "resources": resources });
                let previewed = preview(&world, &home, &person, parameters).await;
                assert_eq!((&previewed["refusal"], &previewed["scope"]), (&Value::Null, &json!(scope)), "{previewed:#}");
                assert_matches(&previewed, &issued);
            }
        }
    }

    /// If the client app gets few claims: by its settings, and without `openid`.
    async fn a_preview_reflects_settings_that_exclude_claims(world: World) {
        let home = with_facts(&world, json!({ "idTokenClaims": "Minimal" })).await;
        let person = person(&world).await;
        let issued = issued_claims(&world, &home, &[("scope", "openid profile")]).await;
        let previewed = preview(&world, &home, &person, json!({ "scope": "openid profile" })).await;
        assert_matches(&previewed, &issued);
        assert!(withheld(&previewed, "idToken", "given_name").unwrap().contains("idTokenClaims Minimal"), "{previewed:#}");
        assert!(withheld(&previewed, "userInfo", "groups").unwrap().contains("includeGroupsClaims"), "{previewed:#}");
        assert_eq!(withheld(&previewed, "userInfo", "email"), Some("The scope email is not granted."));
        let plain = preview(&world, &home, &person, json!({ "scope": "orders" })).await;
        assert_eq!(plain["idToken"]["refusal"], json!({ "error": null, "detail": "Without the scope openid there is no ID token." }));
        assert_eq!(plain["userInfo"]["refusal"]["error"], "insufficient_scope");
        assert_eq!(claim(&plain, "accessToken", "scope")["value"], "orders");
    }

    /// For each claim: the scope, the rules or the requested name that adds it; for others, the reason for their absence.
    async fn a_preview_gives_the_reason_for_each_claim(world: World) {
        let home = with_facts(&world, json!({ "includeGroupsClaims": true })).await;
        let (person, rules) = (person(&world).await, rules(&world, &home).await);
        let previewed = preview(&world, &home, &person, json!({ "scope": "openid profile email" })).await;
        let from = |document: &str, name: &str| {
            let claim = claim(&previewed, document, name);
            json!([claim["from"], claim["scope"], claim["rules"]])
        };
        assert_eq!(from("idToken", "sub"), json!(["Protocol", null, []]));
        assert_eq!(from("idToken", "auth_time"), json!(["SignIn", null, []]));
        assert_eq!(from("idToken", "given_name"), json!(["Scope", "profile", [rules["others"]]]));
        assert_eq!(from("idToken", "department"), json!(["Scope", "profile", [rules["others"]]]));
        assert_eq!(from("idToken", "email"), json!(["Scope", "email", [rules["addresses"]]]));
        assert_eq!(from("accessToken", "email"), json!(["Scope", "email", [rules["addresses"]]]));
        assert_eq!(from("userInfo", "groups"), json!(["IncludeGroupsClaims", null, [rules["others"]]]));
        assert_eq!(from("accessToken", "level"), Value::Array(vec![Value::Null; 3]), "its destination became the ID token");
        assert_eq!(from("idToken", "level"), json!(["ClaimRule", null, [rules["subscription"], rules["others"], rules["tenant"]]]));
        assert!(withheld(&previewed, "idToken", "family_name").unwrap().contains("forward no such claim"), "{previewed:#}");
        assert!(withheld(&previewed, "idToken", "badge").unwrap().contains("on request"), "{previewed:#}");
        assert!(withheld(&previewed, "accessToken", "level").unwrap().contains("elsewhere"), "{previewed:#}");
        for (parameters, from) in [
            (json!({ "scope": "openid badge" }), json!(["Scope", "badge"])),
            (json!({ "scope": "openid", "claims": r#"{"id_token":{"badge":null}}"# }), json!(["ClaimsParameter", null])),
        ] {
            let previewed = preview(&world, &home, &person, parameters).await;
            let badge = claim(&previewed, "idToken", "badge");
            assert_eq!((json!([badge["from"], badge["scope"]]), &badge["value"]), (from, &json!("4711")), "{previewed:#}");
        }
        // all scopes of the client app, if no scope is requested
        let all = preview(&world, &home, &person, json!({})).await;
        assert_eq!(all["scope"], "openid profile email phone groups offline_access badge orders");
        assert_eq!((&all["tenantId"], &all["idpInstanceId"]), (&json!(home.tenant), &first(&world, "/IdpInstance").await["id"]));
    }

    async fn a_preview_writes_nothing(world: World) {
        let home = with_facts(&world, json!({ "includeGroupsClaims": true, "accessGrantConsent": "Explicit" })).await;
        let person = person(&world).await;
        rules(&world, &home).await;
        let before = row_counts(&world).await;
        let trail = world.all("CustomAuditTrail?count=1&sortOrder=descending").await;
        preview(&world, &home, &person, json!({})).await;
        let refused = preview(&world, &home, &person, json!({ "scope": "openid", "resources": ["https://else.example"] })).await;
        assert_eq!(refused["refusal"]["error"], "invalid_target");
        assert_eq!(row_counts(&world).await, before);
        assert_eq!(world.all("CustomAuditTrail?count=1&sortOrder=descending").await, trail);
        for resource in ["SignInSession", "SignInGrant", "SignInConsent", "SignInRecord", "ClientAppRefusal"] {
            assert_eq!(world.all(resource).await, json!([]), "{resource}");
        }
    }

    /// A caller without read access to the users of a store cannot read them by the preview of a client app.
    async fn a_preview_requires_read_access_to_app_and_person(world: World) {
        let home = SignInApp::new(&world).await;
        let person = person(&world).await;
        let tenant = home.tenant.parse().unwrap();
        let store = id(&first(&world, "/IdpInstance").await).parse().unwrap();
        let subscription = world.all("Tenant").await[0]["subscriptionId"].clone();
        let kind = world.all("IdpType?filter=name%20eq%20%22UserStore%22").await[0]["id"].clone();
        let branch = world.make("IdpInstance", json!({ "name": "branch", "idpTypeId": kind, "subscriptionId": subscription })).await;
        let other = id(&branch).parse().unwrap();
        let body = json!({ "platformUserId": person });
        let (of_tenant, of_store) = (("TenantAdmin", Some(tenant), None), ("UserStoreAdmin", None, Some(store)));
        let of_other = ("UserStoreAdmin", None, Some(other));
        relate(&world, &format!("/IdpInstance/{}/tenants", id(&first(&world, "/IdpInstance").await)), &[&home.tenant]).await;
        for (name, roles, status) in [
            ("tenant", vec![of_tenant], 403),
            ("store", vec![of_store], 403),
            ("reader", vec![of_tenant, ("ApplicationDataReader", Some(tenant), None)], 403),
            ("beside", vec![of_tenant, of_other], 403),
            ("both", vec![of_tenant, of_store], 200),
            ("subscription", vec![("SubscriptionAdmin", None, None)], 200),
        ] {
            let caller = world.client(name, &roles).await;
            let answer = caller.post(&path(&home), body.clone()).await;
            assert_eq!(answer.status, status, "{name}: {:?}", String::from_utf8_lossy(&answer.bytes));
            if status == 403 {
                assert!(!String::from_utf8_lossy(&answer.bytes).contains("ann@example.com"), "{name}");
            } else {
                let previewed = previewed_by(&caller, &home, &person, json!({})).await;
                assert_eq!(claim(&previewed, "userInfo", "email")["value"], "ann@example.com", "{name}");
            }
        }
        let far = world.other_subscription("Far").await;
        let other_admin = world.client_in(&far, "stranger", &[("SubscriptionAdmin", None, None)]).await;
        other_admin.post(&path(&home), body).await.problem(404, "not-found");
        // a person of another provider is not found, and neither is a tenant
        let own = world.make("ClientApp", json!({ "name": "theirs", "subscriptionId": far })).await;
        let theirs = format!("{BASE}/ClientApp/{}/tokens/preview", id(&own));
        let refused = other_admin.post(&theirs, json!({ "platformUserId": person })).await.problem(400, "invalid-request");
        assert_eq!(pointers(&refused), ["/platformUserId"]);
        for member in ["tenantId", "idpInstanceId"] {
            let body = json!({ "platformUserId": person, member: person });
            assert_eq!(pointers(&world.admin.post(&path(&home), body).await.problem(400, "invalid-request")), [format!("/{member}")]);
        }
    }

    /// A client app or person without access gets a sentence instead of tokens.
    async fn a_preview_explains_why_tokens_are_refused(world: World) {
        let home = SignInApp::new(&world).await;
        let person = person(&world).await;
        let app = format!("/ClientApp/{}", id(&home.app));
        let refusal = async |more: Value| preview(&world, &home, &person, more).await["refusal"].clone();
        let request_body = json!({ "scope": "openid" });
        assert_eq!(refusal(request_body.clone()).await, Value::Null);
        for (members, back, error, words) in [
            (json!({ "enabled": false }), json!({ "enabled": true }), "unauthorized_client", "not enabled"),
            (json!({ "allowUserLogin": false }), json!({ "allowUserLogin": true }), "unauthorized_client", "Nobody signs in"),
            (json!({ "isRestricted": true }), json!({ "isRestricted": false }), "access_denied", "restricted"),
            (json!({ "subjectType": "Pairwise" }), json!({ "subjectType": "Public" }), "unauthorized_client", "Pairwise"),
            (json!({ "accessGrantConsent": "External" }), json!({ "accessGrantConsent": "Implicit" }), "consent_required", "administrator"),
        ] {
            change(&world, &app, members.clone()).await;
            let response = refusal(request_body.clone()).await;
            assert_eq!(response["error"], error, "{members}: {response}");
            assert!(response["detail"].as_str().unwrap().contains(words), "{members}: {response}");
            change(&world, &app, back).await;
        }
        for (more, error) in [
            (json!({ "scope": "openid  email" }), "invalid_scope"),
            (json!({ "scope": "nothing" }), "invalid_scope"),
            (json!({ "scope": "openid", "claims": "[]" }), "invalid_request"),
            (json!({ "scope": "openid", "resources": ["https://else.example"] }), "invalid_target"),
        ] {
            assert_eq!(refusal(more.clone()).await["error"], error, "{more}");
        }
        // of the UserInfo endpoint only
        change(&world, &app, json!({ "userinfoEncryptedResponseAlg": "RSA-OAEP-256" })).await;
        let response = preview(&world, &home, &person, request_body.clone()).await;
        assert!(response["userInfo"]["refusal"]["detail"].as_str().unwrap().contains("UserInfo"), "{response:#}");
        assert_eq!((&response["userInfo"]["claims"], &response["refusal"]), (&json!([]), &Value::Null));
        assert_eq!(claim(&response, "idToken", "sub")["value"], json!(person));
        change(&world, &app, json!({ "userinfoEncryptedResponseAlg": null })).await;
        let one = world.path(&format!("/User/{}", id(&home.user)));
        let user = world.admin.get(&one).await.is(200).json();
        let locked = json!({ "isUserActive": false, "concurrencyToken": user["concurrencyToken"] });
        world.admin.patch(&one, locked).await.expect(202);
        assert_eq!(refusal(request_body.clone()).await["error"], "access_denied");
        let user = world.admin.get(&one).await.is(200).json();
        world.admin.patch(&one, json!({ "isUserActive": true, "concurrencyToken": user["concurrencyToken"] })).await.expect(202);
        let other_tenant = world.make("Tenant", json!({ "name": "Elsewhere", "subscriptionId": home.app["subscriptionId"] })).await;
        let response = preview(&world, &home, &person, json!({ "tenantId": other_tenant["id"] })).await;
        assert_eq!((&response["refusal"]["error"], &response["tenantId"]), (&json!("access_denied"), &Value::Null));
        assert!(response["refusal"]["detail"].as_str().unwrap().contains("no active identity"), "{response}");
        assert_eq!(response["idToken"], Value::Null);
        // rules that add more than a token can hold are refused as at the token endpoint
        for number in 0..3 {
            let value = format!("{number}{}", "x".repeat(1999));
            create_rule(&world, ("long", &value), json!({})).await;
        }
        let response = refusal(request_body).await;
        assert_eq!(response["error"], "server_error");
        assert!(response["detail"].as_str().unwrap().contains("bytes of claims"), "{response}");
    }
}
