//! What the interface says of an act before it is done: which rows it refuses, and why.

use chancery_resource::Problem;

use super::{Asked, targets::Target};
use crate::shell::visit::Visit;

/// How often what is refused is left out, before the rest is given up: a refusal names at most a hundred.
const ROUNDS: usize = 20;

/// A row that was refused, and why.
pub type Refused = (Target, String);

/// Judges an act by dry runs. What is refused is taken out of the rows.
///
/// # Errors
/// What is not about rows; still refused.
pub async fn judge(
    visit: &Visit<'_>,
    asked: &Asked<'_>,
    mut wanted: Vec<Target>,
) -> Result<(Vec<Target>, Vec<Refused>), Problem> {
    if asked.act.is_each(asked.op) {
        return judge_each(visit, asked, wanted).await;
    }
    let mut refused = Vec::new();
    for round in 0.. {
        if wanted.is_empty() {
            break;
        }
        let keys: Vec<&str> = wanted.iter().map(|one| one.key.as_str()).collect();
        let mut input = asked.act.input(asked.op, &keys, asked.group);
        input.dry_run = true;
        let Err(problem) = visit.perform(input).await else { break };
        let places = places(&problem);
        if places.is_empty() || round >= ROUNDS {
            return Err(problem);
        }
        for (at, detail) in places.into_iter().rev() {
            if at < wanted.len() {
                refused.push((wanted.remove(at), detail));
            }
        }
    }
    Ok((wanted, refused))
}

async fn judge_each(
    visit: &Visit<'_>,
    asked: &Asked<'_>,
    wanted: Vec<Target>,
) -> Result<(Vec<Target>, Vec<Refused>), Problem> {
    let (mut good, mut refused) = (Vec::new(), Vec::new());
    for one in wanted {
        let mut input = asked.act.input(asked.op, &[&one.key], asked.group);
        input.dry_run = true;
        match visit.perform(input).await {
            Ok(_) => good.push(one),
            Err(problem) => refused.push((one, problem.detail)),
        }
    }
    Ok((good, refused))
}

/// The elements and members that a problem of many is about, with what is wrong with them; none where it is about
/// something else.
pub fn places_of(problem: &Problem) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    for error in problem.errors.as_slice() {
        let mut parts = error.pointer.split('/');
        let Some(at) = parts.find_map(|part| part.parse().ok()) else { return Vec::new() };
        found.push((at, parts.next().unwrap_or_default().to_owned(), error.detail.clone()));
    }
    found
}

/// The elements that a problem of many is about, in order, each once.
pub fn places(problem: &Problem) -> Vec<(usize, String)> {
    let mut found: Vec<_> = places_of(problem).into_iter().map(|(at, _, detail)| (at, detail)).collect();
    found.sort_by_key(|(at, _)| *at);
    found.dedup_by_key(|(at, _)| *at);
    found
}

#[cfg(test)]
mod tests {
    use chancery_record::FieldError;
    use chancery_resource::Problem;

    use super::places;

    #[test]
    fn elements_are_found_by_their_pointers() {
        let wrong = |pointers: &[&str]| {
            let errors: Vec<_> = pointers.iter().map(|pointer| FieldError::new(*pointer, "no")).collect();
            places(&Problem::wrong(errors)).into_iter().map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert_eq!(wrong(&["/17", "/2/id", "/2/name", "/relatedIds/4"]), [2, 4, 17]);
        assert_eq!(wrong(&["/17", "/name"]), [] as [usize; 0]);
    }
}
