//! Helpers of the tests of the contract: see `contract/main.rs` and `sign_in/main.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests fail by them"
)]

pub mod authenticator;
pub mod certificate;
pub mod cost;
pub mod fixtures;
pub mod instance;
pub mod pattern;
pub mod picture;
pub mod program;
pub mod resources;
pub mod roles;
pub mod signer;
pub mod signing;

use std::{net::TcpListener, pin::Pin};

use chancery::{Job, MailSettings, jobs};
use chancery_record::Timestamp;
use chancery_testkit::{Client, World};
use serde_json::Value;

/// Random numbers that are the same in each run (Marsaglia's xorshift).
pub struct Random(pub u64);

impl Random {
    /// A number below this one.
    pub fn below(&mut self, bound: usize) -> usize {
        for (left, by) in [(true, 13), (false, 7), (true, 17)] {
            self.0 ^= if left { self.0 << by } else { self.0 >> by };
        }
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// The id of a resource.
pub fn id(resource: &Value) -> &str {
    resource["id"].as_str().unwrap()
}

/// The members of this name of an array.
pub fn each<'a>(array: &'a Value, member: &str) -> Vec<&'a str> {
    array.as_array().unwrap().iter().map(|item| item[member].as_str().unwrap()).collect()
}

/// The pointers of a problem's errors.
pub fn pointers(problem: &Value) -> Vec<&str> {
    each(&problem["errors"], "pointer")
}

/// Waits until all changes committed before are in a feed; returns the feed's answer from there on. A server gives up sooner.
pub async fn feed_from_now(client: &Client, feed: &str) -> Value {
    let path = format!("{feed}?after=now");
    until("what was committed stands in the feed", async || client.get(&path).await.status == 200).await;
    client.get(&path).await.is(200).json()
}

/// Waits until something holds.
pub async fn until<'a, F: Future<Output = bool> + 'a>(what: &str, holds: impl Fn() -> F + 'a) {
    wait(what, &|| Box::pin(holds())).await;
}

/// Boxed, so that it is compiled once and not for each condition.
async fn wait<'a>(what: &str, holds: &(dyn Fn() -> Pin<Box<dyn Future<Output = bool> + 'a>> + 'a)) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(chancery_testkit::PATIENCE, waiting).await;
    assert!(waited.is_ok(), "waited in vain until {what}");
}

/// `%`-encodes characters that a query parameter cannot hold.
pub fn encode(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}

/// An address without a listener.
pub fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// All background jobs of this world's server, by this clock.
pub fn jobs_by(world: &World, now: fn() -> Timestamp) -> Vec<Job> {
    let post = MailSettings {
        master: world.app.context.master.clone(),
        program: None,
        networks: "".parse().unwrap(),
    };
    jobs(&world.app, &post, now)
}

/// Runs a background job of this world's server once.
pub async fn run_job(world: &World, name: &str) {
    let job = jobs_by(world, chancery_web::now).into_iter().find(|job| job.name == name);
    (job.unwrap().work)().await.unwrap();
}
