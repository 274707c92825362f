//! The enumerations of a claim rule.

use std::ops::{BitAnd, BitOr};

/// Declares enumerations whose values are named as they are on the wire.
macro_rules! choices {
    ($($(#[doc = $about:literal])* $name:ident {
        $($(#[doc = $doc:literal])* $value:ident),+ $(,)?
    })+) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $doc])* $value),+ }
        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$value),+];
            /// The name of every value.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($value)),+];
            /// The value's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => stringify!($value)),+ }
            }
            /// The value of this name; case counts.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    )+};
}

choices! {
    /// What a rule does with the claims that it matches.
    RuleType {
        /// Forwards the claims.
        Filter,
        /// Forwards the claims rewritten.
        Transform,
        /// Adds a claim because of the claims.
        Add,
        /// Forwards the other claims.
        Remove,
    }
    /// Which part of a claim is matched or rewritten.
    Target {
        /// The type.
        ClaimType,
        /// The value.
        ClaimValue,
        /// The type and the value.
        ClaimTypeAndValue,
    }
    /// Where a claim goes.
    Destination {
        /// Into no token.
        None,
        /// Into the ID token.
        IdToken,
        /// Into the access token.
        AccessToken,
        /// Into both.
        IdTokenAndAccessToken,
    }
    /// Where a claim comes from.
    Source {
        /// From this installation.
        Platform,
        /// From the identity provider that the user signed in with.
        IdentityProvider,
    }
    /// Which claims a rule looks at.
    InputSource {
        /// All.
        All,
        /// Those of this installation.
        Platform,
        /// Those of the identity provider.
        IdentityProvider,
    }
    /// When a claim is put into a token.
    Disclosure {
        /// Always, requested or not.
        Always,
        /// When the client requests it.
        OnRequest,
    }
}

impl Destination {
    /// The destination as flags: 1 is the ID token, 2 the access token.
    pub const fn bits(self) -> u8 {
        match self {
            Self::None => 0,
            Self::IdToken => 1,
            Self::AccessToken => 2,
            Self::IdTokenAndAccessToken => 3,
        }
    }

    /// The destination with these flags; flags that [`Destination::bits`] does not have are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::None,
            1 => Self::IdToken,
            2 => Self::AccessToken,
            _ => Self::IdTokenAndAccessToken,
        }
    }
}

impl BitOr for Destination {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self::from_bits(self.bits() | other.bits())
    }
}

impl BitAnd for Destination {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self::from_bits(self.bits() & other.bits())
    }
}

impl InputSource {
    /// Whether a rule with this input source looks at claims of `source`.
    pub const fn includes(self, source: Source) -> bool {
        matches!(
            (self, source),
            (Self::All, _)
                | (Self::Platform, Source::Platform)
                | (Self::IdentityProvider, Source::IdentityProvider)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Destination, InputSource, RuleType, Source, Target};

    #[test]
    fn names_are_those_of_the_wire() {
        assert_eq!(RuleType::NAMES, ["Filter", "Transform", "Add", "Remove"]);
        assert_eq!(Target::parse("ClaimTypeAndValue"), Some(Target::ClaimTypeAndValue));
        assert_eq!(Target::parse("claimtype"), None);
        for one in Destination::ALL {
            assert_eq!(Destination::parse(one.name()), Some(*one));
            assert_eq!(Destination::from_bits(one.bits()), *one);
        }
    }

    #[test]
    fn destinations_are_flags() {
        use Destination::{AccessToken, IdToken, IdTokenAndAccessToken, None};
        assert_eq!(IdToken | AccessToken, IdTokenAndAccessToken);
        assert_eq!(IdToken & AccessToken, None);
        assert_eq!(IdTokenAndAccessToken & AccessToken, AccessToken);
        assert_eq!(None | IdToken, IdToken);
    }

    #[test]
    fn all_looks_at_both_sources() {
        for source in Source::ALL {
            assert!(InputSource::All.includes(*source));
        }
        assert!(!InputSource::Platform.includes(Source::IdentityProvider));
        assert!(!InputSource::IdentityProvider.includes(Source::Platform));
    }
}
