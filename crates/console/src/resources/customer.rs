//! Customers, with their subscriptions and tenants as a tree.

mod tree;

use crate::{
    pages::list,
    shell::{
        boxed::boxed,
        directory::Resource,
        presentation::{Page, PageResult, Presentation},
        visit::Visit,
    },
};

/// Presentation of customers.
pub static PRESENTATION: Presentation = Presentation {
    icon: "building-2",
    sorted: &[("name", "name")],
    pages: &[Page::at(&[]).get(|visit, resource, _| boxed(move || show(visit, resource)))],
    ..Presentation::STANDARD
};

/// The tree, or the list if the URL contains a filter.
async fn show(visit: &Visit<'_>, resource: &'static Resource) -> PageResult {
    if tree::is_requested(visit) {
        boxed(|| tree::show(visit, resource)).await
    } else {
        boxed(|| list::show(visit, resource)).await
    }
}
