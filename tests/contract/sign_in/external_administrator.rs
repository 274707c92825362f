//! Roles of people from elsewhere give no rights at the platform yet: they are told so, and get no token.

use chancery_resource::CONSOLE;
use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, administrator, browser::Browser, external, link, parameter, relate};
use crate::{
    id,
    provider_trial::{
        of_this_machine,
        stand_in::{Behaviour, StandIn},
    },
};

on_both_engines! {
    [of_this_machine]
    async fn nobody_administers_who_comes_from_elsewhere(world: World) {
        let (home, provider) = (administrator::console(&world).await, StandIn::start().await);
        let instance = external::connect(&world, &home, "Partner", &provider).await;
        // without the platform they sign in to the same app
        external::tokens(&world, &home, &provider, &[]).await;
        let person = external::people(&world, &instance).await.remove(0);
        let role = json!({ "principalType": "PlatformUser", "principalId": person["id"], "roleType": "SystemAdmin" });
        world.make("RoleAssignment", role).await;
        let platform = [("resource", "PlatformManagementService")];
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&platform)).await;
        let page = external::come_by(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
        // nor by a session
        let (mut browser, _) = external::sign_in(&world, &home, &provider, &[]).await;
        let silent = browser.open(&home.request(&[platform[0], ("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("access_denied"), "{silent}");
        let console = world.admin.get(&format!("{BASE}/ClientApp/{CONSOLE}")).await.is(200).json();
        let tenant = console["tenants"][0]["id"].as_str().unwrap().to_owned();
        for (relation, related) in [("tenants", vec![tenant.as_str(), home.tenant.as_str()]), ("clientapps", vec![id(&console), id(&home.app)])] {
            relate(&world, &format!("/IdpInstance/{}/{relation}", id(&instance)), &related).await;
        }
        // the console asks when somebody signed in
        let now = chancery_web::now().0 / 1000;
        provider.behave(Behaviour { claims: json!({ "auth_time": now }), ..Behaviour::default() });
        let mut browser = Browser::new(&world);
        let page = browser.open("/console").await;
        assert!(!link(&page, "Continue with Partner").is_empty());
        let page = external::come_by(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
    }
}
