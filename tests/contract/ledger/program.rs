//! The program: export and verification on the command line, sealing in the background.

use std::{
    fs,
    io::Write as _,
    process::{Output, Stdio},
};

use chancery_testkit::{Database, Engine, Process, on_both_engines};
use serde_json::json;

use super::{DAMAGE, append_leaves, export, history, note, sql};
use crate::id;

fn audit(arguments: &[&str], input: &str) -> Output {
    let mut child = Process::command(&["audit"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}

on_both_engines! {
    /// The program exports while a server runs, and verifies without one.
    async fn a_trail_is_exported_and_verified_on_the_command_line(world: World) {
        history(&world).await;
        let folder = world.database.folder();
        let path = |name: &str| folder.join(name).display().to_string();
        let (file, keys, checkpoint) = (path("trail.jsonl"), path("keys.json"), path("kept.note"));
        fs::write(&keys, &world.anonymous.get("/.well-known/audit-keys.json").await.is(200).bytes).unwrap();
        fs::write(&checkpoint, note(&world).await).unwrap();
        let data = folder.display().to_string();
        let reach = ["--database", world.database.url(), "--data-dir", &data];
        let done = audit(&[&["export", "--store", "default", "--output", &file], &reach[..]].concat(), "");
        assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
        assert!(lines(&done.stderr)[0].starts_with("exported 8 entries of chancery/userstore/"), "{done:?}");
        let whole = fs::read_to_string(&file).unwrap();
        assert_eq!(audit(&[&["export", "--store", "default"], &reach[..]].concat(), "").stdout.len(), whole.len());
        let sound = audit(&["verify", &file, "--keys", &keys, "--checkpoint", &checkpoint], "");
        assert_eq!((sound.status.code(), sound.stdout.starts_with(b"sound: ")), (Some(0), true), "{sound:?}");
        assert!(lines(&sound.stdout)[0].contains("8 entries, a checkpoint over 8, 1 with erased contents"), "{sound:?}");
        let changed = whole.replace("\"area\":\"Group\"", "\"area\":\"group\"");
        let verification = audit(&["verify", "-", "--keys", &keys], &changed);
        assert_eq!(verification.status.code(), Some(1));
        let report = lines(&verification.stdout);
        assert!(report[0].starts_with("wrong signature, position 3, entry "), "{report:?}");
        assert!(report.last().unwrap().starts_with("NOT SOUND, "), "{report:?}");
        // an empty trail is no proof that nothing happened
        let empty = path("empty.jsonl");
        let head: serde_json::Value = serde_json::from_str(whole.lines().next().unwrap()).unwrap();
        let head = format!(
            "{{\"format\":{},\"origin\":{},\"checkpoint\":null,\"size\":0,\"exportedOn\":{}}}\n{{\"end\":0}}\n",
            head["format"], head["origin"], head["exportedOn"]
        );
        for nothing in [String::new(), head] {
            fs::write(&empty, nothing).unwrap();
            let rejected = audit(&["verify", &empty, "--keys", &keys], "");
            assert_eq!((rejected.status.code(), rejected.stdout.len()), (Some(2), 0), "{rejected:?}");
        }
        for wrong in [&["verify", "no-such-file", "--keys", &keys][..], &["verify", &file, "--keys", &file], &["verify", &file], &["verify", &keys, "--keys", &keys]] {
            let rejected = audit(wrong, "");
            assert_eq!((rejected.status.code(), rejected.stdout.len()), (Some(2), 0), "{rejected:?}");
        }
        let none = audit(&[&["export", "--store", "none"], &reach[..]].concat(), "");
        assert!(!none.status.success() && lines(&none.stderr)[0].contains("no user store \"none\""), "{none:?}");
        // with another master key no contents would open, and all would seem erased
        world.database.write_private("other.key", [7; 32]);
        let other = audit(&[&["export", "--store", "default", "--master-key-file", &path("other.key")], &reach[..]].concat(), "");
        assert!(!other.status.success() && lines(&other.stderr)[0].contains("master key"), "{other:?}");
    }

    /// Entries after the checkpoint are not exported, and that is reported.
    async fn an_export_ends_at_its_checkpoint(world: World) {
        world.user("ada").await;
        append_leaves(&world).await;
        sql(&world, vec![(DAMAGE.to_owned(), vec![])]).await;
        let user = world.user("eve").await;
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&user))), json!({})).await.expect(204);
        let (text, exported) = export(&world, "default").await;
        assert_eq!((exported.entries, exported.waiting, exported.deletions_wait), (1, 2, true));
        assert!(!text.contains("\"position\":1"));
    }
}

#[test]
fn the_command_line_has_help() {
    for (arguments, expected) in [
        (&["--help"][..], &["export", "verify"][..]),
        (&["export", "--help"], &["--store", "--output", "Examples:"]),
        (&["verify", "--help"], &["--keys", "--checkpoint", "Exit status", "Examples:"]),
    ] {
        let help = audit(arguments, "");
        let text = String::from_utf8(help.stdout).unwrap();
        assert!(help.status.success() && expected.iter().all(|word| text.contains(word)), "{text}");
    }
}

/// A running server seals the trail in the background.
#[tokio::test]
async fn a_server_seals_in_the_background() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[]).await;
    let path = "/api/userstore/v2/default/administration";
    server.admin.post(&format!("{path}/User"), json!({ "loginName": "ada" })).await.expect(201);
    let sealed = async {
        while server.admin.get(&format!("{path}/CustomAuditTrail/checkpoint")).await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(chancery_testkit::PATIENCE, sealed).await.unwrap();
    let metrics = server.admin.get("/metrics").await.is(200);
    let text = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    assert!(
        text.contains("\nchancery_audit_unlogged 0\n")
            && text.contains("chancery_audit_checkpoint_time_seconds 1"),
        "{text}"
    );
}
