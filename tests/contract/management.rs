//! The management service: tenancy, instances, client apps and their resources.

mod by_tenants;
mod catalogue;
mod cert_store;
mod claim_rule;
mod client_app;
mod cross_rules;
mod effective_scopes;
mod instance;
mod levels;
mod option_targets;
mod pattern;
mod permission;
mod presentation;
mod rights;
mod roles;
mod tenancy;
mod trail;

use crate::resources::{BASE, one, related, type_id};
