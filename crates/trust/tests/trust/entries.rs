//! The entries of a text, and that one bad entry does not affect the others.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_trust::{RefusalKind, Snapshot};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::service::{Service, at, now};

const ONE: &str = "8446ccb9-ab1d-b374-750b-2367ff6f3a1f";
const TWO: &str = "9c835346-796b-4c27-8898-d6032f515cc5";

fn aaguid(text: &str) -> [u8; 16] {
    Uuid::parse_str(text).unwrap().into_bytes()
}

fn entry(aaguid: &str, statuses: &[&str]) -> Value {
    let statuses: Vec<_> = statuses.iter().map(|status| json!({"status": status})).collect();
    json!({
        "aaguid": aaguid,
        "metadataStatement": {"description": "A key", "attestationTypes": ["basic_full"]},
        "statusReports": statuses,
    })
}

#[test]
fn a_model_is_known_by_its_name_statuses_and_roots() {
    let service = Service::new();
    let root = BASE64_STANDARD.encode(service.root.der());
    let leaf = BASE64_STANDARD.encode(service.leaf.der());
    let mut one = entry(ONE, &["FIDO_CERTIFIED", "SOMETHING_NEW"]);
    one["metadataStatement"]["attestationRootCertificates"] = json!([root, leaf]);
    let mut two = entry(&TWO.to_uppercase(), &[]);
    // broken into lines, as in some texts
    let (head, tail) = root.split_at(64);
    two["metadataStatement"]["attestationRootCertificates"] = json!([format!("{head}\n {tail}\n"), "AAAA"]);
    let snapshot = service.read(&json!([one, two]));
    assert_eq!(snapshot.name(aaguid(ONE)), Some("A key"));
    assert_eq!(snapshot.model(aaguid(ONE)).unwrap().attestation_types, ["basic_full"]);
    let statuses: Vec<_> = snapshot.statuses(aaguid(ONE), now()).collect();
    assert_eq!(statuses, ["FIDO_CERTIFIED", "SOMETHING_NEW"]);
    let roots: Vec<_> = snapshot.roots(aaguid(ONE)).collect();
    assert_eq!(roots, [&service.root.der()[..], service.leaf.der()]);
    assert_eq!(snapshot.roots(aaguid(TWO)).collect::<Vec<_>>(), [&service.root.der()[..]]);
    assert_eq!((snapshot.entries, snapshot.skipped, snapshot.skipped_roots), (2, 0, 1));
    assert_eq!(snapshot.reasons, [format!("a root of {TWO} is no certificate")]);
    assert_eq!(snapshot.models().count(), 2);
    // other models are unknown
    assert_eq!(snapshot.name([1; 16]), None);
    assert_eq!(snapshot.roots([1; 16]).count(), 0);
    assert!(!snapshot.is_undesired([1; 16], now()));
    let stored = Snapshot::from_bytes(&snapshot.to_bytes()).unwrap();
    assert_eq!(stored, snapshot);
}

#[test]
fn undesired_statuses_are_recognized() {
    let service = Service::new();
    for (statuses, undesired) in [
        (&["ATTESTATION_KEY_COMPROMISE"][..], true),
        (&["USER_VERIFICATION_BYPASS"], true),
        (&["USER_KEY_REMOTE_COMPROMISE"], true),
        (&["USER_KEY_PHYSICAL_COMPROMISE"], true),
        (&["REVOKED"], true),
        (&["FIDO_CERTIFIED", "REVOKED", "FIDO_CERTIFIED_L2"], true),
        (&["USER_VERIFICATION_BYPASS", "UPDATE_AVAILABLE"], true),
        (&["NOT_FIDO_CERTIFIED", "SELF_ASSERTION_SUBMITTED", "UPDATE_AVAILABLE"], false),
        (&["FIDO_CERTIFIED_L3plus"], false),
        (&["revoked"], false),
        (&[], false),
    ] {
        let snapshot = service.read(&json!([entry(ONE, statuses)]));
        assert_eq!(snapshot.is_undesired(aaguid(ONE), now()), undesired, "{statuses:?}");
    }
}

#[test]
fn a_status_applies_from_its_date_on() {
    let service = Service::new();
    let snapshot = |date: Value| {
        let mut one = entry(ONE, &["REVOKED"]);
        one["statusReports"][0]["effectiveDate"] = date;
        service.read(&json!([one]))
    };
    let dated = snapshot(json!("2026-06-02"));
    assert!(!dated.is_undesired(aaguid(ONE), at("2026-06-01T23:59:59Z")));
    assert!(dated.is_undesired(aaguid(ONE), at("2026-06-02")));
    // the status takes effect, too, in a snapshot stored before that day
    let stored = Snapshot::from_bytes(&dated.to_bytes()).unwrap();
    assert!(stored.is_undesired(aaguid(ONE), at("2026-06-02")));
    for unread in [json!("soon"), json!(20_260_602), json!(null), json!({})] {
        assert!(snapshot(unread.clone()).is_undesired(aaguid(ONE), at("1970-01-02")), "{unread}");
    }
}

#[test]
fn two_entries_for_one_model_both_apply() {
    let snapshot = Service::new().read(&json!([
        {"aaguid": ONE, "statusReports": [{"status": "REVOKED"}]},
        entry(ONE, &["FIDO_CERTIFIED"]),
    ]));
    assert_eq!(snapshot.name(aaguid(ONE)), Some("A key"));
    assert!(snapshot.is_undesired(aaguid(ONE), now()));
    assert_eq!((snapshot.entries, snapshot.models().count()), (2, 1));
}

#[test]
fn one_bad_entry_is_counted_and_left_out() {
    let service = Service::new();
    for bad in [
        json!(null),
        json!(7),
        json!([]),
        json!({"aaguid": ONE}),
        json!({"aaguid": "no aaguid", "statusReports": []}),
        json!({"aaguid": 7, "statusReports": []}),
        json!({"aaguid": Uuid::nil(), "statusReports": [{"status": "REVOKED"}]}),
        json!({"aaguid": ONE, "statusReports": [{"status": 7}]}),
        json!({"aaguid": ONE, "statusReports": [{}]}),
        json!({"aaguid": ONE, "statusReports": [], "metadataStatement": "none"}),
    ] {
        let snapshot = service.read(&json!([bad, entry(TWO, &["REVOKED"])]));
        assert_eq!((snapshot.entries, snapshot.skipped), (2, 1), "{bad}");
        assert!(snapshot.reasons[0].starts_with("entry 0: "), "{:?}", snapshot.reasons);
        assert_eq!(snapshot.models().count(), 1, "{bad}");
        assert!(snapshot.is_undesired(aaguid(TWO), now()));
        assert!(!snapshot.is_undesired([0; 16], now()));
    }
    let many: Vec<_> = std::iter::repeat_n(json!(null), 100).collect();
    let snapshot = service.read(&json!(many));
    assert_eq!((snapshot.skipped, snapshot.reasons.len()), (100, 10));
}

#[test]
fn entries_without_fido2_are_only_counted() {
    let snapshot = Service::new().read(&json!([
        {"aaid": "4e4e#4005", "statusReports": [{"status": "REVOKED"}]},
        {"attestationCertificateKeyIdentifiers": ["7c0903708b87115b0b422def3138c3c864e44573"],
         "statusReports": []},
    ]));
    assert_eq!((snapshot.entries, snapshot.skipped, snapshot.models().count()), (2, 0, 0));
}

#[test]
fn invalid_stored_bytes_are_refused() {
    for bytes in [&b""[..], b"{}", b"null", b"\xff"] {
        assert_eq!(Snapshot::from_bytes(bytes).unwrap_err().kind, RefusalKind::Malformed);
    }
    // an index out of range has no root
    let mut one = entry(ONE, &[]);
    one["metadataStatement"]["attestationRootCertificates"] =
        json!([BASE64_STANDARD.encode(Service::new().root.der())]);
    let bytes = Service::new().read(&json!([one])).to_bytes();
    let text = String::from_utf8(bytes).unwrap().replace("\"roots\":[0]", "\"roots\":[9]");
    let snapshot = Snapshot::from_bytes(text.as_bytes()).unwrap();
    assert_eq!(snapshot.roots(aaguid(ONE)).count(), 0);
}
