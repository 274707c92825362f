//! The audit trail: who, what and when, each entry with its difference and its proof.

use chancery::append_pending;
use chancery_record::Timestamp;
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{Browser, Page, administrator, assign, encode, person, sign_in};
use crate::id;

const TRAIL: &str = "/console/store/default/CustomAuditTrail";

/// A user whose nickname was changed.
async fn changed(world: &World, nickname: &str) -> Value {
    let body =
        json!({ "loginName": "grace", "firstName": "Grace", "lastName": "Hopper", "nickname": "Amazing" });
    let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
    let own = world.path(&format!("/User/{}", id(&user)));
    let body = json!({ "concurrencyToken": user["concurrencyToken"], "nickname": nickname });
    world.admin.patch(&own, body).await.is(202).json()
}

/// The newest entry about an item.
async fn entry(world: &World, key: &str) -> Value {
    let filter = encode(&format!("primaryKey eq \"{key}\""));
    let path = format!("/CustomAuditTrail?sortOrder=descending&count=1&filter={filter}");
    world.admin.get(&world.path(&path)).await.is(200).json()[0].clone()
}

/// The texts of the rows of a list.
fn rows(page: &Page) -> Vec<String> {
    let rows = page.html.split("<th scope=\"row\">").skip(1);
    rows.map(|row| row.split("</tr>").next().unwrap().to_owned()).collect()
}

on_both_engines! {
    /// The page of an entry shows before and after, and collapses unchanged members.
    async fn an_audit_entry_shows_the_difference(world: World) {
        let mut browser = administrator(&world).await;
        let user = changed(&world, "<b>Countess</b>").await;
        let entry = entry(&world, id(&user)).await;
        let list = browser.open(TRAIL).await;
        let path = format!("{TRAIL}/{}", entry["id"]);
        assert!(list.html.contains(&format!("href=\"{path}\"")), "{}", list.html);
        let page = browser.open(&path).await;
        assert_eq!(page.status, 200, "{}", page.html);
        assert!(page.html.contains("<h1>Changed: user Grace Hopper"), "{}", page.html);
        assert!(page.html.contains("<del class=\"struck\">Amazing</del>"), "{}", page.html);
        assert!(page.html.contains("<ins class=\"marked\">&lt;b&gt;Countess"), "{}", page.html);
        assert!(!page.html.contains("<b>Countess"), "nothing is markup");
        let folded = page.html.split("<summary>Unchanged").nth(1).unwrap().split("</details>").next().unwrap();
        assert!(folded.contains("Hopper") && !folded.contains("Amazing"), "{folded}");
        assert!(!page.html.contains(">Version<"), "the token changes each time");
        assert!(page.html.contains(&format!("/console/store/default/User/{}", id(&user))), "the way to the item");
        let current = page.html.split("data-content=\"current\">").nth(1).unwrap().split("</code>").next().unwrap();
        let current = current.replace("&quot;", "\"").replace("&#x2f;", "/").replace("&lt;", "<").replace("&gt;", ">");
        assert_eq!(json!(current), entry["currentContent"], "as it was signed");
        for offered in ["chancery audit export --store", "audit-keys.json", "<noscript>", "proof-"] {
            assert!(page.html.contains(offered), "{offered}: {}", page.html);
        }
        assert!(!list.html.contains("proof-"), "the check is loaded where it is made");
    }

    /// A browser gets the response of the API, and nothing else.
    async fn a_browser_gets_the_proof_of_an_entry(world: World) {
        let mut browser = administrator(&world).await;
        let user = changed(&world, "Countess").await;
        append_pending(&world.app, Timestamp(1_795_253_400_000)).await.unwrap();
        let entry = entry(&world, id(&user)).await;
        let own = world.path(&format!("/CustomAuditTrail/{}", entry["id"]));
        let answer = browser.open(&format!("{TRAIL}/{}/proof", entry["id"])).await;
        assert_eq!(answer.answer.header("cache-control"), Some("no-store"));
        let proof: Value = serde_json::from_str(&answer.html).unwrap();
        assert_eq!(proof["entry"], world.admin.get(&own).await.is(200).json());
        let inclusion = world.admin.get(&format!("{own}/inclusion-proof")).await.is(200).json();
        assert_eq!((&proof["place"]["position"], &proof["place"]["id"]), (&inclusion["position"], &inclusion["id"]));
        browser.open(&format!("{TRAIL}/1/proof")).await.answer.expect(404);
        browser.open(&format!("{TRAIL}/1")).await.answer.expect(404);
    }

    async fn relation_changes_are_shown_by_name(world: World) {
        let mut browser = administrator(&world).await;
        let user = changed(&world, "Countess").await;
        let group = world.admin.post(&world.path("/Group"), json!({ "name": "Harbour" })).await.is(201).json();
        let users = world.path(&format!("/Group/{}/users", id(&group)));
        world.admin.post(&users, json!({ "relatedIds": [id(&user)] })).await.expect(202);
        let filter = encode("action eq \"Modified\" and area ne \"Option\"");
        let path = world.path(&format!("/CustomAuditTrail?sortOrder=descending&count=1&filter={filter}"));
        let entry = world.admin.get(&path).await.is(200).json()[0].clone();
        let page = browser.open(&format!("{TRAIL}/{}", entry["id"])).await;
        let added = page.html.split("<ins class=\"marked\">").nth(1).unwrap().split('<').next().unwrap();
        assert!(["Harbour", "Grace Hopper"].contains(&added), "{}", page.html);
        assert!(!page.html.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap().contains('-'), "{}", page.html);
    }

    async fn audit_entries_are_filtered_by_actor_item_and_time(world: World) {
        let mut browser = administrator(&world).await;
        let user = changed(&world, "Countess").await;
        let entry = entry(&world, id(&user)).await;
        let filtered = async |browser: &mut Browser, query: &str| browser.open(&format!("{TRAIL}?{query}")).await;
        let actor = entry["user"].as_str().unwrap();
        let all = rows(&filtered(&mut browser, &format!("who={actor}")).await);
        assert!(all.len() > 1 && all.iter().all(|row| row.contains("root")), "{all:?}");
        let page = filtered(&mut browser, "area=User&action=Modified").await;
        assert!(rows(&page).iter().all(|row| row.contains("User: Changed")), "{}", page.html);
        assert!(page.html.contains("<details class=\"card filters\" open"), "{}", page.html);
        assert!(page.html.contains("<option value=\"User\" selected>User<"), "{}", page.html);
        let moment = entry["timestamp"].as_str().unwrap().get(..19).unwrap().to_owned();
        let page = filtered(&mut browser, &format!("from={moment}&area=User")).await;
        assert!(rows(&page).iter().any(|row| row.contains("Grace Hopper")), "{}", page.html);
        for none in ["from=2094-01-01T00%3A00", "to=2001-01-01T00%3A00", "who=01a20844-57b6-7003-81dd-dc602f28d82d"] {
            let page = filtered(&mut browser, none).await;
            assert!(rows(&page).is_empty() && page.html.contains("No entry matches"), "{none}: {}", page.html);
        }
        filtered(&mut browser, "from=soon").await.answer.expect(400);
    }

    /// Every item's page shows its recent changes, if the user may read the trail.
    async fn each_item_links_to_its_audit_entries(world: World) {
        let mut browser = administrator(&world).await;
        let user = changed(&world, "Countess").await;
        let entry = entry(&world, id(&user)).await;
        let path = format!("/console/store/default/User/{}", id(&user));
        let page = browser.open(&path).await;
        // expensive content is loaded after the page
        assert!(page.html.contains(&format!("data-later=\"{path}/history\"")), "{}", page.html);
        let page = browser.open(&format!("{path}/history")).await;
        assert!(page.html.contains(&format!("href=\"{TRAIL}/{}\"", entry["id"])), "{}", page.html);
        let customer = world.make("Customer", json!({ "name": "Harbour" })).await;
        let path = format!("/console/Customer/{}", id(&customer));
        let page = browser.open(&format!("{path}/history")).await;
        let at = page.html.find("href=\"/console/CustomAuditTrail/").unwrap();
        let href = page.html[at + 6..].split('"').next().unwrap().to_owned();
        let page = browser.open(&href).await;
        assert!(page.html.contains("<h1>Added: customer Harbour"), "{}", page.html);
        let reader = person(&world, "reader").await;
        let role = json!({ "applyToCustomerId": customer["id"] });
        assign(&world, &reader, "CustomerAdmin", role).await;
        let mut browser = Browser::new(&world);
        sign_in(&mut browser, "/console", "reader").await;
        let page = browser.open(&path).await;
        assert!(page.status == 200 && !page.html.contains("CustomAuditTrail") && !page.html.contains("/history"), "{}", page.html);
        browser.open(&format!("{path}/history")).await.answer.expect(403);
        browser.open(&href).await.answer.expect(403);
        browser.open(&format!("{href}/proof")).await.answer.expect(403);
    }

    /// Contents that were erased with a person are marked, and not stored any more.
    async fn erased_contents_are_marked(world: World) {
        let mut browser = administrator(&world).await;
        let user = changed(&world, "Countess").await;
        let entry = entry(&world, id(&user)).await;
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&user))), json!(null)).await.expect(204);
        let page = browser.open(&format!("{TRAIL}/{}", entry["id"])).await;
        assert!(page.html.contains("erased with the person") && !page.html.contains("Countess"), "{}", page.html);
    }
}
