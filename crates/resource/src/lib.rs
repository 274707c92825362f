//! The standard pattern of a resource, said once: what list, create, read, replace, patch,
//! delete, batches and relations mean; and `change`, the one place that writes a resource's row
//! together with its audit entry and its event.

mod answer;
pub mod audit_proof;
mod audit_read;
pub mod audit_trail;
mod audit_tree;
mod audit_write;
mod batch;
mod call;
mod change;
mod condition;
mod cursor;
mod custom;
mod emit;
mod family;
mod filter;
mod filter_sql;
mod kin;
mod list;
mod load;
mod master;
mod metadata;
mod nested;
mod op;
mod page;
mod pattern;
mod person;
mod plan;
mod platform;
mod precheck;
mod problem;
mod reach;
mod relate;
mod relation;
mod role;
mod rules;
mod seal;
mod sealed;
mod service;
mod shape;
mod sql;
mod standard;
mod values;
mod work;

pub use answer::{answer_form, answer_with, read_later, read_one, write_stored};
pub use audit_read::{Placed, next_leaf, read_entries, read_leaves, read_strays};
pub use audit_tree::{Tree, number, origin, with_nodes};
pub use batch::{MAX_BATCH, Taking, load_keys, represent, write as write_batch};
pub use call::{Answer, Call, Desk, Hashing, Proofs, Scope, StoreScope, digest, etag, random};
pub use change::{OwnerRow, Telling, advance, amend, append, delete, gone, insert, purge, purge_due, update};
pub use condition::{Preconditions, check_if_match, token_in};
pub use cursor::CursorKey;
pub use custom::{Body, BodyForm, Custom, JsonForm, Reply, Run};
pub use emit::{Out, Part, Sink, Stored, seen_value};
pub use family::visible;
pub use filter::{Expression, Operator, parse as parse_filter};
pub use kin::{Child, Owner, Parent, Unique};
pub use list::{list_of, list_statement, list_where, write_items};
pub use load::{
    find_owner, find_row, key_name, key_of, load, load_by, load_first, load_hidden, load_hidden_rows,
    load_rows, owner_of, select_by, select_of, select_where,
};
pub use master::{MasterKey, SealingKey};
pub use metadata::{Fetch, Fetched, Memory, MetadataSource};
pub use op::{Action, Method, Op, Permit, Relating};
pub use page::MAX_COUNT;
pub use pattern::{change_one, create, read_form, run};
pub use person::{is_personal, keys_of_persons, shows_persons};
pub use platform::{MANAGEMENT_AUDIENCE, PLATFORM, ROOT, USER_STORE_AUDIENCE};
pub use precheck::check_body;
pub use problem::{Problem, ProblemKind};
pub use reach::Reach;
pub use relate::{MAX_RELATED, Speaking, relate_body};
pub use relation::{Guard, Listed, Relation};
pub use role::{ROLES, Role, RoleScope, RoleType, ScopeKind, role_condition};
pub use rules::{Against, Breach, Proposed, Rules, Said};
pub use seal::{AuditKey, Seal};
pub use sealed::{PersonKey, Persons, open_secret};
pub use service::Service;
pub use shape::{Afterwards, Born, Deletion, Personal, Shape};
pub use sql::{LIST, Sql};
pub use standard::{added, added_at};
pub use values::new_row;
pub use work::{Piece, Purpose, Task, Work};
