//! Claim rules are evaluated on claims before they are saved.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{Browser, Page, administrator, hidden, post};
use crate::id;

const TRY: &str = "/console/ClaimRule/try";

async fn rule(world: &World, more: Value) -> Value {
    let mut body = json!({ "name": "no secrets", "ruleType": "Remove", "ruleLevel": "Subscription", "typeEvaluationRule": "^secret$" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.make("ClaimRule", body).await
}

/// Evaluates a sample for the first tenant, with these further fields.
async fn evaluate(
    world: &World,
    browser: &mut Browser,
    path: &str,
    claims: &str,
    more: &[(&str, &str)],
) -> Page {
    let tenant = world.all("Tenant").await[0].clone();
    let page = browser.open(path).await;
    let fields = [("tenantId", id(&tenant)), ("claims", claims)];
    let fields: Vec<_> = fields.into_iter().chain(more.iter().copied()).collect();
    post(world, browser, &page, path, &fields).await
}

/// The rows of the result, without markup.
fn rows(page: &Page) -> Vec<String> {
    let Some(table) = page.html.split("<tbody>").nth(1) else { return Vec::new() };
    let rows = table.split("</tbody>").next().unwrap().split("</tr>").filter(|row| row.contains("<th"));
    let text = |row: &str| {
        row.split('<')
            .filter_map(|part| part.split_once('>'))
            .map(|(_, text)| text.trim())
            .collect::<Vec<_>>()
            .join(" ")
    };
    rows.map(|row| text(row).split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

on_both_engines! {
    /// For each claim: the rules that applied to it, and its destination.
    async fn sample_claims_are_followed_through_the_rules(world: World) {
        let mut browser = administrator(&world).await;
        rule(&world, json!({})).await;
        let shout = json!({ "name": "in capitals", "ruleType": "Transform", "priority": 2, "typeEvaluationRule": "^role$",
            "transformTarget": "ClaimValue", "valueTransformationReplacement": "EDITOR" });
        rule(&world, shout).await;
        let add = json!({ "name": "company", "ruleType": "Add", "priority": 3, "typeEvaluationRule": null, "destination": "IdToken",
            "typeTransformationReplacement": "org", "valueTransformationReplacement": "Harbour" });
        rule(&world, add).await;
        let list = browser.open("/console/ClaimRule").await;
        assert!(list.html.contains("href=\"/console/ClaimRule/try\""), "{}", list.html);
        let response = evaluate(&world, &mut browser, TRY, r#"{"role": ["editor"], "secret": "x", "sub": "7"}"#, &[]).await;
        assert_eq!(response.status, 200, "{}", response.html);
        assert_eq!(rows(&response), [
            "role editor no secrets: passed in capitals: changed ID token and access token role = EDITOR",
            "secret x no secrets: dropped No token",
            "sub 7 – not set ID token and access token",
            "org Harbour company: added ID token",
        ]);
        let without_rules = post(&world, &mut browser, &response, TRY, &[("claims", r#"[{"type": "secret", "value": "x"}]"#)]).await;
        assert!(rows(&without_rules)[0].contains("secret x – not set ID token") && without_rules.html.contains("No rule applies"), "{}", without_rules.html);
    }

    /// The submitted values of a rule's form take part, and can be saved from there.
    async fn a_draft_rule_is_evaluated_and_saved(world: World) {
        let mut browser = administrator(&world).await;
        let created = rule(&world, json!({})).await;
        let path = format!("/console/ClaimRule/{}", id(&created));
        let page = browser.open(&path).await;
        let attempt = format!("{TRY}?of={}", id(&created));
        assert!(page.html.contains(&format!("formaction=\"{attempt}\"")), "{}", page.html);
        let claims = r#"{"role": "editor", "secret": "x"}"#;
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let typed = [("base", base.as_str()), ("concurrencyToken", &token), ("name", "no roles"), ("typeEvaluationRule", "^role$")];
        let response = evaluate(&world, &mut browser, &attempt, claims, &typed).await;
        assert!(response.html.contains("no roles (draft): dropped"), "{}", response.html);
        assert!(rows(&response)[0].contains("No token") && rows(&response)[1].contains("passed"), "{:?}", rows(&response));
        assert_eq!(world.all("ClaimRule").await[0]["typeEvaluationRule"], json!("^secret$"), "nothing was saved");
        assert_eq!((hidden(&response, "base"), hidden(&response, "concurrencyToken")), (base.clone(), token.clone()));
        assert!(response.html.contains(&format!("formaction=\"{path}\"")), "{}", response.html);
        let saved = post(&world, &mut browser, &response, &path, &typed).await;
        assert!(saved.html.contains("<h1>no roles"), "{}", saved.html);

        let page = browser.open("/console/ClaimRule/new").await;
        assert!(page.html.contains(&format!("formaction=\"{TRY}\"")), "{}", page.html);
        let new = [("name", "upper"), ("ruleType", "Transform"), ("ruleLevel", "ClientApp"), ("typeEvaluationRule", "^secret$"),
            ("typeTransformationReplacement", "open"), ("priority", "9"), ("isActive", "true")];
        let response = evaluate(&world, &mut browser, TRY, claims, &new).await;
        assert!(rows(&response)[1].contains("upper (draft): changed") && rows(&response)[1].contains("open = x"), "{}", response.html);
        assert!(response.html.contains("formaction=\"/console/ClaimRule/new\""), "{}", response.html);
    }

    /// Errors are shown at their fields, those of a pattern with the position.
    async fn rule_errors_are_shown_at_their_fields(world: World) {
        let mut browser = administrator(&world).await;
        let wrong = [("name", "upper"), ("ruleType", "Filter"), ("ruleLevel", "Tenant"), ("valueEvaluationRule", "a(b")];
        let response = evaluate(&world, &mut browser, TRY, "{}", &wrong).await;
        assert!(response.status == 400 && response.html.contains("href=\"#f-valueEvaluationRule\""), "{}", response.html);
        assert!(response.html.contains("unclosed group (at character 2)") && response.html.contains("value=\"upper\""), "{}", response.html);
        for (claims, at) in [("role=editor", "must be JSON"), (r#"[{"type": "role"}]"#, "is missing")] {
            let response = evaluate(&world, &mut browser, TRY, claims, &[]).await;
            assert!(response.status == 400 && response.html.contains("href=\"#f-claims\"") && response.html.contains(at), "{}", response.html);
        }
    }

    /// The attributes of a person serve as a sample, too.
    async fn claims_of_a_person_serve_as_a_sample(world: World) {
        let mut browser = administrator(&world).await;
        let users = world.admin.get(&world.path("/User")).await.is(200).json();
        let response = evaluate(&world, &mut browser, TRY, "{}", &[("person", id(&users[0]))]).await;
        assert!(rows(&response).iter().any(|row| row.starts_with("family_name Lovelace")), "{}", response.html);
        assert!(response.html.contains("&quot;email&quot;: &quot;ada@example.com&quot;") || response.html.contains("&#34;"), "{}", response.html);
    }
}
