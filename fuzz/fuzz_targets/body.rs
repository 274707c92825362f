//! Any bytes are a body of a user or are refused; never a panic.

#![no_main]

use chancery_record::{Form, read_draft, read_json};
use chancery_userstore::user::USER;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(json) = read_json(bytes) else { return };
    for form in [Form::Create, Form::Put, Form::Patch, Form::MergePatch] {
        if let Err(errors) = read_draft(USER.fields, &USER.arrays(), form, &json, "") {
            assert!(!errors.is_empty());
        }
    }
});
