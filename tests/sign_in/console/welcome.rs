//! The wizard after the first start.

use chancery_signin::open_setup;
use chancery_store::{Error, Mode};
use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, Browser, PASSWORD, administrator, assign, encode, person, post, sign_in};

const HERE: &str = "/console/welcome";

fn second(password: &'static str) -> [(&'static str, &'static str); 5] {
    [
        ("step", "second"),
        ("firstName", "Grace"),
        ("emailAddress", "grace@example.com"),
        ("loginName", "grace"),
        ("password", password),
    ]
}

on_both_engines! {
    /// The setup link leads through the steps of the wizard, each of which can be skipped.
    async fn the_wizard_guides_the_first_administrator(world: World) {
        world.set_option("PasskeyEnrolment", "Off").await;
        let (master, now) = (world.app.context.master.clone(), chancery_web::now());
        let opened = world.app.store.run("Link", Mode::Write, None, move |tx| open_setup(tx, &master, now));
        let link = format!("/console/setup/{}", Result::<_, Error>::unwrap(opened.await));
        let mut browser = Browser::new(&world);
        let page = browser.open(&link).await;
        let typed = [("emailAddress", "ada@example.com"), ("loginName", "ada"), ("password", PASSWORD), ("repeated", PASSWORD)];
        let page = post(&world, &mut browser, &page, &link, &typed).await;
        let next = browser.type_password(&page, "ada", PASSWORD).await;
        let mut page = browser.open(&next.redirect_target()).await;
        assert!(page.address.ends_with(HERE) && page.html.contains("<h1>Address"), "{}: {}", page.address, page.html);
        assert!(page.html.contains(&world.base) && page.html.contains("CHANCERY_PUBLIC_URL"), "{}", page.html);
        let mut seen = Vec::new();
        while page.html.contains("<h1>") && !page.html.contains("Hello") {
            seen.push(page.html.split("<h1>").nth(1).unwrap().split('<').next().unwrap().trim().to_owned());
            let skip = page.html.split("href=\"").skip(1).map(|rest| rest.split_once('"').unwrap());
            let skip = skip.filter(|(_, rest)| rest.split("</a>").next().unwrap().ends_with("Skip")).map(|(href, _)| href);
            let skip = skip.last().unwrap_or_else(|| panic!("cannot be skipped: {}", page.html)).to_owned();
            page = browser.open(&skip).await;
        }
        assert_eq!(seen, ["Address", "A mail server", "A second administrator", "A first app", "A first user"]);
        for step in &seen {
            assert!(page.html.contains(step), "what is open stays on the overview: {step}: {}", page.html);
        }
    }

    /// The second administrator is created completely, or not at all.
    async fn a_second_administrator_is_created(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console/welcome?step=second").await;
        let response = post(&world, &mut browser, &page, HERE, &second("short")).await;
        assert!(response.status == 400 && response.html.contains("f-password-wrong"), "{}: {}", response.status, response.html);
        assert!(response.html.contains("grace@example.com"), "what was typed stays");
        let filter = encode("loginName eq \"grace\"");
        let people = world.admin.get(&world.path(&format!("/User?filter={filter}"))).await.is(200).json();
        assert_eq!(people, json!([]), "nobody is left of it");
        let next = post(&world, &mut browser, &response, HERE, &second(PASSWORD)).await;
        assert!(next.address.contains("step=app") && next.html.contains("Created"), "{}: {}", next.address, next.html);
        let filter = encode("roleType eq \"SystemAdmin\" and principalType eq \"PlatformUser\"");
        let roles = world.admin.get(&format!("{BASE}/RoleAssignment?filter={filter}")).await.is(200).json();
        assert_eq!(roles.as_array().unwrap().len(), 2, "{roles}");
        let page = browser.open("/console/welcome?step=second").await;
        assert!(!page.html.contains("f-password"), "it is done: {}", page.html);
    }

    /// Instead of an initial password, an access pass for a passkey is shown once.
    async fn a_second_administrator_may_start_with_an_access_pass(world: World) {
        let mut browser = administrator(&world).await;
        world.set_option("TemporaryAccessPassEnabled", "false").await;
        let page = browser.open("/console/welcome?step=second").await;
        assert!(!page.html.contains("f-way"), "{}", page.html);
        world.set_option("TemporaryAccessPassEnabled", "true").await;
        let page = browser.open("/console/welcome?step=second").await;
        assert!(page.html.contains("f-way"), "{}", page.html);
        let mut typed = second("").to_vec();
        typed.push(("way", "passkey"));
        let response = post(&world, &mut browser, &page, HERE, &typed).await;
        assert!(response.status == 200 && response.html.contains("The access pass"), "{}: {}", response.status, response.html);
        assert!(response.html.contains("step=app"), "and on: {}", response.html);
        let passes = world.path("/passkey-security/temporary-access-passes");
        let passes = world.admin.get(&passes).await.is(200).json();
        assert_eq!(passes["items"].as_array().unwrap().len(), 1, "{passes}");
        let filter = encode("roleType eq \"SystemAdmin\" and principalType eq \"PlatformUser\"");
        let roles = world.admin.get(&format!("{BASE}/RoleAssignment?filter={filter}")).await.is(200).json();
        assert_eq!(roles.as_array().unwrap().len(), 2, "{roles}");
    }

    /// The page shows the errors of the mail server for this store's mails.
    async fn mail_server_errors_are_shown(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console/welcome?step=mail").await;
        assert!(page.html.contains("No mail server is configured"), "{}", page.html);
        let text = "INSERT INTO mail_message (id, store, kind, state, sender, recipient, sealed_data, created_on, expires_on, \
            attempts, due_on, leased_until, last_error) SELECT ?1, o.rid, 'PasswordReset', 'Dead', 'a@b.c', 'd@e.f', ?2, 1, 1, 1, \
            ?3, 0, '554 5.7.1 <b>Relay</b> denied' FROM idp_instance o WHERE o.name = 'default'";
        let due = chancery_web::now().0;
        world.sql(vec![(text, vec![uuid::Uuid::from_u128(7).into(), vec![0_u8].into(), due.into()])]).await;
        let page = browser.open("/console/welcome?step=mail").await;
        assert!(page.html.contains("554 5.7.1 &lt;b&gt;Relay&lt;/b&gt; denied"), "{}", page.html);
        world.set_option("EMailSenderAddress", "id@example.com").await;
        let page = browser.open("/console/welcome?step=mail").await;
        assert!(!page.html.contains("Send a test mail"), "a server is missing still: {}", page.html);
        world.set_option("MailServerConfig", "{\"host\":\"127.0.0.1\",\"port\":1,\"security\":\"None\"}").await;
        let page = browser.open("/console/welcome?step=mail").await;
        assert!(page.html.contains("Send a test mail"), "{}", page.html);
        assert!(page.html.contains("554 5.7.1"), "what was said stays: {}", page.html);
        let next = post(&world, &mut browser, &page, HERE, &[("step", "mail")]).await;
        assert!(next.status == 200 && next.html.contains("handed over"), "{}", next.html);
    }

    /// Only a system administrator is guided through the wizard.
    async fn the_wizard_requires_a_system_administrator(world: World) {
        let ada = person(&world, "ada").await;
        let subscription = world.all("Subscription").await[0]["id"].clone();
        assign(&world, &ada, "SubscriptionAdmin", json!({ "applyToSubscriptionId": subscription })).await;
        let mut browser = Browser::new(&world);
        let page = sign_in(&mut browser, "/console", "ada").await;
        assert!(page.html.contains("A first app") && !page.html.contains(HERE), "{}", page.html);
        browser.open(HERE).await.answer.expect(403);
        post(&world, &mut browser, &page, HERE, &second(PASSWORD)).await.answer.expect(403);
    }
}
