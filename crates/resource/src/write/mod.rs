//! How rows are written: one way for one and for many.

pub mod batch;
pub mod change;
pub mod integrity;
pub mod pattern;
pub mod precheck;
pub mod relate;
pub mod values;
