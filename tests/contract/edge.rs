//! The edge: the parts of a request that are read, the headers of every answer, and admission.

mod bodies;
mod connections;
mod log;
mod proof_limits;
mod reload;
mod stop;

use chancery_testkit::{PATIENCE, on_both_engines};
use http::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::pointers;

const JSON: (&str, &str) = ("content-type", "application/json");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
/// The bound of every wait.
const BOUND: std::time::Duration = PATIENCE;

/// A connection of its own.
async fn connect(base: &str) -> TcpStream {
    TcpStream::connect(base.trim_start_matches("http://")).await.unwrap()
}

/// Sends this.
async fn send(connection: &mut TcpStream, text: &str) {
    connection.write_all(text.as_bytes()).await.unwrap();
}

/// One answer with a known length: its head in lower case, and its body.
async fn receive(connection: &mut TcpStream) -> (String, String) {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return (head, body.to_owned());
            }
        }
        let read = timeout(BOUND, connection.read(&mut chunk)).await.unwrap().unwrap();
        assert!(read > 0, "the connection ended after {text:?}");
        bytes.extend_from_slice(&chunk[..read]);
    }
}

/// Waits until the server ends a connection.
async fn ended(connection: &mut TcpStream) {
    let mut rest = Vec::new();
    assert!(timeout(BOUND, connection.read_to_end(&mut rest)).await.is_ok(), "it is ended");
}

fn unknown_members(count: usize) -> String {
    let members: Vec<String> = (0..count).map(|number| format!("\"m{number}\":1")).collect();
    format!("{{{}}}", members.join(","))
}

on_both_engines! {
    /// A1: a body that is wrong everywhere gets a small answer, with the number of further errors.
    async fn errors_are_bounded(world: World) {
        let body = unknown_members(150_000).into_bytes();
        for (method, path) in [(Method::POST, "/User"), (Method::PATCH, "/User/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f")] {
            let answer = world.admin.send(method, &world.path(path), &[JSON], body.clone()).await;
            assert!(answer.bytes.len() < 64 << 10, "{}", answer.bytes.len());
            let problem = answer.problem(400, "invalid-request");
            assert_eq!(pointers(&problem).len(), 100);
            assert!(problem["moreErrors"].as_u64().unwrap() >= 149_900, "{}", problem["moreErrors"]);
            assert!(problem["detail"].as_str().unwrap().contains("first 100"));
        }
        let elements: Vec<Value> = (0..2_000).map(|_| json!({ "x": 1 })).collect();
        let problem = world.admin.post(&world.path("/User/batch"), json!(elements)).await.problem(400, "invalid-request");
        assert_eq!((pointers(&problem).len(), problem["moreErrors"].as_u64()), (100, Some(3_900)));
        assert_eq!(pointers(&problem)[0], "/0/x");
        let long = format!("{{\"{}\": 1}}", "n".repeat(1 << 20)).into_bytes();
        let answer = world.admin.send(Method::POST, &world.path("/User"), &[JSON], long).await.is(400);
        assert!(answer.bytes.len() < 8 << 10);
    }

    /// A1: up to a hundred errors are all listed, and a batch still reports those of the data, too.
    async fn up_to_a_hundred_errors_are_all_listed(world: World) {
        world.user("ada").await;
        let batch = json!([{ "loginName": "ada" }, { "loginName": "bob", "x": 1 }]);
        let problem = world.admin.post(&world.path("/User/batch"), batch).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/0/loginName", "/1/x"]);
        assert!(problem.get("moreErrors").is_none());
    }

    /// A1: forms and bodies of operations without a token have a bound of their own; so has the memory that a
    /// body takes when it is read.
    async fn bodies_have_bounds_by_their_kind(world: World) {
        let large = vec![b' '; (64 << 10) + 1];
        let change = "/api/userstore/v2/default/PublicAdmin/user/loginname/ada/password/change";
        let problem = world.anonymous.send(Method::POST, change, &[JSON], large.clone()).await.problem(413, "payload-too-large");
        assert!(problem["detail"].as_str().unwrap().contains("65536"));
        for path in ["/connect/token", "/connect/introspect", "/connect/revoke"] {
            let answer = world.anonymous.send(Method::POST, path, &[FORM], large.clone()).await.is(413);
            assert!(answer.json()["error_description"].as_str().unwrap().contains("65536"));
        }
        let many = format!("{{\"relatedIds\": [{}1]}}", "1,".repeat(200_000)).into_bytes();
        let group = world.group("g").await;
        let path = world.path(&format!("/Group/{}/users", crate::id(&group)));
        let problem = world.admin.send(Method::PUT, &path, &[JSON], many).await.problem(400, "invalid-request");
        assert!(problem["detail"].as_str().unwrap().contains("200000 values"));
    }

    /// A bare LF ends no line of a head: a proxy in front may see other headers (RFC 9112, section 2.2).
    async fn lines_end_in_carriage_return_and_line_feed(world: World) {
        for head in [
            "GET /health/live HTTP/1.1\nhost: a\n\n",
            "GET /health/live HTTP/1.1\r\nhost: a\nx: y\r\n\r\n",
            "GET /health/live HTTP/1.1\r\nhost: a\r\n\n",
            "POST /connect/token HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\na\nbGET /health/live HTTP/1.1\nhost: a\n\n",
        ] {
            let mut connection = connect(&world.base).await;
            send(&mut connection, head).await;
            let mut text = Vec::new();
            timeout(BOUND, connection.read_to_end(&mut text)).await.unwrap().unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("HTTP/1.1 400") && !text.contains("HTTP/1.1 200"), "{head:?}: {text}");
        }
        let mut connection = connect(&world.base).await;
        send(&mut connection, "POST /connect/token HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\na\nb").await;
        assert!(receive(&mut connection).await.0.starts_with("http/1.1 4"), "a body may have any");
        send(&mut connection, "GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert!(receive(&mut connection).await.0.starts_with("http/1.1 200"));
    }

    /// B9: a body that is announced to be too large is refused before it is sent, and nothing of a connection
    /// that will not be used again is left open.
    async fn a_body_announced_too_large_is_refused_before_it_is_sent(world: World) {
        let token = world.admin.token();
        for (path, length) in [("/api/userstore/v2/default/administration/User", 11 << 20), ("/connect/token", 65_537)] {
            let mut connection = connect(&world.base).await;
            send(&mut connection, &format!(
                "POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\ncontent-length: {length}\r\n\
                 content-type: application/{}\r\n\r\n",
                if path == "/connect/token" { "x-www-form-urlencoded" } else { "json" },
            )).await;
            let (head, body) = receive(&mut connection).await;
            assert!(head.starts_with("http/1.1 413") && head.contains("connection: close"), "{head}");
            assert!(body.contains("at most"), "{body}");
            // input is still read for a while, so that the answer is not lost
            for _ in 0..64 {
                send(&mut connection, &" ".repeat(1024)).await;
            }
            connection.shutdown().await.unwrap();
            ended(&mut connection).await;
        }
    }

    /// B3: a request that is answered before its body was read leaves a connection that can be used, or says
    /// that it cannot.
    async fn an_unread_body_leaves_a_usable_connection_or_closes_it(world: World) {
        let users = "/api/userstore/v2/default/administration/User";
        let mut connection = connect(&world.base).await;
        for _ in 0..3 {
            send(&mut connection, &format!("POST {users} HTTP/1.1\r\nhost: a\r\ncontent-length: 10000\r\n\r\n")).await;
            send(&mut connection, &"x".repeat(10_000)).await;
            let (head, _) = receive(&mut connection).await;
            assert!(head.starts_with("http/1.1 401") && !head.contains("connection: close"), "{head}");
        }
        for (more, sent) in [("content-length: 10000000", 0), ("transfer-encoding: chunked", 0), ("expect: 100-continue\r\ncontent-length: 9", 0), ("content-length: 9", 3)] {
            let mut connection = connect(&world.base).await;
            send(&mut connection, &format!("POST {users} HTTP/1.1\r\nhost: a\r\n{more}\r\n\r\n{}", "x".repeat(sent))).await;
            let (head, _) = receive(&mut connection).await;
            assert!(head.starts_with("http/1.1 401") && head.contains("connection: close"), "{more}: {head}");
            drop(connection);
        }
    }

    /// An unsupported transfer coding is refused: a proxy in front would read another body than this server.
    async fn an_unsupported_transfer_coding_is_refused(world: World) {
        let users = "/api/userstore/v2/default/administration/User";
        for (coding, status) in [("gzip, chunked", 501), ("chunked, chunked", 501), ("chunked\r\ntransfer-encoding: chunked", 501), ("Chunked", 401)] {
            let mut connection = connect(&world.base).await;
            let body = "2\r\n{}\r\n0\r\n\r\n";
            send(&mut connection, &format!("POST {users} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: {coding}\r\n\r\n{body}")).await;
            let (head, _) = receive(&mut connection).await;
            assert!(head.starts_with(&format!("http/1.1 {status}")), "{coding}: {head}");
            assert!(status != 501 || head.contains("connection: close"), "{head}");
        }
    }

    /// A, also: HTTP/1.1 has a Host, once; HTTP/1.0 needs none. A head has a bound.
    async fn a_request_names_its_host(world: World) {
        for (version, hosts, status) in [("1.1", "", 400), ("1.1", "host: a\r\nhost: b\r\n", 400), ("1.1", "host: a\r\n", 200), ("1.0", "", 200)] {
            let mut connection = connect(&world.base).await;
            send(&mut connection, &format!("GET /health/live HTTP/{version}\r\n{hosts}\r\n")).await;
            let (head, _) = receive(&mut connection).await;
            assert!(head.contains(&format!(" {status} ")), "{version} {hosts:?}: {head}");
        }
        let mut connection = connect(&world.base).await;
        send(&mut connection, &format!("GET /health/live HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "x".repeat(65 << 10))).await;
        let (head, _) = receive(&mut connection).await;
        assert!(head.starts_with("http/1.1 431"), "{head}");
    }

    /// Documents that clients read again and again are cached for five minutes, and then revalidated by their tag.
    async fn discovery_and_keys_may_be_cached(world: World) {
        for path in ["/.well-known/openid-configuration", "/.well-known/jwks.json"] {
            let first = world.anonymous.get(path).await.is(200);
            assert_eq!(first.header("cache-control"), Some("public, max-age=300"), "{path}");
            let tag = first.header("etag").unwrap().to_owned();
            let again = world.anonymous.send(http::Method::GET, path, &[("if-none-match", &tag)], Vec::new()).await;
            assert_eq!((again.header("etag"), again.bytes.len()), (Some(tag.as_str()), 0), "{path}");
            again.expect(304);
        }
    }

    /// A, also: every answer forbids guessing its type; caching needs an explicit header.
    async fn answers_are_protected(world: World) {
        let user = world.user("ada").await;
        let one = world.path(&format!("/User/{}", crate::id(&user)));
        let all = world.path("/User");
        for (path, caching) in [
            (one.as_str(), "no-store"), (&all, "no-store"), ("/nothing", "no-store"), ("/health/live", "no-store"),
            ("/metrics", "no-store"), ("/connect/token", "no-store"), ("/.well-known/jwks.json", "public, max-age=300"),
            ("/.well-known/openid-configuration", "public, max-age=300"), ("/openapi", "no-cache"),
            ("/openapi/userstore-v2.json", "no-cache"), ("/problems/conflict", "no-cache"),
        ] {
            let answer = world.admin.get(path).await;
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
            assert_eq!(answer.header("cache-control"), Some(caching), "{path}");
        }
        let refused = world.anonymous.get(&one).await.is(401);
        assert_eq!((refused.header("x-content-type-options"), refused.header("cache-control")), (Some("nosniff"), Some("no-store")));
    }

    /// A, also: the page of the documentation runs nothing that is not a file of its own.
    async fn the_page_has_a_strict_policy(world: World) {
        let page = world.anonymous.get("/openapi").await.is(200);
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let text = String::from_utf8(page.bytes.to_vec()).unwrap();
        assert!(!text.contains("<style") && !text.contains(" style=") && !text.contains("<script>"), "{text}");
        for (path, content_type) in [("/openapi/page.js", "text/javascript; charset=utf-8"), ("/openapi/page.css", "text/css; charset=utf-8")] {
            assert!(text.contains(path), "{path}");
            let file = world.anonymous.get(path).await.is(200);
            assert_eq!(file.header("content-type"), Some(content_type));
        }
    }
}
