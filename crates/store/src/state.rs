//! Tables of state, which hold no resource, and the statements that write them.

use std::fmt::Display;

/// Declares the tables of state, each with its name in the schema.
macro_rules! state_tables {
    ($($(#[doc = $about:literal])* $name:ident = $table:literal,)*) => {
        /// A table of state: it holds no resource and no relation, but what operations and jobs store beside
        /// them.
        ///
        /// A transaction writes no other tables. Rows of resources and relations are written by the engine
        /// of the standard pattern, which audits and confines its writes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StateTable { $($(#[doc = $about])* $name),* }

        impl StateTable {
            /// All tables of state.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The table's name in the schema.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $table),* }
            }
        }
    };
}

state_tables! {
    /// Wrong codes of people who know their passwords.
    AttemptGuard = "attempt_guard",
    /// Failed password attempts for names that no user has.
    AttemptAtNobody = "attempt_at_nobody",
    /// Public keys that signed audit entries.
    AuditKey = "audit_key",
    /// Audit entries of the release before this one that have no position yet.
    AuditPending = "audit_pending",
    /// Authorization codes.
    AuthorizationCode = "authorization_code",
    /// The trees over the audit trails.
    AuditTree = "audit_tree",
    /// Inner nodes of the trees.
    AuditNode = "audit_node",
    /// Leaves of the trees.
    AuditLeaf = "audit_leaf",
    /// What came of tries to deliver events.
    EventAttempt = "event_attempt",
    /// Deliveries of events that wait, or were given up.
    EventDelivery = "event_delivery",
    /// How far subscriptions have come in the trails of events.
    EventReader = "event_reader",
    /// How deliveries to subscriptions fare.
    EventSubscriber = "event_subscriber",
    /// Which event stands where in its trail.
    EventPlace = "event_place",
    /// Events that have no position yet.
    EventPending = "event_pending",
    /// How far each trail of events has come.
    EventTrail = "event_trail",
    /// Callers that could act as a client app.
    ClientAppController = "client_app_controller",
    /// Refused requests of client apps.
    ClientAppRefusal = "client_app_refusal",
    /// When secrets and key sets of client apps were last used.
    ClientCredentialUse = "client_credential_use",
    /// How people want the console to look.
    ConsolePreference = "console_preference",
    /// Browsers in which people use the console.
    ConsoleSession = "console_session",
    /// The link by which the first administrator comes in.
    ConsoleSetup = "console_setup",
    /// Devices that wait for a person to let them in.
    DeviceAuthorization = "device_authorization",
    /// Whom directories wanted to deactivate or delete although the person carries a role.
    DirectoryRefusal = "directory_refusal",
    /// Erased people.
    Erasure = "erasure",
    /// Answers to requests with an idempotency key.
    IdempotentAnswer = "idempotent_answer",
    /// Claims of idempotency keys that are being worked on.
    IdempotentClaim = "idempotent_claim",
    /// Approvals of identity replacements.
    IdentityReplacementApproval = "identity_replacement_approval",
    /// Pending revocations.
    IdentityRevocation = "identity_revocation",
    /// The root key, from which other keys of the installation are derived.
    KeyRoot = "key_root",
    /// The recorded identity of the installation.
    Installation = "installation",
    /// Leases of jobs that one process at a time does.
    JobLease = "job_lease",
    /// Client apps to be told that a session ended.
    LogoutDelivery = "logout_delivery",
    /// Mails to be sent.
    MailMessage = "mail_message",
    /// Until when a person is not offered something again.
    OfferRest = "offer_rest",
    /// Codes that were sent to people.
    OneTimeCode = "one_time_code",
    /// Entries of the catalogue of options, which every owner has.
    OptionEntry = "option_entry",
    /// Events to be delivered.
    OutboxEvent = "outbox_event",
    /// Pending passkey ceremonies.
    PasskeyCeremony = "passkey_ceremony",
    /// When authenticator metadata is refreshed next.
    PasskeyTrustRefresh = "passkey_trust_refresh",
    /// Authenticator metadata.
    PasskeyTrustSnapshot = "passkey_trust_snapshot",
    /// Pending password resets.
    PasswordReset = "password_reset",
    /// When users were last mailed a link that resets the password.
    PasswordResetMail = "password_reset_mail",
    /// Processes of this installation.
    Process = "process",
    /// The questionnaire items that people were shown.
    QuestionnaireMark = "questionnaire_mark",
    /// Codes for who has no authenticator at hand.
    RecoveryCode = "recovery_code",
    /// Reference access tokens.
    ReferenceToken = "reference_token",
    /// Browsers where a person is not asked for a second factor.
    RememberedDevice = "remembered_device",
    /// Hashes of passwords that were taken away, and can be given back.
    RemovedPassword = "removed_password",
    /// The owners of resources' keys.
    ResourceOwner = "resource_owner",
    /// Ids that are never reused.
    RetiredId = "retired_id",
    /// Revoked access tokens.
    RevokedToken = "revoked_token",
    /// Authenticators that people enrolled.
    SecondFactor = "second_factor",
    /// The SCIM tokens of identity provider instances.
    ScimInstanceToken = "scim_instance_token",
    /// Users whom SCIM tokens deactivated or deleted of late.
    ScimRemoval = "scim_removal",
    /// When SCIM tokens were last used.
    ScimTokenUse = "scim_token_use",
    /// Codes that verify a security contact.
    SecurityContactCode = "security_contact_code",
    /// The records that count failed sign-ins from an address.
    SignInAttempt = "sign_in_attempt",
    /// Until when what people proved in sign-ins under way counts no longer.
    SignInCutoff = "sign_in_cutoff",
    /// Sign-ins under way that are too large for a cookie.
    SignInFlow = "sign_in_flow",
    /// What client apps have of people who signed in.
    SignInGrant = "sign_in_grant",
    /// What came of attempts to sign in.
    SignInRecord = "sign_in_record",
    /// The oldest program that the schema serves.
    SchemaFloor = "schema_floor",
    /// Sessions of people who signed in.
    SignInSession = "sign_in_session",
    /// Keys of this installation.
    SigningKey = "signing_key",
    /// The versions of terms that people accepted.
    TermsAcceptance = "terms_acceptance",
    /// Single-use proofs that were used.
    UsedProof = "used_proof",
    /// The contents of users' pictures.
    UserImageContent = "user_image_content",
    /// Password hashes.
    UserPassword = "user_password",
    /// Hashes of earlier passwords.
    UserPasswordHistory = "user_password_history",
}

/// A statement that writes one of the tables.
#[derive(Clone, Debug)]
pub struct Write(String);

impl StateTable {
    /// `INSERT INTO` the table, and the rest of the statement.
    pub fn insert(self, rest: impl Display) -> Write {
        Write(format!("INSERT INTO {} {rest}", self.name()))
    }

    /// `UPDATE` the table, and the rest of the statement.
    pub fn update(self, rest: impl Display) -> Write {
        Write(format!("UPDATE {} {rest}", self.name()))
    }

    /// `DELETE FROM` the table, and the rest of the statement.
    pub fn delete(self, rest: impl Display) -> Write {
        Write(format!("DELETE FROM {} {rest}", self.name()))
    }
}

impl Write {
    /// The statement's text.
    pub fn text(&self) -> &str {
        &self.0
    }
}
