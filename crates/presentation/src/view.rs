//! Views: pages as MiniJinja templates, which a customer may replace.
//!
//! A template from outside can cost more than its author pays for. Four things keep it in bounds:
//! it has at most [`LONGEST`] bytes; each of its tags says only what `rules` lets it say, so that
//! no parser runs out of stack and no value grows in memory; it has so much fuel and no more; and
//! a page has at most [`LONGEST_PAGE`] bytes.
//!
//! What a view writes is always escaped for HTML. There is no way to turn that off.

mod filters;
mod refusal;
mod render;
mod rules;
mod tags;

use minijinja::Environment;
pub use refusal::{Failure, Refusal};
pub use render::{LONGEST_PAGE, render};

/// Bytes of a view.
pub const LONGEST: usize = 1 << 20;

/// Whether a view can be kept: it parses, and says nothing that views may not say.
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
