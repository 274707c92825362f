//! Metadata of a client app: entries by key.

use chancery_record::{EntryValue, KEY, Key, OPEN, OWNER, SHOWN, Token, record};
use chancery_resource::{
    Action as A, Method as M, Op,
    Permit::{self, SubscriptionAdmin, TenantMember},
    Reach, Shape, Unique,
};

use super::{CLIENT_APP, ClientAppId};

record! {
    /// A key and value entry of a client app.
    #[de("Eintrag einer Client-App", "Einträge von Client-Apps")]
    pub struct ClientAppMetadata {
        /// The client app.
        client_app_id: ClientAppId = OWNER,
        /// Key of the entry, unique for the client app and case-sensitive.
        #[de(_, "Der Schlüssel des Eintrags, eindeutig für die Client-App. Groß- und Kleinschreibung wird unterschieden.")]
        key: Key = KEY,
        /// Its value.
        value: Option<EntryValue> = OPEN,
        /// Concurrency token. It changes with every write to the entry.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of client app metadata, in the scope of its client app.
pub static CLIENT_APP_METADATA: Shape =
    Shape::of::<ClientAppMetadata>("ClientAppMetadata", "client_app_metadata", Reach::All)
        .owned(&CLIENT_APP, "client_app_rid")
        .unique(&[Unique::new("client_app_metadata__client_app_rid__key", &[ClientAppMetadata::KEY.field()])])
        .bumps_epoch();

const ALL: &str = "/ClientApp/{clientAppId}/ClientAppMetadata";
const ONE: &str = "/ClientApp/{clientAppId}/ClientAppMetadata/{key}";

const fn op(
    name: &'static str,
    method: M,
    path: &'static str,
    permit: Permit,
    action: A,
    about: &'static str,
) -> Op {
    Op::new(name, method, path, permit, &CLIENT_APP_METADATA, action, about).added()
}

/// The operations on client app metadata.
pub static OPERATIONS: &[Op] = &[
    op("GetClientAppMetadata", M::Get, ALL, TenantMember, A::List, "Lists the entries of a client app."),
    op("CreateClientAppMetadata", M::Post, ALL, SubscriptionAdmin, A::Create, "Creates an entry."),
    op("GetClientAppMetadataEntry", M::Get, ONE, TenantMember, A::Read, "Reads an entry."),
    op("UpdateClientAppMetadata", M::Put, ONE, SubscriptionAdmin, A::Replace, "Replaces an entry's value."),
    op("PatchClientAppMetadata", M::Patch, ONE, SubscriptionAdmin, A::Patch, "Changes an entry's value."),
    op("DeleteClientAppMetadata", M::Delete, ONE, SubscriptionAdmin, A::Delete, "Deletes an entry."),
];
