//! What is done in the background.

pub mod count;
pub mod health;
pub mod ledger;
pub mod mail;
pub mod prune;
pub mod purge;
pub mod revoke;
pub mod trust;
