//! Text that must not be disclosed.

use zeroize::Zeroizing;

/// A secret: it cannot be printed, serialised or compared in variable time, and its memory is wiped when it
/// is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of a secret.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// The secret itself. The name makes every use easy to find.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Compares in time that does not depend on the content.
    pub fn matches(&self, other: &[u8]) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.0, other).is_ok()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(hidden)")
    }
}
