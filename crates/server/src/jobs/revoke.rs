//! Completes identity replacements: access of replaced identities is revoked, and expired requests are
//! closed.

use std::{sync::Arc, time::Duration};

use chancery_management::identity_replacement::{
    REVOCATION_STEPS, RevocationStep, complete, due, expire_due, fail, is_overdue, lease,
};
use chancery_record::Timestamp;
use chancery_resource::{AppContext, Context, Problem, Scope, random};
use chancery_store::{Class, Error, Mode, Store};
use uuid::Uuid;

use super::{Job, bounded};
use crate::start_error::cause_of;

/// The interval between runs.
const INTERVAL: Duration = Duration::from_secs(1);
/// The interval while this process commits nothing: revocations of other processes wait so long.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);
/// Revocations read at once, and requests closed in one transaction, so that others do not wait.
const BATCH: usize = 64;

/// Revokes the access of replaced identities. Each revocation has a lease of its own.
pub fn job(store: &Store, context: &Arc<AppContext>, now: fn() -> Timestamp) -> Job {
    let (store, context) = (store.with(Class::Background), Arc::clone(context));
    let work = move || {
        let (store, context) = (store.clone(), Arc::clone(&context));
        async move { revoke_due(&store, &context, now(), REVOCATION_STEPS).await.map(drop).map_err(cause_of) }
    };
    Job::new("revoke", INTERVAL, work).idle(IDLE_INTERVAL)
}

/// Closes expired requests, and performs the due revocation steps of replaced identities; returns the number
/// completed. One that fails does not delay others.
///
/// # Errors
/// The due revocations cannot be listed.
pub async fn revoke_due(
    store: &Store,
    context: &Arc<AppContext>,
    now: Timestamp,
    steps: &'static [RevocationStep],
) -> Result<usize, Problem> {
    // a clock that jumped ahead closes no request, and one that was corrected delays no revocation
    let over = bounded(store, now);
    let revocations = store.run("FindRevocations", Mode::Quick, None, move |tx| {
        Ok::<_, Problem>((is_overdue(tx, over)?, due(tx, now, BATCH)?))
    });
    let (mut overdue, revocations) = revocations.await?;
    while overdue {
        let mut acting = Context::of_server(context, Scope::Everything, over);
        let closed =
            store.run("ExpireReplacements", Mode::Write, None, move |tx| expire_due(&mut acting, tx, BATCH));
        overdue = closed.await? == BATCH;
    }
    let mut completed = 0;
    for rid in revocations {
        match revoke_one(store, &|| Context::of_server(context, Scope::Everything, now), rid, steps).await {
            Ok(done) => completed += usize::from(done),
            Err(problem) => {
                tracing::warn!(replacement = rid, cause = ?problem.cause, "a revocation waits for its lease to end");
            }
        }
    }
    Ok(completed)
}

/// Leases one revocation and performs its steps; returns whether it was completed. Another process may be quicker.
async fn revoke_one(
    store: &Store,
    own: &impl Fn() -> Context,
    rid: i64,
    steps: &'static [RevocationStep],
) -> Result<bool, Problem> {
    let (mark, acting) = (Uuid::from_bytes(random::<16>()), own());
    let taken = store.run("LeaseRevocation", Mode::Write, None, move |tx| lease(tx, rid, mark, acting.now));
    if !taken.await.map_err(|error: Error| Problem::from(error))? {
        return Ok(false);
    }
    let acting = own();
    let done =
        store.run("Revoke", Mode::Write, None, move |tx| complete(&acting, tx, rid, mark, steps)).await;
    let Err(problem) = done else { return done };
    let why = problem.cause.as_ref().map_or_else(|| problem.detail.clone(), ToString::to_string);
    tracing::warn!(
        replacement = rid,
        why,
        "what a replaced identity has could not be ended; it is tried again"
    );
    // people read it: internals of the server belong in the log
    let (acting, detail) = (own(), problem.detail);
    store.run("PutOffRevocation", Mode::Write, None, move |tx| fail(&acting, tx, rid, mark, &detail)).await?;
    Ok(false)
}
