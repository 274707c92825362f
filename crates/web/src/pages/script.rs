//! The scripts that pages run.

use std::sync::LazyLock;

use crate::message::compressed_text::CompressedText;

/// The script that calls the browser's Web Authentication API.
pub const PASSKEY_SCRIPT: &str = "passkey.js";
/// The script that submits the form of `response_mode=form_post`.
pub const POST_SCRIPT: &str = "post.js";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
static ASKS_PASSKEYS: LazyLock<CompressedText> =
    LazyLock::new(|| CompressedText::new(JAVASCRIPT, include_str!("passkey.js").into()));
static POSTS: LazyLock<CompressedText> =
    LazyLock::new(|| CompressedText::new(JAVASCRIPT, include_str!("post.js").into()));

/// The script of this name. Each page runs one at most.
pub fn script(name: &str) -> Option<&'static CompressedText> {
    match name {
        PASSKEY_SCRIPT => Some(&ASKS_PASSKEYS),
        POST_SCRIPT => Some(&POSTS),
        _ => None,
    }
}
