//! What reaches far wants a fresh proof, and what was typed outlives the sign-in that it takes.

use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{BASE, Browser, PASSWORD, administrator, encode, hidden, post};
use crate::{id, sign_in::browser::Page};

/// Makes every proof eleven minutes old.
pub async fn let_it_grow_old(world: &World) {
    world.sql(vec![("UPDATE console_session SET proven_on = proven_on - 660000", vec![])]).await;
}

/// Signs in again in another tab of the same browser.
async fn prove(browser: &mut Browser) {
    let page = browser.open("/console/proof").await;
    assert!(page.html.contains("name=\"password\""), "{}", page.html);
    let next = browser.type_password(&page, "ada", PASSWORD).await;
    let page = browser.open(&next.onward()).await;
    assert!(page.html.contains("It is you"), "{}", page.html);
}

/// Sends a kept form as its page has it.
async fn send(world: &World, browser: &mut Browser, kept: &Page, path: &str, names: &[&str]) -> Page {
    let values: Vec<_> = names.iter().chain(&["kept"]).map(|name| (*name, hidden(kept, name))).collect();
    let fields: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    browser.post(path, &fields, &[("origin", &world.base)]).await
}

on_both_engines! {
    async fn a_grant_wants_a_fresh_proof(world: World) {
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
        let_it_grow_old(&world).await;
        let fields = [("principalType", "PlatformUser"), ("principalId", person.as_str()), ("roleType", "AuditTrailReader")];
        let kept = post(&world, &mut browser, &page, path, &fields).await;
        assert!(kept.status == 401 && kept.html.contains("Is it you?"), "{}", kept.html);
        let names = ["principalType", "principalId", "roleType"];
        let early = send(&world, &mut browser, &kept, path, &names).await;
        assert!(early.status == 401, "nobody has signed in again: {}", early.html);
        assert_eq!(assignments().await.len(), before.len());
        prove(&mut browser).await;
        let done = send(&world, &mut browser, &kept, path, &names).await;
        assert!(done.status == 200, "{}", done.html);
        assert_eq!(assignments().await.len(), before.len() + 1, "{}", done.html);
        let_it_grow_old(&world).await;
        let page = browser.open(path).await;
        assert!(page.html.contains("name=\"password\""), "a page that leads there asks first: {}", page.html);
    }

    /// What reaches far asks first: erasing, deleting for good, secrets, certificates, exports, the end of others' sessions.
    async fn what_reaches_far_asks_first(world: World) {
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
        let_it_grow_old(&world).await;
        for path in &pages {
            let page = browser.open(path).await;
            assert!(is_sign_in(&page), "{path}: {}", page.html);
        }
        // what is plain does not
        browser.open("/console/store/default/User/new").await.answer.expect(200);
    }

    /// Who gets into a group that gives a role gets the role, from either side; other groups are everyday work.
    async fn a_membership_that_gives_a_role_wants_a_fresh_proof(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.user("grace").await;
        let (plain, makers) = (world.group("plain").await, world.group("makers").await);
        world.admin.post(&world.path("/Group/synchronize"), json!(null)).await.expect(200);
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22makers%22").await[0].clone();
        let body = json!({ "principalType": "PlatformGroup", "principalId": platform["id"], "roleType": "AuditTrailReader" });
        world.make("RoleAssignment", body).await;
        let_it_grow_old(&world).await;
        let store = "/console/store/default";
        let joins = [
            (format!("{store}/Group/{}/relation/memberUsers", id(&makers)), id(&user)),
            (format!("{store}/User/{}/relation/memberOfGroups", id(&user)), id(&makers)),
            (format!("{store}/Group/{}/relation/memberGroups", id(&makers)), id(&plain)),
            (format!("{store}/Group/{}/relation/parentGroups", id(&plain)), id(&makers)),
        ];
        for (page, other) in &joins {
            let shown = browser.open(page).await;
            let asked = post(&world, &mut browser, &shown, &format!("{page}/add"), &[("id", other)]).await;
            assert!(asked.status == 401 && asked.html.contains("Is it you?"), "{page}: {}", asked.html);
        }
        let page = format!("{store}/Group/{}/relation/memberUsers", id(&plain));
        let shown = browser.open(&page).await;
        let done = post(&world, &mut browser, &shown, &format!("{page}/add"), &[("id", id(&user))]).await;
        assert!(done.status == 200, "{}", done.html);
    }

    /// Who sets an address gets what is sent there, such as a link that sets a password: that is asked for, names are not.
    async fn a_changed_address_wants_a_fresh_proof(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.user("grace").await;
        let path = format!("/console/store/default/User/{}", id(&user));
        let_it_grow_old(&world).await;
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

    async fn a_form_outlives_its_session(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/Customer/new";
        let page = browser.open(path).await;
        world.sql(vec![("UPDATE console_session SET seen_on = seen_on - 3600000", vec![])]).await;
        let kept = post(&world, &mut browser, &page, path, &[("name", "Kept & told")]).await;
        assert!(kept.status == 401 && kept.html.contains("Kept &amp; told"), "{}", kept.html);
        prove(&mut browser).await;
        let made = send(&world, &mut browser, &kept, path, &["name"]).await;
        assert!(made.html.contains("<h1>Kept &amp; told"), "{}", made.html);
    }

    /// Only a form of a page of the browser's own session is kept, and it is good in that browser alone.
    async fn a_kept_form_is_no_way_around(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/Customer/new";
        let own = [("origin", world.base.as_str())];
        let page = browser.open(path).await;
        let csrf = page.field("csrf");
        // who never had a session has no form to keep, whatever token comes along
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
        let kept = post(&world, &mut browser, &page, path, &[("name", "Forged")]).await;
        assert_eq!(kept.status, 401);
        let (name, token) = (hidden(&kept, "name"), hidden(&kept, "kept"));
        let fields = [("name", name.as_str()), ("kept", token.as_str())];
        let elsewhere = stranger.post(path, &fields, &own).await;
        assert!(elsewhere.status == 401 && !elsewhere.html.contains("name=\"kept\""), "{}", elsewhere.html);
        for headers in [&[("origin", "https://evil.example")][..], &[("sec-fetch-site", "same-site")], &[]] {
            browser.post(path, &fields, headers).await.answer.expect(401);
        }
        let all = world.admin.get(&format!("{BASE}/Customer")).await.is(200).json();
        assert_eq!(all, json!([all[0]]));
    }

    /// What a kept form sends is told before it is sent: where to, and what differs from what was there. Secrets are not told.
    async fn a_kept_form_says_what_it_sends(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.user("grace").await;
        let path = format!("/console/store/default/User/{}/ResetPassword", id(&user));
        let page = browser.open(&path).await;
        let_it_grow_old(&world).await;
        let kept = post(&world, &mut browser, &page, &path, &[("newPassword", PASSWORD)]).await;
        let told = kept.html.split("<dl").nth(1).unwrap().split("</dl>").next().unwrap();
        assert!(kept.html.contains(&path) && told.contains("•••••") && !told.contains(PASSWORD), "{told}");
        let path = "/console/Customer/new";
        world.sql(vec![("UPDATE console_session SET seen_on = seen_on - 3600000", vec![])]).await;
        let fields = [("base", "{\"name\":\"as it was\"}"), ("name", "as it was"), ("name", "<b>new</b>"), ("key", "k")];
        let kept = post(&world, &mut browser, &page, path, &fields).await;
        let told = kept.html.split("<dl").nth(1).unwrap().split("</dl>").next().unwrap();
        assert!(told.contains("Name") && told.contains("&lt;b&gt;new"), "{told}");
        assert!(!told.contains("as it was") && !told.contains("Key"), "{told}");
    }

    /// A secret is hidden whatever its control is called: a part of a setting, a file, a header's value, an option's by its name.
    async fn a_kept_form_tells_no_secret(world: World) {
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
            let kept = post(&world, &mut browser, &page, path, &fields).await;
            assert_eq!(kept.status, 401, "{path}: {}", kept.html);
            let told = kept.html.split("<dl").nth(1).unwrap().split("</dl>").next().unwrap();
            assert!(!told.contains("hush"), "{path}: {told}");
            assert_eq!(told.matches("•••••").count(), names.len(), "{path}: {told}");
        }
        let kept = post(&world, &mut browser, &page, "/console/Option/new", &[("name", "PasswordMinLength"), ("value", "12")]).await;
        assert!(kept.html.contains("<dd>12</dd>"), "what is no secret is told: {}", kept.html);
    }
}
