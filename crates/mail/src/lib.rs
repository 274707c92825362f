//! Mail: an operation queues it within its own transaction ([`enqueue`]), a job sends it later
//! ([`deliver_due`]).
//!
//! No operation waits for a mail server, and no committed mail is lost. A mail is sent again only when it is
//! not known whether the server accepted it: the connection broke before the server's last reply, or this
//! process died before it recorded that reply. The second mail then has the `Message-ID` of the first, by
//! which receivers recognise a duplicate. At most one process sends a mail at any time: the one with its
//! lease.

mod capabilities;
mod compose;
mod config;
mod failure;
mod job;
mod outbox;
mod program;
mod send;
#[cfg(feature = "sink")]
pub mod sink;
mod template;
mod uppercase;

pub use config::{MailServer, is_valid};
pub use job::{ATTEMPTS, DeliveryReport, Open, ServerOf, Transport, deliver_due};
pub use outbox::{
    Counts, FIGURES, MailState, NewMail, associated_data, count, enqueue, expire, forget, mail_state, prune,
    take_back,
};
pub use template::{Kind, Language, RenderedMail, render};
