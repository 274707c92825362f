//! Configuration: flags, then environment, then the TOML file, then defaults.

mod display;
mod files;
mod listeners;
pub mod secrets;

use std::{env, net::SocketAddr, ops::RangeInclusive, path::PathBuf, time::Duration};

use chancery_credential::hash::Parameters;
use chancery_federation::ProviderAddresses;
use chancery_fetch::{Networks, Outbound};
use chancery_record::{Secret, Timestamp, format_timestamp, is_loopback_url, parse_day, parse_timestamp};
use chancery_resource::Proofs;
use chancery_signin::ConsoleLifetimes;
use chancery_store::{Settings, Target};
use chancery_web::{ACR, BasePath, DEPRECATED_ON, Limits, TlsFiles, trace::AccessLog};

use crate::{
    ConfigError,
    log::read_filter,
    options::{ConfigArguments, Options, read_file},
};

/// The effective configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The folder for the server's own files.
    pub data_dir: PathBuf,
    /// The database.
    pub database: Target,
    /// The store's limits.
    pub store: Settings,
    /// The server's public URL; derived from the address if `None`.
    pub public_url: Option<String>,
    /// The root client's secret, if one is configured.
    pub root_client_secret: Option<Secret>,
    /// The address that serves only metrics.
    pub metrics_listen: Option<SocketAddr>,
    /// Requests a minute and address to public operations; `None` is no limit.
    pub public_rate_limit: Option<u32>,
    /// Failed proofs of people a minute and address; `None` is no limit.
    pub failed_sign_ins: Option<u32>,
    /// The networks of trusted proxies.
    pub trusted_proxies: Networks,
    /// Limits on connections and bodies.
    pub limits: Limits,
    /// How long requests are still served after a signal to stop.
    pub drain: Duration,
    /// Whether people sign in here.
    pub sign_in: bool,
    /// Whether people administer by pages.
    pub console: bool,
    /// The address that alone serves the console; all addresses do where there is none.
    pub console_listen: Option<SocketAddr>,
    /// How long sessions of the console last.
    pub console_lifetimes: ConsoleLifetimes,
    /// The class of authentication that people need at the services.
    pub admin_acr: &'static str,
    /// Whether version 1 is served.
    pub version_1: bool,
    /// When version 1 was deprecated.
    pub version_1_deprecated: Timestamp,
    /// When version 1 will be removed.
    pub version_1_sunset: Option<Timestamp>,
    /// The program that delivers password reset tokens for stores without a mail server.
    pub reset_program: Option<PathBuf>,
    /// Networks outside the public internet that administrators' settings may point into.
    pub private_destinations: Networks,
    /// The base URLs of identity providers with fixed addresses. Only tests replace them.
    pub provider_addresses: ProviderAddresses,
    /// Networks outside the public internet that events may be sent to.
    pub event_networks: Networks,
    /// Whether outbound traffic is enabled; on a copy of an installation it is always disabled.
    pub outbound: Outbound,
    /// The file or folder to which the ids of erased people are written.
    pub erasure_list: Option<PathBuf>,
    /// The URL of authenticator metadata.
    pub mds_url: Option<String>,
    /// The metadata signer's root certificate and name, where they are not FIDO's.
    pub mds_root: Option<(PathBuf, String)>,
    /// The cost of hashing a password.
    pub hashing: Parameters,
    /// Which identities must be proven before an identity replacement is executed.
    pub proofs: Proofs,
    /// The log's filter.
    pub log: String,
    /// Which answers are logged.
    pub access_log: AccessLog,
    /// The master key's file.
    pub master_key_file: PathBuf,
    /// The TLS files, if TLS is configured.
    pub tls: Option<TlsFiles>,
}

/// A time in the configuration (RFC 3339).
fn moment(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, ConfigError> {
    let read = |text: &str| {
        parse_timestamp(text).or_else(|| parse_day(text)).ok_or_else(|| {
            ConfigError(format!("{name} is a day or a date-time such as 2026-01-01T00:00:00Z, not {text:?}"))
        })
    };
    text.map(read).transpose()
}

fn written(moment: Timestamp) -> String {
    let mut out = Vec::new();
    format_timestamp(moment, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// A number a minute, or `off`; 60 by default.
fn rate(name: &str, text: Option<&str>) -> Result<Option<u32>, ConfigError> {
    match text {
        None => Ok(Some(60)),
        Some("off") => Ok(None),
        Some(text) => text.parse().ok().filter(|limit| *limit > 0).map(Some).ok_or_else(|| {
            ConfigError(format!("{name} is a number of requests a minute or off, not {text:?}"))
        }),
    }
}

fn networks(name: &str, text: Option<&str>) -> Result<Networks, ConfigError> {
    text.unwrap_or_default().parse().map_err(|wrong: String| ConfigError(format!("{name}: {wrong}")))
}

/// Whether outbound traffic may be enabled; a copy of an installation is detected at the start.
fn outbound(given: Option<&str>) -> Result<Outbound, ConfigError> {
    match given {
        None | Some("auto") => Ok(Outbound::On),
        Some("off") => Ok(Outbound::Off),
        Some(text) => Err(ConfigError(format!("outbound is auto or off, not {text:?}"))),
    }
}

/// Reads a switch; on by default.
fn switch(name: &str, given: Option<&str>) -> Result<bool, ConfigError> {
    match given {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(text) => Err(ConfigError(format!("{name} is on or off, not {text:?}"))),
    }
}

/// The console's own address. People who sign in to it return to the public URL, which must lead there.
fn console_listen(given: Option<&str>, public_url: Option<&str>) -> Result<Option<SocketAddr>, ConfigError> {
    if given.is_some() && public_url.is_none() {
        return Err(ConfigError("console_listen needs public_url: people reach the console below it".into()));
    }
    given.map(|text| address("console_listen", text)).transpose()
}

/// The lifetime of console sessions: half an hour after the last use and ten hours in all, by default.
fn console_lifetimes(idle: Option<u64>, longest: Option<u64>) -> Result<ConsoleLifetimes, ConfigError> {
    let idle = number("console_idle", idle, 1_800, 180..=86_400)?;
    let longest = number("console_session", longest, 36_000, 180..=604_800)?;
    let ms = |seconds: u64| i64::try_from(seconds * 1000).unwrap_or(i64::MAX);
    Ok(ConsoleLifetimes { idle: ms(idle), longest: ms(longest) })
}

/// Reads a class of authentication; one factor by default.
fn class(name: &str, given: Option<&str>) -> Result<&'static str, ConfigError> {
    let [lowest, ..] = ACR;
    let requested = given.unwrap_or(lowest);
    let found = ACR.into_iter().find(|class| *class == requested);
    found.ok_or_else(|| ConfigError(format!("{name} is one of {}, not {requested:?}", ACR.join(", "))))
}

impl Config {
    /// Reads the command line, the environment and the file.
    ///
    /// # Errors
    /// The first option that is invalid.
    pub fn read(arguments: &ConfigArguments) -> Result<Self, ConfigError> {
        let (file, options) = arguments.meant(|name| env::var(name).ok())?;
        let file = match &file {
            Some(path) => {
                let options = read_file(path)?;
                secrets::check_toml(path, &options)?;
                options
            }
            None => Options::default(),
        };
        Self::from_options(secrets::find(options.or(file)?, secrets::credentials().as_deref())?)
    }

    fn from_options(options: Options) -> Result<Self, ConfigError> {
        let (limits, store) = (limits(&options)?, store_settings(&options)?);
        let data_dir = options.data_dir.unwrap_or_else(|| "./data".into());
        let listen = address("listen", options.listen.as_deref().unwrap_or("127.0.0.1:8080"))?;
        let metrics_listen =
            options.metrics_listen.map(|text| address("metrics_listen", &text)).transpose()?;
        let database = match options.database {
            Some(text) => target(&text)?,
            None => Target::Sqlite(data_dir.join("chancery.sqlite")),
        };
        let public_url = options.public_url.map(|url| public_url(&url)).transpose()?;
        let public_rate_limit = rate("public_rate_limit", options.public_rate_limit.as_deref())?;
        let failed_sign_ins = rate("failed_sign_ins", options.failed_sign_ins.as_deref())?;
        let drain = number("drain", options.drain, 5, 0..=600)?;
        let sign_in = switch("sign_in", options.sign_in.as_deref())?;
        let console = switch("console", options.console.as_deref())?;
        let console_listen = console_listen(options.console_listen.as_deref(), public_url.as_deref())?;
        listeners::check_distinct(listen, metrics_listen, console_listen)?;
        let console_lifetimes = console_lifetimes(options.console_idle, options.console_session)?;
        let admin_acr = class("admin_acr", options.admin_acr.as_deref())?;
        let version_1 = switch("version_1", options.version_1.as_deref())?;
        let version_1_deprecated = moment("version_1_deprecated", options.version_1_deprecated.as_deref())?;
        let version_1_deprecated = version_1_deprecated.unwrap_or(DEPRECATED_ON);
        let version_1_sunset = moment("version_1_sunset", options.version_1_sunset.as_deref())?;
        if version_1_sunset.is_some_and(|sunset| sunset < version_1_deprecated) {
            return Err(ConfigError("version_1_sunset must not be before version_1_deprecated".into()));
        }
        let mds_url = options.mds_url.filter(|url| !url.is_empty()).map(mds_url).transpose()?;
        let mds_root = match (options.mds_root, options.mds_name) {
            (Some(root), Some(name)) => Some((root, name)),
            (None, None) => None,
            _ => return Err(ConfigError("mds_root and mds_name go together: give both or none".into())),
        };
        let default = Parameters::default();
        let hashing = Parameters::new(
            options.password_memory.unwrap_or(default.memory_kib()),
            options.password_iterations.unwrap_or(default.iterations()),
            options.password_parallelism.unwrap_or(default.parallelism()),
        )
        .map_err(|wrong| {
            ConfigError(format!("password_memory, password_iterations and password_parallelism: {wrong}"))
        })?;
        let proofs = match options.identity_replacement_proofs {
            None => Proofs::None,
            Some(text) => Proofs::ALL.into_iter().find(|proofs| proofs.name() == text).ok_or_else(|| {
                let names = Proofs::ALL.map(Proofs::name).join(", ");
                ConfigError(format!("identity_replacement_proofs is one of {names}, not {text:?}"))
            })?,
        };
        let tls = tls_files(options.tls_certificate, options.tls_key, options.tls_client_ca)?;
        let root_client_secret = options.root_client_secret.map(root_secret).transpose()?;
        Ok(Self {
            master_key_file: options.master_key_file.unwrap_or_else(|| data_dir.join("master.key")),
            log: log_filter(options.log)?,
            access_log: access_log(options.access_log.as_deref())?,
            listen,
            data_dir,
            database,
            store,
            public_url,
            root_client_secret,
            metrics_listen,
            public_rate_limit,
            failed_sign_ins,
            trusted_proxies: networks("trusted_proxies", options.trusted_proxies.as_deref())?,
            limits,
            drain: Duration::from_secs(drain),
            sign_in,
            console,
            console_listen,
            console_lifetimes,
            admin_acr,
            version_1,
            version_1_deprecated,
            version_1_sunset,
            provider_addresses: ProviderAddresses::default(),
            private_destinations: networks("private_destinations", options.private_destinations.as_deref())?,
            event_networks: networks("event_networks", options.event_networks.as_deref())?,
            outbound: outbound(options.outbound.as_deref())?,
            erasure_list: options.erasure_list,
            mds_url,
            mds_root,
            hashing,
            proofs,
            reset_program: options.reset_program,
            tls,
        })
    }
}

/// The files of TLS, if there are any.
fn tls_files(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    client_authorities: Option<PathBuf>,
) -> Result<Option<TlsFiles>, ConfigError> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key, client_authorities })),
        (None, None) if client_authorities.is_some() => {
            Err(ConfigError("tls_client_ca needs tls_certificate and tls_key".into()))
        }
        (None, None) => Ok(None),
        _ => Err(ConfigError("tls_certificate and tls_key go together: give both or none".into())),
    }
}

fn address(option: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    text.parse().map_err(|_| {
        ConfigError(format!(
            "{option} is an address and a port such as 127.0.0.1:8080 or [::1]:8080, not {text:?}"
        ))
    })
}

fn log_filter(given: Option<String>) -> Result<String, ConfigError> {
    let filter = given.unwrap_or_else(|| "info".into());
    read_filter(&filter).map(|_| filter)
}

fn access_log(text: Option<&str>) -> Result<AccessLog, ConfigError> {
    let Some(text) = text else { return Ok(AccessLog::Off) };
    AccessLog::ALL.into_iter().find(|which| which.name() == text).ok_or_else(|| {
        let names = AccessLog::ALL.map(AccessLog::name).join(", ");
        ConfigError(format!("access_log is one of {names}, not {text:?}"))
    })
}

/// The most connections to a database that are useful.
const MAX_CONNECTIONS: usize = 1000;

/// The limits of the store, and the actions at its opening.
fn store_settings(options: &Options) -> Result<Settings, ConfigError> {
    let mut settings = Settings::default();
    if let Some(connections) = options.database_connections {
        if !(2..=MAX_CONNECTIONS).contains(&connections) {
            return Err(ConfigError(format!(
                "database_connections is a number from 2 to {MAX_CONNECTIONS}, not {connections}"
            )));
        }
        settings.connections = connections;
    }
    settings.insecure = match options.database_insecure.as_deref() {
        None | Some("off") => false,
        Some("on") => true,
        Some(text) => return Err(ConfigError(format!("database_insecure is on or off, not {text:?}"))),
    };
    settings.migrate = switch("migrate", options.migrate.as_deref())?;
    if let Some(mebibytes) = options.disk_reserve {
        settings.disk_reserve = mebibytes.saturating_mul(1 << 20);
    }
    Ok(settings)
}

pub(crate) fn target(text: &str) -> Result<Target, ConfigError> {
    match text.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => Ok(Target::Sqlite(path.into())),
        Some(("postgres" | "postgresql", _)) => Ok(Target::Postgres(text.to_owned())),
        _ => Err(ConfigError("database is sqlite:PATH or postgres://USER@HOST/NAME".into())),
    }
}

fn public_url(text: &str) -> Result<String, ConfigError> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_stray =
        |letter: char| matches!(letter, '?' | '#') || letter.is_whitespace() || letter.is_control();
    if rest.is_none_or(|rest| rest.is_empty() || rest.contains(is_stray)) {
        return Err(ConfigError(format!("public_url is a URL such as https://id.example.com, not {text:?}")));
    }
    let url = text.trim_end_matches('/');
    BasePath::validate(url).map_err(|wrong| ConfigError(format!("public_url is {text:?}, and {wrong}")))?;
    Ok(url.to_owned())
}

/// The URL of authenticator metadata. Without TLS the metadata would be as safe, since it is signed, but
/// an attacker in between could withhold updates: http is for a source on this machine.
fn mds_url(url: String) -> Result<String, ConfigError> {
    if url.starts_with("https://") || (url.starts_with("http://") && is_loopback_url(&url)) {
        return Ok(url);
    }
    Err(ConfigError(format!("mds_url is an address such as https://mds3.fidoalliance.org/, not {url:?}")))
}

/// The fewest characters of a configured secret.
const SHORTEST_SECRET: usize = 16;

/// The root client's secret: attempts are limited, so it need only not be a dictionary word.
fn root_secret(secret: String) -> Result<Secret, ConfigError> {
    if secret.chars().count() < SHORTEST_SECRET {
        return Err(ConfigError(format!(
            "root_client_secret must have at least {SHORTEST_SECRET} characters: leave it out to have one made"
        )));
    }
    if secret.contains(char::is_control) {
        return Err(ConfigError("root_client_secret must be one line, without control characters".into()));
    }
    Ok(Secret::new(secret))
}

/// A number within bounds.
fn number(
    name: &str,
    given: Option<u64>,
    default: u64,
    bounds: RangeInclusive<u64>,
) -> Result<u64, ConfigError> {
    let number = given.unwrap_or(default);
    if bounds.contains(&number) {
        return Ok(number);
    }
    let (least, most) = bounds.into_inner();
    Err(ConfigError(format!("{name} is a number from {least} to {most}, not {number}")))
}

/// The limits on connections and bodies.
fn limits(options: &Options) -> Result<Limits, ConfigError> {
    let size = |name, given, default| {
        let mebibytes = number(name, given, default, 1..=1024)?;
        usize::try_from(mebibytes << 20).map_err(|_| ConfigError(format!("{name} is too large here")))
    };
    let count = |name, given, default| {
        let count = number(name, given, default, 1..=1_000_000)?;
        usize::try_from(count).map_err(|_| ConfigError(format!("{name} is too large here")))
    };
    let time = |name, given, default| number(name, given, default, 1..=86_400).map(Duration::from_secs);
    let (body, batch_body) =
        (size("max_body", options.max_body, 10)?, size("max_batch_body", options.max_batch_body, 64)?);
    let most = options.max_connections_per_address;
    Ok(Limits {
        body,
        batch_body: batch_body.max(body),
        connections: count("max_connections", options.max_connections, 10_000)?,
        connections_per_address: count("max_connections_per_address", most, 1024)?,
        idle_time: time("idle_time", options.idle_time, 60)?,
        answer_time: time("answer_time", options.answer_time, 600)?,
        ..Limits::default()
    })
}

#[cfg(test)]
mod tests;
