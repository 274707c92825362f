//! The lifecycle of a client app's key set.

use chancery_record::Timestamp;

/// The status of a key set in its lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeySetStatus {
    /// Not yet in use.
    Pending,
    /// In use.
    Active,
    /// Still in use while its successor takes over.
    Retiring,
    /// Ended regularly.
    Retired,
    /// Ended because it is no longer trusted.
    Revoked,
}

impl KeySetStatus {
    /// All statuses; the index is the number in version 1.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Active, Self::Retiring, Self::Retired, Self::Revoked];

    /// The status's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Active => "Active",
            Self::Retiring => "Retiring",
            Self::Retired => "Retired",
            Self::Revoked => "Revoked",
        }
    }

    /// The status with a name; case is ignored.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name().eq_ignore_ascii_case(name))
    }

    /// Whether a transition to another status is allowed: step by step to Retired, and to Revoked before the end. The
    /// same status is always allowed.
    pub fn can_transition_to(self, next: Self) -> bool {
        use KeySetStatus::{Active, Pending, Retired, Retiring, Revoked};
        self == next
            || matches!(
                (self, next),
                (Pending, Active)
                    | (Active, Retiring)
                    | (Retiring, Retired)
                    | (Pending | Active | Retiring, Revoked)
            )
    }

    /// Whether keys with this status and validity can be used now. They are valid from `valid_from`, and before `valid_to`.
    pub fn is_usable(
        self,
        valid_from: Option<Timestamp>,
        valid_to: Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        matches!(self, Self::Active | Self::Retiring)
            && valid_from.is_none_or(|from| from.0 <= now.0)
            && valid_to.is_none_or(|to| now.0 < to.0)
    }
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;
    use proptest::{collection::vec, option, prelude::*, sample::select};

    use super::KeySetStatus;

    #[test]
    fn only_the_listed_transitions_are_allowed() {
        let mut transitions = Vec::new();
        for from in KeySetStatus::ALL {
            let next =
                KeySetStatus::ALL.into_iter().filter(|next| *next != from && from.can_transition_to(*next));
            transitions.extend(next.map(|next| format!("{}>{}", from.name(), next.name())));
        }
        let listed = [
            "Pending>Active",
            "Pending>Revoked",
            "Active>Retiring",
            "Active>Revoked",
            "Retiring>Retired",
            "Retiring>Revoked",
        ];
        assert_eq!(transitions, listed);
        assert_eq!(KeySetStatus::named("retiring"), Some(KeySetStatus::Retiring));
        assert_eq!(KeySetStatus::named("Gone"), None);
    }

    proptest! {
        /// A status never goes back, and Retired and Revoked are final.
        #[test]
        fn transitions_never_go_back(targets in vec(select(KeySetStatus::ALL.to_vec()), 0..40)) {
            let mut status = KeySetStatus::Pending;
            for target in targets {
                if !status.can_transition_to(target) {
                    continue;
                }
                prop_assert!(target as u8 >= status as u8);
                prop_assert!(target == status || !matches!(status, KeySetStatus::Retired | KeySetStatus::Revoked));
                status = target;
            }
        }

        #[test]
        fn keys_are_usable_only_while_valid(
            status in select(KeySetStatus::ALL.to_vec()),
            from in option::of(0_i64..100),
            to in option::of(0_i64..100),
            now in 0_i64..100,
        ) {
            let usable = status.is_usable(from.map(Timestamp), to.map(Timestamp), Timestamp(now));
            let inside = (from.unwrap_or(0)..to.unwrap_or(100)).contains(&now);
            prop_assert_eq!(usable, inside && matches!(status, KeySetStatus::Active | KeySetStatus::Retiring));
        }
    }
}
