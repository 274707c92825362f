//! The actors who configured the external identity providers of people, read from the audit trail. Such an actor can sign in as any
//! user of the provider.

use std::collections::{BTreeSet, HashMap, hash_map::Entry};

use chancery_record::{Timestamp, Value};
use chancery_resource::{Authority, CarriedRole, LIST, Problem, RoleType, Sql, StoreError, Tx, selectable};
use serde_json::{Map, Value as Json};
use uuid::Uuid;

use crate::{carried_roles::of_actor, controllers::actors};

/// The maximum number of audit entries that are read of each area, the newest first. Where there are more, an unknown actor counts as
/// one who changed the settings, so that they have to be confirmed.
const MAX_ENTRIES: usize = 1_000;

/// An external identity provider, and who set it up.
pub struct Provider {
    /// The instance.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Who last confirmed the settings, and when they were reviewed.
    confirmed: Option<(Uuid, Timestamp)>,
    /// Who created it, or changed its settings or certificates, each with the last time.
    setters: Vec<(Uuid, Timestamp)>,
}

/// A change of a provider by an actor without a role of its users.
#[derive(Clone, Copy)]
pub struct UnreviewedChange {
    /// The actor.
    pub set_by: Uuid,
    /// The date and time.
    pub set_on: Timestamp,
    /// The highest role that the actor lacks.
    pub role: RoleType,
}

/// Cache of the roles of actors.
#[derive(Default)]
pub struct ActorRoles(HashMap<Uuid, Authority>);

impl ActorRoles {
    /// The rights of an actor.
    pub fn find(&mut self, tx: &mut Tx<'_>, actor: Uuid) -> Result<&Authority, Problem> {
        Ok(match self.0.entry(actor) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(Authority::Roles(of_actor(tx, actor)?)),
        })
    }
}

impl Provider {
    /// The actors who configured or confirmed the provider. Changes before a confirmation by a SystemAdmin do not count.
    pub fn controllers(&self, tx: &mut Tx<'_>) -> Result<Vec<(Uuid, Timestamp)>, Problem> {
        let Some((by, on)) = self.confirmed else { return Ok(self.setters.clone()) };
        let is_admin = of_actor(tx, by)?.iter().any(|held| held.role == RoleType::SystemAdmin);
        let since = self.setters.iter().copied().filter(|(_, when)| !is_admin || *when >= on);
        Ok(since.chain([(by, on)]).collect())
    }

    /// The highest of these roles that an actor who configured the provider lacks. Changes before a confirmation by an actor with the
    /// role do not count, nor do changes by `person`, who carries the roles.
    pub fn unreviewed_change(
        &self,
        tx: &mut Tx<'_>,
        actors: &mut ActorRoles,
        person: Option<Uuid>,
        carried: &[&CarriedRole],
    ) -> Result<Option<UnreviewedChange>, Problem> {
        let mut below: Option<UnreviewedChange> = None;
        for carried in carried {
            let since = match self.confirmed {
                Some((by, on)) if !actors.find(tx, by)?.is_below(carried) => Some(on),
                _ => None,
            };
            for (set_by, set_on) in self.setters.iter().copied() {
                let counts = Some(set_by) != person && since.is_none_or(|since| set_on >= since);
                if counts
                    && below.is_none_or(|below| carried.role < below.role)
                    && actors.find(tx, set_by)?.is_below(carried)
                {
                    below = Some(UnreviewedChange { set_by, set_on, role: carried.role });
                }
            }
        }
        Ok(below)
    }
}

selectable! {
    /// An active identity at an external identity provider.
    pub struct ExternalIdentity from "FROM application_user u JOIN application_identity i \
        ON i.application_user_rid = u.rid AND NOT i.is_user_store_identity AND i.lifecycle_status = 'Active' \
        WHERE u.id IN " {
        /// The platform user.
        pub person: Uuid = "u.id",
        /// The instance.
        pub instance: Uuid = "i.idp_instance_id",
    }
}

/// The active identities of people at external instances.
pub fn external_identities_of(tx: &mut Tx<'_>, people: &[Uuid]) -> Result<Vec<ExternalIdentity>, StoreError> {
    let mut found = Vec::new();
    for chunk in people.chunks(LIST) {
        let mut sql = Sql::new(ExternalIdentity::SELECT);
        sql.add_list(chunk.iter().copied().map(Value::Id));
        sql.add(" ORDER BY i.rid");
        tx.query(&sql.text, &sql.parameters, |row| {
            found.push(ExternalIdentity::read(row)?);
            Ok(())
        })?;
    }
    Ok(found)
}

selectable! {
    /// An external identity provider, and who last confirmed its settings.
    struct StoredProvider from "FROM idp_instance WHERE store_name_key IS NULL AND id IN " {
        id: Uuid = "id",
        name: String = "name",
        confirmed_by: Option<Uuid> = "settings_confirmed_by",
        confirmed_on: Option<Timestamp> = "settings_confirmed_on",
    }
}

/// The external providers among these instances, by id.
pub fn providers(tx: &mut Tx<'_>, instances: &BTreeSet<Uuid>) -> Result<HashMap<Uuid, Provider>, StoreError> {
    let mut found = HashMap::new();
    for chunk in instances.iter().copied().collect::<Vec<_>>().chunks(LIST) {
        let mut sql = Sql::new(StoredProvider::SELECT);
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            let StoredProvider { id, name, confirmed_by, confirmed_on } = StoredProvider::read(row)?;
            let confirmed = confirmed_by.zip(confirmed_on);
            found.insert(id, Provider { id, name, confirmed, setters: Vec::new() });
            Ok(())
        })?;
    }
    for provider in found.values_mut() {
        provider.setters = setters(tx, provider.id)?;
    }
    Ok(found)
}

/// The audited areas whose changes affect who can sign in at an instance, each with its members that do not.
const AUDITED_AREAS: [(&str, &[&str]); 3] = [
    ("IdpInstance", &["name", "position", "icon", "concurrencyToken", "clientApps"]),
    ("Option", &[]),
    ("CertStore", &["name", "description", "concurrencyToken"]),
];

selectable! {
    /// An option or a certificate of an instance, by which the instance is set up.
    struct SettingItem(area, id) {
        /// The place of its area in [`AUDITED_AREAS`].
        area: i64 = "{area}",
        id: Uuid = "{id}",
    }
}

selectable! {
    /// An entry of the audit trail.
    struct AuditEntry<'r> from "FROM audit_entry WHERE store = 0 AND actor IS NOT NULL AND area = " {
        actor: &'r str = "actor",
        timestamp: Timestamp = "timestamp",
        action: &'r str = "action",
        original: Option<&'r str> = "original_content",
        current: Option<&'r str> = "current_content",
    }
}

/// The actors who created an instance, or changed its settings or certificates, each with the last time.
fn setters(tx: &mut Tx<'_>, instance: Uuid) -> Result<Vec<(Uuid, Timestamp)>, StoreError> {
    let mut items: [Vec<Value>; 3] = [vec![instance.to_string().into()], Vec::new(), Vec::new()];
    let text = format!(
        "SELECT {} FROM option_value o WHERE o.apply_to_idp_instance_id = ?1 \
         UNION ALL SELECT {} FROM idp_instance i JOIN idp_instance_cert_store l ON l.idp_instance_rid = i.rid \
         JOIN cert_store c ON c.rid = l.cert_store_rid WHERE i.id = ?1",
        SettingItem::columns("1", "o.id"),
        SettingItem::columns("2", "c.id")
    );
    tx.query(&text, &[instance.into()], |row| {
        let SettingItem { area, id } = SettingItem::read(row)?;
        if let Some(items) = items.get_mut(usize::try_from(area).unwrap_or_default()) {
            items.push(id.to_string().into());
        }
        Ok(())
    })?;
    let mut setters: HashMap<Uuid, Timestamp> = HashMap::new();
    for ((area, open), items) in AUDITED_AREAS.iter().zip(items).filter(|(_, items)| !items.is_empty()) {
        let mut sql = Sql::new(AuditEntry::SELECT).bind(*area).push(" AND primary_key IN ");
        sql.add_list(items);
        sql.add(&format!(" ORDER BY rid DESC LIMIT {MAX_ENTRIES}"));
        let (mut count, mut oldest) = (0, Timestamp(0));
        tx.query(&sql.text, &sql.parameters, |row| {
            let entry = AuditEntry::read(row)?;
            (count, oldest) = (count + 1, entry.timestamp);
            let is_set = match entry.action {
                "Added" => true,
                "Modified" => {
                    *area == "Option" || changes_protected_member(entry.original, entry.current, open)
                }
                _ => false,
            };
            if is_set {
                let when = entry.timestamp;
                for actor in actors(entry.actor) {
                    setters.entry(actor).and_modify(|known| *known = (*known).max(when)).or_insert(when);
                }
            }
            Ok(())
        })?;
        if count == MAX_ENTRIES {
            setters.insert(Uuid::nil(), oldest);
        }
    }
    let mut setters: Vec<_> = setters.into_iter().collect();
    setters.sort_unstable_by_key(|(actor, when)| (std::cmp::Reverse(*when), *actor));
    Ok(setters)
}

/// Whether an audit entry changes a member that affects who can sign in. An entry about links has no original.
fn changes_protected_member(original: Option<&str>, current: Option<&str>, open: &[&str]) -> bool {
    let members = |content: Option<&str>| {
        content
            .and_then(|content| serde_json::from_str::<Map<String, Json>>(content).ok())
            .unwrap_or_default()
    };
    let (original, current) = (members(original), members(current));
    current.iter().any(|(name, value)| original.get(name) != Some(value) && !open.contains(&name.as_str()))
}
