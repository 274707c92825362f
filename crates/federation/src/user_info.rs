//! The UserInfo response (OpenID Connect Core 1.0, section 5.3).

use chancery_record::{Json, read_json_within};

use crate::{Check, check::text};

/// Validates a UserInfo response. Returns its claims if they have the subject of the ID token.
pub fn check_user_info(document: &[u8], subject: &str) -> (Check, Option<Json>) {
    let json = read_json_within(document, 10_000).ok().filter(|json| matches!(json, Json::Object(_)));
    let Some(json) = json else {
        return (Check::failed("userinfo", "The UserInfo endpoint answered no JSON object."), None);
    };
    // claims of another user must not be used (section 5.3.2)
    let check = Check::equal("userinfo", "sub of UserInfo", text(&json, "sub").unwrap_or_default(), subject);
    let is_same = check.passed;
    (check, Some(json).filter(|_| is_same))
}
