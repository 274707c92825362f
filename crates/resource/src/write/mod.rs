//! How rows are written: one way for one and for many (`pipeline`), whose last step is `change`, the one
//! place that writes a resource's row together with its audit entry and its event.

pub mod change;
pub mod elements;
pub mod failures;
pub mod integrity;
pub mod operation;
pub mod pipeline;
pub mod precheck;
pub mod relate;
pub mod removal;
pub mod values;
pub mod words;
