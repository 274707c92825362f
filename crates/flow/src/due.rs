//! The current step, and the flow that it belongs to.

use std::ops::ControlFlow;

use chancery_record::Timestamp;

use crate::{AppFacts, Flow, Identified, PersonFacts, Step, identify, proceed};

/// A flow with its current step, as computed from facts of one transaction at one time.
#[derive(Clone, Debug)]
pub struct Due {
    pub(crate) flow: Flow,
    pub(crate) step: Step,
    pub(crate) identified: Option<Identified>,
    pub(crate) now: Timestamp,
}

/// Computes the next step. The facts about the person are read only once the person is known.
///
/// # Errors
/// Those of reading the facts about the person.
pub fn next<E>(
    flow: Flow,
    facts: &AppFacts<'_>,
    now: Timestamp,
    read: impl FnOnce(&Identified) -> Result<PersonFacts, E>,
) -> Result<Due, E> {
    let (step, identified) = match identify(&flow, facts, now) {
        ControlFlow::Break(step) => (step, None),
        ControlFlow::Continue(identified) => {
            (proceed(&flow, &identified, &read(&identified)?), Some(identified))
        }
    };
    Ok(Due { flow, step, identified, now })
}

impl Due {
    /// The current step.
    pub const fn step(&self) -> &Step {
        &self.step
    }

    /// The flow before the event.
    pub const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// The person who is signing in, where known.
    pub const fn identified(&self) -> Option<&Identified> {
        self.identified.as_ref()
    }
}
