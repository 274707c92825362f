//! SCIM 2.0 (RFC 7643, RFC 7644) as pure rules over users and groups.
//!
//! Nothing here knows a clock, a table or HTTP. One table of attributes ([`USER`], [`GROUP`]) says for each [`Target`]
//! how an attribute is stored ([`Mapping`]). From it follow the discovery documents (`/Schemas`, `/ResourceTypes`), how
//! bodies are read ([`read_resource`]), which fields they write ([`fields_of`]), how fields are rendered ([`show()`]),
//! and the meaning of names in filters, `sortBy` and `attributes`.
//!
//! # PATCH
//!
//! [`Patch::read`] reads the operations, [`Patch::apply`] applies them in order to the current resource and
//! reports which attributes changed. Members of a group are not part of that resource: their changes are
//! reported as [`Members`], so that one of a million members is added without reading the others.
//!
//! | Request | Interpretation |
//! |---|---|
//! | `op` as Add, Replace, Remove; no `schemas` | any case; the URN is not required |
//! | no path, an object whose keys are names, paths or URNs | each key is read as a path |
//! | `"active": "False"`, `"primary": "True"` | a truth value, wherever one stands |
//! | `"active": [{"value": "False"}]` | a truth value, for this attribute alone |
//! | an element without a value | nothing, once all operations are done |
//! | `emails[type eq "work"].value` where there is none | the element is made; the first one is primary |
//! | `manager` as text, as `{value}`; `""` or null | set; cleared |
//! | remove `members` with a value array | those members, not all |
//! | remove `members` without value | all members; flagged ([`Members::emptied`]), since it may be a mistake |
//! | replace `members` with null, or without value | rejected |
//! | remove of what is not there | nothing |

mod document;
mod fields;
mod filter;
mod message;
mod name;
mod patch;
mod read;
mod schema;
mod select;
mod show;
mod token;

pub use document::{resource_types, schemas, service_provider_config};
pub use fields::{Fields, MAX_EXTRA_BYTES, entry_keys, fields_of, pointer_of};
pub use filter::{Condition, condition_of, sort_field};
pub use message::{ScimError, ScimType, as_filter_error, error_summary};
pub use patch::{MAX_OPERATIONS, Members, Patch, Patched, members_of};
pub use read::{MAX_ELEMENTS, Resource, read_resource};
pub use schema::{
    Attribute, AttributeType, GROUP, Mapping, Quirk, ResourceType, Returned, Schema, Target, USER,
};
pub use select::Selection;
pub use show::{StoredResource, show};
pub use token::{digest_of, token_of};
