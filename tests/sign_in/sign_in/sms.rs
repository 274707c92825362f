//! Codes by SMS, through a gateway with TLS.

use std::{path::Path, sync::Arc};

use chancery_testkit::{Client, Database, Engine, Process, Receiver, on_both_engines};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs::default_provider, pki_types::PrivateKeyDer},
};

use super::{
    PASSWORD, SignInApp,
    browser::Browser,
    claims,
    code_options::{age_codes, digits_in},
    encode, first, parameter,
    second_factor::factor_option,
};
use crate::{id, signing::calling_this_machine};

const BASE: &str = "/api/management/v2";

/// A gateway that answers with these statuses in sequence, and forwards the requests; its certificate is in
/// this file.
async fn gateway(certificate: &Path, statuses: Vec<u16>) -> (String, UnboundedReceiver<(String, Value)>) {
    let created = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(certificate, created.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(created.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![created.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}/send", listener.local_addr().unwrap());
    let (sending, sent) = unbounded_channel();
    chancery_testkit::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        for status in statuses {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let mut text = String::new();
            let body = loop {
                let mut part = [0; 4096];
                let count = stream.read(&mut part).await.unwrap();
                text.push_str(std::str::from_utf8(&part[..count]).unwrap());
                let body = text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body));
                if let Some(Ok(body)) = body {
                    break body;
                }
            };
            let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
            let _ = sending.send((text, body));
        }
    });
    (address, sent)
}

/// Creates an MFA instance of SMS with this gateway, and makes the home's app require it.
async fn ask_for_sms(admin: &Client, home: &SignInApp, address: &str) {
    let types = admin.get(&format!("{BASE}/IdpType")).await.is(200).json();
    let sms = types.as_array().unwrap().iter().find(|one| one["name"] == "sms").unwrap().clone();
    let body = json!({ "name": "Texts", "idpTypeId": sms["id"] });
    let factor = admin.post(&format!("{BASE}/MfaInstance"), body).await.is(201).json();
    for (relation, related) in [("tenants", home.tenant.as_str()), ("clientapps", id(&home.app))] {
        let path = format!("{BASE}/MfaInstance/{}/{relation}", id(&factor));
        admin.put(&path, json!({ "relatedIds": [related] })).await.expect(202);
    }
    for (name, value) in
        [("GatewayUrl", address), ("GatewayToken", "t0p-secret"), ("ResendInterval", "00:00:00")]
    {
        let filter = format!("applyToMfaInstanceId eq \"{}\" and name eq \"{name}\"", id(&factor));
        let option =
            admin.get(&format!("{BASE}/Option?filter={}", encode(&filter))).await.is(200).json()[0].clone();
        let body = json!({ "value": value, "concurrencyToken": option["concurrencyToken"] });
        admin.patch(&format!("{BASE}/Option/{}", id(&option)), body).await.expect(202);
    }
    let path = format!("/api/userstore/v2/default/administration/User/{}", id(&home.user));
    let now = admin.get(&path).await.is(200).json();
    let body = json!({
        "phoneNumber": "+4940123456", "phoneNumberConfirmed": true, "locale": "de-DE",
        "concurrencyToken": now["concurrencyToken"],
    });
    admin.patch(&path, body).await.expect(202);
}

/// Sets the URL of the gateway.
async fn set_gateway(admin: &Client, address: &str) {
    let filter = encode("name eq \"GatewayUrl\"");
    let option = admin.get(&format!("{BASE}/Option?filter={filter}")).await.is(200).json()[0].clone();
    let body = json!({ "value": address, "concurrencyToken": option["concurrencyToken"] });
    admin.patch(&format!("{BASE}/Option/{}", id(&option)), body).await.expect(202);
}

on_both_engines! {
    [calling_this_machine]
    /// A telephone number is verified by a code, which is sent to the gateway of a tenant of the store.
    async fn a_telephone_number_is_verified_by_a_code(world: World) {
        let mut gateway = Receiver::start().await;
        let home = SignInApp::new(&world).await;
        let contacts = world.path(&format!("/User/{}/security-contact", id(&home.user)));
        let phone = json!({ "kind": "Phone", "value": "+4940123456" });
        world.admin.post(&contacts, phone.clone()).await.problem(409, "conflict");
        ask_for_sms(&world.admin, &home, &gateway.url).await;
        world.admin.post(&format!("{contacts}?dryRun=true"), phone.clone()).await.expect(201);
        let created = world.admin.post(&contacts, phone.clone()).await.is(201).json();
        assert_eq!(created["isVerified"], json!(false));
        let got = gateway.until(|got| !got.is_empty()).await;
        assert_eq!((got.len(), &got[0].body["to"], &got[0].body["locale"]), (1, &json!("+4940123456"), &json!("de-DE")));
        let text = got[0].body["text"].as_str().unwrap();
        let code = text.strip_prefix("Ihr Best\u{e4}tigungscode: ").unwrap().to_owned();
        let verification = format!("{contacts}/{}/verification", id(&created));
        let wrong = if code == "000000" { "000001" } else { "000000" };
        world.admin.post(&verification, json!({ "code": wrong })).await.problem(400, "invalid-request");
        let verified = world.admin.post(&verification, json!({ "code": code })).await.is(200).json();
        assert_eq!(verified["isVerified"], json!(true));
        world.admin.post(&contacts, phone.clone()).await.problem(409, "conflict");
        assert_eq!(gateway.until(|got| !got.is_empty()).await.len(), 1, "a number that is known is sent nothing");
        // a number that the gateway does not accept is not stored
        set_gateway(&world.admin, "http://127.0.0.1:1/").await;
        let other = json!({ "kind": "Phone", "value": "+4940654321" });
        let refused = world.admin.post(&contacts, other).await.problem(409, "conflict");
        assert!(refused["detail"].as_str().unwrap().contains("did not accept"), "{refused}");
        assert_eq!(world.admin.get(&contacts).await.is(200).json(), json!([verified]));
    }

    /// A gateway on this machine is called by http, if the operator permits it. ResendInterval determines when it gets another code.
    ///
    /// - Effect of `sms options.GatewayUrl`: Codes are posted to this gateway.
    /// - Effect of `sms options.ResendInterval`: Another code is sent only after this time.
    async fn a_gateway_on_localhost_is_called_again_after_the_resend_interval(world: World) {
        let mut gateway = Receiver::start().await;
        let home = SignInApp::new(&world).await;
        ask_for_sms(&world.admin, &home, &gateway.url).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(page.html.contains("…56"), "{}", page.html);
        let got = gateway.until(|got| !got.is_empty()).await;
        assert_eq!(got[0].body["to"], json!("+4940123456"));
        let factor = first(&world, "/MfaInstance").await;
        factor_option(&world, &factor, "ResendInterval", "01:00:00").await;
        let soon = browser.submit(&page, &[("resend", "true")]).await;
        assert!(soon.html.contains("Wir haben vor Kurzem einen Code geschickt."), "{}", soon.html);
        factor_option(&world, &factor, "ResendInterval", "00:00:00").await;
        browser.submit(&soon, &[("resend", "true")]).await;
        assert_eq!(gateway.until(|got| got.len() > 1).await.len(), 2, "the refused one was not sent");
    }

    /// CodeLength, CodeLifetime and MaxAttempts of codes that are sent by SMS.
    ///
    /// - Effect of `sms options.CodeLength`: Codes have this number of digits.
    /// - Effect of `sms options.CodeLifetime`: A code works for this time.
    /// - Effect of `sms options.MaxAttempts`: After this number of wrong entries another code is needed.
    async fn sms_codes_follow_the_length_lifetime_and_attempts_options(world: World) {
        let mut gateway = Receiver::start().await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let home = SignInApp::new(&world).await;
        ask_for_sms(&world.admin, &home, &gateway.url).await;
        let factor = first(&world, "/MfaInstance").await;
        for (name, value) in [("CodeLength", "8"), ("CodeLifetime", "00:02:00"), ("MaxAttempts", "1")] {
            factor_option(&world, &factor, name, value).await;
        }
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        let code = |body: &Value| digits_in(body["text"].as_str().unwrap());
        let first_code = code(&gateway.until(|got| !got.is_empty()).await[0].body);
        assert_eq!(first_code.len(), 8, "{first_code}");
        age_codes(&world, 121_000).await;
        let late = browser.submit(&page, &[("code", &first_code)]).await;
        assert!(late.html.contains("Der Code ist abgelaufen."), "{}", late.html);
        // the page sends a new code
        let second = code(&gateway.until(|got| got.len() > 1).await[1].body);
        // the only attempt is wrong, so that a new code is sent
        let wrong = browser.submit(&late, &[("code", &first_code)]).await;
        gateway.until(|got| got.len() > 2).await;
        let over = browser.submit(&wrong, &[("code", &second)]).await;
        let last = code(&gateway.until(|got| got.len() > 3).await[3].body);
        age_codes(&world, 60_000).await;
        let next = browser.submit(&over, &[("code", &last)]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
    }
}

/// Outbound traffic is off, and this machine may be called.
fn with_outbound_off(folder: &Path) -> Vec<String> {
    let mut arguments = calling_this_machine(folder);
    arguments.extend(["--outbound", "off"].map(str::to_owned));
    arguments
}

on_both_engines! {
    [with_outbound_off]
    /// While outbound traffic is off no code is sent, neither at a sign-in nor for a new contact.
    async fn no_sms_is_sent_while_outbound_traffic_is_off(world: World) {
        let gateway = Receiver::start().await;
        let home = SignInApp::new(&world).await;
        ask_for_sms(&world.admin, &home, &gateway.url).await;
        let contacts = world.path(&format!("/User/{}/security-contact", id(&home.user)));
        let phone = json!({ "kind": "Phone", "value": "+4940123456" });
        let refused = world.admin.post(&contacts, phone).await.problem(409, "conflict");
        assert!(refused["detail"].as_str().unwrap().contains("CHANCERY_OUTBOUND"), "{refused}");
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(page.html.contains("Wir konnten keinen Code schicken."), "{}", page.html);
        assert!(gateway.received().is_empty());
    }
}

/// A request to a gateway is retried twice; a code that it does not accept is not valid, and another one can be requested.
///
/// - Effect of `sms options.GatewayToken`: The gateway gets this token as a bearer token.
#[tokio::test]
async fn a_code_is_sent_by_sms_on_sqlite() {
    a_code_is_sent_by_sms(Engine::Sqlite).await;
}

#[tokio::test]
async fn a_code_is_sent_by_sms_on_postgres() {
    a_code_is_sent_by_sms(Engine::Postgres).await;
}

async fn a_code_is_sent_by_sms(engine: Engine) {
    let database = Database::create(engine);
    let certificate = database.folder().join("gateway.pem");
    let (address, mut sent) = gateway(&certificate, vec![500, 503, 500, 500, 204]).await;
    let settings =
        [("SSL_CERT_FILE", certificate.to_str().unwrap()), ("CHANCERY_PRIVATE_DESTINATIONS", "127.0.0.0/8")];
    let server = Process::start(&database, &settings).await;
    let home = SignInApp::created_by(&server.admin, json!({})).await;
    ask_for_sms(&server.admin, &home, &address).await;
    let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
    let page = browser.open(&home.request(&[])).await;
    let page = browser.type_password(&page, "ann", PASSWORD).await;
    assert!(page.html.contains("Wir konnten keinen Code schicken"), "{}", page.html);
    let page = browser.submit(&page, &[("resend", "true")]).await;
    assert!(page.html.contains("…56"), "{}", page.html);
    let mut last = None;
    for _ in 0..5 {
        last = sent.recv().await;
    }
    let (head, body) = last.unwrap();
    assert!(head.contains("authorization: Bearer t0p-secret") && head.contains("application/json"), "{head}");
    assert_eq!((&body["to"], &body["locale"]), (&json!("+4940123456"), &json!("de-DE")));
    let code = body["text"].as_str().unwrap().strip_prefix("Ihr Anmeldecode: ").unwrap().to_owned();
    let next = browser.submit(&page, &[("code", &code)]).await;
    let answer = browser.continue_to_app(&next).await;
    let shown =
        home.redeem_at(&Client::anonymous(&server.base), &parameter(&answer, "code").unwrap(), &[]).await;
    assert_eq!(claims(&shown.is(200).json()["id_token"])["amr"], json!(["mfa", "pwd", "sms"]));
}
