//! Deletes expired events, idempotency keys, tokens, sign-ins, refusals and mails.

use std::{sync::Arc, time::Duration};

use chancery_record::{Timestamp, Value};
use chancery_store::{Class, Error, Mode, StateTable, Store, Tx};
use chancery_web::App;

use super::{
    Job, bounded,
    prune_events::{FIGURES, prune_events},
};

use crate::start_error::BoxError;

/// The interval between runs.
const INTERVAL: Duration = Duration::from_mins(10);
/// The retention of delivery attempts of events, in milliseconds.
const ATTEMPT_RETENTION: i64 = 7 * 24 * 3600 * 1000;
/// The retention of deliveries that were given up, in milliseconds.
const DEAD_RETENTION: i64 = 30 * 24 * 3600 * 1000;
/// The retention of idempotency keys, in milliseconds.
const KEY_RETENTION: i64 = 24 * 3600 * 1000;
/// The retention of mails that were given up, in milliseconds.
const MAIL_RETENTION: i64 = 30 * 24 * 3600 * 1000;
/// The retention of sign-outs that a client app did not accept, in milliseconds.
const FAILED_SIGN_OUT_RETENTION: i64 = 7 * 24 * 3600 * 1000;
/// The retention of due sign-outs that nothing sends, since outbound traffic is off, in milliseconds.
const UNSENT_SIGN_OUT_RETENTION: i64 = 3600 * 1000;
/// The retention of proofs and tokens beyond their expiry, in milliseconds: clocks of processes differ.
const MARGIN: i64 = 60 * 1000;
/// The retention of sessions, grants and codes beyond their expiry, in milliseconds: a code that is shown again
/// ends the grant that it created.
const SIGN_IN_RETENTION: i64 = 24 * 3600 * 1000;
/// Rows deleted in one transaction, so that others do not wait.
const BATCH: u64 = 1000;

/// How far the process's clock may be from the reference clock for events to be pruned, in milliseconds.
const DOUBT: u64 = 3600 * 1000;

/// Deletes expired rows.
pub fn job(app: &Arc<App>, now: fn() -> Timestamp) -> Job {
    let app = Arc::clone(app);
    Job::new("prune", INTERVAL, move || prune(Arc::clone(&app), now())).exclusive()
}

async fn prune(app: Arc<App>, now: Timestamp) -> Result<(), BoxError> {
    let store = app.store.with(Class::Background);
    let moment = bounded(&store, now);
    repeat(&store, move |tx| prune_batch(tx, moment)).await?;
    // a reader that is behind could continue if the clock is wrong: a doubtful clock prunes no events
    let is_doubted = store.clock_offset(now.0).unsigned_abs() > DOUBT;
    app.note_figure(&FIGURES[0], i64::from(is_doubted));
    if is_doubted { Ok(()) } else { repeat(&store, move |tx| prune_events(tx, moment, BATCH)).await }
}

/// Deletes batch by batch, until one is not full.
async fn repeat(
    store: &Store,
    batch: impl FnMut(&mut Tx<'_>) -> Result<u64, Error> + Copy + Send + 'static,
) -> Result<(), BoxError> {
    loop {
        let deleted = store.run("Prune", Mode::Write, None, batch).await;
        if deleted.map_err(BoxError::from)? < BATCH {
            return Ok(());
        }
    }
}

/// Blanks a batch of stored answers that show several people of a store in which somebody was erased since; returns their number.
fn blank_erased_answers(tx: &mut Tx<'_>) -> Result<u64, Error> {
    let erased = "FROM idempotent_answer a JOIN idempotent_erasure e ON e.store = a.shows_of AND e.erased_on >= a.started_on";
    let blank = StateTable::IdempotentAnswer.update(format_args!(
        "SET answer = ?1, persons = ?2, shows_of = NULL \
         WHERE (caller, key_digest) IN (SELECT a.caller, a.key_digest {erased} LIMIT {BATCH})"
    ));
    let blanked = tx.execute(&blank, &[Value::Bytes(Vec::new()), Value::Bytes(vec![0; 16])])?;
    if blanked > 0 {
        tx.note_erasure();
    }
    if blanked < BATCH {
        let done = StateTable::IdempotentErasure.delete(format_args!(
            "WHERE NOT EXISTS (SELECT 1 {erased} WHERE e.store = idempotent_erasure.store)"
        ));
        tx.execute(&done, &[])?;
    }
    Ok(blanked)
}

/// Deletes a batch of expired rows that are no events; returns the number of rows of the largest kind.
pub fn prune_batch(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, Error> {
    let keys = tx.execute(
        &StateTable::IdempotentAnswer.delete(format_args!(
            "WHERE started_on <= (SELECT max(started_on) FROM (SELECT started_on \
             FROM idempotent_answer WHERE started_on < ?1 ORDER BY started_on LIMIT {BATCH}) oldest)"
        )),
        &[Value::Int(now.0 - KEY_RETENTION)],
    )?;
    let keys = keys.max(blank_erased_answers(tx)?);
    let claims = tx.execute(
        &StateTable::IdempotentClaim.delete(format_args!(
            "WHERE attempt IN (SELECT attempt FROM idempotent_claim \
             WHERE held_on < ?1 LIMIT {BATCH})"
        )),
        &[Value::Int(now.0 - KEY_RETENTION)],
    )?;
    let ceremonies = tx.execute(
        &StateTable::PasskeyCeremony.delete(format_args!(
            "WHERE id IN (SELECT id FROM passkey_ceremony WHERE expires_on < ?1 LIMIT {BATCH})"
        )),
        &[Value::Int(now.0)],
    )?;
    let mut tokens = 0;
    let expiring = [
        (StateTable::UsedProof, "digest", MARGIN),
        (StateTable::ReferenceToken, "digest", MARGIN),
        (StateTable::RevokedToken, "jti", MARGIN),
        (StateTable::AuthorizationCode, "digest", SIGN_IN_RETENTION),
        (StateTable::DeviceAuthorization, "digest", SIGN_IN_RETENTION),
        (StateTable::SignInSession, "id", SIGN_IN_RETENTION),
        (StateTable::SignInGrant, "id", SIGN_IN_RETENTION),
        (StateTable::SignInRecord, "rid", MARGIN),
        (StateTable::OneTimeCode, "rid", MARGIN),
        (StateTable::OfferRest, "rid", MARGIN),
        (StateTable::RememberedDevice, "digest", MARGIN),
        (StateTable::SignInCutoff, "person_id", MARGIN),
        (StateTable::SignInFlow, "id", MARGIN),
        (StateTable::ConsoleSession, "digest", MARGIN),
        (StateTable::ConsoleSetup, "id", MARGIN),
        (StateTable::AttemptGuard, "person_id", MARGIN),
        (StateTable::RemovedPassword, "user_rid", MARGIN),
        (StateTable::ClientAppRefusal, "rid", MARGIN),
        (StateTable::SignInAttempt, "digest", MARGIN),
    ];
    for (table, key, retention) in expiring {
        let oldest = format_args!(
            "WHERE {key} IN (SELECT {key} FROM {} WHERE expires_on < ?1 ORDER BY expires_on LIMIT {BATCH})",
            table.name()
        );
        tokens = tokens.max(tx.execute(&table.delete(oldest), &[Value::Int(now.0 - retention)])?);
    }
    let untold = tx.execute(
        &StateTable::LogoutDelivery.delete(format_args!(
            "WHERE id IN (SELECT id FROM logout_delivery WHERE dead_on < ?1 LIMIT {BATCH})"
        )),
        &[Value::Int(now.0 - FAILED_SIGN_OUT_RETENTION)],
    )?;
    let refusals = chancery_provisioning::prune_removal_refusals(tx, now, BATCH)?;
    let unsent = StateTable::LogoutDelivery.update(format_args!(
        "SET dead_on = ?2 WHERE id IN (SELECT id FROM logout_delivery WHERE due_on < ?1 AND leased_until < ?1 \
         AND dead_on IS NULL ORDER BY due_on LIMIT {BATCH})"
    ));
    let unsent = tx.execute(&unsent, &[Value::Int(now.0 - UNSENT_SIGN_OUT_RETENTION), Value::Int(now.0)])?;
    let mails = chancery_mail::expire(tx, Timestamp(now.0 - MARGIN))?.max(unsent);
    let mails = mails.max(chancery_mail::prune(tx, Timestamp(now.0 - MAIL_RETENTION))?);
    let (tried, dead) = (Timestamp(now.0 - ATTEMPT_RETENTION), Timestamp(now.0 - DEAD_RETENTION));
    let deliveries = chancery_webhook::state::prune(tx, tried, dead, BATCH)?;
    Ok(deliveries.max(keys).max(claims).max(ceremonies).max(tokens).max(untold).max(refusals).max(mails))
}
