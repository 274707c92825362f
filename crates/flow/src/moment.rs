//! The form of a time in a sealed flow: its milliseconds.

use chancery_record::Timestamp;
use serde::{Deserialize, Serialize};

/// The form of a [`Timestamp`] in a flow. The type itself has none, because resources write times as text.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Timestamp")]
pub struct Moment(i64);
