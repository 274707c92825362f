//! The kinds of configuration documents, and who may see them.

use std::sync::LazyLock;

use chancery_configuration::{Kind, kinds};
use chancery_management::SERVICE;
use chancery_resource::{Action, Op};

use super::visit::Visit;

/// The path of the configuration page.
pub const PATH: &str = "/console/configuration";

/// The kinds of configuration documents.
pub static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds(&SERVICE.all().collect::<Vec<_>>()));

/// The operations that list these kinds.
static LISTS: LazyLock<Vec<&'static Op>> = LazyLock::new(|| KINDS.iter().filter_map(list).collect());

/// The operation that lists a kind.
pub fn list(kind: &Kind) -> Option<&'static Op> {
    SERVICE.all().find(|op| op.path == kind.path && matches!(op.action, Action::List))
}

/// Whether the user may list at least one kind.
pub fn is_offered(visit: &Visit<'_>) -> bool {
    LISTS.iter().any(|op| visit.may(Some(op)).is_some())
}
