//! Batched look-up by one field: as many values a request as the filter may contain.

use chancery_resource::{Op, Problem};
use chancery_web::Input;
use serde_json::{Value, json};

use crate::shell::visit::Visit;

/// The most values in one filter, and the longest filter, in bytes.
const AT_ONCE: usize = 90;
const LONGEST: usize = 7_000;

/// How rows are read.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions {
    /// Whether related rows are read, too.
    pub is_whole: bool,
    /// Whether quarantined rows are read.
    pub is_of_deleted: bool,
}

impl ReadOptions {
    /// The input of a list with this page size.
    pub fn input(self, op: &'static Op, count: usize) -> Input {
        let mut input = Input::of(op, Vec::new());
        input.is_minimal = !self.is_whole;
        input.query.push(("count".to_owned(), count.to_string()));
        if self.is_of_deleted {
            input.query.push(("quarantined".to_owned(), "true".to_owned()));
        }
        input
    }
}

/// The rows of a list whose member has one of these values, in no particular order.
pub async fn rows_by(
    visit: &Visit<'_>,
    op: &'static Op,
    member: &str,
    values: &[&str],
    reading: ReadOptions,
) -> Result<Vec<Value>, Problem> {
    let mut rows = Vec::new();
    for filter in filters(member, values) {
        // several users can have the same address
        let mut input = reading.input(op, 2 * AT_ONCE);
        input.query.push(("filter".to_owned(), filter));
        rows.extend(visit.perform(input).await?.rows());
    }
    Ok(rows)
}

/// Filters that cover all of these values, each as long as allowed.
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
