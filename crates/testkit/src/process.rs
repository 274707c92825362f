//! The server as a process of its own, which a test can kill.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
};

use crate::{Client, Database};

/// A server process. It is killed when the value is dropped.
pub struct Process {
    child: Child,
    output: Option<ChildStdout>,
    /// The root client.
    pub admin: Client,
    /// The server's base URL.
    pub base: String,
    /// The server's output at the start.
    pub greeting: Vec<String>,
    /// The file that the server logs to.
    pub log: PathBuf,
}

/// The secret of the root client.
pub const SECRET: &str = "a-secret-for-processes";

impl Process {
    /// The path of the server's program, built beside the tests.
    ///
    /// # Panics
    /// When the program is missing.
    #[expect(clippy::expect_used, reason = "a test cannot go on without it")]
    fn program() -> PathBuf {
        let own = std::env::current_exe().expect("the test's own path");
        let folder = own.parent().and_then(|deps| deps.parent()).expect("target/debug");
        let program = folder.join("chancery");
        assert!(program.exists(), "build the server first: cargo build");
        program
    }

    /// The program with these arguments, for commands and for starts that end by themselves. It listens on a free
    /// port by default, so that a refused start fails for its own reason, whatever listens on this machine.
    ///
    /// # Panics
    /// When the program is missing.
    pub fn command(arguments: &[&str]) -> Command {
        let mut command = Command::new(Self::program());
        command
            .args(arguments)
            .env("CHANCERY_LISTEN", "127.0.0.1:0")
            // variables that scripts set for tests are no settings of a server
            .env_remove("CHANCERY_TEST_POSTGRES")
            .env_remove("CHANCERY_PATIENCE");
        command
    }

    /// Starts a server on a database, with further environment variables; the root client has a token.
    ///
    /// # Panics
    /// When the server does not start.
    pub async fn start(database: &Database, environment: &[(&str, &str)]) -> Self {
        let mut server = Self::start_unready(database, environment);
        let anonymous = Client::anonymous(&server.base);
        let form = format!("grant_type=client_credentials&client_id=root&client_secret={SECRET}");
        let token = anonymous.ask_for_token(&form).await.is(200).json();
        server.admin = anonymous.with_token(token["access_token"].as_str().unwrap_or_default());
        server
    }

    /// Starts a server on a database; the root client has no token.
    pub fn start_unready(database: &Database, environment: &[(&str, &str)]) -> Self {
        let secret = [("CHANCERY_ROOT_CLIENT_SECRET", SECRET)];
        Self::spawn(database, secret.iter().chain(environment).copied())
    }

    /// Starts a server that generates its root client's secret itself.
    pub fn start_unconfigured(database: &Database) -> Self {
        Self::start_configured(database, &[])
    }

    /// Starts a server whose root client's secret comes from these environment variables.
    pub fn start_configured(database: &Database, environment: &[(&str, &str)]) -> Self {
        Self::spawn(database, environment.iter().copied())
    }

    /// Starts a server that logs to the given output; the root client has no token.
    pub fn start_logging_to(database: &Database, environment: &[(&str, &str)], log: Stdio) -> Self {
        let secret = [("CHANCERY_ROOT_CLIENT_SECRET", SECRET)];
        Self::spawn_with(database, secret.iter().chain(environment).copied(), log, PathBuf::new()).awaited()
    }

    /// Starts a server and does not wait until it serves: [`Process::awaited`] does.
    pub fn begin(database: &Database, environment: &[(&str, &str)]) -> Self {
        let secret = [("CHANCERY_ROOT_CLIENT_SECRET", SECRET)];
        Self::begin_with(database, secret.iter().chain(environment).copied())
    }

    /// Waits until the server serves, or ends: then it has no greeting.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test cannot go on without its server")]
    pub fn awaited(mut self) -> Self {
        for line in self.output.take().into_iter().flat_map(|output| BufReader::new(output).lines()) {
            let line = line.expect("a line");
            let is_last = line.trim_start().starts_with("curl");
            self.greeting.push(line);
            if is_last {
                break;
            }
        }
        let first = self.greeting.first().map(String::as_str).unwrap_or_default();
        self.base = first.rsplit(' ').next().unwrap_or_default().to_owned();
        self.admin = Client::anonymous(&self.base);
        self
    }

    fn spawn<'a>(database: &Database, environment: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        Self::begin_with(database, environment).awaited()
    }

    #[expect(clippy::expect_used, reason = "a test cannot go on without its server")]
    fn begin_with<'a>(database: &Database, environment: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let path = database.folder().join(format!("{}.log", uuid::Uuid::now_v7()));
        let log = std::fs::File::create(&path).expect("a file for the log");
        Self::spawn_with(database, environment, log.into(), path)
    }

    #[expect(clippy::expect_used, reason = "a test cannot go on without its server")]
    fn spawn_with<'a>(
        database: &Database,
        environment: impl Iterator<Item = (&'a str, &'a str)>,
        stderr: Stdio,
        log: PathBuf,
    ) -> Self {
        let mut child = Self::command(&[])
            .env("CHANCERY_DATA_DIR", database.folder())
            .env("CHANCERY_DATABASE", database.url())
            .env("CHANCERY_DRAIN", "0")
            .envs(environment)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("the server starts");
        let output = child.stdout.take();
        let admin = Client::anonymous("");
        Self { child, output, admin, base: String::new(), greeting: Vec::new(), log }
    }

    /// The server's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server at once (SIGKILL) and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends the server a signal, such as `TERM`; returns whether it was delivered.
    pub fn signal(&self, name: &str) -> bool {
        let sent = Command::new("kill").args(["-s", name, &self.id().to_string()]).status();
        sent.is_ok_and(|status| status.success())
    }

    /// Waits for the server's end; returns whether it succeeded.
    pub fn wait(&mut self) -> bool {
        self.child.wait().is_ok_and(|status| status.success())
    }

    /// The server's log, where it goes to a pipe.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Stops the server (SIGTERM) and waits; returns whether it succeeded.
    pub fn stop(&mut self) -> bool {
        self.signal("TERM") && self.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}
