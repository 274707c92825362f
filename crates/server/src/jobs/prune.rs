//! Deletes expired events, idempotency keys, tokens, sign-ins and mails.

use std::time::Duration;

use chancery_record::{Timestamp, Value};
use chancery_store::{Class, Error, Mode, StateTable, Store, Tx};

use super::{Job, bounded};

/// The rest between runs.
const REST: Duration = Duration::from_mins(10);
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
    // an event's number is its time in microseconds, so the lowest numbers are the oldest
    let events = tx.execute(
        &StateTable::OutboxEvent.delete(format_args!(
            "WHERE id IN (SELECT id FROM outbox_event WHERE id < ?1 ORDER BY id LIMIT {PIECE})"
        )),
        &[Value::Int((now.0 - EVENTS_KEPT) * 1000)],
    )?;
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
    Ok(events.max(keys).max(claims).max(ceremonies).max(tokens).max(untold).max(mails))
}
