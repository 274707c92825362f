//! Stops of a server while it sends: what is in flight is waited for and recorded, so that nothing is sent twice.

use std::collections::BTreeSet;

use chancery_mail::sink::{Sink, SinkConfig};
use chancery_testkit::{Client, Database, Engine, Process, Received, Receiver};
use serde_json::json;

use super::{PASSWORD, SignInApp, browser::Browser, claims, parameter};
use crate::{id, signing::set, until};

/// The number of stops, so that they happen at different points, and how much is to be sent at each.
const STOPS: usize = 3;
const DUE: usize = 12;
const CALLING_THIS_MACHINE: [(&str, &str); 1] = [("CHANCERY_PRIVATE_DESTINATIONS", "127.0.0.0/8")];
const USERS: &str = "/api/userstore/v2/default/administration/User";

/// The `sid` of each logout token that an app received.
fn sessions(got: &[Received]) -> BTreeSet<String> {
    let token = |one: &Received| one.text.split_once("logout_token=").unwrap().1.to_owned();
    got.iter().map(|one| claims(&json!(token(one)))["sid"].to_string()).collect()
}

async fn a_stop_repeats_no_back_channel_sign_out(engine: Engine) {
    let database = Database::create(engine);
    let mut receiver = Receiver::start().await;
    let mut server = Process::start(&database, &CALLING_THIS_MACHINE).await;
    let home = SignInApp::created_by(&server.admin, json!({ "backchannelLogoutUri": receiver.url })).await;
    for stop in 0..STOPS {
        let anonymous = Client::anonymous(&server.base);
        for _ in 0..DUE {
            let mut browser = Browser::of(&anonymous, &server.base);
            let page = browser.open(&home.request(&[])).await;
            let code = parameter(&browser.sign_in(&page, "ann", PASSWORD).await, "code").unwrap();
            home.redeem_at(&anonymous, &code, &[]).await.expect(200);
        }
        // a lock ends all sessions
        for is_locked in [true, false] {
            let state = format!("{USERS}/{}/state", id(&home.user));
            server.admin.post(&state, json!({ "isUserLocked": is_locked })).await.expect(200);
        }
        receiver.until(|got| got.len() > stop * DUE).await;
        assert!(server.stop());
        server = Process::start(&database, &CALLING_THIS_MACHINE).await;
    }
    let got = receiver.until(|got| sessions(got).len() == STOPS * DUE).await;
    assert_eq!(got.len(), STOPS * DUE, "each came once");
}

async fn a_stop_repeats_no_mail(engine: Engine) {
    let database = Database::create(engine);
    let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
    let mut server = Process::start(&database, &CALLING_THIS_MACHINE).await;
    set(&server.admin, "MailServerConfig", &sink.config()).await;
    set(&server.admin, "EMailSenderAddress", "id@example.com").await;
    for stop in 0..STOPS {
        for number in 0..DUE {
            let name = format!("u{stop}-{number}");
            let user = json!({ "loginName": name, "emailAddress": format!("{name}@example.com") });
            let user = server.admin.post(USERS, user).await.is(201).json();
            let mail = format!("{USERS}/{}/password/reset/sendresetemail", id(&user));
            server.admin.send(http::Method::POST, &mail, &[], Vec::new()).await.expect(200);
        }
        sink.wait_for(stop * DUE + 1).await;
        assert!(server.stop());
        server = Process::start(&database, &CALLING_THIS_MACHINE).await;
    }
    let recipients = || sink.received().into_iter().flat_map(|mail| mail.to).collect::<BTreeSet<_>>().len();
    until("each user has a mail", async || recipients() == STOPS * DUE).await;
    assert_eq!(sink.received().len(), STOPS * DUE, "each came once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_repeats_no_back_channel_sign_out_on_sqlite() {
    a_stop_repeats_no_back_channel_sign_out(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_repeats_no_back_channel_sign_out_on_postgres() {
    a_stop_repeats_no_back_channel_sign_out(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_repeats_no_mail_on_sqlite() {
    a_stop_repeats_no_mail(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_repeats_no_mail_on_postgres() {
    a_stop_repeats_no_mail(Engine::Postgres).await;
}
