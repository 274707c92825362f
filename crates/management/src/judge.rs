//! Slow validation, such as compiling patterns: it runs between two transactions of a call, so that no
//! transaction holds up other writers.

use std::time::{Duration, Instant};

use chancery_claims::GoOn;
use chancery_resource::{FieldFault, Problem, ProblemKind, Purpose, Violation, Work, Writer};

use crate::subscription::resolve::wrong;

/// The greatest weight that the rows of one call may have together.
const MAX_WEIGHT: u64 = 16_000_000;
/// How long validating the rows of one call may take; also compiling claim rules, and evaluating them.
pub const TIME: Duration = Duration::from_secs(2);
/// After so many invalid rows the others are not validated.
const MAX_WRONG: usize = 100;

/// The outcome of a validation.
struct Judged<T> {
    /// The validated items, in the order of their rows.
    items: Vec<T>,
    wrong: Vec<(usize, Vec<FieldFault>)>,
    is_too_much: bool,
}

/// Validates the items of a call's rows: `weigh` returns an item's weight, or what is wrong with it.
///
/// # Errors
/// The outcome is not there yet: the call runs again once it is. The items changed between the two runs.
/// The items are too much for one call.
pub fn judge<T: PartialEq + Send + Sync + 'static>(
    writer: Writer<'_>,
    purpose: Purpose,
    items: Vec<T>,
    weigh: fn(&T) -> Result<u64, Vec<FieldFault>>,
) -> Result<Vec<Violation>, Problem> {
    let Some(judged) = writer.result::<Judged<T>>() else {
        return Err(writer.need(Work::new(purpose, move || {
            let started = Instant::now();
            weigh_all(items, weigh, &|| started.elapsed() < TIME)
        })));
    };
    if judged.items != items {
        return Err(Problem::conflict("The rows were changed while they were judged: send it again."));
    }
    if judged.is_too_much {
        let detail =
            "What is in the rows of the call is too heavy or too slow to read together: send fewer of them.";
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    let violations = judged.wrong.iter().flat_map(|(index, wrongs)| {
        wrongs.iter().map(|(field, detail)| wrong(*index, *field, detail.clone()))
    });
    Ok(violations.collect())
}

fn weigh_all<T>(items: Vec<T>, weigh: fn(&T) -> Result<u64, Vec<FieldFault>>, go_on: GoOn<'_>) -> Judged<T> {
    let (mut weight, mut wrong, mut is_late) = (0_u64, Vec::new(), false);
    for (index, item) in items.iter().enumerate() {
        match weigh(item) {
            Ok(one) => weight = weight.saturating_add(one),
            Err(wrongs) => wrong.push((index, wrongs)),
        }
        // a single row is validated to its end, however busy the machine is
        is_late = index + 1 < items.len() && !go_on();
        if weight > MAX_WEIGHT || wrong.len() >= MAX_WRONG || is_late {
            break;
        }
    }
    Judged { items, wrong, is_too_much: weight > MAX_WEIGHT || is_late }
}

#[cfg(test)]
mod tests {
    use super::{MAX_WEIGHT, MAX_WRONG, weigh_all};
    use crate::claim_rule::ClaimRule;

    /// Validating one call's rows is bounded, whether they are valid or not.
    #[test]
    fn a_call_has_an_end() {
        let judged = weigh_all(vec![MAX_WEIGHT / 2; 2], |weight| Ok(*weight), &|| true);
        assert!(!judged.is_too_much && judged.wrong.is_empty());
        let judged = weigh_all(vec![MAX_WEIGHT / 2; 3], |weight| Ok(*weight), &|| true);
        assert!(judged.is_too_much);
        let judged =
            weigh_all(vec![0; 10_000], |_| Err(vec![(ClaimRule::NAME.field(), String::new())]), &|| true);
        assert_eq!(judged.wrong.len(), MAX_WRONG);
        let judged = weigh_all(vec![1; 2], |weight| Ok(*weight), &|| false);
        assert!(judged.is_too_much);
        let judged = weigh_all(vec![1], |weight| Ok(*weight), &|| false);
        assert!(!judged.is_too_much);
    }
}
