//! The options that the command line, the environment and the TOML file know.

use std::{fmt, fs, path::PathBuf, str::FromStr};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// The configuration that a command line gives: a file, and options.
#[derive(Args, Debug)]
pub struct ConfigArguments {
    /// A TOML file with any of the options below.
    #[arg(long, global = true, env = "CHANCERY_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// Every option, as it is written on the command line, in the environment or in the file.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[command(next_help_heading = "Configuration")]
pub struct Options {
    /// The address to listen on [default: 127.0.0.1:8080]
    #[arg(long, global = true, env = "CHANCERY_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// The folder for the database, its lock and the master key [default: ./data]
    #[arg(long, global = true, env = "CHANCERY_DATA_DIR", value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// sqlite:PATH or postgres://USER@HOST/NAME [default: sqlite:DATA_DIR/chancery.sqlite]
    #[arg(long, global = true, env = "CHANCERY_DATABASE", value_name = "URL", hide_env_values = true)]
    pub database: Option<String>,
    /// A file with this URL, which may contain a password
    #[arg(long, global = true, env = "CHANCERY_DATABASE_FILE", value_name = "FILE")]
    pub database_file: Option<PathBuf>,
    /// Connections to PostgreSQL for requests; the server's own work has three more [default: 16]
    #[arg(long, global = true, env = "CHANCERY_DATABASE_CONNECTIONS", value_name = "NUMBER", value_parser = number::<usize>)]
    pub database_connections: Option<usize>,
    /// Whether PostgreSQL on another machine may be spoken to without TLS, by sslmode=disable: on or
    /// off [default: off]
    #[arg(long, global = true, env = "CHANCERY_DATABASE_INSECURE", value_name = "ON")]
    pub database_insecure: Option<String>,
    /// Whether a start migrates the schema of its database: on, or off, and it fails if migrations are pending; see
    /// chancery migrate [default: on]
    #[arg(long, global = true, env = "CHANCERY_MIGRATE", value_name = "SWITCH")]
    pub migrate: Option<String>,
    /// Free space in MiB under which a server with an embedded database is not ready [default: 256]
    #[arg(long, global = true, env = "CHANCERY_DISK_RESERVE", value_name = "MIB", value_parser = number::<u64>)]
    pub disk_reserve: Option<u64>,
    /// The URL at which clients reach the server [default: http(s)://LISTEN, localhost on loopback]
    #[arg(long, global = true, env = "CHANCERY_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
    /// The secret of the root client, at least 16 characters [default: created at the first start and printed once]
    #[arg(
        long,
        global = true,
        env = "CHANCERY_ROOT_CLIENT_SECRET",
        value_name = "SECRET",
        hide_env_values = true
    )]
    pub root_client_secret: Option<String>,
    /// A file with this secret
    #[arg(long, global = true, env = "CHANCERY_ROOT_CLIENT_SECRET_FILE", value_name = "FILE")]
    pub root_client_secret_file: Option<PathBuf>,
    /// A separate address for /metrics, served without authentication [default: none; /metrics
    /// needs a token]
    #[arg(long, global = true, env = "CHANCERY_METRICS_LISTEN", value_name = "ADDRESS")]
    pub metrics_listen: Option<String>,
    /// Requests to operations without a token, and failed attempts of client authentication at the token
    /// endpoints, each per minute and address; or off [default: 60]
    #[arg(long, global = true, env = "CHANCERY_PUBLIC_RATE_LIMIT", value_name = "NUMBER")]
    pub public_rate_limit: Option<String>,
    /// Failed attempts of people who sign in, per minute and address; a third of it per name, and ten times as
    /// many pages without a session; or off [default: 60]
    #[arg(long, global = true, env = "CHANCERY_FAILED_SIGN_INS", value_name = "NUMBER")]
    pub failed_sign_ins: Option<String>,
    /// Networks of reverse proxies whose X-Forwarded-For header is trusted: 10.0.0.0/8,fd00::/8
    /// [default: none; the address of the connection is that of the client]
    #[arg(long, global = true, env = "CHANCERY_TRUSTED_PROXIES", value_name = "NETWORKS")]
    pub trusted_proxies: Option<String>,
    /// How long the server continues to accept requests after SIGTERM, in seconds, while /health/ready reports that
    /// it is not ready, so that load balancers choose another server [default: 5]
    #[arg(long, global = true, env = "CHANCERY_DRAIN", value_name = "SECONDS", value_parser = number::<u64>)]
    pub drain: Option<u64>,
    /// Connections at once [default: 10000]
    #[arg(long, global = true, env = "CHANCERY_MAX_CONNECTIONS", value_name = "NUMBER", value_parser = number::<u64>)]
    pub max_connections: Option<u64>,
    /// Connections at once from one address; raise it behind a reverse proxy [default: 1024]
    #[arg(long, global = true, env = "CHANCERY_MAX_CONNECTIONS_PER_ADDRESS", value_name = "NUMBER", value_parser = number::<u64>)]
    pub max_connections_per_address: Option<u64>,
    /// How long a connection may be idle between requests, in seconds; the timeout of a proxy should be
    /// shorter [default: 60]
    #[arg(long, global = true, env = "CHANCERY_IDLE_TIME", value_name = "SECONDS", value_parser = number::<u64>)]
    pub idle_time: Option<u64>,
    /// How long a client may take to read a response, in seconds [default: 600]
    #[arg(long, global = true, env = "CHANCERY_ANSWER_TIME", value_name = "SECONDS", value_parser = number::<u64>)]
    pub answer_time: Option<u64>,
    /// The largest JSON body, in MiB [default: 10]
    #[arg(long, global = true, env = "CHANCERY_MAX_BODY", value_name = "MIB", value_parser = number::<u64>)]
    pub max_body: Option<u64>,
    /// The largest body of a batch, in MiB [default: 64]
    #[arg(long, global = true, env = "CHANCERY_MAX_BATCH_BODY", value_name = "MIB", value_parser = number::<u64>)]
    pub max_batch_body: Option<u64>,
    /// Whether the pages and endpoints of the OpenID provider are served: on or off [default: on]
    #[arg(long, global = true, env = "CHANCERY_SIGN_IN", value_name = "ON")]
    pub sign_in: Option<String>,
    /// Whether the console is served: on, or off, and its paths are 404 [default: on]
    #[arg(long, global = true, env = "CHANCERY_CONSOLE", value_name = "SWITCH")]
    pub console: Option<String>,
    /// A separate address for the console, which serves everything else, too; at the main address /console is 404.
    /// It requires the public URL, below which people reach the console [default: none]
    #[arg(long, global = true, env = "CHANCERY_CONSOLE_LISTEN", value_name = "ADDRESS")]
    pub console_listen: Option<String>,
    /// How long a session of the console lasts after its last use, in seconds [default: 1800]
    #[arg(long, global = true, env = "CHANCERY_CONSOLE_IDLE", value_name = "SECONDS", value_parser = number::<u64>)]
    pub console_idle: Option<u64>,
    /// How long a session of the console lasts in all, in seconds [default: 36000]
    #[arg(long, global = true, env = "CHANCERY_CONSOLE_SESSION", value_name = "SECONDS", value_parser = number::<u64>)]
    pub console_session: Option<u64>,
    /// The authentication class that people need at the services: sfa (one factor), mfa (two), phr (a passkey) or
    /// phrh (one bound to hardware) [default: sfa]
    #[arg(long, global = true, env = "CHANCERY_ADMIN_ACR", value_name = "CLASS")]
    pub admin_acr: Option<String>,
    /// Whether version 1 of the interfaces, which is deprecated, is served: on or off [default: on]
    #[arg(long, global = true, env = "CHANCERY_VERSION_1", value_name = "ON")]
    pub version_1: Option<String>,
    /// The time in the Deprecation header of responses of version 1 [default: 2026-01-01T00:00:00Z]
    #[arg(long, global = true, env = "CHANCERY_VERSION_1_DEPRECATED", value_name = "TIME")]
    pub version_1_deprecated: Option<String>,
    /// The time in the Sunset header of responses of version 1, when it will be removed [default: not sent]
    #[arg(long, global = true, env = "CHANCERY_VERSION_1_SUNSET", value_name = "TIME")]
    pub version_1_sunset: Option<String>,
    /// A program that delivers password reset tokens for stores without a mail server: it gets one
    /// message as JSON on its standard input and ends with 0 when it was delivered [default: none]
    #[arg(long, global = true, env = "CHANCERY_RESET_PROGRAM", value_name = "FILE")]
    pub reset_program: Option<PathBuf>,
    /// Private networks that URLs in settings may point to, such as mail servers and keys of clients:
    /// 10.0.0.0/8,fd00::/8 [default: none]
    #[arg(long, global = true, env = "CHANCERY_PRIVATE_DESTINATIONS", value_name = "NETWORKS")]
    pub private_destinations: Option<String>,
    /// Private networks that events may be sent to: 10.0.0.0/8. With 127.0.0.0/8, or an address in it, http is
    /// allowed to this machine [default: none]
    #[arg(long, global = true, env = "CHANCERY_EVENT_NETWORKS", value_name = "NETWORKS")]
    pub event_networks: Option<String>,
    /// Whether outbound traffic is enabled (mails, text messages, events, the reset program, back-channel logout): auto
    /// (not on a copy of an installation) or off [default: auto]
    #[arg(long, global = true, env = "CHANCERY_OUTBOUND", value_name = "WHEN")]
    pub outbound: Option<String>,
    /// A file, or a folder with a file for each process, to which the ids of erased people are written within seconds:
    /// chancery restore erases them again. Store it separately from the database [default: none]
    #[arg(long, global = true, env = "CHANCERY_ERASURE_LIST", value_name = "PATH")]
    pub erasure_list: Option<PathBuf>,
    /// The URL of FIDO's signed metadata of authenticators, which is fetched daily; FIDO's own is
    /// https://mds3.fidoalliance.org/ [default: none; they can be imported]
    #[arg(long, global = true, env = "CHANCERY_MDS_URL", value_name = "URL")]
    pub mds_url: Option<String>,
    /// The root certificate of the metadata's signer, DER or PEM [default: FIDO's]
    #[arg(long, global = true, env = "CHANCERY_MDS_ROOT", value_name = "FILE")]
    pub mds_root: Option<PathBuf>,
    /// The name in the certificate of the metadata's signer; requires the root certificate
    #[arg(long, global = true, env = "CHANCERY_MDS_NAME", value_name = "NAME")]
    pub mds_name: Option<String>,
    /// Memory of one password hash in KiB (argon2id) [default: 19456]
    #[arg(long, global = true, env = "CHANCERY_PASSWORD_MEMORY", value_name = "KIB", value_parser = number::<u32>)]
    pub password_memory: Option<u32>,
    /// Passes of one password hash over its memory (argon2id) [default: 2]
    #[arg(long, global = true, env = "CHANCERY_PASSWORD_ITERATIONS", value_name = "NUMBER", value_parser = number::<u32>)]
    pub password_iterations: Option<u32>,
    /// Lanes of one password hash (argon2id) [default: 1]
    #[arg(long, global = true, env = "CHANCERY_PASSWORD_PARALLELISM", value_name = "NUMBER", value_parser = number::<u32>)]
    pub password_parallelism: Option<u32>,
    /// Which identities must be proven before an identity replacement is executed: none, current,
    /// replacement or both [default: none]
    #[arg(long, global = true, env = "CHANCERY_IDENTITY_REPLACEMENT_PROOFS", value_name = "WHICH")]
    pub identity_replacement_proofs: Option<String>,
    /// What is logged: error, warn, info, debug, trace, or a filter of tracing [default: info]
    #[arg(long, global = true, env = "CHANCERY_LOG", value_name = "LEVEL")]
    pub log: Option<String>,
    /// Which responses are logged, each with its trace id, operation, client, status and duration: off,
    /// errors (a status of 400 or more) or all [default: off]
    #[arg(long, global = true, env = "CHANCERY_ACCESS_LOG", value_name = "WHICH")]
    pub access_log: Option<String>,
    /// The master key [default: DATA_DIR/master.key, created at the first start]
    #[arg(long, global = true, env = "CHANCERY_MASTER_KEY_FILE", value_name = "FILE")]
    pub master_key_file: Option<PathBuf>,
    /// The certificate chain for TLS, PEM [default: no TLS]
    #[arg(long, global = true, env = "CHANCERY_TLS_CERTIFICATE", value_name = "FILE")]
    pub tls_certificate: Option<PathBuf>,
    /// The private key for TLS, PEM
    #[arg(long, global = true, env = "CHANCERY_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// The certificate authorities of client certificates, PEM: enables client authentication by TLS. If the file
    /// is empty, with self-signed certificates only [default: no client certificates are requested]
    #[arg(long, global = true, env = "CHANCERY_TLS_CLIENT_CA", value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
}

/// The prefix of the variables of the environment.
pub const PREFIX: &str = "CHANCERY_";

/// A number, trimmed.
fn number<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.trim().parse()
}

/// A value. If it comes from an environment variable, line ends and spaces at its end are removed, because values that are read from
/// files often end with a line end.
fn trimmed<'a>(
    name: &str,
    text: &'a str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<&'a str, ConfigError> {
    let name = format!("{PREFIX}{}", name.to_uppercase());
    if variable(&name).as_deref() != Some(text) {
        return Ok(text);
    }
    match text.trim_end() {
        "" if !text.is_empty() => Err(ConfigError(format!("{name} holds nothing but white space"))),
        trimmed => Ok(trimmed),
    }
}

impl ConfigArguments {
    /// The path of the TOML file and the options, trimmed. `variable` reads the environment.
    ///
    /// # Errors
    /// An option that is blank, or that TOML cannot hold, such as a path that is not UTF-8.
    pub fn meant(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(Option<PathBuf>, Options), ConfigError> {
        let file = match self.config.as_ref().and_then(|path| path.to_str()) {
            Some(path) => Some(trimmed("config", path, &variable)?.into()),
            None => self.config.clone(),
        };
        let mut options = table(self.options.clone())?;
        for (name, value) in &mut options {
            if let toml::Value::String(text) = value {
                *text = trimmed(name, text, &variable)?.to_owned();
            }
        }
        Ok((file, read_table(options)?))
    }
}

fn table(options: Options) -> Result<toml::Table, ConfigError> {
    toml::Table::try_from(options).map_err(|error| ConfigError(error.to_string()))
}

fn read_table(table: toml::Table) -> Result<Options, ConfigError> {
    table.try_into().map_err(|error: toml::de::Error| ConfigError(error.to_string()))
}

impl Options {
    /// These options; where one is missing, that of `others`.
    ///
    /// # Errors
    /// An option that TOML cannot hold, such as a path that is not UTF-8.
    pub fn or(self, others: Self) -> Result<Self, ConfigError> {
        let mut all = table(others)?;
        all.extend(table(self)?);
        read_table(all)
    }
}

/// The options of a TOML file.
///
/// # Errors
/// The file cannot be read or parsed; the message names it.
pub fn read_file(path: &PathBuf) -> Result<Options, ConfigError> {
    let wrong = |error: &dyn fmt::Display| ConfigError(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
    toml::from_str(&text).map_err(|error| wrong(&error))
}
