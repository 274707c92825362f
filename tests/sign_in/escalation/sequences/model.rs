//! The model of the sequences: who has which role, by the rule of `docs/decisions/0007-who-may-act-on-whom.md`.

use std::collections::BTreeSet;

/// Memberships, nesting of groups, and assigned roles, by index.
#[derive(Default)]
pub struct Model {
    pub members: BTreeSet<(usize, usize)>,
    pub nested: BTreeSet<(usize, usize)>,
    pub user_roles: BTreeSet<(usize, usize)>,
    pub group_roles: BTreeSet<(usize, usize)>,
}

impl Model {
    /// The roles of these groups and of all groups above them.
    fn roles_of_groups(&self, groups: impl Iterator<Item = usize>) -> BTreeSet<usize> {
        let mut all: BTreeSet<usize> = groups.collect();
        loop {
            let above = self.nested.iter().filter(|(inner, _)| all.contains(inner)).map(|(_, outer)| *outer);
            let reached: BTreeSet<usize> = above.chain(all.iter().copied()).collect();
            if reached == all {
                break;
            }
            all = reached;
        }
        self.group_roles.iter().filter(|(one, _)| all.contains(one)).map(|(_, role)| *role).collect()
    }

    pub fn group_roles(&self, one: usize) -> BTreeSet<usize> {
        self.roles_of_groups(std::iter::once(one))
    }

    pub fn user_roles(&self, one: usize) -> BTreeSet<usize> {
        let own = self.user_roles.iter().filter(|(person, _)| *person == one).map(|(_, role)| *role);
        let given =
            self.roles_of_groups(self.members.iter().filter(|(person, _)| *person == one).map(|(_, of)| *of));
        own.chain(given).collect()
    }

    /// The roles of everybody who signs in at the store. A group counts even while it is empty.
    pub fn all_roles(&self) -> BTreeSet<usize> {
        self.user_roles.iter().chain(&self.group_roles).map(|(_, role)| *role).collect()
    }

    /// The assigned roles of groups or of users.
    pub fn assigned(&mut self, is_group: bool) -> &mut BTreeSet<(usize, usize)> {
        if is_group { &mut self.group_roles } else { &mut self.user_roles }
    }
}
