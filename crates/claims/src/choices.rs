//! The enumerations of a claim rule.

use std::ops::{BitAnd, BitOr};

/// Declares enumerations whose values have their wire names.
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
            /// The value with a name. Names are case-sensitive.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    )+};
}

choices! {
    /// The effect of a rule on the claims that it matches.
    RuleType {
        /// Forwards the claims.
        Filter,
        /// Forwards the claims rewritten.
        Transform,
        /// Adds a claim if a claim matches.
        Add,
        /// Forwards the other claims.
        Remove,
    }
    /// The part of a claim that is matched or rewritten.
    Target {
        /// The type.
        ClaimType,
        /// The value.
        ClaimValue,
        /// The type and the value.
        ClaimTypeAndValue,
    }
    /// The tokens that contain a claim.
    Destination {
        /// No token.
        None,
        /// The ID token.
        IdToken,
        /// The access token.
        AccessToken,
        /// Both tokens.
        IdTokenAndAccessToken,
    }
    /// The origin of a claim.
    Source {
        /// This installation.
        Platform,
        /// The identity provider that the user signed in with.
        IdentityProvider,
    }
    /// The claims that a rule processes.
    InputSource {
        /// All claims.
        All,
        /// Claims of this installation.
        Platform,
        /// Claims of the identity provider.
        IdentityProvider,
    }
    /// The condition for including a claim in a token.
    Disclosure {
        /// Always, requested or not.
        Always,
        /// Only if the client requests it.
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
    /// Whether a rule with this input source processes claims of `source`.
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
    fn names_are_wire_names() {
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
    fn input_source_all_includes_both_sources() {
        for source in Source::ALL {
            assert!(InputSource::All.includes(*source));
        }
        assert!(!InputSource::Platform.includes(Source::IdentityProvider));
        assert!(!InputSource::IdentityProvider.includes(Source::Platform));
    }
}
