//! Opening a connection, and the reasons of a failure.

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::address::HostConfig;
use crate::{
    Error,
    error::{describe, is_loss},
};

/// Settings of each connection: no statement runs for ever, and no forgotten transaction stays open. A prepared
/// statement is planned once: planning for each value costs more than it gains, and a plan that does not change
/// is predictable. Random and sequential pages cost the same: on today's disks they do, and otherwise the
/// planner reads whole tables to save some look-ups. For the same reason no table is read whole where there is
/// an index: a plan that was made while the table was empty would stay, and under serializable isolation it
/// conflicts with every write. The cost of such a plan is overstated then, and must not trigger its
/// compilation. They are not startup options, which not every pooler passes on.
pub const SETTINGS: &str = "SET statement_timeout = 30000; SET idle_in_transaction_session_timeout = 60000; \
    SET plan_cache_mode = force_generic_plan; SET random_page_cost = 1.1; SET enable_seqscan = off; SET jit = off; \
    SELECT pid, extract(epoch FROM backend_start)::text AS began, \
    CASE WHEN pg_is_in_recovery() THEN NULL ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline \
    FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// The reason why a connection could not be opened.
#[derive(Debug)]
pub struct ConnectionRefusal {
    pub why: String,
    /// Whether a later attempt may succeed: the server is starting, as opposed to a wrong password.
    pub is_transient: bool,
    /// Whether the server is not to blame: it has no free connection, or our files are unreadable.
    pub is_local: bool,
}

impl From<ConnectionRefusal> for Error {
    // whatever refuses a connection, nothing has changed
    fn from(refusal: ConnectionRefusal) -> Self {
        Self::Unavailable(refusal.why)
    }
}

impl ConnectionRefusal {
    /// A refusal by a server that may answer later.
    pub const fn transient(why: String) -> Self {
        Self { why, is_transient: true, is_local: false }
    }

    pub const fn permanent(why: String) -> Self {
        Self { why, is_transient: false, is_local: true }
    }

    pub fn of(error: &tokio_postgres::Error) -> Self {
        let is_transient = match error.as_db_error() {
            // the server is starting or stopping, or has no free connection
            Some(refusal) => ["08", "53", "57"].iter().any(|class| refusal.code().code().starts_with(class)),
            None => is_loss(error) && !is_of_tls(error),
        };
        let is_full = error.code().is_some_and(|code| code.code().starts_with("53"));
        Self { why: describe(error), is_transient, is_local: is_full }
    }
}

/// Whether certificate verification failed.
fn is_of_tls(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error)
        .and_then(|cause| cause.downcast_ref::<std::io::Error>())
        .and_then(std::io::Error::get_ref)
        .is_some_and(<dyn std::error::Error + Send + Sync + 'static>::is::<tokio_rustls::rustls::Error>)
}

/// The server process behind a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backend {
    pub process: i64,
    /// The process's start time: process numbers are reused.
    pub began: String,
    /// The server's timeline, which each promotion advances; `None` on a standby.
    pub timeline: Option<u32>,
}

/// Opens a connection with our settings, and reads its server process.
pub async fn open(host: &HostConfig) -> Result<(Client, Backend), ConnectionRefusal> {
    let refused = |error: tokio_postgres::Error| ConnectionRefusal::of(&error);
    let lost = |error| tracing::warn!(%error, "database connection lost");
    let client = match &host.tls {
        None => {
            let (client, connection) = host.config.connect(NoTls).await.map_err(refused)?;
            tokio::spawn(async move { connection.await.unwrap_or_else(lost) });
            client
        }
        Some(tls) => {
            let connector = tls.connector().map_err(ConnectionRefusal::permanent)?;
            let (client, connection) = host.config.connect(connector).await.map_err(refused)?;
            tokio::spawn(async move { connection.await.unwrap_or_else(lost) });
            client
        }
    };
    let rows = client.simple_query(SETTINGS).await.map_err(refused)?;
    let row = rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let backend = row.and_then(|row| {
        let column = |name| row.try_get(name).ok().flatten();
        let timeline = column("timeline").and_then(|text| u32::from_str_radix(text, 16).ok());
        Some(Backend { process: column("pid")?.parse().ok()?, began: column("began")?.to_owned(), timeline })
    });
    let backend = backend
        .ok_or_else(|| ConnectionRefusal::permanent("the server does not say which process serves".into()))?;
    Ok((client, backend))
}
