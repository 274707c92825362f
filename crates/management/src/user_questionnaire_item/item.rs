//! The rules of one item's configuration.

use chancery_claims::Pattern;
use chancery_record::ShortText;
use uuid::Uuid;

use super::ValidationFormat;

/// The most bytes of a form that one character takes: four bytes of UTF-8, each as `%XX`.
const CHARACTER: usize = 12;
/// The most bytes of a form that the name of an item's field takes.
const NAME: usize = 48;
/// The most bytes of a form for an answer without `maxLength`: those of 256 characters, of whatever kind.
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
    /// The fewest characters of an answer.
    pub min_length: Option<i64>,
    /// The most characters of an answer.
    pub max_length: Option<i64>,
    /// The form of an answer.
    pub format: ValidationFormat,
    /// The regular expression of [`ValidationFormat::Regex`]; ignored for other formats.
    pub pattern: Option<String>,
}

/// A member of an item that can be invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The fewest characters of an answer.
    MinLength,
    /// The most characters of an answer.
    MaxLength,
    /// The regular expression that an answer must match.
    ValidationPattern,
}

impl Item {
    /// Whether an answer is not too long: by its characters, and without `maxLength` also by the bytes that it takes in a form, so that
    /// many such items fit one page.
    pub fn has_room_for(&self, answer: &str) -> bool {
        answer.chars().count() <= self.longest() && form_bytes(answer) <= self.most_bytes()
    }

    /// The most characters of an answer.
    fn longest(&self) -> usize {
        let most = ShortText::RULE.max;
        self.max_length.map_or(most, |length| usize::try_from(length).unwrap_or_default().min(most))
    }

    /// The most bytes that an answer takes in a form.
    fn most_bytes(&self) -> usize {
        let is_over = |least: i64| usize::try_from(least).is_ok_and(|least| least > UNBOUNDED / CHARACTER);
        let is_bounded = self.max_length.is_some() || self.min_length.is_some_and(is_over);
        if is_bounded { CHARACTER * self.longest() } else { UNBOUNDED }
    }

    /// The most bytes that its field takes in a form.
    pub fn field_bytes(&self) -> usize {
        NAME + self.most_bytes()
    }

    /// The pattern in effect; empty where the format has none.
    fn counted(&self) -> Result<&str, String> {
        match (self.format, self.pattern.as_deref().unwrap_or_default()) {
            (ValidationFormat::Regex, "") => Err("is required when validationFormat is Regex".to_owned()),
            (ValidationFormat::Regex, pattern) => Ok(pattern),
            _ => Ok(""),
        }
    }

    /// The pattern in effect, compiled; an empty one matches everything.
    pub(crate) fn compiled(&self) -> Result<Pattern, String> {
        Pattern::new(self.counted()?)
    }

    /// The weight of the item's pattern, or what is wrong with it, for people. Quick for one item, not for
    /// thousands.
    pub fn weigh(&self) -> Result<u64, (Member, String)> {
        self.counted().and_then(Pattern::weigh).map_err(|detail| (Member::ValidationPattern, detail))
    }
}

/// The bytes that a text takes in a form.
fn form_bytes(text: &str) -> usize {
    form_urlencoded::byte_serialize(text.as_bytes()).map(str::len).sum()
}

/// What is wrong with an item, for people; its pattern aside, see [`Item::weigh`].
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
    fn an_answer_is_bounded_whatever_the_item_says() {
        let takes = |max_length, min_length, letter: &str, count| {
            Item { min_length, max_length, ..item() }.has_room_for(&letter.repeat(count))
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
    fn the_least_length_is_not_over_the_most() {
        let with = |min_length, max_length| members(&Item { min_length, max_length, ..item() });
        assert_eq!(with(None, None), []);
        assert_eq!(with(Some(3), Some(3)), []);
        assert_eq!(with(Some(3), None), []);
        assert_eq!(with(Some(4), Some(3)), [Member::MinLength]);
        assert_eq!(with(None, Some(-1)), [Member::MaxLength]);
        assert_eq!(with(Some(-2), Some(-1)), [Member::MinLength, Member::MaxLength]);
    }

    #[test]
    fn a_pattern_is_required_and_good_where_it_counts() {
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
        fn any_pattern_is_taken_or_refused(pattern in r"([a-z]|[()\[\]{}.*+?|^$\\]|\\p\{[A-Z]\}){1,24}") {
            let item = Item { format: ValidationFormat::Regex, pattern: Some(pattern.clone()), ..item() };
            prop_assert_eq!(item.weigh().is_ok(), item.compiled().is_ok());
        }
    }
}
