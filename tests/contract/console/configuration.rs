//! The configuration as documents in the console: what differs is shown first, then it is done at once, or nothing is.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{Browser, Page, administrator, assign, person, post, proof::let_it_grow_old, sign_in, unescaped};

const HERE: &str = "/console/configuration";

/// Compares documents, or applies them as this says.
async fn send(world: &World, browser: &mut Browser, text: &str, sure: &str) -> Page {
    let page = browser.open(HERE).await;
    post(world, browser, &page, HERE, &[("text", text), ("sure", sure)]).await
}

/// What a page asks to confirm.
fn sure(page: &Page) -> String {
    let rest = page.html.split("name=\"sure\" value=\"").nth(1);
    unescaped(rest.unwrap_or_else(|| panic!("nothing to confirm: {}", page.html)).split('"').next().unwrap())
}

/// The row of a kind with this name; null where there is none.
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
    async fn differences_come_first_and_all_is_done_at_once(world: World) {
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
        // two files, one after the other
        let text = format!("{text}\n{rule}");
        let told = send(&world, &mut browser, &text, "").await;
        assert_eq!(told.status, 200, "{}", told.html);
        for said in ["Tenant Default/Default/East", "East &amp; Co", "^role$", "All of it is done at once", "Apply: 4"] {
            assert!(told.html.contains(said), "{said}: {}", told.html);
        }
        assert!(named(&world, "Tenant", "East").await.is_null(), "a comparison makes nothing");
        let done = send(&world, &mut browser, &text, &sure(&told)).await;
        assert!(done.html.contains("Applied"), "{}", done.html);
        let app = named(&world, "ClientApp", "Shop").await;
        assert_eq!(app["tenants"][0]["name"], "East");
        let tenant = named(&world, "Tenant", "East").await;
        let brands: Vec<Value> = world.all("Option").await.as_array().unwrap().iter()
            .filter(|option| option["name"] == "BrandName" && option["applyToTenantId"] == tenant["id"]).cloned().collect();
        assert_eq!((brands.len(), &brands[0]["value"]), (1, &json!("East & Co")));
        assert_eq!(named(&world, "ClaimRule", "roles").await["clientApps"][0]["name"], "Shop");
        // the same once more has nothing to do
        let again = send(&world, &mut browser, &text, &sure(&told)).await;
        assert!(again.html.contains("nothing to be done") && !again.html.contains("name=\"sure\""), "{}", again.html);
    }

    /// What is downloaded is as the server is; a change of it is shown as before and after.
    async fn what_is_downloaded_differs_in_nothing(world: World) {
        let mut browser = administrator(&world).await;
        let file = browser.open(&format!("{HERE}/export")).await;
        assert_eq!(file.answer.header("content-disposition").unwrap(), "attachment; filename=\"configuration.json\"");
        let told = send(&world, &mut browser, &file.html, "").await;
        assert!(told.html.contains("nothing to be done"), "{}", told.html);
        let mut documents: Vec<Value> = serde_json::from_str(&file.html).unwrap();
        let tenant = documents.iter_mut().find(|one| one["kind"] == "Tenant").unwrap();
        tenant["members"]["description"] = json!("for <all>");
        let text = Value::from(documents).to_string();
        let told = send(&world, &mut browser, &text, "").await;
        assert!(told.html.contains("for &lt;all&gt;") && told.html.contains("Apply: 1"), "{}", told.html);
        let done = send(&world, &mut browser, &text, &sure(&told)).await;
        assert!(done.html.contains("Applied"), "{}", done.html);
        assert!(world.all("Tenant").await.as_array().unwrap().iter().any(|row| row["description"] == "for <all>"));
    }

    /// What changed meanwhile is shown again instead of done.
    async fn what_is_not_as_it_was_shown_is_not_done(world: World) {
        let mut browser = administrator(&world).await;
        let text = json!([{ "kind": "Tenant", "members": { "name": "East", "subscriptionId": "Default", "description": "new" } }]).to_string();
        let told = send(&world, &mut browser, &text, "").await;
        world.make("Tenant", json!({ "name": "East", "description": "old", "subscriptionId": named(&world, "Subscription", "Default").await["id"] })).await;
        let again = send(&world, &mut browser, &text, &sure(&told)).await;
        assert_eq!(again.status, 200, "{}", again.html);
        assert!(again.html.contains("<del class=\"struck\">old</del>") && again.html.contains("Apply: 1"), "{}", again.html);
        assert_eq!(named(&world, "Tenant", "East").await["description"], "old");
    }

    /// What is wrong is told by document and member: what cannot be read, what has no row, and what the interface refuses.
    async fn what_is_wrong_stops_all(world: World) {
        let mut browser = administrator(&world).await;
        let tenant = |name: &str| json!({ "kind": "Tenant", "members": { "name": name, "subscriptionId": "Default" } });
        let long = "x".repeat(5000);
        for (text, said) in [
            (String::new(), "There is no document"),
            ("[{]".to_owned(), "This is no JSON: look at line 1, column 3"),
            (json!([tenant("East"), { "kind": "User", "members": {} }]).to_string(), "&quot;User&quot; is no kind of the configuration"),
            (json!([tenant("East"), { "kind": "ClientApp", "members": { "name": "Shop", "tenants": ["West"] } }]).to_string(), "names no Tenant"),
            (json!([tenant("East"), tenant(&long)]).to_string(), "characters"),
        ] {
            let told = send(&world, &mut browser, &text, "").await;
            assert_eq!(told.status, 400, "{}", told.html);
            assert!(told.html.contains(said) && !told.html.contains("name=\"sure\""), "{said}: {}", told.html);
            assert!(text.len() < 4 || text == "[{]" || told.html.contains("Document 2</th>"), "{}", told.html);
        }
        assert!(named(&world, "Tenant", "East").await.is_null());
    }

    /// Keys reach far: applying them wants a fresh proof, comparing does not.
    async fn keys_want_a_fresh_proof(world: World) {
        let mut browser = administrator(&world).await;
        let keys = world.anonymous.get("/.well-known/jwks.json").await.is(200).json().to_string();
        let text = json!([
            { "kind": "ClientApp", "members": { "name": "Shop" } },
            { "kind": "ClientAppKeySet", "members": { "clientAppId": "Shop", "name": "first", "use": "Signing", "jwks": keys } },
        ]).to_string();
        let page = browser.open(HERE).await;
        let_it_grow_old(&world).await;
        let told = post(&world, &mut browser, &page, HERE, &[("text", &text)]).await;
        let confirmed = sure(&told);
        let kept = post(&world, &mut browser, &told, HERE, &[("text", &text), ("sure", &confirmed)]).await;
        assert!(kept.status == 401 && kept.html.contains("Is it you?"), "{}", kept.html);
        assert!(named(&world, "ClientApp", "Shop").await.is_null());
    }

    /// A secret neither goes in nor out.
    async fn secrets_stay_as_they_are(world: World) {
        let mut browser = administrator(&world).await;
        let text = json!([{ "kind": "Tenant", "members": { "name": "East", "subscriptionId": "Default", "description": { "secret": "NAME" } } }]).to_string();
        let told = send(&world, &mut browser, &text, "").await;
        assert!(told.html.contains("Tenant.description (NAME)"), "{}", told.html);
        send(&world, &mut browser, &text, &sure(&told)).await;
        assert!(named(&world, "Tenant", "East").await["description"].is_null());
    }

    /// Who may read alone compares; what that person may not write is refused before it is offered.
    async fn who_may_not_write_is_told_so(world: World) {
        let grace = person(&world, "grace").await;
        assign(&world, &grace, "TenantAdmin", json!({ "applyToTenantId": world.all("Tenant").await[0]["id"] })).await;
        let mut browser = Browser::new(&world);
        sign_in(&mut browser, "/console", "grace").await;
        let text = json!([{ "kind": "Tenant", "members": { "name": "East", "subscriptionId": named(&world, "Subscription", "Default").await["id"] } }]).to_string();
        let told = send(&world, &mut browser, &text, "").await;
        assert_eq!(told.status, 403, "{}", told.html);
        assert!(told.html.contains("Tenant East") && !told.html.contains("name=\"sure\""), "{}", told.html);
        assert!(named(&world, "Tenant", "East").await.is_null());
    }
}
