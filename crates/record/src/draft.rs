//! Reading a body against the field table: its members, their types and their bounds.

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD},
};

use crate::{
    Access, Column, Field, FieldError, FieldErrors, Json, Kind, TextRule, Value, canonical_json, json_of,
    parse_id, parse_timestamp, pointer, value::Encoding,
};

/// The type of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// POST: absent and null both mean not set, and fall to the default.
    Create,
    /// PUT: a missing member that can be empty becomes empty; any other keeps its value.
    Put,
    /// PATCH with `application/json`: absent and null both mean unchanged.
    Patch,
    /// PATCH with `application/merge-patch+json` (RFC 7396): null clears.
    MergePatch,
}

/// The body's content for one field.
#[derive(Clone, Debug, PartialEq)]
pub enum Provided {
    /// Nothing: the field keeps its value, or takes its default.
    Nothing,
    /// Empties the field.
    Empty,
    /// A value.
    Value(Value),
    /// A text that its rule refuses, and the reason. A stored text may be sent back, so the caller, which knows
    /// the row, decides.
    Unfit(Value, String),
}

/// The body's content, in the order of the resource's fields.
#[derive(Clone, Debug)]
pub struct Draft(pub Vec<Provided>);

impl Draft {
    /// The values of a new row: those provided, else the defaults.
    pub fn to_new(&self, fields: &[Field]) -> Vec<Value> {
        let filled = |(field, provided): (&Field, &Provided)| match provided {
            Provided::Value(value) => value.clone(),
            Provided::Nothing | Provided::Empty | Provided::Unfit(..) => field.access.default.to_value(),
        };
        fields.iter().zip(&self.0).map(filled).collect()
    }

    /// The texts that rules refuse and that differ from the stored ones, each with its index; `was` contains
    /// the stored ones.
    pub fn unfit<'a>(&'a self, was: &'a [Value]) -> impl Iterator<Item = (usize, &'a str)> {
        let own = self.0.iter().zip(was).enumerate();
        own.filter_map(|(index, (provided, was))| match provided {
            Provided::Unfit(value, detail) if value != was => Some((index, detail.as_str())),
            _ => None,
        })
    }

    /// The values of a row after this change; `was` contains those before.
    pub fn apply(&self, was: &[Value]) -> Vec<Value> {
        let changed = |(was, provided): (&Value, &Provided)| match provided {
            Provided::Value(value) => value.clone(),
            Provided::Empty => Value::Null,
            Provided::Nothing | Provided::Unfit(..) => was.clone(),
        };
        was.iter().zip(&self.0).map(changed).collect()
    }

    /// Drops the values of all fields but `allowed`, the concurrency token and the key.
    pub fn retain_fields(&mut self, fields: &[Field], allowed: &[&Field]) {
        for (field, provided) in fields.iter().zip(&mut self.0) {
            if !allowed.iter().any(|allowed| allowed.is(field)) && !field.is_token() && !field.access.key {
                *provided = Provided::Nothing;
            }
        }
    }

    /// The value provided for the field at this index, if there is one.
    pub fn provided(&self, index: usize) -> Option<&Value> {
        match self.0.get(index) {
            Some(Provided::Value(value)) => Some(value),
            _ => None,
        }
    }
}

/// Members that a body may contain besides the fields; they are ignored.
#[derive(Clone, Copy, Debug)]
pub enum Others<'a> {
    /// Members of these names: the nested arrays of the response form.
    Named(&'a [&'a str]),
    /// Members of any name.
    Any,
}

/// Reads a body against the field table. `base` is the JSON Pointer of the body in its document (`""`, or
/// `/17` in a batch).
///
/// # Errors
/// Every member that is unknown, missing, of the wrong type or out of bounds; the first
/// [`MAX_ERRORS`](crate::MAX_ERRORS) of them are reported, the others counted. Where a change has no errors
/// but texts that their rules refuse, they are [`Provided::Unfit`]: the row may contain them already.
pub fn read_draft(
    fields: &[Field],
    others: Others<'_>,
    form: Form,
    body: &Json,
    base: &str,
) -> Result<Draft, FieldErrors> {
    let Json::Object(members) = body else {
        let detail = format!("must be an object, not {}", body.word());
        return Err(vec![FieldError::new(base, detail)].into());
    };
    let mut errors = FieldErrors::default();
    let mut draft: Vec<Provided> = vec![Provided::Nothing; fields.len()];
    let mut named = vec![false; fields.len()];
    let mut unfit = 0;
    for (name, value) in members {
        let is_known = |field: &Field| field.access.shown || field.access.create;
        let index = fields.iter().position(|field| is_known(field) && field.is_named(name));
        let Some((index, field)) = index.and_then(|at| Some((at, fields.get(at)?))) else {
            if let Others::Named(names) = others
                && !names.contains(&name.as_str())
            {
                errors.note(|| FieldError::new(pointer(base, name), "is not a member of this resource"));
            }
            continue;
        };
        // a create-only member is read for comparison, except in legacy views
        let is_compared =
            form != Form::Create && field.is_create_only() && matches!(others, Others::Named(_));
        if !is_read(field, form) && !is_compared {
            continue;
        }
        match read_member(field, form, value) {
            Ok(provided) => {
                if let (Some(slot), Some(name)) = (draft.get_mut(index), named.get_mut(index)) {
                    *name = provided != Provided::Nothing;
                    *slot = provided;
                }
            }
            Err(detail) => {
                if let (Some(slot), Some(named)) = (draft.get_mut(index), named.get_mut(index)) {
                    *named = true;
                    if let Some(text) = stored_text(field, form, value) {
                        *slot = Provided::Unfit(text, detail.clone());
                        unfit += 1;
                    }
                }
                errors.note(|| FieldError::new(pointer(base, name), detail));
            }
        }
    }
    for ((field, slot), named) in fields.iter().zip(&mut draft).zip(named) {
        let missing = match form {
            Form::Create => field.required(),
            Form::Put | Form::Patch | Form::MergePatch => field.is_required_token(),
        };
        if missing && !named {
            errors.note(|| FieldError::new(pointer(base, field.wire()), "is missing"));
        }
        if form == Form::Put && field.access.put && field.nullable && !field.access.retained && !named {
            *slot = Provided::Empty;
        }
    }
    if errors.all() == unfit { Ok(Draft(draft)) } else { Err(errors) }
}

/// A text as a row can contain it that was stored before its rule became stricter.
fn stored_text(field: &Field, form: Form, value: &Json) -> Option<Value> {
    match (field.kind, value) {
        (Kind::Text(rule), Json::Text(text)) if form != Form::Create && !field.access.key => {
            Some(Value::Text(rule.trimmed(text).to_owned()))
        }
        _ => None,
    }
}

/// Whether a body of this form is read for the field. Other fields are ignored, so that a client can read a
/// resource, change it and send it back.
fn is_read(field: &Field, form: Form) -> bool {
    let Access { create, put, patch, key, column, .. } = field.access;
    match form {
        Form::Create => create && !field.is_token(),
        Form::Put => put || field.is_required_token() || (key && column == Column::Own),
        Form::Patch | Form::MergePatch => {
            patch || field.is_required_token() || (key && column == Column::Own)
        }
    }
}

fn read_member(field: &Field, form: Form, value: &Json) -> Result<Provided, String> {
    if *value == Json::Null {
        return match form {
            Form::Create | Form::Patch => Ok(Provided::Nothing),
            Form::Put if field.is_create_only() => Ok(Provided::Nothing),
            Form::Put => Ok(if field.nullable { Provided::Empty } else { Provided::Nothing }),
            Form::MergePatch if field.nullable => Ok(Provided::Empty),
            Form::MergePatch if field.is_token() || field.access.key => Ok(Provided::Nothing),
            Form::MergePatch => Err("cannot be emptied".to_owned()),
        };
    }
    if field.nullable && is_empty_text(field.kind, value) {
        return Ok(Provided::Empty);
    }
    read_value(field.kind, value).map(Provided::Value)
}

/// The value of a member after a PUT with this value, as in an answer; `None` where it leaves the member
/// unchanged. A value that no row can contain stays as it is.
pub fn value_after_put(field: &Field, sent: &serde_json::Value) -> Option<serde_json::Value> {
    match read_member(field, Form::Put, &Json::from_serde(sent.clone())) {
        Ok(Provided::Nothing) => None,
        Ok(Provided::Empty) => Some(serde_json::Value::Null),
        Ok(Provided::Value(value)) => Some(json_of(&field.kind, value.cell())),
        Ok(Provided::Unfit(..)) | Err(_) => Some(sent.clone()),
    }
}

/// The reason why a write would refuse a stored value sent back; `None` where it would be accepted.
pub fn violation_of(field: &Field, stored: &Value) -> Option<String> {
    // lists of ids are written by the server
    if matches!(field.kind, Kind::Ids) {
        return None;
    }
    read_member(field, Form::Put, &Json::from_serde(json_of(&field.kind, stored.cell()))).err()
}

/// Whether an empty text means no value.
fn is_empty_text(kind: Kind, value: &Json) -> bool {
    match (kind, value) {
        (Kind::Text(rule), Json::Text(text)) => !rule.stores_empty && rule.trimmed(text).is_empty(),
        (_, Json::Text(text)) => text.is_empty(),
        _ => false,
    }
}

fn read_value(kind: Kind, value: &Json) -> Result<Value, String> {
    let expected = match (kind, value) {
        (Kind::Id, Json::Text(text)) => {
            return parse_id(text).map(Value::Id).ok_or_else(|| "must be a UUID".to_owned());
        }
        (Kind::Bool, Json::Bool(value)) => return Ok(Value::Bool(*value)),
        (Kind::Int { min, max }, Json::Int(value)) if (min..=max).contains(value) => {
            return Ok(Value::Int(*value));
        }
        (Kind::Int { min, max }, Json::Int(_)) => format!("must be from {min} to {max}"),
        (Kind::Text(rule), Json::Text(text)) => return rule.check(text.clone()).map(Value::Text),
        (Kind::Text(rule @ TextRule { takes_object: true, .. }), Json::Object(_)) => {
            let text = value.to_text().ok_or("holds a number that is not whole: send the object as text")?;
            return rule.check(text).map(Value::Text);
        }
        (Kind::Numbered(names), Json::Int(index)) => {
            let known = usize::try_from(*index).ok().and_then(|index| names.get(index));
            return known
                .map(|name| Value::Text((*name).to_owned()))
                .ok_or_else(|| format!("must be from 0 to {}", names.len().saturating_sub(1)));
        }
        (Kind::Choice(names) | Kind::Numbered(names), Json::Text(text)) => {
            let known = names.iter().find(|name| name.eq_ignore_ascii_case(text));
            return known.map_or_else(
                || Err(format!("must be one of {}", names.join(", "))),
                |name| Ok(Value::Text((*name).to_owned())),
            );
        }
        (Kind::Time, Json::Text(text)) => {
            return parse_timestamp(text)
                .map(|moment| Value::Int(moment.0))
                .ok_or_else(|| "must be a date-time such as 2026-11-21T09:30:00Z (RFC 3339)".to_owned());
        }
        (Kind::Bytes(Encoding::Base64), Json::Text(text)) => {
            let decoded = BASE64_STANDARD.decode(text).or_else(|_| BASE64_STANDARD_NO_PAD.decode(text));
            return decoded.map(Value::Bytes).map_err(|_| "must be base64 (RFC 4648, section 4)".to_owned());
        }
        (Kind::Object(fields), Json::Object(_)) => return read_object(fields, value),
        (Kind::Texts(rule), Json::Array(items)) => return rule.read(items),
        (Kind::Pairs(rule), Json::Object(members)) => return rule.read(members),
        (kind, value) => {
            let expected = match kind {
                Kind::Bool => "true or false",
                Kind::Int { .. } | Kind::Numbered(_) => "a whole number",
                Kind::Object(_) | Kind::Pairs(_) => "an object",
                Kind::Texts(_) => "an array of strings",
                Kind::Ids => "left to the server",
                _ => "a string",
            };
            format!("must be {expected}, not {}", value.word())
        }
    };
    Err(expected)
}

/// Reads an object of a body; returns its members as canonical JSON.
fn read_object(fields: &[Field], value: &Json) -> Result<Value, String> {
    match read_draft(fields, Others::Named(&[]), Form::Create, value, "") {
        Ok(draft) => Ok(Value::Text(canonical_json(fields.iter().zip(&draft.to_new(fields))))),
        Err(errors) => {
            let reported = errors.iter().map(|error| format!("{} {}", error.pointer, error.detail));
            Err(format!("is wrong inside: {}", reported.collect::<Vec<_>>().join("; ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Others, Provided, read_draft};
    use crate::{
        DefaultValue, FieldErrors, KEY, Name, OPEN, Record, SHOWN, Timestamp, Token, Value, read_json, record,
    };

    record! {
        /// A thing to test with.
        struct Thing {
            id: uuid::Uuid = KEY,
            name: Name = OPEN,
            note: Option<Name> = OPEN,
            is_open: bool = OPEN.or(DefaultValue::Bool(true)),
            seen_on: Option<Timestamp> = SHOWN,
            concurrency_token: Token = SHOWN,
        }
    }

    fn read(form: Form, body: &str) -> Result<Vec<Provided>, FieldErrors> {
        let json = read_json(body.as_bytes()).unwrap();
        read_draft(Thing::FIELDS, Others::Named(&["parts"]), form, &json, "").map(|draft| draft.0)
    }

    fn pointers(form: Form, body: &str) -> Vec<String> {
        read(form, body).unwrap_err().into_iter().map(|error| error.pointer).collect()
    }

    #[test]
    fn create_reads_writable_members_and_ignores_the_servers() {
        let provided = read(Form::Create, r#"{"name": "n", "seenOn": 7, "parts": 1, "note": null}"#);
        let provided = provided.unwrap();
        assert_eq!(provided[1], Provided::Value(Value::from("n")));
        assert!(provided[2..].iter().all(|provided| *provided == Provided::Nothing));
        assert_eq!(pointers(Form::Create, "{}"), ["/name"]);
        assert_eq!(pointers(Form::Create, r#"{"name": ""}"#), ["/name"]);
        assert_eq!(pointers(Form::Create, r#"{"name": "n", "nmae": 1}"#), ["/nmae"]);
        assert_eq!(pointers(Form::Create, r#"{"name": 1, "id": "x"}"#), ["/name", "/id"]);
    }

    /// Section 15: typed text is trimmed, blank text is no value; a JWK set is text or an object.
    #[test]
    fn typed_text_is_trimmed_and_a_jwk_set_may_be_an_object() {
        let provided = read(Form::Create, r#"{"name": " n ", "note": "\u2003 "}"#).unwrap();
        assert_eq!(provided[1..3], [Provided::Value(Value::from("n")), Provided::Empty]);
        assert_eq!(pointers(Form::Create, r#"{"name": "  "}"#), ["/name"]);
        let kind = crate::Kind::Text(&crate::JwksText::RULE);
        let json = read_json(br#"{"keys": [{"kty": "EC", "n": [1, true, null]}]}"#).unwrap();
        assert_eq!(
            super::read_value(kind, &json),
            Ok(Value::from(r#"{"keys":[{"kty":"EC","n":[1,true,null]}]}"#))
        );
        assert!(super::read_value(kind, &read_json(br#"{"keys": [1.5]}"#).unwrap()).is_err());
    }

    #[test]
    fn put_empties_missing_nullable_members_and_keeps_the_others() {
        let provided = read(Form::Put, r#"{"concurrencyToken": "t"}"#).unwrap();
        assert_eq!(provided[1..4], [Provided::Nothing, Provided::Empty, Provided::Nothing]);
        assert_eq!(pointers(Form::Put, r#"{"name": "n"}"#), ["/concurrencyToken"]);
    }

    /// A rule can become stricter: the stored text may be sent back, but no other text that the rule refuses.
    #[test]
    fn a_change_may_contain_an_invalid_text_that_is_stored_already() {
        let body = r#"{"note": " a\u0085b", "concurrencyToken": "t"}"#;
        for form in [Form::Put, Form::Patch, Form::MergePatch] {
            let draft = super::Draft(read(form, body).unwrap());
            let row = |note: &str| {
                let (id, token) = (Value::Id(uuid::Uuid::nil()), Value::from("t"));
                vec![id, "n".into(), note.into(), true.into(), Value::Null, token]
            };
            assert_eq!(draft.unfit(&row("a\u{85}b")).count(), 0);
            assert_eq!(draft.apply(&row("a\u{85}b"))[2], Value::from("a\u{85}b"));
            assert_eq!(draft.unfit(&row("b")).map(|(index, _)| index).collect::<Vec<_>>(), [2]);
        }
        assert_eq!(pointers(Form::Create, r#"{"name": "n", "note": "a\u0085b"}"#), ["/note"]);
        let with_other_error = r#"{"note": "a\u0085b", "isOpen": 7, "concurrencyToken": "t"}"#;
        assert_eq!(pointers(Form::Put, with_other_error), ["/note", "/isOpen"]);
    }

    #[test]
    fn patch_and_merge_patch_differ_in_null() {
        let body = r#"{"note": null, "concurrencyToken": "t"}"#;
        assert_eq!(read(Form::Patch, body).unwrap()[2], Provided::Nothing);
        assert_eq!(read(Form::MergePatch, body).unwrap()[2], Provided::Empty);
        assert_eq!(pointers(Form::MergePatch, r#"{"name": null, "concurrencyToken": "t"}"#), ["/name"]);
    }

    use proptest::prelude::{Strategy, any, prop_assert, proptest};

    fn bodies() -> impl Strategy<Value = String> {
        use proptest::prelude::prop_oneof;
        let name = prop_oneof!["id|name|note|isOpen|seenOn|concurrencyToken|parts", "\\PC{0,6}"];
        let value = prop_oneof![
            "null|true|false|[0-9]{1,22}|-?[0-9]\\.[0-9]e[0-9]",
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
            "\\[\\]|\\{\\}|\\[1,\\[\\]\\]",
        ];
        let member = (name, value)
            .prop_map(|(name, value)| format!("{}:{value}", serde_json::to_string(&name).unwrap()));
        proptest::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(",")))
    }

    proptest! {
        /// Any body is read, or refused with pointers to its members; the result fits the record.
        #[test]
        fn bodies_are_read_or_refused(body in bodies()) {
            let Ok(json) = read_json(body.as_bytes()) else { return Ok(()) };
            for form in [Form::Create, Form::Put, Form::Patch, Form::MergePatch] {
                match read_draft(Thing::FIELDS, Others::Named(&["parts"]), form, &json, "") {
                    Ok(draft) => {
                        let mut values = draft.to_new(Thing::FIELDS);
                        values[0] = Value::Id(uuid::Uuid::nil());
                        values[5] = Value::from("t");
                        if values[1].is_null() { values[1] = Value::from("n"); }
                        if values[3].is_null() { values[3] = Value::Bool(true); }
                        prop_assert!(Thing::from_values(values).is_ok());
                    }
                    Err(errors) => prop_assert!(!errors.is_empty() && errors.iter().all(|error| error.pointer.starts_with('/'))),
                }
            }
        }

        #[test]
        fn bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = read_json(&bytes);
        }
    }
}
