//! Writing rows: the same way for one and for many (`pipeline`). Its last step is `change`, which writes a row with its
//! audit entry and its event.

pub mod change;
pub mod delete_rows;
pub mod deletion;
pub mod elements;
pub mod failures;
pub mod integrity;
pub mod listed_ids;
pub mod operation;
pub mod pipeline;
pub mod precheck;
pub mod protect;
pub mod relate;
pub mod reseal;
pub mod setter;
pub mod values;
