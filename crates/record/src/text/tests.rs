//! Texts by example, and properties over arbitrary ones.

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{Birthdate, Email, GroupName, Key, Locale, LoginName, Name, PersonalUrl, Phone, ShortText, Zone};

#[test]
fn examples_fit_their_own_rules() {
    for rule in [
        LoginName::RULE,
        Email::RULE,
        Phone::RULE,
        Locale::RULE,
        Zone::RULE,
        Birthdate::RULE,
        Key::RULE,
        ShortText::RULE,
        super::Name::RULE,
        super::Url::RULE,
        super::PersonalUrl::RULE,
        super::Gender::RULE,
        super::Description::RULE,
        super::Token::RULE,
        super::SignedText::RULE,
    ] {
        assert!(rule.check(rule.example.to_owned()).is_ok(), "{}", rule.name);
    }
}

#[test]
fn texts_are_checked_against_their_rules() {
    assert!(LoginName::new("ada@example.com").is_ok());
    for wrong in ["a\0b", "a\u{85}b", "a\u{9b}31mb", "a\u{2028}b", "a\u{2029}b"] {
        assert!(LoginName::new(wrong).is_err() && super::Name::new(wrong).is_err(), "{wrong:?}");
    }
    for hidden in ["a\u{200b}b", "a\u{ad}b", "a\u{202e}b", "a\u{3164}b", "a\u{fe0f}b", "a\u{e0061}b"] {
        assert!(LoginName::new(hidden).is_err() && GroupName::new(hidden).is_err(), "{hidden:?}");
        assert!(super::Name::new(hidden).is_ok(), "{hidden:?}");
    }
    assert!(ShortText::new("a\u{2028}b").is_ok() && ShortText::new("a\u{9b}b").is_err());
    assert!(LoginName::new("x".repeat(257)).is_err());
    assert!(Email::new("ada").is_err());
    assert!(Email::new("a@b@c").is_err());
    assert!(Locale::new("de_AT").is_err());
    assert!(Zone::new("Etc/GMT+1").is_ok());
    assert!(Key::new("batch").is_err());
    assert!(ShortText::new("").is_ok());
    assert!(ShortText::new("two\nlines").is_ok());
}

/// Section 15: text that people type is trimmed, then checked; keys and values are as they are.
#[test]
fn typed_text_is_trimmed_and_the_rest_is_not() {
    assert_eq!(LoginName::new(" \tada\u{a0}\n").unwrap().as_str(), "ada");
    assert_eq!(super::Url::new("https://example.com ").unwrap().as_str(), "https://example.com");
    assert!(super::Name::new(format!("{} ", "x".repeat(256))).is_ok());
    assert!(super::Name::new(" \u{2003} ").is_err());
    assert_eq!(ShortText::new(" kept ").unwrap().as_str(), " kept ");
    assert!(Key::new(" key").is_err());
}

/// Section 15: a telephone number is what directories hold.
#[test]
fn telephone_numbers_are_read_as_directories_store_them() {
    let pattern = regex(Phone::RULE.pattern.unwrap());
    for good in [
        "+49 (0)30 / 123-45.6",
        "(030) 123456",
        "030 123456 ext. 12",
        "030123456x12",
        "+1-201-555-0123;ext=4711",
        "030 12345 EXT 6",
        "x4711",
        "+49 30 + 31",
        "112",
        "1 x 23",
        "12x3",
        "123x",
    ] {
        assert!(Phone::new(good).is_ok(), "{good}");
        assert!(pattern(good), "{good} by the pattern");
    }
    let long = "1".repeat(65);
    for wrong in ["call me", "12", "+49 30 12x3x4", "030 123456 internal", "1x2", "x12", "1234;x", &long] {
        assert!(Phone::new(wrong).is_err(), "{wrong}");
        assert!(wrong.len() > 64 || !pattern(wrong), "{wrong} by the pattern");
    }
}

/// Section 15: addresses of client apps are https, or http on loopback.
#[test]
fn web_addresses() {
    let pattern = regex(super::WebAddress::RULE.pattern.unwrap());
    for good in [
        "https://app.example.com",
        "HTTPS://app.example.com:8443/a?b=c#d",
        " https://a/ ",
        "http://localhost:3000/x",
        "http://127.0.0.1",
        "http://[::1]:80/",
    ] {
        assert!(super::WebAddress::new(good).is_ok() && pattern(good), "{good}");
    }
    assert!(super::WebAddress::new("https://[2001:db8::1]/").is_ok());
    for wrong in [
        "app.example.com",
        "//app.example.com",
        "http://app.example.com/",
        "http://localhost.example.com/",
        "https://",
        "https:///path",
        "https://ada@example.com/",
        "https://a:70000/",
        "https://a:1x/",
        "https://a/b c",
        "javascript:alert(1)",
        "http://[::2]/",
        "https://[x]/",
    ] {
        assert!(super::WebAddress::new(wrong).is_err() && !pattern(wrong), "{wrong}");
    }
}

/// Pages and pictures of people run no script in the browser of who opens them.
#[test]
fn personal_urls() {
    let pattern = regex(PersonalUrl::RULE.pattern.unwrap());
    for good in [
        "https://example.com/ada?a=b:c",
        "HTTP://example.com",
        " example.com ",
        "example.com/a:b",
        "www.example.com/ada",
        "/ada",
        "//example.com",
        "1:2",
        "my page: here",
    ] {
        assert!(PersonalUrl::new(good).is_ok() && pattern(good), "{good}");
    }
    for wrong in [
        "javascript:alert(1)",
        "JavaScript://x%0aalert(1)",
        " javascript:x",
        "java\tscript:x",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc",
        "mailto:ada@example.com",
        "com.example.app:/x",
        "",
    ] {
        assert!(PersonalUrl::new(wrong).is_err() && !pattern(wrong), "{wrong}");
    }
}

/// By the properties that Unicode publishes, which `regex` knows.
#[test]
fn hidden_letters_are_those_of_unicode() {
    let all: String = ('\0'..=char::MAX).collect();
    let published = regex::Regex::new(r"\p{Default_Ignorable_Code_Point}").unwrap();
    let published: String = published.find_iter(&all).map(|matched| matched.as_str()).collect();
    assert_eq!(all.replace(|letter| !super::is_hidden(letter), ""), published);
    let class = regex::Regex::new(concat!("[", hidden!(), "]")).unwrap();
    let in_patterns: String = published.chars().filter(|letter| *letter <= '\u{ffff}').collect();
    assert_eq!(class.find_iter(&all).map(|matched| matched.as_str()).collect::<String>(), in_patterns);
}

fn names() -> impl Strategy<Value = String> {
    let unusual = r"[\p{Cc}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\p{M}\p{L}]{0,4}";
    prop_oneof![
        "\\PC{0,12}",
        (unusual, "[a-c]{0,2}", unusual).prop_map(|(a, b, c)| a + &b + &c),
        any::<String>()
    ]
}

proptest! {
    /// The validity of a name follows from Unicode's control characters, line separators and default-ignorable
    /// code points.
    #[test]
    fn names_contain_only_visible_characters(text in names()) {
        let holds = |class: &str| regex::Regex::new(class).unwrap().is_match(text.trim());
        let fits = (1..=256).contains(&text.trim().chars().count());
        let (breaks, hides) = (holds(r"[\p{Cc}\p{Zl}\p{Zp}]"), holds(r"\p{Default_Ignorable_Code_Point}"));
        prop_assert_eq!(Name::new(text.as_str()).is_ok(), fits && !breaks);
        prop_assert_eq!(LoginName::new(text.as_str()).is_ok(), fits && !breaks && !hides);
        prop_assert_eq!(GroupName::new(text.as_str()).is_ok(), fits && !breaks && !hides);
    }

    /// A text that matches the documented pattern satisfies the rule, except for invisible letters beyond the
    /// basic plane.
    #[test]
    fn a_text_that_matches_the_pattern_satisfies_the_rule(text in names(), address in "[a-c.\"\\\\-]{1,5}@[a-c.-]{1,5}", url in "(https?|[a-c+.-]{0,2})[ /:a-c1]{0,4}") {
        proptest::prop_assume!(!text.chars().any(|letter| letter > '\u{ffff}' && super::is_hidden(letter)));
        for rule in [Name::RULE, LoginName::RULE, GroupName::RULE, Key::RULE, ShortText::RULE, PersonalUrl::RULE] {
            let is_promised = regex(rule.pattern.unwrap())(&text) && (rule.min..=rule.max).contains(&text.chars().count());
            prop_assert!(!is_promised || super::RESERVED_KEYS.contains(&text.as_str()) || rule.check(text.clone()).is_ok(), "{}", rule.name);
        }
        prop_assert_eq!(regex(Email::RULE.pattern.unwrap())(&address), Email::new(address.as_str()).is_ok());
        prop_assert_eq!(regex(PersonalUrl::RULE.pattern.unwrap())(&url), PersonalUrl::new(url.as_str()).is_ok());
    }
}

fn regex(pattern: &str) -> impl Fn(&str) -> bool {
    let pattern = regex::Regex::new(pattern).unwrap();
    move |text| pattern.is_match(text)
}

#[test]
fn birthdates_are_cut_and_checked() {
    let stored = |text: &str| Birthdate::new(text).map(|day| day.as_str().to_owned());
    assert_eq!(stored("1815-12-10T00:00:00Z").as_deref(), Ok("1815-12-10"));
    assert_eq!(stored("1815").as_deref(), Ok("1815"));
    assert_eq!(stored("0000-02-29").as_deref(), Ok("0000-02-29"));
    for wrong in ["1815-02-30", "10.12.1815", "181", "1815-1-1"] {
        assert!(stored(wrong).is_err(), "{wrong}");
    }
}
