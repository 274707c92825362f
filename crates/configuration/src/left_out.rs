//! What is no configuration, and why.

const PERSON: &str = "it is about people, who are no configuration";
const RECORD: &str = "the server writes it";
const WORKING: &str = "it is something that happens, and not how something is to be";

/// Resources of the management service that are no configuration, each with the reason.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("ApplicationGroup", PERSON),
    ("ApplicationUser", PERSON),
    ("ApplicationUserProfile", PERSON),
    ("AuditTrail", RECORD),
    ("ClientAppMetadata", "what applications note about themselves; it has no batches"),
    ("ClientAppRefusal", RECORD),
    ("DirectoryRefusal", RECORD),
    ("Event", RECORD),
    ("EventDelivery", RECORD),
    ("EventSubscription", "its secret is told once, to whoever makes it, and it is activated after a test"),
    ("IdentityReplacement", WORKING),
    ("IdpInstanceMetadata", "what applications note about an instance; it has no batches"),
    ("RoleAssignment", PERSON),
    ("SignInConsent", PERSON),
    ("SignInFactor", PERSON),
    ("SignInGrant", PERSON),
    ("SignInRecord", RECORD),
    ("SignInSession", PERSON),
    ("TrustSnapshot", "the server fetches it"),
];

/// Sets of configuration that are none themselves: the kind, the member and the reason.
pub const MEMBERS_LEFT_OUT: &[(&str, &str, &str)] = &[
    ("ClientApp", "authorizedPlatformUsers", PERSON),
    ("ClientApp", "authorizedPlatformGroups", PERSON),
    ("ClientApp", "metadata", "what applications note about themselves"),
    ("IdpInstance", "metadata", "what applications note about an instance"),
];

/// Kinds that are not exported: all that there is of them is a secret. A document can still make one.
pub const NOT_EXPORTED: &[&str] = &["ClientAppSecret"];

/// Members that say how a file was written that was uploaded, with what is true of the file that an export holds. They are
/// taken when a row is made, and not compared.
pub const UPLOADED: &[(&str, &str, &str)] = &[
    ("CertStore", "certificateStorageFormat", "Der"),
    ("CertStore", "certificatePasswordProtection", "None"),
];

/// What is true of the file that an export holds, where the member says how a file was written.
pub fn uploaded(kind: &str, member: &str) -> Option<&'static str> {
    UPLOADED.iter().find(|(of, name, _)| *of == kind && *name == member).map(|(.., value)| *value)
}
