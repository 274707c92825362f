//! What a page needs the person's roles to allow, and what it says where they do not.

use chancery_resource::{Op, Permit, Problem, ProblemKind, ROLES};

use super::visit::{Visit, nothing_here};

impl Visit<'_> {
    /// An operation that a page is about, where the person may call it here.
    ///
    /// # Errors
    /// There is no such operation, or the person lacks a role for it.
    pub fn need(&self, op: Option<&'static Op>) -> Result<&'static Op, Problem> {
        let op = op.ok_or_else(nothing_here)?;
        if self.lacks_role(op.permit) { Err(self.missing_role(op.permit)) } else { Ok(op) }
    }

    /// Whether no role of the person's has a permit, wherever it was given.
    pub fn lacks_role(&self, permit: Permit) -> bool {
        let needs_role = !matches!(permit, Permit::Oneself | Permit::Person | Permit::Public);
        needs_role && !self.visitor.caller.roles.iter().any(|held| held.role.satisfies(permit))
    }

    /// Names the lowest roles that have a permit.
    pub fn missing_role(&self, permit: Permit) -> Problem {
        let words = self.words;
        let lowest = ROLES.iter().filter(|line| line.permits.contains(&permit));
        let names: Vec<&str> = lowest.map(|line| words.choice(line.role.name())).collect();
        let names = names.join(&format!(" {} ", words.page("or")));
        Problem::new(ProblemKind::Forbidden, format!("{} {names}.", words.page("missing_role")))
    }
}
