//! Slow validation, such as compiling patterns: it runs between two transactions of a call, so that no
//! transaction holds up other writers.

use std::time::{Duration, Instant};

use chancery_claims::TimeCheck;
use chancery_resource::{FieldFault, Problem, ProblemKind, Purpose, Violation, Work, Writer};

use crate::violation::violation_at;

/// The greatest weight that the rows of one call may have together.
const MAX_WEIGHT: u64 = 16_000_000;
/// How long validating the rows of one call may take; also compiling claim rules, and evaluating them.
pub const TIME: Duration = Duration::from_secs(2);
/// After so many invalid rows the rest is not validated.
const MAX_INVALID: usize = 100;

/// The result of a validation.
struct Validated<T> {
    /// The validated items, in the order of their rows.
    items: Vec<T>,
    /// The rows that are invalid, by their index, with the faults.
    invalid: Vec<(usize, Vec<FieldFault>)>,
    exceeds_limit: bool,
}

/// Validates the items of a call's rows: `weigh` returns an item's weight, or its faults.
///
/// # Errors
/// The result is pending: the call runs again once it is there. The items changed between the two runs.
/// The items exceed the limit of one call.
pub fn validate_items<T: PartialEq + Send + Sync + 'static>(
    writer: Writer<'_>,
    purpose: Purpose,
    items: Vec<T>,
    weigh: fn(&T) -> Result<u64, Vec<FieldFault>>,
) -> Result<Vec<Violation>, Problem> {
    let Some(validated) = writer.result::<Validated<T>>() else {
        return Err(writer.need(Work::new(purpose, move || {
            let started = Instant::now();
            weigh_all(items, weigh, &|| started.elapsed() < TIME)
        })));
    };
    if validated.items != items {
        return Err(Problem::conflict("The rows were changed while they were judged: send it again."));
    }
    if validated.exceeds_limit {
        let detail =
            "What is in the rows of the call is too heavy or too slow to read together: send fewer of them.";
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    let violations = validated.invalid.iter().flat_map(|(index, faults)| {
        faults.iter().map(|(field, detail)| violation_at(*index, *field, detail.clone()))
    });
    Ok(violations.collect())
}

fn weigh_all<T>(
    items: Vec<T>,
    weigh: fn(&T) -> Result<u64, Vec<FieldFault>>,
    go_on: TimeCheck<'_>,
) -> Validated<T> {
    let (mut weight, mut invalid, mut is_late) = (0_u64, Vec::new(), false);
    for (index, item) in items.iter().enumerate() {
        match weigh(item) {
            Ok(one) => weight = weight.saturating_add(one),
            Err(faults) => invalid.push((index, faults)),
        }
        // a single row is validated to its end, however busy the machine is
        is_late = index + 1 < items.len() && !go_on();
        if weight > MAX_WEIGHT || invalid.len() >= MAX_INVALID || is_late {
            break;
        }
    }
    Validated { items, invalid, exceeds_limit: weight > MAX_WEIGHT || is_late }
}

#[cfg(test)]
mod tests {
    use super::{MAX_INVALID, MAX_WEIGHT, weigh_all};
    use crate::claim_rule::ClaimRule;

    /// Validating one call's rows is bounded, whether they are valid or not.
    #[test]
    fn validation_of_one_call_is_bounded() {
        let validated = weigh_all(vec![MAX_WEIGHT / 2; 2], |weight| Ok(*weight), &|| true);
        assert!(!validated.exceeds_limit && validated.invalid.is_empty());
        let validated = weigh_all(vec![MAX_WEIGHT / 2; 3], |weight| Ok(*weight), &|| true);
        assert!(validated.exceeds_limit);
        let validated =
            weigh_all(vec![0; 10_000], |_| Err(vec![(ClaimRule::NAME.field(), String::new())]), &|| true);
        assert_eq!(validated.invalid.len(), MAX_INVALID);
        let validated = weigh_all(vec![1; 2], |weight| Ok(*weight), &|| false);
        assert!(validated.exceeds_limit);
        let validated = weigh_all(vec![1], |weight| Ok(*weight), &|| false);
        assert!(!validated.exceeds_limit);
    }
}
