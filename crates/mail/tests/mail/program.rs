//! The operator's delivery program instead of a mail server.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc};

use chancery_mail::Transport;
use chancery_store::Store;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    engine,
    fixture::{Fixture, NOW, delivered, mail},
};

fn program(folder: &TempDir, script: &str) -> PathBuf {
    let path = folder.path().join("deliver");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

fn fixture(store: Store, program: PathBuf) -> Fixture {
    Fixture { store, server_of: Arc::new(move |_, _, _| Ok(Some(Transport::Program(program.clone())))) }
}

#[test]
fn the_program_gets_the_message_and_delivers_with_status_0() {
    let (folder, target) = engine::sqlite();
    let taken = folder.path().join("taken");
    let path = program(&folder, &format!("cat > {}", taken.display()));
    engine::on(&target, |store| async move {
        let fixture = fixture(store, path);
        fixture.queue(mail(1)).await;
        assert_eq!(fixture.deliver(NOW, 1).await, delivered(1, 0, 0));
        let message: Value = serde_json::from_slice(&fs::read(&taken).unwrap()).unwrap();
        assert_eq!(
            (&message["kind"], &message["recipient"]),
            (&"PasswordReset".into(), &"user1@example.com".into())
        );
        assert_eq!((&message["data"]["token"], &message["locale"]), (&"tulip".into(), &"de-DE".into()));
        assert_eq!(fixture.deliver(NOW, 2).await, delivered(0, 0, 0));
    });
}

/// Also under A: the program inherits no environment.
#[test]
fn the_program_inherits_no_environment() {
    assert!(std::env::vars().count() > 3);
    let (folder, target) = engine::sqlite();
    let taken = folder.path().join("taken");
    let path = program(&folder, &format!("env > {}", taken.display()));
    engine::on(&target, |store| async move {
        let fixture = fixture(store, path);
        fixture.queue(mail(1)).await;
        assert_eq!(fixture.deliver(NOW, 1).await, delivered(1, 0, 0));
        let variables = fs::read_to_string(&taken).unwrap();
        // the variables that a shell sets itself
        let own = ["PWD", "SHLVL", "_", "OLDPWD"];
        let others = variables.lines().filter(|line| !own.contains(&line.split('=').next().unwrap()));
        assert_eq!(others.count(), 0, "{variables}");
    });
}

#[test]
fn a_failure_is_tried_again_and_reveals_no_secret() {
    for script in ["exit 3", "echo tulip >&2; exit 1", "kill -9 $$"] {
        let (folder, target) = engine::sqlite();
        let path = program(&folder, script);
        engine::on(&target, |store| async move {
            let fixture = fixture(store, path);
            fixture.queue(mail(1)).await;
            assert_eq!(fixture.deliver(NOW, 1).await, delivered(0, 1, 0));
            let (error, _) = fixture.last_error(1).await;
            assert!(
                error.starts_with("the delivery program ended with") && !error.contains("tulip"),
                "{error}"
            );
        });
    }
}

#[test]
fn a_program_that_is_not_there_is_tried_again() {
    let (folder, target) = engine::sqlite();
    let path = folder.path().join("nothing");
    engine::on(&target, |store| async move {
        let fixture = fixture(store, path);
        fixture.queue(mail(1)).await;
        assert_eq!(fixture.deliver(NOW, 1).await, delivered(0, 1, 0));
        assert_eq!(fixture.last_error(1).await.0, "the delivery program: entity not found");
    });
}
