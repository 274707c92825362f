//! The rules of one item's configuration.

use chancery_claims::Pattern;
use chancery_record::ShortText;
use uuid::Uuid;

use super::ValidationFormat;

/// The maximum size of one character in a form, in bytes: four bytes of UTF-8, each as `%XX`.
const CHARACTER: usize = 12;
/// The maximum size of the name of an item's field in a form, in bytes.
const NAME: usize = 48;
/// The maximum size of an answer without `maxLength` in a form, in bytes: 256 characters of any kind.
const UNBOUNDED: usize = 256 * CHARACTER;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The id of the item.
    pub id: Uuid,
    /// The key of the answer in the user's profile.
    pub key: String,
    /// The question, for people.
    pub label: String,
    /// Whether it has to be answered.
    pub is_required: bool,
    /// The minimum number of characters of an answer.
    pub min_length: Option<i64>,
    /// The maximum number of characters of an answer.
    pub max_length: Option<i64>,
    /// The form of an answer.
    pub format: ValidationFormat,
    /// The regular expression of [`ValidationFormat::Regex`]; ignored for other formats.
    pub pattern: Option<String>,
}

/// A member of an item that can be invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The minimum number of characters of an answer.
    MinLength,
    /// The maximum number of characters of an answer.
    MaxLength,
    /// The regular expression that an answer must match.
    ValidationPattern,
}

impl Item {
    /// Whether an answer is short enough: in characters, and without `maxLength` also in its bytes in a form, so that
    /// many such items fit one page.
    pub fn accepts_length_of(&self, answer: &str) -> bool {
        answer.chars().count() <= self.max_characters() && form_bytes(answer) <= self.max_bytes()
    }

    /// The maximum number of characters of an answer.
    fn max_characters(&self) -> usize {
        let most = ShortText::RULE.max;
        self.max_length.map_or(most, |length| usize::try_from(length).unwrap_or_default().min(most))
    }

    /// The maximum size of an answer in a form, in bytes.
    fn max_bytes(&self) -> usize {
        let is_over = |least: i64| usize::try_from(least).is_ok_and(|least| least > UNBOUNDED / CHARACTER);
        let is_bounded = self.max_length.is_some() || self.min_length.is_some_and(is_over);
        if is_bounded { CHARACTER * self.max_characters() } else { UNBOUNDED }
    }

    /// The maximum size of its field in a form, in bytes.
    pub fn field_bytes(&self) -> usize {
        NAME + self.max_bytes()
    }

    /// The pattern in effect; empty if the format has none.
    fn effective_pattern(&self) -> Result<&str, String> {
        match (self.format, self.pattern.as_deref().unwrap_or_default()) {
            (ValidationFormat::Regex, "") => Err("is required when validationFormat is Regex".to_owned()),
            (ValidationFormat::Regex, pattern) => Ok(pattern),
            _ => Ok(""),
        }
    }

    /// The pattern in effect, compiled; an empty one matches everything.
    pub(crate) fn compiled(&self) -> Result<Pattern, String> {
        Pattern::new(self.effective_pattern()?)
    }

    /// The weight of the item's pattern, or its fault, for people. Fast for one item, not for
    /// thousands.
    pub fn weigh(&self) -> Result<u64, (Member, String)> {
        self.effective_pattern()
            .and_then(Pattern::weigh)
            .map_err(|detail| (Member::ValidationPattern, detail))
    }
}

/// The size of a text in a form, in bytes.
fn form_bytes(text: &str) -> usize {
    form_urlencoded::byte_serialize(text.as_bytes()).map(str::len).sum()
}

/// The faults of an item, for people, except those of its pattern: see [`Item::weigh`].
pub fn check_item(item: &Item) -> Vec<(Member, String)> {
    let mut wrong = Vec::new();
    for (member, length) in [(Member::MinLength, item.min_length), (Member::MaxLength, item.max_length)] {
        if length.is_some_and(i64::is_negative) {
            wrong.push((member, "must not be negative".to_owned()));
        }
    }
    if let (Some(min), Some(max)) = (item.min_length, item.max_length)
        && min > max
    {
        wrong.push((Member::MinLength, format!("must be at most maxLength, which is {max}")));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::{Item, Member, ValidationFormat, check_item};

    fn item() -> Item {
        Item {
            id: Uuid::nil(),
            key: "team".to_owned(),
            label: "Which team?".to_owned(),
            is_required: true,
            min_length: None,
            max_length: None,
            format: ValidationFormat::None,
            pattern: None,
        }
    }

    fn members(item: &Item) -> Vec<Member> {
        check_item(item).into_iter().map(|(member, _)| member).collect()
    }

    #[test]
    fn answers_are_bounded_for_every_item() {
        let takes = |max_length, min_length, letter: &str, count| {
            Item { min_length, max_length, ..item() }.accepts_length_of(&letter.repeat(count))
        };
        for (max_length, min_length, letter, most) in [
            (None, None, "x", 3_072),
            (None, None, "ä", 512),
            (None, None, "🐜", 256),
            (None, Some(256), "🐜", 256),
            (None, Some(257), "🐜", 4_000),
            (Some(5), None, "🐜", 5),
            (Some(300), Some(2), "🐜", 300),
            (Some(9_000), None, "🐜", 4_000),
        ] {
            assert!(takes(max_length, min_length, letter, most), "{max_length:?} {min_length:?} {letter}");
            assert!(
                !takes(max_length, min_length, letter, most + 1),
                "{max_length:?} {min_length:?} {letter}"
            );
        }
        let bounded = Item { max_length: Some(2), ..item() };
        assert_eq!((bounded.field_bytes(), item().field_bytes()), (72, 3_120));
    }

    #[test]
    fn min_length_must_not_exceed_max_length() {
        let with = |min_length, max_length| members(&Item { min_length, max_length, ..item() });
        assert_eq!(with(None, None), []);
        assert_eq!(with(Some(3), Some(3)), []);
        assert_eq!(with(Some(3), None), []);
        assert_eq!(with(Some(4), Some(3)), [Member::MinLength]);
        assert_eq!(with(None, Some(-1)), [Member::MaxLength]);
        assert_eq!(with(Some(-2), Some(-1)), [Member::MinLength, Member::MaxLength]);
    }

    #[test]
    fn only_the_regex_format_requires_a_valid_pattern() {
        let with = |format, pattern: Option<&str>| {
            Item { format, pattern: pattern.map(str::to_owned), ..item() }.weigh()
        };
        assert!(with(ValidationFormat::Regex, Some("^[A-Z]{3}$")).is_ok());
        for none in [None, Some("")] {
            let required = "is required when validationFormat is Regex".to_owned();
            assert_eq!(with(ValidationFormat::Regex, none), Err((Member::ValidationPattern, required)));
        }
        assert!(
            with(ValidationFormat::Regex, Some("[A-Z")).unwrap_err().1.contains("unclosed character class")
        );
        for format in [ValidationFormat::None, ValidationFormat::Email, ValidationFormat::PhoneE164] {
            assert!(with(format, Some("[A-Z")).is_ok());
            assert!(with(format, None).is_ok());
        }
    }

    proptest! {
        #[test]
        fn every_pattern_that_can_be_weighed_compiles(pattern in r"([a-z]|[()\[\]{}.*+?|^$\\]|\\p\{[A-Z]\}){1,24}") {
            let item = Item { format: ValidationFormat::Regex, pattern: Some(pattern.clone()), ..item() };
            prop_assert_eq!(item.weigh().is_ok(), item.compiled().is_ok());
        }
    }
}
