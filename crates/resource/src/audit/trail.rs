//! The audit trail: written with every change, read by auditors.

use chancery_record::{
    Bytes, Encoding, FieldType, KEY, Kind, Mismatch, Name, SHOWN, Sealing, ShortText, Timestamp, Value,
    choice_types, record,
};
use uuid::Uuid;

/// A digest, shown in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest(pub Vec<u8>);

impl FieldType for Digest {
    const KIND: Kind = Kind::Bytes(Encoding::Hex);
    fn into_value(self) -> Value {
        Value::Bytes(self.0)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        Bytes::from_value(value).map(|bytes| Self(bytes.0))
    }
}

choice_types! {
    /// What kind of entry one is.
    EntryCategory {
        /// A row was made, changed or deleted.
        DatabaseRecordChange,
    }
    /// What happened to a row.
    EntryAction {
        /// It was made.
        Added,
        /// It was changed.
        Modified,
        /// It was deleted.
        Deleted,
    }
}

record! {
    /// An entry of the audit trail: one change, signed.
    pub struct AuditTrail {
        /// The number of the entry, unique and roughly ascending.
        #[de(_, "Die Nummer des Eintrags, eindeutig und ungefähr aufsteigend.")]
        id: i64 = KEY.stored_as("rid"),
        /// When the change took place.
        #[de("Wann")]
        timestamp: Timestamp = SHOWN,
        /// The actor of the change: the id of a client app or user. Null for the server's own jobs.
        #[de("Veranlasst von")]
        user: Option<Name> = SHOWN.stored_as("actor").like("0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"),
        /// The resource that was changed.
        #[de("Bereich")]
        area: Name = SHOWN.like("User"),
        /// The key of the changed object. The parts of a composite key are joined by `|`.
        #[de("Schlüssel des Eintrags")]
        primary_key: Name = SHOWN.like("0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"),
        /// The kind of entry.
        #[de("Kategorie")]
        category: EntryCategory = SHOWN,
        /// Added, Modified or Deleted.
        #[de("Vorgang")]
        action: EntryAction = SHOWN,
        /// The store in which the change took place.
        #[de("Quelle")]
        data_source: Name = SHOWN.like("default"),
        /// The person to whom the contents belong. The contents are deleted with the person. Null if they belong to nobody.
        #[de("Person")]
        person: Option<Uuid> = SHOWN,
        /// The state before the change, as canonical JSON (RFC 8785).
        #[de("Vorher")]
        original_content: Option<ShortText> = SHOWN.sealed(Sealing::Person),
        /// The state after the change, as canonical JSON (RFC 8785).
        #[de("Nachher")]
        current_content: Option<ShortText> = SHOWN.sealed(Sealing::Person),
        /// The salt of the digest of the state before the change.
        #[de("Salz vorher")]
        original_salt: Option<Bytes> = SHOWN.sealed(Sealing::Person),
        /// The salt of the digest of the state after the change.
        #[de("Salz nachher")]
        current_salt: Option<Bytes> = SHOWN.sealed(Sealing::Person),
        /// SHA-256 over the salt and the state before the change.
        #[de("Prüfsumme vorher")]
        original_digest: Option<Digest> = SHOWN,
        /// SHA-256 over the salt and the state after the change.
        #[de("Prüfsumme nachher")]
        current_digest: Option<Digest> = SHOWN,
        /// The signature over the entry's canonical form.
        #[de("Signatur")]
        signature: Bytes = SHOWN,
        /// The public key that verifies the signature: a DER `SubjectPublicKeyInfo`.
        #[de("Öffentlicher Schlüssel")]
        signature_public_key_info: Bytes = SHOWN,
    }
}

/// The operations of an audit trail: its path, the permit to read it and its shape. The first two are in the
/// documents of a user store.
#[macro_export]
macro_rules! audit_operations {
    ($path:literal, $permit:ident, $shape:expr) => {{
        use $crate::{Action as A, Custom, Method as M, Op, Permit, Reply, audit_proof as proof};
        const READ: Permit = Permit::$permit;
        const CHECKPOINT: Custom = Custom::reading(proof::checkpoint).replying(Reply::Content(&[proof::NOTE]));
        const INCLUSION: Custom =
            Custom::reading(proof::inclusion).replying(Reply::Json(&proof::INCLUSION));
        const CONSISTENCY: Custom =
            Custom::reading(proof::consistency).replying(Reply::Json(&proof::CONSISTENCY));
        [
            Op::new(
                "GetAuditTrail",
                M::Get,
                concat!($path, "/{id}"),
                READ,
                $shape,
                A::Read,
                "Reads an entry of the audit trail.",
            ),
            Op::new(
                "GetAuditTrails",
                M::Get,
                $path,
                READ,
                $shape,
                A::List,
                "Lists the entries of the audit trail.",
            ),
            Op::new(
                "GetAuditTrailCheckpoint",
                M::Get,
                concat!($path, "/checkpoint"),
                READ,
                $shape,
                A::Custom(CHECKPOINT),
                "Reads the newest signed checkpoint of the audit trail: a C2SP note with the size and root of its tree.",
            )
            .added(),
            Op::new(
                "GetAuditTrailInclusionProof",
                M::Get,
                concat!($path, "/{id}/inclusion-proof"),
                READ,
                $shape,
                A::Custom(INCLUSION),
                "Reads the proof that an entry is in the tree of the newest checkpoint.",
            )
            .added(),
            Op::new(
                "GetAuditTrailConsistencyProof",
                M::Get,
                concat!($path, "/consistency-proof"),
                READ,
                $shape,
                A::Custom(CONSISTENCY),
                "Reads the proof that a later tree of the audit trail begins with an earlier one.",
            )
            .with_query(proof::SIZES)
            .added(),
        ]
    }};
}
