//! The operator's delivery program, which delivers instead of a mail server.

use std::{path::Path, process::Stdio, time::Duration};

use chancery_fetch::Permission;
use chancery_record::Secret;
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt as _,
    process::Command,
    time::{Instant, timeout_at},
};

use crate::{failure::Failure, outbox::QueuedMail};

/// The time that the program may take.
pub const TIME: Duration = Duration::from_secs(30);

/// Runs the program with one message as JSON on its standard input: `id`, `kind`, `recipient`, `locale` and
/// `data`. Exit status 0 means delivered; after any other the mail is tried again.
pub async fn run(
    _: Permission,
    program: &Path,
    mail: &QueuedMail,
    data: &Secret,
    end: Instant,
) -> Result<(), Failure> {
    let data: Value = serde_json::from_slice(data.expose())
        .map_err(|_| Failure::Permanent("its data cannot be read".to_owned()))?;
    let message = json!({
        "id": mail.id, "kind": mail.kind, "recipient": mail.recipient, "locale": mail.locale, "data": data,
    });
    let end = end.min(Instant::now() + TIME);
    match timeout_at(end, hand_over(program, message.to_string().into_bytes())).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(Failure::Transient(format!("the delivery program ended with {status}"))),
        Ok(Err(error)) => Err(Failure::Transient(format!("the delivery program: {}", error.kind()))),
        Err(_) => Err(Failure::Transient("the delivery program did not end in time".to_owned())),
    }
}

async fn hand_over(program: &Path, message: Vec<u8>) -> std::io::Result<std::process::ExitStatus> {
    // the server's environment may hold secrets, such as the master key
    let mut child = Command::new(program)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // a program that does not read its input may still deliver: the exit status decides
        let _ = input.write_all(&message).await;
    }
    child.wait().await
}
