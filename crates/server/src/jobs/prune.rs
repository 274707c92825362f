//! Deletes expired events, idempotency keys, tokens, sign-ins and mails.

use std::time::Duration;

use chancery_record::{Timestamp, Value};
use chancery_resource::{LIST, Row, Sql};
use chancery_store::{Class, Error, Mode, StateTable, Store, Tx};

use super::{Job, bounded};

/// The rest between runs.
const REST: Duration = Duration::from_mins(10);
/// How long what came of deliveries of events is kept, in milliseconds.
const ATTEMPTS_KEPT: i64 = 7 * 24 * 3600 * 1000;
/// How long events wait for a subscription that is behind, and deliveries that were given up are kept, in milliseconds.
const UNSENT_KEPT: i64 = 30 * 24 * 3600 * 1000;
/// How long events are kept, in milliseconds.
const EVENTS_KEPT: i64 = 7 * 24 * 3600 * 1000;
/// How long idempotency keys are kept, in milliseconds.
const KEYS_KEPT: i64 = 24 * 3600 * 1000;
/// How long mails that were given up are kept, in milliseconds.
const MAILS_KEPT: i64 = 30 * 24 * 3600 * 1000;
/// How long sign-outs are kept that a client app could not be told, in milliseconds.
const UNTOLD_KEPT: i64 = 7 * 24 * 3600 * 1000;
/// How long proofs and tokens are kept beyond their expiry, in milliseconds: clocks of processes differ.
const MARGIN: i64 = 60 * 1000;
/// How long sessions, grants and codes are kept beyond their expiry, in milliseconds: a code that is shown again
/// ends the grant that it made.
const SIGN_INS_KEPT: i64 = 24 * 3600 * 1000;
/// Rows deleted in one transaction, so that others do not wait.
const PIECE: u64 = 1000;

/// Deletes expired rows.
pub fn job(store: &Store, now: fn() -> Timestamp) -> Job {
    let store = store.with(Class::Background);
    Job::new("prune", REST, move || prune(store.clone(), now)).exclusive()
}

async fn prune(store: Store, now: fn() -> Timestamp) -> Result<(), String> {
    let moment = bounded(&store, now());
    loop {
        let piece = store.run("Prune", Mode::Write, None, move |tx| prune_piece(tx, moment)).await;
        if piece.map_err(|error: Error| error.to_string())? < PIECE {
            return Ok(());
        }
    }
}

/// Deletes a batch of expired rows; the number of rows of the kind that had most.
///
/// # Errors
/// The store's.
pub fn prune_piece(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, Error> {
    let events = prune_events(tx, Timestamp(now.0 - EVENTS_KEPT), Timestamp(now.0 - UNSENT_KEPT))?;
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
    let mails = chancery_mail::prune(tx, Timestamp(now.0 - MAILS_KEPT))?;
    let (tried, dead) = (Timestamp(now.0 - ATTEMPTS_KEPT), Timestamp(now.0 - UNSENT_KEPT));
    let deliveries = chancery_webhook::state::prune(tx, (tried, dead), PIECE)?;
    Ok(deliveries.max(events).max(keys).max(claims).max(ceremonies).max(tokens).max(untold).max(mails))
}

/// Up to which position all active subscriptions have read a trail; none where there are none.
fn read_by_all(tx: &mut Tx<'_>, trail: i64) -> Result<Option<i64>, Error> {
    let text = "SELECT min(r.position) FROM event_reader r JOIN event_subscription s ON s.id = r.subscription_id \
        WHERE r.trail = ?1 AND s.is_active = ?2";
    let read = |row: &Row<'_>| if row.is_null(0)? { Ok(None) } else { row.int(0).map(Some) };
    Ok(tx.one(text, &[Value::Int(trail), Value::Bool(true)], read)?.flatten())
}

/// Deletes the oldest events of each trail, up to the first that is to be kept; the number of events of the trail that had most.
fn prune_events(tx: &mut Tx<'_>, since: Timestamp, unsent: Timestamp) -> Result<u64, Error> {
    // an event's number is its time in microseconds
    let (oldest, oldest_unsent) = (since.0.saturating_mul(1000), unsent.0.saturating_mul(1000));
    let mut trails = Vec::new();
    tx.query("SELECT trail, pruned FROM event_trail WHERE pruned < placed ORDER BY trail", &[], |row| {
        trails.push((row.int(0)?, row.int(1)?));
        Ok(())
    })?;
    let mut most = 0;
    for (trail, pruned) in trails {
        let text = format!(
            "SELECT position, event FROM event_place WHERE trail = ?1 AND position > ?2 ORDER BY position LIMIT {PIECE}"
        );
        let (mut events, mut last, mut is_over) = (Vec::new(), pruned, false);
        let read = read_by_all(tx, trail)?.unwrap_or(i64::MAX);
        tx.query(&text, &[Value::Int(trail), Value::Int(pruned)], |row| {
            let (position, event) = (row.int(0)?, row.int(1)?);
            is_over |= event >= oldest || (position > read && event >= oldest_unsent);
            if !is_over {
                last = row.int(0)?;
                events.push(row.int(1)?);
            }
            Ok(())
        })?;
        if events.is_empty() {
            continue;
        }
        let advance = StateTable::EventTrail.update("SET pruned = ?1 WHERE trail = ?2 AND pruned = ?3");
        tx.queue_one(&advance, vec![Value::Int(last), Value::Int(trail), Value::Int(pruned)])?;
        // the last place stays: cursors of who read up to it are checked by it
        let places = StateTable::EventPlace.delete("WHERE trail = ?1 AND position < ?2");
        tx.queue(&places, vec![Value::Int(trail), Value::Int(last)])?;
        for chunk in events.chunks(LIST) {
            let mut sql = Sql::new("WHERE id IN ");
            sql.add_list(chunk.iter().map(|event| Value::Int(*event)));
            tx.queue(&StateTable::OutboxEvent.delete(&sql.text), sql.parameters)?;
        }
        most = most.max(events.len() as u64);
    }
    // while trails are behind, what has no position would be looked for among all that waits to be pruned
    if most < PIECE { Ok(most.max(prune_unplaced(tx, oldest)?)) } else { Ok(most) }
}

/// Deletes events before a number that an older release wrote without anything that gives them a position.
fn prune_unplaced(tx: &mut Tx<'_>, oldest: i64) -> Result<u64, Error> {
    let lost = StateTable::OutboxEvent.delete(format_args!(
        "WHERE id IN (SELECT o.id FROM outbox_event o WHERE o.id < ?1 \
         AND NOT EXISTS (SELECT 1 FROM event_place p WHERE p.event = o.id) \
         AND NOT EXISTS (SELECT 1 FROM event_pending w WHERE w.trail = o.store AND w.event = o.id) \
         AND NOT EXISTS (SELECT 1 FROM audit_pending w WHERE w.entry = o.id) ORDER BY o.id LIMIT {PIECE})"
    ));
    tx.execute(&lost, &[Value::Int(oldest)])
}
