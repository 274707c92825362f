//! Authentication classes by name (`acr`).

use chancery_flow::Acr;

/// The names of the classes, ascending.
pub const ACR: [&str; 4] = [Acr::Sfa.name(), Acr::Mfa.name(), Acr::Phr.name(), Acr::Phrh.name()];

/// Whether a class is the demanded one or higher. `None` satisfies no class.
pub fn is_at_least(acr: Option<&str>, demanded: &str) -> bool {
    acr.and_then(Acr::named) >= Acr::named(demanded) && acr.is_some()
}

#[cfg(test)]
mod tests {
    use super::{ACR, is_at_least};

    #[test]
    fn a_class_includes_lower_classes() {
        for (at, class) in ACR.iter().enumerate() {
            for (other, demanded) in ACR.iter().enumerate() {
                assert_eq!(is_at_least(Some(class), demanded), at >= other, "{class} {demanded}");
            }
            assert!(!is_at_least(None, class) && !is_at_least(Some("x"), class));
        }
    }
}
