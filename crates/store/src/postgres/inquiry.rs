//! Server queries outside of operations: the outcome of a commit, the server's state.

use std::time::{Duration, Instant};

use chancery_record::Value;

use crate::{
    Error,
    connection::postgres::{EXCHANGE, Session, opening::Backend},
    selectable,
    tx::CommitProof,
};

/// How long the server process of a lost connection may take to end.
const ENDING: Duration = Duration::from_secs(2);

selectable! {
    /// A server's state.
    pub struct ServerState {
        pub takes_writes: bool = "NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'",
        /// The server's clock, in milliseconds since 1970.
        pub clock: i64 = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    }
}

impl Session {
    /// Whether a transaction on a lost connection was committed. First its server process is ended, if it still
    /// runs: it could commit after the query. Then a message is committed, which waits for the standbys that a
    /// commit waits for, and with it for everything committed before.
    pub fn was_committed(
        &mut self,
        lost: &Backend,
        proof: &CommitProof,
        patience: Duration,
    ) -> Result<bool, Error> {
        let began = Instant::now();
        self.patience = patience;
        while self.terminate(lost)? {
            if began.elapsed() > ENDING {
                return Err(Error::Unavailable("the lost connection's process does not end".into()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.batch("BEGIN; SELECT pg_logical_emit_message(true, 'chancery', 'settled'); COMMIT")?;
        let mut is_committed = false;
        self.query_all(&[(&proof.0, &proof.1)], &mut |_, _| {
            is_committed = true;
            Ok(())
        })?;
        self.patience = EXCHANGE;
        Ok(is_committed)
    }

    /// Ends the server process of another connection; returns whether there was one.
    pub fn terminate(&mut self, lost: &Backend) -> Result<bool, Error> {
        let process = [Value::Int(lost.process), Value::Text(lost.began.clone())];
        let text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                    WHERE pid = ?1 AND extract(epoch FROM backend_start)::text = ?2";
        let mut existed = false;
        self.query_all(&[(text, &process)], &mut |_, _| {
            existed = true;
            Ok(())
        })?;
        Ok(existed)
    }

    /// Exempts this connection from the end of all earlier ones.
    pub fn outlive(&mut self) {
        self.generation = *self.generations.borrow_and_update();
    }

    /// Reads the server's state.
    pub fn state(&mut self, patience: Duration) -> Result<ServerState, Error> {
        self.patience = patience;
        let mut state = ServerState { takes_writes: false, clock: 0 };
        let text = format!("SELECT {}", ServerState::COLUMNS);
        self.query_all(&[(&text, &[])], &mut |_, row| {
            state = ServerState::read(row)?;
            Ok(())
        })?;
        Ok(state)
    }

    /// The number of connections that the server allows programs like this one.
    pub fn max_connections(&mut self) -> Result<i64, Error> {
        let mut max_connections = 0;
        let text = "SELECT current_setting('max_connections')::bigint \
                    - current_setting('superuser_reserved_connections')::bigint";
        self.query_all(&[(text, &[])], &mut |_, row| {
            max_connections = row.int(0)?;
            Ok(())
        })?;
        Ok(max_connections)
    }
}
