//! The pages: the standard pages of all resources, and pages that belong to no resource. Nothing here depends on the
//! presentation of a resource.

pub mod act;
pub mod all_settings;
pub mod batch;
pub mod batch_lookup;
pub mod cells;
pub mod choices;
pub mod configuration;
pub mod delete;
pub mod deleted;
pub mod difference;
pub mod first_sign_in;
pub mod form;
pub mod group_cycle;
pub mod health;
pub mod history;
pub mod item;
pub mod list;
pub mod me;
pub mod new;
pub mod overview;
pub mod owned;
pub mod readiness;
pub mod reference;
pub mod relate;
pub mod review;
pub mod rights;
pub mod set_by_other;
pub mod settings;
pub mod setup;
pub mod sidebar;
pub mod steps;
pub mod user_agent;
pub mod welcome;
