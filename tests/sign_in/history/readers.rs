//! Readers that are killed between reading events and storing their cursor.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use chancery_testkit::Client;
use http::Method;
use serde_json::Value as Json;
use tokio::task::JoinHandle;

use super::{STORE, writers::Callers};
use crate::id;

/// How events are read.
#[derive(Clone, Copy)]
pub enum Transport {
    Feed,
    Stream,
}

/// The stored state of a reader: the numbers of events, and its cursor. They are written one after the other.
#[derive(Default)]
struct StoredState {
    numbers: Vec<String>,
    cursor: Option<String>,
}

/// A reader, which continues from its stored state when it is killed.
pub struct Reader {
    transport: Transport,
    callers: Callers,
    stored: Arc<Mutex<StoredState>>,
    task: JoinHandle<()>,
}

impl Reader {
    pub fn begin(transport: Transport, callers: Callers) -> Self {
        let stored = Arc::default();
        let task = spawn(transport, &callers, &stored);
        Self { transport, callers, stored, task }
    }

    /// Kills the reader at any point, and starts it again.
    pub fn kill(&mut self) {
        self.task.abort();
        self.task = spawn(self.transport, &self.callers, &self.stored);
    }

    /// The numbers of the events in the order of their first occurrence, as soon as there are so many.
    pub async fn to(self, count: usize) -> Vec<String> {
        for _ in 0..600 {
            let mut numbers: Vec<String> = Vec::new();
            for number in &self.stored.lock().unwrap().numbers {
                if !numbers.contains(number) {
                    numbers.push(number.clone());
                }
            }
            if numbers.len() >= count {
                self.task.abort();
                return numbers;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the reader got {} of {count} events", self.stored.lock().unwrap().numbers.len());
    }
}

fn spawn(transport: Transport, callers: &Callers, stored: &Arc<Mutex<StoredState>>) -> JoinHandle<()> {
    let (callers, stored) = (Arc::clone(callers), Arc::clone(stored));
    chancery_testkit::spawn(async move {
        for attempt in 0.. {
            // each time with another process
            let client = callers[attempt % callers.len()].borrow().clone();
            let cursor = stored.lock().unwrap().cursor.clone();
            let _ = match transport {
                Transport::Feed => feed(&client, cursor, &stored).await,
                Transport::Stream => stream(&client, cursor, &stored).await,
            };
            // the server is being started again
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}

/// Stores the events, and a moment later the cursor.
async fn store(stored: &Mutex<StoredState>, events: &[Json], cursor: &str) {
    stored.lock().unwrap().numbers.extend(events.iter().map(|event| id(event).to_owned()));
    tokio::task::yield_now().await;
    stored.lock().unwrap().cursor = Some(cursor.to_owned());
}

async fn feed(client: &Client, cursor: Option<String>, stored: &Mutex<StoredState>) -> Option<()> {
    let mut after = cursor.map(|cursor| format!("&after={cursor}")).unwrap_or_default();
    loop {
        let address = format!("{STORE}/Event?count=50&wait=5{after}");
        let answer = client.try_send(Method::GET, &address, &[], Vec::new()).await?;
        if answer.status == 503 {
            return None;
        }
        let page = answer.is(200).json();
        let next = page["next"].as_str().unwrap();
        store(stored, page["items"].as_array().unwrap(), next).await;
        after = format!("&after={next}");
    }
}

async fn stream(client: &Client, cursor: Option<String>, stored: &Mutex<StoredState>) -> Option<()> {
    let last = cursor.unwrap_or_default();
    let headers = [("last-event-id", last.as_str())];
    let headers = if last.is_empty() { &headers[..0] } else { &headers };
    let mut stream = client.try_stream(&format!("{STORE}/Event/stream"), headers).await?;
    while let Some(event) = stream.next().await {
        store(stored, &[serde_json::from_str(&event.data).unwrap()], &event.id).await;
    }
    None
}
