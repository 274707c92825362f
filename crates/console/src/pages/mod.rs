//! The pages: the pattern that serves all resources, once.

pub mod act;
pub mod batch;
pub mod delete;
pub mod find;
pub mod item;
pub mod list;
pub mod me;
pub mod navigation;
pub mod overview;
pub mod reference;
pub mod relate;
pub mod user;
