//! FIDO's own text: number 237, from a package on crates.io. FIDO's terms do not allow storing it here, and
//! as a dependency the package would bring 300 others: cargo fetches its source alone.

use std::{env, fs, path::PathBuf, process::Command, sync::LazyLock};

use aws_lc_rs::digest::{SHA256, digest};
use chancery_record::Timestamp;
use chancery_trust::{Anchors, RefusalKind, Snapshot, verify};
use uuid::Uuid;

use crate::service::at;

const PACKAGE: &str = "fido_mds3_attestation_ca";
const VERSION: &str = "0.1.1-rc.2";
const SHA256_HEX: &str = "c5ed34c817bdc42504cfbb17c31f94eddfa85df2dc6685e9ba9c1077af797d9a";

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let path = unpacked().unwrap_or_else(|| {
        // prints the package's description, for which cargo fetches and unpacks it
        let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["info", "--quiet", "--registry", "crates-io", &format!("{PACKAGE}@{VERSION}")])
            // outside this workspace, because its lock file does not have the package
            .current_dir(env::temp_dir())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        unpacked().expect("cargo info unpacks the package")
    });
    let text = fs::read(path).unwrap();
    let sum = digest(&SHA256, &text);
    let sum: Vec<_> = sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sum.concat(), SHA256_HEX);
    String::from_utf8(text).unwrap()
});

/// The path of the text in cargo's cache, if it is there.
fn unpacked() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    registries
        .map(|registry| registry.unwrap().path().join(format!("{PACKAGE}-{VERSION}")))
        // cargo's marker of a complete unpacking
        .find(|package| package.join(".cargo-ok").exists())
        .map(|package| package.join("data/ca_list.jwt"))
}

fn read_at(moment: &str) -> Result<Snapshot, chancery_trust::MetadataRefusal> {
    verify(&TEXT, &Anchors::pinned(), at(moment))
}

fn aaguid(text: &str) -> [u8; 16] {
    Uuid::parse_str(text).unwrap().into_bytes()
}

#[test]
fn the_text_of_fido_is_accepted_and_fully_read() {
    let snapshot = read_at("2026-03-01").unwrap();
    assert_eq!((snapshot.no, snapshot.next_update), (237, at("2026-04-01")));
    assert_eq!((snapshot.entries, snapshot.models().count(), snapshot.skipped), (440, 293, 0));
    // all three are of one model
    assert_eq!(snapshot.skipped_roots, 3, "{:?}", snapshot.reasons);
    assert_eq!(snapshot.roots(aaguid("5343502d-5343-5343-6172-644649444f32")).count(), 0);
    assert_eq!(snapshot.models().map(|(model, _)| snapshot.roots(model).count()).sum::<usize>(), 526);

    let stored = snapshot.to_bytes();
    assert!(stored.len() < 500_000, "{}", stored.len());
    assert_eq!(Snapshot::from_bytes(&stored).unwrap(), snapshot);

    let yubikey = aaguid("cb69481e-8ff7-4039-93ec-0a2729a154a8");
    assert_eq!(snapshot.name(yubikey), Some("YubiKey 5 Series"));
    assert!(snapshot.roots(yubikey).count() > 0);
    let now = at("2026-03-01");
    let undesired: Vec<_> =
        snapshot.models().filter(|(model, _)| snapshot.is_undesired(*model, now)).collect();
    let revoked = aaguid("ba86dc56-635f-4141-aef6-00227b1b9af6");
    assert_eq!(undesired.iter().map(|(model, _)| *model).collect::<Vec<_>>(), [revoked]);
    assert!(!snapshot.is_undesired(revoked, at("2023-12-20").plus(-1)));
    assert!(snapshot.is_undesired(revoked, at("2023-12-20")));
}

#[test]
fn the_text_of_fido_is_accepted_while_its_certificate_is_valid() {
    let refused =
        |moment: Timestamp| verify(&TEXT, &Anchors::pinned(), moment).err().map(|refusal| refusal.kind);
    let (from, to) = (at("2025-07-25T20:40:37Z"), at("2026-08-26T20:40:36Z"));
    assert_eq!(refused(from.plus(-1_000)), Some(RefusalKind::Certificate));
    assert_eq!((refused(from), refused(to)), (None, None));
    assert_eq!(refused(to.plus(1_000)), Some(RefusalKind::Certificate));
}

#[test]
fn a_changed_text_of_fido_is_refused() {
    let middle = TEXT.len() / 2;
    let mut changed = TEXT.clone();
    let other = if changed[middle..].starts_with('A') { "B" } else { "A" };
    changed.replace_range(middle..=middle, other);
    let refusal = verify(&changed, &Anchors::pinned(), at("2026-03-01")).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Signature);
}
