//! The outbox: the table of mails to be sent.

use chancery_record::{Timestamp, Value};
use chancery_store::{Error, Figure, FigureSource, FigureUnit, StateTable, Tx, selectable};
use uuid::Uuid;

use crate::Kind;

pub const WAITING: &str = "Waiting";
pub const DEAD: &str = "Dead";
/// The most rows pruned in one transaction, so that others do not wait.
const BATCH: u64 = 1000;

/// The outbox's figures, for metrics.
pub static FIGURES: [Figure; 2] = [
    Figure {
        name: "mails_waiting",
        help: "Mails that wait to be sent",
        unit: FigureUnit::Count,
        source: FigureSource::Rows("1", "mail_message WHERE state = 'Waiting'"),
    },
    Figure {
        name: "mails_dead",
        help: "Mails that were given up",
        unit: FigureUnit::Count,
        source: FigureSource::Rows("1", "mail_message WHERE state = 'Dead'"),
    },
];

/// A mail to be sent.
#[derive(Clone, Debug)]
pub struct NewMail {
    /// A new id, also the mail's `Message-ID`.
    pub id: Uuid,
    /// The number of the store whose mail server sends it.
    pub store: i64,
    /// The MFA instance whose own mail server sends it; none: the store's.
    pub mfa_instance: Option<Uuid>,
    /// The user that the mail is about; it is deleted with the user.
    pub person: Option<Uuid>,
    /// The kind of mail.
    pub kind: Kind,
    /// The sender, by the option `EMailSenderAddress`: an address, with or without a name before it.
    pub sender: String,
    /// The recipient's address.
    pub recipient: String,
    /// The recipient's language (BCP 47).
    pub locale: Option<String>,
    /// The template's data as JSON (see [`Kind`]), sealed with the [`associated_data`] of `id`.
    pub sealed_data: Vec<u8>,
    /// The time of queueing, also the mail's `Date`.
    pub created_on: Timestamp,
    /// When sending has no use any more: the expiry of the token in the mail.
    pub expires_on: Timestamp,
}

/// The associated data that a mail's data is sealed with.
pub fn associated_data(id: Uuid) -> String {
    format!("mail_message/{id}")
}

/// Queues a mail within the operation's own transaction: it is sent only if that commits.
pub fn enqueue(tx: &mut Tx<'_>, mail: NewMail) -> Result<(), Error> {
    tx.queue(
        &StateTable::MailMessage.insert(
            "(id, store, kind, state, sender, recipient, locale, sealed_data, created_on, \
         expires_on, attempts, due_on, leased_until, person, mfa_instance_id) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?9, 0, ?11, ?12)",
        ),
        vec![
            mail.id.into(),
            mail.store.into(),
            mail.kind.name().into(),
            WAITING.into(),
            mail.sender.into(),
            mail.recipient.into(),
            mail.locale.map_or(Value::Null, Value::Text),
            Value::Bytes(mail.sealed_data),
            mail.created_on.0.into(),
            mail.expires_on.0.into(),
            mail.person.into(),
            mail.mfa_instance.into(),
        ],
    )
}

/// Deletes the mails about purged users, sent or not; at most 512 users.
pub fn forget(tx: &mut Tx<'_>, store: i64, persons: &[Uuid]) -> Result<(), Error> {
    for person in persons {
        let text = StateTable::MailMessage.delete("WHERE store = ?1 AND person = ?2");
        tx.queue(&text, vec![store.into(), (*person).into()])?;
    }
    Ok(())
}

/// The numbers of mails in the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The mails that wait or are being sent.
    pub waiting: i64,
    /// The mails that were given up, and are retained for an operator to see.
    pub dead: i64,
}

selectable! {
    /// The number of mails in a state.
    struct StateCount<'r> from "FROM mail_message GROUP BY state" {
        state: &'r str = "state",
        count: i64 = "count(*)",
    }
}

/// Counts the mails of all stores.
pub fn count(tx: &mut Tx<'_>) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    tx.query(StateCount::SELECT, &[], |row| {
        let StateCount { state, count } = StateCount::read(row)?;
        match state {
            WAITING => counts.waiting = count,
            _ => counts.dead = count,
        }
        Ok(())
    })?;
    Ok(counts)
}

/// The state of a store's mails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailState {
    /// Whether mails wait or are being sent.
    pub is_waiting: bool,
    /// The last error of a mail that is still here, in the words of the mail server where it answered.
    pub last_error: Option<String>,
}

/// The newest mails of a store, whose state is reported.
const MAX_REPORTED: u32 = 20;

selectable! {
    /// A mail whose state is reported.
    struct ReportedMail<'r> {
        state: &'r str = "state",
        last_error: Option<String> = "last_error",
    }
}

/// The state of the newest mails of a store.
pub fn mail_state(tx: &mut Tx<'_>, store: i64) -> Result<MailState, Error> {
    let text = format!(
        "SELECT {} FROM mail_message WHERE store = ?1 ORDER BY rid DESC LIMIT {MAX_REPORTED}",
        ReportedMail::COLUMNS
    );
    let mut state = MailState::default();
    tx.query(&text, &[store.into()], |row| {
        let mail = ReportedMail::read(row)?;
        state.is_waiting |= mail.state == WAITING;
        state.last_error = state.last_error.take().or(mail.last_error);
        Ok(())
    })?;
    Ok(state)
}

/// Deletes some of the mails that were given up before a time; returns how many. Fewer than 1000: there are
/// no more.
pub fn prune(tx: &mut Tx<'_>, before: Timestamp) -> Result<u64, Error> {
    tx.execute(
        &StateTable::MailMessage.delete(format_args!(
            "WHERE rid IN (SELECT rid FROM mail_message WHERE state = ?1 AND due_on < ?2 \
             ORDER BY due_on LIMIT {BATCH})"
        )),
        &[DEAD.into(), before.0.into()],
    )
}

/// Gives up some of the mails that wait beyond their expiry, in a process that sends none; returns how many. Fewer than
/// 1000: there are no more.
pub fn expire(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, Error> {
    let which = "state = ?1 AND expires_on <= ?2 AND leased_until <= ?2";
    discard(tx, which, WAITING, now, "it expired before it could be sent")
}

/// Gives up some of the waiting mails with a code or a link, which a restore ends; returns how many. Fewer than
/// 1000: there are no more.
pub fn take_back(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, Error> {
    let which = format!(
        "state = ?1 AND kind IN ('{}', '{}', '{}')",
        Kind::PasswordReset.name(),
        Kind::SecurityContactCode.name(),
        Kind::SignInCode.name()
    );
    discard(tx, &which, WAITING, now, "the installation was restored")
}

/// Gives up some of the mails of this condition; `?1` is the state, `?2` the time.
fn discard(tx: &mut Tx<'_>, which: &str, state: &str, now: Timestamp, why: &str) -> Result<u64, Error> {
    tx.execute(
        &StateTable::MailMessage.update(format_args!(
            "SET state = '{DEAD}', due_on = ?2, sealed_data = ?3, lease = NULL, last_error = ?4 \
             WHERE rid IN (SELECT rid FROM mail_message WHERE {which} LIMIT {BATCH})"
        )),
        &[state.into(), now.0.into(), Value::Bytes(Vec::new()), why.into()],
    )
}

selectable! {
    /// A mail that waits in the outbox.
    pub struct QueuedMail {
        pub id: Uuid = "id",
        pub store: i64 = "store",
        pub kind: String = "kind",
        pub sender: String = "sender",
        pub recipient: String = "recipient",
        pub locale: Option<String> = "locale",
        pub sealed_data: Vec<u8> = "sealed_data",
        pub created_on: Timestamp = "created_on",
        pub expires_on: Timestamp = "expires_on",
        pub attempts: i64 = "attempts",
        /// The place among the mails of the store, after those that are being sent.
        pub place: i64 = "place",
        pub mfa_instance: Option<Uuid> = "mfa_instance_id",
    }
}

/// The most mails of one store that are sent concurrently, here and in other processes: a store whose server
/// stalls does not hold up the others.
const OF_ONE_STORE: i64 = 2;

/// Whether a mail is due and not leased.
pub fn is_any_due(tx: &mut Tx<'_>, now: Timestamp) -> Result<bool, Error> {
    let text = "SELECT 1 FROM mail_message WHERE state = ?1 AND due_on <= ?2 AND leased_until <= ?2 LIMIT 1";
    Ok(tx.one(text, &[WAITING.into(), Value::Int(now.0)], |_| Ok(()))?.is_some())
}

/// The mails that are due and not leased, the oldest first, few of each store; and whether there are more.
pub fn due(tx: &mut Tx<'_>, now: Timestamp, limit: usize) -> Result<(Vec<QueuedMail>, bool), Error> {
    let (mut mails, mut more) = (Vec::new(), false);
    tx.query(
        &format!(
            "SELECT {} FROM (SELECT m.*, ROW_NUMBER() OVER (PARTITION BY m.store ORDER BY m.due_on, m.rid) + \
             (SELECT count(*) FROM mail_message l WHERE l.store = m.store AND l.state = ?1 AND l.leased_until > ?2) \
             AS place FROM mail_message m WHERE m.state = ?1 AND m.due_on <= ?2 AND m.leased_until <= ?2) waiting \
             ORDER BY CASE WHEN place <= {OF_ONE_STORE} THEN 0 ELSE 1 END, due_on, rid LIMIT {}",
            QueuedMail::COLUMNS,
            limit + 1
        ),
        &[WAITING.into(), now.0.into()],
        |row| {
            let mail = QueuedMail::read(row)?;
            if mails.len() == limit || mail.place > OF_ONE_STORE {
                more = true;
            } else {
                mails.push(mail);
            }
            Ok(())
        },
    )?;
    Ok((mails, more))
}

/// Leases a mail; returns whether it was still free. The attempt counts from now, so that a mail that kills
/// its process is not tried for ever.
pub fn lease(
    tx: &mut Tx<'_>,
    id: Uuid,
    lease: Uuid,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, Error> {
    let changed = tx.execute(
        &StateTable::MailMessage.update(
            "SET lease = ?1, leased_until = ?2, attempts = attempts + 1 \
         WHERE id = ?3 AND state = ?4 AND due_on <= ?5 AND leased_until <= ?5",
        ),
        &[lease.into(), until.0.into(), id.into(), WAITING.into(), now.0.into()],
    )?;
    Ok(changed == 1)
}

/// Gives up a mail that is not leased; returns whether it was still free.
pub fn give_up(tx: &mut Tx<'_>, id: Uuid, now: Timestamp, why: &str) -> Result<bool, Error> {
    let changed = tx.execute(
        &StateTable::MailMessage.update(
            "SET state = ?1, due_on = ?2, sealed_data = ?3, lease = NULL, last_error = ?4 \
         WHERE id = ?5 AND state = ?6 AND leased_until <= ?2",
        ),
        &[DEAD.into(), now.0.into(), Value::Bytes(Vec::new()), why.into(), id.into(), WAITING.into()],
    )?;
    Ok(changed == 1)
}

/// The outcome of an attempt to send a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The mail was delivered.
    Sent,
    /// The mail is to be tried again at this time, for this reason.
    Later(Timestamp, String),
    /// The mail is given up, for this reason.
    GivenUp(String),
}

/// Records the outcome of a leased mail; returns whether the lease still held.
pub fn finish(
    tx: &mut Tx<'_>,
    id: Uuid,
    lease: Uuid,
    now: Timestamp,
    outcome: &Outcome,
) -> Result<bool, Error> {
    let changed = match outcome {
        Outcome::Sent => tx.execute(
            &StateTable::MailMessage.delete("WHERE id = ?1 AND lease = ?2"),
            &[id.into(), lease.into()],
        ),
        Outcome::Later(due, why) => tx.execute(
            &StateTable::MailMessage.update(
                "SET due_on = ?1, lease = NULL, leased_until = 0, last_error = ?2 \
             WHERE id = ?3 AND lease = ?4",
            ),
            &[due.0.into(), why.as_str().into(), id.into(), lease.into()],
        ),
        Outcome::GivenUp(why) => tx.execute(
            &StateTable::MailMessage.update(
                "SET state = ?1, due_on = ?2, sealed_data = ?3, lease = NULL, leased_until = 0, \
             last_error = ?4 WHERE id = ?5 AND lease = ?6",
            ),
            &[
                DEAD.into(),
                now.0.into(),
                Value::Bytes(Vec::new()),
                why.as_str().into(),
                id.into(),
                lease.into(),
            ],
        ),
    };
    Ok(changed? == 1)
}
