//! What holds of any bytes that are parsed: they are read or refused, and never a panic. The fuzzers in `fuzz/` only call
//! these, so that a change of what they call cannot leave them behind.

#![warn(missing_docs)]

use chancery_certificate::{Format, PrivateKey, facts_of, names_of, read};
use chancery_record::{Form, Json, Others, Secret, read_draft, read_json};
use chancery_resource::parse_filter;
use chancery_scim::{GROUP, Patch, Resource, ResourceType, Target, USER, condition_of};
use chancery_userstore::user::USER as STORE_USER;

/// Any text is a filter, or is refused with a column.
///
/// # Panics
/// When it is refused without a column.
pub fn filter(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(problem) = parse_filter(text) {
        assert!(problem.detail.contains("column"), "{text:?} is refused without a column");
    }
}

/// Any bytes are a body of a user, or are refused with what is wrong.
///
/// # Panics
/// When it is refused without a reason.
pub fn body(bytes: &[u8]) {
    let Ok(json) = read_json(bytes) else { return };
    for form in [Form::Create, Form::Put, Form::Patch, Form::MergePatch] {
        if let Err(errors) = read_draft(STORE_USER.fields, Others::Any, form, &json, "") {
            assert!(!errors.as_slice().is_empty(), "a body is refused without a reason");
        }
    }
}

/// Any bytes are a certificate, a key or a file of them, or are refused with words.
///
/// # Panics
/// When one is refused without words.
pub fn certificate(bytes: &[u8]) {
    let password = Secret::new("secret");
    for format in [Format::Pkcs12, Format::Pem, Format::Der] {
        if let Err(refusal) = read(format, bytes, None, Some(&password)) {
            assert!(!refusal.to_string().is_empty(), "a file is refused without words");
        }
    }
    let _ = PrivateKey::read(bytes, Some(&password));
    let _ = facts_of(bytes);
    let _ = names_of(bytes);
}

/// Any bytes are a body of a SCIM patch, and any text a path of one, or are refused with words.
///
/// # Panics
/// When one is refused without words.
pub fn scim(bytes: &[u8]) {
    for of in [&USER, &GROUP] {
        for target in [Target::Provider, Target::Store] {
            if let Ok(body) = read_json(bytes) {
                patch(of, target, &body);
            }
            let Ok(path) = std::str::from_utf8(bytes) else { continue };
            let _ = condition_of(of, target, path);
            for op in ["add", "replace", "remove"] {
                let members = [("op", op), ("path", path), ("value", "x")];
                let operation = members.map(|(name, text)| (name.to_owned(), Json::Text(text.to_owned())));
                let operations = Json::Array(vec![Json::Object(operation.into())]);
                patch(of, target, &Json::Object(vec![("Operations".to_owned(), operations)]));
            }
        }
    }
}

fn patch(of: &'static ResourceType, target: Target, body: &Json) {
    let outcome = Patch::read(of, target, body).and_then(|patch| patch.apply(&Resource::new()));
    if let Err(refusal) = outcome {
        assert!(!refusal.detail.is_empty(), "a patch is refused without words");
    }
}
