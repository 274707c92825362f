//! A setting: an option of the catalogue as a form control, and as text.

use chancery_resource::settings::{Entry, Form, clock, flag, span};
use serde_json::{Map, Value, json};

use super::{
    fields::control_field,
    visit::{Parameters, one},
    words::Words,
};

/// The units of durations: their keys in the texts, and their milliseconds.
const UNITS: [(&str, i64); 4] =
    [("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000)];

/// The members of a mail server setting, each with its control.
const MAIL: [(&str, &str); 5] = [
    ("Host", "text"),
    ("Port", "number"),
    ("EnableSSL", "switch"),
    ("UserName", "text"),
    ("Password", "secret"),
];

/// A duration in the largest unit in which it is an integer; `None` if it has fractions of a second.
fn in_unit(milliseconds: i64) -> Option<(i64, &'static str)> {
    let fitting = |(_, unit): &&(&str, i64)| milliseconds % unit == 0 && (milliseconds > 0 || *unit == 1000);
    UNITS.iter().find(fitting).map(|(name, unit)| (milliseconds / unit, *name))
}

/// A value as text.
pub fn in_words(entry: &Entry, value: &str, words: &Words) -> String {
    match entry.form {
        Form::Flag => words.page(if flag(value) == Some(true) { "yes" } else { "no" }).to_owned(),
        Form::Span(..) => match span(value).and_then(in_unit) {
            Some((1, unit)) => format!("1 {}", words.page(unit.trim_end_matches('s'))),
            Some((number, unit)) => format!("{number} {}", words.page(unit)),
            None => value.to_owned(),
        },
        Form::Choice(choices) => {
            let named = choices.iter().find(|choice| choice.eq_ignore_ascii_case(value));
            words.choice_of(entry.name, named.copied().unwrap_or(value)).to_owned()
        }
        _ if value.is_empty() => words.page("nothing").to_owned(),
        _ => value.to_owned(),
    }
}

/// The controls of a setting with this value; the first one has the setting's name.
pub fn controls(name: &str, entry: Option<&Entry>, value: &str, words: &Words) -> Vec<Map<String, Value>> {
    let form = entry.map_or(Form::Text, |entry| entry.form);
    let is_secret = entry.is_some_and(|entry| entry.secret);
    let label = words.option(name);
    let with = |control: &str, members: Vec<(&str, Value)>| {
        let mut field = control_field(name, &label, control);
        field.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
        vec![field]
    };
    match form {
        Form::MailServer if is_secret => mail(name, words),
        _ if is_secret => with("secret", Vec::new()),
        Form::Flag => with("switch", vec![("value", json!(flag(value) == Some(true)))]),
        Form::Number(min, max) => with(
            "number",
            vec![
                ("value", json!(value)),
                ("min", json!(min)),
                ("max", json!(max)),
                ("is_wide", json!(false)),
            ],
        ),
        Form::Span(..) => match span(value).and_then(in_unit) {
            Some((number, current)) => {
                let choices: Vec<Value> = UNITS
                    .iter()
                    .map(|(unit, _)| json!({ "value": unit, "label": words.page(unit), "is_current": *unit == current }))
                    .collect();
                with(
                    "duration",
                    vec![("value", json!(number)), ("choices", json!(choices)), ("is_wide", json!(false))],
                )
            }
            None => with("text", vec![("value", json!(value)), ("is_wide", json!(false))]),
        },
        Form::Links | Form::Recipients | Form::Origins | Form::Aaguids => {
            let lines: Vec<&str> = value.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
            with("tags", vec![("value", json!(lines.join("\n")))])
        }
        Form::Choice(choices) => {
            let choices: Vec<Value> = choices
                .iter()
                .map(|one| json!({ "value": one, "label": words.choice_of(name, one), "is_current": one.eq_ignore_ascii_case(value) }))
                .collect();
            with("choice", vec![("choices", json!(choices)), ("is_wide", json!(false))])
        }
        Form::Text
        | Form::Colour
        | Form::Address
        | Form::Page
        | Form::Endpoint
        | Form::CallbackPath
        | Form::Domain
        | Form::Sender
        | Form::Scopes
        | Form::Resources
        | Form::Identifiers
        | Form::Name
        | Form::AuthenticatorIssuer
        | Form::LinkTemplate
        | Form::MailServer => {
            with("text", vec![("value", json!(value)), ("is_wide", json!(value.len() > 60))])
        }
    }
}

/// The controls of a mail server setting. None is prefilled, since the whole setting is one secret.
fn mail(name: &str, words: &Words) -> Vec<Map<String, Value>> {
    let fields = MAIL.iter().enumerate().map(|(index, (member, control))| {
        let wire = if index == 0 { name.to_owned() } else { format!("{name}.{member}") };
        let mut field = control_field(&wire, &words.option(&format!("Mail{member}")), control);
        field.extend([
            ("id".to_owned(), json!(format!("f-{}", wire.replace('.', "-")))),
            ("is_wide".to_owned(), json!(false)),
        ]);
        field
    });
    fields.collect()
}

/// The submitted value of a setting, as options store it; `None` if the form lacks it.
pub fn sent(name: &str, entry: Option<&Entry>, form: &Parameters) -> Option<String> {
    // a checkbox is preceded by a hidden `false`
    let text = form.iter().rev().find(|(known, _)| known == name).map(|(_, text)| text.trim())?;
    let kind = entry.map_or(Form::Text, |entry| entry.form);
    if entry.is_some_and(|entry| entry.secret) {
        return match kind {
            _ if text.is_empty() => None,
            Form::MailServer => Some(mail_server(name, text, form)),
            _ => Some(text.to_owned()),
        };
    }
    Some(match kind {
        Form::Span(..) => {
            let unit = one(form, &format!("{name}.unit"))
                .and_then(|unit| UNITS.iter().find(|(known, _)| *known == unit));
            let length =
                unit.zip(text.parse::<i64>().ok()).and_then(|((_, unit), number)| number.checked_mul(*unit));
            length.filter(|length| *length >= 0).map_or_else(|| text.to_owned(), clock)
        }
        Form::Links | Form::Recipients | Form::Origins | Form::Aaguids => {
            let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            lines.join(",")
        }
        _ => text.replace("\r\n", "\n"),
    })
}

fn mail_server(name: &str, host: &str, form: &Parameters) -> String {
    let typed = |member: &str| {
        let wire = format!("{name}.{member}");
        form.iter()
            .rev()
            .find(|(known, _)| *known == wire)
            .map(|(_, text)| text.as_str())
            .filter(|text| !text.is_empty())
    };
    let mut server = Map::from_iter([
        ("MailType".to_owned(), json!("SMTP")),
        ("Host".to_owned(), json!(host)),
        ("EnableSSL".to_owned(), json!(typed("EnableSSL") == Some("true"))),
    ]);
    if let Some(port) = typed("Port") {
        server
            .insert("Port".to_owned(), port.parse::<u16>().map_or_else(|_| json!(port), |port| json!(port)));
    }
    for member in ["UserName", "Password"] {
        server.extend(typed(member).map(|text| (member.to_owned(), json!(text))));
    }
    Value::Object(server).to_string()
}

#[cfg(test)]
mod tests {
    use chancery_resource::settings::{CATALOGUE, Form, clock};

    use super::{controls, in_unit, in_words, sent};
    use crate::shell::words::Words;

    #[test]
    fn a_duration_is_shown_in_its_largest_unit() {
        assert_eq!(in_unit(300_000), Some((5, "minutes")));
        assert_eq!(in_unit(90_000), Some((90, "seconds")));
        assert_eq!(in_unit(0), Some((0, "seconds")));
        assert_eq!((in_unit(1500), clock(93_784_000)), (None, "1.02:03:04".to_owned()));
        let words = Words::of(["en"]);
        let span = CATALOGUE.iter().find(|entry| matches!(entry.form, Form::Span(..))).unwrap();
        assert_eq!(in_words(span, "1.00:00:00", words), "1 day");
        assert_eq!(in_words(span, "P14D", words), "14 days");
    }

    /// A form that is submitted unchanged changes nothing.
    #[test]
    fn an_untouched_settings_form_changes_nothing() {
        let words = Words::of(["en"]);
        for entry in CATALOGUE.iter().filter(|entry| !entry.secret) {
            let field = controls(entry.name, Some(entry), entry.default, words).remove(0);
            let mut form = Vec::new();
            let value = match &field["value"] {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let current = field["choices"].as_array().unwrap().iter().find(|one| one["is_current"] == true);
            let current = current.map(|one| one["value"].as_str().unwrap().to_owned());
            match field["control"].as_str().unwrap() {
                "choice" => form.push((entry.name.to_owned(), current.unwrap())),
                "duration" => {
                    form.push((entry.name.to_owned(), value));
                    form.push((format!("{}.unit", entry.name), current.unwrap()));
                }
                _ => form.push((entry.name.to_owned(), value)),
            }
            assert_eq!(sent(entry.name, Some(entry), &form).unwrap(), entry.default, "{}", entry.name);
        }
    }
}
