//! State tables, which contain no resource, and the statements that write them.

use std::fmt::Display;

/// Declares the state tables, each with its name in the schema.
macro_rules! state_tables {
    ($($(#[doc = $about:literal])* $name:ident = $table:literal,)*) => {
        /// A state table: it contains no resource and no relation, but the state of operations and jobs.
        ///
        /// A transaction writes no other tables. Rows of resources and relations are written by the engine of
        /// the standard pattern, which audits and confines its writes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StateTable { $($(#[doc = $about])* $name),* }

        impl StateTable {
            /// All state tables.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The table's name in the schema.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $table),* }
            }
        }
    };
}

state_tables! {
    /// Wrong second-factor codes of people who know their passwords.
    AttemptGuard = "attempt_guard",
    /// Failed password attempts for unknown login names.
    AttemptAtUnknownUser = "attempt_at_nobody",
    /// The audit entries whose contents are still to be compressed.
    AuditCompaction = "audit_compaction",
    /// Public keys that signed audit entries.
    AuditKey = "audit_key",
    /// Audit entries of the previous release without a position.
    AuditPending = "audit_pending",
    /// Authorization codes.
    AuthorizationCode = "authorization_code",
    /// The trees over the audit trails.
    AuditTree = "audit_tree",
    /// Inner nodes of the trees.
    AuditNode = "audit_node",
    /// Leaves of the trees.
    AuditLeaf = "audit_leaf",
    /// Outcomes of delivery attempts of events.
    EventAttempt = "event_attempt",
    /// Event deliveries that are pending or dead.
    EventDelivery = "event_delivery",
    /// Read positions of subscriptions in the event trails.
    EventReader = "event_reader",
    /// Delivery state of subscriptions.
    EventSubscriber = "event_subscriber",
    /// Positions of events in their trails.
    EventPosition = "event_place",
    /// Events without a position.
    EventPending = "event_pending",
    /// Highest positions of event trails.
    EventTrail = "event_trail",
    /// Callers that could act as a client app.
    ClientAppController = "client_app_controller",
    /// Refused requests of client apps.
    ClientAppRefusal = "client_app_refusal",
    /// Times of last use of client apps' secrets and key sets.
    ClientCredentialUse = "client_credential_use",
    /// Console preferences of people.
    ConsolePreference = "console_preference",
    /// Browser sessions of the console.
    ConsoleSession = "console_session",
    /// The link for the first administrator's sign-in.
    ConsoleSetup = "console_setup",
    /// Devices that wait for a person's approval.
    DeviceAuthorization = "device_authorization",
    /// Refused deactivations or deletions by SCIM clients, because the person carries a role.
    DirectoryRefusal = "directory_refusal",
    /// Erased people.
    Erasure = "erasure",
    /// Answers to requests with an idempotency key.
    IdempotentAnswer = "idempotent_answer",
    /// Claims of idempotency keys in progress.
    IdempotentClaim = "idempotent_claim",
    /// Times of the last erasures in stores whose answers to requests with an idempotency key are still to be blanked.
    IdempotentErasure = "idempotent_erasure",
    /// Approvals of identity replacements.
    IdentityReplacementApproval = "identity_replacement_approval",
    /// Pending revocations.
    IdentityRevocation = "identity_revocation",
    /// The root key, from which other keys of the installation are derived.
    KeyRoot = "key_root",
    /// The recorded identity of the installation.
    Installation = "installation",
    /// Leases of jobs that run in one process at a time.
    JobLease = "job_lease",
    /// Client apps to be notified of a session's end.
    LogoutDelivery = "logout_delivery",
    /// Mails to be sent.
    MailMessage = "mail_message",
    /// Times until which a person is not offered something again.
    OfferRest = "offer_rest",
    /// One-time codes sent to people.
    OneTimeCode = "one_time_code",
    /// Entries of the catalogue of options, which every owner has.
    OptionEntry = "option_entry",
    /// Events to be delivered.
    OutboxEvent = "outbox_event",
    /// Pending passkey ceremonies.
    PasskeyCeremony = "passkey_ceremony",
    /// Time of the next refresh of authenticator metadata.
    PasskeyTrustRefresh = "passkey_trust_refresh",
    /// Authenticator metadata.
    PasskeyTrustSnapshot = "passkey_trust_snapshot",
    /// Pending password resets.
    PasswordReset = "password_reset",
    /// Times of the last password reset mails of users.
    PasswordResetMail = "password_reset_mail",
    /// Processes of this installation.
    Process = "process",
    /// The questionnaire items that people were shown.
    QuestionnaireMark = "questionnaire_mark",
    /// Recovery codes for people without an authenticator at hand.
    RecoveryCode = "recovery_code",
    /// Reference access tokens.
    ReferenceToken = "reference_token",
    /// Browsers where a person needs no second factor.
    RememberedDevice = "remembered_device",
    /// Hashes of removed passwords that can be restored.
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
    /// Recent deactivations and deletions of users by SCIM tokens.
    ScimRemoval = "scim_removal",
    /// Times of last use of SCIM tokens.
    ScimTokenUse = "scim_token_use",
    /// Codes that verify a security contact.
    SecurityContactCode = "security_contact_code",
    /// The records that count failed sign-ins from an address.
    SignInAttempt = "sign_in_attempt",
    /// Cut-off times before which proofs of sign-ins in progress are void.
    SignInCutoff = "sign_in_cutoff",
    /// Sign-ins in progress that are too large for a cookie.
    SignInFlow = "sign_in_flow",
    /// Grants of client apps for people who signed in.
    SignInGrant = "sign_in_grant",
    /// Outcomes of sign-in attempts.
    SignInRecord = "sign_in_record",
    /// The oldest program that the schema supports.
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
