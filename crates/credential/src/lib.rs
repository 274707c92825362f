//! Passwords, one-time codes and login attempts as pure rules: hashing and verification, password
//! policy, and lockout.
//!
//! This crate does no I/O and reads no clock. [`hash`] and [`policy`] are slow on purpose or by
//! nature: call them where blocking is allowed, in a bounded pool.

mod advice;
mod blocklist;
mod form;
pub mod hash;
pub mod lockout;
mod password_owner;
pub mod policy;
pub mod totp;
pub mod typed;

pub use password_owner::PasswordOwner;

/// The longest password, in bytes of UTF-8: a longer one is never set and never right, so that the work of a
/// request is bounded. 128 characters, the default of PasswordMaxLength, are at most 512 bytes.
pub const MAX_PASSWORD_BYTES: usize = 1024;
