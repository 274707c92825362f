//! Reports of the program.

use std::process::Output;

use chancery_testkit::{Client, Database, Process};

/// Runs `chancery check-upgrade` on a database.
pub fn check(database: &Database) -> Output {
    let mut command = Process::command(&["check-upgrade", "--database", database.url(), "--data-dir"]);
    command.arg(database.folder());
    command.output().unwrap()
}

/// The lines of refused rows, of a database whose server may be running.
pub fn refused(database: &Database) -> Vec<String> {
    let output = check(database);
    let lines: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!lines.is_empty())), "{message}");
    assert!(message.contains("this release"), "{message}");
    lines
}

/// The warnings of a server that is ready.
pub async fn warnings(server: &Process) -> String {
    Client::anonymous(&server.base).get("/health/ready").await.is(200).json()["warnings"].to_string()
}
