//! The measured servers, as child processes of the harness.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    client::Client,
    fault::{Context as _, Result, fault},
    process::Running,
    target::{Engine, Target},
};

const SECRET: &str = "a-secret-for-measuring-only";
/// How long a server may take to be ready.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A free address on this machine.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// The configuration of a Chancery server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The path of the server's program.
    pub program: PathBuf,
    /// The engine.
    pub engine: Engine,
    /// The folder for the server's files.
    pub folder: PathBuf,
    /// The value of `CHANCERY_DATABASE`.
    pub database: String,
    /// The first process of the database, if that is not the server's own.
    pub postmaster: Option<u32>,
}

/// A running server.
pub struct Server {
    running: Running,
    /// The server's address and credentials.
    pub target: Target,
    /// The time from the start of the process to the first answer that reports readiness.
    pub ready_after: Duration,
}

impl ServerConfig {
    /// A server on the embedded engine, with all its files in a folder.
    pub fn sqlite(program: &Path, folder: &Path) -> Self {
        Self {
            program: program.to_owned(),
            engine: Engine::Sqlite,
            folder: folder.to_owned(),
            database: format!("sqlite:{}", sqlite_file(folder).display()),
            postmaster: None,
        }
    }

    /// Starts the server and waits until it is ready.
    pub async fn start(&self) -> Result<Server> {
        let address = free_address()?;
        fs::create_dir_all(&self.folder)?;
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.join("server.log"))?;
        let mut command = Command::new(&self.program);
        command
            .env("CHANCERY_LISTEN", address.to_string())
            .env("CHANCERY_DATA_DIR", &self.folder)
            .env("CHANCERY_DATABASE", &self.database)
            .env("CHANCERY_ROOT_CLIENT_SECRET", SECRET)
            .env("CHANCERY_DRAIN", "0")
            // all load comes from one address; its failed proofs are counted, but never reach the limit
            .env("CHANCERY_MAX_CONNECTIONS_PER_ADDRESS", "10000")
            .env("CHANCERY_PUBLIC_RATE_LIMIT", "1000000")
            .env("CHANCERY_FAILED_SIGN_INS", "off")
            .env("CHANCERY_EVENT_NETWORKS", "127.0.0.0/8")
            .env("CHANCERY_LOG", "warn")
            .stdout(Stdio::null())
            .stderr(log);
        let name = self.program.display().to_string();
        let mut server =
            Server::launch(&mut command, &name, (self.engine, address), "/health/ready", START_TIMEOUT)
                .await?;
        server.target.postmaster = self.postmaster;
        server.target.token = token(address, "root", SECRET).await?;
        Ok(server)
    }
}

impl Server {
    /// Gets a new token, because tokens expire.
    pub async fn renew(&mut self) -> Result<()> {
        self.running.check()?;
        if self.target.engine != Engine::Bare {
            self.target.token = token(self.target.address, "root", SECRET).await?;
        }
        Ok(())
    }

    /// Stops the server.
    pub fn stop(self) -> Result<()> {
        self.running.stop()
    }

    /// Starts the bare peer.
    pub async fn bare(token: &str) -> Result<Self> {
        let address = free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("bare").arg(address.to_string());
        let mut server =
            Self::launch(&mut command, "the bare server", (Engine::Bare, address), "/1", START_TIMEOUT)
                .await?;
        token.clone_into(&mut server.target.token);
        Ok(server)
    }

    /// Starts a program that listens on this address, and waits until it answers at a path.
    pub async fn launch(
        command: &mut Command,
        name: &str,
        (engine, address): (Engine, SocketAddr),
        path: &str,
        timeout: Duration,
    ) -> Result<Self> {
        let begin = Instant::now();
        let mut running = Running::start(command, name)?;
        wait_ready(address, &mut running, path, timeout).await?;
        let ready_after = begin.elapsed();
        let process = running.id();
        let target = Target { engine, address, process, postmaster: None, token: String::new() };
        Ok(Self { running, target, ready_after })
    }
}

/// The path of the database in a folder.
pub fn sqlite_file(folder: &Path) -> PathBuf {
    folder.join("chancery.sqlite")
}

async fn wait_ready(address: SocketAddr, running: &mut Running, path: &str, timeout: Duration) -> Result<()> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let begin = Instant::now();
    while begin.elapsed() < timeout {
        running.check()?;
        if let Ok(mut client) = Client::connect(address).await
            && let Ok((200, _)) = client.fetch(request.as_bytes()).await
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err(fault(format!("the server was not ready within {} s", timeout.as_secs())))
}

/// An access token of a client app.
pub async fn token(address: SocketAddr, client: &str, secret: &str) -> Result<String> {
    let form = format!("grant_type=client_credentials&client_id={client}&client_secret={secret}");
    let request = format!(
        "POST /connect/token HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         content-length: {}\r\n\r\n{form}",
        form.len()
    );
    let (status, body) = Client::connect(address).await?.fetch(request.as_bytes()).await?;
    let body: serde_json::Value = serde_json::from_slice(&body).context("the token")?;
    let token = body.get("access_token").and_then(|token| token.as_str());
    token.map(str::to_owned).ok_or_else(|| fault(format!("no token: {status} {body}")))
}

/// One of a server's metrics.
pub async fn metric(target: &Target, name: &str) -> Result<f64> {
    let text = String::from_utf8(target.call("GET", "/metrics", b"", 200).await?)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse::<f64>().ok()).ok_or_else(|| fault(format!("no {name}")))
}
