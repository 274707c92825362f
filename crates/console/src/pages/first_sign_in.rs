//! The first sign-in of a new user: with a password, or with an access pass, which is shown once and leads to a passkey.

use chancery_resource::settings::{Options, UserStoreOption};
use chancery_userstore::passkey::sign_in::relying_party;
use serde_json::{Map, Value, json};

use crate::shell::{fields::control_field, words::Words};

/// The field that selects the way of the first sign-in.
pub const WAY: &str = "way";
/// Its choice for a passkey.
pub const BY_PASSKEY: &str = "passkey";

/// Whether holders of an access pass of the store can register a passkey with it.
pub fn can_make_passkeys(options: &Options<UserStoreOption>, url: &str) -> bool {
    options.get(UserStoreOption::TEMPORARY_ACCESS_PASS_ENABLED) && relying_party(options, url).is_some()
}

/// The form control for the way of the first sign-in; the keys of its choices start with `way_`.
pub fn way_field(words: &Words, chosen: Option<&str>) -> Map<String, Value> {
    let mut field = control_field(WAY, words.page("way"), "choice");
    let choices = ["password", BY_PASSKEY].map(|way| {
        json!({ "value": way, "label": words.page(&format!("way_{way}")), "is_current": chosen == Some(way) })
    });
    field.insert("choices".to_owned(), json!(choices));
    field.insert("hint".to_owned(), json!(words.page("way_hint")));
    field
}

/// The page with a new access pass (`pass.html`), which is shown once.
pub struct PassPage<'a> {
    /// The text above the pass.
    pub text: &'a str,
    /// The login name of the user.
    pub login: &'a str,
    /// The access pass.
    pub pass: &'a str,
    /// The label of the link to the next page.
    pub next_label: &'a str,
    /// The address of the next page.
    pub next: &'a str,
}

impl PassPage<'_> {
    /// The context of the template.
    pub fn content(&self, words: &Words) -> Value {
        json!({
            "heading": words.page("pass_title"), "text": self.text, "login": self.login, "pass": self.pass,
            "login_label": words.field("loginName"), "link": { "href": self.next, "label": self.next_label },
        })
    }
}
