//! The trace of an evaluation: the effect of each rule on each claim.

use uuid::Uuid;

use crate::{Claim, LimitExceeded, MAX_STEPS, MAX_TOTAL_BYTES, rule::CompiledRule};

/// The effect of a rule on a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The claim was forwarded unchanged.
    Passed,
    /// This claim was forwarded instead.
    Changed(Claim),
    /// The claim was dropped: no rule of the group forwarded it.
    Dropped,
    /// The claim was added.
    Added,
}

/// The effect of one rule on one claim. If rules of a group forward a claim, there is a step for each of these; otherwise
/// for each rule that could have forwarded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// The rule's id.
    pub rule: Uuid,
    /// The rule's group.
    pub priority: i64,
    /// The claim before the group, or the added claim.
    pub claim: Claim,
    /// The effect on the claim.
    pub effect: Effect,
}

/// The recorded steps, if tracing is enabled.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    is_enabled: bool,
    steps: Vec<TraceStep>,
    bytes: usize,
}

impl Trace {
    /// An enabled trace.
    pub(crate) fn enabled() -> Self {
        Self { is_enabled: true, ..Self::default() }
    }

    /// Whether steps are recorded.
    pub(crate) const fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Records that a rule forwarded a claim, perhaps rewritten.
    pub(crate) fn record_forwarded(
        &mut self,
        rule: &CompiledRule,
        claim: &Claim,
        result: &Claim,
    ) -> Result<(), LimitExceeded> {
        if !self.is_enabled {
            return Ok(());
        }
        let effect = if result == claim { Effect::Passed } else { Effect::Changed(result.clone()) };
        self.record(rule, claim, effect)
    }

    /// Records a step.
    pub(crate) fn record(
        &mut self,
        rule: &CompiledRule,
        claim: &Claim,
        effect: Effect,
    ) -> Result<(), LimitExceeded> {
        if !self.is_enabled {
            return Ok(());
        }
        let size = |claim: &Claim| claim.claim_type.len() + claim.value.len();
        let result_size = if let Effect::Changed(result) = &effect { size(result) } else { 0 };
        self.bytes += size(claim) + result_size;
        if self.steps.len() >= MAX_STEPS || self.bytes > MAX_TOTAL_BYTES {
            return Err(LimitExceeded::Steps);
        }
        self.steps.push(TraceStep { rule: rule.id, priority: rule.priority, claim: claim.clone(), effect });
        Ok(())
    }

    /// The steps, in the order of running.
    pub(crate) fn into_steps(self) -> Vec<TraceStep> {
        self.steps
    }
}
