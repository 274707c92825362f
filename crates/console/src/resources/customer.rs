//! Customers, with their subscriptions and tenants as a tree.

mod tree;

use crate::{
    pages::list,
    shell::{
        boxed::boxed,
        directory::Resource,
        presentation::{Answered, Page, Presentation},
        visit::Visit,
    },
};

/// How customers are presented.
pub static PRESENTATION: Presentation = Presentation {
    icon: "building-2",
    sorted: &[("name", "name")],
    pages: &[Page::at(&[]).get(|visit, resource, _| boxed(move || show(visit, resource)))],
    ..Presentation::STANDARD
};

/// The tree, or the list where the address asks for some of it.
async fn show(visit: &Visit<'_>, resource: &'static Resource) -> Answered {
    if tree::is_asked_for(visit) {
        boxed(|| tree::show(visit, resource)).await
    } else {
        boxed(|| list::show(visit, resource)).await
    }
}
