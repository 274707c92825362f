//! oidc-provider, an OpenID provider on Node: pinned, installed below the target folder, everything in memory. One
//! process for each processor, each with its share of the sessions, since processes share no memory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use chancery_credential::hash::{Parameters, hash};
use chancery_record::Secret;
use serde_json::json;

use crate::{
    fault::{Context as _, Result, fault},
    people,
    server::{Server, free_address},
    target::Engine,
};

/// The files of the peer, by name.
const FILES: [(&str, &str); 3] = [
    ("package.json", include_str!("../../oidc-provider/package.json")),
    ("package-lock.json", include_str!("../../oidc-provider/package-lock.json")),
    ("server.mjs", include_str!("../../oidc-provider/server.mjs")),
];
/// The file that says which packages are installed.
const STAMP: &str = "stamp";
/// The key that the peer signs its cookies with.
pub const COOKIE_KEY: &str = "a-key-for-measuring-only";
/// The secret of its confidential clients.
pub const CLIENT_SECRET: &str = "a-secret-for-measuring-only";
/// How long it may take to create its sessions.
const START_TIMEOUT: Duration = Duration::from_mins(5);

/// Where the peer is installed.
#[derive(Clone, Debug)]
pub struct Installation(PathBuf);

/// Installs the peer, unless it is installed, and writes its program next to the packages.
pub fn install(target: &Path) -> Result<Installation> {
    let folder = target.join("bench-peers/oidc-provider");
    fs::create_dir_all(&folder)?;
    for (name, text) in FILES {
        fs::write(folder.join(name), text)?;
    }
    let expected_stamp =
        FILES.map(|(name, text)| if name == "package-lock.json" { text } else { "" }).concat();
    if fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == expected_stamp) {
        return Ok(Installation(folder));
    }
    eprintln!("installing oidc-provider");
    let arguments = ["ci", "--loglevel", "error", "--no-audit", "--no-fund", "--ignore-scripts"];
    let mut npm = Command::new("npm");
    let output = npm.args(arguments).current_dir(&folder).stdin(Stdio::null()).output();
    let output = output.context("npm is not installed; --no-oidc-provider measures without that peer")?;
    if !output.status.success() {
        return Err(fault(format!("npm ci: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    fs::write(folder.join(STAMP), expected_stamp)?;
    Ok(Installation(folder))
}

impl Installation {
    /// Starts the processes, with a session for each of so many users: process `n` of `m` has the users `n`, `n + m` and
    /// so on.
    pub async fn start(&self, users: u64) -> Result<Vec<Server>> {
        let processes = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let hash = hash(&Secret::new(people::PASSWORD), &Parameters::default()).context("a password")?;
        let launches = (0..processes).map(|index| self.launch(index, processes, users, &hash));
        futures_util::future::try_join_all(launches).await
    }

    async fn launch(&self, index: usize, processes: usize, users: u64, hash: &str) -> Result<Server> {
        let address = free_address()?;
        let settings = json!({
            "port": address.port(), "hash": hash, "cookieKey": COOKIE_KEY,
            "from": index, "step": processes, "below": users,
        });
        let log = fs::File::create(self.0.join(format!("{index}.log")))?;
        let mut command = Command::new("node");
        command
            // room for a million sessions
            .args(["--max-old-space-size=8192", "server.mjs"])
            .current_dir(&self.0)
            .env("NODE_ENV", "production")
            .env("BENCH_PEER", settings.to_string())
            .stdout(Stdio::null())
            .stderr(log);
        let path = "/.well-known/openid-configuration";
        Server::launch(&mut command, "oidc-provider", (Engine::OidcProvider, address), path, START_TIMEOUT)
            .await
    }
}
