//! Arbitrary and changed texts: none panics, and none is accepted.

use std::sync::LazyLock;

use chancery_trust::{Anchors, Snapshot, verify};
use proptest::prelude::*;
use serde_json::json;

use crate::service::{Service, now};

static SIGNED: LazyLock<(Anchors, String, Vec<u8>)> = LazyLock::new(|| {
    let service = Service::new();
    let payload = json!({"no": 7, "nextUpdate": "2026-07-01", "entries": [{
        "aaguid": "8446ccb9-ab1d-b374-750b-2367ff6f3a1f",
        "metadataStatement": {"description": "A key"},
        "statusReports": [{"status": "REVOKED", "effectiveDate": "2026-01-01"}],
    }]});
    let jwt = service.signed(&payload);
    let stored = service.verify(&jwt).unwrap().to_bytes();
    (service.anchors(), jwt, stored)
});

static SERVICE: LazyLock<Service> = LazyLock::new(Service::new);

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_refused(text in any::<String>()) {
        prop_assert!(verify(&text, &SIGNED.0, now()).is_err());
    }

    #[test]
    fn any_token_like_text_is_refused(text in "[A-Za-z0-9_-]{0,80}\\.[A-Za-z0-9_-]{0,80}\\.[A-Za-z0-9_-]{0,80}") {
        prop_assert!(verify(&text, &SIGNED.0, now()).is_err());
    }

    #[test]
    fn any_change_is_refused(index in any::<prop::sample::Index>(), character in "[A-Za-z0-9._ =-]") {
        let (anchors, jwt, _) = &*SIGNED;
        let mut changed = jwt.clone();
        let index = index.index(jwt.len());
        changed.replace_range(index..=index, &character);
        if changed.trim() != jwt {
            prop_assert!(verify(&changed, anchors, now()).is_err());
        }
    }

    /// The signed payload may be arbitrary, too.
    #[test]
    fn any_payload_is_refused(payload in any::<Vec<u8>>()) {
        let jwt = SERVICE.signed_under(&SERVICE.header("ES256"), &payload);
        prop_assert!(SERVICE.verify(&jwt).is_err());
    }

    #[test]
    fn any_entry_is_read_without_panic(entry in r#"(\{|\[|"|:|,|\}|\]|aaguid|statusReports|metadataStatement|null|7){0,20}"#) {
        let payload = format!(r#"{{"no": 7, "nextUpdate": "2026-07-01", "entries": [{entry}]}}"#);
        let _ = SERVICE.verify(&SERVICE.signed_under(&SERVICE.header("ES256"), payload.as_bytes()));
    }

    #[test]
    fn any_stored_bytes_are_read_without_panic(index in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut stored = SIGNED.2.clone();
        let index = index.index(stored.len());
        stored[index] = byte;
        if let Ok(snapshot) = Snapshot::from_bytes(&stored) {
            for (aaguid, _) in snapshot.models() {
                let _ = (snapshot.is_undesired(aaguid, now()), snapshot.roots(aaguid).count());
            }
        }
    }
}
