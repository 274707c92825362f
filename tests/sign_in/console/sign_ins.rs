//! Sign-ins, sessions, grants and second factors: who, where and when, and how each is ended.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, Browser, administrator, assign, encode, person, post, sign_in};
use crate::{each, id};

on_both_engines! {
    /// Another user's session is found in the view of active ones, by its person, and ended on its page.
    async fn a_session_is_found_and_ended(world: World) {
        let mut browser = administrator(&world).await;
        let grace = person(&world, "grace").await;
        assign(&world, &grace, "SystemAdmin", json!({})).await;
        let mut hers = Browser::new(&world);
        sign_in(&mut hers, "/console/Tenant", "grace").await;
        let records = browser.open("/console/SignInRecord").await;
        let last = records.html.split("<tbody>").nth(1).unwrap().split("</tr>").next().unwrap().to_owned();
        assert!(last.contains("Ada Lovelace") && last.contains("Signed in") && last.contains("<time"), "the newest first: {last}");
        let live = format!("/console/SignInSession?view=live&of=platformUserId:{}", id(&grace));
        let list = browser.open(&live).await;
        assert!(list.html.contains("Ada Lovelace") && list.html.contains("Live"), "{}", list.html);
        let path = list.html.split("href=\"/console/SignInSession/").nth(1).unwrap().split('"').next().unwrap();
        let path = format!("/console/SignInSession/{path}");
        let page = browser.open(&path).await;
        assert!(page.html.contains(&format!("href=\"/console/ApplicationUser/{}\"", id(&grace))), "{}", page.html);
        let confirmation = browser.open(&format!("{path}/delete")).await;
        assert!(confirmation.html.contains("<h1>End: Ada Lovelace") && !confirmation.html.contains("name=\"typed\""), "{}", confirmation.html);
        let done = post(&world, &mut browser, &confirmation, &format!("{path}/delete"), &[]).await;
        assert!(done.status == 200 && done.html.contains("Ended"), "{}", done.html);
        assert!(!browser.open(&live).await.html.contains(&path));
        let out = hers.open("/console/Tenant").await;
        assert!(out.html.contains("name=\"password\""), "{}", out.html);
    }

    /// Grants and second factors are shown by person and app, with their own texts for ending.
    async fn grants_and_second_factors_are_ended(world: World) {
        let mut browser = administrator(&world).await;
        let csrf = browser.open("/console").await;
        crate::sign_in::create_sign_in_data(&world).await;
        let grants = browser.open("/console/SignInGrant?view=live").await;
        assert!(grants.html.contains("openid") && grants.html.contains("href=\"/console/ClientApp/"), "{}", grants.html);
        for (name, word) in [("SignInGrant", "End"), ("SignInFactor", "Remove"), ("SignInConsent", "Withdraw")] {
            let row = world.admin.get(&format!("{BASE}/{name}")).await.is(200).json()[0].clone();
            let list = browser.open(&format!("/console/{name}")).await;
            assert!(list.html.contains(&format!("value=\"delete\">{word}<")), "{}", list.html);
            let path = format!("/console/{name}/{}/delete", id(&row));
            let confirmation = browser.open(&path).await;
            assert!(confirmation.html.contains(&format!("<h1>{word}: ")), "{}", confirmation.html);
            assert_eq!(post(&world, &mut browser, &csrf, &path, &[]).await.status, 200);
        }
        assert_eq!(world.admin.get(&format!("{BASE}/SignInFactor")).await.is(200).json(), json!([]));
        let ended = world.admin.get(&format!("{BASE}/SignInGrant")).await.is(200).json();
        assert!(ended[0]["endedOn"].is_string(), "{ended}");
    }

    /// The page of a user links to the platform user, and many refused attempts from one address are reported as an
    /// attack.
    async fn many_refused_attempts_are_reported_as_an_attack(world: World) {
        let mut browser = administrator(&world).await;
        let grace = person(&world, "grace").await;
        let user = world.admin.get(&world.path(&format!("/User?filter={}", encode("loginName eq \"grace\"")))).await.is(200).json();
        let path = format!("/console/store/default/User/{}", id(&user[0]));
        let page = browser.open(&path).await;
        assert!(page.html.contains(&format!("href=\"/console/ApplicationUser/{}\"", id(&grace))), "{}", page.html);
        assert!(!page.html.contains("possibly an attack"), "{}", page.html);
        world.set_option("LoginThrottlingEnabled", "false").await;
        for attempt in 0..10 {
            // five attempts lock her temporarily, and further ones are not evaluated
            if attempt == 5 {
                let reset = world.path(&format!("/User/{}/lockout/reset", id(&user[0])));
                world.admin.post(&reset, json!(null)).await.expect(200);
            }
            let mut other = Browser::new(&world);
            let page = other.open("/console").await;
            other.type_password(&page, "grace", "a wrong one here").await;
        }
        let filter = encode(&format!("platformUserId eq \"{}\"", id(&grace)));
        let records = world.admin.get(&format!("{BASE}/SignInRecord?filter={filter}")).await.is(200).json();
        assert_eq!(each(&records, "outcome"), ["Refused"], "{records}");
        assert_eq!(records[0]["attempts"], 10, "{records}");
        let page = browser.open(&path).await;
        assert!(page.html.contains("10 refused attempts from 127.0.0.1") && page.html.contains("possibly an attack"), "{}", page.html);
        // the reason names the actor and the end
        assert!(page.html.contains("Temporarily locked") && page.html.contains("locked for a while after 5 wrong attempts"), "{}", page.html);
        let list = browser.open("/console/store/default/User?view=locked_for_now").await;
        assert!(list.html.contains("grace") && list.html.contains("Temporarily locked"), "{}", list.html);
    }
}
