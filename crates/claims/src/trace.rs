//! The steps of claims through rules, for people who ask what became of each.

use uuid::Uuid;

use crate::{Claim, Exceeded, MAX_TOTAL_BYTES, rule::CompiledRule};

/// The most steps of an evaluation that is traced.
pub const MAX_STEPS: usize = 10_000;

/// What a rule did with a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It forwarded the claim as it was.
    Passed,
    /// It forwarded this claim in its place.
    Changed(Claim),
    /// It did not forward the claim, and no other rule of its group did.
    Dropped,
    /// The claim is its own.
    Added,
}

/// What one rule did with one claim. Where rules of a group forward a claim, these are its steps; where none does, those
/// that could have are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rule's id.
    pub rule: Uuid,
    /// The rule's group.
    pub priority: i64,
    /// The claim, as it came to the group; one that was added, as it left.
    pub claim: Claim,
    /// What the rule did with it.
    pub effect: Effect,
}

/// The steps so far, where they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    is_on: bool,
    steps: Vec<Step>,
    bytes: usize,
}

impl Trace {
    /// A trace of all steps.
    pub(crate) fn of_all() -> Self {
        Self { is_on: true, ..Self::default() }
    }

    /// Whether steps are noted.
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Notes that a rule forwarded a claim, perhaps as another.
    pub(crate) fn note_forwarded(
        &mut self,
        rule: &CompiledRule,
        claim: &Claim,
        became: &Claim,
    ) -> Result<(), Exceeded> {
        if !self.is_on {
            return Ok(());
        }
        let effect = if became == claim { Effect::Passed } else { Effect::Changed(became.clone()) };
        self.note(rule, claim, effect)
    }

    /// Notes a step.
    pub(crate) fn note(
        &mut self,
        rule: &CompiledRule,
        claim: &Claim,
        effect: Effect,
    ) -> Result<(), Exceeded> {
        if !self.is_on {
            return Ok(());
        }
        let size = |claim: &Claim| claim.claim_type.len() + claim.value.len();
        let more = if let Effect::Changed(became) = &effect { size(became) } else { 0 };
        self.bytes += size(claim) + more;
        if self.steps.len() >= MAX_STEPS || self.bytes > MAX_TOTAL_BYTES {
            return Err(Exceeded::Steps);
        }
        self.steps.push(Step { rule: rule.id, priority: rule.priority, claim: claim.clone(), effect });
        Ok(())
    }

    /// The steps, in the order of running.
    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.steps
    }
}
