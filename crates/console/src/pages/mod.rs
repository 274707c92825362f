//! The pages: those that serve all resources, once, and those that are about no resource. Nothing here knows how one resource is
//! presented.

pub mod act;
pub mod agent;
pub mod all_settings;
pub mod aside;
pub mod batch;
pub mod cells;
pub mod choices;
pub mod circle;
pub mod configuration;
pub mod delete;
pub mod deleted;
pub mod difference;
pub mod first_sign_in;
pub mod form;
pub mod health;
pub mod history;
pub mod item;
pub mod list;
pub mod look_up;
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
pub mod steps;
pub mod welcome;
