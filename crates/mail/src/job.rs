//! Sends the mails that wait in the outbox.

use std::{path::PathBuf, sync::Arc, time::Duration};

use chancery_record::{Secret, Timestamp};
use chancery_store::{Error, Mode, Store, Tx};
use futures_util::future::join_all;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    Kind, MailServer,
    compose::compose,
    outbox::{Outcome, Waiting, associated_data, bury, due, finish, lease},
    program,
    send::{Failure, send},
};

/// The attempts before a mail is given up: with the rests between them, about three hours.
pub const ATTEMPTS: i64 = 10;
/// The most mails sent concurrently.
const AT_ONCE: usize = 4;
/// How much longer a lease is than sending may take: for a slow store, for clocks that differ, and for
/// recording the outcome.
const MARGIN: Duration = Duration::from_mins(1);
/// The rest after the first attempt, and the longest, in milliseconds.
const RESTS: (i64, i64) = (30_000, 3_600_000);

/// Decrypts a mail's data, by its associated data ([`associated_data`]) and the stored bytes. `None`: it cannot.
pub type Open = dyn Fn(&str, &[u8]) -> Option<Secret> + Send + Sync;

/// The means of delivery of a store's mail.
#[derive(Clone, Debug)]
pub enum Carrier {
    /// A mail server.
    Smtp(MailServer),
    /// The operator's delivery program.
    Program(PathBuf),
}

impl From<MailServer> for Carrier {
    fn from(server: MailServer) -> Self {
        Self::Smtp(server)
    }
}

impl Carrier {
    fn time(&self) -> Duration {
        match self {
            Self::Smtp(server) => server.timeout,
            Self::Program(_) => program::TIME,
        }
    }
}

/// Finds the carrier of a store's mail, within the transaction that leases the mail. `None`: none is
/// configured, or its configuration is not valid; the mail waits for that to change.
pub type ServerOf = Arc<dyn Fn(&mut Tx<'_>, i64) -> Result<Option<Carrier>, Error> + Send + Sync>;

/// The result of a call of [`deliver_due`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Mails that were delivered.
    pub sent: u32,
    /// Mails to be tried again later.
    pub retried: u32,
    /// Mails that were given up.
    pub died: u32,
    /// Whether more are due: call again at once.
    pub left: bool,
}

/// Leases some mails that are due, sends them concurrently, each within its server's timeout, and records the
/// outcomes. `now` is the time of the call, `over` the time by which expiry is judged, `lease` a new id.
///
/// Any number of these calls may run concurrently, here and in other processes. One that dies, or whose
/// future is dropped, leaves leases behind; when these expire, its mails are due again.
///
/// # Errors
/// Errors of the store. Mails that could not be recorded as sent are sent again after their lease.
pub async fn deliver_due(
    store: &Store,
    now: Timestamp,
    over: Timestamp,
    lease: Uuid,
    open: &Open,
    server_of: &ServerOf,
) -> Result<Delivered, Error> {
    let began = Instant::now();
    let server_of = Arc::clone(server_of);
    let claim = move |tx: &mut Tx<'_>| claim(tx, (now, over), lease, &server_of);
    let (claimed, mut delivered) = store.run("LeaseMail", Mode::Write, None, claim).await?;

    let outcomes = join_all(claimed.into_iter().map(|(mail, server)| async move {
        let outcome = attempt(&mail, server, now, began, open).await;
        let written = outcome.clone();
        let settle = move |tx: &mut Tx<'_>| finish(tx, mail.id, lease, now, &written);
        let held = store.run("FinishMail", Mode::Write, None, settle).await?;
        if let Outcome::Never(why) = &outcome {
            tracing::warn!(id = %mail.id, store = mail.store, kind = mail.kind, why, "a mail was given up");
        }
        if !held {
            tracing::warn!(id = %mail.id, "the lease of a mail ended before it was settled");
        }
        Ok::<Outcome, Error>(outcome)
    }));
    let mut failed = None;
    for outcome in outcomes.await {
        match outcome {
            Ok(Outcome::Sent) => delivered.sent += 1,
            Ok(Outcome::Later(..)) => delivered.retried += 1,
            Ok(Outcome::Never(_)) => delivered.died += 1,
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(delivered), Err)
}

type Claimed = Vec<(Waiting, Option<Carrier>)>;

fn claim(
    tx: &mut Tx<'_>,
    (now, over): (Timestamp, Timestamp),
    holder: Uuid,
    server_of: &ServerOf,
) -> Result<(Claimed, Delivered), Error> {
    let mut delivered = Delivered::default();
    let mut claimed = Vec::new();
    let (found, more) = due(tx, now, AT_ONCE)?;
    for mut mail in found {
        let why = if mail.expires_on <= over {
            Some("it expired before it could be sent")
        } else {
            (mail.attempts >= ATTEMPTS).then_some("the attempts to send it did not end")
        };
        if let Some(why) = why {
            delivered.died += u32::from(bury(tx, mail.id, now, why)?);
            continue;
        }
        let server = server_of(tx, mail.store)?;
        let sending = server.as_ref().map_or(Duration::ZERO, Carrier::time);
        if lease(tx, mail.id, holder, now, now.plus(milliseconds(sending + MARGIN)))? {
            mail.attempts += 1;
            claimed.push((mail, server));
        }
    }
    // if no mail could be leased, other callers hold them: calling again at once is of no use
    delivered.left = more && (!claimed.is_empty() || delivered.died > 0);
    Ok((claimed, delivered))
}

async fn attempt(
    mail: &Waiting,
    carrier: Option<Carrier>,
    now: Timestamp,
    began: Instant,
    open: &Open,
) -> Outcome {
    let failure = match (carrier, open(&associated_data(mail.id), &mail.sealed_data)) {
        (None, _) => Failure::Now("the store has no valid mail server".to_owned()),
        (_, None) => Failure::Now("its data cannot be decrypted".to_owned()),
        // the program stands in for a missing mail server, and only where a user could not go on without the
        // mail
        (Some(Carrier::Program(_)), Some(_)) if mail.kind != Kind::PasswordReset.name() => {
            Failure::Now("the store has no valid mail server".to_owned())
        }
        (Some(Carrier::Program(path)), Some(data)) => {
            match program::run(&path, mail, &data, began + program::TIME + MARGIN / 2).await {
                Ok(()) => return Outcome::Sent,
                Err(failure) => failure,
            }
        }
        (Some(Carrier::Smtp(server)), Some(data)) => match compose(mail, &data) {
            Err(why) => Failure::Ever(why),
            Ok(letter) => {
                // the lease outlives the sending, however long the store took to grant it
                match send(&server, &letter, began + server.timeout + MARGIN / 2).await {
                    Ok(()) => return Outcome::Sent,
                    Err(failure) => failure,
                }
            }
        },
    };
    match failure {
        Failure::Ever(why) => Outcome::Never(why),
        Failure::Now(why) if mail.attempts >= ATTEMPTS => {
            Outcome::Never(format!("given up after {ATTEMPTS} attempts: {why}"))
        }
        Failure::Now(why) => Outcome::Later(now.plus(rest(mail.attempts)), why),
    }
}

/// The rest after this many attempts, in milliseconds.
fn rest(attempts: i64) -> i64 {
    let doublings = (attempts - 1).clamp(0, ATTEMPTS);
    (RESTS.0 << doublings).min(RESTS.1)
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{ATTEMPTS, rest};

    #[test]
    fn rests_double_up_to_an_hour() {
        let rests: Vec<i64> = (1..ATTEMPTS).map(|attempts| rest(attempts) / 1000).collect();
        assert_eq!(rests, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(rest(i64::MAX), 3_600_000);
    }
}
