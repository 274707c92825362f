//! The contract, tested through HTTP on both engines: see `contract/main.rs`.
