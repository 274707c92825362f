//! Signing in to the console, and what ends it.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, Browser, PASSWORD, administrator, assign, pattern::lists, person, post, sign_in};
use crate::{id, management::type_id};

on_both_engines! {
    /// The address that was asked for is where the sign-in leads; there is no token in it.
    async fn a_sign_in_leads_to_the_page_that_was_asked_for(world: World) {
        let ada = person(&world, "ada").await;
        assign(&world, &ada, "SystemAdmin", json!({})).await;
        let mut browser = Browser::new(&world);
        let page = sign_in(&mut browser, "/console/Tenant?q=Def", "ada").await;
        assert!(page.address.ends_with("/console/Tenant?q=Def"), "{}", page.address);
        let names: Vec<&str> = browser.cookies.keys().map(String::as_str).collect();
        assert!(names.contains(&"chancery-console"), "{names:?}");
        let grants = world.admin.get(&format!("{BASE}/SignInGrant")).await.is(200).json();
        assert_eq!(grants, json!([]), "nothing is granted to anybody");
    }

    /// The answer of a sign-in counts once, and in the browser that asked.
    async fn an_answer_counts_once_and_here(world: World) {
        let ada = person(&world, "ada").await;
        assign(&world, &ada, "SystemAdmin", json!({})).await;
        let mut browser = Browser::new(&world);
        let page = browser.open("/console").await;
        let next = browser.type_password(&page, "ada", PASSWORD).await;
        let cookies = browser.cookies.clone();
        let mut other = Browser::new(&world);
        other.open(&next.onward()).await.answer.expect(400);
        browser.open(&next.onward()).await.answer.expect(200);
        browser.cookies = cookies;
        let again = browser.open("/console/signin?code=made-up&state=made-up").await;
        assert_eq!(again.status, 401);
    }

    /// A slash at the end of an address that people type makes no other.
    async fn a_slash_at_the_end_is_no_matter(world: World) {
        let mut browser = administrator(&world).await;
        for path in ["/console/", "/console/Tenant/", "/openapi/", "/device/"] {
            let page = browser.open(path).await;
            assert_eq!(page.status, 200, "{path}: {}", page.html);
        }
        // relative links lead elsewhere below a slash
        let page = browser.open("/openapi/").await;
        assert_eq!(page.address, "/openapi");
        let sheet = page.html.split("rel=\"stylesheet\" href=\".").nth(1).unwrap().split('"').next().unwrap();
        let folder = page.address.rsplit_once('/').unwrap().0;
        browser.open(&format!("{folder}{sheet}")).await.answer.expect(200);
    }

    async fn signing_out_ends_it(world: World) {
        let mut browser = administrator(&world).await;
        let before = browser.cookies.clone();
        let page = browser.open("/console").await;
        let out = post(&world, &mut browser, &page, "/console/signout", &[]).await;
        assert!(out.status == 200 && out.html.contains("signed out") && !out.html.contains("name=\"decision\""), "{}", out.html);
        // neither the console nor the sign-in lets anybody in, whoever kept the cookies
        for cookies in [browser.cookies.clone(), before] {
            browser.cookies = cookies;
            let page = browser.open("/console").await;
            assert!(page.html.contains("name=\"password\""), "{}", page.html);
        }
    }

    /// What ends the sign-in ends the console at the next click: a lock, the end of the session, a role that is gone.
    async fn what_is_taken_away_counts_at_the_next_click(world: World) {
        let ada = person(&world, "ada").await;
        let role = assign(&world, &ada, "SystemAdmin", json!({})).await;
        let mut browser = Browser::new(&world);
        sign_in(&mut browser, "/console", "ada").await;
        browser.open("/console/Tenant").await.answer.expect(200);
        world.admin.delete(&format!("{BASE}/RoleAssignment/{}", id(&role))).await.expect(204);
        let page = browser.open("/console/Tenant").await;
        assert!(page.status == 403 && page.html.contains("no role"), "{}", page.html);
        assign(&world, &ada, "SystemAdmin", json!({})).await;
        browser.open("/console/Tenant").await.answer.expect(200);
        let sessions = world.admin.get(&format!("{BASE}/SignInSession")).await.is(200).json();
        let session = sessions.as_array().unwrap().iter().find(|one| one["endedOn"].is_null()).unwrap().clone();
        world.admin.delete(&format!("{BASE}/SignInSession/{}", id(&session))).await.expect(204);
        let page = browser.open("/console/Tenant").await;
        assert!(page.html.contains("name=\"password\""), "{}", page.html);
    }

    /// A lock ends it, half an hour without use, and ten hours.
    async fn locks_and_time_end_it(world: World) {
        let mut browser = administrator(&world).await;
        let set = async |what: &'static str| world.sql(vec![(what, vec![])]).await;
        let is_out = async |browser: &mut Browser| browser.open("/console/Tenant").await.html.contains("name=\"password\"");
        let kept = browser.cookies.clone();
        // 29 minutes and two more without use: what a prefetch reads between them is no use
        set("UPDATE console_session SET seen_on = seen_on - 1740000").await;
        let prefetch = [("sec-purpose", "prefetch")];
        assert_eq!(browser.open_with("/console/Tenant", &prefetch).await.status, 200);
        set("UPDATE console_session SET seen_on = seen_on - 120000").await;
        assert!(is_out(&mut browser).await, "half an hour without use");
        set("UPDATE console_session SET seen_on = seen_on + 1860000").await;
        browser.cookies.clone_from(&kept);
        assert!(!is_out(&mut browser).await);
        set("UPDATE console_session SET expires_on = expires_on - 36000000").await;
        assert!(is_out(&mut browser).await, "ten hours");
        set("UPDATE console_session SET expires_on = expires_on + 36000000").await;
        browser.cookies.clone_from(&kept);
        assert!(!is_out(&mut browser).await);
        let user = world.admin.get(&world.path("/User")).await.is(200).json()[0].clone();
        world.admin.post(&world.path(&format!("/User/{}/state", id(&user))), json!({ "isUserLocked": true })).await.expect(200);
        assert!(is_out(&mut browser).await, "a lock");
    }

    /// The value of the cookie is another one after each proof, and the former one is good for nothing.
    async fn a_proof_changes_the_cookie(world: World) {
        let mut browser = administrator(&world).await;
        let before = browser.cookies.clone();
        let page = browser.open("/console/proof").await;
        let next = browser.type_password(&page, "ada", PASSWORD).await;
        browser.open(&next.onward()).await.answer.expect(200);
        assert_ne!(before["chancery-console"], browser.cookies["chancery-console"]);
        browser.open("/console/Tenant").await.answer.expect(200);
        let mut former = Browser::new(&world);
        former.cookies = before;
        former.cookies.retain(|name, _| name == "chancery-console");
        assert!(former.open("/console/Tenant").await.html.contains("name=\"password\""));
    }

    /// Looking at pages changes nothing, whoever looks: they are fetched ahead.
    async fn looking_changes_nothing(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.user("grace").await;
        let newest = async |trail: String| {
            world.admin.get(&format!("{trail}?count=1&sortOrder=descending")).await.is(200).json()[0]["id"].clone()
        };
        let trails = || [world.path("/CustomAuditTrail"), format!("{BASE}/CustomAuditTrail")];
        let [of_store, of_configuration] = trails();
        let before = (newest(of_store).await, newest(of_configuration).await);
        for path in lists() {
            browser.open(&path).await;
            browser.open(&format!("{path}/new")).await;
        }
        let here = format!("/console/store/default/User/{}", id(&user));
        for rest in ["", "/delete", "/SetUserState", "/EraseUser", "/SendPasswordResetEmail", "/relation/memberOfGroups", "/owned/UserProfile"] {
            browser.open(&format!("{here}{rest}")).await;
        }
        let [of_store, of_configuration] = trails();
        assert_eq!((newest(of_store).await, newest(of_configuration).await), before);
    }

    /// A form is of this server's page and of this session, or nothing is done.
    async fn a_form_is_ours_or_refused(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console/Customer/new").await;
        let csrf = page.field("csrf");
        let fields = [("csrf", csrf.as_str()), ("name", "Forged")];
        for headers in [
            &[("origin", "https://evil.example")][..],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site"), ("origin", &world.base)],
            &[],
        ] {
            browser.post("/console/Customer/new", &fields, headers).await.answer.expect(403);
        }
        let own = [("origin", world.base.as_str())];
        browser.post("/console/Customer/new", &fields[1..], &own).await.answer.expect(403);
        let planted = [("csrf", "x"), ("name", "Forged")];
        browser.post("/console/Customer/new", &planted, &own).await.answer.expect(403);
        let customers = world.admin.get(&format!("{BASE}/Customer")).await.is(200).json();
        assert_eq!(customers.as_array().unwrap().len(), 1);
        // a session's cookie is of no use at the interface
        let cookie = browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        let path = format!("{BASE}/Customer");
        let headers = [("cookie", cookie.as_str())];
        world.anonymous.send(http::Method::GET, &path, &headers, Vec::new()).await.expect(401);
    }

    /// Who has no role is told so after signing in, with a way out.
    async fn who_has_no_role_is_told(world: World) {
        person(&world, "ada").await;
        let mut browser = Browser::new(&world);
        let page = sign_in(&mut browser, "/console", "ada").await;
        assert!(page.status == 403 && page.html.contains("You have no role here"), "{}", page.html);
        // the own account is there, and what else is shown on it leads nowhere else
        let own = browser.open("/console/me").await;
        assert!(own.status == 200 && own.html.contains("Where you are signed in"), "{}", own.html);
        let kept = post(&world, &mut browser, &own, "/console/me", &[("lang", "de"), ("back", "/console/me")]).await;
        assert!(kept.status == 200 && kept.html.contains("<html lang=\"de\""), "{}", kept.html);
        assert_eq!(browser.open("/console/store/default/User").await.status, 403);
        let page = browser.open("/console").await;
        assert!(page.html.contains("action=\"/console/signout\""), "{}", page.html);
        post(&world, &mut browser, &page, "/console/signout", &[]).await.answer.expect(200);
        let page = browser.open("/console").await;
        assert!(page.html.contains("name=\"password\""), "{}", page.html);
    }

    /// Who administers one user store looks at that one, wherever the person begins, and is offered no other.
    async fn the_store_that_is_open_is_looked_at(world: World) {
        let kind = type_id(&world, "UserStore").await;
        let staff = world.make("IdpInstance", json!({ "name": "staff", "idpTypeId": kind })).await;
        let grace = person(&world, "grace").await;
        assign(&world, &grace, "UserStoreAdmin", json!({ "applyToIdpInstanceId": staff["id"] })).await;
        let mut browser = Browser::new(&world);
        let page = sign_in(&mut browser, "/console", "grace").await;
        assert!(page.html.contains("href=\"/console/store/staff/User\""), "{}", page.html);
        assert!(!page.html.contains("/console/store/default/"), "{}", page.html);
        browser.open("/console/store/staff/User").await.answer.expect(200);
        browser.open("/console/store/default/User").await.answer.expect(404);
        let mut browser = administrator(&world).await;
        let page = browser.open("/console/store/staff/User").await;
        assert!(page.html.contains("href=\"/console/store/default/User\""), "{}", page.html);
        // what was looked at last is looked at again
        assert!(browser.open("/console").await.html.contains("href=\"/console/store/staff/User\""));
        world.admin.delete(&format!("{BASE}/IdpInstance/{}", id(&staff))).await;
        assert!(browser.open("/console").await.html.contains("href=\"/console/store/default/User\""));
    }

    /// Nothing of a page is kept by anybody, framed, or run that is not this server's.
    async fn pages_keep_others_out(world: World) {
        let mut browser = administrator(&world).await;
        for path in ["/console", "/console/store/default/User", "/console/nowhere"] {
            let page = browser.open(path).await;
            let policy = page.answer.header("content-security-policy").unwrap();
            for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"] {
                assert!(policy.contains(part), "{path}: {policy}");
            }
            assert_eq!(page.answer.header("cache-control"), Some("no-store"), "{path}");
            assert_eq!(page.answer.header("x-frame-options"), Some("DENY"));
            assert_eq!(page.answer.header("cross-origin-opener-policy"), Some("same-origin"));
            assert_eq!(page.answer.header("referrer-policy"), Some("same-origin"));
            assert_eq!(page.answer.header("x-content-type-options"), Some("nosniff"), "{path}");
            for part in ["connect-src 'self'", "form-action 'self'", "frame-src 'none'", "trusted-types console"] {
                assert!(policy.contains(part), "{path}: {policy}");
            }
            let permissions = page.answer.header("permissions-policy").unwrap();
            assert!(permissions.contains("publickey-credentials-get=(self)") && permissions.contains("camera=()"), "{permissions}");
        }
    }

    /// How pages look is kept with the person, and in the page's first byte.
    async fn a_preference_is_kept(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console").await;
        let fields = [("theme", "dark"), ("lang", "de"), ("density", "compact"), ("back", "/console/Tenant")];
        let next = post(&world, &mut browser, &page, "/console/me", &fields).await;
        assert!(next.address.ends_with("/console/Tenant"), "{}", next.address);
        assert!(next.html.contains("<html lang=\"de\" dir=\"ltr\" data-theme=\"dark\" data-density=\"compact\">"), "{}", next.html);
        assert!(next.html.contains("Mandanten"));
        // what the interface refuses in English is told in the page's language
        let form = browser.open("/console/Customer/new").await;
        let long = "x".repeat(300);
        let refused = post(&world, &mut browser, &form, "/console/Customer/new", &[("key", &form.field("key")), ("name", &long)]).await;
        assert!(refused.status == 400 && refused.html.contains("Name fasst höchstens 256 Zeichen, nicht 300"), "{}", refused.html);
        // what fails is told in it, too, and looks as other pages do
        let nowhere = browser.open("/console/nowhere").await;
        assert!(nowhere.html.contains("<html lang=\"de\" dir=\"ltr\" data-theme=\"dark\""), "{}", nowhere.html);
        assert!(nowhere.html.contains("Diese Seite gibt es in der Konsole nicht."), "{}", nowhere.html);
        let away = [("theme", ""), ("lang", "en"), ("density", ""), ("back", "//evil.example")];
        let next = post(&world, &mut browser, &next, "/console/me", &away).await;
        assert!(next.left.is_none() && next.address.ends_with("/console"), "{}", next.address);
    }
}
