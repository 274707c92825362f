//! The answer of the UserInfo endpoint (OpenID Connect Core 1.0, section 5.3).

use chancery_record::{Json, read_json_within};

use crate::{Check, check::text};

/// Judges an answer by the subject of the ID token; its claims where they are that person's.
pub fn judge_user_info(document: &[u8], subject: &str) -> (Check, Option<Json>) {
    let json = read_json_within(document, 10_000).ok().filter(|json| matches!(json, Json::Object(_)));
    let Some(json) = json else {
        return (Check::failed("userinfo", "The UserInfo endpoint answered no JSON object."), None);
    };
    // claims of somebody else are worse than none (section 5.3.2)
    let check = Check::same("userinfo", "sub of UserInfo", text(&json, "sub").unwrap_or_default(), subject);
    let is_same = check.passed;
    (check, Some(json).filter(|_| is_same))
}
