//! Views: pages as MiniJinja templates, which a customer may replace.
//!
//! A customer's template is not trusted to be cheap. Four bounds hold its cost: it has at most
//! [`LONGEST`] bytes; its tags have only what `rules` allows, so that no parser overflows the stack
//! and no value grows in memory; rendering has a limited amount of fuel; and a page has at most
//! [`LONGEST_PAGE`] bytes.
//!
//! The output of a view's expressions is always escaped for HTML. A view cannot turn that off.
//!
//! Nor is it trusted to show harmless content: its page is reduced to the allowed elements and attributes (`html`).

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
pub use rules::includes;

use crate::{language::Language, shipped};

/// The most bytes of a view.
pub const LONGEST: usize = 1 << 20;

/// Checks that a view may be stored: it parses, and contains only allowed tags.
///
/// # Errors
/// The mistake, and its position.
pub fn check(content: &str) -> Result<(), Refusal> {
    rules::check(content)?;
    let parsed = Environment::empty().template_from_str(content).map(|_| ());
    parsed.map_err(|error| Refusal::of(&error, content))
}

/// Checks that a view's page, rendered with each of its samples, loses nothing: it has only allowed content. A component of
/// pages is rendered as the first page is; one that cannot be rendered is checked where a page shows it.
///
/// # Errors
/// The content that would be removed, and its position.
pub fn check_page(name: &str, content: &str) -> Result<(), Refusal> {
    let (views, _) = Views::new(Language::English, [(name.to_owned(), content.to_owned())]);
    let sampled = shipped::content(name).map_or("SignIn", |_| name);
    let pages =
        shipped::samples(sampled).into_iter().filter_map(|(_, context)| views.render(name, &context).ok());
    let Some(removed) = pages.flat_map(|page| page.removed).next() else { return Ok(()) };
    let detail = format!("a page must not have {removed} here; docs/views.md lists what pages may have");
    Err(Refusal::at(offset_of(&removed, content), content, detail))
}

/// The offset of the first occurrence of an element, or of an attribute of one, in a view.
fn offset_of(removed: &str, content: &str) -> usize {
    let (element, attribute) = removed.split_once(' ').unwrap_or((removed, ""));
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
    let mut members = Vec::new();
    for tag in tags::tags(source).unwrap() {
        let tokens: Vec<_> = tag.tokens.iter().map(|(_, token)| *token).collect();
        for (index, token) in tokens.iter().enumerate() {
            if *token == Word(name) {
                match &tokens[index + 1..] {
                    [Symbol('.'), Word(part), Symbol('.'), Word(key), ..] => {
                        members.push(((*part).to_owned(), Some((*key).to_owned())));
                    }
                    [Symbol('.'), Word(part), Symbol('['), ..] => members.push(((*part).to_owned(), None)),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    members
}

#[cfg(test)]
mod tests;
