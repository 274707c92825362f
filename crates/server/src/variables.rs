//! Unknown variables of the environment: a mistyped one would be ignored silently.

use std::{collections::BTreeSet, env};

use clap::{Command, CommandFactory as _};

use crate::{Arguments, options::PREFIX};

/// Variables that are no option's: the token of commands, and the records of builds for tests.
const OTHERS: [&str; 4] = ["CHANCERY_TOKEN", "CHANCERY_TOKEN_FILE", "CHANCERY_STATEMENTS", "CHANCERY_HOLDS"];
/// The suffix of a variable that names a file with the value of another.
const FILE: &str = "_FILE";
/// The largest edit distance between a name and the intended one.
const TYPOS: usize = 3;

/// A message for each variable of the environment that has the server's prefix and is unknown.
pub fn unknown_variables() -> Vec<String> {
    unknown(
        env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        }),
    )
}

fn unknown(variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut known: BTreeSet<String> = OTHERS.map(str::to_owned).into();
    collect(&Arguments::command(), &mut known);
    let mut unknown_names: Vec<String> = variables
        .filter(|(name, value)| {
            name.starts_with(PREFIX) && !known.contains(name) && !is_of_a_cluster(name, value)
        })
        .map(|(name, _)| name)
        .collect();
    unknown_names.sort_unstable();
    unknown_names.iter().map(|name| message(name, &known)).collect()
}

/// The variables of a command's options, and those of the commands in it.
fn collect(command: &Command, known: &mut BTreeSet<String>) {
    let names = command.get_arguments().filter_map(|option| option.get_env());
    known.extend(names.map(|name| name.to_string_lossy().into_owned()));
    for inner in command.get_subcommands() {
        collect(inner, known);
    }
}

/// Whether it is one of the variables that Kubernetes creates for a service with the server's name.
fn is_of_a_cluster(name: &str, value: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    let is_of_port = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    rest.starts_with("SERVICE_HOST")
        || rest.starts_with("SERVICE_PORT")
        || rest.strip_prefix("PORT_").is_some_and(is_of_port)
        || (rest == "PORT" && value.contains("://"))
}

fn message(name: &str, known: &BTreeSet<String>) -> String {
    if let Some(other) = name.strip_suffix(FILE).filter(|other| known.contains(*other)) {
        let mut taking =
            known.iter().filter_map(|known| known.strip_suffix(FILE)).filter(|it| known.contains(*it));
        let taking = taking.by_ref().collect::<Vec<_>>().join(", ");
        return format!(
            "{name} is no setting and has no effect: {other} holds its value itself, and only {taking} are read from files"
        );
    }
    let nearest = known.iter().min_by_key(|other| strsim::damerau_levenshtein(name, other));
    match nearest.filter(|other| strsim::damerau_levenshtein(name, other) <= TYPOS) {
        Some(other) => format!("{name} is no setting and has no effect: {other} is one"),
        None => format!("{name} is no setting and has no effect: chancery --help lists those that are"),
    }
}

#[cfg(test)]
mod tests {
    use super::unknown;

    fn messages(variables: &[(&str, &str)]) -> Vec<String> {
        unknown(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_mistyped_variable_is_reported_with_the_nearest() {
        for (name, nearest) in [
            ("CHANCERY_ADMIN_ARC", "CHANCERY_ADMIN_ACR"),
            ("CHANCERY_LISTN", "CHANCERY_LISTEN"),
            ("CHANCERY_PUBLICURL", "CHANCERY_PUBLIC_URL"),
            ("CHANCERY_CONFG", "CHANCERY_CONFIG"),
            ("CHANCERY_PASSWORD_PEPPER_FILE", "chancery --help"),
            ("CHANCERY_ROOT_CLIENT_SECRETFILE", "CHANCERY_ROOT_CLIENT_SECRET_FILE"),
            ("CHANCERY_LISTEN_FILE", "CHANCERY_LISTEN holds its value itself"),
            (
                "CHANCERY_TLS_KEY_FILE",
                "only CHANCERY_DATABASE, CHANCERY_ROOT_CLIENT_SECRET, CHANCERY_TOKEN are",
            ),
        ] {
            let messages = messages(&[(name, "x"), ("CHANCERY_LISTEN", "x"), ("PATH", "x")]);
            assert!(
                matches!(messages.as_slice(), [one] if one.contains(name) && one.contains(nearest)),
                "{messages:?}"
            );
        }
    }

    #[test]
    fn known_variables_and_those_of_a_cluster_are_not_reported() {
        for name in [
            "CHANCERY_TOKEN",
            "CHANCERY_TOKEN_FILE",
            "CHANCERY_HOLDS",
            "CHANCERY_DATABASE",
            "CHANCERY_DATABASE_FILE",
            "CHANCERY_TLS_CLIENT_CA",
            "CHANCERYX",
        ] {
            assert_eq!(messages(&[(name, "x")]), [""; 0], "{name}");
        }
        let service_variables = [
            ("CHANCERY_SERVICE_HOST", "10.0.0.1"),
            ("CHANCERY_SERVICE_PORT_HTTP", "80"),
            ("CHANCERY_PORT", "tcp://10.0.0.1:80"),
            ("CHANCERY_PORT_80_TCP_ADDR", "10.0.0.1"),
        ];
        assert_eq!(messages(&service_variables), [""; 0]);
        assert_eq!(messages(&[("CHANCERY_PORT", "8080")]).len(), 1);
    }
}
