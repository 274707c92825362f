//! Views: pages as MiniJinja templates, which a customer may replace.
//!
//! A customer's template is not trusted to be cheap. Four bounds hold its cost: it has at most
//! [`LONGEST`] bytes; its tags have only what `rules` allows, so that no parser overflows the stack
//! and no value grows in memory; rendering has a limited amount of fuel; and a page has at most
//! [`LONGEST_PAGE`] bytes.
//!
//! The output of a view's expressions is always escaped for HTML. A view cannot turn that off.

mod filters;
mod refusal;
mod render;
mod rules;
mod tags;

use minijinja::Environment;
pub use refusal::{Failure, Refusal};
pub use render::{LONGEST_PAGE, Views, shipped_in};

/// The most bytes of a view.
pub const LONGEST: usize = 1 << 20;

/// Checks that a view may be stored: it parses, and has nothing that views may not have.
///
/// # Errors
/// What is wrong, and where.
pub fn check(content: &str) -> Result<(), Refusal> {
    rules::check(content)?;
    let parsed = Environment::empty().template_from_str(content).map(|_| ());
    parsed.map_err(|error| Refusal::of(&error, content))
}

/// The members of a name that a template uses, two deep: `text.error.title`, `text.error[code]`.
#[cfg(test)]
pub(crate) fn words(source: &str, name: &str) -> Vec<(String, Option<String>)> {
    use tags::Token::{Symbol, Word};
    let mut found = Vec::new();
    for tag in tags::tags(source).unwrap() {
        let tokens: Vec<_> = tag.tokens.iter().map(|(_, token)| *token).collect();
        for (index, token) in tokens.iter().enumerate() {
            if *token == Word(name) {
                match &tokens[index + 1..] {
                    [Symbol('.'), Word(part), Symbol('.'), Word(key), ..] => {
                        found.push(((*part).to_owned(), Some((*key).to_owned())));
                    }
                    [Symbol('.'), Word(part), Symbol('['), ..] => found.push(((*part).to_owned(), None)),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
