//! A public URL with a path: every link stays below it, behind a proxy that strips the path and behind one that does not.

use std::{
    collections::{BTreeSet, VecDeque},
    path::Path,
};

use chancery_testkit::{Answer, Client, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{
    BASE, Browser, PASSWORD, SignInApp,
    browser::Page,
    claims, parameter,
    reset::{request_link, wait_for},
    tenant_option,
};
use crate::{
    console::{assign, person, sign_in},
    id,
    signing::set_mail_server,
};

/// Maximum number of pages that are visited.
const PAGES: usize = 150;

/// Further arguments of a server below a path.
fn below_a_path(_: &Path) -> Vec<String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("http://localhost:{}/id", address.port());
    ["--listen", &address.to_string(), "--public-url", &url].map(str::to_owned).to_vec()
}

/// Two browsers: one sends requests unchanged, a proxy strips the path from the requests of the other.
fn browsers(world: &World) -> [Browser; 2] {
    let origin = world.base.strip_suffix("/id").unwrap();
    [false, true].map(|is_taken_off| {
        let mut browser = Browser::of(&Client::anonymous(origin), &world.base);
        browser.is_taken_off = is_taken_off;
        browser
    })
}

/// Attributes of a page that contain a path of this host.
fn paths(html: &str) -> Vec<(&str, &str)> {
    let tags = html.split('<').skip(1).map(|tag| tag.split('>').next().unwrap());
    let attributes = tags.flat_map(|tag| {
        tag.split("=\"/")
            .collect::<Vec<_>>()
            .windows(2)
            .map(|pair| {
                let name = pair[0].rsplit([' ', '\n', '"']).next().unwrap();
                (name, pair[1].split('"').next().unwrap())
            })
            .collect::<Vec<_>>()
    });
    attributes.filter(|(name, _)| *name != "value").collect()
}

/// Asserts that all links of an answer stay below the path.
fn assert_links_below(answer: &Answer, from: &str) {
    for name in ["location", "refresh", "link", "speculation-rules"] {
        for value in answer.headers.get_all(name) {
            let value = value.to_str().unwrap().trim_start_matches(|letter| "<\"".contains(letter));
            let address = value.strip_prefix("0; url=").unwrap_or(value);
            assert!(!address.starts_with('/') || address.starts_with("/id/"), "{from}: {name}: {value}");
        }
    }
    if !answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
        return;
    }
    let html = String::from_utf8(answer.bytes.to_vec()).unwrap().replace("&#x2f;", "/");
    for (name, path) in paths(&html) {
        assert!(path == "id" || path.starts_with("id/"), "{from}: {name} leads to /{path}");
    }
    assert!(!html.contains("url(/"), "{from}");
}

/// A URL without its ids, so that pages of one kind are equal.
fn without_ids(address: &str) -> String {
    let path = address.split(['?', '#']).next().unwrap();
    let known = |segment: &str| if segment.len() == 36 { "*".to_owned() } else { segment.to_owned() };
    path.split('/').map(known).collect::<Vec<_>>().join("/")
}

/// Opens each kind of console page that is reachable from this one; returns their number.
async fn visit_pages(browser: &mut Browser, from: &str) -> usize {
    let (mut waiting, mut seen) = (VecDeque::from([from.to_owned()]), BTreeSet::new());
    while let Some(address) = waiting.pop_front().filter(|_| seen.len() < PAGES) {
        let answer = browser.open_with(&address, &[]).await;
        assert!(answer.status.as_u16() < 400, "{address}: {}", answer.status);
        assert_links_below(&answer, &address);
        let html = String::from_utf8_lossy(&answer.bytes).replace("&#x2f;", "/").replace("&amp;", "&");
        for (name, path) in paths(&html) {
            let next = format!("/{path}");
            // re-authentication leads to the sign-in; look-ups of fields require a search term
            let is_walked =
                !matches!(name, "action" | "formaction" | "data-search") && !next.ends_with("/proof");
            if is_walked && next.starts_with("/id/console") && seen.insert(without_ids(&next)) {
                waiting.push_back(next);
            }
        }
    }
    seen.len()
}

/// Signs in to the app, and asserts that every page on the way stays below the path.
async fn code_of(home: &SignInApp, browser: &mut Browser) -> String {
    let redirect = browser.open_with(&format!("/id{}", home.request(&[])), &[]).await;
    assert_links_below(&redirect, "the authorization endpoint");
    let page = browser.open(redirect.header("location").unwrap()).await;
    assert_links_below(&page.answer, "the sign-in page");
    assert!(page.action().starts_with("/id/signin/"), "{}", page.action());
    let next = browser.type_password(&page, "ann", PASSWORD).await;
    assert_links_below(&next.answer, "the page that leads on");
    parameter(&browser.continue_to_app(&next).await, "code").unwrap()
}

/// A page outside of flows.
async fn other_page(browser: &mut Browser, address: &str) -> Page {
    let page = browser.open(address).await;
    assert_links_below(&page.answer, address);
    page
}

fn assert_all_below(base: &str, metadata: &Value) {
    for (name, value) in metadata.as_object().unwrap() {
        if let Some(address) = value.as_str().filter(|value| value.starts_with("http")) {
            assert!(address.starts_with(base), "{name}: {address}");
        }
    }
}

on_both_engines! {
    [below_a_path]
    async fn people_sign_in_below_the_path(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "PasswordResetEnabled", "true").await;
        for mut browser in browsers(&world) {
            let code = code_of(&home, &mut browser).await;
            let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
            assert_eq!(claims(&tokens["id_token"])["iss"], json!(world.base));
            let token = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
            let response = browser.open_with("/id/connect/userinfo", &[("authorization", &token)]).await;
            assert_eq!(response.is(200).json()["sub"], claims(&tokens["id_token"])["sub"]);
            for address in ["/id/device", "/id/connect/endsession", "/id/connect/authorize", "/id/signin/password"] {
                other_page(&mut browser, address).await;
            }
            let reset = other_page(&mut browser, &format!("/id/t/{}/password/reset", home.tenant)).await;
            assert!(reset.action().starts_with(&format!("/id/t/{}/password/reset", home.tenant)), "{}", reset.action());
            browser.open_with("/id/signin/passkey.js", &[]).await.expect(200);
        }
    }

    /// A mailed link has the path, and opens whether or not a proxy strips it.
    async fn mailed_links_stay_below_the_path(world: World) {
        set_mail_server(&world.admin).await;
        let home = SignInApp::new(&world).await;
        let page_of_tenant = format!("/t/{}/password/reset", home.tenant);
        let [mut direct, behind_proxy] = browsers(&world);
        let page = other_page(&mut direct, &format!("/id{page_of_tenant}")).await;
        request_link(&mut direct, &page, "ann").await;
        let mail = wait_for(&world, 1).await.pop().unwrap();
        let link = mail["link"].as_str().unwrap();
        assert!(link.starts_with(&format!("{}{page_of_tenant}", world.base)), "{link}");
        let path = link.strip_prefix(world.base.strip_suffix("/id").unwrap()).unwrap();
        for mut browser in [direct, behind_proxy] {
            let page = other_page(&mut browser, path).await;
            assert!(page.html.contains("Choose a new password"), "{}", page.html);
        }
    }

    /// A posted authorization request becomes a URL that is too long for a header: a page redirects to it.
    async fn redirects_after_posts_stay_below_the_path(world: World) {
        let home = SignInApp::new(&world).await;
        let request = home.request(&[("state", &"s".repeat(2_048)), ("nonce", &"n".repeat(512))]);
        let sent = request.split_once('?').unwrap().1.split('&').filter_map(|pair| pair.split_once('='));
        let sent: Vec<_> = sent.map(|(name, _)| (name, parameter(&request, name).unwrap())).collect();
        let fields: Vec<_> = sent.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for mut browser in browsers(&world) {
            let led = browser.post("/id/connect/authorize", &fields, &[]).await;
            assert_links_below(&led.answer, "the page that leads on");
            let next = led.html.split("content=\"0;url=").nth(1).unwrap().split('"').next().unwrap();
            assert!(next.starts_with("/id/connect/authorize?"), "{next}");
            let page = browser.open(&next.replace("&amp;", "&")).await;
            assert!(page.action().starts_with("/id/signin/"), "{}", page.html);
        }
    }

    async fn links_of_the_console_stay_below_the_path(world: World) {
        let ada = person(&world, "ada").await;
        assign(&world, &ada, "SystemAdmin", json!({})).await;
        for mut browser in browsers(&world) {
            let page = sign_in(&mut browser, "/id/console", "ada").await;
            assert!(page.status == 200 && page.html.contains("Hello, Ada"), "{}: {}", page.status, page.html);
            assert!(visit_pages(&mut browser, "/id/console").await > 60);
            for address in ["/id", "/id/"] {
                let root = browser.open_with(address, &[]).await.is(303);
                assert_eq!(root.header("location"), Some("/id/console"));
            }
        }
    }

    /// OpenID Connect Discovery appends to an issuer, RFC 8414 inserts before its path.
    async fn discovery_documents_stay_below_the_path(world: World) {
        let tenant = world.admin.get(&format!("{BASE}/Tenant")).await.is(200).json()[0].clone();
        let origin = Client::anonymous(world.base.strip_suffix("/id").unwrap());
        for (issuer, below) in [(world.base.clone(), String::new()), (format!("{}/t/{}", world.base, id(&tenant)), format!("/t/{}", id(&tenant)))] {
            for path in [
                format!("/id{below}/.well-known/openid-configuration"),
                format!("{below}/.well-known/openid-configuration"),
                format!("/.well-known/openid-configuration/id{below}"),
                format!("/.well-known/oauth-authorization-server/id{below}"),
            ] {
                let metadata = origin.get(&path).await.is(200).json();
                assert_eq!(metadata["issuer"], json!(issuer), "{path}");
                assert_all_below(&world.base, &metadata);
            }
        }
        origin.get("/idea/.well-known/openid-configuration").await.problem(404, "no-such-route");
        let document = origin.get("/openapi/management-v2.json").await.is(200).json();
        assert_eq!(document["servers"][0]["url"], json!("/id"));
        for path in ["/id/openapi", "/id/openapi/page.js", "/id/health/ready", "/health/ready"] {
            assert_links_below(&origin.get(path).await.is(200), path);
        }
    }

    async fn links_of_the_apis_stay_below_the_path(world: World) {
        let origin = world.base.strip_suffix("/id").unwrap();
        let direct = Client::anonymous(origin).with_token(world.admin.token());
        // the request has the path, or a proxy has stripped it
        for (caller, name) in [(&world.admin, "one"), (&direct, "two")] {
            let minimal = [("prefer", "return=minimal"), ("content-type", "application/json")];
            let (groups, body) = (world.path("/Group"), json!({ "name": name }).to_string().into_bytes());
            let created = caller.send(Method::POST, &groups, &minimal, body).await.is(201);
            assert!(created.header("location").unwrap().starts_with(&format!("/id{groups}/")));
            let refused = caller.get(&format!("{BASE}/Nothing")).await.problem(404, "no-such-route");
            assert_eq!(refused["instance"], json!(format!("/id{BASE}/Nothing")));
            let list = caller.get(&format!("{BASE}/Option?count=1")).await.is(200);
            assert!(list.header("link").unwrap().starts_with(&format!("<{}{BASE}/Option?", world.base)));
        }
    }
}
