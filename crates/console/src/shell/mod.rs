//! What every page stands in: the request and its answer, who asks, the words, the directory of resources with how each is presented,
//! the navigation and the box that finds everything. Nothing here knows a page.

pub mod assets;
pub mod boxed;
pub mod call;
pub mod carried;
pub mod configured;
pub mod directory;
pub mod failure;
pub mod fields;
pub mod find;
pub mod forgery;
pub mod navigation;
pub mod need;
pub mod parts;
pub mod presentation;
pub mod proof;
pub mod refusal;
pub mod render;
pub mod session;
pub mod setting;
pub mod settings_access;
pub mod undo;
pub mod visit;
pub mod words;
