//! A `PostgreSQL` cluster of our own, in a folder, on a Unix socket of its own, stopped at the end. For clients without Unix
//! sockets it listens at a port of loopback, too.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    fault::{Context as _, Result, fault},
    server::free_address,
};

/// Settings that differ from `PostgreSQL`'s own. Commits stay durable.
pub const SETTINGS: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("shared_buffers", "512MB"),
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "15min"),
    ("max_connections", "120"),
    ("log_min_messages", "fatal"),
    ("log_min_error_statement", "panic"),
];

/// A running cluster.
pub struct Cluster {
    folder: PathBuf,
    port: u16,
    running: bool,
}

fn programs() -> Result<PathBuf> {
    let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .context("PostgreSQL is not installed")?
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .filter(|folder| folder.join("initdb").exists())
        .collect();
    folders.sort();
    folders.pop().ok_or_else(|| fault("PostgreSQL's programs are not installed"))
}

/// Whether `PostgreSQL` is installed.
pub fn is_installed() -> bool {
    programs().is_ok()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0\n"))
}

/// A command of `PostgreSQL`; as the user `postgres` when the harness runs as root, which it refuses.
fn command(program: &str) -> Result<Command> {
    let path = programs()?.join(program);
    let mut command = if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(path);
        command
    } else {
        Command::new(path)
    };
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

fn run(command: &mut Command, what: &str) -> Result<()> {
    let output = command.stderr(Stdio::piped()).output().context(what)?;
    if output.status.success() {
        return Ok(());
    }
    Err(fault(format!("{what}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// Copies a folder, preserving owners.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    run(Command::new("cp").args(["-a", "--reflink=auto", "--"]).arg(from).arg(to), "cp")
}

impl Cluster {
    /// Creates a cluster in a folder that does not exist yet. It is not started.
    pub fn create(folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(folder), "chown")?;
        }
        let mut initdb = command("initdb")?;
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "-D"]);
        run(initdb.arg(folder), "initdb")
    }

    /// Starts an existing cluster, on its Unix socket alone.
    pub fn start(folder: &Path) -> Result<Self> {
        Self::start_at(folder, "")
    }

    /// Starts an existing cluster, which listens at a port of loopback, too.
    pub fn start_with_port(folder: &Path) -> Result<Self> {
        Self::start_at(folder, "127.0.0.1")
    }

    fn start_at(folder: &Path, addresses: &str) -> Result<Self> {
        let port = free_address()?.port();
        let socket = folder.display();
        let mut options =
            format!("-c port={port} -c listen_addresses={addresses} -c unix_socket_directories={socket}");
        for (name, value) in SETTINGS {
            let _ = write!(options, " -c {name}={value}");
        }
        let mut start = command("pg_ctl")?;
        start
            .args(["start", "-w", "-t", "60", "-s", "-l"])
            .arg(folder.join("server.log"))
            .arg("-D")
            .arg(folder);
        // its children inherit the error stream, so nobody may wait for the stream's end
        start.args(["-o", &options]).stderr(Stdio::null());
        let status = start.status().context("pg_ctl start")?;
        if !status.success() {
            let log = fs::read_to_string(folder.join("server.log")).unwrap_or_default();
            return Err(fault(format!("PostgreSQL does not start: {log}")));
        }
        Ok(Self { folder: folder.to_owned(), port, running: true })
    }

    /// The connection string.
    pub fn url(&self) -> String {
        let socket = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{socket}:{}/postgres", self.port)
    }

    /// Its port at loopback, if it listens there.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The id of the cluster's first process.
    pub fn postmaster(&self) -> Result<u32> {
        let text = fs::read_to_string(self.folder.join("postmaster.pid")).context("postmaster.pid")?;
        text.lines().next().unwrap_or_default().trim().parse().context("postmaster.pid")
    }

    /// Copies rows into a table: `COPY ... FROM STDIN`, text format.
    pub fn copy_in(
        &self,
        into: &str,
        write: impl FnOnce(&mut dyn std::io::Write) -> Result<()>,
    ) -> Result<()> {
        let mut child = Command::new(programs()?.join("psql"))
            .args(["-q", "-v", "ON_ERROR_STOP=1", "-d"])
            .arg(self.url())
            .args(["-c", "SET session_replication_role = replica", "-c"])
            .arg(format!("COPY {into} FROM STDIN"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("psql")?;
        let input = child.stdin.take().ok_or_else(|| fault("psql takes no input"))?;
        let mut input = std::io::BufWriter::with_capacity(1 << 18, input);
        let written = write(&mut input).and_then(|()| Ok(std::io::Write::flush(&mut input)?));
        drop(input);
        let status = child.wait()?;
        written?;
        if status.success() { Ok(()) } else { Err(fault(format!("COPY {into} failed"))) }
    }

    /// Stops the cluster; its folder stays.
    pub fn stop(mut self) -> Result<()> {
        self.running = false;
        stop(&self.folder)
    }
}

fn stop(folder: &Path) -> Result<()> {
    let mut stop = command("pg_ctl")?;
    run(stop.args(["stop", "-w", "-t", "120", "-s", "-m", "fast", "-D"]).arg(folder), "pg_ctl stop")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.running {
            let _ = stop(&self.folder);
        }
    }
}
