//! Claim rules: their data, and their effect on claims.

use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{BASE, one, related};
use crate::{each, id, pointers};

#[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
fn rule(more: Value) -> Value {
    let mut body = json!({ "name": "rule", "ruleType": "Filter", "ruleLevel": "Subscription" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

on_both_engines! {
    /// - Effect of `ClaimRule.name`: Lists show the rule under this name.
    async fn crud_and_defaults(world: World) {
        let created = world.make("ClaimRule", rule(json!({}))).await;
        for (member, value) in [
            ("filterTarget", json!("ClaimType")), ("transformTarget", json!("ClaimType")), ("destination", json!("IdTokenAndAccessToken")),
            ("inputSource", json!("All")), ("disclosureMode", json!("Always")), ("priority", json!(0)), ("isActive", json!(true)),
            ("applyToSubscriptionId", created["subscriptionId"].clone()), ("clientApps", json!([])), ("typeEvaluationRule", json!(null)),
        ] {
            assert_eq!(created[member], value, "{member}");
        }
        let path = one("ClaimRule", &created);
        let patch = json!({ "destination": "idtoken", "typeEvaluationRule": "^role$", "concurrencyToken": created["concurrencyToken"] });
        let changed = world.admin.patch(&path, patch).await.is(202).json();
        assert_eq!((&changed["destination"], &changed["typeEvaluationRule"]), (&json!("IdToken"), &json!("^role$")));
        let put = json!({ "name": "x", "ruleType": "Remove", "ruleLevel": "Subscription", "concurrencyToken": changed["concurrencyToken"] });
        let changed = world.admin.put(&path, put).await.is(202).json();
        assert_eq!((&changed["typeEvaluationRule"], &changed["destination"], &changed["subscriptionId"]), (&json!(null), &json!("IdToken"), &created["subscriptionId"]));
        assert_eq!((&changed["name"], each(&world.all("ClaimRule").await, "name")), (&json!("x"), vec!["x"]));
        world.admin.delete(&path).await.expect(204);
    }

    async fn a_level_requires_its_target(world: World) {
        let (tenant, store) = (world.all("Tenant").await[0]["id"].clone(), world.all("IdpInstance").await[0]["id"].clone());
        for (more, at) in [
            (json!({ "ruleLevel": "Tenant" }), "/applyToTenantId"),
            (json!({ "applyToTenantId": tenant }), "/applyToTenantId"),
            (json!({ "ruleLevel": "ClientAppIdpInstance" }), "/applyToIdpInstanceId"),
            (json!({ "ruleLevel": "ClientApp", "applyToIdpInstanceId": store }), "/applyToIdpInstanceId"),
            (json!({ "ruleLevel": "Tenant", "applyToTenantId": store }), "/applyToTenantId"),
            (json!({ "typeEvaluationRule": "(" }), "/typeEvaluationRule"),
            (json!({ "ruleType": "Guess" }), "/ruleType"),
        ] {
            let problem = world.admin.post(&format!("{BASE}/ClaimRule"), rule(more)).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [at]);
        }
        world.make("ClaimRule", rule(json!({ "ruleLevel": "ClientAppIdpInstance", "applyToIdpInstanceId": store }))).await;
    }

    async fn client_apps_are_linked_on_create(world: World) {
        let (one_app, other) = (world.make("ClientApp", json!({ "name": "a" })).await, world.make("ClientApp", json!({ "name": "b" })).await);
        let apps = |apps: &[&Value]| json!({ "ruleLevel": "ClientApp", "clientApps": apps.iter().map(|app| json!({ "id": app["id"] })).collect::<Vec<_>>() });
        let created = world.make("ClaimRule", rule(apps(&[&one_app, &other, &one_app]))).await;
        assert_eq!(each(&created["clientApps"], "name"), ["a", "b"]);
        let foreign = json!({ "ruleLevel": "ClientApp", "clientApps": [{ "id": one_app["id"] }, { "id": one_app["subscriptionId"] }] });
        let problem = world.admin.post(&format!("{BASE}/ClaimRule"), rule(foreign)).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/clientApps/1/id"]);
        assert_eq!(world.all("ClaimRule").await.as_array().unwrap().len(), 1, "nothing was made");
        let batch = json!([rule(apps(&[&other])), rule(json!({ "ruleLevel": "ClientApp" }))]);
        let created = world.admin.post(&format!("{BASE}/ClaimRule/batch"), batch).await.is(200).json();
        assert_eq!((each(&created[0]["clientApps"], "name"), &created[1]["clientApps"]), (vec!["b"], &json!([])));
        let path = format!("{}/clientapps", one("ClaimRule", &created[1]));
        let set = world.admin.put(&path, related(&[&one_app])).await.is(202).json();
        assert_eq!(each(&set["clientApps"], "name"), ["a"]);
    }

    async fn a_level_without_client_apps_refuses_them(world: World) {
        let app = world.make("ClientApp", json!({ "name": "a" })).await;
        let linked = json!({ "clientApps": [{ "id": app["id"] }] });
        world.admin.post(&format!("{BASE}/ClaimRule"), rule(linked)).await.problem(400, "invalid-request");
        let whole = world.make("ClaimRule", rule(json!({}))).await;
        assert_eq!(whole["applyToSubscriptionId"], whole["subscriptionId"]);
        let path = format!("{}/clientapps", one("ClaimRule", &whole));
        world.admin.post(&path, related(&[&app])).await.problem(400, "invalid-request");
        let other_side = format!("{}/claimrules", one("ClientApp", &app));
        world.admin.post(&other_side, related(&[&whole])).await.problem(400, "invalid-request");
        let narrow = world.make("ClaimRule", rule(json!({ "ruleLevel": "ClientApp" }))).await;
        world.admin.post(&other_side, related(&[&narrow])).await.expect(202);
        let patch = json!({ "ruleLevel": "Subscription", "concurrencyToken": narrow["concurrencyToken"] });
        let problem = world.admin.patch(&one("ClaimRule", &narrow), patch).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/ruleLevel"]);
    }

    /// A dry run: which rules are in force, and their effect on claims.
    async fn a_dry_run_evaluates_the_rules_in_force(world: World) {
        let app = world.make("ClientApp", json!({ "name": "a" })).await;
        let tenant = world.all("Tenant").await[0].clone();
        let drop = world.make("ClaimRule", rule(json!({ "ruleType": "Remove", "typeEvaluationRule": "^secret$" }))).await;
        let rename = rule(json!({
            "ruleType": "Transform", "ruleLevel": "ClientApp", "priority": 1, "typeEvaluationRule": ".", "destination": "AccessToken",
            "typeTransformationRule": "^role$", "typeTransformationReplacement": "roles", "clientApps": [{ "id": app["id"] }],
        }));
        let rename = world.make("ClaimRule", rename).await;
        world.make("ClaimRule", rule(json!({ "ruleType": "Remove", "isActive": false }))).await;
        let path = format!("{BASE}/ClaimRule/evaluate");
        let claims = json!([{ "type": "role", "value": "editor" }, { "type": "secret", "value": "x", "source": "IdentityProvider" }, { "type": "sub", "value": "1" }]);
        let evaluated = world.admin.post(&path, json!({ "claims": claims, "clientAppId": app["id"], "tenantId": tenant["id"] })).await.is(200).json();
        let evaluated = evaluated["claims"].as_array().unwrap();
        assert_eq!(evaluated.len(), 2, "{evaluated:?}");
        let roles = evaluated.iter().find(|claim| claim["type"] == "roles").unwrap();
        assert_eq!((&roles["value"], &roles["destination"], &roles["rules"]), (&json!("editor"), &json!("AccessToken"), &json!([drop["id"], rename["id"]])));
        let sub = evaluated.iter().find(|claim| claim["type"] == "sub").unwrap();
        assert_eq!(sub["rules"], json!([]), "a protected claim passes untouched");
        // without the client app its rule is not in force; without a tenant no rule is
        let evaluated = world.admin.post(&path, json!({ "claims": claims, "tenantId": tenant["id"] })).await.is(200).json();
        assert_eq!(each(&evaluated["claims"], "type"), ["role", "sub"]);
        let evaluated = world.admin.post(&path, json!({ "claims": claims })).await.is(200).json();
        assert_eq!(evaluated["claims"].as_array().unwrap().len(), 3);
        for (body, at) in [
            (json!({}), "/claims"), (json!({ "claims": [{ "type": "x" }] }), "/claims/0/value"), (json!({ "claims": [], "rules": 1 }), "/rules"),
            (json!({ "claims": [], "clientAppId": tenant["id"] }), "/clientAppId"), (json!({ "claims": [{ "type": "x", "value": "y", "source": "me" }] }), "/claims/0/source"),
        ] {
            assert_eq!(pointers(&world.admin.post(&path, body).await.problem(400, "invalid-request")), [at]);
        }
    }

    /// A rule is tried before it is saved: added to the others, or as a replacement of the saved one.
    async fn a_draft_is_evaluated_with_the_saved_rules(world: World) {
        let tenant = world.all("Tenant").await[0]["id"].clone();
        let drop = world.make("ClaimRule", rule(json!({ "ruleType": "Remove", "typeEvaluationRule": "^secret$" }))).await;
        let path = format!("{BASE}/ClaimRule/evaluate");
        let claims = json!([{ "type": "role", "value": "editor" }, { "type": "secret", "value": "x" }]);
        let evaluate = async |draft: Value| {
            let body = json!({ "claims": claims, "tenantId": tenant, "draft": draft, "trace": true });
            world.admin.post(&path, body).await.is(200).json()
        };
        let effects = |evaluated: &Value| -> Vec<String> {
            let steps = evaluated["steps"].as_array().unwrap();
            steps.iter().map(|step| format!("{} {}", step["claim"]["type"].as_str().unwrap(), step["effect"].as_str().unwrap())).collect()
        };
        let without = evaluate(json!(null)).await;
        assert_eq!((effects(&without), &without["inForce"]), (vec!["role Passed".to_owned(), "secret Dropped".to_owned()], &json!([drop["id"]])));
        let body = json!({ "claims": claims, "tenantId": tenant });
        let untraced = world.admin.post(&path, body).await.is(200).json();
        assert_eq!((&untraced["claims"], untraced.get("steps")), (&without["claims"], None));

        let nil = json!("00000000-0000-0000-0000-000000000000");
        let shout = json!({ "ruleType": "Transform", "ruleLevel": "ClientApp", "priority": 5, "typeEvaluationRule": "^role$",
            "transformTarget": "ClaimValue", "valueTransformationReplacement": "EDITOR" });
        let with_draft = evaluate(rule(shout)).await;
        assert_eq!(with_draft["inForce"], json!([drop["id"], nil]));
        assert_eq!(effects(&with_draft), ["role Passed", "secret Dropped", "role Changed"]);
        assert_eq!((&with_draft["steps"][2]["became"]["value"], &with_draft["steps"][2]["rule"]), (&json!("EDITOR"), &nil));
        assert_eq!(each(&with_draft["claims"], "value"), ["EDITOR"]);

        let mut replacement = drop.clone();
        replacement["typeEvaluationRule"] = json!("^role$");
        assert_eq!(each(&evaluate(replacement.clone()).await["claims"], "type"), ["secret"]);
        replacement["isActive"] = json!(false);
        let off = evaluate(replacement).await;
        assert_eq!((each(&off["claims"], "type"), &off["inForce"]), (vec!["role", "secret"], &json!([])));
        assert_eq!(world.all("ClaimRule").await, json!([drop]), "nothing was saved");
    }

    /// Errors of a draft have a pointer, and the position of the character.
    async fn an_invalid_draft_is_refused(world: World) {
        let path = format!("{BASE}/ClaimRule/evaluate");
        for (more, at) in [
            (json!({ "valueEvaluationRule": "a(b" }), "/draft/valueEvaluationRule"), (json!({ "ruleType": "Guess" }), "/draft/ruleType"),
            (json!({ "rule": 1 }), "/draft/rule"), (json!({ "clientApps": {} }), "/draft/clientApps"),
            (json!({ "clientApps": [{}] }), "/draft/clientApps/0/id"),
        ] {
            let problem = world.admin.post(&path, json!({ "claims": [], "draft": rule(more) })).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [at]);
            assert!(at != "/draft/valueEvaluationRule" || problem["errors"][0]["detail"].as_str().unwrap().contains("(at character 2)"), "{problem}");
        }
        for (body, at) in [(json!({ "claims": [], "draft": 1 }), "/draft"), (json!({ "claims": [], "trace": 1 }), "/trace")] {
            assert_eq!(pointers(&world.admin.post(&path, body).await.problem(400, "invalid-request")), [at]);
        }
    }

    async fn tenant_admin_manages_only_the_tenant_s_rules(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let path = format!("{BASE}/ClaimRule");
        let created = low.post(&path, rule(json!({ "ruleLevel": "Tenant", "applyToTenantId": tenant["id"] }))).await.is(201).json();
        assert_eq!(created["subscriptionId"], tenant["subscriptionId"]);
        low.post(&path, rule(json!({}))).await.problem(400, "invalid-request");
        low.post(&path, rule(json!({ "subscriptionId": tenant["subscriptionId"] }))).await.problem(400, "invalid-request");
        let all = world.make("ClaimRule", rule(json!({}))).await;
        low.get(&one("ClaimRule", &all)).await.problem(404, "not-found");
        // a rule of the tenant does not become one of the subscription
        let up = json!({ "ruleLevel": "Subscription", "name": "x", "ruleType": "Filter", "concurrencyToken": created["concurrencyToken"] });
        low.put(&one("ClaimRule", &created), up).await.problem(409, "conflict");
        assert_eq!(low.get(&path).await.is(200).json().as_array().unwrap().len(), 1);
        low.delete(&one("ClaimRule", &created)).await.expect(204);
    }

    /// A6: the patterns in force share a memory budget, and a pattern's cost on a long text is bounded.
    async fn rules_in_force_share_one_memory_budget(world: World) {
        let heavy = rule(json!({ "filterTarget": "ClaimValue", "valueEvaluationRule": r"^\w{100}$" }));
        let first = world.make("ClaimRule", heavy.clone()).await;
        let tenant = world.all("Tenant").await[0]["id"].clone();
        let evaluate = |value: String| {
            let body = json!({ "tenantId": tenant, "claims": [{ "type": "name", "value": value }] });
            let caller = world.admin.clone();
            async move { caller.post(&format!("{BASE}/ClaimRule/evaluate"), body).await }
        };
        let passed = evaluate("a".repeat(100)).await.is(200).json();
        assert_eq!(passed["claims"][0]["rules"], json!([first["id"]]));
        // compiled before, and cached
        assert_eq!(evaluate("b".repeat(101)).await.is(200).json()["claims"], json!([]));
        let problem = evaluate("a".repeat(60_000)).await.problem(409, "conflict");
        assert!(problem["detail"].as_str().unwrap().contains("too long for the patterns"), "{problem}");
        let others: Vec<Value> = (0..9).map(|_| heavy.clone()).collect();
        world.admin.post(&format!("{BASE}/ClaimRule/batch"), json!(others)).await.expect(200);
        let problem = evaluate("a".repeat(100)).await.problem(409, "conflict");
        assert!(problem["detail"].as_str().unwrap().contains("too much memory together"), "{problem}");
    }

    /// A6: patterns are compiled outside of the transaction, up to a limit for each call.
    async fn patterns_of_a_call_are_bounded(world: World) {
        let batch = |pattern: &str, rows: usize| {
            let row = rule(json!({ "valueEvaluationRule": pattern }));
            let (caller, rows) = (world.admin.clone(), vec![row; rows]);
            async move { caller.post(&format!("{BASE}/ClaimRule/batch?dryRun=true"), json!(rows)).await }
        };
        batch(r"^\w{100}$", 20).await.expect(200);
        batch(r"^\w{100}$", 60).await.problem(413, "payload-too-large");
        let problem = batch(r"\w{900}", 200).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem).len(), 100);
        let item = json!({ "tenantId": world.all("Tenant").await[0]["id"], "key": "k", "label": "l",
            "validationFormat": "Regex", "validationPattern": r"\w{900}" });
        let problem = world.admin.post(&format!("{BASE}/UserQuestionnaireItem"), item).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/validationPattern"]);
    }
}
