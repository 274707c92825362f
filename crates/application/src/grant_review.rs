//! External identity providers that are to be reviewed before people who sign in by them get a role.

use std::collections::{BTreeSet, HashMap};

use chancery_resource::{CarriedRole, Lineage, Problem, RoleType, Tx};
use uuid::Uuid;

use crate::{
    checked_people::{CredentialQuery, people},
    provider_setters::{ActorRoles, Provider, SetBelow, instances_of, providers},
};

/// A provider that was set up by somebody who does not hold a role that is about to be granted to people who sign in by it.
pub struct Unconfirmed {
    /// The instance.
    pub instance: Uuid,
    /// Its name.
    pub name: String,
    /// Who set it up.
    pub set_by: Uuid,
    /// The role.
    pub role: RoleType,
}

/// Finds providers that are to be reviewed before roles are granted.
#[derive(Default)]
pub struct GrantReview {
    actors: ActorRoles,
    providers: HashMap<Uuid, Provider>,
    instances: HashMap<CredentialQuery, BTreeSet<Uuid>>,
}

impl GrantReview {
    /// The provider to be reviewed before a role is granted to a platform user or a platform group. Of a group of a user store the
    /// first 1,000 members are examined. `None`: there is none.
    pub fn of_principal(
        &mut self,
        tx: &mut Tx<'_>,
        principal: CredentialQuery,
        role: RoleType,
        granted_for: Lineage,
    ) -> Result<Option<Unconfirmed>, Problem> {
        let instances = self.instances(tx, principal)?;
        let person = if let CredentialQuery::Person(person) = principal { Some(person) } else { None };
        let carried = CarriedRole { row: person.unwrap_or_default(), role, granted_for };
        self.at_instances(tx, &instances, person, &[&carried])
    }

    /// The external instances by which a principal signs in.
    fn instances(&mut self, tx: &mut Tx<'_>, of: CredentialQuery) -> Result<BTreeSet<Uuid>, Problem> {
        if let Some(known) = self.instances.get(&of) {
            return Ok(known.clone());
        }
        let (people, _) = people(tx, of)?;
        let mut instances: BTreeSet<Uuid> =
            instances_of(tx, &people)?.into_iter().map(|(_, instance)| instance).collect();
        if let CredentialQuery::Group(group) = of {
            // all members that a directory provisions, however many
            let text = "SELECT DISTINCT i.idp_instance_id FROM application_group g \
                JOIN application_group_member m ON m.application_group_rid = g.rid \
                JOIN application_identity i ON i.application_user_rid = m.application_user_rid \
                AND NOT i.is_user_store_identity AND i.lifecycle_status = 'Active' WHERE g.id = ?1";
            tx.query(text, &[group.into()], |row| {
                instances.insert(row.id(0)?);
                Ok(())
            })?;
        }
        self.instances.insert(of, instances.clone());
        Ok(instances)
    }

    /// The first of these instances that was set up by somebody who does not hold one of these roles of a person.
    pub fn at_instances(
        &mut self,
        tx: &mut Tx<'_>,
        instances: &BTreeSet<Uuid>,
        person: Option<Uuid>,
        carried: &[&CarriedRole],
    ) -> Result<Option<Unconfirmed>, Problem> {
        let new: BTreeSet<Uuid> =
            instances.iter().copied().filter(|id| !self.providers.contains_key(id)).collect();
        self.providers.extend(providers(tx, &new)?);
        for provider in instances.iter().filter_map(|id| self.providers.get(id)) {
            if let Some(below) = provider.first_below(tx, &mut self.actors, person, carried)? {
                let SetBelow { set_by, role, .. } = below;
                return Ok(Some(Unconfirmed {
                    instance: provider.id,
                    name: provider.name.clone(),
                    set_by,
                    role,
                }));
            }
        }
        Ok(None)
    }
}

impl Unconfirmed {
    /// The reason for a refusal, with what remains to be done.
    pub fn detail(&self) -> String {
        let Self { instance, name, set_by, role } = self;
        format!(
            "People sign in by the identity provider {name:?} ({instance}). Its settings were set by {set_by}, who does not hold \
             the role {}. Review the settings, then confirm them: POST /IdpInstance/{instance}/settings/confirm.",
            role.name()
        )
    }
}
