//! Those who read, and are killed between what they read and what they remember of it.

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
pub enum Way {
    Feed,
    Stream,
}

/// What a reader has on its disk: the numbers of events, and how far it came. One is written after the other.
#[derive(Default)]
struct Kept {
    numbers: Vec<String>,
    cursor: Option<String>,
}

/// A reader, which goes on from what it kept when it is killed.
pub struct Reading {
    way: Way,
    callers: Callers,
    kept: Arc<Mutex<Kept>>,
    task: JoinHandle<()>,
}

impl Reading {
    pub fn begin(way: Way, callers: Callers) -> Self {
        let kept = Arc::default();
        let task = spawn(way, &callers, &kept);
        Self { way, callers, kept, task }
    }

    /// Kills the reader, wherever it is, and starts it again.
    pub fn kill(&mut self) {
        self.task.abort();
        self.task = spawn(self.way, &self.callers, &self.kept);
    }

    /// The numbers of the events in the order in which they first came, as soon as there are so many.
    pub async fn to(self, count: usize) -> Vec<String> {
        for _ in 0..600 {
            let mut numbers: Vec<String> = Vec::new();
            for number in &self.kept.lock().unwrap().numbers {
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
        panic!("the reader got {} of {count} events", self.kept.lock().unwrap().numbers.len());
    }
}

fn spawn(way: Way, callers: &Callers, kept: &Arc<Mutex<Kept>>) -> JoinHandle<()> {
    let (callers, kept) = (Arc::clone(callers), Arc::clone(kept));
    tokio::spawn(async move {
        for turn in 0.. {
            // each time at another process
            let client = callers[turn % callers.len()].borrow().clone();
            let cursor = kept.lock().unwrap().cursor.clone();
            let _ = match way {
                Way::Feed => feed(&client, cursor, &kept).await,
                Way::Stream => stream(&client, cursor, &kept).await,
            };
            // the server is being started again
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}

/// Keeps what was read, and a moment later how far that is.
async fn keep(kept: &Mutex<Kept>, events: &[Json], cursor: &str) {
    kept.lock().unwrap().numbers.extend(events.iter().map(|event| id(event).to_owned()));
    tokio::task::yield_now().await;
    kept.lock().unwrap().cursor = Some(cursor.to_owned());
}

async fn feed(client: &Client, cursor: Option<String>, kept: &Mutex<Kept>) -> Option<()> {
    let mut after = cursor.map(|cursor| format!("&after={cursor}")).unwrap_or_default();
    loop {
        let address = format!("{STORE}/Event?count=50&wait=5{after}");
        let answer = client.try_send(Method::GET, &address, &[], Vec::new()).await?;
        if answer.status == 503 {
            return None;
        }
        let piece = answer.is(200).json();
        let next = piece["next"].as_str().unwrap();
        keep(kept, piece["items"].as_array().unwrap(), next).await;
        after = format!("&after={next}");
    }
}

async fn stream(client: &Client, cursor: Option<String>, kept: &Mutex<Kept>) -> Option<()> {
    let last = cursor.unwrap_or_default();
    let headers = [("last-event-id", last.as_str())];
    let headers = if last.is_empty() { &headers[..0] } else { &headers };
    let mut stream = client.try_stream(&format!("{STORE}/Event/stream"), headers).await?;
    while let Some(event) = stream.next().await {
        keep(kept, &[serde_json::from_str(&event.data).unwrap()], &event.id).await;
    }
    None
}
