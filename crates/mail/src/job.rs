//! Sends the mails of the outbox.

use std::{path::PathBuf, sync::Arc, time::Duration};

use chancery_fetch::Permission;
use chancery_record::{Secret, Timestamp};
use chancery_store::{Error, Mode, Store, Tx};
use futures_util::future::join_all;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    Kind, MailServer,
    compose::compose,
    failure::Failure,
    outbox::{Outcome, QueuedMail, associated_data, due, finish, give_up, is_any_due, lease},
    program,
    send::send,
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

/// Decrypts a mail's data, by its associated data ([`associated_data`]) and the stored bytes. `None`: it
/// cannot.
pub type Open = dyn Fn(&str, &[u8]) -> Option<Secret> + Send + Sync;

/// The means of delivery of a store's mail.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A mail server.
    Smtp(MailServer),
    /// The operator's delivery program.
    Program(PathBuf),
}

impl From<MailServer> for Transport {
    fn from(server: MailServer) -> Self {
        Self::Smtp(server)
    }
}

impl Transport {
    fn time(&self) -> Duration {
        match self {
            Self::Smtp(server) => server.timeout,
            Self::Program(_) => program::TIME,
        }
    }
}

/// Finds the carrier of a store's mail, or of an MFA instance's with a mail server of its own, within the transaction
/// that leases the mail. `None`: none is configured, or its configuration is not valid; the mail waits for that to
/// change.
pub type ServerOf =
    Arc<dyn Fn(&mut Tx<'_>, i64, Option<Uuid>) -> Result<Option<Transport>, Error> + Send + Sync>;

/// The result of a call of [`deliver_due`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryReport {
    /// Mails that were delivered.
    pub sent: u32,
    /// Mails to be tried again later.
    pub retried: u32,
    /// Mails that were given up.
    pub given_up: u32,
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
    permission: Permission,
    now: Timestamp,
    over: Timestamp,
    lease: Uuid,
    open: &Open,
    server_of: &ServerOf,
) -> Result<DeliveryReport, Error> {
    // most calls find none: a write that changes nothing would still be a commit
    if !store.run("FindMail", Mode::Quick, None, move |tx| is_any_due(tx, now)).await? {
        return Ok(DeliveryReport::default());
    }
    let began = Instant::now();
    let server_of = Arc::clone(server_of);
    let claim = move |tx: &mut Tx<'_>| claim(tx, now, over, lease, &server_of);
    let (claimed, mut delivered) = store.run("LeaseMail", Mode::Write, None, claim).await?;

    let outcomes = join_all(claimed.into_iter().map(|(mail, server)| async move {
        let outcome = attempt(permission, &mail, server, now, began, open).await;
        let written = outcome.clone();
        let settle = move |tx: &mut Tx<'_>| finish(tx, mail.id, lease, now, &written);
        let held = store.run("FinishMail", Mode::Write, None, settle).await?;
        if let Outcome::GivenUp(why) = &outcome {
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
            Ok(Outcome::GivenUp(_)) => delivered.given_up += 1,
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(delivered), Err)
}

type Claimed = Vec<(QueuedMail, Option<Transport>)>;

fn claim(
    tx: &mut Tx<'_>,
    now: Timestamp,
    over: Timestamp,
    holder: Uuid,
    server_of: &ServerOf,
) -> Result<(Claimed, DeliveryReport), Error> {
    let mut delivered = DeliveryReport::default();
    let mut claimed = Vec::new();
    let (mails, more) = due(tx, now, AT_ONCE)?;
    for mut mail in mails {
        let why = if mail.expires_on <= over {
            Some("it expired before it could be sent")
        } else {
            (mail.attempts >= ATTEMPTS).then_some("the attempts to send it did not end")
        };
        if let Some(why) = why {
            delivered.given_up += u32::from(give_up(tx, mail.id, now, why)?);
            continue;
        }
        let server = server_of(tx, mail.store, mail.mfa_instance)?;
        let sending = server.as_ref().map_or(Duration::ZERO, Transport::time);
        if lease(tx, mail.id, holder, now, now.plus(milliseconds(sending + MARGIN)))? {
            mail.attempts += 1;
            claimed.push((mail, server));
        }
    }
    // if no mail could be leased, other callers hold them: calling again at once is of no use
    delivered.left = more && (!claimed.is_empty() || delivered.given_up > 0);
    Ok((claimed, delivered))
}

async fn attempt(
    permission: Permission,
    mail: &QueuedMail,
    transport: Option<Transport>,
    now: Timestamp,
    began: Instant,
    open: &Open,
) -> Outcome {
    let failure = match (transport, open(&associated_data(mail.id), &mail.sealed_data)) {
        (None, _) => Failure::Transient("the store has no valid mail server".to_owned()),
        (_, None) => Failure::Transient("its data cannot be decrypted".to_owned()),
        // the program replaces a missing mail server, but only where a user could not continue without the
        // mail
        (Some(Transport::Program(_)), Some(_)) if mail.kind != Kind::PasswordReset.name() => {
            Failure::Transient("the store has no valid mail server".to_owned())
        }
        (Some(Transport::Program(path)), Some(data)) => {
            let end = began + program::TIME + MARGIN / 2;
            match program::run(permission, &path, mail, &data, end).await {
                Ok(()) => return Outcome::Sent,
                Err(failure) => failure,
            }
        }
        (Some(Transport::Smtp(server)), Some(data)) => match compose(mail, &data) {
            Err(why) => Failure::Permanent(why),
            Ok(message) => {
                // the lease outlives the sending, however long the store took to grant it
                let end = began + server.timeout + MARGIN / 2;
                match send(permission, &server, &message, end).await {
                    Ok(()) => return Outcome::Sent,
                    Err(failure) => failure,
                }
            }
        },
    };
    match failure {
        Failure::Permanent(why) => Outcome::GivenUp(why),
        Failure::Transient(why) if mail.attempts >= ATTEMPTS => {
            Outcome::GivenUp(format!("given up after {ATTEMPTS} attempts: {why}"))
        }
        Failure::Transient(why) => Outcome::Later(now.plus(rest(mail.attempts)), why),
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
