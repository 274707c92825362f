//! The configuration of a server in a test.

use std::time::Duration;

use chancery::{Arguments, Config};
use chancery_credential::hash::Parameters;

use crate::Database;

/// The secret of the root client in tests.
pub const ROOT_SECRET: &str = "the root secret of the tests";

/// The configuration of a server in a test.
#[expect(clippy::expect_used, reason = "a test cannot go on without its server")]
pub fn config(database: &Database, more: Vec<String>) -> Config {
    let folder = database.folder().display().to_string();
    let defaults = [
        ("--listen", "127.0.0.1:0"),
        ("--data-dir", &folder),
        ("--database", database.url()),
        ("--root-client-secret", ROOT_SECRET),
        // all tests send from one address
        ("--public-rate-limit", "off"),
        ("--failed-sign-ins", "off"),
    ];
    let is_given = |name: &str| more.iter().any(|word| word == name);
    let defaults =
        defaults.iter().filter(|(name, _)| !is_given(name)).flat_map(|(name, value)| [*name, *value]);
    let words: Vec<_> = std::iter::once("chancery").chain(defaults).map(str::to_owned).collect();
    let arguments = <Arguments as clap::Parser>::parse_from(words.into_iter().chain(more));
    let mut config = Config::read(&arguments.config).expect("the configuration is good");
    config.hashing = Parameters::for_tests();
    config.limits.failed_sign_in_time = Duration::ZERO;
    config
}
