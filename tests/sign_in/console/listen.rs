//! The console at its own address, disabled, or without TLS; and the setup link.

use chancery_testkit::{Client, Database, Engine, Process};

use crate::sign_in::browser::Browser;

/// A free local address.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// The public address serves the sign-in, but no console; the address of the console serves both.
#[tokio::test]
async fn the_console_is_served_on_its_own_address_only() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let database = Database::create(engine);
        let (listen, console) = (free_address(), free_address());
        let public_url = format!("http://{console}");
        let environment = [
            ("CHANCERY_LISTEN", listen.as_str()),
            ("CHANCERY_CONSOLE_LISTEN", &console),
            ("CHANCERY_PUBLIC_URL", &public_url),
        ];
        let server = Process::start_unready(&database, &environment);
        let link =
            server.greeting.iter().find_map(|line| line.split_once(&public_url)?.1.strip_prefix("/console"));
        let link = format!("/console{}", link.expect("the first start prints a link"));

        let outside = Client::anonymous(&format!("http://{listen}"));
        for path in ["/console", "/console/signin", "/console/asset/none", &link] {
            outside.get(path).await.expect(404);
        }
        outside.get("/.well-known/openid-configuration").await.expect(200);
        // the root redirects to what is served
        assert_eq!(outside.get("/").await.is(303).header("location"), Some("/openapi"));
        let inside = Client::anonymous(&public_url);
        assert_eq!(inside.get("/").await.is(303).header("location"), Some("/console"));

        let mut browser = Browser::of(&Client::anonymous(&public_url), &public_url);
        browser.open(&link).await.answer.expect(200);
        let page = browser.open("/console").await;
        assert!(page.html.contains("name=\"password\""), "a sign-in comes first: {}", page.html);
        // the sign-in continues at the other address: both belong to one server
        let mut abroad = Browser::of(&outside, &public_url);
        abroad.cookies.clone_from(&browser.cookies);
        let callback = abroad.open(page.address.strip_prefix(&public_url).unwrap_or(&page.address)).await;
        assert!(callback.html.contains("name=\"password\""), "{}", callback.html);
    }
}

/// A disabled console answers as an unknown path; everything else is served.
#[tokio::test]
async fn a_disabled_console_is_not_served() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start_unready(&database, &[("CHANCERY_CONSOLE", "off")]);
    assert!(!server.greeting.iter().any(|line| line.contains("/console")), "{:?}", server.greeting);
    let client = Client::anonymous(&server.base);
    for path in ["/console", "/console/signin", "/console/me", "/console/asset/none"] {
        client.get(path).await.expect(404);
    }
    assert_eq!(client.get("/").await.is(303).header("location"), Some("/openapi"));
    client.get("/.well-known/openid-configuration").await.expect(200);
}

/// Without TLS the console is served on this machine only; elsewhere it explains how to enable TLS.
#[tokio::test]
async fn without_tls_the_console_explains_how_to_enable_it() {
    let database = Database::create(Engine::Sqlite);
    let listen = free_address();
    let environment =
        [("CHANCERY_LISTEN", listen.as_str()), ("CHANCERY_PUBLIC_URL", "http://login.example.com")];
    let _server = Process::start_unready(&database, &environment);
    let client = Client::anonymous(&format!("http://{listen}"));
    let answer = client.get("/console").await.is(503);
    let html = String::from_utf8(answer.bytes.to_vec()).unwrap();
    assert!(html.contains("https") && html.contains("CHANCERY_TLS_CERTIFICATE"), "{html}");
}

/// A public URL with a host in capitals: the pages are served, and accept the origin as browsers send it.
#[tokio::test]
async fn the_host_of_the_public_url_is_case_insensitive() {
    let database = Database::create(Engine::Sqlite);
    let listen = free_address();
    let (_, port) = listen.rsplit_once(':').unwrap();
    let public_url = format!("http://LocalHost:{port}");
    let environment = [("CHANCERY_LISTEN", listen.as_str()), ("CHANCERY_PUBLIC_URL", &public_url)];
    let server = Process::start_unready(&database, &environment);
    let link =
        server.greeting.iter().find_map(|line| line.split_once(&public_url)?.1.strip_prefix("/console"));
    let link = format!("/console{}", link.expect("the first start prints a link"));
    let mut browser = Browser::of(&Client::anonymous(&format!("http://{listen}")), &public_url);
    let page = browser.open(&link).await;
    assert_eq!(page.status, 200, "{}", page.html);
    let page = browser.open("/console").await;
    let csrf = page.field("csrf");
    let typed = [("csrf", csrf.as_str()), ("username", "nobody"), ("password", "a wrong guess")];
    let own = format!("http://localhost:{port}");
    for (origin, status) in [(own.as_str(), 200), ("http://localhost", 403), ("http://id.example", 403)] {
        let answer = browser.post(&page.action(), &typed, &[("origin", origin)]).await;
        assert_eq!(answer.status, status, "{origin}: {}", answer.html);
    }
}

/// The program creates another setup link with the master key, and invalidates the previous one.
#[tokio::test]
async fn a_new_setup_link_invalidates_the_previous_one() {
    let database = Database::create(Engine::Postgres);
    let server = Process::start(&database, &[]).await;
    let path = |text: &str| {
        text.split_once("/console/setup/").map(|(_, code)| format!("/console/setup/{}", code.trim()))
    };
    let first = server.greeting.iter().find_map(|line| path(line)).unwrap();
    let client = Client::anonymous(&server.base);
    client.get(&first).await.expect(200);
    let mut command = Process::command(&["console-link", "--database", database.url(), "--data-dir"]);
    command.arg(database.folder());
    let output = command.output().unwrap();
    let output_text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{output_text} {}", String::from_utf8_lossy(&output.stderr));
    let second = path(&output_text).unwrap();
    assert_ne!(first, second);
    client.get(&first).await.expect(404);
    client.get(&second).await.expect(200);
}
