//! The passkey policy of a user store, by its options.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use chancery_record::{host_of, origin_of, write_string};

/// Whether the authenticator must verify its user (PIN, fingerprint).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserVerification {
    /// A ceremony without user verification is refused.
    Required,
    /// User verification is requested, and not required.
    Preferred,
    /// User verification is not requested.
    Discouraged,
}

/// The attestation that a registration requests of the authenticator (WebAuthn Level 3, section 5.4.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attestation {
    /// No attestation.
    None,
    /// An attestation that the client may anonymise.
    Indirect,
    /// The authenticator's own attestation.
    Direct,
    /// An attestation that identifies the single device.
    Enterprise,
}

/// The passkey options in effect in one user store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether passkeys can be registered and used.
    pub enabled: bool,
    /// The domain that credentials are bound to.
    pub relying_party_id: String,
    /// The relying party's name for people, which an authenticator may show.
    pub relying_party_name: String,
    /// The origins of pages that may run a ceremony, as browsers write them.
    pub allowed_origins: Vec<String>,
    /// Whether the authenticator must verify its user.
    pub user_verification: UserVerification,
    /// The attestation that a registration requests of the authenticator (WebAuthn Level 3, section 5.4.7). With a list
    /// of admitted models it is at least [`Attestation::Direct`]: any authenticator can claim to be of a model.
    pub attestation: Attestation,
    /// The AAGUIDs of admitted authenticator models, as hex without hyphens; empty admits all.
    pub allowed_aaguids: Vec<String>,
    /// The AAGUIDs of blocked authenticator models, in the same form. They are compared with the claim of an authenticator:
    /// one that lies about its model is refused by a list of admitted models alone.
    pub blocked_aaguids: Vec<String>,
    /// The usable credentials that a user needs for the removal of the password.
    pub required_credential_count: i64,
    /// The verified security contacts that a user needs for it.
    pub required_verified_security_contact_count: i64,
    /// The age from which a credential counts as mature, in milliseconds.
    pub binding_maturity_ms: i64,
    /// Whether temporary access passes can be issued.
    pub temporary_access_pass_enabled: bool,
    /// The [`fingerprint`] of the passkey options in effect.
    pub fingerprint: String,
}

/// An option of a user store that defines the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are called as the options are")]
pub enum PolicyOption {
    AllowedAaguids,
    AllowedOrigins,
    Attestation,
    BindingMaturity,
    BlockedAaguids,
    Enabled,
    RelyingPartyId,
    RelyingPartyName,
    RequiredCredentialCount,
    RequiredVerifiedSecurityContactCount,
    TemporaryAccessPassEnabled,
    UserVerification,
}

/// The options that the fingerprint covers, with the names by which it does.
const FINGERPRINTED: [(PolicyOption, &str); 11] = [
    (PolicyOption::AllowedAaguids, "PasskeyAllowedAaguids"),
    (PolicyOption::AllowedOrigins, "PasskeyAllowedOrigins"),
    (PolicyOption::Attestation, "PasskeyAttestation"),
    (PolicyOption::BindingMaturity, "PasskeyBindingMaturity"),
    (PolicyOption::BlockedAaguids, "PasskeyBlockedAaguids"),
    (PolicyOption::Enabled, "PasskeyEnabled"),
    (PolicyOption::RelyingPartyId, "PasskeyRelyingPartyId"),
    (PolicyOption::RelyingPartyName, "PasskeyRelyingPartyName"),
    (PolicyOption::RequiredCredentialCount, "PasskeyRequiredCredentialCount"),
    (PolicyOption::RequiredVerifiedSecurityContactCount, "PasskeyRequiredVerifiedSecurityContactCount"),
    (PolicyOption::UserVerification, "PasskeyUserVerification"),
];

impl Policy {
    /// Reads the policy from the text in effect of each option. `binding_maturity_ms` is the option
    /// `PasskeyBindingMaturity` in milliseconds. An unset relying party is the host, and unset origins are
    /// the origin, of the server's `public_url`.
    ///
    /// Text that is malformed for its option is read as the stricter choice.
    pub fn from_options<'a>(
        option: impl Fn(PolicyOption) -> &'a str,
        binding_maturity_ms: i64,
        public_url: &str,
    ) -> Self {
        let own_origin = origin_of(public_url);
        let text = |name: PolicyOption, otherwise: &str| match option(name).trim() {
            "" => otherwise.to_owned(),
            given => given.to_owned(),
        };
        let relying_party_id = text(PolicyOption::RelyingPartyId, host_of(&own_origin)).to_ascii_lowercase();
        let relying_party_name = text(PolicyOption::RelyingPartyName, &relying_party_id);
        let origins = text(PolicyOption::AllowedOrigins, &own_origin);
        let effective = FINGERPRINTED.map(|(covered, name)| match covered {
            PolicyOption::RelyingPartyId => (name, relying_party_id.as_str()),
            PolicyOption::RelyingPartyName => (name, relying_party_name.as_str()),
            PolicyOption::AllowedOrigins => (name, origins.as_str()),
            _ => (name, option(covered)),
        });
        let allowed_aaguids: Vec<String> =
            parts(option(PolicyOption::AllowedAaguids)).map(plain_hex).collect();
        Self {
            fingerprint: fingerprint(&effective),
            enabled: is_true(option(PolicyOption::Enabled)),
            allowed_origins: parts(&origins).map(origin_of).collect(),
            relying_party_id,
            relying_party_name,
            user_verification: match option(PolicyOption::UserVerification).to_ascii_lowercase().as_str() {
                "discouraged" => UserVerification::Discouraged,
                "preferred" => UserVerification::Preferred,
                _ => UserVerification::Required,
            },
            attestation: match option(PolicyOption::Attestation).to_ascii_lowercase().as_str() {
                "enterprise" => Attestation::Enterprise,
                "none" | "" if allowed_aaguids.is_empty() => Attestation::None,
                "indirect" if allowed_aaguids.is_empty() => Attestation::Indirect,
                _ => Attestation::Direct,
            },
            allowed_aaguids,
            blocked_aaguids: parts(option(PolicyOption::BlockedAaguids)).map(plain_hex).collect(),
            required_credential_count: number(option(PolicyOption::RequiredCredentialCount)),
            required_verified_security_contact_count: number(option(
                PolicyOption::RequiredVerifiedSecurityContactCount,
            )),
            binding_maturity_ms,
            temporary_access_pass_enabled: is_true(option(PolicyOption::TemporaryAccessPassEnabled)),
        }
    }

    /// Whether the policy admits a model of authenticator.
    pub fn admits(&self, aaguid: [u8; 16]) -> bool {
        let aaguid = hex(&aaguid);
        (self.allowed_aaguids.is_empty() || self.allowed_aaguids.contains(&aaguid))
            && !self.blocked_aaguids.contains(&aaguid)
    }
}

/// The fingerprint of a set of options: the SHA-256, in hex, of the canonical JSON (RFC 8785) of an object
/// with each option's name and text.
pub fn fingerprint(effective: &[(&str, &str)]) -> String {
    // the names are ASCII: their order as bytes is the order as UTF-16 that the RFC requires
    let sorted: BTreeMap<_, _> = effective.iter().copied().collect();
    let mut json = vec![b'{'];
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        write_string(name, &mut json);
        json.push(b':');
        write_string(value, &mut json);
    }
    json.push(b'}');
    hex(digest(&SHA256, &json).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

fn plain_hex(aaguid: &str) -> String {
    aaguid.replace('-', "").to_ascii_lowercase()
}

fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn is_true(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("true")
}

fn number(text: &str) -> i64 {
    text.trim().parse().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Attestation, FINGERPRINTED, Policy, PolicyOption, UserVerification, fingerprint};

    fn policy(set: &[(PolicyOption, &'static str)]) -> Policy {
        let option = |name| set.iter().find(|(own, _)| *own == name).map_or("", |(_, text)| *text);
        Policy::from_options(option, 1, "https://Id.Example.org:8443/path")
    }

    #[test]
    fn the_public_url_is_the_relying_party_when_none_is_set() {
        let bare = policy(&[]);
        assert_eq!(bare.relying_party_id, "id.example.org");
        assert_eq!(bare.relying_party_name, "id.example.org");
        assert_eq!(bare.allowed_origins, ["https://id.example.org:8443"]);
        let set = policy(&[
            (PolicyOption::RelyingPartyId, "Example.org"),
            (PolicyOption::RelyingPartyName, "Example"),
            (
                PolicyOption::AllowedOrigins,
                "https://A.example.org:443/idp, http://localhost:81,android:apk-key-hash:Ab",
            ),
        ]);
        assert_eq!(
            (set.relying_party_id.as_str(), set.relying_party_name.as_str()),
            ("example.org", "Example")
        );
        assert_eq!(
            set.allowed_origins,
            ["https://a.example.org", "http://localhost:81", "android:apk-key-hash:Ab"]
        );
    }

    #[test]
    fn invalid_options_are_read_as_the_stricter_choice() {
        let invalid = policy(&[
            (PolicyOption::UserVerification, "maybe"),
            (PolicyOption::Attestation, "maybe"),
            (PolicyOption::AllowedAaguids, "no hex"),
            (PolicyOption::RequiredCredentialCount, "some"),
        ]);
        assert_eq!(invalid.user_verification, UserVerification::Required);
        assert_eq!(invalid.attestation, Attestation::Direct);
        assert!(
            !invalid.admits([0; 16]) && !invalid.enabled && invalid.required_credential_count > 1_000_000
        );
    }

    #[test]
    fn a_list_of_admitted_models_requires_direct_attestation() {
        let listed = (PolicyOption::AllowedAaguids, "8446ccb9-ab1d-b374-750b-2367ff6f3a1f");
        for (set, expected, alone) in [
            ("", Attestation::Direct, Attestation::None),
            ("none", Attestation::Direct, Attestation::None),
            ("indirect", Attestation::Direct, Attestation::Indirect),
            ("direct", Attestation::Direct, Attestation::Direct),
            ("enterprise", Attestation::Enterprise, Attestation::Enterprise),
        ] {
            let set = (PolicyOption::Attestation, set);
            assert_eq!(policy(&[set, listed]).attestation, expected, "{set:?}");
            assert_eq!(policy(&[set]).attestation, alone, "{set:?}");
        }
    }

    #[test]
    fn lists_of_models() {
        let one = "8446CCB9-ab1d-b374-750b-2367ff6f3a1f";
        let bytes: [u8; 16] = uuid::Uuid::parse_str(one).unwrap().into_bytes();
        assert!(policy(&[]).admits(bytes));
        assert!(policy(&[(PolicyOption::AllowedAaguids, one)]).admits(bytes));
        assert!(!policy(&[(PolicyOption::AllowedAaguids, one)]).admits([1; 16]));
        assert!(!policy(&[(PolicyOption::BlockedAaguids, one)]).admits(bytes));
        assert!(
            !policy(&[(PolicyOption::AllowedAaguids, one), (PolicyOption::BlockedAaguids, one)])
                .admits(bytes)
        );
    }

    #[test]
    fn a_fingerprint_is_of_the_canonical_json() {
        // printf '{"a":"1","b":"x\\"y"}' | sha256sum
        let expected = "226b5b52cf4a3628860239342d71b219da6b5d6cd6d517235c875b0ec83e6e94";
        assert_eq!(fingerprint(&[("b", "x\"y"), ("a", "1")]), expected);
        assert_eq!(fingerprint(&[("a", "1"), ("b", "x\"y")]), expected);
    }

    #[test]
    fn every_option_changes_the_fingerprint() {
        let before = policy(&[]).fingerprint;
        for (option, name) in FINGERPRINTED {
            assert_ne!(policy(&[(option, "7")]).fingerprint, before, "{name}");
        }
        assert_eq!(policy(&[(PolicyOption::TemporaryAccessPassEnabled, "true")]).fingerprint, before);
    }
}
