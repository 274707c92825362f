//! Whether this process tells others anything: the one gate in front of mails, texts, events, hooks and sign-outs.

use std::{fmt, sync::Arc};

/// Whether this process tells others anything. A copy of an installation must not: whoever gets its mails, events and
/// sign-outs would get them twice. What only reads, such as the keys of a client app, needs no permission.
#[derive(Clone, Debug, Default)]
pub enum Outbound {
    /// It does.
    #[default]
    On,
    /// It does not, since it was configured so.
    Off,
    /// It does not, since the database is a copy of an installation's.
    Copy(
        /// By what that was noticed, as a sentence.
        Arc<str>,
    ),
}

/// The permission to tell others something, which [`Outbound::permission`] alone gives: whoever sends takes one, so that no
/// sender can forget to ask.
#[derive(Clone, Copy, Debug)]
pub struct Permission(());

/// Why others are told nothing, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quiet(String);

impl fmt::Display for Quiet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Quiet {}

impl Outbound {
    /// The permission to tell others something.
    ///
    /// # Errors
    /// [`Quiet`]: it is off.
    pub fn permission(&self) -> Result<Permission, Quiet> {
        match self {
            Self::On => Ok(Permission(())),
            Self::Off => Err(Quiet("Outbound traffic is off: CHANCERY_OUTBOUND says so.".to_owned())),
            Self::Copy(why) => Err(Quiet(format!(
                "Outbound traffic is off: this is a copy of an installation. {why} `chancery adopt` makes it an installation of \
                 its own."
            ))),
        }
    }

    /// Whether the database is a copy of an installation's.
    pub const fn is_copy(&self) -> bool {
        matches!(self, Self::Copy(_))
    }

    /// Whether others are told nothing.
    pub const fn is_off(&self) -> bool {
        !matches!(self, Self::On)
    }
}

#[cfg(test)]
mod tests {
    use super::Outbound;

    #[test]
    fn permission_is_given_only_where_outbound_traffic_is_on() {
        assert!(Outbound::On.permission().is_ok() && !Outbound::On.is_off());
        let copy = Outbound::Copy("The file is another.".into());
        assert!(copy.permission().unwrap_err().to_string().contains("The file is another."));
        assert!(copy.is_copy() && copy.is_off());
        assert!(Outbound::Off.permission().unwrap_err().to_string().contains("CHANCERY_OUTBOUND"));
        assert!(!Outbound::Off.is_copy() && Outbound::Off.is_off());
    }
}
