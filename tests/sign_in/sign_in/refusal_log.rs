//! The log explains why an app is refused: one line for each refused request, without secrets.

use std::time::Instant;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{Answer, Client, Database, Engine, Process};
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{BASE, CALLBACK, PASSWORD, SignInApp, browser::Browser, encode, form};
use crate::id;

/// Values that no line may contain: each stands for a secret, or for personal data.
const SECRETS: [&str; 7] = [
    "very-secret-code-1",
    "very-secret-verifier-2",
    "very-secret-token-3",
    "very-secret-password-4",
    "ann@secret.example",
    "very-secret-state-5",
    "very-secret-query-6",
];
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// A server whose log is read, and an app.
struct RefusalLog {
    /// The folder of the log.
    database: Database,
    server: Process,
    client: Client,
    home: SignInApp,
    expected: Vec<(String, &'static [(&'static str, &'static str)])>,
}

impl RefusalLog {
    async fn new(engine: Engine) -> Self {
        let database = Database::create(engine);
        let server = Process::start(&database, &[]).await;
        let members = json!({
            "allowDeviceAuthorizationGrant": true, "allowClientCredentialLogin": true, "accessGrantConsent": "Systematic",
        });
        let home = SignInApp::created_by(&server.admin, members).await;
        let client = Client::anonymous(&server.base);
        Self { database, server, client, home, expected: Vec::new() }
    }

    /// The trace id of the next request.
    fn trace(&self) -> String {
        format!("{:032x}", self.expected.len() + 1)
    }

    /// Sends a request that is refused; the log line must contain these values in these members.
    async fn send_refused(
        &mut self,
        (method, path): (Method, &str),
        headers: &[(&str, &str)],
        body: &str,
        line_members: &'static [(&'static str, &'static str)],
    ) -> Answer {
        let trace = self.trace();
        let parent = format!("00-{trace}-00f067aa0ba902b7-01");
        let headers = [headers, &[("traceparent", parent.as_str())]].concat();
        let answer = self.client.send(method, path, &headers, body.as_bytes().to_vec()).await;
        assert!(answer.status.as_u16() >= 300 || path.contains("endsession"), "{path}: {}", answer.status);
        self.expected.push((trace, line_members));
        answer
    }

    async fn authorize(
        &mut self,
        more: &[(&str, &str)],
        line_members: &'static [(&'static str, &'static str)],
    ) -> Answer {
        let address = self.home.request(more);
        self.send_refused((Method::GET, &address), &[], "", line_members).await
    }

    async fn post(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        line_members: &'static [(&'static str, &'static str)],
    ) -> Answer {
        let body = form(fields.iter().copied());
        self.send_refused((Method::POST, path), &[FORM], &body, line_members).await
    }

    /// The lines of the log: one for each request, with the expected values, and without secrets.
    fn check(mut self) -> Vec<Value> {
        assert!(self.server.stop());
        let log = std::fs::read_to_string(&self.server.log).unwrap();
        drop(self.database);
        let secret = self.home.secret.as_str();
        for value in SECRETS.iter().chain([&secret]) {
            assert!(!log.contains(value), "{value} in {log}");
        }
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_refusal = |line: &&Value| line["message"] == "refused an app's request";
        let lines: Vec<Value> = lines.iter().filter(is_refusal).cloned().collect();
        for (trace, line_members) in &self.expected {
            let matching: Vec<_> = lines.iter().filter(|line| line["trace_id"] == *trace.as_str()).collect();
            let [line] = matching.as_slice() else {
                panic!("one line tells {line_members:?}: {matching:#?}")
            };
            for (member, part) in *line_members {
                let value = line[member].as_str().unwrap_or_default();
                assert!(value.contains(part), "{member} has {part}: {line:#}");
            }
            assert_eq!(line["level"], "INFO", "{line}");
        }
        lines
    }
}

/// Errors on a page, and errors that are returned to the app by redirect.
async fn authorization_requests(engine: Engine) {
    let mut refusals = RefusalLog::new(engine).await;
    let redirect = "https://app.example/other?x=very-secret-query-6#very-secret-query-6";
    let address = refusals.home.request(&[("redirect_uri", redirect), ("login_hint", "ann@secret.example")]);
    refusals
        .send_refused(
            (Method::GET, &address),
            &[],
            "",
            &[
                ("endpoint", "/connect/authorize"),
                ("app_name", "Harbour Ledger"),
                ("error", "unknown_redirect"),
                ("reason", "redirect_uri is none"),
                ("sent", "redirect_uri=\"https://app.example/other?..\""),
                ("sent", "login_hint=\"..\""),
                ("registered", "redirect_uri=\"https://app.example/callback\""),
            ],
        )
        .await;
    let unknown = [("client_id", "harbour"), ("state", "very-secret-state-5")];
    refusals
        .authorize(&unknown, &[("app", "harbour"), ("error", "unknown_client"), ("registered", "no such")])
        .await;
    refusals.authorize(&[("client_id", "")], &[("error", "missing_client")]).await;
    let capitals = id(&refusals.home.app).to_uppercase();
    refusals
        .authorize(
            &[("client_id", &capitals)],
            &[("error", "unknown_client"), ("app_name", "Harbour"), ("registered", "client_id=\"0")],
        )
        .await;
    refusals
        .authorize(
            &[("code_challenge", "")],
            &[
                ("error", "invalid_request"),
                ("reason", "code_challenge"),
                ("registered", "pkce=\"optional\""),
            ],
        )
        .await;
    let path = format!("/api/management/v2/ClientApp/{}", id(&refusals.home.app));
    let now = refusals.server.admin.get(&path).await.is(200).json();
    let required = json!({ "pkce": "Required", "concurrencyToken": now["concurrencyToken"] });
    refusals.server.admin.patch(&path, required).await.expect(202);
    refusals
        .authorize(
            &[("code_challenge", ""), ("code_challenge_method", "")],
            &[
                ("error", "invalid_request"),
                ("reason", "code_challenge"),
                ("registered", "pkce=\"required\""),
            ],
        )
        .await;
    refusals
        .authorize(
            &[("scope", "everything")],
            &[("error", "invalid_scope"), ("sent", "scope=\"everything\""), ("registered", "scope=\"\"")],
        )
        .await;
    refusals
        .authorize(
            &[("resource", "https://api.example/?a=very-secret-query-6")],
            &[("error", "invalid_target"), ("sent", "resource=\"https://api.example/?..\"")],
        )
        .await;
    refusals
        .authorize(&[("prompt", "none")], &[("error", "login_required"), ("sent", "prompt=\"none\"")])
        .await;
    refusals.check();
}

/// Errors at the end of a flow, at the end of a session, and at an unknown tenant.
async fn pages(engine: Engine) {
    let mut refusals = RefusalLog::new(engine).await;
    let (own, base) = (id(&refusals.home.app).to_owned(), refusals.server.base.clone());
    let mut browser = Browser::of(&refusals.client, &base);
    let page = browser.open(&refusals.home.request(&[("state", "very-secret-state-5")])).await;
    let consent = browser.type_password(&page, "ann", PASSWORD).await;
    let trace = refusals.trace();
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let denied = [("csrf", consent.field("csrf")), ("decision", "deny".to_owned())];
    let denied: Vec<_> = denied.iter().map(|(name, value)| (*name, value.as_str())).collect();
    browser.post(&consent.action(), &denied, &[("traceparent", &parent)]).await;
    let of_flow = &[
        ("endpoint", "/signin/{step}"),
        ("error", "access_denied"),
        ("app_name", "Harbour Ledger"),
        ("sent", "redirect_uri=\"https://app.example/callback\""),
        ("sent", "state=\"..\""),
    ];
    refusals.expected.push((trace, of_flow));
    let wrong = format!("/connect/endsession?client_id={own}&post_logout_redirect_uri=");
    let address = format!("{wrong}{}", encode("https://app.example/elsewhere?a=very-secret-query-6"));
    refusals
        .send_refused(
            (Method::GET, &address),
            &[],
            "",
            &[
                ("endpoint", "/connect/endsession"),
                ("reason", "post_logout_redirect_uri is none"),
                ("sent", "post_logout_redirect_uri=\"https://app.example/elsewhere?..\""),
                ("registered", "post_logout_redirect_uri=\"https://app.example/bye\""),
            ],
        )
        .await;
    let without_client = "/connect/endsession?post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fbye";
    refusals.send_refused((Method::GET, without_client), &[], "", &[("reason", "needs a client_id")]).await;
    let unknown_tenant = format!("/t/{}{}", Uuid::nil(), refusals.home.request(&[]));
    refusals
        .send_refused(
            (Method::GET, &unknown_tenant),
            &[],
            "",
            &[("issuer", "/t/00000000"), ("reason", "no such tenant"), ("app_name", "Harbour")],
        )
        .await;
    // on a page as well, once, and with its name
    let people = ("accept", "text/html");
    let page = refusals
        .send_refused(
            (Method::GET, &unknown_tenant),
            &[people],
            "",
            &[("issuer", "/t/00000000"), ("reason", "no such tenant"), ("app_name", "Harbour")],
        )
        .await;
    let html = String::from_utf8_lossy(&page.bytes).into_owned();
    assert!(html.contains(&format!("client_id={own}")), "the same page in each language: {html}");
    let address = format!("/connect/endsession?client_id={own}&ui_locales=de");
    let page = refusals
        .send_refused(
            (Method::POST, &address),
            &[people, FORM],
            "a=%ff",
            &[("error", "invalid_request"), ("app_name", "Harbour"), ("sent", "ui_locales=\"de\"")],
        )
        .await;
    assert!(String::from_utf8_lossy(&page.bytes).contains("<html lang=\"de\""));
    // in addition to a secret, a malformed id may be one
    let token = format!("/t/{}/connect/token?client_id=very-secret-password-4", Uuid::nil());
    refusals
        .send_refused(
            (Method::POST, &token),
            &[FORM],
            "grant_type=client_credentials",
            &[("reason", "no such tenant"), ("app", "no id, 22 characters")],
        )
        .await;
    let address = refusals.home.request(&[("state", &"s".repeat(9_000))]);
    let page = refusals.send_refused((Method::GET, &address), &[], "", &[("error", "too_long")]).await;
    assert!(String::from_utf8_lossy(&page.bytes).contains("too long"));
    refusals.check();
}

/// Errors at client authentication.
async fn requests_of_apps(engine: Engine) {
    let mut refusals = RefusalLog::new(engine).await;
    let (own, secret) = (id(&refusals.home.app).to_owned(), refusals.home.secret.clone());
    let code = [
        ("grant_type", "authorization_code"),
        ("client_id", own.as_str()),
        ("client_secret", "very-secret-password-4"),
        ("code", "very-secret-code-1"),
        ("code_verifier", "very-secret-verifier-2"),
        ("redirect_uri", CALLBACK),
        ("a-very-secret-token-3", "very-secret-token-3"),
    ];
    refusals
        .post(
            "/connect/token",
            &code,
            &[
                ("endpoint", "/connect/token"),
                ("app_name", "Harbour Ledger"),
                ("error", "invalid_client"),
                ("sent", "token_endpoint_auth_method=\"client_secret_post\""),
                ("sent", "grant_type=\"authorization_code\""),
                ("sent", "code_verifier=\"..\""),
                ("registered", "token_endpoint_auth_method=\"client_secret_basic client_secret_post\""),
                ("registered", "secrets=\"1\" expired_secrets=\"0\""),
            ],
        )
        .await;
    let proven = |field: (&'static str, &'static str), more: &[(&'static str, &'static str)]| {
        let mut fields = vec![field];
        fields.extend_from_slice(more);
        fields
    };
    let mut send = async |path: &str, fields: Vec<(&'static str, &'static str)>, expected_members| {
        let credentials = [("client_id", own.as_str()), ("client_secret", secret.as_str())];
        let all: Vec<(&str, &str)> = fields.iter().copied().chain(credentials).collect();
        refusals.post(path, &all, expected_members).await;
    };
    let code = proven(("grant_type", "authorization_code"), &[("code", "very-secret-code-1")]);
    let complete = [code.clone(), vec![("redirect_uri", CALLBACK)]].concat();
    send("/connect/token", code, &[("error", "invalid_request"), ("reason", "redirect_uri is missing")])
        .await;
    send("/connect/token", complete, &[("error", "invalid_grant"), ("reason", "not known")]).await;
    let refresh = proven(("grant_type", "refresh_token"), &[("refresh_token", "very-secret-token-3")]);
    send("/connect/token", refresh, &[("error", "invalid_grant"), ("sent", "refresh_token=\"..\"")]).await;
    let typed = proven(("grant_type", "password"), &[("password", "very-secret-password-4")]);
    send("/connect/token", typed, &[("error", "unsupported_grant_type"), ("sent", "\"password\"")]).await;
    let resource = proven(("grant_type", "client_credentials"), &[("resource", "https://api.example/")]);
    send("/connect/token", resource, &[("error", "invalid_target"), ("registered", "resource=\"\"")]).await;
    let device = proven(("scope", "nothing"), &[]);
    send(
        "/connect/deviceauthorization",
        device,
        &[("error", "invalid_scope"), ("registered", "device_code=\"true\"")],
    )
    .await;
    send("/connect/introspect", proven(("token_type_hint", "x"), &[]), &[("reason", "token is missing")])
        .await;
    // the two parts of the header are exchanged
    let exchanged = BASE64_STANDARD.encode(format!("{secret}:{own}"));
    let basic = format!("Basic {exchanged}");
    let revoke = (Method::POST, "/connect/revoke");
    refusals
        .send_refused(
            revoke,
            &[FORM, ("authorization", &basic)],
            "token=very-secret-token-3",
            &[("endpoint", "/connect/revoke"), ("app", "no id, "), ("error", "invalid_client")],
        )
        .await;
    refusals.check();
}

/// A waiting device, and a proof without a nonce, are usual; a flood is counted, and logged in part.
#[tokio::test]
async fn a_flood_of_refused_requests_is_counted() {
    let refusals = RefusalLog::new(Engine::Sqlite).await;
    let (own, secret) = (id(&refusals.home.app), refusals.home.secret.as_str());
    let proven = [("client_id", own), ("client_secret", secret)];
    let body = form(proven.into_iter());
    let device = refusals
        .client
        .send(Method::POST, "/connect/deviceauthorization", &[FORM], body.into_bytes())
        .await
        .is(200)
        .json();
    let code = device["device_code"].as_str().unwrap();
    let grant = "urn:ietf:params:oauth:grant-type:device_code";
    let waiting = form([("grant_type", grant), ("device_code", code)].into_iter().chain(proven));
    refusals.client.ask_for_token(&waiting).await.expect(400);
    let began = Instant::now();
    for _ in 0..60 {
        refusals.client.send(Method::GET, "/connect/authorize?client_id=x", &[], vec![]).await.expect(400);
    }
    let most = (began.elapsed().as_secs() + 2) * 10;
    let metrics = refusals.server.admin.get("/metrics").await;
    let metrics = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    let counted =
        "chancery_refused_requests_total{endpoint=\"/connect/authorize\",error=\"missing_redirect\"} 60";
    assert!(metrics.contains(counted), "{metrics}");
    assert!(
        !metrics.contains("refused_requests_total{endpoint=\"/connect/token\""),
        "a device that waits: {metrics}"
    );
    let lines = refusals.check();
    assert!(u64::try_from(lines.len()).unwrap() <= most, "{} of {most}", lines.len());
    let untold: u64 = lines.iter().map(|line| line["untold"].as_u64().unwrap()).sum();
    assert!(lines.len() >= 10 && untold + u64::try_from(lines.len()).unwrap() <= 60, "{untold}");
}

#[tokio::test]
async fn refused_authorization_requests_are_logged() {
    authorization_requests(Engine::Sqlite).await;
    authorization_requests(Engine::Postgres).await;
}

#[tokio::test]
async fn refusals_of_other_pages_are_logged() {
    pages(Engine::Sqlite).await;
    pages(Engine::Postgres).await;
}

#[tokio::test]
async fn a_store_with_a_configuration_error_is_logged_as_the_reason() {
    let mut refusals = RefusalLog::new(Engine::Sqlite).await;
    let admin = &refusals.server.admin;
    let filter = encode("name eq \"PasskeyAllowedOrigins\"");
    let options = admin.get(&format!("{BASE}/Option?filter={filter}")).await.is(200).json();
    let wrong = json!({ "value": "example.com", "concurrencyToken": options[0]["concurrencyToken"] });
    let option = admin.patch(&format!("{BASE}/Option/{}", id(&options[0])), wrong).await.is(202).json();
    assert_eq!(option["hasConfigurationError"], true);
    refusals.authorize(&[], &[("error", "not_set_up"), ("reason", "without a configuration error")]).await;
    refusals.check();
}

#[tokio::test]
async fn refused_requests_of_apps_are_logged() {
    requests_of_apps(Engine::Sqlite).await;
    requests_of_apps(Engine::Postgres).await;
}
