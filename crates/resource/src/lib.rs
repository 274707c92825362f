//! The standard pattern of a resource: list, create, read, replace, patch, delete, batches and relations.
//! `change` and `deletion` write rows of resources, and `relate` writes links, each with an audit entry and an event.

mod audit;
mod declare;
mod outbound;
mod read;
mod seal;
pub mod settings;
mod sql;
mod work;
mod write;

pub use audit::compaction::{Compacted, compact_entries, count_entries_to_compact};
pub use audit::envelope::{envelope_schema, schema_of};
pub use audit::event::SignInEvent;
pub use audit::person::{is_personal, keys_of_persons, shows_persons};
pub use audit::read::{EntryPosition, next_leaf, read_entries, read_leaves, read_stray_entries};
pub use audit::tail::{Viewer, outgoing_of, streamed};
pub use audit::tree::{Tree, number, origin, with_nodes};
pub use audit::{delta, event::SIGN_INS, feed, proof as audit_proof, trail as audit_trail};
pub use chancery_store::{
    Error as StoreError, Figure, FigureSource, FigureUnit, Mode, Row, StateTable, Tx, Write, selectable,
};
#[doc(hidden)]
pub use constcat;
pub use declare::call::problem::{Problem, ProblemKind};
pub use declare::call::tail_cache::{Tail, TailEvent};
pub use declare::call::tails::Tails;
pub use declare::call::{
    Call,
    answer::Answer,
    app_context::{AppContext, Proofs},
    context::{Context, Provisioner},
    digest::{digest, etag},
    event_cursor::{EventCursor, TrailState},
    out::{Out, Part, Sink},
    preconditions::Preconditions,
    request::{Request, Unchanged},
    scope::{Scope, StoreScope},
};
pub use declare::custom::{Body, BodyForm, Custom, JsonForm, Reply, Run};
pub use declare::deletes::Deletion;
pub use declare::event_name::{EventName, EventType};
pub use declare::operation::{Action, Method, Op, Permit, RelationChange};
pub use declare::platform::{CONSOLE, MANAGEMENT_AUDIENCE, PLATFORM, ROOT, USER_STORE_AUDIENCE};
pub use declare::protection::{
    Authority, CarriedBy, CarriedRole, FindRoles, HeldRole, Lineage, Links, Protection,
};
pub use declare::query::{QueryForm, QueryParameter};
pub use declare::reach::Reach;
pub use declare::references::{Child, Owner, Parent, Unique};
pub use declare::relation::{Guard, LinkTable, Listed, MAX_RELATED, NestedFields, NewLinks, Pairs, Relation};
pub use declare::role::{ROLES, Role, RoleScope, RoleType, ScopeKind, other_role_condition, role_condition};
pub use declare::rules::{
    FieldFault, Findings, ProposedRow, ProvidedFields, Rules, ValidateRows, Violation, Writer,
};
pub use declare::service::Service;
pub use declare::shape::{Personal, Shape};
pub use declare::standard::{added, added_at, article};
pub use declare::stored_row::{OwnerRow, StoredRow};
pub use declare::writes::{AfterInsert, MAX_BATCH, Postcondition};
pub use outbound::metadata::{Fetch, FetchResult, ItemCache, MetadataSource};
pub use outbound::text_message::{SendText, TextMessage};
pub use outbound::webhook::{SendWebhook, WebhookOutcome, WebhookRequest};
pub use outbound::{OutboundRequest, OutboundResponse, SendOutbound};
pub use read::answer::{answer_form, answer_with, read_later, read_one, write_stored};
pub use read::answer_many::{represent, write_all};
pub use read::emit::{seen_value, shown_members};
pub use read::filter::{Expression, Literal, Operator, parse as parse_filter};
pub use read::list::{list_of, list_statement, list_where};
pub use read::load::{
    OnRow, add_beginning, find_owner, find_row, key_name, key_of, load, load_by, load_first, load_hidden,
    load_hidden_rows, load_keys, load_rows, load_statements, load_with_related, number_of, owner_of,
    select_beginning, select_by, select_key, select_of, select_where,
};
pub use read::page::MAX_COUNT;
pub use read::precondition::{check_if_match, token_in};
pub use read::refusals::{FindViolations, StoredViolation};
pub use read::rows::write_items;
pub use read::slice::{Slice, SlicePage, count_slice, load_slice};
pub use read::visible::visible;
pub use seal::compact::read_text;
pub use seal::cursor::CursorKey;
pub use seal::master_key::{MasterKey, SealingKey};
pub use seal::random::random;
pub use seal::sealed::{PersonKey, Persons, open_secret, personal_associated_data};
pub use seal::signer::{AuditKey, AuditSigner};
pub use sql::{LIST, Sql};
pub use work::fair_shares::{BoundedCounter, CountGuard, FairShares, LongReads, Share};
pub use work::pool::Pool;
pub use work::{Chunk, Purpose, Steps, Task, Work};
pub use write::change::{
    AuditAction, advance, audit_removal, audit_state, insert, insert_unaudited, update, update_unversioned,
};
pub use write::delete_rows::{delete_one, delete_rows};
pub use write::deletion::{delete, purge, purge_due, purged};
pub use write::integrity::check_postconditions;
pub use write::operation::{explain, finish, flush, read_form, run};
pub use write::pipeline::{Rows, Writing, change_row, create_row, write_bodies, write_rows};
pub use write::precheck::check_body;
pub use write::protect::check_act;
pub use write::relate::{RelationBody, check_listed, link, relate_rows, relink};
pub use write::reseal::{Resealed, SealedColumn};
pub use write::values::new_row;
