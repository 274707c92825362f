//! User profiles: entries of a user, by key. Changes answer with the user.

use chancery_record::{EntryValue, KEY, Key, OPEN, OWNER, SCOPE, SHOWN, Token, record};
use chancery_resource::{Action as A, Method as M, Op, Permit::UserStore, Reach, Reply, Shape, Unique};

use crate::{InstanceId, UserId, user::USER};

record! {
    /// A key and value entry of a user.
    #[de("Eintrag eines Benutzers", "Einträge von Benutzern")]
    pub struct UserProfile {
        /// The user store that the user is in.
        instance_id: InstanceId = SCOPE,
        /// The user.
        user_id: UserId = OWNER,
        /// The key of the entry, unique for the user and case-sensitive.
        #[de(_, "Der Schlüssel des Eintrags, eindeutig für den Benutzer. Groß- und Kleinschreibung wird unterschieden.")]
        key: Key = KEY,
        /// Its value.
        value: Option<EntryValue> = OPEN,
        /// Concurrency token. It changes with every write to the entry.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of user profiles.
pub static USER_PROFILE: Shape = Shape::of::<UserProfile>("UserProfile", "user_profile", Reach::Store)
    .owned(&USER, "user_rid")
    .open()
    .unique(&[Unique::new("user_profile__user_rid__key", &[UserProfile::KEY.field()])]);

const ALL: &str = "/administration/user/{parentId}/UserProfile";
const ONE: &str = "/administration/user/{parentId}/UserProfile/{key}";

const fn op(name: &'static str, method: M, path: &'static str, action: A, summary: &'static str) -> Op {
    Op::new(name, method, path, UserStore, &USER_PROFILE, action, summary)
}

/// The operations on user profiles.
pub static OPERATIONS: &[Op] = &[
    op("GetUserProfiles", M::Get, ALL, A::List, "Lists the entries of a user."),
    op("CreateUserProfile", M::Post, ALL, A::Create, "Creates an entry.").answering(202, Reply::Owner),
    op("GetUserProfile", M::Get, ONE, A::Read, "Reads an entry."),
    op("UpdateUserProfile", M::Put, ONE, A::Replace, "Replaces an entry's value.")
        .answering(202, Reply::Owner),
    op("DeleteUserProfile", M::Delete, ONE, A::Delete, "Deletes an entry.").answering(202, Reply::Owner),
];
