//! Mail that operations cause, as a mail server receives it.

use chancery_mail::sink::{Sink, SinkConfig};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use crate::{
    id,
    signing::{calling_this_machine, texts},
};

async fn with_server(world: &World) -> Sink {
    let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
    world.set_option("MailServerConfig", &sink.config()).await;
    world.set_option("EMailSenderAddress", "Chancery <noreply@example.com>").await;
    sink
}

async fn user(world: &World, login_name: &str, locale: Option<&str>) -> Value {
    let body = json!({ "loginName": login_name, "emailAddress": format!("{login_name}@example.com"), "locale": locale,
        "firstName": "Ada", "lastName": "Müller" });
    world.admin.post(&world.path("/User"), body).await.is(201).json()
}

/// The token in a mail: the longest word of base64url.
fn token(text: &str) -> String {
    let is_token = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    text.split(|letter| !is_token(letter)).max_by_key(|word| word.len()).unwrap().to_owned()
}

on_both_engines! {
    [calling_this_machine]
    async fn a_reset_token_comes_by_mail_and_works_once(world: World) {
        let sink = with_server(&world).await;
        let user = user(&world, "ada", Some("de-AT")).await;
        let password = world.path(&format!("/User/{}/password", id(&user)));
        world.admin.send(http::Method::POST, &format!("{password}/reset/sendresetemail"), &[], vec![]).await.expect(200);
        let mails = sink.wait_for(1).await;
        assert_eq!((mails[0].to.as_slice(), mails[0].from.as_str()), (&["ada@example.com".to_owned()][..], "noreply@example.com"));
        let text = mails[0].text();
        assert!(text.contains("Ada Müller") && text.contains("Guten Tag"), "{text}");
        let body = json!({ "token": token(&text), "newPassword": "four lively grey herons" });
        let user = world.admin.post(&format!("{password}/reset/response"), body.clone()).await.is(200).json();
        assert_eq!((&user["isInitialPassword"], &user["isPasswordChangeRequired"]), (&json!(false), &json!(false)));
        world.admin.post(&format!("{password}/reset/response"), body).await.problem(400, "invalid-request");

        // another request, another token, in English by default
        world.admin.send(http::Method::POST, &format!("{password}/reset/request"), &[], vec![]).await.expect(200);
        assert_ne!(token(&sink.wait_for(2).await[1].text()), token(&text));
    }

    async fn a_link_is_filled_in_percent_encoded(world: World) {
        let sink = with_server(&world).await;
        world.set_option("PasswordResetUrlTemplate", "https://id.example.com/reset?user={loginName}&token={token}").await;
        let body = json!({ "loginName": "a&b c", "emailAddress": "ab@example.com" });
        let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
        let send = world.path(&format!("/User/{}/password/reset/sendresetemail", id(&user)));
        world.admin.send(http::Method::POST, &send, &[], vec![]).await.expect(200);
        let mails = sink.wait_for(1).await;
        assert!(mails[0].text().contains("https://id.example.com/reset?user=a%26b%20c&token="), "{}", mails[0].text());
        assert!(mails[0].subject().is_ascii() && mails[0].html().contains("href="));
    }

    /// - Effect of `UserStore options.UserLockNotificationRecipients`: Mails about locks go to these addresses.
    async fn operators_get_mails_about_locks(world: World) {
        let sink = with_server(&world).await;
        for (name, value) in [("UserLockNotificationEnabled", "true"), ("UserLockNotificationRecipients", "ops@example.com, sec@example.com"),
            ("AttemptsBeforeTemporaryLock", "1")] {
            world.set_option(name, value).await;
        }
        let user = user(&world, "ada", None).await;
        let body = json!({ "oldPassword": "wrong", "newPassword": "four lively grey herons" });
        world.admin.post(&world.path(&format!("/User/{}/password/change", id(&user))), body).await.expect(400);
        let mails = sink.wait_for(2).await;
        let mut to: Vec<_> = mails.iter().map(|mail| mail.to[0].as_str()).collect();
        to.sort_unstable();
        assert_eq!(to, ["ops@example.com", "sec@example.com"]);
        assert!(mails[0].text().contains("ada"));
    }

    async fn a_contact_is_verified_by_the_code_that_it_gets(world: World) {
        let user = user(&world, "ada", None).await;
        let contacts = world.path(&format!("/User/{}/security-contact", id(&user)));
        let new = json!({ "kind": "Email", "value": "Backup@example.com" });
        world.admin.post(&contacts, new.clone()).await.problem(409, "conflict");
        let sink = with_server(&world).await;
        let contact = world.admin.post(&contacts, new.clone()).await.is(201).json();
        assert_eq!((&contact["isVerified"], &contact["value"]), (&json!(false), &json!("Backup@example.com")));
        world.admin.post(&contacts, new).await.problem(409, "conflict");
        let text = sink.wait_for(1).await[0].text();
        let code = text.split(|letter: char| !letter.is_ascii_digit()).find(|word| word.len() == 6).unwrap().to_owned();
        let verification = format!("{contacts}/{}/verification", id(&contact));
        let wrong = if code == "000000" { "000001" } else { "000000" };
        world.admin.post(&verification, json!({ "code": wrong })).await.problem(400, "invalid-request");
        let verified = world.admin.post(&verification, json!({ "code": code })).await.is(200).json();
        assert_eq!(verified["isVerified"], true);
        assert!(verified["verifiedOn"].is_string());
        world.admin.post(&verification, json!({ "code": code })).await.problem(409, "conflict");
        assert_eq!(world.admin.get(&contacts).await.is(200).json(), json!([verified]));

        // at most five guesses are allowed
        let other = world.admin.post(&contacts, json!({ "kind": "Email", "value": "other@example.com" })).await.is(201).json();
        let verification = format!("{contacts}/{}/verification", id(&other));
        for _ in 0..5 {
            world.admin.post(&verification, json!({ "code": "nothing" })).await.problem(400, "invalid-request");
        }
        world.admin.post(&verification, json!({ "code": "nothing" })).await.problem(409, "conflict");
        let phone = json!({ "kind": "Phone", "value": "+49 30 1" });
        let refused = world.admin.post(&contacts, phone).await.problem(409, "conflict");
        assert!(refused["detail"].as_str().unwrap().contains("GatewayUrl"), "{refused}");
        world.admin.post(&contacts, json!({ "kind": "Phone", "value": "none" })).await.problem(400, "invalid-request");
        world.admin.delete(&format!("{contacts}/{}", id(&other))).await.expect(204);
        assert_eq!(world.admin.get(&contacts).await.is(200).json().as_array().unwrap().len(), 1);
    }
}

on_both_engines! {
    /// A11 and section 15: a mail server that a caller configures in the server's own network is not called,
    /// and the refusal says how to allow it.
    async fn a_mail_server_in_our_own_network_is_not_called(world: World) {
        let sink = with_server(&world).await;
        let user = user(&world, "ada", None).await;
        let send = world.path(&format!("/User/{}/password/reset/sendresetemail", id(&user)));
        world.admin.send(http::Method::POST, &send, &[], vec![]).await.expect(200);
        let why = async || {
            let errors = texts(&world, "SELECT last_error FROM mail_message WHERE last_error IS NOT NULL").await;
            errors.into_iter().next()
        };
        let end = tokio::time::Instant::now() + chancery_testkit::PATIENCE;
        let why = loop {
            if let Some(why) = why().await {
                break why;
            }
            assert!(tokio::time::Instant::now() < end, "nobody tried to send it");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        assert!(why.contains("CHANCERY_PRIVATE_DESTINATIONS"), "{why}");
        assert!(sink.received().is_empty());
    }

    /// D: mail settings that cannot be decrypted do not divert reset tokens to the program: the mail waits.
    async fn mail_waits_while_its_settings_cannot_be_opened(world: World) {
        let sink = with_server(&world).await;
        let broken = "UPDATE option_value SET value = substr(value, 1, length(value) - 4) || 'AAAA' \
            WHERE name = 'MailServerConfig' AND value <> ''";
        world.sql(vec![(broken, vec![])]).await;
        let user = user(&world, "ada", None).await;
        let send = world.path(&format!("/User/{}/password/reset/request", id(&user)));
        world.admin.send(http::Method::POST, &send, &[], vec![]).await.expect(200);
        let program = std::path::PathBuf::from("/bin/false");
        let post = chancery::MailSettings { master: world.app.context.master.clone(), program: Some(program), networks: "".parse().unwrap() };
        let permission = world.app.context.outbound.permission().unwrap();
        let delivered = chancery::deliver(&world.app.store, permission, &post, chancery_web::now()).await.unwrap();
        assert_eq!((delivered.sent, delivered.given_up), (0, 0));
        let why = texts(&world, "SELECT last_error FROM mail_message").await;
        assert_eq!(why, ["the store has no valid mail server"], "the program was not asked");
        assert_eq!(texts(&world, "SELECT state FROM mail_message").await, ["Waiting"]);
        assert!(sink.received().is_empty());
    }
}
