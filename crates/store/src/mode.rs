//! How an operation uses the database, and its priority.

/// The access mode of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A short read: on SQLite it runs on the calling worker, in some microseconds, in one snapshot; on
    /// PostgreSQL statements that are sent together each see the state committed when they begin, in order.
    Quick,
    /// A long read: on SQLite it runs on one of a fixed number of threads.
    Long,
    /// A write.
    Write,
    /// A write that advances the security epoch. On PostgreSQL one runs at a time: of two that run at once, one would fail by
    /// the commit of the other and have to be repeated.
    WriteRights,
}

impl Mode {
    /// Whether the operation may change data.
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::WriteRights)
    }
}

/// The priority class of an operation under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Tokens and rights, on which everything else depends.
    Urgent,
    /// All others.
    Ordinary,
    /// Long lists, batches and synchronization: they get at most half of the lanes.
    Heavy,
    /// The server's own work: it has its own connections and is never refused for load.
    Background,
}
