//! How posts count as attempts.

use std::collections::BTreeSet;

use chancery_flow::{Flow, Method, Proof, Request};
use chancery_record::Timestamp;
use uuid::Uuid;

use super::{PAGES, SignInPage, form::Form};
use crate::flow::{
    page_name::{
        ACCESS_PASS, CHOOSE, CONFIRM, CONSENT, CONTINUE, DEVICE, ENROL, NEW_PASSWORD, PASSKEY, PASSWORD,
        QUESTIONNAIRE, RECOVERY, REFUSED, SECOND_FACTOR, TERMS,
    },
    pending_flow::PendingFlow,
};

const FLOW: &str = "flow";
const PERSON: Uuid = Uuid::from_u128(7);

/// A flow, with or without a proven person.
fn pending(is_known: bool) -> PendingFlow {
    let mut flow = serde_json::to_value(Flow::new(Request::new(Timestamp(1)))).unwrap();
    if is_known {
        let (instance, credential) = (Uuid::from_u128(8), None);
        let proof =
            Proof { person: PERSON, instance, method: Method::Password, credential, at: Timestamp(2) };
        flow["proofs"] = serde_json::to_value([proof]).unwrap();
    }
    let flow = serde_json::from_value(flow).unwrap();
    PendingFlow { id: FLOW.to_owned(), ..PendingFlow::new(None, Uuid::from_u128(1), Vec::new(), flow) }
}

/// The method and the subject of a post with these fields.
fn attempt(page: &str, fields: &[&str], is_known: bool) -> Option<(&'static str, String)> {
    let fields: Vec<_> = fields.iter().map(|name| ((*name).to_owned(), " x ".to_owned())).collect();
    let attempt = SignInPage::find(page).unwrap().attempt;
    attempt(Form(&fields), &pending(is_known)).map(|attempt| (attempt.method, attempt.subject))
}

#[test]
fn every_page_of_a_flow_is_listed_once() {
    let names: BTreeSet<_> = PAGES.iter().map(|page| page.name).collect();
    assert_eq!(names.len(), PAGES.len());
}

#[test]
fn a_typed_name_counts_as_it_is_typed() {
    for is_known in [false, true] {
        for page in [PASSWORD, ACCESS_PASS] {
            assert_eq!(attempt(page, &["username"], is_known), Some((page, "x".to_owned())));
        }
        assert_eq!(attempt(PASSWORD, &[], is_known), Some((PASSWORD, String::new())));
    }
}

#[test]
fn a_passkey_and_a_new_password_count_by_flow() {
    for is_known in [false, true] {
        for page in [PASSWORD, SECOND_FACTOR, PASSKEY] {
            assert_eq!(attempt(page, &["credential"], is_known), Some((PASSKEY, FLOW.to_owned())));
        }
        assert_eq!(attempt(NEW_PASSWORD, &["choice"], is_known), Some((NEW_PASSWORD, FLOW.to_owned())));
    }
}

#[test]
fn other_attempts_count_by_person_once_that_is_known() {
    let posts = [
        (SECOND_FACTOR, &[][..], SECOND_FACTOR),
        (ENROL, &["credential"], ENROL),
        (PASSKEY, &["choice"], PASSKEY),
        (QUESTIONNAIRE, &[], QUESTIONNAIRE),
        (QUESTIONNAIRE, &["choice"], CONFIRM),
        (CONFIRM, &["resend"], CONFIRM),
        (CONFIRM, &["choice"], CONFIRM),
        (TERMS, &["decision"], CONFIRM),
    ];
    for (page, fields, method) in posts {
        assert_eq!(attempt(page, fields, true), Some((method, PERSON.to_string())), "{page} {fields:?}");
        assert_eq!(attempt(page, fields, false), Some((method, FLOW.to_owned())), "{page} {fields:?}");
    }
}

#[test]
fn a_choice_proves_nothing() {
    for page in [CHOOSE, REFUSED, CONTINUE, CONSENT, RECOVERY, DEVICE] {
        assert_eq!(attempt(page, &["choice", "credential"], true), None, "{page}");
    }
    for page in [SECOND_FACTOR, ENROL] {
        for field in ["choice", "resend"] {
            assert_eq!(attempt(page, &[field, "credential"], true), None, "{page} {field}");
        }
    }
}
