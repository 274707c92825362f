//! The console at an address of its own.

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
