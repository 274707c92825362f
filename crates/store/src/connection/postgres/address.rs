//! A connection string: its hosts, and how TLS is used with each of them. The driver supports neither
//! certificates nor milliseconds, so those parameters are removed before it parses the rest.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use percent_encoding::percent_decode_str;
use tokio_postgres::{
    Config,
    config::{Host, SslMode, SslNegotiation, TargetSessionAttrs},
};

use super::tls::{Check, Roots, Tls};
use crate::Error;

/// One server: the driver's configuration, and TLS unless the connection is in plain text.
#[derive(Clone)]
pub struct HostConfig {
    pub config: Config,
    pub tls: Option<Tls>,
}

/// How long a sent byte may stay without an acknowledgement.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// Keepalive: seconds of silence, seconds between probes, probes.
const KEEPALIVE: (u64, u64, u32) = (10, 5, 2);

/// The parameters that are removed before the driver parses the rest.
const OWN_PARAMETERS: [&str; 5] = ["sslmode", "sslrootcert", "sslcert", "sslkey", "tcp_user_timeout"];

/// Parses a connection string. `insecure`: connections without TLS to other machines are allowed.
pub fn read(url: &str, insecure: bool) -> Result<Vec<HostConfig>, Error> {
    let (rest, own_parameters) = split(url);
    let wrong = |error: tokio_postgres::Error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        invalid(&format!("{error}{cause}"))
    };
    let mut shared: Config = rest.parse().map_err(wrong)?;
    let parameter =
        |name: &str| own_parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let has_driver_parameter = |name: &str| rest.contains(&format!("{name}="));
    let unacknowledged = match parameter("tcp_user_timeout") {
        None => UNACKNOWLEDGED,
        Some(text) => Duration::from_millis(text.parse().map_err(|_| {
            invalid(&format!("tcp_user_timeout is a number of milliseconds, as in libpq, not {text:?}"))
        })?),
    };
    shared.tcp_user_timeout(unacknowledged);
    if !has_driver_parameter("keepalives_idle") {
        shared.keepalives_idle(Duration::from_secs(KEEPALIVE.0));
    }
    if shared.get_keepalives_interval().is_none() {
        shared.keepalives_interval(Duration::from_secs(KEEPALIVE.1));
    }
    if shared.get_keepalives_retries().is_none() {
        shared.keepalives_retries(KEEPALIVE.2);
    }
    if shared.get_application_name().is_none() {
        shared.application_name("chancery");
    }
    let count = shared.get_hosts().len().max(shared.get_hostaddrs().len());
    if count > 1 && !has_driver_parameter("target_session_attrs") {
        shared.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    if count == 0 {
        return Err(invalid("it names no host"));
    }
    let tls = TlsParameters {
        mode: parameter("sslmode"),
        roots: parameter("sslrootcert"),
        certificate: parameter("sslcert").map(PathBuf::from),
        key: parameter("sslkey").map(PathBuf::from),
        direct: shared.get_ssl_negotiation() == SslNegotiation::Direct,
        insecure,
    };
    (0..count).map(|number| host_config(&shared, number, &tls)).collect()
}

fn invalid(why: &str) -> Error {
    Error::Unavailable(format!("the connection string: {why}"))
}

/// The connection string without our own parameters, and those parameters.
fn split(url: &str) -> (String, Vec<(String, String)>) {
    let after_user = url.find('@').map_or(0, |at| at + 1);
    let question = url.get(after_user..).and_then(|rest| rest.find('?')).map(|at| after_user + at);
    let Some((base, query)) = question.and_then(|at| Some((url.get(..at)?, url.get(at + 1..)?))) else {
        return (url.to_owned(), Vec::new());
    };
    let (mut driver_parameters, mut own_parameters) = (Vec::new(), Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if OWN_PARAMETERS.contains(&name) {
            own_parameters
                .push((name.to_owned(), percent_decode_str(value).decode_utf8_lossy().into_owned()));
        } else {
            driver_parameters.push(pair);
        }
    }
    let question = if driver_parameters.is_empty() { "" } else { "?" };
    (format!("{base}{question}{}", driver_parameters.join("&")), own_parameters)
}

struct TlsParameters<'a> {
    mode: Option<&'a str>,
    roots: Option<&'a str>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    direct: bool,
    insecure: bool,
}

/// The configuration of one of the hosts.
fn host_config(shared: &Config, number: usize, parameters: &TlsParameters<'_>) -> Result<HostConfig, Error> {
    let mut config = Config::new();
    let host = shared.get_hosts().get(number);
    let address = shared.get_hostaddrs().get(number).copied();
    match host {
        Some(Host::Tcp(name)) => config.host(name),
        Some(Host::Unix(path)) => config.host_path(path),
        None => &mut config,
    };
    if let Some(address) = address {
        config.hostaddr(address);
    }
    if let Some(port) = shared.get_ports().get(number).or_else(|| shared.get_ports().first()) {
        config.port(*port);
    }
    if let Some(user) = shared.get_user() {
        config.user(user);
    }
    if let Some(password) = shared.get_password() {
        config.password(password);
    }
    if let Some(name) = shared.get_dbname() {
        config.dbname(name);
    }
    if let Some(options) = shared.get_options() {
        config.options(options);
    }
    if let Some(name) = shared.get_application_name() {
        config.application_name(name);
    }
    if let Some(timeout) = shared.get_tcp_user_timeout() {
        config.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = shared.get_keepalives_interval() {
        config.keepalives_interval(interval);
    }
    if let Some(probes) = shared.get_keepalives_retries() {
        config.keepalives_retries(probes);
    }
    config
        .keepalives(shared.get_keepalives())
        .keepalives_idle(shared.get_keepalives_idle())
        .target_session_attrs(shared.get_target_session_attrs())
        .channel_binding(shared.get_channel_binding())
        .ssl_negotiation(shared.get_ssl_negotiation());
    let tls = parameters.of(host, address)?;
    config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
    Ok(HostConfig { config, tls })
}

impl TlsParameters<'_> {
    /// TLS for a host: its certificate and name are verified unless it is this machine.
    fn of(&self, host: Option<&Host>, address: Option<IpAddr>) -> Result<Option<Tls>, Error> {
        let is_this_machine = is_this_machine(host, address);
        let mode = self.mode.unwrap_or(if is_this_machine { "disable" } else { "verify-full" });
        if self.direct && mode == "disable" {
            let why =
                "sslnegotiation=direct begins with TLS: say sslmode=verify-full, verify-ca or require, too";
            return Err(invalid(why));
        }
        let check = match (mode, self.roots) {
            ("disable", _) if is_this_machine || self.insecure => return Ok(None),
            ("disable", _) => {
                let why = "sslmode=disable would send everything in the clear to another machine; use \
                           verify-full, or set CHANCERY_DATABASE_INSECURE=on where the network is trusted";
                return Err(invalid(why));
            }
            ("allow" | "prefer", _) => {
                let why = format!(
                    "sslmode={mode} protects from nobody, since whoever stands between can refuse TLS; use verify-full"
                );
                return Err(invalid(&why));
            }
            ("require", None) => Check::Nothing,
            ("require" | "verify-ca", _) => Check::Chain,
            ("verify-full", _) => Check::ChainAndName,
            _ => {
                let why = format!("sslmode is disable, require, verify-ca or verify-full, not {mode:?}");
                return Err(invalid(&why));
            }
        };
        if matches!(host, Some(Host::Unix(_))) {
            return Ok(None);
        }
        let roots = match self.roots {
            None | Some("system") => Roots::System,
            Some(path) => Roots::File(path.into()),
        };
        if check == Check::Chain && matches!(roots, Roots::System) {
            let why = "with the system's roots anybody with a certificate for any name would do: use \
                       sslmode=verify-full, or name your own authority by sslrootcert";
            return Err(invalid(why));
        }
        let own = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            _ => return Err(invalid("sslcert and sslkey go together: give both or none")),
        };
        Ok(Some(Tls { check, roots, own, direct: self.direct }))
    }
}

/// Whether a host is this machine.
fn is_this_machine(host: Option<&Host>, address: Option<IpAddr>) -> bool {
    match (address, host) {
        (Some(address), _) => address.is_loopback(),
        (None, Some(Host::Tcp(name))) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
        (None, Some(Host::Unix(_))) => true,
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_postgres::config::{SslMode, TargetSessionAttrs};

    use super::{HostConfig, read};
    use crate::connection::postgres::tls::{Check, Roots};

    fn one(url: &str) -> HostConfig {
        read(url, false).unwrap().remove(0)
    }

    fn refusal(url: &str) -> String {
        let Err(error) = read(url, false) else { panic!("{url} is taken") };
        error.to_string()
    }

    /// Section 2: `sslmode`, and verify-full where the host is not this machine.
    #[test]
    fn tls_is_checked_unless_the_host_is_this_machine() {
        for url in ["postgres://me@127.0.0.1/x", "postgres://me@localhost/x", "postgres://me@%2Frun/x"] {
            assert!(one(url).tls.is_none(), "{url}");
        }
        for (query, check) in [
            ("", Check::ChainAndName),
            ("?sslmode=verify-full", Check::ChainAndName),
            ("?sslmode=verify-ca&sslrootcert=/etc/root.pem", Check::Chain),
            ("?sslmode=require", Check::Nothing),
            ("?sslmode=require&sslrootcert=%2Fetc%2Froot.pem", Check::Chain),
        ] {
            let host = one(&format!("postgres://me:a%3Fb@db.example{query}"));
            assert_eq!(host.tls.map(|tls| tls.check), Some(check), "{query}");
            assert_eq!(host.config.get_ssl_mode(), SslMode::Require);
        }
        let own_machine =
            one("postgres://me@127.0.0.1/x?sslmode=verify-full&sslrootcert=/a%20b&connect_timeout=3");
        assert!(matches!(own_machine.tls.unwrap().roots, Roots::File(path) if path.ends_with("a b")));
    }

    /// Section 2: allow and prefer are refused with an explanation, disable only in trusted networks.
    #[test]
    fn sslmodes_without_protection_are_refused() {
        assert!(refusal("postgres://me@db/x?sslmode=prefer").contains("protects from nobody"));
        assert!(refusal("postgres://me@127.0.0.1/x?sslmode=allow").contains("protects from nobody"));
        assert!(refusal("postgres://me@db/x?sslmode=disable").contains("CHANCERY_DATABASE_INSECURE"));
        assert!(refusal("postgres://me@db/x?sslmode=strict").contains("\"strict\""));
        for query in ["sslmode=verify-ca", "sslmode=require&sslrootcert=system"] {
            assert!(refusal(&format!("postgres://me@db/x?{query}")).contains("your own authority"));
        }
        assert!(refusal("postgres://me@db/x?sslcert=a").contains("sslkey"));
        assert!(refusal("postgres://me@db/x?tcp_user_timeout=5s").contains("milliseconds"));
        assert!(read("postgres://me@db/x?sslmode=disable", true).unwrap().remove(0).tls.is_none());
    }

    /// Section 2: `sslnegotiation` means what it means to libpq, and is refused where TLS is off.
    #[test]
    fn sslnegotiation_direct_begins_with_tls() {
        let is_direct = |url: &str| one(url).tls.map(|tls| tls.direct);
        assert_eq!(is_direct("postgres://me@db/x"), Some(false));
        assert_eq!(is_direct("postgres://me@db/x?sslnegotiation=postgres"), Some(false));
        assert_eq!(is_direct("postgres://me@db/x?sslnegotiation=direct"), Some(true));
        let here = "postgres://me@localhost/x?sslnegotiation=direct";
        assert_eq!(is_direct(&format!("{here}&sslmode=require")), Some(true));
        for url in [here.to_owned(), format!("{here}&sslmode=disable")] {
            assert!(refusal(&url).contains("begins with TLS"), "{url}");
        }
        assert!(refusal("postgres://me@db/x?sslnegotiation=maybe").contains("sslnegotiation"));
    }

    /// Section 2: `sslrootcert=system` is the default, whether given or not.
    #[test]
    fn sslrootcert_system_means_the_systems_roots() {
        for query in ["", "?sslrootcert=system", "?sslmode=verify-full&sslrootcert=system"] {
            let tls = one(&format!("postgres://me@db/x{query}")).tls.unwrap();
            assert!(matches!(tls.roots, Roots::System) && tls.check == Check::ChainAndName, "{query}");
        }
    }

    /// Section 2: tcp_user_timeout in milliseconds, 10 s by default; keepalives 10/5/2.
    #[test]
    fn times_are_those_of_libpq() {
        let config = one("postgres://me@db/x?tcp_user_timeout=5000").config;
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(5)));
        let config = one("postgres://me@db/x").config;
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(10)));
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(10));
        assert_eq!(config.get_keepalives_interval(), Some(Duration::from_secs(5)));
        assert_eq!(config.get_keepalives_retries(), Some(2));
        assert_eq!(one("postgres://me@db/x?keepalives_idle=7").config.get_keepalives_idle().as_secs(), 7);
    }

    /// Section 2: several hosts mean read-write unless the connection string provides another mode.
    #[test]
    fn several_hosts_mean_the_one_that_accepts_writes() {
        let hosts = read("postgres://me:pw@a:1,127.0.0.1:2/x", false).unwrap();
        let attributes = hosts.iter().map(|host| host.config.get_target_session_attrs());
        assert_eq!(attributes.collect::<Vec<_>>(), [TargetSessionAttrs::ReadWrite; 2]);
        assert_eq!(hosts.iter().map(|host| host.config.get_ports()[0]).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(hosts.iter().map(|host| host.tls.is_some()).collect::<Vec<_>>(), [true, false]);
        assert_eq!(hosts[1].config.get_password(), Some(&b"pw"[..]));
        let any = read("postgres://me@a,b/x?target_session_attrs=any", false).unwrap();
        assert_eq!(any[1].config.get_target_session_attrs(), TargetSessionAttrs::Any);
        assert_eq!(one("postgres://me@a/x").config.get_target_session_attrs(), TargetSessionAttrs::Any);
    }
}
