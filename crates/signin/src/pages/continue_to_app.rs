//! The page that continues to the client app.

use serde_json::json;

use super::{SignInPage, choose};
use crate::flow::page_name::CONTINUE;

pub(super) static PAGE: SignInPage = SignInPage {
    name: CONTINUE,
    prepare: None,
    view: |_, _, _| ("Continue", json!({})),
    attempt: |_, _| None,
    post: choose::post,
};
