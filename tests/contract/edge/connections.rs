//! Limits on connections, and timeouts.

use chancery_testkit::{Database, Engine, Process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{connect, ended, receive, send};

const GET: &str = "GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n";

/// A2: silent sockets, many more than connections are allowed, do not block others, from the same address or another.
#[tokio::test]
async fn silent_sockets_do_not_block_others() {
    for limit in [("CHANCERY_MAX_CONNECTIONS", "20"), ("CHANCERY_MAX_CONNECTIONS_PER_ADDRESS", "20")] {
        let database = Database::create(Engine::Sqlite);
        let server = Process::start(&database, &[limit]).await;
        let mut used = connect(&server.base).await;
        send(&mut used, GET).await;
        receive(&mut used).await;
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(connect(&server.base).await);
        }
        let mut connection = connect(&server.base).await;
        send(&mut connection, GET).await;
        assert!(receive(&mut connection).await.0.starts_with("http/1.1 200"));
        send(&mut used, GET).await;
        assert!(receive(&mut used).await.0.starts_with("http/1.1 200"), "who was here before stays");
        // the newest silent ones were closed
        ended(&mut silent[98]).await;
        let metrics = server.admin.get("/metrics").await.is(200);
        let text = String::from_utf8(metrics.bytes.to_vec()).unwrap();
        let evicted =
            text.lines().find_map(|line| line.strip_prefix("chancery_connections_gave_way_total ")).unwrap();
        assert!(evicted.parse::<u32>().unwrap() >= 80, "{evicted}");
    }
}

/// Limits: a TLS handshake that is not completed times out.
#[tokio::test]
async fn a_tls_handshake_times_out() {
    let database = Database::create(Engine::Sqlite);
    let (certificate, key) = (database.folder().join("cert.pem"), database.folder().join("key.pem"));
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    database.write_private("key.pem", certified.signing_key.serialize_pem());
    let tls = [
        ("CHANCERY_TLS_CERTIFICATE", certificate.to_str().unwrap()),
        ("CHANCERY_TLS_KEY", key.to_str().unwrap()),
    ];
    let server = Process::start_unready(&database, &tls);
    let address = server.base.rsplit('/').next().unwrap();
    let (mut silent, mut partial) = (connect(address).await, connect(address).await);
    // the head of a ClientHello without the rest
    partial.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
    tokio::join!(ended(&mut silent), ended(&mut partial));
}

/// A2: idle connections are closed, with HTTP/1.1 and with HTTP/2, whatever pings are sent.
#[tokio::test]
async fn idle_connections_are_closed() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start_unready(&database, &[("CHANCERY_IDLE_TIME", "1")]);
    let mut first = connect(&server.base).await;
    send(&mut first, GET).await;
    receive(&mut first).await;
    ended(&mut first).await;
    let mut second = connect(&server.base).await;
    // a preface, empty settings, and a request for "/"
    second.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    second.write_all(b"\0\0\x06\x01\x05\0\0\0\x01\x82\x84\x86\x41\x01a").await.unwrap();
    let (mut reader, mut writer) = second.split();
    let ping = async {
        while writer.write_all(b"\0\0\x08\x06\0\0\0\0\x0012345678").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(super::BOUND, reader.read_to_end(&mut bytes));
    tokio::select! {
        ended = read => assert!(ended.is_ok(), "it is ended"),
        () = ping => {}
    }
}
