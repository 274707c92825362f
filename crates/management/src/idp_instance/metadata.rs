//! Metadata of an instance: entries by key.

use chancery_record::{EntryValue, KEY, Key, OPEN, OWNER, SHOWN, Token, record};
use chancery_resource::{
    Action as A, Method as M, Op,
    Permit::{self, SubscriptionAdmin, TenantMember},
    Reach, Shape, Unique,
};

use super::{IDP_INSTANCE, IdpInstanceId};

record! {
    /// A key and value entry of an identity provider instance.
    #[de("Eintrag eines Identitätsanbieters", "Einträge von Identitätsanbietern")]
    pub struct IdpInstanceMetadata {
        /// The instance.
        idp_instance_id: IdpInstanceId = OWNER,
        /// The key of the entry, unique for the instance. It is case-sensitive.
        #[de(_, "Der Schlüssel des Eintrags, eindeutig für die Instanz. Groß- und Kleinschreibung wird unterschieden.")]
        key: Key = KEY,
        /// Its value.
        value: Option<EntryValue> = OPEN,
        /// Concurrency token. It changes with every write to the entry.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of instance metadata, in the scope of its instance.
pub static IDP_INSTANCE_METADATA: Shape =
    Shape::of::<IdpInstanceMetadata>("IdpInstanceMetadata", "idp_instance_metadata", Reach::All)
        .owned(&IDP_INSTANCE, "idp_instance_rid")
        .open()
        .unique(&[Unique::new(
            "idp_instance_metadata__idp_instance_rid__key",
            &[IdpInstanceMetadata::KEY.field()],
        )])
        .bumps_epoch();

const ALL: &str = "/IdpInstance/{idpInstanceId}/IdpInstanceMetadata";
const ONE: &str = "/IdpInstance/{idpInstanceId}/IdpInstanceMetadata/{key}";

const fn op(
    name: &'static str,
    method: M,
    path: &'static str,
    permit: Permit,
    action: A,
    about: &'static str,
) -> Op {
    Op::new(name, method, path, permit, &IDP_INSTANCE_METADATA, action, about).added()
}

/// The operations on instance metadata.
pub static OPERATIONS: &[Op] = &[
    op("GetIdpInstanceMetadata", M::Get, ALL, TenantMember, A::List, "Lists the entries of an instance."),
    op("CreateIdpInstanceMetadata", M::Post, ALL, SubscriptionAdmin, A::Create, "Creates an entry."),
    op("GetIdpInstanceMetadataEntry", M::Get, ONE, TenantMember, A::Read, "Reads an entry."),
    op("UpdateIdpInstanceMetadata", M::Put, ONE, SubscriptionAdmin, A::Replace, "Replaces an entry's value."),
    op("PatchIdpInstanceMetadata", M::Patch, ONE, SubscriptionAdmin, A::Patch, "Changes an entry's value."),
    op("DeleteIdpInstanceMetadata", M::Delete, ONE, SubscriptionAdmin, A::Delete, "Deletes an entry."),
];
