//! Sign-in to the console, and the end of its session.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, Browser, PASSWORD, administrator, assign, pattern::lists, person, post, sign_in};
use crate::{id, resources::type_id};

on_both_engines! {
    /// The sign-in redirects to the requested URL, which contains no token.
    async fn a_sign_in_redirects_to_the_requested_page(world: World) {
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

    /// The authorization response is accepted once, and only in the browser that requested it.
    async fn an_authorization_response_is_valid_once_and_in_its_browser(world: World) {
        let ada = person(&world, "ada").await;
        assign(&world, &ada, "SystemAdmin", json!({})).await;
        let mut browser = Browser::new(&world);
        let page = browser.open("/console").await;
        let next = browser.type_password(&page, "ada", PASSWORD).await;
        let cookies = browser.cookies.clone();
        let mut other = Browser::new(&world);
        other.open(&next.redirect_target()).await.answer.expect(400);
        browser.open(&next.redirect_target()).await.answer.expect(200);
        browser.cookies = cookies;
        let again = browser.open("/console/signin?code=made-up&state=made-up").await;
        assert_eq!(again.status, 401);
    }

    /// A trailing slash in a URL makes no difference.
    async fn a_trailing_slash_is_ignored(world: World) {
        let mut browser = administrator(&world).await;
        for path in ["/console/", "/console/Tenant/", "/openapi/", "/device/"] {
            let page = browser.open(path).await;
            assert_eq!(page.status, 200, "{path}: {}", page.html);
        }
        // relative links have another base below a slash
        let page = browser.open("/openapi/").await;
        assert_eq!(page.address, "/openapi");
        let sheet = page.html.split("rel=\"stylesheet\" href=\".").nth(1).unwrap().split('"').next().unwrap();
        let folder = page.address.rsplit_once('/').unwrap().0;
        browser.open(&format!("{folder}{sheet}")).await.answer.expect(200);
    }

    async fn signing_out_ends_the_console_session(world: World) {
        let mut browser = administrator(&world).await;
        let before = browser.cookies.clone();
        let page = browser.open("/console").await;
        let out = post(&world, &mut browser, &page, "/console/signout", &[]).await;
        assert!(out.status == 200 && out.html.contains("signed out") && !out.html.contains("name=\"decision\""), "{}", out.html);
        // neither the console nor the sign-in accepts the stored cookies afterwards
        for cookies in [browser.cookies.clone(), before] {
            browser.cookies = cookies;
            let page = browser.open("/console").await;
            assert!(page.html.contains("name=\"password\""), "{}", page.html);
        }
    }

    /// The end of the sign-in ends the console session at the next request: a lock, the end of the session, or a lost
    /// role.
    async fn revoked_access_takes_effect_at_the_next_request(world: World) {
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

    /// A lock ends the session, and so do half an hour without use, and ten hours.
    async fn locks_and_timeouts_end_the_console_session(world: World) {
        let mut browser = administrator(&world).await;
        let set = async |what: &'static str| world.sql(vec![(what, vec![])]).await;
        let is_out = async |browser: &mut Browser| browser.open("/console/Tenant").await.html.contains("name=\"password\"");
        let cookies = browser.cookies.clone();
        // 29 minutes and two more without use: a prefetch in between does not count as use
        set("UPDATE console_session SET seen_on = seen_on - 1740000").await;
        let prefetch = [("sec-purpose", "prefetch")];
        assert_eq!(browser.open_with("/console/Tenant", &prefetch).await.status, 200);
        set("UPDATE console_session SET seen_on = seen_on - 120000").await;
        assert!(is_out(&mut browser).await, "half an hour without use");
        set("UPDATE console_session SET seen_on = seen_on + 1860000").await;
        browser.cookies.clone_from(&cookies);
        assert!(!is_out(&mut browser).await);
        set("UPDATE console_session SET expires_on = expires_on - 36000000").await;
        assert!(is_out(&mut browser).await, "ten hours");
        set("UPDATE console_session SET expires_on = expires_on + 36000000").await;
        browser.cookies.clone_from(&cookies);
        assert!(!is_out(&mut browser).await);
        let user = world.admin.get(&world.path("/User")).await.is(200).json()[0].clone();
        world.admin.post(&world.path(&format!("/User/{}/state", id(&user))), json!({ "isUserLocked": true })).await.expect(200);
        assert!(is_out(&mut browser).await, "a lock");
    }

    /// The value of the cookie changes with each proof, and the previous one becomes invalid.
    async fn reauthentication_changes_the_session_cookie(world: World) {
        let mut browser = administrator(&world).await;
        let before = browser.cookies.clone();
        let page = browser.open("/console/proof").await;
        let next = browser.type_password(&page, "ada", PASSWORD).await;
        browser.open(&next.redirect_target()).await.answer.expect(200);
        assert_ne!(before["chancery-console"], browser.cookies["chancery-console"]);
        browser.open("/console/Tenant").await.answer.expect(200);
        let mut former = Browser::new(&world);
        former.cookies = before;
        former.cookies.retain(|name, _| name == "chancery-console");
        assert!(former.open("/console/Tenant").await.html.contains("name=\"password\""));
    }

    /// GET requests change nothing for anybody, since pages are prefetched.
    async fn get_requests_change_nothing(world: World) {
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

    /// A form without a token of this server and this session changes nothing.
    async fn a_form_without_csrf_token_is_refused(world: World) {
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
        // the cookie of the console is not accepted by the API
        let cookie = browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        let path = format!("{BASE}/Customer");
        let headers = [("cookie", cookie.as_str())];
        world.anonymous.send(http::Method::GET, &path, &headers, Vec::new()).await.expect(401);
    }

    /// A user without a role sees an explanation after the sign-in, with a link to sign out.
    async fn a_user_without_a_role_sees_an_explanation(world: World) {
        person(&world, "ada").await;
        let mut browser = Browser::new(&world);
        let page = sign_in(&mut browser, "/console", "ada").await;
        assert!(page.status == 403 && page.html.contains("You have no role here"), "{}", page.html);
        // the own account is available, and other links of its page lead nowhere else
        let own = browser.open("/console/me").await;
        assert!(own.status == 200 && own.html.contains("Where you are signed in"), "{}", own.html);
        let saved = post(&world, &mut browser, &own, "/console/me", &[("lang", "de"), ("back", "/console/me")]).await;
        assert!(saved.status == 200 && saved.html.contains("<html lang=\"de\""), "{}", saved.html);
        assert_eq!(browser.open("/console/store/default/User").await.status, 403);
        let page = browser.open("/console").await;
        assert!(page.html.contains("action=\"/console/signout\""), "{}", page.html);
        post(&world, &mut browser, &page, "/console/signout", &[]).await.answer.expect(200);
        let page = browser.open("/console").await;
        assert!(page.html.contains("name=\"password\""), "{}", page.html);
    }

    /// An administrator of one user store sees that one, on every path, and is offered no other.
    async fn the_accessible_user_store_is_selected(world: World) {
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
        // the last viewed store is selected again
        assert!(browser.open("/console").await.html.contains("href=\"/console/store/staff/User\""));
        world.admin.delete(&format!("{BASE}/IdpInstance/{}", id(&staff))).await;
        assert!(browser.open("/console").await.html.contains("href=\"/console/store/default/User\""));
    }

    /// Pages are not cached or framed, and run no foreign code.
    async fn pages_have_security_headers(world: World) {
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

    /// Display preferences are stored with the person, and apply to the page from its first byte.
    async fn a_preference_is_stored(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console").await;
        let fields = [("theme", "dark"), ("lang", "de"), ("density", "compact"), ("back", "/console/Tenant")];
        let next = post(&world, &mut browser, &page, "/console/me", &fields).await;
        assert!(next.address.ends_with("/console/Tenant"), "{}", next.address);
        assert!(next.html.contains("<html lang=\"de\" dir=\"ltr\" data-theme=\"dark\" data-density=\"compact\">"), "{}", next.html);
        assert!(next.html.contains("Mandanten"));
        // English errors of the API are translated
        let form = browser.open("/console/Customer/new").await;
        let long = "x".repeat(300);
        let refused = post(&world, &mut browser, &form, "/console/Customer/new", &[("key", &form.field("key")), ("name", &long)]).await;
        assert!(refused.status == 400 && refused.html.contains("Name fasst höchstens 256 Zeichen, nicht 300"), "{}", refused.html);
        // error pages are translated, too, and have the standard layout
        let nowhere = browser.open("/console/nowhere").await;
        assert!(nowhere.html.contains("<html lang=\"de\" dir=\"ltr\" data-theme=\"dark\""), "{}", nowhere.html);
        assert!(nowhere.html.contains("Diese Seite gibt es in der Konsole nicht."), "{}", nowhere.html);
        let away = [("theme", ""), ("lang", "en"), ("density", ""), ("back", "//evil.example")];
        let next = post(&world, &mut browser, &next, "/console/me", &away).await;
        assert!(next.left.is_none() && next.address.ends_with("/console"), "{}", next.address);
    }
}
