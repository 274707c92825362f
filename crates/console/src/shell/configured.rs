//! What documents of the configuration are about: the kinds, and who sees some of them.

use std::sync::LazyLock;

use chancery_configuration::{Kind, kinds};
use chancery_management::SERVICE;
use chancery_resource::{Action, Op};

use super::visit::Visit;

/// The address of the page of the configuration.
pub const HERE: &str = "/console/configuration";

/// The kinds of the configuration.
pub static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds(&SERVICE.all().collect::<Vec<_>>()));

/// The operations that list them.
static LISTS: LazyLock<Vec<&'static Op>> = LazyLock::new(|| KINDS.iter().filter_map(list).collect());

/// The operation that lists a kind.
pub fn list(kind: &Kind) -> Option<&'static Op> {
    SERVICE.all().find(|op| op.path == kind.path && matches!(op.action, Action::List))
}

/// Whether the person sees something of the configuration.
pub fn is_offered(visit: &Visit<'_>) -> bool {
    LISTS.iter().any(|op| visit.may(Some(op)).is_some())
}
