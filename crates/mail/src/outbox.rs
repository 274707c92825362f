//! The table of mails on their way out.

use chancery_record::{Timestamp, Value};
use chancery_store::{Error, Figure, FigureSource, FigureUnit, StateTable, Tx};
use uuid::Uuid;

use crate::Kind;

pub const WAITING: &str = "Waiting";
pub const DEAD: &str = "Dead";
/// Rows pruned in one transaction, so that others do not wait.
const PIECE: u64 = 1000;

/// What operators see of mails.
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
    /// New and random or from the time; also the mail's `Message-ID`.
    pub id: Uuid,
    /// Number of the store whose server sends it.
    pub store: i64,
    /// The user whom it is about: it goes when the user does.
    pub person: Option<Uuid>,
    /// What it is about.
    pub kind: Kind,
    /// The option `EMailSenderAddress`: an address, with or without a name before it.
    pub sender: String,
    /// An address.
    pub recipient: String,
    /// The recipient's language (BCP 47).
    pub locale: Option<String>,
    /// The template's data as JSON (see [`Kind`]), sealed for [`place`] of `id`.
    pub sealed_data: Vec<u8>,
    /// Now; the mail's `Date`.
    pub created_on: Timestamp,
    /// When it is not worth sending any more: the end of the token that is in it.
    pub expires_on: Timestamp,
}

/// The place that a mail's data is sealed for.
pub fn place(id: Uuid) -> String {
    format!("mail_message/{id}")
}

/// Queues a mail within the operation's own transaction: it is sent if that commits, and not
/// otherwise.
pub fn enqueue(tx: &mut Tx<'_>, mail: NewMail) -> Result<(), Error> {
    tx.queue(
        &StateTable::MailMessage.insert(
            "(id, store, kind, state, sender, recipient, locale, sealed_data, created_on, \
         expires_on, attempts, due_on, leased_until, person) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?9, 0, ?11)",
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
        ],
    )
}

/// Forgets the mails about users who are gone, sent or not; at most 512 users.
pub fn forget(tx: &mut Tx<'_>, store: i64, persons: &[Uuid]) -> Result<(), Error> {
    for person in persons {
        let text = StateTable::MailMessage.delete("WHERE store = ?1 AND person = ?2");
        tx.queue(&text, vec![store.into(), (*person).into()])?;
    }
    Ok(())
}

/// Figures about the outbox, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Mails that wait or are being sent.
    pub waiting: i64,
    /// Mails that were given up and are kept for an operator to see.
    pub dead: i64,
}

/// Counts the mails of all stores.
pub fn count(tx: &mut Tx<'_>) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    tx.query("SELECT state, count(*) FROM mail_message GROUP BY state", &[], |row| {
        match row.text(0)? {
            WAITING => counts.waiting = row.int(1)?,
            _ => counts.dead = row.int(1)?,
        }
        Ok(())
    })?;
    Ok(counts)
}

/// Removes some of the mails that died before a moment (30 days ago, say); how many. Fewer than
/// 1000: there are no more.
pub fn prune(tx: &mut Tx<'_>, before: Timestamp) -> Result<u64, Error> {
    tx.execute(
        &StateTable::MailMessage.delete(format_args!(
            "WHERE rid IN (SELECT rid FROM mail_message WHERE state = ?1 AND due_on < ?2 \
             ORDER BY due_on LIMIT {PIECE})"
        )),
        &[DEAD.into(), before.0.into()],
    )
}

/// A mail as it waits.
pub struct Waiting {
    pub id: Uuid,
    pub store: i64,
    pub kind: String,
    pub sender: String,
    pub recipient: String,
    pub locale: Option<String>,
    pub sealed_data: Vec<u8>,
    pub created_on: Timestamp,
    pub expires_on: Timestamp,
    pub attempts: i64,
}

/// Mails of one store that are sent at the same time, here and elsewhere: one whose server stalls
/// does not hold up the others.
const OF_ONE_STORE: i64 = 2;

/// Mails that are due and leased to nobody, the oldest first, few of each store; and whether there
/// are more.
pub fn due(tx: &mut Tx<'_>, now: Timestamp, limit: usize) -> Result<(Vec<Waiting>, bool), Error> {
    let (mut found, mut more) = (Vec::new(), false);
    tx.query(
        &format!(
            "SELECT id, store, kind, sender, recipient, locale, sealed_data, created_on, expires_on, attempts, place \
             FROM (SELECT m.*, ROW_NUMBER() OVER (PARTITION BY m.store ORDER BY m.due_on, m.rid) + \
             (SELECT count(*) FROM mail_message l WHERE l.store = m.store AND l.state = ?1 AND l.leased_until > ?2) \
             AS place FROM mail_message m WHERE m.state = ?1 AND m.due_on <= ?2 AND m.leased_until <= ?2) waiting \
             ORDER BY CASE WHEN place <= {OF_ONE_STORE} THEN 0 ELSE 1 END, due_on, rid LIMIT {}",
            limit + 1
        ),
        &[WAITING.into(), now.0.into()],
        |row| {
            if found.len() == limit || row.int(10)? > OF_ONE_STORE {
                more = true;
                return Ok(());
            }
            found.push(Waiting {
                id: row.id(0)?,
                store: row.int(1)?,
                kind: row.text(2)?.to_owned(),
                sender: row.text(3)?.to_owned(),
                recipient: row.text(4)?.to_owned(),
                locale: if row.is_null(5)? { None } else { Some(row.text(5)?.to_owned()) },
                sealed_data: row.bytes(6)?.to_vec(),
                created_on: Timestamp(row.int(7)?),
                expires_on: Timestamp(row.int(8)?),
                attempts: row.int(9)?,
            });
            Ok(())
        },
    )?;
    Ok((found, more))
}

/// Leases a mail and counts the attempt: one that kills its process is not tried for ever. Whether
/// it was still to be had.
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

/// Gives up a mail that nobody holds; whether it was still to be had.
pub fn bury(tx: &mut Tx<'_>, id: Uuid, now: Timestamp, why: &str) -> Result<bool, Error> {
    let changed = tx.execute(
        &StateTable::MailMessage.update(
            "SET state = ?1, due_on = ?2, sealed_data = ?3, lease = NULL, last_error = ?4 \
         WHERE id = ?5 AND state = ?6 AND leased_until <= ?2",
        ),
        &[DEAD.into(), now.0.into(), Value::Bytes(Vec::new()), why.into(), id.into(), WAITING.into()],
    )?;
    Ok(changed == 1)
}

/// What became of a mail that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server took it.
    Sent,
    /// To be tried again then, because of this.
    Later(Timestamp, String),
    /// Given up, because of this.
    Never(String),
}

/// Writes down what became of a leased mail. Whether the lease still held.
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
        Outcome::Never(why) => tx.execute(
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
