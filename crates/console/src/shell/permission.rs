//! Permission checks of pages, and their error messages.

use chancery_resource::{Op, Permit, Problem, ProblemKind, ROLES};

use super::visit::{Visit, not_found};

impl Visit<'_> {
    /// An operation that the user may call.
    ///
    /// # Errors
    /// The operation does not exist, or the user lacks a role for it.
    pub fn require(&self, op: Option<&'static Op>) -> Result<&'static Op, Problem> {
        let op = op.ok_or_else(not_found)?;
        if self.lacks_role(op.permit) { Err(self.missing_role(op.permit)) } else { Ok(op) }
    }

    /// Whether no role of the user grants a permit, in any scope.
    pub fn lacks_role(&self, permit: Permit) -> bool {
        let needs_role = !matches!(permit, Permit::Oneself | Permit::Person | Permit::Public);
        needs_role && !self.visitor.caller.roles.iter().any(|held| held.role.satisfies(permit))
    }

    /// The problem that names the lowest roles with a permit.
    pub fn missing_role(&self, permit: Permit) -> Problem {
        let words = self.words;
        let lowest = ROLES.iter().filter(|line| line.permits.contains(&permit));
        let names: Vec<&str> = lowest.map(|line| words.choice(line.role.name())).collect();
        let names = names.join(&format!(" {} ", words.page("or")));
        Problem::new(ProblemKind::Forbidden, format!("{} {names}.", words.page("missing_role")))
    }
}
