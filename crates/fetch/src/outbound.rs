//! Whether outbound traffic is enabled: the one check before mails, text messages, events, hooks and back-channel logouts.

use std::{fmt, sync::Arc};

/// Whether outbound traffic is enabled. It is disabled on a copy of an installation, because its mails, events and back-channel
/// logouts would be sent twice. Requests that only read, such as those for the keys of a client app, need no permission.
#[derive(Clone, Debug, Default)]
pub enum Outbound {
    /// Enabled.
    #[default]
    On,
    /// Disabled by the configuration.
    Off,
    /// Disabled, because the database is a copy of an installation's.
    Copy(
        /// How the copy was detected, as a sentence.
        Arc<str>,
    ),
}

/// The permission to send something to other systems. Only [`Outbound::permission`] creates one, and every function that sends takes
/// one, so that no sender can omit the check.
#[derive(Clone, Copy, Debug)]
pub struct Permission(());

/// Why outbound traffic is disabled, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundDisabled(String);

impl fmt::Display for OutboundDisabled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for OutboundDisabled {}

impl Outbound {
    /// The permission to send something to other systems.
    ///
    /// # Errors
    /// [`OutboundDisabled`]: outbound traffic is disabled.
    pub fn permission(&self) -> Result<Permission, OutboundDisabled> {
        match self {
            Self::On => Ok(Permission(())),
            Self::Off => {
                Err(OutboundDisabled("Outbound traffic is off: CHANCERY_OUTBOUND says so.".to_owned()))
            }
            Self::Copy(why) => Err(OutboundDisabled(format!(
                "Outbound traffic is off: this is a copy of an installation. {why} `chancery adopt` makes it an installation of \
                 its own."
            ))),
        }
    }

    /// Whether the database is a copy of an installation's.
    pub const fn is_copy(&self) -> bool {
        matches!(self, Self::Copy(_))
    }

    /// Whether outbound traffic is disabled.
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
