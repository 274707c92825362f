//! How a moment travels in a sealed flow: as its milliseconds.

use chancery_record::Timestamp;
use serde::{Deserialize, Serialize};

/// The form of a [`Timestamp`] in a flow. The type itself has none, because resources write moments as text.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Timestamp")]
pub struct Moment(i64);
