//! Variables of the environment that nothing reads: one that is mistyped would leave its setting as it was, in silence.

use std::{collections::BTreeSet, env};

use clap::{Command, CommandFactory as _};

use crate::{Arguments, arguments::PREFIX};

/// Variables that are no option's: the token of commands, and what builds for tests record.
const OTHERS: [&str; 4] = ["CHANCERY_TOKEN", "CHANCERY_TOKEN_FILE", "CHANCERY_STATEMENTS", "CHANCERY_HOLDS"];
/// What ends the name of a variable that names a file with the value of another.
const FILE: &str = "_FILE";
/// How many letters may differ between a name and the one that was meant.
const TYPOS: usize = 3;

/// What to say of each variable of the environment that has the server's prefix and is none of its own.
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
    let mut strange: Vec<String> = variables
        .filter(|(name, value)| {
            name.starts_with(PREFIX) && !known.contains(name) && !is_of_a_cluster(name, value)
        })
        .map(|(name, _)| name)
        .collect();
    strange.sort_unstable();
    strange.iter().map(|name| told(name, &known)).collect()
}

/// The variables of a command's options, and those of the commands in it.
fn collect(command: &Command, known: &mut BTreeSet<String>) {
    let names = command.get_arguments().filter_map(|option| option.get_env());
    known.extend(names.map(|name| name.to_string_lossy().into_owned()));
    for inner in command.get_subcommands() {
        collect(inner, known);
    }
}

/// Whether it is one of the variables that Kubernetes makes of a service which is called as the server is.
fn is_of_a_cluster(name: &str, value: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    let is_of_port = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    rest.starts_with("SERVICE_HOST")
        || rest.starts_with("SERVICE_PORT")
        || rest.strip_prefix("PORT_").is_some_and(is_of_port)
        || (rest == "PORT" && value.contains("://"))
}

fn told(name: &str, known: &BTreeSet<String>) -> String {
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

    fn told(variables: &[(&str, &str)]) -> Vec<String> {
        unknown(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_mistyped_variable_is_told_with_the_nearest() {
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
            let told = told(&[(name, "x"), ("CHANCERY_LISTEN", "x"), ("PATH", "x")]);
            assert!(
                matches!(told.as_slice(), [one] if one.contains(name) && one.contains(nearest)),
                "{told:?}"
            );
        }
    }

    #[test]
    fn known_variables_and_those_of_a_cluster_are_not_told() {
        for name in [
            "CHANCERY_TOKEN",
            "CHANCERY_TOKEN_FILE",
            "CHANCERY_HOLDS",
            "CHANCERY_DATABASE",
            "CHANCERY_DATABASE_FILE",
            "CHANCERY_TLS_CLIENT_CA",
            "CHANCERYX",
        ] {
            assert_eq!(told(&[(name, "x")]), [""; 0], "{name}");
        }
        let made = [
            ("CHANCERY_SERVICE_HOST", "10.0.0.1"),
            ("CHANCERY_SERVICE_PORT_HTTP", "80"),
            ("CHANCERY_PORT", "tcp://10.0.0.1:80"),
            ("CHANCERY_PORT_80_TCP_ADDR", "10.0.0.1"),
        ];
        assert_eq!(told(&made), [""; 0]);
        assert_eq!(told(&[("CHANCERY_PORT", "8080")]).len(), 1);
    }
}
