//! Forms: secrets, unset values, irreversible actions, and undo.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, Browser, PASSWORD, Page, administrator, encode, hidden, post, sign_in};
use crate::id;

/// The option of the store's identity provider instance with this name.
async fn option(world: &World, name: &str) -> Value {
    let filter = encode(&format!("name eq \"{name}\""));
    let all = world.admin.get(&format!("{BASE}/Option?filter={filter}")).await.is(200).json();
    all[0].clone()
}

on_both_engines! {
    /// A secret appears on no page, for no user, and a form with an empty field leaves it unchanged.
    async fn a_secret_appears_on_no_page(world: World) {
        let mut browser = administrator(&world).await;
        let secret = r#"{"host":"mail.example","from":"office@example.com","password":"swordfish-and-chips"}"#;
        world.set_option("MailServerConfig", secret).await;
        let path = format!("/console/Option/{}", id(&option(&world, "MailServerConfig").await));
        let page = browser.open(&path).await;
        assert!(page.html.contains("type=\"password\"") && !page.html.contains("swordfish"), "{}", page.html);
        let list = browser.open("/console/Option?q=MailServerConfig").await;
        assert!(list.html.contains("MailServerConfig") && !list.html.contains("swordfish"), "{}", list.html);
        let hidden_fields = [("base", hidden(&page, "base")), ("concurrencyToken", hidden(&page, "concurrencyToken"))];
        let with = |value: &'static str, review: &'static str| {
            let hidden_fields = hidden_fields.iter().map(|(name, value)| (*name, value.as_str()));
            hidden_fields.chain([("value", value), ("review", review)]).collect::<Vec<_>>()
        };
        let unchanged = post(&world, &mut browser, &page, &path, &with("", "")).await;
        assert!(unchanged.html.contains("Nothing was changed"), "{}", unchanged.html);
        let review = post(&world, &mut browser, &page, &path, &with(r#"{"host":"other.example"}"#, "true")).await;
        assert!(review.html.contains("•••••"), "{}", review.html);
        let (shown, _) = review.html.split_once("<form class=\"middle\"").unwrap();
        let call = review.html.split("<pre").nth(1).unwrap().split("</pre>").next().unwrap();
        assert!(!shown.contains("other.example") && !call.contains("other.example"), "{call}");
        assert_eq!(option(&world, "MailServerConfig").await["value"], json!(secret));
    }

    /// All options are sealed; those that are no secrets are shown and cleared like any other field.
    async fn options_that_are_no_secrets_are_shown_and_cleared(world: World) {
        let mut browser = administrator(&world).await;
        world.set_option("ClaimIssuer", "Harbour").await;
        let path = format!("/console/Option/{}", id(&option(&world, "ClaimIssuer").await));
        let page = browser.open(&path).await;
        assert!(page.html.contains("Harbour"), "{}", page.html);
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let fields = [("base", base.as_str()), ("concurrencyToken", &token), ("name", "ClaimIssuer"), ("value", "")];
        let saved = post(&world, &mut browser, &page, &path, &fields).await;
        assert!(saved.html.contains("Saved"), "{}", saved.html);
        assert_eq!(option(&world, "ClaimIssuer").await["value"], json!(""));
    }

    /// A refused form with an idempotency key can be corrected and sent again.
    async fn a_refused_form_can_be_corrected_and_sent_again(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console/Customer/new").await;
        let key = page.field("key");
        let refused = post(&world, &mut browser, &page, "/console/Customer/new", &[("key", &key), ("name", "")]).await;
        assert!(refused.status == 400 && refused.html.contains("href=\"#f-name\""), "{}", refused.html);
        let key = refused.field("key");
        let created = post(&world, &mut browser, &refused, "/console/Customer/new", &[("key", &key), ("name", "Harbour")]).await;
        assert!(created.html.contains("<h1>Harbour"), "{}", created.html);
    }

    /// A form without a value for a choice leaves it unset: empty means neither yes nor no.
    async fn an_optional_choice_stays_unset(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.admin.post(&world.path("/User"), json!({ "loginName": "grace" })).await.is(201).json();
        let path = format!("/console/store/default/User/{}/SetUserState", id(&user));
        let page = browser.open(&path).await;
        assert!(page.html.contains("<select") && page.html.contains("Not set"), "{}", page.html);
        let done = post(&world, &mut browser, &page, &path, &[("isUserLocked", "true"), ("isUserActive", "")]).await;
        assert_eq!(done.status, 200, "{}", done.html);
        let now = world.admin.get(&world.path(&format!("/User/{}", id(&user)))).await.is(200).json();
        assert_eq!((&now["isUserLocked"], &now["isUserActive"]), (&json!(true), &json!(true)));
    }

    /// Erasing a user requires typing the name.
    async fn erasing_requires_typing_the_name(world: World) {
        let mut browser = administrator(&world).await;
        let body = json!({ "loginName": "grace", "firstName": "Grace", "lastName": "Hopper" });
        let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
        let own = world.path(&format!("/User/{}", id(&user)));
        let path = format!("/console/store/default/User/{}/EraseUser", id(&user));
        let page = browser.open(&path).await;
        let title = page.html.split("class=\"expected\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
        let slip = post(&world, &mut browser, &page, &path, &[("typed", "Grce")]).await;
        assert!(slip.status == 400 && slip.html.contains("does not match"), "{}", slip.html);
        world.admin.get(&own).await.expect(200);
        let gone = post(&world, &mut browser, &page, &path, &[("typed", &title)]).await;
        assert_eq!(gone.status, 200, "{}", gone.html);
        world.admin.get(&own).await.expect(404);
    }

    /// The button of an action shows a missing prerequisite and links to it; dependent rows are shown before a deletion.
    async fn a_missing_prerequisite_is_shown_before_an_action(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.admin.post(&world.path("/User"), json!({ "loginName": "grace" })).await.is(201).json();
        let own = world.path(&format!("/User/{}", id(&user)));
        let path = format!("/console/store/default/User/{}", id(&user));
        let page = browser.open(&path).await;
        assert!(page.html.contains(&format!("href=\"{path}#f-emailAddress\">")) && page.html.contains("no e-mail address"), "{}", page.html);
        let body = json!({ "emailAddress": "grace@example.com", "concurrencyToken": user["concurrencyToken"] });
        world.admin.patch(&own, body).await.expect(202);
        let page = browser.open(&path).await;
        assert!(page.html.contains("/settings#f-EMailSenderAddress\"") && page.html.contains("no mail server"), "{}", page.html);
        world.set_option("MailServerConfig", r#"{"Host": "localhost", "Port": 9}"#).await;
        world.set_option("EMailSenderAddress", "it@example.com").await;
        let page = browser.open(&path).await;
        assert!(page.html.contains(&format!("href=\"{path}/SendPasswordResetEmail\"")), "{}", page.html);
        let group = world.admin.post(&world.path("/Group"), json!({ "name": "Harbour" })).await.is(201).json();
        world.admin.post(&world.path(&format!("/Group/{}/users", id(&group))), json!({ "relatedIds": [user["id"]] })).await.expect(202);
        let confirmation = browser.open(&format!("{path}/delete")).await;
        assert!(confirmation.html.contains(": 1</li>") && confirmation.html.contains("It can be restored until"), "{}", confirmation.html);
    }

    /// A multi-line text is reviewed by line, with context.
    async fn a_multiline_text_is_reviewed_by_line(world: World) {
        let mut browser = administrator(&world).await;
        let content = (1..20).map(|line| format!("<p>{line}</p>\n")).collect::<String>();
        let view = world.make("CustomView", json!({ "location": "/views/global/SignIn", "content": content })).await;
        let path = "/console/CustomView/%2Fviews%2Fglobal%2FSignIn";
        let page = browser.open(path).await;
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let changed = content.replace("<p>10</p>", "<p>ten</p>");
        let fields = [("base", base.as_str()), ("concurrencyToken", &token), ("content", &changed), ("review", "true")];
        let review = post(&world, &mut browser, &page, path, &fields).await;
        assert!(review.html.contains("<del>&lt;p&gt;10&lt;/p&gt;</del><ins>&lt;p&gt;ten&lt;/p&gt;</ins>"), "{}", review.html);
        assert!(!review.html.contains("<span>&lt;p&gt;1&lt;/p&gt;</span>"), "what did not change is folded: {}", review.html);
        let _ = view;
    }

    /// A notification offers to undo the action.
    async fn an_action_can_be_undone_from_the_notification(world: World) {
        let mut browser = administrator(&world).await;
        world.set_option("UserDeletionQuarantineEnabled", "true").await;
        let group = world.admin.post(&world.path("/Group"), json!({ "name": "Harbour" })).await.is(201).json();
        let user = world.admin.post(&world.path("/User"), json!({ "loginName": "grace" })).await.is(201).json();
        let own = world.path(&format!("/User/{}", id(&user)));

        let path = format!("/console/store/default/Group/{}", id(&group));
        let page = browser.open(&path).await;
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let fields = [("base", base.as_str()), ("concurrencyToken", &token), ("name", "Quay")];
        let saved = post(&world, &mut browser, &page, &path, &fields).await;
        assert!(saved.html.contains("<h1>Quay"), "{}", saved.html);
        let back = undo(&world, &mut browser, saved).await;
        assert!(back.html.contains("<h1>Harbour"), "{}", back.html);

        let act = format!("/console/store/default/User/{}/SetUserState", id(&user));
        let page = browser.open(&act).await;
        let off = post(&world, &mut browser, &page, &act, &[("isUserActive", "false"), ("isUserLocked", "")]).await;
        assert!(off.html.contains("Inactive"), "{}", off.html);
        let back = undo(&world, &mut browser, off).await;
        assert_eq!(back.status, 200, "{}", back.html);
        assert_eq!(world.admin.get(&own).await.is(200).json()["isUserActive"], json!(true));

        let path = format!("{path}/relation/memberUsers");
        let page = browser.open(&path).await;
        let added = post(&world, &mut browser, &page, &format!("{path}/add"), &[("id", id(&user))]).await;
        assert!(added.html.contains("grace"), "{}", added.html);
        let back = undo(&world, &mut browser, added).await;
        assert!(!back.html.contains("grace"), "{}", back.html);

        let path = format!("/console/store/default/User/{}/delete", id(&user));
        let page = browser.open(&path).await;
        let gone = post(&world, &mut browser, &page, &path, &[]).await;
        world.admin.get(&own).await.expect(404);
        undo(&world, &mut browser, gone).await;
        world.admin.get(&own).await.expect(200);
    }

    /// Concurrent changes of fields that the form does not contain are no conflict.
    async fn concurrent_changes_of_other_fields_do_not_conflict(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.admin.post(&world.path("/User"), json!({ "loginName": "grace" })).await.is(201).json();
        let own = world.path(&format!("/User/{}", id(&user)));
        let path = format!("/console/store/default/User/{}", id(&user));
        let page = browser.open(&path).await;
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let reset = world.path(&format!("/User/{}/password/reset", id(&user)));
        world.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        let now = world.admin.get(&own).await.is(200).json();
        assert_ne!(now["concurrencyToken"], json!(token));
        let fields = [("base", base.as_str()), ("concurrencyToken", &token), ("firstName", "Grace")];
        let saved = post(&world, &mut browser, &page, &path, &fields).await;
        assert!(saved.status == 200 && saved.html.contains("Saved"), "{}", saved.html);
        assert_eq!(world.admin.get(&own).await.is(200).json()["firstName"], json!("Grace"));
    }

    /// Concurrent changes of a secret are merged, though no page can show the difference.
    async fn concurrent_changes_of_a_secret_are_merged(world: World) {
        let mut browser = administrator(&world).await;
        let options = world.all(&format!("Option?filter={}", encode("name eq \"MailServerConfig\""))).await;
        let own = format!("{BASE}/Option/{}", id(&options[0]));
        let path = format!("/console/Option/{}", id(&options[0]));
        let page = browser.open(&path).await;
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let theirs = r#"{"Host": "theirs.example.com", "Port": 25}"#;
        let body = json!({ "value": theirs, "concurrencyToken": token });
        world.admin.patch(&own, body).await.expect(202);
        let mine = r#"{"Host": "mine.example.com", "Port": 25}"#;
        let fields = [("base", base.as_str()), ("concurrencyToken", &token), ("value", mine)];
        let merge = post(&world, &mut browser, &page, &path, &fields).await;
        assert_eq!(merge.status, 409, "{}", merge.html);
        assert!(!merge.html.contains("theirs.example.com"), "{}", merge.html);
        assert_eq!(world.admin.get(&own).await.is(200).json()["value"], json!(theirs));
    }

    /// A link that has expired, is of another session or is forged offers no undo.
    async fn an_undo_expires_and_belongs_to_one_session(world: World) {
        let mut browser = administrator(&world).await;
        let group = world.group("Harbour").await;
        let path = format!("/console/store/default/Group/{}", id(&group));
        let page = browser.open(&path).await;
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let fields = [("base", base.as_str()), ("concurrencyToken", &token), ("name", "Quay")];
        let saved = post(&world, &mut browser, &page, &path, &fields).await;
        let (address, sealed) = saved.address.split_once("&undo=").unwrap();
        let master = world.app.context.master.clone();
        let opened = master.open("console-undo", &BASE64_URL_SAFE_NO_PAD.decode(sealed).unwrap()).unwrap();
        let undo: Value = serde_json::from_slice(opened.expose()).unwrap();
        let with = |member: &str, value: Value| {
            let mut undo = undo.clone();
            undo[member] = value;
            let sealed = master.seal("console-undo", undo.to_string().as_bytes());
            format!("{address}&undo={}", BASE64_URL_SAFE_NO_PAD.encode(sealed))
        };
        let mut other = Browser::new(&world);
        sign_in(&mut other, "/console", "ada").await;
        let offers = async |browser: &mut Browser, address: &str| {
            let page = browser.open(address).await;
            assert!(page.status == 200 && page.html.contains("<h1>Quay"), "{}", page.html);
            page.html.contains("Undo")
        };
        assert!(offers(&mut browser, &saved.address).await);
        assert!(offers(&mut browser, &with("action", undo["action"].clone())).await);
        assert!(!offers(&mut other, &saved.address).await, "of another session");
        assert!(!offers(&mut browser, &with("until", json!(chancery_web::now().0))).await, "expired");
        assert!(!offers(&mut browser, &with("session", json!([1]))).await);
        for forged in ["", "AAAA", "eyJhY3Rpb24iOiIvY29uc29sZSJ9"] {
            let page = browser.open(&format!("/console/Tenant?done=saved&undo={forged}")).await;
            assert!(page.status == 200 && !page.html.contains("Undo"), "{}", page.html);
        }
    }
}

/// Sends the undo form of a notification.
pub async fn undo(world: &World, browser: &mut Browser, page: Page) -> Page {
    let note = page.html.split("class=\"note\"").nth(1).unwrap().split("</div>").next().unwrap().to_owned();
    let action = note.split("action=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let note = Page { html: note, ..page };
    let names = note.html.split("name=\"").skip(2).map(|rest| rest.split('"').next().unwrap().to_owned());
    let fields: Vec<_> = names
        .map(|name| {
            let value = hidden(&note, &name);
            (name, value)
        })
        .collect();
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    post(world, browser, &note, &action, &fields).await
}
