//! Mail: an operation queues it within its own transaction ([`enqueue`]), a job sends it later
//! ([`deliver_due`]).
//!
//! Nothing is sent inline, and nothing that was committed is lost. A mail is sent again only when
//! it is not known whether the server took it: the connection broke before the server's last word,
//! or this process died before it wrote down what that word was. The second mail then has the
//! `Message-ID` of the first, by which receivers fold the two. At most one process sends a mail at
//! any time; a lease says which.

mod compose;
mod config;
mod job;
mod outbox;
mod program;
mod send;
#[cfg(feature = "sink")]
pub mod sink;
mod template;

pub use config::{MailServer, is_valid};
pub use job::{ATTEMPTS, Carrier, Delivered, Open, ServerOf, deliver_due};
pub use outbox::{Counts, FIGURES, NewMail, count, enqueue, forget, place, prune};
pub use template::{Kind, Rendered, render};
