//! Targets: measured servers, and the requests that they accept.

use std::{net::SocketAddr, time::Duration};

use crate::{
    client::Client,
    fault::{Result, fault},
    process,
};

/// The kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Engine {
    /// The bare HTTP server.
    Bare,
    /// Chancery on the embedded engine.
    Sqlite,
    /// Chancery on `PostgreSQL`.
    Postgres,
    /// oidc-provider, which people sign in at, too.
    OidcProvider,
    /// Keycloak on `PostgreSQL`.
    Keycloak,
}

impl Engine {
    /// The kind's name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::OidcProvider => "oidc-provider",
            Self::Keycloak => "Keycloak",
        }
    }
}

/// The path of the users.
pub const USERS: &str = "/api/userstore/v2/default/administration/User";
/// The path of the groups.
pub const GROUPS: &str = "/api/userstore/v2/default/administration/Group";

/// A measured server.
#[derive(Clone, Debug)]
pub struct Target {
    /// The kind of server.
    pub engine: Engine,
    /// The address on which it listens.
    pub address: SocketAddr,
    /// The id of its process.
    pub process: u32,
    /// The first process of its database, if that is not the server's own.
    pub postmaster: Option<u32>,
    /// The token of requests.
    pub token: String,
}

/// CPU time used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// The server's CPU time.
    pub server: Duration,
    /// The CPU time of the database on the same machine.
    pub database: Duration,
    /// The CPU time of the generator of the load.
    pub generator: Duration,
}

impl Target {
    /// The CPU time that server, database and the generator of the load have used so far.
    pub fn usage(&self) -> Usage {
        Usage {
            server: process::cpu(self.process),
            database: self.postmaster.map_or(Duration::ZERO, process::cpu_of_family),
            generator: process::cpu(std::process::id()),
        }
    }

    /// Writes a request.
    pub fn write(&self, method: &str, path: &str, body: &[u8], out: &mut Vec<u8>) {
        let parts = [
            method.as_bytes(),
            b" ",
            path.as_bytes(),
            b" HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ",
            self.token.as_bytes(),
        ];
        for part in parts {
            out.extend_from_slice(part);
        }
        if !body.is_empty() || method != "GET" {
            let head = format!("\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
            out.extend_from_slice(head.as_bytes());
        }
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(body);
    }

    /// A request.
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let mut request = Vec::new();
        self.write(method, path, body, &mut request);
        request
    }

    /// Sends one request on a connection of its own; returns the body of the answer.
    pub async fn call(&self, method: &str, path: &str, body: &[u8], expect: u16) -> Result<Vec<u8>> {
        let mut client = Client::connect(self.address).await?;
        self.call_on(&mut client, method, path, body, expect).await
    }

    /// Sends one request; returns the body of the answer.
    pub async fn call_on(
        &self,
        client: &mut Client,
        method: &str,
        path: &str,
        body: &[u8],
        expect: u16,
    ) -> Result<Vec<u8>> {
        let (status, answer) = client.fetch(&self.request(method, path, body)).await?;
        if status == expect {
            return Ok(answer);
        }
        let text: String = String::from_utf8_lossy(&answer).chars().take(400).collect();
        Err(fault(format!("{} {method} {path} answered {status}: {text}", self.engine.name())))
    }
}
