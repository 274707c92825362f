//! Keycloak on PostgreSQL: a copy of its distribution, as Maven Central has it, with a cluster of its own and a realm of the seeded users.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    client::Client,
    cluster::{self, Cluster},
    fault::{Context as _, Result, fault},
    people, process,
    server::{Server, free_address},
    target::{Engine, Target},
};

/// The path of the users of the realm.
pub const USERS: &str = "/admin/realms/bench/users";
/// The path of its authorization endpoint.
pub const AUTHORIZATION: &str = "/realms/bench/protocol/openid-connect/auth";
/// The path of its token endpoint.
pub const TOKEN: &str = "/realms/bench/protocol/openid-connect/token";
/// Where apps get their answers.
pub const CALLBACK: &str = "https://app.example/callback";
/// The users who have a password; each is hashed as the realm hashes it.
pub const VISITORS: u64 = 256;
/// The client that gets tokens for itself and for people, and its secret.
pub const CLIENT: (&str, &str) = ("bench", "a-secret-for-measuring-only");

const ADMINISTRATOR: (&str, &str) = ("admin", "four-lively-grey-herons");
const ADMINISTRATOR_TOKEN: &str = "/realms/master/protocol/openid-connect/token";
/// How long it may take to build itself, create its schema and start.
const START_TIMEOUT: Duration = Duration::from_mins(3);
/// Users in one request of an import.
const PIECE: u64 = 1000;
/// Seconds for which tokens are good: longer than a run.
const LIFETIME: u32 = 24 * 3600;

/// A running Keycloak.
pub struct Keycloak {
    server: Server,
    cluster: Cluster,
}

impl Keycloak {
    /// Starts a copy of the distribution below the folder `work`, and imports the users.
    pub async fn start(distribution: &Path, work: &Path, users: u64) -> Result<Self> {
        let folder = work.join("keycloak");
        cluster::copy(distribution, &folder)?;
        let database = work.join("keycloak-database");
        Cluster::create(&database)?;
        let cluster = Cluster::start_with_port(&database)?;
        let program = folder.join("bin/kc.sh");
        let built = Command::new(&program).args(["build", "--db=postgres"]).stdin(Stdio::null()).output();
        let built = built.context("Keycloak's program")?;
        if !built.status.success() {
            return Err(fault(format!("kc.sh build: {}", String::from_utf8_lossy(&built.stdout).trim())));
        }
        let address = free_address()?;
        let log = fs::File::create(work.join("keycloak.log"))?;
        let mut command = Command::new(&program);
        command
            .args([
                "start",
                "--optimized",
                "--http-enabled=true",
                "--http-host=127.0.0.1",
                "--hostname-strict=false",
            ])
            .arg(format!("--http-port={}", address.port()))
            .arg(format!("--db-url=jdbc:postgresql://127.0.0.1:{}/postgres", cluster.port()))
            .args(["--db-username=postgres", "--db-password=trusted", "--log-level=warn"])
            .env("KC_BOOTSTRAP_ADMIN_USERNAME", ADMINISTRATOR.0)
            .env("KC_BOOTSTRAP_ADMIN_PASSWORD", ADMINISTRATOR.1)
            .stdout(log.try_clone()?)
            .stderr(log);
        let there = (Engine::Keycloak, address);
        let server = Server::launch(&mut command, "Keycloak", there, "/realms/master", START_TIMEOUT).await?;
        let mut keycloak = Self { server, cluster };
        let target = &mut keycloak.server.target;
        // the script starts the virtual machine
        target.process = process::child_of(target.process).unwrap_or(target.process);
        target.postmaster = Some(keycloak.cluster.postmaster()?);
        keycloak.prepare(users).await?;
        Ok(keycloak)
    }

    /// Its address, with a token of the administrator.
    pub const fn target(&self) -> &Target {
        &self.server.target
    }

    /// The connection string of its database.
    pub fn database(&self) -> String {
        self.cluster.url()
    }

    /// Makes the realm.
    async fn prepare(&mut self, users: u64) -> Result<()> {
        self.log_in().await?;
        // the administrator's token lasts for a minute unless its realm says otherwise
        self.call("PUT", "/admin/realms/master", &json!({ "accessTokenLifespan": LIFETIME }), 204).await?;
        self.log_in().await?;
        let realm = json!({
            "realm": "bench", "enabled": true, "accessTokenLifespan": LIFETIME, "defaultSignatureAlgorithm": "ES256",
            "clients": [{
                "clientId": CLIENT.0, "secret": CLIENT.1, "serviceAccountsEnabled": true, "redirectUris": [CALLBACK],
            }],
        });
        self.call("POST", "/admin/realms", &realm, 201).await?;
        for first in (0..users).step_by(usize::try_from(PIECE).unwrap_or(1)) {
            let people = (first..users.min(first + PIECE)).map(|number| {
                let mut user = user(&people::person(number));
                if let Some(members) = user.as_object_mut().filter(|_| number < VISITORS) {
                    let password = json!([{ "type": "password", "value": people::PASSWORD }]);
                    members.insert("credentials".to_owned(), password);
                }
                user
            });
            let import = json!({ "ifResourceExists": "FAIL", "users": people.collect::<Vec<_>>() });
            self.call("POST", "/admin/realms/bench/partialImport", &import, 200).await?;
        }
        Ok(())
    }

    async fn log_in(&mut self) -> Result<()> {
        let (name, password) = ADMINISTRATOR;
        let body = format!("grant_type=password&client_id=admin-cli&username={name}&password={password}");
        let request = form_request(ADMINISTRATOR_TOKEN, &body);
        let (status, answer) = Client::connect(self.server.target.address).await?.fetch(&request).await?;
        let answer: Value = serde_json::from_slice(&answer).context("the administrator's token")?;
        let token = answer.get("access_token").and_then(Value::as_str);
        token
            .ok_or_else(|| fault(format!("no token: {status} {answer}")))?
            .clone_into(&mut self.server.target.token);
        Ok(())
    }

    async fn call(&self, method: &str, path: &str, body: &Value, expect: u16) -> Result<()> {
        self.server.target.call(method, path, body.to_string().as_bytes(), expect).await.map(drop)
    }
}

impl Drop for Keycloak {
    fn drop(&mut self) {
        // the script that started it ends with it
        let _ = Command::new("kill").args(["-KILL", &self.server.target.process.to_string()]).status();
    }
}

/// A user as Keycloak represents one.
pub fn user(person: &people::Person) -> Value {
    json!({
        "id": person.id, "username": person.login_name, "firstName": person.first_name, "lastName": person.last_name,
        "email": person.email_address, "enabled": true, "attributes": { "phoneNumber": [person.phone_number] },
    })
}

/// A request with a form as its body.
pub fn form_request(path: &str, form: &str) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         content-length: {}\r\n\r\n",
        form.len()
    );
    [head.as_bytes(), form.as_bytes()].concat()
}
