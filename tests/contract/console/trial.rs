//! Claim rules are tried on claims before they are saved.

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

/// Tries a sample for the first tenant, with these fields more.
async fn tried(
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

/// The rows of the outcome, without their marks.
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
    /// Of each claim: the rules that it met, and where it goes.
    async fn a_sample_is_followed(world: World) {
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
        let told = tried(&world, &mut browser, TRY, r#"{"role": ["editor"], "secret": "x", "sub": "7"}"#, &[]).await;
        assert_eq!(told.status, 200, "{}", told.html);
        assert_eq!(rows(&told), [
            "role editor no secrets: passed in capitals: changed ID token and access token role = EDITOR",
            "secret x no secrets: dropped No token",
            "sub 7 – not set ID token and access token",
            "org Harbour company: added ID token",
        ]);
        let nobody = post(&world, &mut browser, &told, TRY, &[("claims", r#"[{"type": "secret", "value": "x"}]"#)]).await;
        assert!(rows(&nobody)[0].contains("secret x – not set ID token") && nobody.html.contains("None is in force"), "{}", nobody.html);
    }

    /// What was typed in a rule's form takes part, and is saved from there or not at all.
    async fn a_draft_is_tried_and_saved(world: World) {
        let mut browser = administrator(&world).await;
        let made = rule(&world, json!({})).await;
        let path = format!("/console/ClaimRule/{}", id(&made));
        let page = browser.open(&path).await;
        let attempt = format!("{TRY}?of={}", id(&made));
        assert!(page.html.contains(&format!("formaction=\"{attempt}\"")), "{}", page.html);
        let claims = r#"{"role": "editor", "secret": "x"}"#;
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let typed = [("base", base.as_str()), ("concurrencyToken", &token), ("name", "no roles"), ("typeEvaluationRule", "^role$")];
        let told = tried(&world, &mut browser, &attempt, claims, &typed).await;
        assert!(told.html.contains("no roles (draft): dropped"), "{}", told.html);
        assert!(rows(&told)[0].contains("No token") && rows(&told)[1].contains("passed"), "{:?}", rows(&told));
        assert_eq!(world.all("ClaimRule").await[0]["typeEvaluationRule"], json!("^secret$"), "nothing was saved");
        assert_eq!((hidden(&told, "base"), hidden(&told, "concurrencyToken")), (base.clone(), token.clone()));
        assert!(told.html.contains(&format!("formaction=\"{path}\"")), "{}", told.html);
        let saved = post(&world, &mut browser, &told, &path, &typed).await;
        assert!(saved.html.contains("<h1>no roles"), "{}", saved.html);

        let page = browser.open("/console/ClaimRule/new").await;
        assert!(page.html.contains(&format!("formaction=\"{TRY}\"")), "{}", page.html);
        let new = [("name", "upper"), ("ruleType", "Transform"), ("ruleLevel", "ClientApp"), ("typeEvaluationRule", "^secret$"),
            ("typeTransformationReplacement", "open"), ("priority", "9"), ("isActive", "true")];
        let told = tried(&world, &mut browser, TRY, claims, &new).await;
        assert!(rows(&told)[1].contains("upper (draft): changed") && rows(&told)[1].contains("open = x"), "{}", told.html);
        assert!(told.html.contains("formaction=\"/console/ClaimRule/new\""), "{}", told.html);
    }

    /// What is wrong is told at its field, a pattern to the character.
    async fn what_is_wrong_is_told_at_its_field(world: World) {
        let mut browser = administrator(&world).await;
        let wrong = [("name", "upper"), ("ruleType", "Filter"), ("ruleLevel", "Tenant"), ("valueEvaluationRule", "a(b")];
        let told = tried(&world, &mut browser, TRY, "{}", &wrong).await;
        assert!(told.status == 400 && told.html.contains("href=\"#f-valueEvaluationRule\""), "{}", told.html);
        assert!(told.html.contains("unclosed group (at character 2)") && told.html.contains("value=\"upper\""), "{}", told.html);
        for (claims, at) in [("role=editor", "must be JSON"), (r#"[{"type": "role"}]"#, "is missing")] {
            let told = tried(&world, &mut browser, TRY, claims, &[]).await;
            assert!(told.status == 400 && told.html.contains("href=\"#f-claims\"") && told.html.contains(at), "{}", told.html);
        }
    }

    /// What is known of a person is a sample, too.
    async fn a_person_is_a_sample(world: World) {
        let mut browser = administrator(&world).await;
        let users = world.admin.get(&world.path("/User")).await.is(200).json();
        let told = tried(&world, &mut browser, TRY, "{}", &[("person", id(&users[0]))]).await;
        assert!(rows(&told).iter().any(|row| row.starts_with("family_name Lovelace")), "{}", told.html);
        assert!(told.html.contains("&quot;email&quot;: &quot;ada@example.com&quot;") || told.html.contains("&#34;"), "{}", told.html);
    }
}
