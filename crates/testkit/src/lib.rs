//! A complete server in a test, on either engine, with callers of every kind.

#![expect(
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::disallowed_methods,
    reason = "for tests: a failure is a panic, and nothing here is an operation"
)]

pub mod catalogue;
mod client;
mod engine;
mod process;
mod proxy;
mod receiver;
mod server_config;
mod task;
mod template;
mod translations;
mod world;

pub use client::{Answer, Client, EventStream, StreamedEvent};
pub use engine::{Database, Engine};
pub use process::{Process, SECRET};
pub use proxy::{Cut, Proxy, TlsAnswer};
pub use receiver::{Received, Receiver};
pub use server_config::ROOT_SECRET;
pub use task::{spawn, spawn_blocking};
pub use world::{RoleRow, Test, World, no_arguments, one_address, run_with};

/// How long a test waits for an expected state, before it fails. A machine that does other work is slow, and tests do
/// not measure it; cargo-nextest ends tests that take longer still (`.config/nextest.toml`).
pub const PATIENCE: std::time::Duration = std::time::Duration::from_mins(3);

/// Declares tests that run on both engines: each becomes a module with a test `sqlite` and a
/// test `postgres`. A function in brackets before them returns further arguments of the server's
/// command line; it gets the folder of the server's files.
#[macro_export]
macro_rules! on_both_engines {
    ([$words:path] $($(#[doc = $doc:literal])* async fn $name:ident($world:ident: World) $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports, reason = "a test may need nothing from around it")]
            use super::*;
            $(#[doc = $doc])*
            async fn test($world: $crate::World) $body
            #[test]
            fn sqlite() {
                $crate::run_with($crate::Engine::Sqlite, $words, |world| Box::pin(test(world)));
            }
            #[test]
            fn postgres() {
                $crate::run_with($crate::Engine::Postgres, $words, |world| Box::pin(test(world)));
            }
        }
    )*};
    ($($tests:tt)*) => {
        $crate::on_both_engines! { [$crate::no_arguments] $($tests)* }
    };
}

/// Declares tests of limits over time, on SQLite: each with arguments of the server's command line, and with a clock that
/// stands still. Otherwise a limit would allow more attempts while a slow machine works.
#[macro_export]
macro_rules! with_stopped_clock {
    ($($(#[doc = $doc:literal])* [$($word:literal),*] async fn $name:ident($world:ident: World) $body:block)*) => {$(
        $(#[doc = $doc])*
        #[test]
        fn $name() {
            async fn test($world: $crate::World) $body
            let words = |_: &std::path::Path| [$($word),*].map(str::to_owned).to_vec();
            $crate::run_with($crate::Engine::Sqlite, words, |world| {
                world.app.clock.stop();
                Box::pin(test(world))
            });
        }
    )*};
}
