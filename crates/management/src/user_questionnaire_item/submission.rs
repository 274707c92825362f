//! Validates a user's answers against the items.

use std::collections::{BTreeMap, BTreeSet};

use chancery_record::{Email, ShortText};
use uuid::Uuid;

use super::{Item, ValidationFormat};

/// The fault of the answer to one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The id of the item, as it was submitted.
    pub item: Uuid,
    /// The fault.
    pub fault: AnswerFault,
}

/// A fault of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFault {
    /// The submission does not have the item exactly once, or the questionnaire has no such item.
    UnknownItem,
    /// The item is required, and the answer is blank.
    Blank,
    /// It is no text that can be stored.
    Text,
    /// It is shorter than `minLength`.
    Short,
    /// It is too long for the item.
    Long,
    /// It is no e-mail address.
    Email,
    /// It is no telephone number by E.164.
    Phone,
    /// It does not match the item's pattern, or the pattern is not valid.
    Pattern,
}

/// Validates a submission against all items; returns the answers in the order of the items, blank ones empty.
///
/// A submission must have each item exactly once, also when the answer is blank, and nothing else. An answer
/// of white space alone is blank: an optional item takes it without further checks. Any other answer must
/// also be a valid value of a profile entry, where it is stored.
///
/// # Errors
/// A finding for each item without a valid answer.
pub fn check_submission(
    items: &[Item],
    answers: &[(Uuid, String)],
) -> Result<Vec<(Uuid, String)>, Vec<Finding>> {
    let mut given = BTreeMap::<Uuid, Vec<&str>>::new();
    for (id, answer) in answers {
        given.entry(*id).or_default().push(answer);
    }
    let mut accepted = Vec::with_capacity(items.len());
    let mut findings = Vec::new();
    for item in items {
        let checked = match given.get(&item.id).map(Vec::as_slice) {
            Some([answer]) => check_answer(item, answer),
            _ => Err(AnswerFault::UnknownItem),
        };
        match checked {
            Ok(answer) => accepted.push((item.id, answer)),
            Err(fault) => findings.push(Finding { item: item.id, fault }),
        }
    }
    let known: BTreeSet<_> = items.iter().map(|item| item.id).collect();
    let unknown = given.keys().filter(|id| !known.contains(id));
    findings.extend(unknown.map(|id| Finding { item: *id, fault: AnswerFault::UnknownItem }));
    if findings.is_empty() { Ok(accepted) } else { Err(findings) }
}

fn check_answer(item: &Item, answer: &str) -> Result<String, AnswerFault> {
    if answer.trim().is_empty() {
        return if item.is_required { Err(AnswerFault::Blank) } else { Ok(String::new()) };
    }
    let length = answer.chars().count();
    if !item.accepts_length_of(answer) {
        return Err(AnswerFault::Long);
    }
    if item.min_length.is_some_and(|least| usize::try_from(least).is_ok_and(|least| length < least)) {
        return Err(AnswerFault::Short);
    }
    let answer = ShortText::RULE.check(answer.to_owned()).map_err(|_| AnswerFault::Text)?;
    match item.format {
        ValidationFormat::None => Ok(answer),
        ValidationFormat::Email => Email::RULE.check(answer).map_err(|_| AnswerFault::Email),
        ValidationFormat::PhoneE164 if is_e164(&answer) => Ok(answer),
        ValidationFormat::PhoneE164 => Err(AnswerFault::Phone),
        // the pattern was checked when it was configured; an invalid one accepts nothing all the same
        ValidationFormat::Regex => match item.compiled() {
            Ok(pattern) if pattern.is_match(&answer) == Ok(true) => Ok(answer),
            _ => Err(AnswerFault::Pattern),
        },
    }
}

/// `^\+[1-9]\d{1,14}$`, with the digits of ASCII alone.
fn is_e164(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (2..=15).contains(&digits.len())
            && !digits.starts_with('0')
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use chancery_claims::Pattern;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::{AnswerFault, Finding, Item, ValidationFormat, check_submission, is_e164};

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn item(number: u128) -> Item {
        Item {
            id: id(number),
            key: format!("key{number}"),
            label: String::new(),
            is_required: true,
            min_length: None,
            max_length: None,
            format: ValidationFormat::None,
            pattern: None,
        }
    }

    fn answers(given: &[(u128, &str)]) -> Vec<(Uuid, String)> {
        given.iter().map(|(number, answer)| (id(*number), (*answer).to_owned())).collect()
    }

    fn wrong(items: &[Item], given: &[(u128, &str)]) -> Vec<u128> {
        let findings = check_submission(items, &answers(given)).err().unwrap_or_default();
        findings.iter().map(|finding| finding.item.as_u128()).collect()
    }

    fn takes(item: &Item, answer: &str) -> bool {
        check_submission(std::slice::from_ref(item), &answers(&[(item.id.as_u128(), answer)])).is_ok()
    }

    #[test]
    fn each_item_must_be_submitted_exactly_once() {
        let items = [item(1), Item { is_required: false, ..item(2) }];
        let accepted = check_submission(&items, &answers(&[(2, " "), (1, " Ada ")]));
        assert_eq!(accepted, Ok(answers(&[(1, " Ada "), (2, "")])));
        assert_eq!(wrong(&items, &[(1, "Ada")]), [2]);
        assert_eq!(wrong(&items, &[(1, "Ada"), (2, ""), (1, "Ada")]), [1]);
        assert_eq!(wrong(&items, &[(9, ""), (1, "Ada"), (2, ""), (9, "")]), [9]);
        assert_eq!(wrong(&items, &[(9, "x")]), [1, 2, 9]);
        assert_eq!(check_submission(&[], &[]), Ok(vec![]));
    }

    #[test]
    fn only_an_optional_item_may_be_blank() {
        let required = Item { min_length: Some(3), format: ValidationFormat::Email, ..item(1) };
        let optional = Item { is_required: false, ..required.clone() };
        for blank in ["", "  ", "\t\n", "\u{a0}"] {
            assert!(!takes(&required, blank));
            assert!(takes(&optional, blank));
        }
        assert!(!takes(&optional, "ada"));
    }

    #[test]
    fn lengths_are_counted_in_characters() {
        let item = Item { min_length: Some(2), max_length: Some(4), ..item(1) };
        assert!(takes(&item, "äö") && takes(&item, "🐜🐜🐜🐜"));
        assert!(!takes(&item, "ä") && !takes(&item, "🐜🐜🐜🐜🐜"));
        assert!(!takes(&self::item(1), &"x".repeat(4_001)));
        assert!(!takes(&self::item(1), "a\0b"));
    }

    #[test]
    fn answers_match_their_format() {
        let with = |format, pattern: &str| Item { format, pattern: Some(pattern.to_owned()), ..item(1) };
        assert!(takes(&with(ValidationFormat::Email, "^never$"), "ada@example.com"));
        assert!(!takes(&with(ValidationFormat::Email, ""), "ada@"));
        assert!(takes(&with(ValidationFormat::Regex, "^[A-Z]{2}$"), "AB"));
        assert!(!takes(&with(ValidationFormat::Regex, "^[A-Z]{2}$"), "ABC"));
        assert!(takes(&with(ValidationFormat::Regex, "[A-Z]{2}"), "see ABC"));
        assert!(!takes(&with(ValidationFormat::Regex, "("), "("));
        assert!(!takes(&with(ValidationFormat::Regex, ""), "x"));
    }

    #[test]
    fn telephone_numbers_are_e164() {
        let item = Item { format: ValidationFormat::PhoneE164, ..item(1) };
        for accepted in ["+12", "+4930123456", "+123456789012345"] {
            assert!(takes(&item, accepted), "{accepted}");
        }
        for bad in
            ["+1", "12", "+012", "+1234567890123456", "+49 30", "+4९", "+12\n", " +12", "++12", "+", "+1a"]
        {
            assert!(!takes(&item, bad), "{bad}");
        }
    }

    #[test]
    fn each_fault_has_its_own_kind() {
        let fault = |item: Item, answer: &str| {
            let given = answers(&[(item.id.as_u128(), answer)]);
            check_submission(&[item], &given).err().map(|found| found[0].fault)
        };
        let with = |format| Item { format, pattern: Some("^[A-Z]$".to_owned()), ..item(1) };
        let lengths = Item { min_length: Some(2), max_length: Some(3), ..item(1) };
        for (item, answer, expected) in [
            (item(1), "", AnswerFault::Blank),
            (item(1), "a\0b", AnswerFault::Text),
            (item(1), "x".repeat(4_001).as_str(), AnswerFault::Long),
            (lengths.clone(), "a", AnswerFault::Short),
            (lengths, "abcd", AnswerFault::Long),
            (with(ValidationFormat::Email), "ada@", AnswerFault::Email),
            (with(ValidationFormat::PhoneE164), "12", AnswerFault::Phone),
            (with(ValidationFormat::Regex), "a", AnswerFault::Pattern),
        ] {
            assert_eq!(fault(item, answer), Some(expected), "{expected:?}");
        }
        let of_another = check_submission(&[item(1)], &answers(&[(1, "a"), (2, "b")]));
        assert_eq!(of_another, Err(vec![Finding { item: id(2), fault: AnswerFault::UnknownItem }]));
    }

    proptest! {
        #[test]
        fn telephone_numbers_are_the_contracts_pattern(text in r"\PC?\+?[0-9٣]{0,17}\n?") {
            let contract = Pattern::new(r"^\+[1-9][0-9]{1,14}$").unwrap();
            prop_assert_eq!(Ok(is_e164(&text)), contract.is_match(&text));
        }

        #[test]
        fn a_good_submission_has_every_item_and_no_other(
            given in proptest::collection::vec((0..5_u128, "[ a]{0,2}"), 0..6),
            required in proptest::collection::vec(any::<bool>(), 0..4),
        ) {
            let items: Vec<_> =
                (0..).zip(&required).map(|(number, is_required)| Item { is_required: *is_required, ..item(number) }).collect();
            let given: Vec<_> = given.iter().map(|(number, answer)| (*number, answer.as_str())).collect();
            match check_submission(&items, &answers(&given)) {
                Ok(accepted) => {
                    prop_assert_eq!(given.len(), items.len());
                    let ids: Vec<_> = accepted.iter().map(|(id, _)| *id).collect();
                    prop_assert_eq!(ids, items.iter().map(|item| item.id).collect::<Vec<_>>());
                    for ((_, answer), item) in accepted.iter().zip(&items) {
                        prop_assert!(!item.is_required || answer.contains('a'));
                    }
                }
                Err(findings) => prop_assert!(!findings.is_empty()),
            }
        }
    }
}
