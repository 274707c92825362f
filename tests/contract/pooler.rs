//! A pooler between the server and its PostgreSQL that shares one backend process among all clients.

use std::sync::Arc;

use chancery_store::{Settings, Store, Target};
use chancery_testkit::{Database, Engine};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

/// One message: its letter, where it has one, and the rest.
async fn message(stream: &mut TcpStream, has_letter: bool) -> Option<(u8, Vec<u8>)> {
    let letter = if has_letter { stream.read_u8().await.ok()? } else { 0 };
    let length = stream.read_u32().await.ok()?;
    let mut bytes = if has_letter { vec![letter] } else { Vec::new() };
    bytes.extend_from_slice(&length.to_be_bytes());
    let mut rest = vec![0; usize::try_from(length).ok()? - 4];
    stream.read_exact(&mut rest).await.ok()?;
    bytes.extend_from_slice(&rest);
    Some((letter, bytes))
}

/// The messages of the database until it is ready again.
async fn answer(database: &mut TcpStream) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let (letter, bytes) = message(database, true).await?;
        all.extend_from_slice(&bytes);
        if letter == b'Z' {
            return Some(all);
        }
    }
}

/// The shared connection to the database, and its greeting.
#[derive(Default)]
struct Shared(Option<(TcpStream, Vec<u8>)>);

/// Serves one client: each of its queries is forwarded to the shared connection.
async fn serve(mut client: TcpStream, target: String, shared: Arc<Mutex<Shared>>) -> Option<()> {
    let (_, startup) = message(&mut client, false).await?;
    let greeting = {
        let mut shared = shared.lock().await;
        if shared.0.is_none() {
            let mut database = TcpStream::connect(target).await.ok()?;
            database.write_all(&startup).await.ok()?;
            let greeting = answer(&mut database).await?;
            shared.0 = Some((database, greeting));
        }
        shared.0.as_ref()?.1.clone()
    };
    client.write_all(&greeting).await.ok()?;
    let mut waiting = Vec::new();
    loop {
        let (letter, bytes) = message(&mut client, true).await?;
        if letter == b'X' {
            return None;
        }
        waiting.extend_from_slice(&bytes);
        if letter == b'Q' || letter == b'S' {
            let mut shared = shared.lock().await;
            let database = &mut shared.0.as_mut()?.0;
            database.write_all(&std::mem::take(&mut waiting)).await.ok()?;
            let answer = answer(database).await?;
            client.write_all(&answer).await.ok()?;
        }
    }
}

/// Section 1: a pooler in transaction mode is refused at the start with an explanation, since prepared
/// statements would be those of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_of_transactions_is_refused() {
    let database = Database::create(Engine::Postgres);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pooler = listener.local_addr().unwrap();
    let (before, name) = database.url().rsplit_once('/').unwrap();
    let target = before.rsplit_once('@').unwrap().1.to_owned();
    let url = format!("{}@{pooler}/{name}", before.rsplit_once('@').unwrap().0);
    chancery_testkit::spawn(async move {
        let shared = Arc::new(Mutex::new(Shared::default()));
        while let Ok((client, _)) = listener.accept().await {
            chancery_testkit::spawn(serve(client, target.clone(), Arc::clone(&shared)));
        }
    });
    let opening = chancery_testkit::spawn_blocking(move || {
        let settings = Settings { connections: 2, ..Settings::default() };
        Store::open(&Target::Postgres(url), settings).map(|store| store.close())
    });
    let refusal = opening.await.unwrap().unwrap_err().to_string();
    assert!(refusal.contains("pool sessions instead of transactions"), "{refusal}");
}
