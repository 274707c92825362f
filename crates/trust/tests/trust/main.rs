//! Texts of the metadata service: FIDO's own, and those of the tests' service.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by it, and read as they are written"
)]

mod arbitrary;
mod entries;
mod real;
mod refused;
mod service;
