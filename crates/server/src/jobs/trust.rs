//! Refreshes authenticator metadata daily, in one of the processes.

use std::{sync::Arc, time::Duration};

use chancery_management::passkey_trust::{RefreshResult, VerifiedSnapshot, finish};
use chancery_record::{Timestamp, Value};
use chancery_resource::{AppContext, Context, FetchResult, Problem, Scope, random};
use chancery_store::{Class, Error, Mode, StateTable, Store, Tx};

use super::Job;
use crate::start_error::cause_of;

/// The interval between checks of whether a refresh is due.
const INTERVAL: Duration = Duration::from_mins(1);
const MINUTE: i64 = 60 * 1000;
/// How long one process has for a refresh before another one tries, in milliseconds.
const LEASE: i64 = 10 * MINUTE;
/// The interval of refreshes, in milliseconds.
const DAY: i64 = 24 * 60 * MINUTE;
/// The rest after the first failure, in milliseconds; doubled by each further one.
const AFTER_FAILURE: i64 = 5 * MINUTE;
/// The longest rest after a failure, in milliseconds.
const LONGEST: i64 = 6 * 60 * MINUTE;

/// Fetches authenticator metadata when it is due.
pub fn job(store: &Store, context: &Arc<AppContext>, now: fn() -> Timestamp) -> Job {
    let (store, context) = (store.with(Class::Background), Arc::clone(context));
    let work = move || {
        let (store, context) = (store.clone(), Arc::clone(&context));
        async move { refresh_due(&store, &context, now()).await.map(drop).map_err(cause_of) }
    };
    Job::new("refresh", INTERVAL, work).exclusive()
}

/// Refreshes if it is due and no other process has leased the refresh; returns whether it did.
pub async fn refresh_due(store: &Store, context: &Arc<AppContext>, now: Timestamp) -> Result<bool, Problem> {
    let Some(fetch) = context.metadata.fetch.clone() else { return Ok(false) };
    let due = store.run("FindRefresh", Mode::Quick, None, move |tx| is_due(tx, now)).await?;
    if !due || !store.run("LeaseRefresh", Mode::Write, None, move |tx| lease(tx, now)).await? {
        return Ok(false);
    }
    let verified = verify(fetch().await, context, now).await;
    let (context, jitter) = (Arc::clone(context), i64::from(u16::from_be_bytes(random::<2>())));
    let end = move |tx: &mut Tx<'_>| -> Result<RefreshResult, Problem> {
        let acting = Context::of_server(&context, Scope::Everything, now);
        let finished = finish(&acting, tx, &verified)?;
        schedule(tx, now, finished.failure.is_some(), jitter)?;
        Ok(finished)
    };
    let finished = store.run("RefreshTrust", Mode::Write, None, end).await?;
    match (finished.failure, finished.status.snapshot_number) {
        (Some(why), _) => tracing::warn!(why, "metadata of authenticators were not refreshed"),
        (None, number) => {
            let number = number.as_ref().map_or("", chancery_record::Name::as_str);
            tracing::info!(number, "metadata of authenticators were refreshed");
        }
    }
    Ok(true)
}

async fn verify(
    fetched: FetchResult,
    context: &Arc<AppContext>,
    now: Timestamp,
) -> Result<VerifiedSnapshot, String> {
    let context = Arc::clone(context);
    let span = tracing::Span::current();
    let read = move || span.in_scope(|| VerifiedSnapshot::of_fetched(&fetched, &context.metadata, now));
    let verified = tokio::task::spawn_blocking(read).await;
    verified.unwrap_or_else(|_| Err("What the source answered could not be read.".to_owned()))
}

fn is_due(tx: &mut Tx<'_>, now: Timestamp) -> Result<bool, Error> {
    let text = "SELECT 1 FROM passkey_trust_refresh WHERE source = 'mds' AND due_on <= ?1";
    tx.one(text, &[Value::Int(now.0)], |_| Ok(())).map(|due| due.is_some())
}

/// Postpones a due refresh, so that no other process begins it. Returns whether this process was the first.
fn lease(tx: &mut Tx<'_>, now: Timestamp) -> Result<bool, Error> {
    let text =
        StateTable::PasskeyTrustRefresh.update("SET due_on = ?1 WHERE source = 'mds' AND due_on <= ?2");
    tx.execute(&text, &[Value::Int(now.0 + LEASE), Value::Int(now.0)]).map(|rows| rows == 1)
}

/// Schedules the next refresh. Jitter keeps servers from fetching all at once.
fn schedule(tx: &mut Tx<'_>, now: Timestamp, failed: bool, jitter: i64) -> Result<(), Error> {
    let text = "SELECT failures FROM passkey_trust_refresh WHERE source = 'mds'";
    let before = tx.one(text, &[], |row| row.int(0))?.unwrap_or(0);
    let failures = if failed { before.saturating_add(1) } else { 0 };
    let due = now.0 + rest(failures) + spread(rest(failures), jitter);
    let text = StateTable::PasskeyTrustRefresh.update("SET due_on = ?1, failures = ?2 WHERE source = 'mds'");
    tx.execute(&text, &[Value::Int(due), Value::Int(failures)]).map(drop)
}

fn rest(failures: i64) -> i64 {
    match failures {
        0 => DAY,
        many => AFTER_FAILURE.saturating_mul(1 << (many - 1).clamp(0, 10)).min(LONGEST),
    }
}

/// A random part of a twentieth of a rest: `jitter` is in 65,536ths.
const fn spread(rest: i64, jitter: i64) -> i64 {
    rest / 20 * jitter / 65_536
}

#[cfg(test)]
mod tests {
    use super::{AFTER_FAILURE, DAY, LONGEST, rest, spread};

    #[test]
    fn failures_make_the_rest_longer() {
        assert_eq!((rest(0), rest(1), rest(2)), (DAY, AFTER_FAILURE, 2 * AFTER_FAILURE));
        assert_eq!((rest(8), rest(i64::MAX)), (LONGEST, LONGEST));
        assert_eq!((spread(DAY, 0), spread(DAY, 65_535) / 60_000), (0, 71));
    }
}
