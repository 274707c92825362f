//! The page `docs/settings.md`: what each setting does, made from the declarations, the effects that tests state, and `spec/values.tsv`.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use chancery::services;
use chancery_record::{DefaultValue, Field, Kind};
use chancery_resource::settings::{CATALOGUE, Entry, Form, clock};

use super::{Row, can_be_set, owner_of_options, rows, values, writes_rows};

const PAGE: &str = "docs/settings.md";

const HEAD: &str = "# What each setting does

Made from the declarations of fields and options, the effects that tests state in their documentation, and `spec/values.tsv` by
`tests/contract/effects/page.rs`; do not edit. What is *refused when used* is stored as documented, and this
release refuses its use: requests get an error with a description, and the console shows it with a badge.

A length of time is written as `[d.]hh:mm:ss` or by ISO 8601. An option without a value has its default; where none is named, it is empty.
";

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn listed(words: &[&str]) -> String {
    words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", ")
}

/// The possible values of a field.
fn of_kind(kind: Kind) -> String {
    match kind {
        Kind::Id => "id".to_owned(),
        Kind::Bool => "`true` or `false`".to_owned(),
        Kind::Int { min: 0, max: 9_007_199_254_740_991 } => "whole number".to_owned(),
        Kind::Int { min, max } => format!("{min} to {max}"),
        Kind::Text(rule) => format!("text of at most {} characters", rule.max),
        Kind::Choice(words) | Kind::Numbered(words) => listed(words),
        Kind::Time => "time".to_owned(),
        Kind::Bytes(_) => "bytes".to_owned(),
        Kind::Object(_) => "object".to_owned(),
        Kind::Ids => "ids".to_owned(),
        Kind::Texts(rule) => format!("at most {} texts", rule.most),
        Kind::Pairs(rule) => format!("at most {} names with values", rule.most),
    }
}

/// The possible values of an option.
fn of_form(form: Form) -> String {
    let fixed = match form {
        Form::Flag => "`true` or `false`",
        Form::Number(min, max) => return format!("{min} to {max}"),
        Form::Span(min, max) => return format!("{} to {}", code(&clock(min)), code(&clock(max))),
        Form::Choice(words) => return listed(words),
        Form::Text => "text",
        Form::MailServer => "settings of a mail server, as JSON",
        Form::Sender => "e-mail address, perhaps behind a name",
        Form::Recipients => "e-mail addresses, separated by commas",
        Form::LinkTemplate => "address with `{token}`, and `{loginName}`",
        Form::Colour => "`#rgb` or `#rrggbb`",
        Form::Address => "https address, or path at this server",
        Form::Page => "address of a page, or path at this server",
        Form::Endpoint => "https address, or an http one where the operator allows that",
        Form::CallbackPath => "path of this server, below none of its own",
        Form::Domain => "domain name",
        Form::Origins => "origins of pages and apps, separated by commas; a path after an origin is ignored",
        Form::Aaguids => "AAGUIDs, separated by commas",
        Form::Links => "names, each with an address behind a blank, separated by commas",
        Form::Scopes => "scopes, separated by blanks or commas",
        Form::Resources => "addresses without fragments, separated by blanks or commas",
        Form::Identifiers => "identifiers, separated by blanks or commas",
        Form::Name => "name of at most 200 bytes",
        Form::AuthenticatorIssuer => "name of at most 200 bytes, without a colon",
    };
    fixed.to_owned()
}

/// The possible values and the default of a setting.
fn about(owner: &str, name: &str) -> (String, String) {
    let matches_setting =
        |entry: &&Entry| owner_of_options(entry.owner.type_name()) == owner && entry.name == name;
    if let Some(entry) = CATALOGUE.iter().find(matches_setting) {
        let form =
            if entry.secret { format!("{}; secret", of_form(entry.form)) } else { of_form(entry.form) };
        let default = match (entry.mandatory, entry.default) {
            (true, _) => "must be set".to_owned(),
            (false, "") => String::new(),
            (false, default) => code(default),
        };
        return (form, default);
    }
    let service = services();
    let mut fields = service
        .iter()
        .flat_map(|service| service.all())
        .filter(|op| op.shape.base.is_none() && op.shape.name == owner && writes_rows(op))
        .flat_map(|op| op.shape.fields);
    match fields.find(|field: &&Field| can_be_set(field) && field.wire() == name) {
        Some(field) => {
            let default = match field.access.default {
                DefaultValue::None if field.nullable => String::new(),
                DefaultValue::None => "must be set".to_owned(),
                DefaultValue::Bool(value) => code(&value.to_string()),
                DefaultValue::Int(value) => code(&value.to_string()),
                DefaultValue::Text(text) => code(text),
            };
            (of_kind(field.kind), default)
        }
        None => ("relation".to_owned(), String::new()),
    }
}

/// The state of a setting, with the values whose use is rejected nevertheless.
fn state(row: &Row) -> String {
    let rejected: Vec<&str> = values()
        .into_iter()
        .filter(|values| values.setting == row.setting && values.state != "works")
        .flat_map(|values| values.values)
        .collect();
    if row.state == "works" && !rejected.is_empty() {
        return format!("works; refused when used: {}", listed(&rejected));
    }
    row.state.to_owned()
}

fn page() -> String {
    let mut owners: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows() {
        owners.entry(row.setting.0.clone()).or_default().push(row);
    }
    let mut page = HEAD.to_owned();
    for (owner, rows) in owners {
        let _ = write!(
            page,
            "\n## {owner}\n\n| Setting | Values | Default | Effect | State |\n|---|---|---|---|---|\n"
        );
        for row in rows {
            let (form, default) = about(&owner, &row.setting.1);
            let _ = writeln!(
                page,
                "| `{}` | {} | {default} | {} | {} |",
                row.setting.1,
                form.replace('|', "\\|"),
                row.effect.replace('|', "\\|"),
                state(&row)
            );
        }
    }
    page
}

#[test]
fn the_page_of_settings_is_as_they_are_declared() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(PAGE);
    let generated = page();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&path, &generated).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == generated,
        "{PAGE} is stale: INSTA_UPDATE=always scripts/test -- the_page_of_settings writes it anew"
    );
}
