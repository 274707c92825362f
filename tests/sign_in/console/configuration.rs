//! Configuration documents in the console: differences are shown first, then applied in one transaction.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{Browser, Page, administrator, assign, person, post, proof::expire_proofs, sign_in, unescaped};

const HERE: &str = "/console/configuration";

/// Sends documents for comparison, or to apply the confirmed changes.
async fn send(world: &World, browser: &mut Browser, text: &str, sure: &str) -> Page {
    let page = browser.open(HERE).await;
    post(world, browser, &page, HERE, &[("text", text), ("sure", sure)]).await
}

/// The confirmation that a page requests.
fn confirmation_of(page: &Page) -> String {
    let rest = page.html.split("name=\"sure\" value=\"").nth(1);
    unescaped(rest.unwrap_or_else(|| panic!("nothing to confirm: {}", page.html)).split('"').next().unwrap())
}

/// The row of a kind with this name; null if there is none.
async fn named(world: &World, kind: &str, name: &str) -> Value {
    world
        .all(kind)
        .await
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == name)
        .cloned()
        .unwrap_or_default()
}

on_both_engines! {
    async fn differences_are_shown_before_all_are_applied_at_once(world: World) {
        let mut browser = administrator(&world).await;
        let overview = browser.open("/console").await;
        assert!(overview.html.contains("href=\"/console/configuration\""), "{}", overview.html);
        let text = json!([
            { "kind": "Tenant", "members": { "name": "East", "subscriptionId": "Default" } },
            { "kind": "ClientApp", "members": { "name": "Shop", "tenants": ["East"] } },
            { "kind": "Option", "members": { "name": "BrandName", "applyToTenantId": "East", "value": "East & Co" } },
        ]).to_string();
        let rule = json!({ "kind": "ClaimRule", "members": { "name": "roles", "ruleType": "Filter", "ruleLevel": "ClientApp",
            "typeEvaluationRule": "^role$", "clientApps": ["Shop"] } }).to_string();
        // two concatenated files
        let text = format!("{text}\n{rule}");
        let response = send(&world, &mut browser, &text, "").await;
        assert_eq!(response.status, 200, "{}", response.html);
        for said in ["Tenant Default/Default/East", "East &amp; Co", "^role$", "All rows are processed together", "Apply: 4"] {
            assert!(response.html.contains(said), "{said}: {}", response.html);
        }
        assert!(named(&world, "Tenant", "East").await.is_null(), "a comparison makes nothing");
        let done = send(&world, &mut browser, &text, &confirmation_of(&response)).await;
        assert!(done.html.contains("Applied"), "{}", done.html);
        let app = named(&world, "ClientApp", "Shop").await;
        assert_eq!(app["tenants"][0]["name"], "East");
        let tenant = named(&world, "Tenant", "East").await;
        let brands: Vec<Value> = world.all("Option").await.as_array().unwrap().iter()
            .filter(|option| option["name"] == "BrandName" && option["applyToTenantId"] == tenant["id"]).cloned().collect();
        assert_eq!((brands.len(), &brands[0]["value"]), (1, &json!("East & Co")));
        assert_eq!(named(&world, "ClaimRule", "roles").await["clientApps"][0]["name"], "Shop");
        // applying them again changes nothing
        let again = send(&world, &mut browser, &text, &confirmation_of(&response)).await;
        assert!(again.html.contains("Nothing to do") && !again.html.contains("name=\"sure\""), "{}", again.html);
    }

    /// An export has no differences to the server; a change of it is shown as before and after.
    async fn an_export_has_no_differences_to_the_server(world: World) {
        let mut browser = administrator(&world).await;
        let file = browser.open(&format!("{HERE}/export")).await;
        assert_eq!(file.answer.header("content-disposition").unwrap(), "attachment; filename=\"configuration.json\"");
        let response = send(&world, &mut browser, &file.html, "").await;
        assert!(response.html.contains("Nothing to do"), "{}", response.html);
        let mut documents: Vec<Value> = serde_json::from_str(&file.html).unwrap();
        let tenant = documents.iter_mut().find(|one| one["kind"] == "Tenant").unwrap();
        tenant["members"]["description"] = json!("for <all>");
        let text = Value::from(documents).to_string();
        let response = send(&world, &mut browser, &text, "").await;
        assert!(response.html.contains("for &lt;all&gt;") && response.html.contains("Apply: 1"), "{}", response.html);
        let done = send(&world, &mut browser, &text, &confirmation_of(&response)).await;
        assert!(done.html.contains("Applied"), "{}", done.html);
        assert!(world.all("Tenant").await.as_array().unwrap().iter().any(|row| row["description"] == "for <all>"));
    }

    /// Changes since the confirmation are shown again and not applied.
    async fn changes_since_the_confirmation_are_shown_again(world: World) {
        let mut browser = administrator(&world).await;
        let text = json!([{ "kind": "Tenant", "members": { "name": "East", "subscriptionId": "Default", "description": "new" } }]).to_string();
        let response = send(&world, &mut browser, &text, "").await;
        world.make("Tenant", json!({ "name": "East", "description": "old", "subscriptionId": named(&world, "Subscription", "Default").await["id"] })).await;
        let again = send(&world, &mut browser, &text, &confirmation_of(&response)).await;
        assert_eq!(again.status, 200, "{}", again.html);
        assert!(again.html.contains("<del class=\"struck\">old</del>") && again.html.contains("Apply: 1"), "{}", again.html);
        assert_eq!(named(&world, "Tenant", "East").await["description"], "old");
    }

    /// Errors are reported by document and member: unreadable documents, unknown references, and values that the API
    /// refuses.
    async fn an_invalid_document_prevents_all_changes(world: World) {
        let mut browser = administrator(&world).await;
        let tenant = |name: &str| json!({ "kind": "Tenant", "members": { "name": name, "subscriptionId": "Default" } });
        let long = "x".repeat(5000);
        for (text, said) in [
            (String::new(), "The text contains no document"),
            ("[{]".to_owned(), "This is not valid JSON: see line 1, column 3"),
            (json!([tenant("East"), { "kind": "User", "members": {} }]).to_string(), "&quot;User&quot; is no kind of the configuration"),
            (json!([tenant("East"), { "kind": "ClientApp", "members": { "name": "Shop", "tenants": ["West"] } }]).to_string(), "names no Tenant"),
            (json!([tenant("East"), tenant(&long)]).to_string(), "characters"),
        ] {
            let response = send(&world, &mut browser, &text, "").await;
            assert_eq!(response.status, 400, "{}", response.html);
            assert!(response.html.contains(said) && !response.html.contains("name=\"sure\""), "{said}: {}", response.html);
            assert!(text.len() < 4 || text == "[{]" || response.html.contains("Document 2</th>"), "{}", response.html);
        }
        assert!(named(&world, "Tenant", "East").await.is_null());
    }

    /// Applying keys requires reauthentication; comparing does not.
    async fn applying_keys_requires_reauthentication(world: World) {
        let mut browser = administrator(&world).await;
        let keys = world.anonymous.get("/.well-known/jwks.json").await.is(200).json().to_string();
        let text = json!([
            { "kind": "ClientApp", "members": { "name": "Shop" } },
            { "kind": "ClientAppKeySet", "members": { "clientAppId": "Shop", "name": "first", "use": "Signing", "jwks": keys } },
        ]).to_string();
        let page = browser.open(HERE).await;
        expire_proofs(&world).await;
        let response = post(&world, &mut browser, &page, HERE, &[("text", &text)]).await;
        let confirmed = confirmation_of(&response);
        let held = post(&world, &mut browser, &response, HERE, &[("text", &text), ("sure", &confirmed)]).await;
        assert!(held.status == 401 && held.html.contains("Is it you?"), "{}", held.html);
        assert!(named(&world, "ClientApp", "Shop").await.is_null());
    }

    /// Secrets are neither imported nor exported.
    async fn secrets_are_neither_exported_nor_imported(world: World) {
        let mut browser = administrator(&world).await;
        let text = json!([{ "kind": "Tenant", "members": { "name": "East", "subscriptionId": "Default", "description": { "secret": "NAME" } } }]).to_string();
        let response = send(&world, &mut browser, &text, "").await;
        assert!(response.html.contains("Tenant.description (NAME)"), "{}", response.html);
        send(&world, &mut browser, &text, &confirmation_of(&response)).await;
        assert!(named(&world, "Tenant", "East").await["description"].is_null());
    }

    /// Readers may compare; changes that they may not write are refused before they are offered.
    async fn a_reader_of_the_configuration_is_refused_changes(world: World) {
        let grace = person(&world, "grace").await;
        assign(&world, &grace, "TenantAdmin", json!({ "applyToTenantId": world.all("Tenant").await[0]["id"] })).await;
        let mut browser = Browser::new(&world);
        sign_in(&mut browser, "/console", "grace").await;
        let text = json!([{ "kind": "Tenant", "members": { "name": "East", "subscriptionId": named(&world, "Subscription", "Default").await["id"] } }]).to_string();
        let response = send(&world, &mut browser, &text, "").await;
        assert_eq!(response.status, 403, "{}", response.html);
        assert!(response.html.contains("Tenant East") && !response.html.contains("name=\"sure\""), "{}", response.html);
        assert!(named(&world, "Tenant", "East").await.is_null());
    }
}
