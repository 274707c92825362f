//! The step that is due, and the flow that it is due in.

use std::ops::ControlFlow;

use chancery_record::Timestamp;

use crate::{AppFacts, Flow, Identified, PersonFacts, Step, identify, proceed};

/// A flow with the step that is due in it, as found from facts of one transaction at one time.
#[derive(Clone, Debug)]
pub struct Due {
    pub(crate) flow: Flow,
    pub(crate) step: Step,
    pub(crate) identified: Option<Identified>,
    pub(crate) now: Timestamp,
}

/// Finds what comes next. The facts about the person are read only where it is known who that is.
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
    /// The step that is due.
    pub const fn step(&self) -> &Step {
        &self.step
    }

    /// The flow as it is.
    pub const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Who is signing in, where that is known.
    pub const fn identified(&self) -> Option<&Identified> {
        self.identified.as_ref()
    }
}
