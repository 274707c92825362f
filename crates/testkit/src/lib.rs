//! A whole server in a test, on either engine, and callers of every kind.

#![expect(
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::disallowed_methods,
    reason = "for tests: a failure is a panic, and nothing here is an operation"
)]

mod client;
mod engine;
mod process;
mod world;

pub use client::{Answer, Client};
pub use engine::{Database, Engine};
pub use process::Process;
pub use world::{RoleRow, World, run};

/// Declares tests that run on both engines: each becomes a module with a test `sqlite` and a
/// test `postgres`.
#[macro_export]
macro_rules! on_both_engines {
    ($($(#[doc = $doc:literal])* async fn $name:ident($world:ident: World) $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports, reason = "a test may need nothing from around it")]
            use super::*;
            $(#[doc = $doc])*
            async fn test($world: $crate::World) $body
            #[test]
            fn sqlite() {
                $crate::run($crate::Engine::Sqlite, test);
            }
            #[test]
            fn postgres() {
                $crate::run($crate::Engine::Postgres, test);
            }
        }
    )*};
}
