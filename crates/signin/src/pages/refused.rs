//! The page of a person who is not admitted.

use serde_json::json;

use super::{SignInPage, choose};
use crate::flow::page_name::REFUSED;

pub(super) static PAGE: SignInPage = SignInPage {
    name: REFUSED,
    prepare: None,
    view: |_, _, _| ("Refused", json!({})),
    attempt: |_, _| None,
    post: choose::post,
};
