//! The peers that the server is compared with: a bare HTTP server, and each engine alone.

pub mod bare;
pub mod changes;
pub mod postgres;
pub mod rows;
pub mod sqlite;
