//! The password policy.
//!
//! The rules apply to the hashed form of a password: its letters are composed and its spaces are of one
//! kind, and it is neither trimmed nor cut. Only the comparisons with names and with the blocklist fold copies of it.

use chancery_record::{Secret, fold};
use zeroize::Zeroizing;

use crate::{MAX_PASSWORD_BYTES, PasswordOwner, advice::advice, blocklist::is_common, form::normalized};

/// The rules for a password: the options Password.. of a user store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Policy {
    /// The least number of Unicode characters.
    pub min_length: usize,
    /// The greatest number of Unicode characters; [`MAX_PASSWORD_BYTES`] applies, too.
    pub max_length: usize,
    /// Whether a digit is required, of any script.
    pub require_digit: bool,
    /// Whether a lower-case letter is required.
    pub require_lowercase: bool,
    /// Whether an upper-case letter is required.
    pub require_uppercase: bool,
    /// Whether a character that is neither letter nor digit is required; a space is one.
    pub require_non_alphanumeric: bool,
    /// Whether the common passwords of the blocklist are refused, without regard to case.
    pub blocklist_enabled: bool,
    /// Whether the login name is refused, without regard to case.
    pub not_login_name: bool,
    /// Whether the e-mail address and its local part are refused, without regard to case.
    pub not_email: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            min_length: 8,
            max_length: 128,
            require_digit: false,
            require_lowercase: false,
            require_uppercase: false,
            require_non_alphanumeric: false,
            blocklist_enabled: true,
            not_login_name: true,
            not_email: true,
        }
    }
}

/// A rule that a password breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// The name of the rule's option (or `PasswordText`), for programs.
    pub code: &'static str,
    /// What to do, for people; it contains nothing of the password.
    pub detail: String,
}

impl Policy {
    /// Every rule that the password breaks; none when it is good. zxcvbn's advice on a weak password is added
    /// to the blocklist's detail, else to the last one, and is never itself the reason of a refusal. The work
    /// is like that of a hash: call this where blocking is allowed.
    pub fn check(&self, password: &Secret, person: &PasswordOwner<'_>) -> Vec<BrokenRule> {
        let password = &*normalized(password);
        let bytes = password.expose();
        let Ok(text) = std::str::from_utf8(bytes) else {
            return vec![BrokenRule { code: "PasswordText", detail: "Use text in UTF-8.".to_owned() }];
        };
        let length = text.chars().count();
        let short_enough = length <= self.max_length && bytes.len() <= MAX_PASSWORD_BYTES;
        let mut broken = Vec::new();
        let mut rule = |good: bool, code: &'static str, detail: &str| {
            if !good {
                broken.push(BrokenRule { code, detail: detail.to_owned() });
            }
        };
        rule(
            length >= self.min_length,
            "PasswordMinLength",
            &format!("Use at least {} characters.", self.min_length),
        );
        rule(
            short_enough,
            "PasswordMaxLength",
            &format!("Use at most {} characters and {MAX_PASSWORD_BYTES} bytes of UTF-8.", self.max_length),
        );
        let has = |class: fn(char) -> bool| text.chars().any(class);
        rule(!self.require_digit || has(char::is_numeric), "PasswordRequireDigit", "Use a digit.");
        rule(
            !self.require_lowercase || has(char::is_lowercase),
            "PasswordRequireLowercase",
            "Use a lower-case letter.",
        );
        rule(
            !self.require_uppercase || has(char::is_uppercase),
            "PasswordRequireUppercase",
            "Use an upper-case letter.",
        );
        rule(
            !self.require_non_alphanumeric || has(|letter| !letter.is_alphanumeric()),
            "PasswordRequireNonAlphanumeric",
            "Use a character that is neither letter nor digit.",
        );
        // no name and no entry of the blocklist is longer
        let folded =
            if bytes.len() <= MAX_PASSWORD_BYTES { Zeroizing::new(fold(text)) } else { <_>::default() };
        rule(
            !(self.blocklist_enabled && is_common(&folded)),
            "PasswordBlocklistEnabled",
            "Use a password that is not on the list of common ones.",
        );
        rule(
            !(self.not_login_name && *folded == fold(person.login_name)),
            "PasswordNotLoginName",
            "Use a password other than your login name.",
        );
        rule(
            !(self.not_email && person.email_address.is_some_and(|email| is_email(&folded, email))),
            "PasswordNotEmail",
            "Use a password other than your e-mail address.",
        );
        let common = broken.iter().position(|broken| broken.code == "PasswordBlocklistEnabled");
        if let Some(reported) = common.or(broken.len().checked_sub(1)).and_then(|index| broken.get_mut(index))
            && (common.is_some() || (length >= self.min_length && short_enough))
            && let Some(advice) = advice(password, person)
        {
            reported.detail = format!("{} {advice}", reported.detail);
        }
        broken
    }
}

fn is_email(folded: &str, email: &str) -> bool {
    let email = fold(email);
    folded == email || email.rsplit_once('@').is_some_and(|(local, _)| folded == local)
}

#[cfg(test)]
mod tests {
    use chancery_record::Secret;
    use proptest::prelude::*;

    use super::{BrokenRule, Policy};
    use crate::{PasswordOwner, form::normalized};

    const ADA: PasswordOwner<'_> = PasswordOwner {
        login_name: "Ada.Lovelace",
        email_address: Some("Countess.Lovelace@Example.com"),
        first_name: Some("Ada"),
        last_name: Some("Lovelace"),
    };

    fn all() -> Policy {
        Policy {
            require_digit: true,
            require_lowercase: true,
            require_uppercase: true,
            require_non_alphanumeric: true,
            ..Policy::default()
        }
    }

    fn check(policy: &Policy, password: &str) -> Vec<BrokenRule> {
        policy.check(&Secret::new(password), &ADA)
    }

    fn codes(policy: &Policy, password: &str) -> Vec<&'static str> {
        check(policy, password).iter().map(|broken| broken.code).collect()
    }

    #[test]
    fn every_broken_rule_is_reported() {
        assert_eq!(codes(&all(), "Grüne Ameise 7"), [""; 0]);
        let classes = [
            "PasswordRequireDigit",
            "PasswordRequireLowercase",
            "PasswordRequireUppercase",
            "PasswordRequireNonAlphanumeric",
        ];
        assert_eq!(codes(&all(), "漢漢漢漢漢漢漢漢"), classes);
        let short = [&["PasswordMinLength"], &classes[..]].concat();
        assert_eq!(codes(&all(), ""), short);
        assert_eq!(
            codes(&all(), "QWERTY"),
            [
                "PasswordMinLength",
                "PasswordRequireDigit",
                "PasswordRequireLowercase",
                "PasswordRequireNonAlphanumeric",
                "PasswordBlocklistEnabled"
            ]
        );
        assert_eq!(Policy::default().check(&Secret::new([0xff; 9]), &ADA)[0].code, "PasswordText");
    }

    #[test]
    fn length_is_limited_in_characters_and_in_bytes() {
        let policy = Policy::default();
        assert_eq!(codes(&policy, &"é漢🐜 ñ-ü7".repeat(16)), [""; 0]);
        assert_eq!(codes(&policy, &format!("{}x", "é漢🐜 ñ-ü7".repeat(16))), ["PasswordMaxLength"]);
        let open = Policy { max_length: usize::MAX, ..Policy::default() };
        assert_eq!(codes(&open, &"🐜".repeat(256)), [""; 0]);
        assert_eq!(codes(&open, &"🐜".repeat(257)), ["PasswordMaxLength"]);
    }

    #[test]
    fn rules_apply_to_the_hashed_form() {
        let policy = Policy { max_length: 10, ..Policy::default() };
        assert_eq!(codes(&policy, &"o\u{308}".repeat(10)), [""; 0]);
        assert_eq!(codes(&policy, &"o\u{308}".repeat(7)), ["PasswordMinLength"]);
        let person = PasswordOwner { login_name: "Z\u{f6}e", ..ADA };
        let short = Policy { min_length: 1, ..Policy::default() };
        let broken = short.check(&Secret::new("Zo\u{308}e"), &person);
        assert_eq!(broken.first().map(|broken| broken.code), Some("PasswordNotLoginName"));
    }

    #[test]
    fn login_name_and_email_are_compared_folded() {
        let policy = Policy::default();
        assert_eq!(codes(&policy, "aDA.lovelace"), ["PasswordNotLoginName"]);
        assert_eq!(codes(&policy, "ａｄａ.lovelace"), ["PasswordNotLoginName"]);
        for email in ["countess.lovelace@example.COM", "COUNTESS.lovelace"] {
            assert_eq!(codes(&policy, email), ["PasswordNotEmail"]);
        }
        assert_eq!(codes(&policy, "ada.lovelace 1815"), [""; 0]);
        let open = Policy { not_login_name: false, not_email: false, ..Policy::default() };
        assert_eq!(codes(&open, "ada.lovelace"), [""; 0]);
        assert_eq!(codes(&open, "countess.lovelace"), [""; 0]);
    }

    #[test]
    fn common_passwords_are_refused_with_advice() {
        let found = check(&Policy::default(), "PassWord1");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].code, "PasswordBlocklistEnabled");
        assert!(found[0].detail.contains("very common password"), "{}", found[0].detail);
        let open = Policy { blocklist_enabled: false, ..Policy::default() };
        assert_eq!(check(&open, "PassWord1"), []);
    }

    #[test]
    fn advice_is_added_only_for_weak_passwords_of_valid_length() {
        let policy = Policy { require_digit: true, ..Policy::default() };
        let detail = |password: &str| check(&policy, password).pop().unwrap().detail;
        assert!(detail("lovelovelove").len() > "Use a digit.".len());
        assert_eq!(detail("violet anthill under marble"), "Use a digit.");
        assert_eq!(detail(&"love".repeat(9)), "Use a digit.");
        assert_eq!(check(&policy, "love")[0].detail, "Use at least 8 characters.");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn no_detail_contains_the_password(password in "[0-9a-z]{7,12}XQ?", name in "\\PC{0,12}") {
            let person = PasswordOwner { login_name: &name, ..ADA };
            let strict = Policy { require_non_alphanumeric: true, ..all() };
            let found = strict.check(&Secret::new(password.as_str()), &person);
            prop_assert!(!found.is_empty());
            let rendered = format!("{found:?}");
            prop_assert!(!rendered.contains(&password));
        }

        #[test]
        fn every_text_can_be_checked(password in "\\PC{0,40}", name in "\\PC{0,300}") {
            let person = PasswordOwner { login_name: &name, email_address: Some(&name), ..ADA };
            let password = Secret::new(password);
            // some letters are two when composed
            let length = String::from_utf8(normalized(&password).expose().to_vec()).unwrap().chars().count();
            let found = all().check(&password, &person);
            prop_assert_eq!(length < 8, found.iter().any(|broken| broken.code == "PasswordMinLength"));
        }
    }
}
