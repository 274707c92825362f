//! What somebody may not do is not offered, and refused if it is tried.

use std::collections::BTreeSet;

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, Browser, Page, administrator, assign, person, sign_in};

/// Where a page leads within the console, but out of it.
fn links(page: &Page) -> BTreeSet<String> {
    let all =
        page.html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"));
    all.filter(|href| href.starts_with("/console") && !href.contains("/asset/")).collect()
}

async fn first(world: &World, resource: &str) -> Value {
    world.admin.get(&format!("{BASE}/{resource}")).await.is(200).json()[0].clone()
}

on_both_engines! {
    /// Each role: every link that is shown works, and what is not shown is refused.
    async fn every_link_that_is_shown_works(world: World) {
        let all = {
            let mut browser = administrator(&world).await;
            let page = browser.open("/console").await;
            links(&page)
        };
        assert!(all.len() > 15, "{all:?}");
        let [customer, subscription, tenant, instance] =
            ["Customer", "Subscription", "Tenant", "IdpInstance"].map(|name| (name, ""));
        let _ = (customer, subscription, tenant, instance);
        let roles = [
            ("CustomerAdmin", json!({ "applyToCustomerId": first(&world, "Customer").await["id"] })),
            ("SubscriptionAdmin", json!({ "applyToSubscriptionId": first(&world, "Subscription").await["id"] })),
            ("TenantAdmin", json!({ "applyToTenantId": first(&world, "Tenant").await["id"] })),
            ("UserStoreAdmin", json!({ "applyToIdpInstanceId": first(&world, "IdpInstance").await["id"] })),
        ];
        for (number, (role, target)) in roles.into_iter().enumerate() {
            let name = format!("person{number}");
            let one = person(&world, &name).await;
            assign(&world, &one, role, target).await;
            let mut browser = Browser::new(&world);
            let page = sign_in(&mut browser, "/console", &name).await;
            assert_eq!(page.status, 200, "{role}: {}", page.html);
            let shown = links(&page);
            for href in &shown {
                let page = browser.open(href).await;
                assert_eq!(page.status, 200, "{role} {href}: {}", page.html);
                for inner in links(&page).iter().filter(|inner| !shown.contains(*inner)).take(12) {
                    let status = browser.open(inner).await.status;
                    assert_eq!(status, 200, "{role} {href} leads to {inner}");
                }
            }
            for href in all.difference(&shown) {
                let status = browser.open(href).await.status;
                assert!(status == 403 || status == 404, "{role} {href}: {status}");
            }
        }
    }

    /// A post that the page does not offer is refused by the operation.
    async fn what_is_not_offered_is_refused(world: World) {
        let reader = person(&world, "reader").await;
        assign(&world, &reader, "AuditTrailReader", json!({})).await;
        let mut browser = Browser::new(&world);
        let page = sign_in(&mut browser, "/console", "reader").await;
        for path in ["/console/Customer/new", "/console/store/default/User/new"] {
            let csrf = page.field("csrf");
            let fields = [("csrf", csrf.as_str()), ("name", "Mine"), ("loginName", "mine")];
            let answer = browser.post(path, &fields, &[("origin", &world.base)]).await;
            assert!([403, 404].contains(&answer.status), "{path}: {}", answer.status);
        }
    }
}
