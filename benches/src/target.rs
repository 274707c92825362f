//! What is measured: a server that listens, and the requests that it understands.

use std::{net::SocketAddr, time::Duration};

use crate::{
    client::Client,
    fault::{Result, fault},
    process,
};

/// Which server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Engine {
    /// The bare HTTP server.
    Bare,
    /// Chancery on the embedded engine.
    Sqlite,
    /// Chancery on `PostgreSQL`.
    Postgres,
}

impl Engine {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// Where the users are.
pub const USERS: &str = "/api/userstore/v2/default/administration/User";
/// Where the groups are.
pub const GROUPS: &str = "/api/userstore/v2/default/administration/Group";

/// A server under measurement.
#[derive(Clone, Debug)]
pub struct Target {
    /// Which.
    pub engine: Engine,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process.
    pub process: u32,
    /// The first process of its database, if that is not its own.
    pub postmaster: Option<u32>,
    /// What it is called with.
    pub token: String,
}

/// CPU time used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// By the server.
    pub server: Duration,
    /// By the database beside it.
    pub database: Duration,
}

impl Target {
    /// What it has used so far.
    pub fn usage(&self) -> Usage {
        Usage {
            server: process::cpu(self.process),
            database: self.postmaster.map_or(Duration::ZERO, process::cpu_of_family),
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

    /// One call on a connection of its own; the body of the answer.
    pub async fn call(&self, method: &str, path: &str, body: &[u8], expect: u16) -> Result<Vec<u8>> {
        let mut client = Client::connect(self.address).await?;
        self.call_on(&mut client, method, path, body, expect).await
    }

    /// One call; the body of the answer.
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
