//! Connections over memory, with a paused clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chancery_resource::Part;
use http::Response;
use prometheus_client::metrics::counter::Counter;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    activity::{Activity, Timeouts},
    builder,
    connections::{ConnectionLimits, Connections, Slot},
    request_body::{Bodies, RequestBody},
    serve_connection,
    shutdown::ShutdownStage,
};
use crate::message::answer::{AnswerBody, respond, stream};

const LIMITS: ConnectionLimits = ConnectionLimits { total: 4, per_address: 3 };
const TIMES: Timeouts = Timeouts { idle: Duration::from_mins(1), answer: Duration::from_mins(10) };
const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
/// The preface of HTTP/2 with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\x0012345678";
/// A HEADERS frame of a complete request for "/".
const REQUEST_FRAME: &[u8] = b"\0\0\x06\x01\x05\0\0\0\x01\x82\x84\x86\x41\x01a";

fn admit(connections: &Arc<Connections>) -> Slot {
    connections.admit([192, 0, 2, 1].into()).unwrap()
}

/// Serves a connection that answers with a body created by `body`.
fn serve(
    connections: &Arc<Connections>,
    buffer: usize,
    body: impl Fn() -> Response<AnswerBody> + Clone + Send + Sync + 'static,
) -> (DuplexStream, JoinHandle<()>) {
    let (client, server) = duplex(buffer);
    let (connections, slot) = (Arc::clone(connections), admit(connections));
    let running = tokio::spawn(async move {
        let answer = move |_| {
            let response = body();
            async move { response }
        };
        serve_connection(&builder(), server, &connections, &slot.activity, answer).await;
    });
    (client, running)
}

fn hello() -> Response<AnswerBody> {
    respond(200, "text/plain", "hello")
}

/// After how many seconds the server ends the connection.
async fn lasts(running: JoinHandle<()>) -> u64 {
    let begun = Instant::now();
    running.await.unwrap();
    begun.elapsed().as_secs()
}

async fn answer(client: &mut DuplexStream) -> String {
    let mut bytes = [0; 4096];
    let length = client.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// A2: nothing, half a head and half a preface are ended after 10 seconds, however slowly they arrive.
#[tokio::test(start_paused = true)]
async fn a_head_comes_within_its_time() {
    for begun in [&b""[..], b"GET / HT", b"PRI * HTTP/2.0\r\n", PREFACE] {
        let connections = Connections::new(LIMITS, TIMES);
        let (mut client, running) = serve(&connections, 1024, hello);
        client.write_all(begun).await.unwrap();
        assert_eq!(lasts(running).await, 10, "{:?}", String::from_utf8_lossy(begun));
        assert_eq!(connections.count(), 0);
    }
    let connections = Connections::new(LIMITS, TIMES);
    let (mut client, running) = serve(&connections, 1024, hello);
    let drip = async {
        for byte in b"GET / HTTP/1.1\r\nx: aaaaaaaaaaaaaaaaaaaaaaaaaaa" {
            sleep(Duration::from_secs(1)).await;
            if client.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
    };
    assert_eq!(tokio::join!(lasts(running), drip).0, 10);
}

/// Bounds: an unfinished TLS handshake is ended after 10 seconds, and when the server stops.
#[tokio::test(start_paused = true)]
async fn a_handshake_comes_within_its_time() {
    let connections = Connections::new(LIMITS, TIMES);
    let begun = Instant::now();
    let slot = admit(&connections);
    assert_eq!(slot.activity.in_time(std::future::pending::<()>()).await, None);
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert_eq!(admit(&connections).activity.in_time(async { "hello" }).await, Some("hello"));
    let slot = admit(&connections);
    connections.advance_to(ShutdownStage::Closing);
    assert_eq!(slot.activity.in_time(std::future::pending::<()>()).await, None);
    assert_eq!(begun.elapsed().as_secs(), 18, "it is the last to come");
    let slot = admit(&connections);
    assert!(slot.activity.in_time(sleep(Duration::from_secs(7))).await.is_some());
}

/// Serves a connection that reads a body of up to 1 MiB and answers with the result.
fn reads_a_body(connections: &Arc<Connections>) -> (DuplexStream, JoinHandle<()>) {
    let (client, server) = duplex(1024);
    let (connections, slot) = (Arc::clone(connections), admit(connections));
    let running = tokio::spawn(async move {
        let reading = Arc::clone(&connections);
        let answer = move |request: http::Request<hyper::body::Incoming>| {
            let connections = Arc::clone(&reading);
            async move {
                let (parts, body) = request.into_parts();
                let bodies = Bodies::of(4);
                let mut reservation = bodies.reserve(None, &parts.headers, 1 << 20).await.unwrap();
                let read =
                    RequestBody::from(body).receive(&connections, &parts.headers, &mut reservation).await;
                read.map_or_else(
                    |problem| respond(problem.status(), "text/plain", problem.detail),
                    |bytes| respond(200, "text/plain", bytes),
                )
            }
        };
        serve_connection(&builder(), server, &connections, &slot.activity, answer).await;
    });
    (client, running)
}

const POST: &[u8] = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n";

/// Bounds: a body is given up when 30 seconds pass without a byte, and when it has not arrived after 2
/// minutes, however it drips.
#[tokio::test(start_paused = true)]
async fn a_body_comes_within_its_time() {
    for (rest, lasts) in [(31, 30), (29, 120)] {
        let connections = Connections::new(LIMITS, TIMES);
        let (client, _running) = reads_a_body(&connections);
        let (mut reader, mut writer) = tokio::io::split(client);
        let begun = Instant::now();
        let drip = async {
            writer.write_all(POST).await.unwrap();
            while writer.write_all(b"x").await.is_ok() {
                sleep(Duration::from_secs(rest)).await;
            }
        };
        let mut bytes = [0; 1024];
        let length = tokio::select! {
            length = reader.read(&mut bytes) => length.unwrap(),
            () = drip => panic!("it is answered"),
        };
        let answer = String::from_utf8_lossy(&bytes[..length]);
        assert_eq!(begun.elapsed().as_secs(), lasts);
        assert!(
            answer.starts_with("HTTP/1.1 400")
                && answer.contains("30 seconds passed without a byte of it, or 120 in all"),
            "{answer}"
        );
    }
    // a body that arrives in time is read, however slowly
    let connections = Connections::new(LIMITS, TIMES);
    let (mut client, _running) = reads_a_body(&connections);
    client.write_all(POST).await.unwrap();
    for _ in 0..4 {
        sleep(Duration::from_secs(29)).await;
        client.write_all(&[b'x'; 25]).await.unwrap();
    }
    assert!(answer(&mut client).await.starts_with("HTTP/1.1 200"));
}

/// A2: a connection may be idle for a minute between requests, and has 10 seconds for a head that it began.
#[tokio::test(start_paused = true)]
async fn idle_time_is_bounded() {
    let connections = Connections::new(LIMITS, TIMES);
    let (mut client, running) = serve(&connections, 1024, hello);
    for _ in 0..3 {
        client.write_all(GET).await.unwrap();
        assert!(answer(&mut client).await.ends_with("hello"));
        sleep(Duration::from_secs(59)).await;
    }
    assert_eq!(lasts(running).await, 1);
    let (mut client, running) = serve(&connections, 1024, hello);
    client.write_all(GET).await.unwrap();
    answer(&mut client).await;
    sleep(Duration::from_secs(5)).await;
    client.write_all(b"GET").await.unwrap();
    assert_eq!(lasts(running).await, 10);
}

/// A2: an HTTP/2 peer that only pings is idle.
#[tokio::test(start_paused = true)]
async fn pings_are_no_requests() {
    let connections = Connections::new(LIMITS, TIMES);
    let (mut client, running) = serve(&connections, 64 << 10, hello);
    client.write_all(PREFACE).await.unwrap();
    client.write_all(REQUEST_FRAME).await.unwrap();
    let ping = async {
        let mut bytes = [0; 1024];
        loop {
            sleep(Duration::from_secs(5)).await;
            let _ = timeout(Duration::from_millis(1), client.read(&mut bytes)).await;
            if client.write_all(PING).await.is_err() {
                break;
            }
        }
    };
    let (seconds, ()) = tokio::join!(lasts(running), ping);
    assert!((60..=63).contains(&seconds), "{seconds}");
}

/// A list without an end, whose chunks are counted when they are taken.
fn endless(produced: &Arc<AtomicUsize>) -> Response<AnswerBody> {
    let (sender, parts) = mpsc::channel(4);
    let produced = Arc::clone(produced);
    tokio::spawn(async move {
        while sender.send(Part::Bytes(vec![b' '; 64 << 10])).await.is_ok() {
            produced.fetch_add(1, Ordering::Relaxed);
        }
    });
    stream(200, parts)
}

/// A3: of a list that is not read few chunks are produced, also for a client that has pipelined more, and
/// its connection is ended.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_read_takes_little() {
    for requests in [GET.to_vec(), GET.repeat(2), [PREFACE, REQUEST_FRAME].concat()] {
        let connections = Connections::new(LIMITS, TIMES);
        let produced = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&produced);
        let (mut client, running) = serve(&connections, 1024, move || endless(&counted));
        client.write_all(&requests).await.unwrap();
        assert_eq!(lasts(running).await, 30);
        let produced = produced.load(Ordering::Relaxed);
        assert!((1..=12).contains(&produced), "{produced} parts of 64 KiB");
    }
}

/// A3: a reader that is slow for ever is ended.
#[tokio::test(start_paused = true)]
async fn an_answer_has_its_time() {
    let connections = Connections::new(LIMITS, TIMES);
    let produced = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&produced);
    let (mut client, running) = serve(&connections, 1024, move || endless(&counted));
    client.write_all(GET).await.unwrap();
    let read = async {
        let mut bytes = vec![0; 1024];
        while client.read(&mut bytes).await.is_ok_and(|length| length > 0) {
            sleep(Duration::from_millis(250)).await;
        }
    };
    assert_eq!(tokio::join!(lasts(running), read).0, 600);
}

/// A list that takes long to produce does not make its reader slow.
#[tokio::test(start_paused = true)]
async fn a_slow_operation_does_not_stall_its_reader() {
    let connections = Connections::new(LIMITS, TIMES);
    let (mut client, running) = serve(&connections, 1024, || {
        let (sender, parts) = mpsc::channel(4);
        tokio::spawn(async move {
            for part in [Part::Bytes(b"[".to_vec()), Part::Bytes(b"]".to_vec()), Part::End] {
                sleep(Duration::from_secs(100)).await;
                let _ = sender.send(part).await;
            }
        });
        stream(200, parts)
    });
    client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    assert!(text.contains('[') && text.ends_with("0\r\n\r\n"), "{text}");
    drop(client);
    running.await.unwrap();
}

/// A2: when all slots are taken the newest silent connection gives way; one that sent a head stays, and an
/// address has its share.
#[tokio::test(start_paused = true)]
async fn silent_connections_give_way() {
    let count = |counter: &Counter| counter.get();
    let connections = Connections::new(LIMITS, TIMES);
    let (mut busy, _running) = serve(&connections, 1024, hello);
    busy.write_all(GET).await.unwrap();
    answer(&mut busy).await;
    let (_first, first) = serve(&connections, 1024, hello);
    let (_second, second) = serve(&connections, 1024, hello);
    assert_eq!(count(&connections.evicted), 0);
    let (mut third, _third) = serve(&connections, 1024, hello);
    second.await.unwrap();
    assert_eq!((connections.count(), count(&connections.evicted)), (3, 1), "an address has three");
    assert!(!first.is_finished());
    third.write_all(GET).await.unwrap();
    assert!(answer(&mut third).await.ends_with("hello"));
    busy.write_all(GET).await.unwrap();
    assert!(answer(&mut busy).await.ends_with("hello"));
    let other = connections.admit([198, 51, 100, 1].into()).unwrap();
    assert_eq!((connections.count(), count(&connections.evicted)), (4, 1));
    let newest = connections.admit([198, 51, 100, 2].into()).unwrap();
    assert_eq!((connections.count(), count(&connections.evicted)), (4, 2), "four in all");
    first.await.unwrap();
    assert!(other.activity.is_silent(), "the silent one of the address that has most went");
    drop((other, newest));
}

/// Where none is silent, the connection idle longest gives way; busy ones stay, and then none is accepted.
#[tokio::test(start_paused = true)]
async fn busy_connections_stay() {
    let connections = Connections::new(ConnectionLimits { total: 2, per_address: 2 }, TIMES);
    let (one, two) = (admit(&connections), admit(&connections));
    let resting = one.activity.begin_request(http::Version::HTTP_11);
    drop(resting);
    let working = two.activity.begin_request(http::Version::HTTP_11);
    let three = admit(&connections);
    assert!(one.activity.idle_since().is_some() && connections.evicted.get() == 1);
    let also = three.activity.begin_request(http::Version::HTTP_11);
    assert!(connections.admit([192, 0, 2, 1].into()).is_none());
    assert_eq!(connections.refused.get(), 1);
    drop((working, also));
}

/// B7: what arrived before the stop is answered as the connection's last answer; idle connections are
/// ended at once, and stalled ones within 10 seconds.
#[tokio::test(start_paused = true)]
async fn the_stop_is_orderly() {
    let connections = Connections::new(ConnectionLimits { total: 10, per_address: 10 }, TIMES);
    let (mut idle, idle_running) = serve(&connections, 1024, hello);
    idle.write_all(GET).await.unwrap();
    answer(&mut idle).await;
    connections.advance_to(ShutdownStage::Draining);
    idle.write_all(GET).await.unwrap();
    assert!(answer(&mut idle).await.contains("connection: close"));
    drop(idle);
    idle_running.await.unwrap();

    let (mut requester, requester_task) = serve(&connections, 1024, hello);
    let (mut half, halving) = serve(&connections, 1024, hello);
    half.write_all(b"GET / HT").await.unwrap();
    let produced = Arc::new(AtomicUsize::new(0));
    let (mut stalls, stalling) = serve(&connections, 1024, move || endless(&produced));
    stalls.write_all(GET).await.unwrap();
    let (_silent, silence) = serve(&connections, 1024, hello);
    sleep(Duration::from_secs(5)).await;
    // the request has arrived, and the server has not read it yet
    requester.write_all(GET).await.unwrap();
    connections.advance_to(ShutdownStage::Closing);
    let begun = Instant::now();
    let mut text = String::new();
    requester.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("connection: close") && text.ends_with("hello"), "{text}");
    drop(requester);
    requester_task.await.unwrap();
    silence.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
    halving.await.unwrap();
    assert!(begun.elapsed() <= Duration::from_secs(10));
    stalling.await.unwrap();
    assert!(begun.elapsed() <= Duration::from_secs(10));
    assert!(connections.emptied(Duration::ZERO).await);
}

/// B7: an HTTP/2 client gets GOAWAY as soon as the server drains.
#[tokio::test(start_paused = true)]
async fn goaway_is_sent() {
    let connections = Connections::new(LIMITS, TIMES);
    let (mut client, running) = serve(&connections, 64 << 10, hello);
    client.write_all(&[PREFACE, REQUEST_FRAME].concat()).await.unwrap();
    sleep(Duration::from_millis(10)).await;
    let mut bytes = vec![0; 4096];
    let before = client.read(&mut bytes).await.unwrap();
    assert!(frames(&bytes[..before]).contains(&1), "it is answered");
    connections.advance_to(ShutdownStage::Draining);
    let after = client.read(&mut bytes).await.unwrap();
    assert!(frames(&bytes[..after]).contains(&7), "{:?}", frames(&bytes[..after]));
    connections.advance_to(ShutdownStage::Closing);
    assert!(lasts(running).await <= 2);
}

/// The answer to HEAD over HTTP/2 ends with its head, also where the answer to GET never ends.
#[tokio::test(start_paused = true)]
async fn the_answer_to_head_has_no_data_over_http_2() {
    // a HEADERS frame of a complete request for "/" by HEAD
    const HEAD: &[u8] = b"\0\0\x0b\x01\x05\0\0\0\x01\x42\x04HEAD\x84\x86\x41\x01a";
    let produced = Arc::new(AtomicUsize::new(0));
    for is_endless in [false, true] {
        let connections = Connections::new(LIMITS, TIMES);
        let counted = Arc::clone(&produced);
        let body = move || if is_endless { endless(&counted) } else { hello() };
        let (mut client, _running) = serve(&connections, 64 << 10, body);
        client.write_all(&[PREFACE, HEAD].concat()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let mut bytes = vec![0; 4096];
        let length = client.read(&mut bytes).await.unwrap();
        let types = frames(&bytes[..length]);
        assert!(types.contains(&1) && !types.contains(&0), "{types:?}");
        // the flag END_STREAM of the HEADERS frame
        let head = types.iter().position(|kind| *kind == 1).unwrap();
        assert_eq!(flags(&bytes[..length])[head] & 1, 1);
    }
}

/// The flags of HTTP/2 frames.
fn flags(mut bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let [a, b, c, _, flags, ..] = *bytes {
        all.push(flags);
        let length = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
        bytes = bytes.get(length..).unwrap_or_default();
    }
    all
}

/// The types of HTTP/2 frames.
fn frames(mut bytes: &[u8]) -> Vec<u8> {
    let mut types = Vec::new();
    while let [a, b, c, kind, ..] = *bytes {
        types.push(kind);
        let length = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
        bytes = bytes.get(length..).unwrap_or_default();
    }
    types
}

/// A2: an answer that waits while its connection takes others does not stall; pings are no progress.
#[tokio::test(start_paused = true)]
async fn flowing_answers_do_not_stall() {
    let verdict = async |activity: &Arc<Activity>| {
        let mut timer = Activity::timer();
        let begun = Instant::now();
        std::future::poll_fn(|context| activity.poll(&mut timer, context)).await;
        begun.elapsed().as_secs()
    };
    let activity = Activity::new(TIMES, ShutdownStage::Open);
    let waiting = activity.begin_request(http::Version::HTTP_2);
    waiting.begin();
    let flow = async |bytes: usize| {
        for _ in 0..12 {
            sleep(Duration::from_secs(5)).await;
            activity.took(bytes);
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        seconds = verdict(&activity) => assert_eq!(seconds, 90),
        () = flow(16 << 10) => {}
    }
    waiting.part(true);
    tokio::select! {
        seconds = verdict(&activity) => assert_eq!(seconds, 30, "answers to pings are no flow"),
        () = flow(17) => {}
    }
}

/// The address with most connections gives way first, so that it does not push out each newcomer.
#[tokio::test(start_paused = true)]
async fn the_address_with_most_connections_gives_way_first() {
    let connections = Connections::new(LIMITS, TIMES);
    let crowd: Vec<Slot> = (0..3).map(|_| admit(&connections)).collect();
    for slot in &crowd {
        drop(slot.activity.begin_request(http::Version::HTTP_11));
    }
    let newcomer = connections.admit([198, 51, 100, 1].into()).unwrap();
    let another = connections.admit([198, 51, 100, 2].into()).unwrap();
    assert!(newcomer.activity.is_silent() && another.activity.is_silent());
    assert_eq!((connections.count(), connections.evicted.get()), (4, 1));
}
