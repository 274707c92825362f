//! The state of a trial: it carries all that its response is validated with, so that nothing is stored.

use chancery_record::{Timestamp, Uuid};

/// A trial of a provider that is under way. The caller encrypts the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialState {
    /// The instance under trial.
    pub instance: Uuid,
    /// The administrator of the trial, who alone can complete it.
    pub actor: Uuid,
    /// The expiry.
    pub until: Timestamp,
    /// The seed of nonce and verifier. It identifies the state, which can be used once.
    pub seed: [u8; 16],
    /// The path of the callback.
    pub path: String,
}

impl TrialState {
    /// The label for the encryption.
    pub const LABEL: &'static str = "idp-instance-trial";

    /// The serialized state.
    pub fn to_bytes(&self) -> Vec<u8> {
        let ids = [*self.instance.as_bytes(), *self.actor.as_bytes(), self.seed];
        [ids.as_flattened(), &self.until.0.to_be_bytes(), self.path.as_bytes()].concat()
    }

    /// Reads a serialized state.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (ids, rest) = bytes.split_at_checked(48)?;
        let (until, path) = rest.split_first_chunk::<8>()?;
        let id = |at: usize| ids.get(at..at + 16)?.try_into().ok();
        Some(Self {
            instance: Uuid::from_bytes(id(0)?),
            actor: Uuid::from_bytes(id(16)?),
            seed: id(32)?,
            until: Timestamp(i64::from_be_bytes(*until)),
            path: String::from_utf8(path.to_vec()).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use chancery_record::{Timestamp, Uuid};

    use super::TrialState;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let state = TrialState {
            instance: Uuid::from_u128(1),
            actor: Uuid::from_u128(2),
            until: Timestamp(3),
            seed: [4; 16],
            path: "/callback".to_owned(),
        };
        let bytes = state.to_bytes();
        assert_eq!(TrialState::read(&bytes), Some(state));
        for length in 0..56 {
            assert_eq!(TrialState::read(&bytes[..length]), None);
        }
    }
}
