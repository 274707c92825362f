//! A sign-in in progress: its data and facts, the due step, and the response to the browser.

mod apply_event;
pub mod authorization_response;
mod client;
pub mod context;
pub mod page_action;
pub mod page_name;
pub mod page_redirect;
pub mod pending_flow;
pub mod person_facts;
pub mod response;
pub mod sign_in_transaction;
mod step;
