//! Views: pages as MiniJinja templates, which a customer may replace.
//!
//! A customer's template is not trusted to be cheap. Four bounds hold its cost: it has at most
//! [`LONGEST`] bytes; its tags have only what `rules` allows, so that no parser overflows the stack
//! and no value grows in memory; rendering has a limited amount of fuel; and a page has at most
//! [`LONGEST_PAGE`] bytes.
//!
//! The output of a view's expressions is always escaped for HTML. A view cannot turn that off.
//!
//! Nor is it trusted to show what is good for people: its page is reduced to what pages may have (`html`).

mod filters;
mod html;
mod refusal;
mod render;
mod rules;
mod tags;

pub use html::Reduced;
use minijinja::Environment;
pub use refusal::{Failure, Refusal};
pub use render::{LONGEST_PAGE, Views, shipped_in};

use crate::{language::Language, shipped};

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

/// Checks that a view's page, filled with each of its samples, loses nothing: it has only what pages may have. A part of
/// pages is filled as the first page is; what cannot be filled is judged where a page shows it.
///
/// # Errors
/// What would be lost, and where it stands.
pub fn check_page(name: &str, content: &str) -> Result<(), Refusal> {
    let (views, _) = Views::new(Language::English, [(name.to_owned(), content.to_owned())]);
    let sampled = shipped::content(name).map_or("SignIn", |_| name);
    let pages =
        shipped::samples(sampled).into_iter().filter_map(|(_, context)| views.render(name, &context).ok());
    let Some(lost) = pages.flat_map(|page| page.lost).next() else { return Ok(()) };
    let detail = format!("a page must not have {lost} here; docs/views.md lists what pages may have");
    Err(Refusal::at(place_of(&lost, content), content, detail))
}

/// Where an element, or the attribute of one, stands in a view for the first time.
fn place_of(lost: &str, content: &str) -> usize {
    let (element, attribute) = lost.split_once(' ').unwrap_or((lost, ""));
    let content = content.to_ascii_lowercase();
    let tag = format!("<{}", element.trim_matches(['<', '>']).to_ascii_lowercase());
    let at = content.find(&tag).unwrap_or_default();
    let after = content.get(at..).and_then(|rest| rest.find(&attribute.to_ascii_lowercase()));
    at + after.unwrap_or_default()
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
