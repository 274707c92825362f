//! What the server is measured against: a bare HTTP server, and each engine used alone.

pub mod bare;
pub mod changes;
pub mod postgres;
pub mod rows;
pub mod sqlite;
