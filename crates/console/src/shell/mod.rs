//! Infrastructure of all pages: request and response, session, texts, the directory of resources with their
//! presentations, navigation and search. Nothing here depends on a page.

pub mod assets;
pub mod boxed;
pub mod call;
pub mod components;
pub mod configuration_kinds;
pub mod directory;
pub mod error_translation;
pub mod failure;
pub mod fields;
pub mod find;
pub mod forgery;
pub mod navigation;
pub mod permission;
pub mod presentation;
pub mod reauthentication;
pub mod render;
pub mod role_protection;
pub mod session;
pub mod setting;
pub mod settings_access;
pub mod undo;
pub mod visit;
pub mod words;
