//! Tables that hold no resource, and the statements that write them.

use std::fmt::Display;

/// Declares the tables, each by its name in the schema.
macro_rules! state_tables {
    ($($(#[doc = $about:literal])* $name:ident = $table:literal,)*) => {
        /// A table that holds no resource and no relation: what operations and jobs remember beside them.
        ///
        /// A transaction writes these tables alone. Rows of resources and relations are written by the engine
        /// of the standard pattern, which audits and confines what it writes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StateTable { $($(#[doc = $about])* $name),* }

        impl StateTable {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its name in the schema.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $table),* }
            }
        }
    };
}

state_tables! {
    /// Wrong passwords for names that nobody has.
    AttemptAtNobody = "attempt_at_nobody",
    /// Public keys that signed audit entries.
    AuditKey = "audit_key",
    /// Audit entries that no tree has yet.
    AuditPending = "audit_pending",
    /// The trees over the audit trails.
    AuditTree = "audit_tree",
    /// Inner nodes of the trees.
    AuditNode = "audit_node",
    /// Leaves of the trees.
    AuditLeaf = "audit_leaf",
    /// Who could act as a client app.
    ClientAppController = "client_app_controller",
    /// Answers to requests with an idempotency key.
    IdempotentAnswer = "idempotent_answer",
    /// Attempts that hold an idempotency key.
    IdempotentClaim = "idempotent_claim",
    /// Who approved the replacement of an identity.
    IdentityReplacementApproval = "identity_replacement_approval",
    /// Revocations that wait.
    IdentityRevocation = "identity_revocation",
    /// Who does a job that is done by one process at a time.
    JobLease = "job_lease",
    /// Mails that wait.
    MailMessage = "mail_message",
    /// Entries of the catalogue of options that every owner has.
    OptionEntry = "option_entry",
    /// Events that wait.
    OutboxEvent = "outbox_event",
    /// Passkey ceremonies under way.
    PasskeyCeremony = "passkey_ceremony",
    /// When metadata of authenticators are read again.
    PasskeyTrustRefresh = "passkey_trust_refresh",
    /// Metadata of authenticators.
    PasskeyTrustSnapshot = "passkey_trust_snapshot",
    /// Password resets under way.
    PasswordReset = "password_reset",
    /// Processes of this installation.
    Process = "process",
    /// Access tokens that are references.
    ReferenceToken = "reference_token",
    /// Whose a key of a resource is.
    ResourceOwner = "resource_owner",
    /// Ids that are never used again.
    RetiredId = "retired_id",
    /// Access tokens that were revoked.
    RevokedToken = "revoked_token",
    /// Codes that prove a security contact.
    SecurityContactCode = "security_contact_code",
    /// Keys of this installation.
    SigningKey = "signing_key",
    /// Proofs that are good once.
    UsedProof = "used_proof",
    /// Contents of pictures of users.
    UserImageContent = "user_image_content",
    /// Hashes of passwords.
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
    /// Its text.
    pub fn text(&self) -> &str {
        &self.0
    }
}
