//! Deletes expired events, idempotency keys, tokens, sign-ins, refusals and mails.

use std::{sync::Arc, time::Duration};

use chancery_record::{Timestamp, Value};
use chancery_store::{Class, Error, Mode, StateTable, Store, Tx};
use chancery_web::App;

use super::{
    Job, bounded,
    prune_events::{FIGURES, prune_events},
};

/// The rest between runs.
const REST: Duration = Duration::from_mins(10);
/// How long what came of deliveries of events is kept, in milliseconds.
const ATTEMPTS_KEPT: i64 = 7 * 24 * 3600 * 1000;
/// How long deliveries that were given up are kept, in milliseconds.
const DEAD_KEPT: i64 = 30 * 24 * 3600 * 1000;
/// How long idempotency keys are kept, in milliseconds.
const KEYS_KEPT: i64 = 24 * 3600 * 1000;
/// How long mails that were given up are kept, in milliseconds.
const MAILS_KEPT: i64 = 30 * 24 * 3600 * 1000;
/// How long sign-outs are kept that a client app could not be told, in milliseconds.
const UNTOLD_KEPT: i64 = 7 * 24 * 3600 * 1000;
/// After how long sign-outs are given up that are due and that nobody tells, since outbound traffic is off, in milliseconds.
const UNSENT: i64 = 3600 * 1000;
/// How long proofs and tokens are kept beyond their expiry, in milliseconds: clocks of processes differ.
const MARGIN: i64 = 60 * 1000;
/// How long sessions, grants and codes are kept beyond their expiry, in milliseconds: a code that is shown again
/// ends the grant that it made.
const SIGN_INS_KEPT: i64 = 24 * 3600 * 1000;
/// Rows deleted in one transaction, so that others do not wait.
const PIECE: u64 = 1000;

/// How far the process's clock may be from the reference clock for events to be pruned, in milliseconds.
const DOUBT: u64 = 3600 * 1000;

/// Deletes expired rows.
pub fn job(app: &Arc<App>, now: fn() -> Timestamp) -> Job {
    let app = Arc::clone(app);
    Job::new("prune", REST, move || prune(Arc::clone(&app), now())).exclusive()
}

async fn prune(app: Arc<App>, now: Timestamp) -> Result<(), String> {
    let store = app.store.with(Class::Background);
    let moment = bounded(&store, now);
    repeat(&store, move |tx| prune_piece(tx, moment)).await?;
    // whoever is behind could read on if the clock is wrong: what it says is not believed then
    let is_doubted = store.clock_offset(now.0).unsigned_abs() > DOUBT;
    app.note_figure(&FIGURES[0], i64::from(is_doubted));
    if is_doubted { Ok(()) } else { repeat(&store, move |tx| prune_events(tx, moment, PIECE)).await }
}

/// Deletes piece by piece, until one is not full.
async fn repeat(
    store: &Store,
    piece: impl FnMut(&mut Tx<'_>) -> Result<u64, Error> + Copy + Send + 'static,
) -> Result<(), String> {
    loop {
        let deleted = store.run("Prune", Mode::Write, None, piece).await;
        if deleted.map_err(|error: Error| error.to_string())? < PIECE {
            return Ok(());
        }
    }
}

/// Deletes a batch of expired rows that are no events; the number of rows of the kind that had most.
///
/// # Errors
/// The store's.
pub fn prune_piece(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, Error> {
    let keys = tx.execute(
        &StateTable::IdempotentAnswer.delete(format_args!(
            "WHERE started_on <= (SELECT max(started_on) FROM (SELECT started_on \
             FROM idempotent_answer WHERE started_on < ?1 ORDER BY started_on LIMIT {PIECE}) oldest)"
        )),
        &[Value::Int(now.0 - KEYS_KEPT)],
    )?;
    let claims = tx.execute(
        &StateTable::IdempotentClaim.delete(format_args!(
            "WHERE attempt IN (SELECT attempt FROM idempotent_claim \
             WHERE held_on < ?1 LIMIT {PIECE})"
        )),
        &[Value::Int(now.0 - KEYS_KEPT)],
    )?;
    let ceremonies = tx.execute(
        &StateTable::PasskeyCeremony.delete(format_args!(
            "WHERE id IN (SELECT id FROM passkey_ceremony WHERE expires_on < ?1 LIMIT {PIECE})"
        )),
        &[Value::Int(now.0)],
    )?;
    let mut tokens = 0;
    let expiring = [
        (StateTable::UsedProof, "digest", MARGIN),
        (StateTable::ReferenceToken, "digest", MARGIN),
        (StateTable::RevokedToken, "jti", MARGIN),
        (StateTable::AuthorizationCode, "digest", SIGN_INS_KEPT),
        (StateTable::DeviceAuthorization, "digest", SIGN_INS_KEPT),
        (StateTable::SignInSession, "id", SIGN_INS_KEPT),
        (StateTable::SignInGrant, "id", SIGN_INS_KEPT),
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
    for (table, key, kept) in expiring {
        let oldest = format_args!(
            "WHERE {key} IN (SELECT {key} FROM {} WHERE expires_on < ?1 ORDER BY expires_on LIMIT {PIECE})",
            table.name()
        );
        tokens = tokens.max(tx.execute(&table.delete(oldest), &[Value::Int(now.0 - kept)])?);
    }
    let untold = tx.execute(
        &StateTable::LogoutDelivery.delete(format_args!(
            "WHERE id IN (SELECT id FROM logout_delivery WHERE dead_on < ?1 LIMIT {PIECE})"
        )),
        &[Value::Int(now.0 - UNTOLD_KEPT)],
    )?;
    let refusals = chancery_provisioning::prune_refusals(tx, now, PIECE)?;
    let unsent = StateTable::LogoutDelivery.update(format_args!(
        "SET dead_on = ?2 WHERE id IN (SELECT id FROM logout_delivery WHERE due_on < ?1 AND leased_until < ?1 \
         AND dead_on IS NULL ORDER BY due_on LIMIT {PIECE})"
    ));
    let unsent = tx.execute(&unsent, &[Value::Int(now.0 - UNSENT), Value::Int(now.0)])?;
    let mails = chancery_mail::expire(tx, Timestamp(now.0 - MARGIN))?.max(unsent);
    let mails = mails.max(chancery_mail::prune(tx, Timestamp(now.0 - MAILS_KEPT))?);
    let (tried, dead) = (Timestamp(now.0 - ATTEMPTS_KEPT), Timestamp(now.0 - DEAD_KEPT));
    let deliveries = chancery_webhook::state::prune(tx, (tried, dead), PIECE)?;
    Ok(deliveries.max(keys).max(claims).max(ceremonies).max(tokens).max(untold).max(refusals).max(mails))
}
