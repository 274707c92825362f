//! The cached statements of a session, and its timeouts.

use std::{sync::LazyLock, time::Duration};

use tokio::sync::watch;

use super::{EXCHANGE, Gate, STATEMENTS, Session, address, opening::SETTINGS};
use crate::{Error, Mode};

/// It lives as long as the sessions, which would end with it.
static GENERATIONS: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));

fn open() -> Session {
    let cluster = std::env::var("CHANCERY_TEST_POSTGRES").expect("set by scripts/test");
    let hosts = address::read(&format!("{cluster}/postgres"), false).unwrap();
    Session::open(&hosts[0], Duration::from_secs(5), GENERATIONS.subscribe()).unwrap()
}

/// Statements in frequent use stay prepared; evicted ones are closed on the server, too.
#[test]
fn the_least_recently_used_statement_is_evicted() {
    let mut session = open();
    let mut query = |text: &str| {
        let mut value = 0;
        let read = session.query_all(&[(text, &[])], &mut |_, row| {
            value = row.int(0)?;
            Ok(())
        });
        read.unwrap();
        value
    };
    let count = "SELECT count(*) FROM pg_prepared_statements";
    let first = "SELECT (extract(epoch FROM prepare_time) * 1000000)::bigint FROM pg_prepared_statements \
                 ORDER BY prepare_time LIMIT 1";
    let began = query(first);
    for number in 0..2 * STATEMENTS.get() {
        query(&format!("SELECT {number}::bigint"));
        assert_eq!(query(first), began, "after {number} others it is the same");
    }
    assert_eq!(query(count), i64::try_from(STATEMENTS.get()).unwrap());
}

/// Section 2: an exchange may take as long as a statement and 5 seconds more.
#[test]
fn the_exchange_timeout_exceeds_the_statement_timeout() {
    let rest = SETTINGS.split("statement_timeout = ").nth(1).unwrap();
    let statement = rest.split(';').next().unwrap().parse().unwrap();
    assert_eq!(EXCHANGE, Duration::from_millis(statement) + Duration::from_secs(5));
}

/// Section 2: a late answer costs the connection; for a commit the outcome is then unknown.
#[test]
fn an_exchange_times_out() {
    let sleep = "SELECT 1 FROM pg_sleep(10)";
    let mut session = open();
    assert_eq!(session.patience, EXCHANGE);
    session.patience = Duration::from_millis(50);
    let Err(Error::Unavailable(why)) = session.query_all(&[(sleep, &[])], &mut |_, _| Ok(())) else {
        panic!("it is not waited for")
    };
    assert!(why.contains("did not answer in time") && session.is_closed(Mode::Write), "{why}");
    let mut session = open();
    session.begin(Mode::Long, Gate::Shared);
    session.queue(sleep, Vec::new()).unwrap();
    session.patience = Duration::from_millis(50);
    let Err(Error::Unknown(why)) = session.commit() else { panic!("it is not waited for") };
    assert!(why.contains("did not answer in time") && session.is_closed(Mode::Write), "{why}");
}
