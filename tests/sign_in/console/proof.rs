//! Critical operations require reauthentication, and submitted forms survive it.

use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{BASE, Browser, PASSWORD, administrator, encode, hidden, post};
use crate::{id, sign_in::browser::Page};

/// Makes every proof eleven minutes old.
pub async fn expire_proofs(world: &World) {
    world.sql(vec![("UPDATE console_session SET proven_on = proven_on - 660000", vec![])]).await;
}

/// Signs in again in another tab of the same browser.
async fn prove(browser: &mut Browser) {
    let page = browser.open("/console/proof").await;
    assert!(page.html.contains("name=\"password\""), "{}", page.html);
    let next = browser.type_password(&page, "ada", PASSWORD).await;
    let page = browser.open(&next.redirect_target()).await;
    assert!(page.html.contains("Identity confirmed"), "{}", page.html);
}

/// Sends a held form as its page contains it.
async fn send(world: &World, browser: &mut Browser, held: &Page, path: &str, names: &[&str]) -> Page {
    let values: Vec<_> = names.iter().chain(&["kept"]).map(|name| (*name, hidden(held, name))).collect();
    let fields: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    browser.post(path, &fields, &[("origin", &world.base)]).await
}

on_both_engines! {
    async fn a_role_assignment_requires_reauthentication(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/RoleAssignment/new";
        let page = browser.open(path).await;
        assert_eq!(page.status, 200, "{}", page.html);
        let assignments = async || {
            let all = world.admin.get(&format!("{BASE}/RoleAssignment")).await.is(200).json();
            all.as_array().unwrap().clone()
        };
        let before = assignments().await;
        let person = before[0]["principalId"].as_str().unwrap().to_owned();
        expire_proofs(&world).await;
        let fields = [("principalType", "PlatformUser"), ("principalId", person.as_str()), ("roleType", "AuditTrailReader")];
        let held = post(&world, &mut browser, &page, path, &fields).await;
        assert!(held.status == 401 && held.html.contains("Is it you?"), "{}", held.html);
        let names = ["principalType", "principalId", "roleType"];
        let early = send(&world, &mut browser, &held, path, &names).await;
        assert!(early.status == 401, "nobody has signed in again: {}", early.html);
        assert_eq!(assignments().await.len(), before.len());
        prove(&mut browser).await;
        let done = send(&world, &mut browser, &held, path, &names).await;
        assert!(done.status == 200, "{}", done.html);
        assert_eq!(assignments().await.len(), before.len() + 1, "{}", done.html);
        expire_proofs(&world).await;
        let page = browser.open(path).await;
        assert!(page.html.contains("name=\"password\""), "a page that leads there asks first: {}", page.html);
    }

    /// Operations that require reauthentication: erasing, irreversible deletion, secrets, certificates, exports, and
    /// ending others' sessions.
    async fn critical_operations_require_reauthentication(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.user("grace").await;
        let tenant = world.all("Tenant").await[0]["id"].as_str().unwrap().to_owned();
        let ada = world.all("ApplicationUser").await[0]["id"].as_str().unwrap().to_owned();
        let pages = [
            format!("/console/store/default/User/{}/EraseUser", user["id"].as_str().unwrap()),
            format!("/console/Tenant/{tenant}/delete"),
            format!("/console/ApplicationUser/{ada}/SignOutApplicationUser"),
            "/console/CertStore/new".to_owned(),
            "/console/ClientApp/new?kind=web".to_owned(),
            "/console/ClientApp/new?kind=page".to_owned(),
            "/console/EventSubscription/new".to_owned(),
            "/console/store/default/ScimToken/new".to_owned(),
            "/console/configuration/export".to_owned(),
            "/console/ClientAppRole/new".to_owned(),
            "/console/ClientAppRedirectUri/new".to_owned(),
            "/console/ClientAppFederatedIdentity/new".to_owned(),
            "/console/store/default/TemporaryAccessPass/new".to_owned(),
            format!("/console/store/default/User/{}/ResetPassword", user["id"].as_str().unwrap()),
            format!("/console/store/default/User/{}/SetInitialPassword", user["id"].as_str().unwrap()),
            format!("/console/store/default/User/{}/UpdateUserEmailAddress", user["id"].as_str().unwrap()),
        ];
        let is_sign_in = |page: &Page| page.address.contains("/signin/");
        for path in &pages {
            let page = browser.open(path).await;
            assert!(page.status < 500 && !is_sign_in(&page), "{path}: {}", page.html);
        }
        expire_proofs(&world).await;
        for path in &pages {
            let page = browser.open(path).await;
            assert!(is_sign_in(&page), "{path}: {}", page.html);
        }
        // ordinary ones do not
        browser.open("/console/store/default/User/new").await.answer.expect(200);
    }

    /// Joining a group that grants a role grants the role, from either side; other groups need no reauthentication.
    async fn a_membership_that_grants_a_role_requires_reauthentication(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.user("grace").await;
        let (plain, makers) = (world.group("plain").await, world.group("makers").await);
        world.admin.post(&world.path("/Group/synchronize"), json!(null)).await.expect(200);
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22makers%22").await[0].clone();
        let body = json!({ "principalType": "PlatformGroup", "principalId": platform["id"], "roleType": "AuditTrailReader" });
        world.make("RoleAssignment", body).await;
        expire_proofs(&world).await;
        let store = "/console/store/default";
        let joins = [
            (format!("{store}/Group/{}/relation/memberUsers", id(&makers)), id(&user)),
            (format!("{store}/User/{}/relation/memberOfGroups", id(&user)), id(&makers)),
            (format!("{store}/Group/{}/relation/memberGroups", id(&makers)), id(&plain)),
            (format!("{store}/Group/{}/relation/parentGroups", id(&plain)), id(&makers)),
        ];
        for (page, other) in &joins {
            let shown = browser.open(page).await;
            let held = post(&world, &mut browser, &shown, &format!("{page}/add"), &[("id", other)]).await;
            assert!(held.status == 401 && held.html.contains("Is it you?"), "{page}: {}", held.html);
        }
        let page = format!("{store}/Group/{}/relation/memberUsers", id(&plain));
        let shown = browser.open(&page).await;
        let done = post(&world, &mut browser, &shown, &format!("{page}/add"), &[("id", id(&user))]).await;
        assert!(done.status == 200, "{}", done.html);
    }

    /// Whoever changes an address receives what is sent there, such as a password reset link: addresses require
    /// reauthentication, names do not.
    async fn a_changed_address_requires_reauthentication(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.user("grace").await;
        let path = format!("/console/store/default/User/{}", id(&user));
        expire_proofs(&world).await;
        for (name, value, status) in [("nickname", "Amazing", 200), ("emailAddress", "eve@example.com", 401)] {
            let page = browser.open(&path).await;
            let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
            let fields = [("base", base.as_str()), ("concurrencyToken", &token), (name, value)];
            let next = post(&world, &mut browser, &page, &path, &fields).await;
            assert_eq!(next.status, status, "{name}: {}", next.html);
        }
        let now = world.admin.get(&world.path(&format!("/User/{}", id(&user)))).await.is(200).json();
        assert!(now["nickname"] == "Amazing" && now["emailAddress"] == user["emailAddress"], "{now}");
    }

    async fn a_form_is_held_when_its_session_ends(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/Customer/new";
        let page = browser.open(path).await;
        world.sql(vec![("UPDATE console_session SET seen_on = seen_on - 3600000", vec![])]).await;
        let held = post(&world, &mut browser, &page, path, &[("name", "Kept & told")]).await;
        assert!(held.status == 401 && held.html.contains("Kept &amp; told"), "{}", held.html);
        prove(&mut browser).await;
        let created = send(&world, &mut browser, &held, path, &["name"]).await;
        assert!(created.html.contains("<h1>Kept &amp; told"), "{}", created.html);
    }

    /// Only a form of the browser's own session is held, and it is valid in that browser only.
    async fn a_held_form_cannot_bypass_csrf_protection(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/Customer/new";
        let own = [("origin", world.base.as_str())];
        let page = browser.open(path).await;
        let csrf = page.field("csrf");
        // a browser that never had a session cannot have a held form, whatever token it sends
        let mut stranger = Browser::new(&world);
        for fields in [&[("name", "Forged")][..], &[("csrf", csrf.as_str()), ("name", "Forged")]] {
            let refused = stranger.post(path, fields, &own).await;
            assert!(refused.status == 401 && !refused.html.contains("name=\"kept\""), "{}", refused.html);
            assert!(!refused.html.contains("Forged"), "{}", refused.html);
        }
        let mut without = browser.clone();
        world.sql(vec![("UPDATE console_session SET seen_on = seen_on - 3600000", vec![])]).await;
        let refused = without.post(path, &[("name", "Forged")], &own).await;
        assert!(refused.status == 401 && !refused.html.contains("name=\"kept\""), "{}", refused.html);
        let held = post(&world, &mut browser, &page, path, &[("name", "Forged")]).await;
        assert_eq!(held.status, 401);
        let (name, token) = (hidden(&held, "name"), hidden(&held, "kept"));
        let fields = [("name", name.as_str()), ("kept", token.as_str())];
        let other_browser = stranger.post(path, &fields, &own).await;
        assert!(other_browser.status == 401 && !other_browser.html.contains("name=\"kept\""), "{}", other_browser.html);
        for headers in [&[("origin", "https://evil.example")][..], &[("sec-fetch-site", "same-site")], &[]] {
            browser.post(path, &fields, headers).await.answer.expect(401);
        }
        let all = world.admin.get(&format!("{BASE}/Customer")).await.is(200).json();
        assert_eq!(all, json!([all[0]]));
    }

    /// The page of a held form shows the target and the changed values before it is sent. Secrets are masked.
    async fn a_held_form_shows_what_it_sends(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.user("grace").await;
        let path = format!("/console/store/default/User/{}/ResetPassword", id(&user));
        let page = browser.open(&path).await;
        expire_proofs(&world).await;
        let held = post(&world, &mut browser, &page, &path, &[("newPassword", PASSWORD)]).await;
        let shown = held.html.split("<dl").nth(1).unwrap().split("</dl>").next().unwrap();
        assert!(held.html.contains(&path) && shown.contains("•••••") && !shown.contains(PASSWORD), "{shown}");
        let path = "/console/Customer/new";
        world.sql(vec![("UPDATE console_session SET seen_on = seen_on - 3600000", vec![])]).await;
        let fields = [("base", "{\"name\":\"as it was\"}"), ("name", "as it was"), ("name", "<b>new</b>"), ("key", "k")];
        let held = post(&world, &mut browser, &page, path, &fields).await;
        let shown = held.html.split("<dl").nth(1).unwrap().split("</dl>").next().unwrap();
        assert!(shown.contains("Name") && shown.contains("&lt;b&gt;new"), "{shown}");
        assert!(!shown.contains("as it was") && !shown.contains("Key"), "{shown}");
    }

    /// Secrets are masked whatever the name of the control: a part of a setting, a file, a header value, or an option by
    /// its name.
    async fn a_held_form_masks_secrets(world: World) {
        let mut browser = administrator(&world).await;
        let filter = encode("idpFactoryType eq \"UserStore\"");
        let store = world.all(&format!("IdpInstance?filter={filter}")).await[0].clone();
        let settings = format!("/console/IdpInstance/{}/settings", id(&store));
        let forms = [
            (settings.as_str(), &["MailServerConfig.UserName", "MailServerConfig.Password"][..], &[("tokens", "hush")][..]),
            ("/console/CertStore/new", &["data", "privateKey", "password"], &[("sealed", "hush"), ("step", "hush")]),
            ("/console/EventSubscription/new", &["headers"], &[("merge", "hush"), ("review", "hush")]),
            ("/console/Option/new", &["value"], &[("name", "MailServerConfig"), ("back", "hush"), ("sure", "hush")]),
        ];
        let mut page = browser.open("/console").await;
        for (path, names, _) in forms {
            page = browser.open(path).await;
            assert!(names.iter().all(|name| page.html.contains(&format!("name=\"{name}\""))), "{path}: {}", page.html);
        }
        world.sql(vec![("UPDATE console_session SET seen_on = seen_on - 3600000", vec![])]).await;
        for (path, names, more) in forms {
            let secrets = names.iter().map(|name| (*name, "hush"));
            let fields: Vec<_> = secrets.chain(more.iter().copied()).collect();
            let held = post(&world, &mut browser, &page, path, &fields).await;
            assert_eq!(held.status, 401, "{path}: {}", held.html);
            let shown = held.html.split("<dl").nth(1).unwrap().split("</dl>").next().unwrap();
            assert!(!shown.contains("hush"), "{path}: {shown}");
            assert_eq!(shown.matches("•••••").count(), names.len(), "{path}: {shown}");
        }
        let held = post(&world, &mut browser, &page, "/console/Option/new", &[("name", "PasswordMinLength"), ("value", "12")]).await;
        assert!(held.html.contains("<dd>12</dd>"), "what is no secret is told: {}", held.html);
    }
}
