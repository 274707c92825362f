//! Classes of authentication, by their names.

use chancery_flow::Acr;

/// The names of the classes, ascending.
pub const ACR: [&str; 4] = [Acr::Sfa.name(), Acr::Mfa.name(), Acr::Phr.name(), Acr::Phrh.name()];

/// Whether a class is the one that is demanded, or above it. None is none of them.
pub fn is_at_least(acr: Option<&str>, demanded: &str) -> bool {
    acr.and_then(Acr::named) >= Acr::named(demanded) && acr.is_some()
}

#[cfg(test)]
mod tests {
    use super::{ACR, is_at_least};

    #[test]
    fn a_class_holds_those_below() {
        for (at, class) in ACR.iter().enumerate() {
            for (other, demanded) in ACR.iter().enumerate() {
                assert_eq!(is_at_least(Some(class), demanded), at >= other, "{class} {demanded}");
            }
            assert!(!is_at_least(None, class) && !is_at_least(Some("x"), class));
        }
    }
}
