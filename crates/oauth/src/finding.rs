//! Violated rules between the settings of a client app.

/// A violated rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The member to change, by its wire name.
    pub member: &'static str,
    /// The instruction for the administrator.
    pub detail: &'static str,
}

/// The violated rules found so far.
#[derive(Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    pub fn add(&mut self, member: &'static str, detail: &'static str) {
        self.0.push(Finding { member, detail });
    }

    /// Adds a finding if a rule does not hold.
    pub fn require(&mut self, holds: bool, member: &'static str, detail: &'static str) {
        if !holds {
            self.add(member, detail);
        }
    }

    /// The findings, in the order in which they were added.
    pub fn into_list(self) -> Vec<Finding> {
        self.0
    }
}
