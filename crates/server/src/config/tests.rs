//! The accepted settings, and their display.

use clap::Parser as _;
use proptest::prelude::{prop_assert_eq, proptest};

use super::Config;
use crate::options::{ConfigArguments, Options};

/// A command line without commands.
#[derive(clap::Parser)]
struct CommandLine {
    #[command(flatten)]
    config: ConfigArguments,
}

fn read(toml: &str) -> Result<Config, String> {
    let options: Options = toml::from_str(toml).map_err(|error| error.to_string())?;
    Config::from_options(options).map_err(|error| error.0)
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let config = read("").unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(
        config.display().lines().find(|line| line.starts_with("database")),
        Some("database = \"sqlite:./data/chancery.sqlite\"")
    );
    assert_eq!(config.public_rate_limit, Some(60));
}

#[test]
fn secrets_are_hidden() {
    let config =
        read("root_client_secret = 'hush-hush-hush-hush'\ndatabase = 'postgres://me:hush-hush@db/x'")
            .unwrap();
    assert!(!config.display().contains("hush"), "{}", config.display());
    assert!(!format!("{config:?}").contains("hush"), "{config:?}");
    assert!(config.display().contains("postgres://me@db/x"));
}

#[test]
fn mistakes_name_the_option() {
    for (toml, word) in [
        ("listen = 'here'", "listen"),
        ("database = 'mysql://x'", "database"),
        ("database_connections = 1", "database_connections"),
        ("database_insecure = 'yes'", "database_insecure"),
        ("migrate = 'later'", "migrate"),
        ("public_rate_limit = '0'", "public_rate_limit"),
        ("failed_sign_ins = 'few'", "failed_sign_ins"),
        ("trusted_proxies = 'proxy.example'", "trusted_proxies"),
        ("tls_key = 'x'", "tls_certificate"),
        ("tls_client_ca = 'x'", "tls_certificate"),
        ("public_url = 'id.example.com'", "public_url"),
        // as a value that comes from a file may be
        ("public_url = \"https://id.example.com\\n\"", "public_url"),
        ("public_url = \"https://id.example.com\\t/a\"", "public_url"),
        ("public_url = 'https://id.example.com\u{a0}'", "public_url"),
        ("root_client_secret = \"hush-hush-hush-hush\\nhush\"", "root_client_secret"),
        ("lisen = 'x'", "lisen"),
        ("root_client_secret = ''", "root_client_secret"),
        // the token endpoint accepts attempts: a secret must not be a dictionary word
        ("root_client_secret = '123456789012345'", "root_client_secret"),
        ("drain = 601", "drain"),
        ("max_connections = 0", "max_connections"),
        ("max_connections_per_address = 0", "max_connections_per_address"),
        ("idle_time = 0", "idle_time"),
        ("console_idle = 10", "console_idle"),
        ("console_listen = 'here'\npublic_url = 'https://id.example.com'", "console_listen is"),
        ("console_listen = '127.0.0.1:1'", "public_url"),
        ("console_session = 9999999", "console_session"),
        ("answer_time = 0", "answer_time"),
        ("max_body = 0", "max_body"),
        ("max_batch_body = 2000", "max_batch_body"),
        ("password_memory = 1024", "password_memory"),
        ("identity_replacement_proofs = 'some'", "identity_replacement_proofs"),
        ("mds_url = 'http://mds.example'", "mds_url"),
        ("mds_url = 'http://127.0.0.1.example'", "mds_url"),
        ("mds_url = 'mds.example'", "mds_url"),
        ("private_destinations = '10.0.0.0/40'", "private_destinations"),
        ("mds_root = 'root.pem'", "mds_name"),
        ("public_url = 'https://id.example.com/console'", "public_url"),
        ("public_url = 'https://id.example.com/a b'", "public_url"),
        ("public_url = 'https://id.example.com/a/../b'", "public_url"),
        ("log = 'inof'", "log is one of"),
        ("log = ''", "log is one of"),
        ("log = 'info,a=b=c'", "log"),
        ("log = 'inof,chancery_web=debug'", "\"inof\" is no level"),
        ("log = 'info,chancery_web'", "\"chancery_web\" is no level"),
        ("log = 'info,chancery_web=loud'", "log"),
        ("log = 'info,,warn'", "log is one of"),
        ("metrics_listen = '127.0.0.1:8080'", "metrics_listen is 127.0.0.1:8080"),
        ("listen = '0.0.0.0:1'\nmetrics_listen = '127.0.0.1:1'", "listen is 0.0.0.0:1 and metrics_listen"),
        (
            "console_listen = '127.0.0.1:1'\nmetrics_listen = '127.0.0.1:1'\npublic_url = 'https://id.example.com'",
            "metrics_listen is 127.0.0.1:1 and console_listen",
        ),
    ] {
        let error = read(toml).unwrap_err();
        assert!(error.contains(word), "{toml}: {error}");
    }
}

/// Values of the environment end in a line end where they come from files; the command line is as it was typed.
#[test]
fn line_ends_and_blanks_after_variables_are_trimmed() {
    let words = [
        "chancery",
        "--public-url",
        "https://id.example.com \r\n",
        "--drain",
        " 7\n",
        "--data-dir",
        "/data ",
    ];
    let arguments = CommandLine::parse_from(words);
    let variables = |name: &str| match name {
        "CHANCERY_PUBLIC_URL" => Some("https://id.example.com \r\n".to_owned()),
        "CHANCERY_DATA_DIR" => Some("/elsewhere".to_owned()),
        _ => None,
    };
    let (_, options) = arguments.config.meant(variables).unwrap();
    assert_eq!(options.public_url.as_deref(), Some("https://id.example.com"));
    assert_eq!(options.data_dir, Some("/data ".into()));
    assert_eq!(options.drain, Some(7));
    let blank = CommandLine::parse_from(["chancery", "--log", "\n"]);
    let refused = blank.config.meant(|name| (name == "CHANCERY_LOG").then(|| "\n".to_owned())).unwrap_err();
    assert!(refused.0.contains("CHANCERY_LOG"), "{refused}");
}

#[test]
fn metadata_come_from_the_configured_url() {
    let config = read("").unwrap();
    assert!(config.mds_url.is_none() && config.mds_root.is_none());
    assert!(read("mds_url = ''").unwrap().mds_url.is_none());
    for url in ["https://mds.example/", "http://127.0.0.1:8/x", "http://localhost", "http://[::1]:8/"] {
        assert_eq!(read(&format!("mds_url = '{url}'")).unwrap().mds_url.as_deref(), Some(url));
    }
    let config = read("mds_root = 'root.pem'\nmds_name = 'mds.example'").unwrap();
    assert!(config.display().contains("mds_name = \"mds.example\""), "{}", config.display());
}

#[test]
fn the_stronger_source_wins() {
    let strong: Options = toml::from_str("log = 'debug'").unwrap();
    let weak: Options = toml::from_str("log = 'warn'\nlisten = '127.0.0.1:1'").unwrap();
    let both = strong.or(weak).unwrap();
    assert_eq!((both.log.as_deref(), both.listen.as_deref()), (Some("debug"), Some("127.0.0.1:1")));
}

proptest! {
    /// A variable of the environment counts without trailing blanks and line ends; a flag counts as it is.
    #[test]
    fn values_of_the_environment_are_trimmed(
        text in "[!-~]([ -~ä]{0,20}[!-~])?",
        ends in "[ \\t\\r\\n]{0,4}",
    ) {
        for (flag, value) in [
            ("--public-url", (|options: &Options| options.public_url.clone()) as fn(&Options) -> Option<String>),
            ("--root-client-secret", |options| options.root_client_secret.clone()),
            ("--log", |options| options.log.clone()),
            ("--tls-key", |options| options.tls_key.as_ref().map(|path| path.to_str().unwrap().to_owned())),
        ] {
            let held = format!("{text}{ends}");
            let arguments = CommandLine::try_parse_from(["chancery", &format!("{flag}={held}")]).unwrap();
            let own = format!("CHANCERY_{}", flag.trim_start_matches('-').replace('-', "_").to_uppercase());
            let (_, options) = arguments.config.meant(|name| (name == own).then(|| held.clone())).unwrap();
            prop_assert_eq!(value(&options), Some(text.clone()), "{} of the environment", own);
            let (_, options) = arguments.config.meant(|_| None).unwrap();
            prop_assert_eq!(value(&options), Some(held), "{}", flag);
        }
    }
}
