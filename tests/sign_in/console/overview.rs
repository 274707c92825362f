//! The overview: what needs attention, and the open steps of a new installation.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, administrator, encode};

/// The number of a tile.
fn number(html: &str, label: &str) -> String {
    let before = html.split(label).next().unwrap();
    before.rsplit("<b>").next().unwrap().split('<').next().unwrap().to_owned()
}

on_both_engines! {
    async fn the_overview_counts_what_needs_attention(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console").await;
        let labels = ["recoveries to approve", "identity replacements to approve", "certificates that expire", "misconfigured identity providers"];
        for label in labels {
            assert_eq!(number(&page.html, label), "0", "{label}: {}", page.html);
        }
        let types = world.admin.get(&format!("{BASE}/IdpType?filter={}", encode("factoryType eq \"OpenIdConnect\""))).await.is(200).json();
        world.make("IdpInstance", json!({ "name": "Elsewhere", "idpTypeId": types[0]["id"] })).await;
        let user = world.admin.post(&world.path("/User"), json!({ "loginName": "grace" })).await.is(201).json();
        let request = json!({ "userId": user["id"], "reason": "lost", "method": "IdentityDocument" });
        world.admin.post(&world.path("/passkey-security/recovery-transactions"), request).await.expect(201);
        world.admin.post(&world.path(&format!("/User/{}/state", user["id"].as_str().unwrap())), json!({ "isUserLocked": true })).await.expect(200);
        let page = browser.open("/console").await;
        assert_eq!((number(&page.html, "locked users"), number(&page.html, "temporarily locked")), ("1".to_owned(), "0".to_owned()), "{}", page.html);
        assert!(page.html.contains("href=\"/console/store/default/User?view=locked\""), "{}", page.html);
        assert!(page.html.contains("Recent changes of the configuration"), "{}", page.html);
        assert_eq!((number(&page.html, labels[0]), number(&page.html, labels[3])), ("1".to_owned(), "1".to_owned()), "{}", page.html);
        assert!(page.html.contains("href=\"/console/store/default/recovery\""), "{}", page.html);
    }

    /// Users whose removal by a directory was refused are counted, and listed with links.
    async fn the_overview_counts_refused_removals_of_directories(world: World) {
        let mut browser = administrator(&world).await;
        let token = world.admin.post(&world.path("/ScimToken"), json!({ "name": "a directory", "reach": "All" })).await.is(201).json();
        let directory = world.admin.with_token(token["token"].as_str().unwrap());
        let ada = world.admin.get(&world.path(&format!("/User?filter={}", encode("loginName eq \"ada\"")))).await.is(200).json()[0].clone();
        let label = "users whom a directory could not remove";
        let page = browser.open("/console").await;
        assert_eq!(number(&page.html, label), "0", "{}", page.html);
        let user = ada["id"].as_str().unwrap();
        assert_eq!(directory.delete(&format!("/api/scim/v2/default/Users/{user}")).await.status, 403);
        let page = browser.open("/console").await;
        assert_eq!(number(&page.html, label), "1", "{}", page.html);
        assert!(page.html.contains("href=\"/console/DirectoryRefusal\""), "{}", page.html);
        let page = browser.open("/console/DirectoryRefusal").await;
        let user_link = format!("href=\"/console/store/default/User/{user}\"");
        assert!(page.html.contains(&user_link) && page.html.contains("default"), "{}", page.html);
    }
}
