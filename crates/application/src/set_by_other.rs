//! Credentials of people with a role that were last set by an actor who lacks that role: passwords, addresses, passkeys
//! and security contacts that were set before a promotion, identities that were linked before it, and external identity providers that
//! were set up before it.

use std::collections::{BTreeSet, HashMap};

use chancery_record::{Timestamp, Value, choice_types};
use chancery_resource::{
    CarriedRole, Context, LIST, Lineage, Problem, RoleType, Sql, StoreError, Tx, selectable, visible,
};
use uuid::Uuid;

use crate::{
    APPLICATION_GROUP, APPLICATION_USER, LifecycleStatus,
    carried_roles::of_people,
    checked_people::{CredentialQuery, people},
    controllers::{controllers_of_instance_token, controllers_of_token},
    provider_setters::{ActorRoles, ExternalIdentity, external_identities_of, providers},
    store_user::{StoreUser, users_of},
};

choice_types! {
    /// The kind of a credential.
    CredentialKind {
        /// The password.
        Password,
        /// The login name, the e-mail address or the telephone number, or their confirmation.
        Address,
        /// A passkey.
        Passkey,
        /// A security contact.
        Contact,
        /// An identity, by which the person signs in: a directory or an identity replacement linked it.
        Identity,
        /// The external identity provider by which the person signs in: its settings, certificates and directory token.
        Provider,
    }
}

/// A credential of a person that was last set by an actor who lacks a role of the person.
#[derive(Clone, Debug)]
pub struct SetByOther {
    /// The platform user.
    pub person: Uuid,
    /// The user store or the external identity provider, and its name.
    pub store: (Uuid, String),
    /// The user in that store.
    pub user: Option<Uuid>,
    /// The kind.
    pub kind: CredentialKind,
    /// The id of the passkey, of the security contact or of the identity.
    pub credential: Option<Uuid>,
    /// Who set it: a platform user, a client app or a SCIM token.
    pub set_by: Uuid,
    /// When it was set, if known.
    pub set_on: Option<Timestamp>,
    /// The highest of the person's roles that the setter does not hold.
    pub role: RoleType,
}

/// Finds the credentials set by others, of people whom the caller can read or who are in a group that the caller can read. Also
/// returns whether all people were checked, and not only the first 1,000. With `granted`, people are checked as if they held
/// this role, too: it shows the administrator which credentials a grant would make dangerous.
pub fn set_by_others(
    context: &Context,
    tx: &mut Tx<'_>,
    query: CredentialQuery,
    granted: Option<(RoleType, Lineage)>,
) -> Result<(Vec<SetByOther>, bool), Problem> {
    if let CredentialQuery::Group(group) = query
        && visible(context, tx, &APPLICATION_GROUP, &[group])?.is_empty()
    {
        return Ok((Vec::new(), true));
    }
    let (mut people, is_complete) = people(tx, query)?;
    let seen = visible(context, tx, &APPLICATION_USER, &people)?;
    people.retain(|person| seen.contains_key(person));
    let (mut setters, mut reported) = (SetterCache::default(), Vec::new());
    let mut known = HashMap::new();
    for chunk in people.chunks(LIST) {
        let (facts, identities) = (facts(tx, chunk)?, external_identities_of(tx, chunk)?);
        let owners = facts.iter().map(|credential_set| credential_set.user.person);
        let owners: BTreeSet<Uuid> =
            owners.chain(identities.iter().map(|identity| identity.person)).collect();
        let owners: Vec<Uuid> = owners.into_iter().collect();
        let mut carried = if owners.is_empty() { Vec::new() } else { of_people(tx, &owners)? };
        if let Some((role, granted_for)) = granted {
            carried.extend(owners.iter().map(|person| CarriedRole { row: *person, role, granted_for }));
        }
        let carried_by = |person: Uuid| carried.iter().filter(move |carried| carried.row == person);
        for credential_set in facts {
            let own = carried_by(credential_set.user.person);
            if let Some(role) = setters.first_above(tx, &credential_set, own)? {
                reported.push(credential_set.into_report(role));
            }
        }
        let new = identities
            .iter()
            .map(|identity| identity.instance)
            .filter(|id| !known.contains_key(id))
            .collect();
        known.extend(providers(tx, &new)?);
        for ExternalIdentity { person, instance } in identities {
            let own: Vec<&CarriedRole> = carried_by(person).collect();
            let Some(provider) = known.get(&instance).filter(|_| !own.is_empty()) else { continue };
            let Some(below) = provider.unreviewed_change(tx, &mut setters.held, Some(person), &own)? else {
                continue;
            };
            reported.push(SetByOther {
                person,
                store: (provider.id, provider.name.clone()),
                user: None,
                kind: CredentialKind::Provider,
                credential: None,
                set_by: below.set_by,
                set_on: Some(below.set_on),
                role: below.role,
            });
        }
    }
    Ok((reported, is_complete))
}

/// A credential that another actor set.
struct SetCredential {
    /// The user of the store; of an identity, the person alone, at its instance.
    user: StoreUser,
    kind: CredentialKind,
    credential: Option<Uuid>,
    set_by: Uuid,
    set_on: Option<Timestamp>,
}

impl SetCredential {
    fn into_report(self, role: RoleType) -> SetByOther {
        let Self { user, kind, credential, set_by, set_on } = self;
        let StoreUser { person, instance, name, id, .. } = user;
        let user = (kind != CredentialKind::Identity).then_some(id);
        SetByOther { person, store: (instance, name), user, kind, credential, set_by, set_on, role }
    }
}

/// Cache of the setters that were looked up.
#[derive(Default)]
struct SetterCache {
    held: ActorRoles,
    controllers: HashMap<(Uuid, Uuid), Vec<Uuid>>,
}

impl SetterCache {
    /// The highest role of a person that the setter does not hold. A SCIM token holds the roles that all actors hold who created or
    /// changed it.
    fn first_above<'a>(
        &mut self,
        tx: &mut Tx<'_>,
        credential_set: &SetCredential,
        carried: impl Iterator<Item = &'a CarriedRole>,
    ) -> Result<Option<RoleType>, Problem> {
        let carried: Vec<&CarriedRole> = carried.collect();
        if credential_set.set_by == credential_set.user.person || carried.is_empty() {
            return Ok(None);
        }
        let Some(role) = self.above(tx, credential_set.set_by, &carried)? else { return Ok(None) };
        let controllers = self.controllers(tx, credential_set)?;
        let mut above = controllers.is_empty().then_some(role);
        for controller in controllers.iter().filter(|controller| **controller != credential_set.user.person) {
            above = above.into_iter().chain(self.above(tx, *controller, &carried)?).min();
        }
        Ok(above)
    }

    fn above(
        &mut self,
        tx: &mut Tx<'_>,
        actor: Uuid,
        carried: &[&CarriedRole],
    ) -> Result<Option<RoleType>, Problem> {
        let authority = self.held.find(tx, actor)?;
        let counts = |carried: &&&CarriedRole| authority.is_below(carried);
        Ok(carried.iter().filter(counts).map(|carried| carried.role).min())
    }

    /// The actors who created or changed a SCIM token; empty if the setter is not a known SCIM token.
    fn controllers(&mut self, tx: &mut Tx<'_>, credential_set: &SetCredential) -> Result<Vec<Uuid>, Problem> {
        let SetCredential { user, kind, set_by: token, .. } = credential_set;
        if let Some(known) = self.controllers.get(&(user.instance, *token)) {
            return Ok(known.clone());
        }
        let controllers = match kind {
            CredentialKind::Identity => controllers_of_instance_token(tx, user.instance, *token)?,
            _ => controllers_of_token(tx, user.store, *token)?,
        };
        self.controllers.insert((user.instance, *token), controllers.clone());
        Ok(controllers)
    }
}

/// The credentials of these people set by others, in all user stores, and their identities linked by others.
fn facts(tx: &mut Tx<'_>, people: &[Uuid]) -> Result<Vec<SetCredential>, StoreError> {
    let mut by_store: HashMap<i64, HashMap<Uuid, StoreUser>> = HashMap::new();
    for user in users_of(tx, people)? {
        by_store.entry(user.store).or_default().insert(user.id, user);
    }
    let mut facts = identities(tx, people)?;
    for (store, users) in by_store {
        let ids: Vec<Uuid> = users.keys().copied().collect();
        for chunk in ids.chunks(LIST) {
            of_store(tx, store, chunk, &users, &mut facts)?;
        }
    }
    let position = |credential_set: &SetCredential| {
        people.iter().position(|person| *person == credential_set.user.person)
    };
    facts.sort_by_key(|credential_set| {
        (position(credential_set), credential_set.kind, credential_set.credential)
    });
    Ok(facts)
}

selectable! {
    /// An identity that another actor linked, at a user store or an external identity provider.
    struct LinkedIdentity from "FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid AND i.set_by IS NOT NULL \
        JOIN idp_instance o ON o.id = i.idp_instance_id WHERE i.lifecycle_status = " {
        person: Uuid = "u.id",
        identity: Uuid = "i.id",
        set_by: Uuid = "i.set_by",
        set_on: Option<Timestamp> = "i.set_on",
        store: i64 = "o.rid",
        instance: Uuid = "o.id",
        name: String = "o.name",
    }
}

impl From<LinkedIdentity> for SetCredential {
    fn from(linked: LinkedIdentity) -> Self {
        let LinkedIdentity { person, identity, set_by, set_on, store, instance, name } = linked;
        Self {
            user: StoreUser { person, store, instance, name, id: person },
            kind: CredentialKind::Identity,
            credential: Some(identity),
            set_by,
            set_on,
        }
    }
}

/// The active identities of these people that others linked.
fn identities(tx: &mut Tx<'_>, people: &[Uuid]) -> Result<Vec<SetCredential>, StoreError> {
    let mut sql = Sql::new(LinkedIdentity::SELECT).bind(LifecycleStatus::Active.name()).push(" AND u.id IN ");
    sql.add_list(people.iter().copied().map(Value::Id));
    let mut found = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        found.push(LinkedIdentity::read(row)?.into());
        Ok(())
    })?;
    Ok(found)
}

selectable! {
    /// A credential of a user of a store that another actor set.
    struct CredentialOfUser(credential, set_by, set_on) {
        user: Uuid = "u.id",
        credential: Option<Uuid> = "{credential}",
        set_by: Uuid = "{set_by}",
        set_on: Option<Timestamp> = "{set_on}",
    }
}

/// Where the credentials of a kind are found.
#[derive(Clone, Copy)]
struct CredentialSource {
    kind: CredentialKind,
    /// The expressions of [`CredentialOfUser`].
    credential: &'static str,
    set_by: &'static str,
    set_on: &'static str,
    /// What joins the table of the user `u`.
    join: &'static str,
}

const SOURCES: [CredentialSource; 4] = [
    CredentialSource {
        kind: CredentialKind::Password,
        credential: "NULL",
        set_by: "p.set_by",
        set_on: "p.changed_on",
        join: " JOIN user_password p ON p.user_rid = u.rid",
    },
    CredentialSource {
        kind: CredentialKind::Address,
        credential: "NULL",
        set_by: "u.address_set_by",
        set_on: "NULL",
        join: "",
    },
    CredentialSource {
        kind: CredentialKind::Passkey,
        credential: "c.id",
        set_by: "c.set_by",
        set_on: "c.created_on",
        join: " JOIN passkey_credential c ON c.user_rid = u.rid",
    },
    CredentialSource {
        kind: CredentialKind::Contact,
        credential: "c.id",
        set_by: "c.set_by",
        set_on: "c.created_on",
        join: " JOIN security_contact c ON c.user_rid = u.rid",
    },
];

/// The credentials of users of a store set by others. Sends all queries together.
fn of_store(
    tx: &mut Tx<'_>,
    store: i64,
    ids: &[Uuid],
    users: &HashMap<Uuid, StoreUser>,
    facts: &mut Vec<SetCredential>,
) -> Result<(), StoreError> {
    let statements = SOURCES.map(|CredentialSource { credential, set_by, set_on, join, .. }| {
        let columns = CredentialOfUser::columns(credential, set_by, set_on);
        let mut sql = Sql::new(format!(
            "SELECT {columns} FROM user_account u{join} WHERE {set_by} IS NOT NULL AND u.quarantined_on IS NULL AND u.store = "
        ))
        .bind(store)
        .push(" AND u.id IN ");
        sql.add_list(ids.iter().copied().map(Value::Id));
        sql
    });
    let statements = statements.each_ref().map(|sql| (sql.text.as_str(), sql.parameters.as_slice()));
    tx.query_all(&statements, &mut |index, row| {
        let CredentialOfUser { user, credential, set_by, set_on } = CredentialOfUser::read(row)?;
        let (Some(source), Some(user)) = (SOURCES.get(index), users.get(&user)) else { return Ok(()) };
        facts.push(SetCredential { user: user.clone(), kind: source.kind, credential, set_by, set_on });
        Ok(())
    })
}
