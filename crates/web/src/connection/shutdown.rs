//! The stop of the server.

/// The stages of the server's stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShutdownStage {
    /// The server is not stopping.
    Open,
    /// It serves, and announces to clients that it will stop.
    Draining,
    /// It answers requests that have arrived, and no others.
    Closing,
}
