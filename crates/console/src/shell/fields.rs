//! Fields of resources as cells of lists and as controls of forms, and the parsing of submitted forms.

use chancery_record::{Column, Encoding, Field, Kind, Sealing, Timestamp, format_timestamp, parse_timestamp};
use chancery_resource::settings::CATALOGUE;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::words::Words;

/// The maximum length of a text with a single-line control, in characters.
const ONE_LINE: usize = 320;

/// A cell of a list, in the form that templates expect.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// Kind of the cell: `none`, `title`, `text`, `code`, `badge`, `flag`, `moment`, `reference` or `tags`.
    pub kind: &'static str,
    /// Its text.
    pub text: String,
    /// A second line.
    pub sub: String,
    /// Tone of the state: `good`, `warn`, `bad`, `info` or `off`.
    pub tone: &'static str,
    /// Link target.
    pub href: Option<String>,
    /// The timestamp, in RFC 3339 format.
    pub iso: String,
    /// Several short texts.
    pub items: Vec<Tag>,
    /// How many of the items are not shown.
    pub more: usize,
}

/// One of several short texts of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Tag {
    /// Its text.
    pub text: String,
    /// Link target.
    pub href: Option<String>,
}

impl Cell {
    /// An empty cell.
    pub fn none() -> Self {
        Self { kind: "none", ..Self::default() }
    }

    /// A cell of this kind with a text.
    pub fn of(kind: &'static str, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), ..Self::default() }
    }

    /// A timestamp cell from RFC 3339.
    pub fn moment(iso: &str) -> Self {
        Self { iso: iso.to_owned(), ..Self::of("moment", readable(iso)) }
    }

    /// The same cell with a tone.
    #[must_use]
    pub const fn toned(mut self, tone: &'static str) -> Self {
        self.tone = tone;
        self
    }

    /// The same cell with a second line.
    #[must_use]
    pub fn with_sub(mut self, sub: impl Into<String>) -> Self {
        self.sub = sub.into();
        self
    }
}

/// A member of a row as a cell of a list.
pub fn cell(field: &Field, value: &Value, words: &Words) -> Cell {
    match (field.kind, value) {
        (_, Value::Null) => Cell::none(),
        (Kind::Bool, Value::Bool(true)) => Cell::of("flag", words.page("yes")).toned("good"),
        (Kind::Bool, Value::Bool(false)) => Cell::of("flag", words.page("no")).toned("off"),
        (Kind::Time, Value::String(moment)) => Cell::moment(moment),
        (Kind::Choice(_) | Kind::Numbered(_), _) => {
            let text = choice_name(field, value);
            Cell::of("badge", words.choice(&text)).toned(tone(&text))
        }
        (Kind::Id, Value::String(id)) => Cell::of("code", id),
        (Kind::Bytes(Encoding::Base64), Value::String(data)) => Cell::of("text", size_of(data)),
        (_, value) => Cell::of("text", plain(value)),
    }
}

/// The size of a base64-encoded file, as text.
fn size_of(data: &str) -> String {
    let bytes = data.trim_end_matches('=').len() * 3 / 4;
    if bytes < 10_240 { format!("{bytes} B") } else { format!("{} KB", bytes / 1024) }
}

/// A timestamp in RFC 3339 format.
pub fn rfc3339(moment: Timestamp) -> String {
    let mut out = Vec::new();
    format_timestamp(moment, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// A readable timestamp, in UTC.
pub fn readable(moment: &str) -> String {
    moment.get(..16).map_or_else(|| moment.to_owned(), |text| format!("{} UTC", text.replace('T', " ")))
}

/// The name of a choice, which some resources encode as a number.
fn choice_name(field: &Field, value: &Value) -> String {
    match (field.kind, value) {
        (Kind::Numbered(names), Value::Number(number)) => {
            let index = number.as_u64().and_then(|number| usize::try_from(number).ok());
            index.and_then(|index| names.get(index)).map_or_else(String::new, |name| (*name).to_owned())
        }
        _ => plain(value),
    }
}

/// The tone of a choice, derived from its name, so that new choices have one, too.
fn tone(value: &str) -> &'static str {
    match value {
        "Active" | "SignedIn" | "Completed" | "Approved" | "Added" => "good",
        "Pending" | "Requested" | "Waiting" | "SteppedUp" | "Modified" => "warn",
        "Refused" | "Failed" | "Expired" | "Revoked" | "Deleted" | "Suspended" => "bad",
        _ => "info",
    }
}

/// A value as text.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(texts) if texts.iter().all(Value::is_string) => {
            texts.iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Whether the value of a field is never shown and never prefilled: a secret, or a value that responses do not repeat.
/// All options are sealed; the catalogue lists the secret ones by name.
pub fn is_secret(field: &Field, row: &Value) -> bool {
    let is_option =
        matches!(field.kind, Kind::Text(rule) if rule.name == "OptionValue") && field.wire() == "value";
    if is_option {
        let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
        return CATALOGUE.iter().any(|entry| entry.secret && entry.name == name);
    }
    let is_typed_hidden = matches!(field.kind, Kind::Text(rule) if rule.format == Some("password") || rule.name == "ResetToken");
    let is_shown_once = field.access.column == Column::Unstored && matches!(field.kind, Kind::Text(_));
    field.access.sealing == Sealing::Secret || is_typed_hidden || is_shown_once
}

/// Whether the server generates the value of a field and does not store it, so that only one response contains it.
pub fn is_shown_once(field: &Field) -> bool {
    let access = &field.access;
    let is_generated = access.shown && !access.create && !access.patch;
    is_generated && access.column == Column::Unstored && matches!(field.kind, Kind::Text(_))
}

/// Whether a form leaves a field empty and does not change it if nothing is entered: secrets, and files, which are long.
pub fn is_write_only(field: &Field, row: &Value) -> bool {
    is_secret(field, row) || matches!(field.kind, Kind::Bytes(_))
}

/// The control of a field in a form, as templates name it.
pub fn control(field: &Field, row: &Value) -> &'static str {
    if is_secret(field, row) {
        return "secret";
    }
    match field.kind {
        // the empty value means neither
        Kind::Bool if field.nullable => "choice",
        Kind::Bool => "switch",
        Kind::Int { .. } => "number",
        Kind::Time => "moment",
        Kind::Choice(_) | Kind::Numbered(_) => "choice",
        Kind::Id => "reference",
        Kind::Bytes(_) => "file",
        Kind::Object(_) | Kind::Ids => "code",
        Kind::Texts(_) | Kind::Pairs(_) => "longtext",
        Kind::Text(rule) => match rule.name {
            "Email" => "email",
            "Phone" => "tel",
            "Url" | "PersonalUrl" | "WebAddress" => "url",
            "JsonText" | "ViewText" | "JwksText" | "SignedText" => "code",
            "PatternText" => "pattern",
            _ if rule.max > ONE_LINE => "longtext",
            _ => "text",
        },
    }
}

/// A value for display: secrets are masked.
pub fn display_value(field: &Field, row: &Value, value: &Value) -> String {
    match (field.kind, value) {
        _ if is_secret(field, row) && !value.is_null() => "•••••".to_owned(),
        (Kind::Bytes(Encoding::Base64), Value::String(data)) => size_of(data),
        _ => plain(value),
    }
}

/// A field of a form, in the form that templates expect.
pub struct FormField<'a> {
    /// The field.
    pub field: &'a Field,
    /// The stored row, or the submitted values.
    pub row: &'a Value,
    /// Whether it is read-only.
    pub is_fixed: bool,
    /// Whether it is required.
    pub is_required: bool,
    /// The validation error.
    pub error: &'a str,
    /// Link to the referenced row.
    pub href: Option<String>,
    /// URL of the search for rows that it may refer to.
    pub search: Option<String>,
}

impl FormField<'_> {
    /// The template context of the field.
    pub fn render(&self, words: &Words) -> Value {
        let Self { field, row, is_fixed, is_required, error, href, search } = self;
        let wire = field.wire();
        let value = row.get(wire).unwrap_or(&Value::Null);
        let (is_hidden, is_write_only) = (is_secret(field, row), is_write_only(field, row));
        let (min, max) = match field.kind {
            Kind::Int { min, max } => (Some(min), Some(max)),
            _ => (None, None),
        };
        let max_length = if let Kind::Text(rule) = field.kind { Some(rule.max) } else { None };
        let control = if *is_fixed { "shown" } else { control(field, row) };
        let mut choices: Vec<Value> = match field.kind {
            Kind::Bool if field.nullable => {
                let values = [("true", "yes", json!(true)), ("false", "no", json!(false))];
                let values = values.iter().map(|(sent, key, meant)| {
                    json!({ "value": sent, "label": words.page(key), "is_current": value == meant })
                });
                values.collect()
            }
            Kind::Choice(names) | Kind::Numbered(names) => {
                let current = choice_name(field, value);
                let all = names.iter().map(|name| {
                    json!({ "value": name, "label": words.choice(name), "is_current": *name == current })
                });
                all.collect()
            }
            _ => Vec::new(),
        };
        // browsers preselect the first choice if none is selected
        let has_none = value.is_null() || field.nullable;
        if has_none && !choices.is_empty() {
            choices.insert(
                0,
                json!({ "value": "", "label": words.page("not_set"), "is_current": value.is_null() }),
            );
        }
        json!({
            "name": wire,
            "id": format!("f-{wire}"),
            "label": words.field(wire),
            "hint": if *is_fixed { "" } else { words.explanation(hint(field)) },
            "control": control,
            "value": typed(field, row, value),
            "shown": if is_write_only { String::new() } else { plain(value) },
            "cell": if is_hidden { Cell::none() } else { cell(field, value, words) },
            "choices": choices,
            "required": is_required,
            "disabled": is_fixed,
            "error": error,
            "max_length": max_length,
            "min": min,
            "max": max,
            "href": href,
            "search": search,
            "autocomplete": "off",
            "is_wide": matches!(control, "longtext" | "code" | "file"),
        })
    }
}

/// A form control that is no field of a resource, in the form that templates expect.
pub fn control_field(name: &str, label: &str, control: &str) -> Map<String, Value> {
    let field = json!({
        "name": name, "id": format!("f-{}", name.replace(':', "-")), "label": label, "hint": "", "control": control,
        "value": "", "shown": "", "choices": [], "required": false, "disabled": false, "error": "", "max_length": null,
        "min": null, "max": null, "href": null, "search": null, "autocomplete": "off", "is_wide": true,
    });
    if let Value::Object(field) = field { field } else { Map::new() }
}

/// A field with these members replaced.
pub fn with(field: Value, members: Value) -> Value {
    let mut field = field;
    if let (Some(field), Value::Object(members)) = (field.as_object_mut(), members) {
        field.extend(members);
    }
    field
}

/// The description of a field, if it says more than the label.
pub fn hint(field: &Field) -> &'static str {
    if field.about.split_whitespace().count() > SHORTEST_HINT { field.about } else { "" }
}

/// Shorter descriptions repeat the label.
const SHORTEST_HINT: usize = 4;

/// A value as the control of a form contains it.
pub fn typed(field: &Field, row: &Value, value: &Value) -> Value {
    match (field.kind, value) {
        (_, _) if is_write_only(field, row) => json!(""),
        (Kind::Bool, value) if field.nullable => json!(plain(value)),
        (Kind::Bool, value) => json!(value.as_bool().unwrap_or(false)),
        // a datetime-local value has no zone, no fractions of seconds, and no seconds if they are zero
        (Kind::Time, Value::String(moment)) => {
            let local = moment.get(..19).unwrap_or(moment);
            json!(local.strip_suffix(":00").filter(|local| local.len() == 16).unwrap_or(local))
        }
        (Kind::Choice(_) | Kind::Numbered(_), value) => json!(choice_name(field, value)),
        (Kind::Texts(_), Value::Array(texts)) => {
            json!(texts.iter().map(plain).collect::<Vec<_>>().join("\n"))
        }
        (Kind::Pairs(_), Value::Object(pairs)) => {
            let lines =
                pairs.iter().map(|(name, value)| format!("{name}: {}", plain(value)).trim_end().to_owned());
            json!(lines.collect::<Vec<_>>().join("\n"))
        }
        (_, value) => json!(plain(value)),
    }
}

/// The submitted value of a field, as the member of a request body; `None` if the form lacks it. Values that cannot be
/// parsed are passed on, so that the API reports the error.
pub fn member(field: &Field, row: &Value, sent: &[(String, String)]) -> Option<Value> {
    // a checkbox is preceded by a hidden `false`
    let text = sent.iter().rev().find(|(name, _)| name == field.wire()).map(|(_, text)| text.as_str())?;
    if is_write_only(field, row) && text.is_empty() {
        return None;
    }
    if text.is_empty() && (field.nullable || !matches!(field.kind, Kind::Bool | Kind::Text(_))) {
        return Some(Value::Null);
    }
    // browsers submit CRLF line ends
    let text = text.replace("\r\n", "\n");
    let text = text.as_str();
    Some(match field.kind {
        Kind::Bool => json!(text == "true"),
        Kind::Int { .. } => text.trim().parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
        Kind::Time => moment(text),
        Kind::Texts(_) => json!(lines(text).collect::<Vec<_>>()),
        Kind::Pairs(_) => {
            // a name without a value leaves the stored value unchanged
            let pair = |line: &str| {
                let (name, value) = line.split_once(':').unwrap_or((line, ""));
                let value = Some(value.trim()).filter(|value| !value.is_empty());
                (name.trim().to_owned(), json!(value))
            };
            Value::Object(lines(text).map(pair).collect())
        }
        Kind::Object(_) | Kind::Ids => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        // a pasted file may contain line breaks
        Kind::Bytes(_) => json!(text.split_whitespace().collect::<String>()),
        Kind::Text(_) | Kind::Id | Kind::Choice(_) | Kind::Numbered(_) => json!(text),
    })
}

/// The non-empty lines of a text.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// The members of the body of a creation, without empty ones.
pub fn filled<'a>(fields: impl Iterator<Item = &'a Field>, sent: &[(String, String)]) -> Map<String, Value> {
    let members =
        fields.filter_map(|field| Some((field.wire().to_owned(), member(field, &Value::Null, sent)?)));
    members.filter(|(_, value)| !value.is_null() && value.as_str() != Some("")).collect()
}

/// An entered UTC timestamp, in RFC 3339 format.
pub fn moment(text: &str) -> Value {
    let seconds = if text.len() == 16 { ":00Z" } else { "Z" };
    let whole = format!("{text}{seconds}");
    match parse_timestamp(&whole).or_else(|| parse_timestamp(text)) {
        Some(moment) => json!(rfc3339(moment)),
        None => json!(text),
    }
}

/// A value as a browser would submit it unchanged: a single-line control has no line breaks.
fn comparable(field: &Field, row: &Value, value: &Value) -> String {
    let text = plain(&typed(field, row, value)).replace("\r\n", "\n");
    if matches!(control(field, row), "longtext" | "code" | "pattern") { text } else { text.replace('\n', "") }
}

/// The members of the body of a change: the submitted values that differ from the original ones.
pub fn changes<'a>(
    fields: impl Iterator<Item = &'a Field>,
    sent: &[(String, String)],
    base: &Value,
) -> Map<String, Value> {
    let mut changed = Map::new();
    for field in fields {
        let Some(now) = member(field, base, sent) else { continue };
        let before = base.get(field.wire()).unwrap_or(&Value::Null);
        let is_same = comparable(field, base, before) == comparable(field, base, &now);
        if !is_same || (is_write_only(field, base) && !now.is_null()) {
            changed.insert(field.wire().to_owned(), now);
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use chancery_userstore::user::USER;
    use serde_json::json;

    use super::{changes, control, member};

    fn field(wire: &str) -> &'static chancery_record::Field {
        USER.fields.iter().find(|field| field.wire() == wire).unwrap()
    }

    fn sent(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_switch_counts_as_its_last_value() {
        let active = field("isUserActive");
        assert_eq!(control(active, &json!(null)), "switch");
        let both = [("isUserActive", "false"), ("isUserActive", "true")];
        assert_eq!(member(active, &json!(null), &sent(&both)), Some(json!(true)));
        assert_eq!(member(active, &json!(null), &sent(&both[..1])), Some(json!(false)));
        assert_eq!(member(active, &json!(null), &[]), None);
    }

    #[test]
    fn a_moment_is_in_utc() {
        let until = field("userValidTo");
        let member = |text: &str| member(until, &json!(null), &sent(&[("userValidTo", text)])).unwrap();
        let begins = |text: &str, begin: &str| member(text).as_str().unwrap().starts_with(begin);
        assert!(begins("2027-12-31T23:00", "2027-12-31T23:00:00"), "{}", member("2027-12-31T23:00"));
        assert!(begins("2027-12-31T23:00:05", "2027-12-31T23:00:05"));
        assert_eq!(member("soon"), json!("soon"), "the interface says what is wrong");
        assert_eq!(member(""), json!(null));
    }

    #[test]
    fn only_changed_members_are_sent() {
        let base = json!({ "loginName": "ada", "firstName": "Ada", "userValidTo": "2027-12-31T23:00:00Z" });
        let typed = [
            ("loginName", "ada"),
            ("firstName", ""),
            ("userValidTo", "2027-12-31T23:00:00"),
            ("nickname", ""),
        ];
        let changed = changes(USER.fields.iter(), &sent(&typed), &base);
        assert_eq!(serde_json::Value::Object(changed), json!({ "firstName": null }));
    }
}
