//! A new tenant with its providers and settings, in one form.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{Page, administrator, post};
use crate::{each, id};

const NEW: &str = "/console/Tenant/new";

/// The id that a form provides.
fn id_of(page: &Page) -> String {
    let (_, rest) = page.html.split_once("name=\"id\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// The value of an option of a tenant.
async fn option(world: &World, tenant: &str, name: &str) -> Value {
    let filter = format!("applyToTenantId%20eq%20%22{tenant}%22%20and%20name%20eq%20%22{name}%22");
    let options = world.admin.get(&format!("/api/management/v2/Option?filter={filter}")).await.is(200).json();
    options[0]["value"].clone()
}

on_both_engines! {
    /// One form creates everything, and untouched settings have their defaults.
    async fn a_tenant_is_created_with_one_form(world: World) {
        let mut browser = administrator(&world).await;
        let subscription = id(&world.all("Subscription").await[0]).to_owned();
        let instance = id(&world.all("IdpInstance").await[0]).to_owned();
        let page = browser.open(NEW).await;
        let switch = format!("instance:{instance}");
        assert!(page.status == 200 && page.html.contains(&switch) && page.html.contains("name=\"SessionLifetime\""), "{}", page.html);
        assert!(page.html.contains(&format!("value=\"{subscription}\"")), "the only one: {}", page.html);
        let tenant = id_of(&page);
        let fields = [
            ("id", tenant.as_str()), ("name", "North"), ("subscriptionId", subscription.as_str()), ("isActive", "false"), ("isActive", "true"),
            (switch.as_str(), "false"), (switch.as_str(), "true"), ("SessionLifetime", "3"), ("SessionLifetime.unit", "days"),
            ("TermsUrl", "https://example.com/terms"),
        ];
        let created = post(&world, &mut browser, &page, NEW, &fields).await;
        assert!(created.address.contains(&tenant) && created.html.contains("Created"), "{} {}", created.address, created.html);
        let read = world.admin.get(&format!("/api/management/v2/Tenant/{tenant}")).await.is(200).json();
        assert_eq!((&read["name"], each(&read["idpInstances"], "id")), (&json!("North"), vec![instance.as_str()]));
        assert_eq!(option(&world, &tenant, "SessionLifetime").await, "3.00:00:00");
        assert_eq!(option(&world, &tenant, "TermsUrl").await, "https://example.com/terms");
        assert_eq!(option(&world, &tenant, "AccessTokenLifetime").await, "01:00:00");
        // a repeated submission finds it
        let again = post(&world, &mut browser, &page, NEW, &fields).await;
        assert!(again.address.contains(&tenant), "{}", again.address);
        let all = world.all("Tenant").await;
        assert_eq!(each(&all, "name").iter().filter(|name| **name == "North").count(), 1);
    }

    /// A setting that only the API refuses is reported with a link to the settings of the tenant, which exists.
    async fn a_refused_setting_does_not_prevent_the_tenant(world: World) {
        let mut browser = administrator(&world).await;
        let subscription = id(&world.all("Subscription").await[0]).to_owned();
        let page = browser.open(NEW).await;
        let (tenant, long) = (id_of(&page), "x".repeat(8_001));
        let fields = [("id", tenant.as_str()), ("subscriptionId", subscription.as_str()), ("name", "North"), ("BrandName", &long)];
        let response = post(&world, &mut browser, &page, NEW, &fields).await;
        assert!(response.status == 400 && response.html.contains("The tenant was created, but its settings were refused"), "{}", response.html);
        assert!(response.html.contains(&format!("href=\"/console/Tenant/{tenant}/settings\"")), "{}", response.html);
        assert_eq!(option(&world, &tenant, "BrandName").await, "");
    }

    /// Errors are reported at their fields, and nothing is created.
    async fn an_invalid_tenant_form_creates_nothing(world: World) {
        let mut browser = administrator(&world).await;
        let subscription = id(&world.all("Subscription").await[0]).to_owned();
        let page = browser.open(NEW).await;
        let tenant = id_of(&page);
        for (name, value) in [("SessionLifetime", "-3"), ("SessionLifetime", "soon"), ("name", "")] {
            let fields = [("id", tenant.as_str()), ("subscriptionId", subscription.as_str()), ("name", "North")];
            let fields: Vec<_> = fields.into_iter().filter(|(known, _)| *known != name).chain([(name, value), ("SessionLifetime.unit", "days")]).collect();
            let response = post(&world, &mut browser, &page, NEW, &fields).await;
            assert!(response.status == 400 && response.html.contains(&format!("href=\"#f-{name}\"")), "{name}: {} {}", response.status, response.html);
            assert_eq!(id_of(&response), tenant);
        }
        world.admin.get(&format!("/api/management/v2/Tenant/{tenant}")).await.expect(404);
        let checked = post(&world, &mut browser, &page, NEW, &[("id", &tenant), ("name", "North"), ("subscriptionId", &subscription), ("check", "true")]).await;
        assert_eq!(checked.status, 200);
        world.admin.get(&format!("/api/management/v2/Tenant/{tenant}")).await.expect(404);
    }
}
