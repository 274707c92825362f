//! Whether a store can serve, as last observed.

/// Whether a store can serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Health {
    /// The store can serve.
    Ready,
    /// The database does not answer.
    Unavailable,
    /// The database accepts no writes.
    ReadOnly,
    /// The database's clock is far from this server's.
    Clock,
}

impl Health {
    pub(crate) const fn of(number: u8) -> Self {
        match number {
            0 => Self::Ready,
            2 => Self::ReadOnly,
            3 => Self::Clock,
            _ => Self::Unavailable,
        }
    }

    /// The name of the state, for logs and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Unavailable => "unavailable",
            Self::ReadOnly => "read-only",
            Self::Clock => "clock",
        }
    }
}
