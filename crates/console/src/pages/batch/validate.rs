//! Validation of a batch action by dry runs: which rows the API refuses, and why.

use chancery_resource::Problem;

use super::{BatchRequest, targets::Target};
use crate::shell::visit::Visit;

/// Maximum number of dry runs: each reports at most a hundred errors.
const ROUNDS: usize = 20;

/// A refused row, and the reason.
pub type Refused = (Target, String);

/// Validates an action by dry runs. Refused rows are removed.
///
/// # Errors
/// A problem that is not about rows, or rows are still refused after the last dry run.
pub async fn validate(
    visit: &Visit<'_>,
    request: &BatchRequest<'_>,
    mut targets: Vec<Target>,
) -> Result<(Vec<Target>, Vec<Refused>), Problem> {
    if request.act.is_each(request.op) {
        return validate_each(visit, request, targets).await;
    }
    let mut refused = Vec::new();
    for round in 0.. {
        if targets.is_empty() {
            break;
        }
        let keys: Vec<&str> = targets.iter().map(|one| one.key.as_str()).collect();
        let mut input = request.act.input(request.op, &keys, request.group);
        input.dry_run = true;
        let Err(problem) = visit.perform(input).await else { break };
        let failed = failed_elements(&problem);
        if failed.is_empty() || round >= ROUNDS {
            return Err(problem);
        }
        for (at, detail) in failed.into_iter().rev() {
            if at < targets.len() {
                refused.push((targets.remove(at), detail));
            }
        }
    }
    Ok((targets, refused))
}

async fn validate_each(
    visit: &Visit<'_>,
    request: &BatchRequest<'_>,
    targets: Vec<Target>,
) -> Result<(Vec<Target>, Vec<Refused>), Problem> {
    let (mut good, mut refused) = (Vec::new(), Vec::new());
    for one in targets {
        let mut input = request.act.input(request.op, &[&one.key], request.group);
        input.dry_run = true;
        match visit.perform(input).await {
            Ok(_) => good.push(one),
            Err(problem) => refused.push((one, problem.detail)),
        }
    }
    Ok((good, refused))
}

/// The locations of a batch problem: index, member and message; none if the problem is not about elements.
pub fn error_locations(problem: &Problem) -> Vec<(usize, String, String)> {
    let mut locations = Vec::new();
    for error in problem.errors.as_slice() {
        let mut parts = error.pointer.split('/');
        let Some(at) = parts.find_map(|part| part.parse().ok()) else { return Vec::new() };
        locations.push((at, parts.next().unwrap_or_default().to_owned(), error.detail.clone()));
    }
    locations
}

/// The failed elements of a batch, in order, each once.
pub fn failed_elements(problem: &Problem) -> Vec<(usize, String)> {
    let mut elements: Vec<_> =
        error_locations(problem).into_iter().map(|(at, _, detail)| (at, detail)).collect();
    elements.sort_by_key(|(at, _)| *at);
    elements.dedup_by_key(|(at, _)| *at);
    elements
}

#[cfg(test)]
mod tests {
    use chancery_record::FieldError;
    use chancery_resource::Problem;

    use super::failed_elements;

    #[test]
    fn elements_are_found_by_their_pointers() {
        let wrong = |pointers: &[&str]| {
            let errors: Vec<_> = pointers.iter().map(|pointer| FieldError::new(*pointer, "no")).collect();
            failed_elements(&Problem::wrong(errors)).into_iter().map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert_eq!(wrong(&["/17", "/2/id", "/2/name", "/relatedIds/4"]), [2, 4, 17]);
        assert_eq!(wrong(&["/17", "/name"]), [] as [usize; 0]);
    }
}
