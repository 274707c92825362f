//! Purges users whose deletion quarantine has expired.

use chancery_resource::settings::UserStoreOption;
use std::{sync::Arc, time::Duration};

use chancery_auth::load_store_context;
use chancery_record::Timestamp;
use chancery_resource::{AppContext, Context, Problem, Scope};
use chancery_store::{Class, Mode, Store, Tx};
use chancery_userstore::user::USER;
use uuid::Uuid;

use super::{Job, bounded};
use crate::start_error::cause_of;

/// The interval between runs.
const INTERVAL: Duration = Duration::from_mins(10);
/// Users purged in one transaction, so that others do not wait.
const BATCH: usize = 100;

/// Purges users whose quarantine has expired.
pub fn job(store: &Store, context: &Arc<AppContext>, now: fn() -> Timestamp) -> Job {
    let (store, context) = (store.with(Class::Background), Arc::clone(context));
    let work = move || {
        let (store, context) = (store.clone(), Arc::clone(&context));
        async move { purge_due(&store, &context, bounded(&store, now())).await.map(drop).map_err(cause_of) }
    };
    Job::new("purge", INTERVAL, work).exclusive()
}

/// Purges the users of all stores whose quarantine has expired; returns their number. A store that fails does
/// not delay others.
///
/// # Errors
/// The due users cannot be listed.
pub async fn purge_due(store: &Store, context: &Arc<AppContext>, now: Timestamp) -> Result<usize, Problem> {
    let waiting = store.run("FindQuarantined", Mode::Long, None, |tx| {
        let mut waiting = Vec::new();
        let text = "SELECT i.id FROM idp_instance i WHERE EXISTS (SELECT 1 FROM user_account u \
                    WHERE u.store = i.rid AND u.quarantined_on IS NOT NULL) ORDER BY i.rid";
        tx.query(text, &[], |row| {
            waiting.push(row.id(0)?);
            Ok(())
        })?;
        Ok::<_, Problem>(waiting)
    });
    let mut purged = 0;
    for instance in waiting.await? {
        loop {
            let context = Arc::clone(context);
            let batch = store
                .run("PurgeUsers", Mode::Write, None, move |tx| purge_batch(&context, tx, instance, now));
            let batch = batch.await.unwrap_or_else(|problem| {
                tracing::warn!(%instance, cause = ?problem.cause, "purging failed; it is tried again later");
                0
            });
            purged += batch;
            if batch < BATCH {
                break;
            }
        }
    }
    Ok(purged)
}

/// Purges a batch of a store's users that are due. A store in read-only mode is skipped.
fn purge_batch(
    context: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    instance: Uuid,
    now: Timestamp,
) -> Result<usize, Problem> {
    let Some(store) = load_store_context(tx, &instance.to_string())? else { return Ok(0) };
    let options = Arc::clone(&store.scope.options);
    if options.get(UserStoreOption::IS_DATABASE_READ_ONLY_MODE) {
        return Ok(0);
    }
    let since =
        Timestamp(now.0.saturating_sub(options.get(UserStoreOption::USER_DELETION_QUARANTINE_DURATION)));
    let mut acting = Context::of_server(context, Scope::Store(store.scope), now);
    chancery_resource::purge_due(&mut acting, tx, &USER, since, BATCH)
}
