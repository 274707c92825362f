//! External identity providers that are to be reviewed before people who sign in by them get a role.

use std::collections::{BTreeSet, HashMap, hash_map::Entry};

use chancery_resource::{CarriedRole, Lineage, Problem, RoleScope, RoleType, StoreError, Tx};
use uuid::Uuid;

use crate::{
    checked_people::{CredentialQuery, people},
    granted_role::lineage_of,
    provider_setters::{
        ActorRoles, ExternalIdentity, Provider, UnreviewedChange, external_identities_of, providers,
    },
};

/// A provider whose people are to get a role that one of the actors who configured the provider lacks.
pub struct ReviewRequired {
    /// The instance.
    pub instance: Uuid,
    /// Its name.
    pub name: String,
    /// The actor who configured it.
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
    lineages: HashMap<RoleScope, Lineage>,
}

impl GrantReview {
    /// Reads the external instances of platform users at once, for calls of [`Self::required_for`].
    pub fn load(&mut self, tx: &mut Tx<'_>, people: &[Uuid]) -> Result<(), StoreError> {
        self.instances.extend(people.iter().map(|id| (CredentialQuery::Person(*id), BTreeSet::new())));
        for ExternalIdentity { person, instance } in external_identities_of(tx, people)? {
            self.instances.entry(CredentialQuery::Person(person)).or_default().insert(instance);
        }
        Ok(())
    }

    /// The provider to be reviewed before a role is granted to a platform user or a platform group. Of a group of a user store the
    /// first 1,000 members are examined. `None`: there is none.
    pub fn required_for(
        &mut self,
        tx: &mut Tx<'_>,
        principal: CredentialQuery,
        role: RoleType,
        scope: RoleScope,
    ) -> Result<Option<ReviewRequired>, Problem> {
        let instances = self.instances(tx, principal)?;
        if instances.is_empty() {
            return Ok(None);
        }
        let granted_for = match self.lineages.entry(scope) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => *free.insert(lineage_of(tx, scope)?),
        };
        let person = if let CredentialQuery::Person(person) = principal { Some(person) } else { None };
        let carried = CarriedRole { row: person.unwrap_or_default(), role, granted_for };
        self.required_at(tx, &instances, person, &[&carried])
    }

    /// The external instances by which a principal signs in.
    fn instances(&mut self, tx: &mut Tx<'_>, of: CredentialQuery) -> Result<BTreeSet<Uuid>, Problem> {
        if let Some(known) = self.instances.get(&of) {
            return Ok(known.clone());
        }
        let (people, _) = people(tx, of)?;
        let mut instances: BTreeSet<Uuid> =
            external_identities_of(tx, &people)?.into_iter().map(|identity| identity.instance).collect();
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

    /// The first of these instances that an actor configured who lacks one of these roles. Configuration by `person`, who carries
    /// them, does not count.
    pub fn required_at(
        &mut self,
        tx: &mut Tx<'_>,
        instances: &BTreeSet<Uuid>,
        person: Option<Uuid>,
        carried: &[&CarriedRole],
    ) -> Result<Option<ReviewRequired>, Problem> {
        let new: BTreeSet<Uuid> =
            instances.iter().copied().filter(|id| !self.providers.contains_key(id)).collect();
        self.providers.extend(providers(tx, &new)?);
        for provider in instances.iter().filter_map(|id| self.providers.get(id)) {
            if let Some(below) = provider.unreviewed_change(tx, &mut self.actors, person, carried)? {
                let UnreviewedChange { set_by, role, .. } = below;
                return Ok(Some(ReviewRequired {
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

impl ReviewRequired {
    /// The reason for a refusal, with what remains to be done.
    pub fn detail(&self) -> String {
        let Self { instance, name, set_by, role } = self;
        format!(
            "These people sign in by the identity provider {name:?} ({instance}). It was configured by {set_by}, who lacks the \
             role {}. Review its settings, then confirm them: POST /IdpInstance/{instance}/settings/confirm.",
            role.name()
        )
    }
}
