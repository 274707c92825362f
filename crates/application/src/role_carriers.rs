//! The platform users and the groups of user stores and of directories with direct role assignments. They are few, so they are read
//! once for each security epoch: every change of an assignment, or of the target of a role, advances the epoch. The members of a
//! group, and the identities of a person, change without a new epoch and are read in each transaction.

use std::{collections::HashMap, sync::Arc};

use chancery_record::Value;
use chancery_resource::{Context, LIST, StoreError, Tx};
use uuid::Uuid;

use crate::granted_role::{Granted, LINEAGE, RoleById, RoleGroups, StoreGroupRole};

/// The maximum number of cached assignments. Beyond it, each transaction looks up the roles of its people: reading all
/// assignments for each epoch would take longer.
const MAX_ASSIGNMENTS: usize = LIST;

/// The carriers of assigned roles, as of one security epoch.
#[derive(Default)]
pub struct RoleCarriers {
    /// Platform users.
    people: HashMap<Uuid, Vec<Granted>>,
    /// Groups of user stores, by the store.
    groups: HashMap<Uuid, RoleGroups>,
    /// Platform groups that a directory provisions.
    provisioned: RoleGroups,
}

impl RoleCarriers {
    /// The carriers that this transaction sees, cached or read. `None` if there are too many, or if the reads of the transaction may
    /// not be cached.
    pub fn find(context: &Context, tx: &mut Tx<'_>) -> Result<Option<Arc<Self>>, StoreError> {
        let Some(epoch) = tx.settled_epoch()? else { return Ok(None) };
        let cache = &context.app.role_carriers;
        let known = if let Some(known) = cache.recall::<Option<Arc<Self>>>(epoch) {
            known
        } else {
            let read = Arc::new(Self::read(tx)?.map(Arc::new));
            cache.remember(epoch, Arc::clone(&read));
            read
        };
        Ok(known.as_ref().clone())
    }

    /// Reads the carriers; `None` if there are too many.
    fn read(tx: &mut Tx<'_>) -> Result<Option<Self>, StoreError> {
        let count =
            format!("SELECT COUNT(*) FROM (SELECT 1 FROM role_assignment LIMIT {}) r", MAX_ASSIGNMENTS + 1);
        let count = tx.one(&count, &[], |row| row.int(0))?;
        if count.and_then(|count| usize::try_from(count).ok()).is_none_or(|count| count > MAX_ASSIGNMENTS) {
            return Ok(None);
        }
        let people = format!(
            "SELECT {} FROM role_assignment r {LINEAGE} WHERE r.principal_type = 'PlatformUser'",
            RoleById::columns("r.principal_id")
        );
        // CROSS JOIN: SQLite begins with the assignments
        let groups = format!(
            "SELECT {} FROM role_assignment r CROSS JOIN application_group p \
             CROSS JOIN application_group_identity i {LINEAGE} WHERE r.principal_type = 'PlatformGroup' \
             AND p.id = r.principal_id AND i.application_group_rid = p.rid",
            StoreGroupRole::COLUMNS
        );
        // the group of a store has its identity before it can have a role
        let provisioned = format!(
            "SELECT {} FROM role_assignment r CROSS JOIN application_group p {LINEAGE} \
             WHERE r.principal_type = 'PlatformGroup' AND p.id = r.principal_id \
             AND NOT EXISTS (SELECT 1 FROM application_group_identity i WHERE i.application_group_rid = p.rid)",
            RoleById::columns("r.principal_id")
        );
        let (mut carriers, mut unknown) = (Self::default(), None);
        let statements: [(&str, &[Value]); 3] = [(&people, &[]), (&groups, &[]), (&provisioned, &[])];
        tx.query_all(&statements, &mut |index, row| {
            let (role, granted) = if index == 1 {
                let row = StoreGroupRole::read(row)?;
                let granted = row.granted();
                if let Ok(group) = Uuid::try_parse(row.subject) {
                    carriers.groups.entry(row.store).or_default().entry(group).or_default().push(granted);
                }
                (row.role, granted)
            } else {
                let row = RoleById::read(row)?;
                let granted = row.granted();
                let carriers = if index == 0 { &mut carriers.people } else { &mut carriers.provisioned };
                carriers.entry(row.carrier).or_default().push(granted);
                (row.role, granted)
            };
            if granted.is_none() {
                unknown = Some(role.to_owned());
            }
            Ok(())
        })?;
        if let Some(role) = unknown {
            tracing::error!(
                role,
                "an unknown role is assigned, perhaps by a newer release: requests that concern its carriers fail"
            );
        }
        Ok(Some(carriers))
    }

    /// Whether a platform user has one of these roles.
    pub fn has_people(&self, counts: impl Fn(&Granted) -> bool) -> bool {
        self.people.values().flatten().any(counts)
    }

    /// The roles of a platform user.
    pub fn of_person(&self, person: Uuid) -> &[Granted] {
        self.people.get(&person).map_or(&[], Vec::as_slice)
    }

    /// Whether a group of a store has one of these roles.
    pub fn has_groups(&self, counts: impl Fn(&Granted) -> bool) -> bool {
        self.groups.values().flat_map(|groups| groups.values().flatten()).any(counts)
    }

    /// The groups of a store that have one of these roles, each with all its roles.
    pub fn groups_of(&self, store: Uuid, counts: impl Fn(&Granted) -> bool) -> RoleGroups {
        self.groups.get(&store).map(|groups| counting(groups, counts)).unwrap_or_default()
    }

    /// The platform groups that a directory provisions and that have one of these roles, each with all its roles.
    pub fn provisioned_groups(&self, counts: impl Fn(&Granted) -> bool) -> RoleGroups {
        counting(&self.provisioned, counts)
    }
}

/// The groups that have one of these roles, each with all its roles.
fn counting(groups: &RoleGroups, counts: impl Fn(&Granted) -> bool) -> RoleGroups {
    let counting = groups.iter().filter(|(_, granted)| granted.iter().any(&counts));
    counting.map(|(group, granted)| (*group, granted.clone())).collect()
}
