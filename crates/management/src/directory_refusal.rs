//! People whom a SCIM client may not deactivate or delete because of a role. Administrators see the list, so that leavers
//! are not forgotten.

use chancery_record::{KEY, LoginName, Name, SHOWN, Timestamp, id_types, record};
use chancery_resource::{Action as A, Method as M, Op, Permit::Administrator, Reach, Shape};
use uuid::Uuid;

use crate::idp_instance::{IDP_INSTANCE, IdpInstanceId};

id_types! {
    /// The id of a refused removal.
    DirectoryRefusalId
}

record! {
    /// A person with a role whom a directory tried to deactivate or delete. An administrator who holds that role decides.
    #[de(
        "Abgelehnte Entfernung",
        "Abgelehnte Entfernungen",
        "Eine Person mit Rolle, die ein Verzeichnis deaktivieren oder löschen wollte. Darüber entscheidet ein Administrator mit dieser Rolle."
    )]
    pub struct DirectoryRefusal {
        /// The entry.
        id: DirectoryRefusalId = KEY,
        /// The identity provider instance that the directory provisions.
        #[de(_, "Der Identitätsanbieter, für den das Verzeichnis Benutzer bereitstellt.")]
        idp_instance_id: IdpInstanceId = SHOWN,
        /// The user of the user store. If the instance is not a user store: the platform user.
        #[de(_, "Der Benutzer des Benutzerspeichers. Ist die Instanz kein Benutzerspeicher: der Plattformbenutzer.")]
        user_id: Uuid = SHOWN,
        /// Name of the user store. Null if the instance is not a user store.
        #[de("Benutzerspeicher", "Der Name des Benutzerspeichers. Leer, wenn die Instanz kein Benutzerspeicher ist.")]
        user_store: Option<Name> = SHOWN,
        /// The login name by which the directory knows the person.
        #[de(_, "Der Anmeldename, unter dem das Verzeichnis die Person kennt.")]
        login_name: Option<LoginName> = SHOWN,
        /// When the directory last requested it, accurate to a day. It is recorded at most once in 24 hours.
        #[de(
            "Zuletzt angefordert am",
            "Wann das Verzeichnis es zuletzt angefordert hat, auf den Tag genau. Es wird innerhalb von 24 Stunden höchstens einmal vermerkt."
        )]
        told_on: Timestamp = SHOWN,
    }
}

/// The shape of refused removals. People who have since been deactivated or deleted are not listed. CROSS JOIN keeps SQLite
/// from reading all users to find the few.
pub static DIRECTORY_REFUSAL: Shape = Shape::of::<DirectoryRefusal>(
    "DirectoryRefusal",
    "(SELECT u.rid, COALESCE(d.id, d.subject_id) AS id, d.idp_instance_id, d.subject_id AS user_id, o.name AS user_store, \
     u.login_name, d.told_on, CAST(0 AS BIGINT) AS last_entry FROM directory_refusal d \
     CROSS JOIN idp_instance o CROSS JOIN user_account u WHERE o.id = d.idp_instance_id \
     AND u.store = o.rid AND u.id = d.subject_id AND u.is_user_active AND u.quarantined_on IS NULL \
     UNION ALL SELECT a.rid, COALESCE(d.id, d.subject_id), d.idp_instance_id, d.subject_id, NULL, a.user_name, d.told_on, \
     CAST(0 AS BIGINT) FROM directory_refusal d CROSS JOIN application_user a WHERE a.id = d.subject_id \
     AND a.idp_instance_id = d.idp_instance_id AND a.user_name IS NOT NULL AND a.is_active AND a.hidden_on IS NULL)",
    Reach::Of(DirectoryRefusal::IDP_INSTANCE_ID.field(), &IDP_INSTANCE),
);

/// The operation on refused removals.
pub static OPERATIONS: &[Op] = &[Op::new(
    "GetDirectoryRefusals",
    M::Get,
    "/DirectoryRefusal",
    Administrator,
    &DIRECTORY_REFUSAL,
    A::List,
    "Lists the people whom directories tried to deactivate or delete in the last 30 days. These requests were refused because of a role.",
)
.added()];
