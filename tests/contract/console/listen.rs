//! The console at an address of its own, switched off, or in the clear; and the link by which somebody comes in.

use std::process::Command;

use chancery_testkit::{Client, Database, Engine, Process};

use crate::sign_in::browser::Browser;

/// An address that nobody listens on.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// The address of the internet has the sign-in and no console; that of the console has both.
#[tokio::test]
async fn only_its_own_address_has_the_console() {
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
        // the root leads to what is there
        assert_eq!(outside.get("/").await.is(303).header("location"), Some("/openapi"));
        let inside = Client::anonymous(&public_url);
        assert_eq!(inside.get("/").await.is(303).header("location"), Some("/console"));

        let mut browser = Browser::of(&Client::anonymous(&public_url), &public_url);
        browser.open(&link).await.answer.expect(200);
        let page = browser.open("/console").await;
        assert!(page.html.contains("name=\"password\""), "a sign-in comes first: {}", page.html);
        // the same sign-in goes on at the other address: both are one server
        let mut abroad = Browser::of(&outside, &public_url);
        abroad.cookies.clone_from(&browser.cookies);
        let there = abroad.open(page.address.strip_prefix(&public_url).unwrap_or(&page.address)).await;
        assert!(there.html.contains("name=\"password\""), "{}", there.html);
    }
}

/// Switched off, its paths are as if they were not there, and the rest is.
#[tokio::test]
async fn switched_off_it_is_not_there() {
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

/// In the clear it is for this machine alone: elsewhere it says how to get TLS.
#[tokio::test]
async fn in_the_clear_it_says_how_to_get_tls() {
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

/// A public URL with a host in capitals is of that host: the pages are there, and take the origin as browsers write it.
#[tokio::test]
async fn a_host_in_capitals_is_the_host() {
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

/// Another link is made by the program, with the master key at hand, and ends the former one.
#[tokio::test]
async fn another_link_ends_the_former() {
    let database = Database::create(Engine::Postgres);
    let server = Process::start(&database, &[]).await;
    let path = |text: &str| {
        text.split_once("/console/setup/").map(|(_, code)| format!("/console/setup/{}", code.trim()))
    };
    let first = server.greeting.iter().find_map(|line| path(line)).unwrap();
    let client = Client::anonymous(&server.base);
    client.get(&first).await.expect(200);
    let mut command = Command::new(Process::program());
    command.args(["console-link", "--database", database.url(), "--data-dir"]).arg(database.folder());
    let output = command.output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told} {}", String::from_utf8_lossy(&output.stderr));
    let second = path(&told).unwrap();
    assert_ne!(first, second);
    client.get(&first).await.expect(404);
    client.get(&second).await.expect(200);
}
