//! The standard pattern of a resource: list, create, read, replace, patch, delete, batches and relations.
//! `change` is the only module that writes a resource's row, together with its audit entry and its event.

mod audit;
mod call;
mod declare;
mod read;
mod seal;
pub mod settings;
mod write;

pub use audit::envelope::{envelope_schema, schema_of};
pub use audit::event::SignInEvent;
pub use audit::person::{is_personal, keys_of_persons, shows_persons};
pub use audit::read::{EntryPosition, next_leaf, read_entries, read_leaves, read_stray_entries};
pub use audit::signer::{AuditKey, AuditSigner};
pub use audit::tail::{Tail, TailEvent, Viewer, outgoing_of, streamed};
pub use audit::tails::Tails;
pub use audit::tree::{Tree, number, origin, read_position, with_nodes};
pub use audit::{
    delta,
    event::SIGN_INS,
    event_cursor::{EventCursor, TrailState},
    feed, proof as audit_proof, trail as audit_trail,
};
pub use call::fair_shares::{BoundedCounter, CountGuard, FairShares, LongReads, Share};
pub use call::metadata::{Fetch, FetchResult, ItemCache, MetadataSource};
pub use call::outbound::{OutboundRequest, OutboundResponse, SendOutbound};
pub use call::pool::Pool;
pub use call::problem::{Problem, ProblemKind};
pub use call::text_message::{SendText, TextMessage};
pub use call::webhook::{SendWebhook, WebhookOutcome, WebhookRequest};
pub use call::work::{Chunk, Purpose, Task, Work};
pub use call::{
    Call,
    answer::Answer,
    app_context::{AppContext, Proofs},
    context::{Context, Provisioner},
    digest::{digest, etag},
    random::random,
    request::Request,
    scope::{Scope, StoreScope},
    work::Steps,
};
pub use chancery_store::{
    Error as StoreError, Figure, FigureSource, FigureUnit, Mode, Row, StateTable, Tx, Write,
};
#[doc(hidden)]
pub use constcat;
pub use declare::custom::{Body, BodyForm, Custom, JsonForm, Reply, Run};
pub use declare::deletes::Deletion;
pub use declare::operation::{Action, Method, Op, Permit, RelationChange};
pub use declare::platform::{CONSOLE, MANAGEMENT_AUDIENCE, PLATFORM, ROOT, USER_STORE_AUDIENCE};
pub use declare::protection::{
    Authority, CarriedBy, CarriedRole, FindRoles, HeldRole, Lineage, Links, Protection,
};
pub use declare::query::{QueryForm, QueryParameter};
pub use declare::reach::Reach;
pub use declare::references::{Child, Owner, Parent, Unique};
pub use declare::relation::{Guard, LinkTable, Listed, NestedFields, NewLinks, Relation};
pub use declare::role::{ROLES, Role, RoleScope, RoleType, ScopeKind, other_role_condition, role_condition};
pub use declare::rules::{
    FieldFault, Findings, ProposedRow, ProvidedFields, Rules, ValidateRows, Violation, Writer,
};
pub use declare::service::Service;
pub use declare::shape::{Personal, Shape};
pub use declare::standard::{added, added_at};
pub use declare::writes::{AfterInsert, MAX_BATCH, Postcondition};
pub use read::answer::{answer_form, answer_with, read_later, read_one, write_stored};
pub use read::answer_many::{represent, write_all};
pub use read::cursor::CursorKey;
pub use read::emit::{Out, Part, Sink, StoredRow, seen_value, shown_members};
pub use read::filter::{Expression, Literal, Operator, parse as parse_filter};
pub use read::list::{list_of, list_statement, list_where};
pub use read::load::{
    OnRow, add_beginning, find_owner, find_row, key_name, key_of, load, load_by, load_first, load_hidden,
    load_hidden_rows, load_keys, load_rows, load_statements, load_with_related, number_of, owner_of,
    select_beginning, select_by, select_key, select_of, select_where,
};
pub use read::page::MAX_COUNT;
pub use read::precondition::{Preconditions, check_if_match, token_in};
pub use read::refusals::{FindViolations, StoredViolation};
pub use read::rows::write_items;
pub use read::slice::{Slice, SlicePage, count_slice, load_slice};
pub use read::sql::{LIST, Sql};
pub use read::unchanged::Unchanged;
pub use seal::master_key::{MasterKey, SealingKey};
pub use seal::reseal::{Resealed, SealedColumn};
pub use seal::sealed::{PersonKey, Persons, open_secret, personal_associated_data};
pub use write::change::{
    AuditAction, OwnerRow, advance, audit_state, insert, insert_unaudited, update, update_unversioned,
};
pub use write::delete_rows::{delete_one, delete_rows};
pub use write::deletion::{delete, purge, purge_due, purged};
pub use write::integrity::{check_postconditions, visible};
pub use write::listed_ids::MAX_RELATED;
pub use write::operation::{explain, finish, flush, read_form, run};
pub use write::pipeline::{Rows, Writing, change_row, create_row, write_bodies, write_rows};
pub use write::precheck::check_body;
pub use write::protect::check_act;
pub use write::relate::{RelationBody, check_listed, link, relate_rows, relink};
pub use write::values::new_row;
