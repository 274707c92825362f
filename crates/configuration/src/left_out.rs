//! The resources that are not configuration, with the reasons.

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

/// Kinds that are not exported: their only content is a secret. A document can still create one.
pub const NOT_EXPORTED: &[&str] = &["ClientAppSecret"];

/// Members that describe the format of an uploaded file, with the format of the file in an export. They are
/// used when a row is created, and not compared.
pub const UPLOADED: &[(&str, &str, &str)] = &[
    ("CertStore", "certificateStorageFormat", "Der"),
    ("CertStore", "certificatePasswordProtection", "None"),
];

/// The format of the file in an export, for a member that describes it.
pub fn uploaded(kind: &str, member: &str) -> Option<&'static str> {
    UPLOADED.iter().find(|(of, name, _)| *of == kind && *name == member).map(|(.., value)| *value)
}
