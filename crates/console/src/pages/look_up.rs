//! Rows that are looked for by what one of their members is: many at a time, each question as long as one may be.

use chancery_resource::{Op, Problem};
use chancery_web::Input;
use serde_json::{Value, json};

use crate::shell::visit::Visit;

/// The most values that are asked for at once, and the longest filter that asks for them, in bytes.
const AT_ONCE: usize = 90;
const LONGEST: usize = 7_000;

/// How rows are read.
#[derive(Clone, Copy, Default)]
pub struct Reading {
    /// With their sets.
    pub is_whole: bool,
    /// From the quarantine.
    pub is_of_deleted: bool,
}

impl Reading {
    /// A list of this many, read so.
    pub fn input(self, op: &'static Op, count: usize) -> Input {
        let mut input = Input::of(op, Vec::new());
        input.is_brief = !self.is_whole;
        input.query.push(("count".to_owned(), count.to_string()));
        if self.is_of_deleted {
            input.query.push(("quarantined".to_owned(), "true".to_owned()));
        }
        input
    }
}

/// The rows of a list whose member is one of these values, in no order.
///
/// # Errors
/// The operation's own.
pub async fn rows_by(
    visit: &Visit<'_>,
    (op, member): (&'static Op, &str),
    values: &[&str],
    reading: Reading,
) -> Result<Vec<Value>, Problem> {
    let mut found = Vec::new();
    for filter in filters(member, values) {
        // an address can be that of several
        let mut input = reading.input(op, 2 * AT_ONCE);
        input.query.push(("filter".to_owned(), filter));
        found.extend(visit.perform(input).await?.rows());
    }
    Ok(found)
}

/// Filters that ask for all of these names, each as long as one may be.
fn filters(member: &str, names: &[&str]) -> Vec<String> {
    let mut filters: Vec<String> = Vec::new();
    let mut count = 0;
    for name in names {
        let term = format!("{member} eq {}", json!(name));
        match filters.last_mut() {
            Some(filter) if count < AT_ONCE && filter.len() + term.len() < LONGEST => {
                filter.push_str(" or ");
                filter.push_str(&term);
                count += 1;
            }
            _ => {
                filters.push(term);
                count = 1;
            }
        }
    }
    filters
}

#[cfg(test)]
mod tests {
    use super::filters;

    #[test]
    fn filters_are_bounded() {
        assert_eq!(filters("name", &["a", "b\""]), [r#"name eq "a" or name eq "b\"""#]);
        let (many, long) = (vec!["a"; 181], "x".repeat(3_400));
        assert_eq!(filters("name", &many).len(), 3);
        assert_eq!(filters("name", &[&long, &long, &long]).len(), 2);
        assert!(filters("name", &[]).is_empty());
    }
}
