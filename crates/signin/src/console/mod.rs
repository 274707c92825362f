//! Sign-ins to the console: its client app is built in, and its sessions refer to a person and a sign-in session.
//! There is no token.

pub mod entry;
pub mod preference;
pub mod session;
pub mod setup_link;
