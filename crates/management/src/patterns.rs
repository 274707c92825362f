//! Patterns of a call, judged between two transactions: to read a heavy one takes long, and a transaction
//! must not hold up others that write.

use chancery_resource::{Breach, Call, Problem, ProblemKind, Purpose, Work};

use crate::place::wrong;

/// What is wrong: a member's name as a column, with a detail for people.
pub type Wrong = (&'static str, String);

/// How heavy the patterns of one call may be together.
const MAX_WEIGHT: u64 = 16_000_000;
/// After so many rows that are wrong the others are not looked at.
const MAX_WRONG: usize = 100;

/// What came of it.
struct Judged<T> {
    /// What was judged, each in its row's place.
    items: Vec<T>,
    wrong: Vec<(usize, Vec<Wrong>)>,
    is_too_heavy: bool,
}

/// What is wrong with the patterns of the rows, which `weigh` tells of each.
///
/// # Errors
/// It is not known yet: the call runs again when it is. Or all of them are too much for one call.
pub fn judge<T: Clone + PartialEq + Send + Sync + 'static>(
    call: &Call,
    items: Vec<T>,
    weigh: fn(&T) -> Result<u64, Vec<Wrong>>,
) -> Result<Vec<Breach>, Problem> {
    let Some(judged) = call.result::<Judged<T>>(0)? else {
        return Err(call.need(Work::new(Purpose::Pattern, move || weigh_all(items, weigh))));
    };
    if judged.items != items {
        return Err(Problem::conflict(
            "The rows were changed while their patterns were read: send it again.",
        ));
    }
    if judged.is_too_heavy {
        let detail = "The patterns of the call are too heavy together: send fewer rows in one call.";
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    let breaches = judged.wrong.iter().flat_map(|(place, wrongs)| {
        wrongs.iter().map(|(column, detail)| wrong(*place, column, detail.clone()))
    });
    Ok(breaches.collect())
}

fn weigh_all<T>(items: Vec<T>, weigh: fn(&T) -> Result<u64, Vec<Wrong>>) -> Judged<T> {
    let (mut weight, mut wrong) = (0_u64, Vec::new());
    for (place, item) in items.iter().enumerate() {
        match weigh(item) {
            Ok(one) => weight = weight.saturating_add(one),
            Err(wrongs) => wrong.push((place, wrongs)),
        }
        if weight > MAX_WEIGHT || wrong.len() >= MAX_WRONG {
            break;
        }
    }
    Judged { items, wrong, is_too_heavy: weight > MAX_WEIGHT }
}

#[cfg(test)]
mod tests {
    use super::{MAX_WEIGHT, MAX_WRONG, weigh_all};

    /// A6: the patterns of one call have an end, good or bad.
    #[test]
    fn a_call_has_an_end() {
        let judged = weigh_all(vec![MAX_WEIGHT / 2; 2], |weight| Ok(*weight));
        assert!(!judged.is_too_heavy && judged.wrong.is_empty());
        let judged = weigh_all(vec![MAX_WEIGHT / 2; 3], |weight| Ok(*weight));
        assert!(judged.is_too_heavy);
        let judged = weigh_all(vec![0; 10_000], |_| Err(vec![("pattern", String::new())]));
        assert_eq!(judged.wrong.len(), MAX_WRONG);
    }
}
