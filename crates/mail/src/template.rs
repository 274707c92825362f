//! The texts of the mails, in German and English.

use chancery_record::Timestamp;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value as Data};
use serde_json::Value;

/// A day, in milliseconds.
const DAY: i64 = 86_400_000;
/// The characters that a subject may have; the rest is cut.
const SUBJECT: usize = 200;

/// The kinds of mail, each with its template and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To a user who requested a new password. Data: `name`, `store`, `valid_until`, and `link`, or
    /// `token` where there is no link.
    PasswordReset,
    /// To an address that a user wants to verify as a security contact. Data: `code`, `valid_until`.
    SecurityContactCode,
    /// To a person who signs in. Data: `code`, `valid_until`.
    SignInCode,
    /// To the contact of an event subscription that was disabled. Data: `name`, `url`, and `since` unless the receiver
    /// wants no more.
    SubscriptionDisabled,
    /// To an operator. Data: `login_name`, `store`, and `until` unless the lock is permanent.
    UserLocked,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::PasswordReset,
        Self::SecurityContactCode,
        Self::SignInCode,
        Self::SubscriptionDisabled,
        Self::UserLocked,
    ];

    /// The kind's name, as the outbox stores it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PasswordReset => "PasswordReset",
            Self::SecurityContactCode => "SecurityContactCode",
            Self::SignInCode => "SignInCode",
            Self::SubscriptionDisabled => "SubscriptionDisabled",
            Self::UserLocked => "UserLocked",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The subject and the two bodies of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedMail {
    /// The subject, in one line.
    pub subject: String,
    /// The body as plain text.
    pub text: String,
    /// The body as HTML; data is escaped.
    pub html: String,
}

/// A language of mails and text messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// English.
    English,
    /// German.
    German,
}

impl Language {
    /// The language of a tag (BCP 47), by its first part: German for `de` and `de-AT`, English for all
    /// others.
    pub fn of(locale: Option<&str>) -> Self {
        let first = locale.and_then(|locale| locale.split(['-', '_']).next());
        if first.is_some_and(|first| first.eq_ignore_ascii_case("de")) { Self::German } else { Self::English }
    }

    /// The format of a moment; always UTC, as the reader's own zone is not known.
    const fn moment(self) -> &'static str {
        match self {
            Self::English => "%-d %B %Y, %H:%M UTC",
            Self::German => "%d.%m.%Y, %H:%M UTC",
        }
    }
}

/// The templates of plain text, whose first line is the subject, and of HTML.
const fn sources(kind: Kind, language: Language) -> (&'static str, &'static str) {
    macro_rules! pair {
        ($name:literal) => {
            (
                include_str!(concat!("../templates/", $name, ".txt")),
                include_str!(concat!("../templates/", $name, ".html")),
            )
        };
    }
    match (kind, language) {
        (Kind::PasswordReset, Language::English) => pair!("password_reset.en"),
        (Kind::PasswordReset, Language::German) => pair!("password_reset.de"),
        (Kind::SecurityContactCode, Language::English) => pair!("security_contact_code.en"),
        (Kind::SecurityContactCode, Language::German) => pair!("security_contact_code.de"),
        (Kind::SignInCode, Language::English) => pair!("sign_in_code.en"),
        (Kind::SignInCode, Language::German) => pair!("sign_in_code.de"),
        (Kind::SubscriptionDisabled, Language::English) => pair!("subscription_disabled.en"),
        (Kind::SubscriptionDisabled, Language::German) => pair!("subscription_disabled.de"),
        (Kind::UserLocked, Language::English) => pair!("user_locked.en"),
        (Kind::UserLocked, Language::German) => pair!("user_locked.de"),
    }
}

/// Renders a mail in the language of a locale (BCP 47). The data is an object; moments in it are
/// milliseconds since 1970, all else is text. Null is the same as absent.
///
/// # Errors
/// Which member of the data is missing or of the wrong type, without values.
pub fn render(kind: Kind, locale: Option<&str>, data: &Value) -> Result<RenderedMail, String> {
    let language = Language::of(locale);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.add_filter("moment", move |moment: i64| written(Timestamp(moment), language));

    let given = data.as_object().into_iter().flatten();
    let data = Data::from_pairs(given.filter_map(|(name, value)| Some((name.as_str(), filling(value)?))));

    let (text, html) = sources(kind, language);
    let (subject, text) = text.split_once('\n').ok_or("the template has no subject")?;
    let fill = |name: &str, source: &str| {
        let filled = environment.render_named_str(name, source, &data);
        filled.map_err(|error| format!("the template {}.{name} cannot be filled: {error}", kind.name()))
    };
    Ok(RenderedMail {
        subject: one_line(&fill("subject", subject)?),
        text: fill("txt", text.trim_start())?,
        html: fill("html", html)?,
    })
}

/// The value of a template's variable: text or a whole number, nothing else.
fn filling(value: &Value) -> Option<Data> {
    value.as_str().map(Data::from).or_else(|| value.as_i64().map(Data::from))
}

fn written(moment: Timestamp, language: Language) -> Result<String, minijinja::Error> {
    // the library's time ends some hours before the year 9999 does
    let last = jiff::Timestamp::MAX.as_millisecond();
    let known = if moment.0 < last + DAY { moment.0.min(last) } else { moment.0 };
    let moment = jiff::Timestamp::from_millisecond(known)
        .map_err(|_| minijinja::Error::new(ErrorKind::InvalidOperation, "a moment is out of range"))?;
    Ok(moment.strftime(language.moment()).to_string())
}

/// Text in one line: a line break in a name could add a header.
fn one_line(text: &str) -> String {
    let breaks = |message: char| message.is_control() || matches!(message, '\u{2028}' | '\u{2029}');
    let words = text.split(|message| breaks(message) || message == ' ').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").chars().take(SUBJECT).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{Kind, render};

    /// 2026-11-21T09:30:00Z
    const MOMENT: i64 = 1_795_253_400_000;

    fn reset(name: &str) -> Value {
        json!({
            "name": name, "store": "Mitarbeiter", "valid_until": MOMENT, "token": null,
            "link": "https://id.example.com/reset?login=a&token=b",
        })
    }

    #[test]
    fn a_password_reset_in_german() {
        let mail = render(Kind::PasswordReset, Some("de-AT"), &reset("Jörg")).unwrap();
        assert_eq!(mail.subject, "Ihr Kennwort bei Mitarbeiter");
        assert_eq!(
            mail.text,
            "Guten Tag Jörg,\n\nfür Ihr Konto bei Mitarbeiter wurde ein neues Kennwort angefordert. \
             Öffnen Sie diese\nAdresse, um es festzulegen:\n\n\
             https://id.example.com/reset?login=a&token=b\n\n\
             Dies ist bis zum 21.11.2026, 09:30 UTC und nur einmal möglich.\n\n\
             Haben Sie das nicht angefordert, dann ist nichts zu tun: Ihr Kennwort bleibt, wie es ist."
        );
        assert!(mail.html.contains("<html lang=\"de\">"));
        assert!(mail.html.contains("reset?login=a&amp;token=b"), "{}", mail.html);
    }

    #[test]
    fn a_password_reset_without_a_link_shows_the_token() {
        let data = json!({ "name": "Ann", "store": "Staff", "valid_until": MOMENT, "token": "t0ken" });
        let mail = render(Kind::PasswordReset, None, &data).unwrap();
        assert_eq!(mail.subject, "Your password at Staff");
        assert!(mail.text.contains("\nt0ken\n") && mail.html.contains("t0ken"));
        assert!(mail.text.contains("until 21 November 2026, 09:30 UTC"), "{}", mail.text);
    }

    #[test]
    fn a_code_and_a_lock_in_both_languages() {
        let code = json!({ "code": "481516", "valid_until": MOMENT });
        for (locale, subject) in [("de", "Ihr Bestätigungscode"), ("fr", "Your verification code")] {
            let mail = render(Kind::SecurityContactCode, Some(locale), &code).unwrap();
            assert_eq!(mail.subject, subject);
            assert!(mail.text.contains("481516") && mail.html.contains("481516"));
        }
        for (locale, subject) in [("de", "Ihr Anmeldecode"), ("en", "Your sign-in code")] {
            let mail = render(Kind::SignInCode, Some(locale), &code).unwrap();
            assert_eq!(mail.subject, subject);
            assert!(mail.text.contains("481516") && mail.html.contains("481516"));
        }
        let locked = json!({ "login_name": "ann", "store": "Staff", "until": MOMENT });
        let mail = render(Kind::UserLocked, Some("en-GB"), &locked).unwrap();
        assert_eq!(mail.subject, "User locked at Staff: ann");
        assert!(mail.text.contains("until 21 November 2026, 09:30 UTC"), "{}", mail.text);
        let permanently = json!({ "login_name": "ann", "store": "Staff", "until": null });
        let mail = render(Kind::UserLocked, Some("DE"), &permanently).unwrap();
        assert!(mail.text.contains("bis ein Administrator"), "{}", mail.text);
    }

    #[test]
    fn a_subscription_that_ended_in_both_languages() {
        let data = json!({ "name": "CRM", "url": "https://crm.example.com/events?a=1&b=2", "since": MOMENT });
        let mail = render(Kind::SubscriptionDisabled, None, &data).unwrap();
        assert_eq!(mail.subject, "Events are no longer sent: CRM");
        assert!(mail.text.contains("since 21 November 2026, 09:30 UTC"), "{}", mail.text);
        assert!(mail.html.contains("events?a=1&amp;b=2"), "{}", mail.html);
        let gone = json!({ "name": "CRM", "url": "https://crm.example.com/events", "since": null });
        let mail = render(Kind::SubscriptionDisabled, Some("de"), &gone).unwrap();
        assert!(mail.text.contains("keine Ereignisse mehr will (410)"), "{}", mail.text);
    }

    #[test]
    fn every_template_can_be_filled_in_every_language() {
        let data = json!({
            "name": "n", "store": "s", "valid_until": MOMENT, "link": "https://l", "token": "t",
            "code": "c", "login_name": "l", "until": MOMENT, "url": "u", "since": MOMENT,
        });
        for kind in Kind::ALL {
            for locale in ["de", "en"] {
                let mail = render(kind, Some(locale), &data).unwrap();
                assert!(mail.html.starts_with("<!doctype html>"));
                assert!(!format!("{mail:?}").contains("{{"), "{mail:?}");
                assert!(mail.html.contains(&format!("lang=\"{locale}\"")));
            }
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
    }

    #[test]
    fn names_are_escaped_in_html() {
        let mail = render(Kind::PasswordReset, None, &reset("<script>alert('x')</script>")).unwrap();
        assert!(!mail.html.contains("<script"));
        assert!(mail.html.contains("&lt;script&gt;"));
        let mut data = reset("Ann");
        data["link"] = "https://a/\" onclick=\"x".into();
        let mail = render(Kind::PasswordReset, None, &data).unwrap();
        assert!(!mail.html.contains("onclick=\""), "{}", mail.html);
    }

    #[test]
    fn a_missing_member_is_an_error_not_a_gap() {
        for missing in ["name", "store", "valid_until", "link"] {
            let mut data = reset("Ann");
            data.as_object_mut().unwrap().remove(missing);
            assert!(render(Kind::PasswordReset, None, &data).is_err(), "{missing}");
        }
        let mut data = reset("Ann");
        data["valid_until"] = i64::MAX.into();
        assert!(render(Kind::PasswordReset, None, &data).is_err());
        assert!(render(Kind::PasswordReset, None, &Value::Null).is_err());
    }

    proptest! {
        #[test]
        fn a_subject_is_one_bounded_line(store in "(?s).{0,300}") {
            let mut data = reset("Ann");
            data["store"] = format!("{store}\r\nBcc: all@example.com").into();
            let mail = render(Kind::PasswordReset, None, &data).unwrap();
            prop_assert!(!mail.subject.contains(|message: char| message.is_control()));
            prop_assert!(mail.subject.chars().count() <= 200);
        }
    }
}
