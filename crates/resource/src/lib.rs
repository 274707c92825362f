//! The standard pattern of a resource, said once: what list, create, read, replace, patch,
//! delete, batches and relations mean; and `change`, the one place that writes a resource's row
//! together with its audit entry and its event.

mod batch;
mod call;
mod change;
mod cursor;
mod emit;
mod filter;
mod filter_sql;
mod list;
mod nested;
mod op;
mod page;
mod pattern;
mod problem;
mod relate;
mod seal;
mod shape;
mod sql;

pub use batch::MAX_BATCH;
pub use call::{Answer, Call, Desk, Preconditions, Scope, StoreScope, etag, random};
pub use change::bootstrap_insert;
pub use cursor::CursorKey;
pub use emit::{Out, Part, Sink};
pub use filter::{Expression, Operator, parse as parse_filter};
pub use list::list_where;
pub use op::{Action, Custom, Method, Op, Permit, Relating, Reply, Run, Service};
pub use page::MAX_COUNT;
pub use pattern::{find_row, read_later, read_one, run, select_by};
pub use problem::{Problem, ProblemKind};
pub use relate::MAX_RELATED;
pub use seal::{AuditKey, Seal};
pub use shape::{Deletion, Guard, Owner, Reach, Relation, Rules, Said, Shape, Unique};
pub use sql::Sql;
