//! The kinds of external identity providers, and what each needs.

use chancery_resource::settings::Owner;
use serde_json::Value;

/// A kind of external identity provider.
pub struct Kind {
    /// Its name: that of the factory type. In the texts it follows `provider_`.
    pub name: &'static str,
    /// Its icon.
    pub icon: &'static str,
    /// The filter of the offered certificates; empty if the provider uses none.
    pub certificates: &'static str,
    /// Number of sentences that explain how to register this server there.
    pub sentences: usize,
}

/// The certificates for an OpenID provider: those whose keys sign and decrypt here.
const OPENID: &str = "certificateHasPrivateKey eq true and (certType eq \"OidcTokenSigning\" or certType eq \"OidcTokenEncryption\")";
/// The certificates whose keys sign here.
const SIGNING: &str = "certificateHasPrivateKey eq true and certType eq \"OidcTokenSigning\"";
/// The same, and those whose keys sign tokens of AD FS.
const ADFS: &str = "(certType eq \"AdfsOAuthTokenSigning\" or certificateHasPrivateKey eq true and certType eq \"OidcTokenSigning\")";

/// The kinds, in the order in which they are offered.
pub static KINDS: [Kind; 6] = [
    Kind { name: "OpenIdConnect", icon: "letter-o", certificates: OPENID, sentences: 3 },
    Kind { name: "Microsoft", icon: "letter-m", certificates: SIGNING, sentences: 4 },
    Kind { name: "Google", icon: "letter-g", certificates: "", sentences: 4 },
    Kind { name: "AdfsOAuth", icon: "letter-a", certificates: ADFS, sentences: 4 },
    Kind { name: "Facebook", icon: "letter-f", certificates: "", sentences: 4 },
    Kind { name: "Twitter", icon: "letter-x", certificates: "", sentences: 3 },
];

impl Kind {
    /// The names of the settings that an instance must have, in the order in which they are requested.
    pub fn settings(&self) -> impl Iterator<Item = &'static str> {
        let entries = Owner::of_type(self.name).into_iter().flat_map(Owner::entries);
        entries.filter(|entry| entry.mandatory).map(|entry| entry.name)
    }
}

/// The kind of this name.
pub fn named(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The kind of an instance; none of a user store.
pub fn of_row(row: &Value) -> Option<&'static Kind> {
    row["idpFactoryType"].as_str().and_then(named)
}

#[cfg(test)]
mod tests {
    use super::KINDS;
    use crate::shell::words::Words;

    /// The texts of each kind say where its mandatory settings are found.
    #[test]
    fn each_kind_says_where_its_mandatory_settings_are() {
        for kind in &KINDS {
            assert!(kind.settings().count() > 1, "{}", kind.name);
            for words in ["en", "de"].map(|tag| Words::of([tag])) {
                let found = kind.settings().map(|name| format!("find_{}_{name}", kind.name));
                let sentences = (1..=kind.sentences).map(|number| format!("register_{}_{number}", kind.name));
                let own = ["", "_about"].map(|end| format!("provider_{}{end}", kind.name));
                let certificates = format!("connect_certificates_{}", kind.name);
                let certificates = (!kind.certificates.is_empty()).then_some(certificates);
                for key in found.chain(sentences).chain(own).chain(certificates) {
                    assert!(words.page.contains_key(&key), "{}: {key}", words.tag);
                }
                let more = format!("register_{}_{}", kind.name, kind.sentences + 1);
                assert!(!words.page.contains_key(&more), "{}: {more}", words.tag);
            }
        }
    }
}
