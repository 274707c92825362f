//! Names of the people of a browser's sessions, for the account page and `login_hint`.

use std::collections::HashMap;

use chancery_record::{Value, fold};
use chancery_resource::{Sql, StoreError, Tx};
use chancery_store::selectable;
use uuid::Uuid;

use super::{
    IdentityKey,
    user_subject::{StoreIdentity, UserSubject, store_identity},
};

/// The names of a person.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Given and family name.
    pub full: Option<String>,
    /// The e-mail address.
    pub email: Option<String>,
    /// The login name in the store.
    pub login: Option<String>,
}

impl Names {
    /// The display name.
    pub fn display_name(&self) -> &str {
        [&self.full, &self.email, &self.login].into_iter().flatten().next().map_or("", String::as_str)
    }

    /// A detail that distinguishes people of the same name.
    pub fn detail(&self) -> Option<&str> {
        let detail = self.email.as_deref().or(self.login.as_deref());
        detail.filter(|detail| *detail != self.display_name())
    }

    /// Whether a `login_hint` matches: login name or e-mail address, in any case.
    pub fn matches_hint(&self, hint: &str) -> bool {
        let hint = fold(hint.trim());
        [&self.login, &self.email].into_iter().flatten().any(|name| fold(name) == hint)
    }
}

/// A look-up of names.
#[derive(Clone, Copy, Debug)]
pub struct NameQuery {
    /// The session.
    pub session: Uuid,
    /// The identity by which its person signed in.
    pub identity: IdentityKey,
}

/// Names a user of a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct UserKey {
    store: i64,
    id: Uuid,
}

/// The names of a person, without the login name of the store's user.
struct NamedPerson {
    names: Names,
    user: Option<UserKey>,
}

selectable! {
    /// The identities of these persons, with their names; the list follows.
    struct NamedIdentity<'r> from "FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid \
        JOIN idp_instance o ON o.id = i.idp_instance_id WHERE u.id IN " {
        person: Uuid = "u.id",
        instance: Uuid = "i.idp_instance_id",
        store: i64 = "o.rid",
        subject: UserSubject = "i.subject",
        first_name: Option<&'r str> = "u.first_name",
        last_name: Option<&'r str> = "u.last_name",
        email: Option<String> = "u.email_address",
    }
}

impl From<NamedIdentity<'_>> for NamedPerson {
    fn from(identity: NamedIdentity<'_>) -> Self {
        let parts = [identity.first_name, identity.last_name];
        let full = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let full = Some(full).filter(|full| !full.is_empty());
        Self {
            names: Names { full, email: identity.email, login: None },
            user: identity.subject.0.map(|id| UserKey { store: identity.store, id }),
        }
    }
}

/// The names of the people of these sessions, by the ids of the sessions.
pub fn names_of(tx: &mut Tx<'_>, sessions: &[NameQuery]) -> Result<HashMap<Uuid, Names>, StoreError> {
    let mut sql = Sql::new(NamedIdentity::SELECT);
    sql.add_list(sessions.iter().map(|query| query.identity.person.into()));
    let mut persons: HashMap<IdentityKey, NamedPerson> = HashMap::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        let identity = NamedIdentity::read(row)?;
        let key = IdentityKey { person: identity.person, instance: identity.instance };
        persons.insert(key, identity.into());
        Ok(())
    })?;
    let users = persons.values().filter_map(|person| person.user);
    let logins = logins_of(tx, &users.collect::<Vec<_>>())?;
    let named = sessions.iter().filter_map(|query| {
        let person = persons.get(&query.identity)?;
        let login = person.user.and_then(|user| logins.get(&user).cloned());
        Some((query.session, Names { login, ..person.names.clone() }))
    });
    Ok(named.collect())
}

/// The language of a person in the user store by which the person signed in.
pub fn locale_of(tx: &mut Tx<'_>, person: Uuid, instance: Uuid) -> Result<Option<String>, StoreError> {
    let identity = store_identity(tx, person, instance)?;
    let Some(StoreIdentity { subject: UserSubject(Some(user)), store, .. }) = identity else {
        return Ok(None);
    };
    let text = "SELECT locale FROM user_account WHERE store = ?1 AND id = ?2 AND quarantined_on IS NULL";
    Ok(tx.one(text, &[store.into(), user.into()], |row| row.optional_text(0))?.flatten())
}

selectable! {
    /// The login name of a user of these stores; the list follows.
    struct LoginName from "FROM user_account WHERE quarantined_on IS NULL AND store IN " {
        store: i64 = "store",
        user: Uuid = "id",
        name: String = "login_name",
    }
}

/// The login names of users.
fn logins_of(tx: &mut Tx<'_>, users: &[UserKey]) -> Result<HashMap<UserKey, String>, StoreError> {
    let mut sql = Sql::new(LoginName::SELECT);
    sql.add_list(users.iter().map(|user| Value::Int(user.store)));
    sql.add(" AND id IN ");
    sql.add_list(users.iter().map(|user| Value::Id(user.id)));
    let mut logins = HashMap::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        let LoginName { store, user, name } = LoginName::read(row)?;
        logins.insert(UserKey { store, id: user }, name);
        Ok(())
    })?;
    Ok(logins)
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn a_login_hint_matches_login_name_or_address() {
        let names = Names {
            full: Some("Ann Archer".into()),
            email: Some("ann@example.com".into()),
            login: Some("Ann".into()),
        };
        assert!(names.matches_hint("ann") && names.matches_hint(" ANN@example.com"));
        assert!(!names.matches_hint("Ann Archer") && !names.matches_hint(""));
        assert_eq!((names.display_name(), names.detail()), ("Ann Archer", Some("ann@example.com")));
        let bare = Names { login: Some("ann".into()), ..Names::default() };
        assert_eq!((bare.display_name(), bare.detail()), ("ann", None));
    }
}
