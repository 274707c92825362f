//! Names of the people of a browser's sessions, for the account page and `login_hint`.

use std::collections::HashMap;

use chancery_record::{Value, fold};
use chancery_resource::{Sql, StoreError, Tx};
use uuid::Uuid;

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

/// A look-up of names: a session, its person, and the instance by which the person signed in.
pub type NameQuery = (Uuid, Uuid, Uuid);

/// The names of the people of these sessions, by the ids of the sessions.
pub fn names_of(tx: &mut Tx<'_>, sessions: &[NameQuery]) -> Result<HashMap<Uuid, Names>, StoreError> {
    let mut sql = Sql::new(
        "SELECT u.id, i.idp_instance_id, o.rid, i.subject, u.first_name, u.last_name, u.email_address \
         FROM application_user u JOIN application_identity i ON i.application_user_rid = u.rid \
         JOIN idp_instance o ON o.id = i.idp_instance_id WHERE u.id IN ",
    );
    sql.add_list(sessions.iter().map(|(_, person, _)| (*person).into()));
    let mut persons: HashMap<(Uuid, Uuid), (Names, i64, Option<Uuid>)> = HashMap::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        let full = [row.optional_text(4)?, row.optional_text(5)?]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ");
        let full = Some(full).filter(|full| !full.is_empty());
        let names = Names { full, email: row.optional_text(6)?, login: None };
        let subject = Uuid::try_parse(row.text(3)?).ok();
        persons.insert((row.id(0)?, row.id(1)?), (names, row.int(2)?, subject));
        Ok(())
    })?;
    let users = persons.values().filter_map(|(_, store, subject)| Some((*store, (*subject)?)));
    let logins = logins_of(tx, &users.collect::<Vec<_>>())?;
    let named = sessions.iter().filter_map(|(session, person, instance)| {
        let (names, store, subject) = persons.get(&(*person, *instance))?;
        let login = subject.and_then(|subject| logins.get(&(*store, subject)).cloned());
        Some((*session, Names { login, ..names.clone() }))
    });
    Ok(named.collect())
}

/// The language of a person in the user store by which the person signed in.
pub fn locale_of(tx: &mut Tx<'_>, person: Uuid, instance: Uuid) -> Result<Option<String>, StoreError> {
    let text = "SELECT i.subject, o.rid FROM application_user a \
        JOIN application_identity i ON i.application_user_rid = a.rid JOIN idp_instance o ON o.id = i.idp_instance_id \
        WHERE a.id = ?1 AND i.idp_instance_id = ?2";
    let row = tx.one(text, &[person.into(), instance.into()], |row| {
        Ok((Uuid::try_parse(row.text(0)?).ok(), row.int(1)?))
    })?;
    let Some((Some(user), store)) = row else { return Ok(None) };
    let text = "SELECT locale FROM user_account WHERE store = ?1 AND id = ?2 AND quarantined_on IS NULL";
    Ok(tx.one(text, &[store.into(), user.into()], |row| row.optional_text(0))?.flatten())
}

/// The login names of users, by store and id.
fn logins_of(tx: &mut Tx<'_>, users: &[(i64, Uuid)]) -> Result<HashMap<(i64, Uuid), String>, StoreError> {
    let mut sql =
        Sql::new("SELECT store, id, login_name FROM user_account WHERE quarantined_on IS NULL AND store IN ");
    sql.add_list(users.iter().map(|(store, _)| Value::Int(*store)));
    sql.add(" AND id IN ");
    sql.add_list(users.iter().map(|(_, id)| Value::Id(*id)));
    let mut logins = HashMap::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        logins.insert((row.int(0)?, row.id(1)?), row.text(2)?.to_owned());
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
