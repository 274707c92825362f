//! Requests to a server in the test.

#![expect(clippy::unwrap_used, reason = "tests fail by it, and read as they are written")]

mod test_server;

use chancery_fetch::{
    Connections, Failure, Limits, Networks, Outbound, Permission, Policy, Pool, PostBody, deliver, exchange,
    get, post,
};
use test_server::TestServer;

fn permission() -> Permission {
    Outbound::On.permission().unwrap()
}

const LIMITS: Limits = Limits { bytes: 1_000, seconds: 5 };
const SHORT: Limits = Limits { bytes: 1_000, seconds: 1 };

fn plain() -> Policy {
    Policy { networks: "127.0.0.0/8, ::1".parse().unwrap(), plain_loopback: true, ..Policy::default() }
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\n\r\n{body}")
}

async fn from(answer: &str, limits: Limits) -> Result<Vec<u8>, Failure> {
    let server = TestServer::plain(answer.as_bytes()).await;
    get(&server.url("/keys"), limits, &plain()).await
}

#[tokio::test]
async fn a_document_is_fetched() {
    let server = TestServer::plain(answer("200 OK\r\nContent-Length: 5", "hello").as_bytes()).await;
    assert_eq!(get(&server.url("/a/b?c=d#e"), LIMITS, &plain()).await.unwrap(), b"hello");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let requests = requests[0].to_ascii_lowercase();
    assert!(requests.starts_with("get /a/b?c=d http/1.1\r\n"), "{requests}");
    assert!(requests.contains(&format!("host: {}\r\n", server.address)), "{requests}");
    assert!(
        requests.contains(&format!("user-agent: chancery/{}\r\n", env!("CARGO_PKG_VERSION"))),
        "{requests}"
    );
}

#[tokio::test]
async fn a_chunked_or_unbounded_document_is_fetched() {
    let chunked = answer("200 OK\r\nTransfer-Encoding: chunked", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    assert_eq!(from(&chunked, LIMITS).await.unwrap(), b"abcde");
    assert_eq!(from(&answer("200 OK\r\nConnection: close", "abc"), LIMITS).await.unwrap(), b"abc");
}

#[tokio::test]
async fn size_is_bounded() {
    let full = "x".repeat(1_000);
    assert_eq!(from(&answer("200 OK\r\nContent-Length: 1000", &full), LIMITS).await.unwrap().len(), 1_000);
    for large in [
        // declared and never sent
        answer("200 OK\r\nContent-Length: 1001", ""),
        answer("200 OK\r\nContent-Length: 18446744073709551000", ""),
        // not declared
        answer("200 OK", &format!("{full}x")),
        answer("200 OK\r\nTransfer-Encoding: chunked", &format!("3e8\r\n{full}\r\n1\r\nx\r\n0\r\n\r\n")),
    ] {
        assert_eq!(from(&large, LIMITS).await, Err(Failure::TooLarge), "{large}");
    }
    // a head without an end
    let head = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(200_000));
    assert_eq!(from(&head, LIMITS).await, Err(Failure::Broken));
}

#[tokio::test]
async fn time_is_bounded() {
    for silent in [String::new(), "HTTP/1.1 200".to_owned(), answer("200 OK\r\nContent-Length: 9", "half")] {
        let server = TestServer::silent_after(silent.as_bytes()).await;
        assert_eq!(get(&server.url("/"), SHORT, &plain()).await, Err(Failure::TimedOut), "{silent}");
    }
    // a server that never answers the TLS handshake
    let server = TestServer::silent_after(b"").await;
    let private = Policy { networks: Networks::all(), ..Policy::default() };
    let url = server.url("/").replace("http:", "https:");
    assert_eq!(get(&url, SHORT, &private).await, Err(Failure::TimedOut));
}

#[tokio::test]
async fn only_200_is_accepted_and_no_redirect_is_followed() {
    let redirect_target = TestServer::plain(answer("200 OK\r\nContent-Length: 2", "no").as_bytes()).await;
    for status in [301, 302, 303, 307, 308] {
        let redirect = answer(
            &format!("{status} Elsewhere\r\nLocation: {}\r\nContent-Length: 0", redirect_target.url("/")),
            "",
        );
        assert_eq!(from(&redirect, LIMITS).await, Err(Failure::Status(status)));
    }
    assert!(redirect_target.requests().is_empty());
    for status in [201, 204, 206, 304, 400, 401, 404, 500, 503] {
        let other = answer(&format!("{status} Other\r\nContent-Length: 0"), "");
        assert_eq!(from(&other, LIMITS).await, Err(Failure::Status(status)));
    }
}

/// The body of an error response is read only on request, and within the same limits.
#[tokio::test]
async fn error_responses_are_read_on_request() {
    let refused = answer("400 Bad Request\r\nContent-Length: 2", "no");
    let server = TestServer::plain(refused.as_bytes()).await;
    let form = || "a=b".to_owned();
    let response = exchange(&server.url("/token"), form(), LIMITS, &plain()).await.unwrap();
    assert_eq!(response, (400, b"no".to_vec()));
    assert!(server.requests()[0].starts_with("POST /token "), "{:?}", server.requests());
    assert_eq!(post(permission(), &server.url("/"), PostBody::form(form()), LIMITS, &plain()).await, Ok(400));
    let large = answer("400 Bad Request\r\nContent-Length: 1001", "");
    let server = TestServer::plain(large.as_bytes()).await;
    assert_eq!(exchange(&server.url("/"), form(), LIMITS, &plain()).await, Err(Failure::TooLarge));
}

#[tokio::test]
async fn truncated_or_malformed_responses_are_failures() {
    let broken = answer("200 OK\r\nContent-Length: 10", "half");
    assert_eq!(from(&broken, LIMITS).await, Err(Failure::Broken));
    assert_eq!(from("SSH-2.0-x\r\n", LIMITS).await, Err(Failure::Broken));
    assert_eq!(from("", LIMITS).await, Err(Failure::Broken));
}

/// Delivers an empty body to this server for an owner, and returns the status.
async fn deliver_to(
    server: &TestServer,
    connections: &Connections,
    owner: u128,
    policy: &Policy,
) -> Result<u16, Failure> {
    let (body, pool) = (PostBody::json(String::new()), Pool { connections, owner });
    deliver(permission(), &server.url("/hook"), body, SHORT, policy, pool).await.map(|(status, _)| status)
}

#[tokio::test]
async fn a_pooled_connection_is_reused_only_by_its_owner() {
    let connections = Connections::default();
    let server = TestServer::keep_alive(answer("200 OK\r\nContent-Length: 2", "ok").as_bytes()).await;
    for (owner, expected) in [(1, 1), (1, 1), (2, 2), (1, 2), (2, 2)] {
        assert_eq!(deliver_to(&server, &connections, owner, &plain()).await, Ok(200));
        assert_eq!(server.connections(), expected);
    }
    assert_eq!(server.requests().len(), 5);
    // the destination is checked each time
    assert_eq!(deliver_to(&server, &connections, 1, &Policy::default()).await, Err(Failure::Scheme));
    let other = TestServer::keep_alive(answer("200 OK\r\nContent-Length: 0", "").as_bytes()).await;
    assert_eq!(deliver_to(&other, &connections, 1, &plain()).await, Ok(200));
    assert_eq!((server.connections(), other.connections()), (2, 1));
}

#[tokio::test]
async fn a_connection_with_an_unread_response_is_not_pooled() {
    let large = answer("200 OK\r\nContent-Length: 1001", &"x".repeat(1_001));
    let unfinished = answer("200 OK\r\nContent-Length: 3", "ok");
    for response in [large, unfinished, answer("200 OK\r\nContent-Length: 0\r\nConnection: close", "")] {
        let (connections, server) =
            (Connections::default(), TestServer::keep_alive(response.as_bytes()).await);
        for expected in [1, 2] {
            assert_eq!(deliver_to(&server, &connections, 1, &plain()).await, Ok(200), "{response}");
            assert_eq!(server.connections(), expected, "{response}");
        }
    }
}

#[tokio::test]
async fn a_pooled_connection_that_was_closed_is_replaced() {
    let connections = Connections::default();
    let server = TestServer::plain(answer("204 No", "").as_bytes()).await;
    for count in [1, 2, 3] {
        assert_eq!(deliver_to(&server, &connections, 1, &plain()).await, Ok(204));
        assert_eq!(server.connections(), count);
    }
}

#[tokio::test]
async fn addresses_that_are_not_public_are_rejected() {
    let server = TestServer::plain(answer("200 OK\r\nContent-Length: 2", "no").as_bytes()).await;
    let port = server.address.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "10.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "[fd00::1]",
        "[fe80::1]",
        "224.0.0.1",
        "[ff02::1]",
    ] {
        let refused = get(&format!("https://{host}:{port}/"), LIMITS, &Policy::default()).await;
        assert_eq!(refused, Err(Failure::Address), "{host}");
        // allowing loopback over http does not allow it over https
        let no_networks = Policy { networks: Networks::default(), ..plain() };
        assert_eq!(
            get(&format!("https://{host}:{port}/"), LIMITS, &no_networks).await,
            Err(Failure::Address)
        );
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn plain_http_is_limited_to_allowed_loopback_addresses() {
    let server = TestServer::plain(answer("200 OK\r\nContent-Length: 2", "no").as_bytes()).await;
    let private = Policy { networks: Networks::all(), ..Policy::default() };
    for policy in [Policy::default(), private] {
        assert_eq!(get(&server.url("/"), LIMITS, &policy).await, Err(Failure::Scheme));
    }
    assert!(server.requests().is_empty());
    let all = Policy { networks: Networks::all(), ..plain() };
    for host in ["1.1.1.1", "10.0.0.1", "[2606:4700::1111]"] {
        assert_eq!(get(&format!("http://{host}/"), LIMITS, &all).await, Err(Failure::Address));
    }
}

#[tokio::test]
async fn invalid_urls_are_rejected() {
    let long = format!("https://a.example/{}", "x".repeat(2_048));
    for (url, failure) in [
        ("", Failure::Url),
        ("a.example", Failure::Url),
        ("https://", Failure::Url),
        ("https://user@a.example/", Failure::Url),
        ("https://user:word@a.example/", Failure::Url),
        ("https://a.example:99999/", Failure::Url),
        (long.as_str(), Failure::Url),
        ("ftp://a.example/", Failure::Scheme),
        ("file:///etc/passwd", Failure::Scheme),
        ("data:,x", Failure::Scheme),
        ("http://a.example/", Failure::Scheme),
        ("https://nothing.invalid/", Failure::Name),
    ] {
        assert_eq!(get(url, LIMITS, &Policy::default()).await, Err(failure), "{url}");
    }
}

#[tokio::test]
async fn tls_trusts_the_given_root_for_the_requested_name() {
    let (server, root) = TestServer::tls(answer("200 OK\r\nContent-Length: 5", "hello").as_bytes()).await;
    let port = server.address.port();
    let trusting = Policy { networks: Networks::all(), roots: vec![root], ..Policy::default() };
    let by_name = format!("https://localhost:{port}/");
    assert_eq!(get(&by_name, LIMITS, &trusting).await.unwrap(), b"hello");
    // the certificate is not for the address
    let by_address = format!("https://127.0.0.1:{port}/");
    assert_eq!(get(&by_address, LIMITS, &trusting).await, Err(Failure::Tls));
    // the system does not know the root
    let private = Policy { roots: vec![b"no root".to_vec()], ..trusting.clone() };
    assert_eq!(get(&by_name, LIMITS, &private).await, Err(Failure::Tls));
    // nor does trusting it make the address public
    let public = Policy { networks: Networks::default(), ..trusting };
    assert_eq!(get(&by_name, LIMITS, &public).await, Err(Failure::Address));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_closed_port_is_a_failure() {
    // bound, so that no other process gets the port, and not listened on
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    assert_eq!(get(&url, LIMITS, &plain()).await, Err(Failure::Connect));
}

#[test]
fn failures_have_texts() {
    assert_eq!(Failure::Status(302).to_string(), "the host answered 302 instead of 200");
    let text = Failure::Address.to_string();
    assert!(text.contains("not on the public internet") && text.contains("CHANCERY_PRIVATE_DESTINATIONS"));
}

/// Without TLS only listed addresses of this machine are reached.
#[tokio::test]
async fn plain_http_reaches_listed_addresses_only() {
    let server = TestServer::plain(answer("200 OK", "hello").as_bytes()).await;
    for (networks, is_reached) in
        [("127.0.0.1", true), ("127.0.0.0/8", true), ("127.0.0.2", false), ("::1", false), ("", false)]
    {
        let policy =
            Policy { networks: networks.parse().unwrap(), plain_loopback: true, ..Policy::default() };
        let got = get(&server.url("/"), LIMITS, &policy).await;
        if is_reached {
            assert_eq!(got.unwrap(), b"hello", "{networks}");
        } else {
            assert_eq!(got, Err(Failure::Address), "{networks}");
        }
    }
}
