//! Configuration as code (`docs/configuration-as-code.md`): rows of the interface become documents that name each other,
//! documents become a plan of the differences, and a plan becomes the calls that apply it. Nothing here does I/O.
//!
//! The kinds, their order and the keys of rows follow from the declarations of the resources.

mod calls;
mod change;
mod document;
mod export;
mod index;
mod kind;
mod left_out;
mod memory;
mod names;
mod plan;
mod resolve;
mod state;

pub use calls::{Call, adopt, batches, deletions, links, trials, without_effect};
pub use change::{Change, ChangeKind, Difference, Link, Plan};
pub use document::{Document, Problem, read_documents};
pub use export::export;
pub use kind::{Kind, Reference, Set, kinds};
pub use left_out::{LEFT_OUT, MEMBERS_LEFT_OUT};
pub use memory::Memory;
pub use plan::{PlanInput, plan};
pub use resolve::{secret_names, secret_of};
pub use state::{Row, State};
