//! The claims of the platform, and the scope of each.

use chancery_oauth::GROUPS;
use chancery_record::PersonalUrl;

/// The claims of the scope `profile`, each with its column.
pub const PROFILE: &[(&str, &str)] = &[
    ("given_name", "first_name"),
    ("family_name", "last_name"),
    ("middle_name", "middle_name"),
    ("nickname", "nickname"),
    ("preferred_username", "login_name"),
    ("profile", "profile"),
    ("picture", "picture"),
    ("website", "website"),
    ("gender", "gender"),
    ("birthdate", "birthdate"),
    ("zoneinfo", "zoneinfo"),
    ("locale", "locale"),
];
/// The claim of the scope `email`, with its column.
pub const EMAIL: (&str, &str) = ("email", "email_address");
/// The claim of the scope `phone`, with its column.
pub const PHONE: (&str, &str) = ("phone_number", "phone_number");

/// Derived claims of the platform, which are no column of a user, each with its scope.
const DERIVED: [(&str, &str); 5] = [
    ("name", "profile"),
    ("updated_at", "profile"),
    ("email_verified", "email"),
    ("phone_number_verified", "phone"),
    ("groups", GROUPS),
];

/// The claims about a person, each with its column.
pub fn person_claims() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROFILE.iter().chain([&EMAIL, &PHONE]).copied()
}

/// The scope of one of [`person_claims`].
fn scope(claim: &str) -> &'static str {
    match claim {
        "email" => "email",
        "phone_number" => "phone",
        _ => "profile",
    }
}

/// The scope of a claim of the platform; `None` of any other claim.
pub fn scope_of(claim: &str) -> Option<&'static str> {
    let derived = DERIVED.iter().find(|(name, _)| *name == claim).map(|(_, scope)| *scope);
    derived.or_else(|| person_claims().find(|(name, _)| *name == claim).map(|(name, _)| scope(name)))
}

/// Whether a value would run a script where an app links to it. Older releases, entries, providers and rules can have such values.
pub fn is_unsafe_link(claim: &str, value: &str) -> bool {
    matches!(claim, "picture" | "profile" | "website") && PersonalUrl::new(value).is_err()
}

/// The claims of the platform, as discovery lists them.
pub fn platform_claims() -> impl Iterator<Item = &'static str> {
    person_claims().chain(DERIVED).map(|(name, _)| name).chain(["groups_truncated"])
}
