//! The contract, tested through HTTP on both engines: one binary, one file a subject.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::redundant_closure_for_method_calls,
    clippy::format_collect,
    reason = "tests fail by it, and read as they are written"
)]

mod address;
mod audit;
mod auth;
mod backup;
mod bad_input;
mod batch;
mod broken;
mod canary;
mod check_upgrade;
mod compression;
mod conditions;
mod configuration;
mod console;
mod coverage;
mod customer;
mod delta;
mod documents;
mod documents_link;
mod durability;
mod edge;
mod effects;
mod ending;
mod entries;
mod escalation;
mod event;
mod event_catalogue;
mod event_stream;
mod failing_database;
mod failing_disk;
mod feed;
mod figures;
mod fuzzed;
mod group;
mod history;
mod identity_replacement;
mod image;
mod jobs;
mod layers;
mod ledger;
mod list;
mod lockout;
mod mail;
mod management;
mod members;
mod migrating;
mod moving;
mod option;
mod outbound;
mod parallel;
mod passkey;
mod passkey_trust;
mod password;
mod password_removal;
mod permissions;
mod pooler;
mod provider_trial;
mod public;
mod quarantine;
mod ready;
mod refusals;
mod reset;
mod schema;
mod scim;
mod search;
mod secrets;
mod server;
mod settings;
mod sign_in;
mod signing;
mod state;
mod store;
mod subscription;
mod synchronize;
mod texts;
mod tidy;
mod token;
mod trace;
mod user;
mod v1;
mod webhook;
mod wire;
mod words;

use chancery_testkit::Client;
use serde_json::Value;

/// Random numbers that are the same in each run (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        for (left, by) in [(true, 13), (false, 7), (true, 17)] {
            self.0 ^= if left { self.0 << by } else { self.0 >> by };
        }
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// The id of a resource.
fn id(resource: &Value) -> &str {
    resource["id"].as_str().unwrap()
}

/// The members of this name of an array.
fn each<'a>(array: &'a Value, member: &str) -> Vec<&'a str> {
    array.as_array().unwrap().iter().map(|item| item[member].as_str().unwrap()).collect()
}

/// The pointers of a problem's errors.
fn pointers(problem: &Value) -> Vec<&str> {
    each(&problem["errors"], "pointer")
}

/// Waits until all changes committed before are in a feed; returns the feed's answer from there on. A server gives up sooner.
async fn feed_from_now(client: &Client, feed: &str) -> Value {
    let path = format!("{feed}?after=now");
    until("what was committed stands in the feed", async || client.get(&path).await.status == 200).await;
    client.get(&path).await.is(200).json()
}

/// Waits until something holds.
async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(chancery_testkit::PATIENCE, waiting).await;
    assert!(waited.is_ok(), "waited in vain until {what}");
}
