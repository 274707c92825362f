//! The users of user stores that platform users correspond to.

use chancery_record::Value;
use chancery_resource::{Sql, StoreError, Tx, selectable};
use uuid::Uuid;

/// A user of a store, and the platform user of the same person.
#[derive(Clone)]
pub struct StoreUser {
    /// The platform user.
    pub person: Uuid,
    /// The row number of the user store.
    pub store: i64,
    /// The user store.
    pub instance: Uuid,
    /// The name of the user store.
    pub name: String,
    /// The user there.
    pub id: Uuid,
}

selectable! {
    /// An identity at a user store. Its subject is the id of the user there.
    struct StoreIdentity<'r> from "FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid AND i.is_user_store_identity \
        JOIN idp_instance o ON o.id = i.idp_instance_id WHERE u.id IN " {
        person: Uuid = "u.id",
        store: i64 = "o.rid",
        instance: Uuid = "o.id",
        name: &'r str = "o.name",
        subject: &'r str = "i.subject",
    }
}

/// The users of all user stores that are the same persons as these platform users.
pub fn users_of(tx: &mut Tx<'_>, people: &[Uuid]) -> Result<Vec<StoreUser>, StoreError> {
    let mut sql = Sql::new(StoreIdentity::SELECT);
    sql.add_list(people.iter().copied().map(Value::Id));
    let mut users = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        let StoreIdentity { person, store, instance, name, subject } = StoreIdentity::read(row)?;
        if let Ok(id) = Uuid::try_parse(subject) {
            users.push(StoreUser { person, store, instance, name: name.to_owned(), id });
        }
        Ok(())
    })?;
    Ok(users)
}
