//! What an operation can be sent, by its declarations, and how a lower administrator must be answered.

use std::collections::BTreeSet;

use chancery_record::{Field, Kind};
use chancery_resource::{Action, Body, Custom, Op, RoleType};
use chancery_testkit::Client;
use http::Method;
use serde_json::{Value as Json, json};

/// Texts, of which each rule takes one.
const TEXTS: [&str; 9] = [
    "four walked herons",
    "walked@example.com",
    "https://walked.example/",
    "+49 30 90817263",
    "2001-02-03",
    "Europe/Berlin",
    "de-DE",
    "walked",
    "female",
];

/// A request that an operation answers.
pub struct Attempt {
    /// The operation.
    pub operation: String,
    /// The member that it changes, where it is one of several.
    pub member: String,
    /// The resource of the operation.
    pub resource: &'static str,
    pub method: Method,
    pub path: String,
    /// The media type of the body.
    pub kind: &'static str,
    pub body: Vec<u8>,
    /// Whether it leaves what is protected as it is.
    pub is_open: bool,
}

impl Attempt {
    /// Tries it.
    pub async fn by(&self, client: &Client) -> (u16, String) {
        let path = format!("{}?dryRun=true", self.path);
        let answer =
            client.send(self.method.clone(), &path, &[("content-type", self.kind)], self.body.clone()).await;
        (answer.status.as_u16(), String::from_utf8_lossy(&answer.bytes).into_owned())
    }

    /// The operation, and the member.
    fn name(&self) -> String {
        format!("{} {}", self.operation, self.member).trim_end().to_owned()
    }

    /// What shows nothing where a SystemAdmin is not answered: a member, whichever operation changes it, or the operation.
    fn shown(&self) -> String {
        if self.member.is_empty() {
            self.operation.clone()
        } else {
            format!("{} {}", self.resource, self.member)
        }
    }
}

/// Tries all of it by a SystemAdmin and by each lower role. What is protected must be refused to each, with the role that it
/// takes to whoever could do it otherwise; what is open must be answered to one of them as to a SystemAdmin. Returns the
/// operations and members that show nothing, since a SystemAdmin is not answered either.
pub async fn judge(attempts: &[Attempt], above: &Client, lower: &[(RoleType, Client)]) -> BTreeSet<String> {
    let (mut wrong, mut idle, mut shown) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for attempt in attempts {
        let named = attempt.name();
        let (allowed, why) = attempt.by(above).await;
        // a directory's operations refuse some of it to everybody
        assert!(allowed != 403 || named.starts_with("Scim"), "{named}: {why}");
        let (mut is_done, mut is_explained) = (false, false);
        for (role, client) in lower {
            let (status, answer) = attempt.by(client).await;
            is_done |= status == allowed;
            is_explained |= status == 403 && (allowed == 403 || answer.contains("SystemAdmin"));
            let is_out_of_sight = status == 404 || (status == 400 && answer.contains("names no "));
            // other 400 and 409 do not prove that the caller is refused, if a SystemAdmin may do the same
            let is_wrong_anyway = [400, 409].contains(&status) && (attempt.is_open || allowed >= 300);
            let is_refused = status == 403 || is_out_of_sight || is_wrong_anyway;
            if !(is_refused || (attempt.is_open && status == allowed)) {
                let answer: String = answer.chars().take(300).collect();
                wrong.push(format!("{}, {named}: {status}, others {allowed}: {answer}", role.name()));
            }
        }
        if attempt.is_open && (is_explained || !is_done) {
            wrong.push(format!("{named} is open, and refused to all"));
        }
        let into = if allowed < 300 || is_explained { &mut shown } else { &mut idle };
        into.insert(attempt.shown());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    idle.difference(&shown).cloned().collect()
}

/// What an operation is about, and what its bodies hold.
pub struct Known<'a> {
    /// The row, as the service shows it.
    pub row: Json,
    /// A value for a field of a new row, or of a form; `None` where any will do.
    pub value: &'a dyn Fn(&Field) -> Option<Json>,
}

/// A value of a field other than the one before.
fn other_value(field: &Field, before: &Json) -> Option<Json> {
    let all: Vec<Json> = match field.kind {
        Kind::Bool => vec![json!(true), json!(false)],
        Kind::Int { min, max } => vec![json!(min.max(1).min(max)), json!(max.min(2).max(min))],
        Kind::Choice(names) => names.iter().map(|name| json!(name)).collect(),
        Kind::Numbered(names) => (0..names.len()).map(|index| json!(index)).collect(),
        Kind::Time => vec![json!("2126-01-01T00:00:00.000Z"), json!("2127-01-01T00:00:00.000Z")],
        Kind::Text(rule) => {
            let fitting = TEXTS.iter().filter(|text| rule.check((**text).to_owned()).is_ok());
            fitting.map(|text| json!(text)).collect()
        }
        _ => Vec::new(),
    };
    all.into_iter().find(|value| value != before)
}

impl Known<'_> {
    /// The members of a body, each with the whole body in which it alone is changed.
    fn changes(&self, fields: impl Iterator<Item = &'static Field>, whole: &Json) -> Vec<(String, Json)> {
        let changes = fields.filter(|field| !field.is_token()).filter_map(|field| {
            let before = &whole[field.wire()];
            let is_number = matches!(field.kind, Kind::Numbered(_));
            let value = (self.value)(field).filter(|value| value != before && !is_number);
            let mut body = whole.clone();
            body[field.wire()] = value.or_else(|| other_value(field, before))?;
            Some((field.wire().to_owned(), body))
        });
        changes.collect()
    }

    /// The row without its sets, with each member changed alone.
    fn replacing(&self, op: &Op) -> Vec<(String, Json)> {
        let mut whole = self.row.clone();
        if let Some(members) = whole.as_object_mut() {
            members.retain(|_, value| !value.is_array());
        }
        self.changes(op.shape.fields.iter().filter(|field| field.access.put), &whole)
    }

    /// Each member alone, with the row's concurrency token.
    fn patching(&self, fields: impl Iterator<Item = &'static Field>) -> Vec<(String, Json)> {
        let alone = |(name, body): (String, Json)| {
            let alone = json!({ &name: body[&name], "concurrencyToken": self.row["concurrencyToken"] });
            (name, alone)
        };
        self.changes(fields, &self.row).into_iter().map(alone).collect()
    }

    /// A JSON Patch for each member.
    fn patches(&self, op: &Op) -> Vec<(String, Json)> {
        let changes = self.changes(op.shape.fields.iter().filter(|field| field.access.put), &self.row);
        let patch = |(name, body): (String, Json)| {
            let patch = json!([{ "op": "add", "path": format!("/{name}"), "value": body[&name] }]);
            (name, patch)
        };
        changes.into_iter().map(patch).collect()
    }

    /// A body with a value in each field that is known or must have one.
    fn filled(&self, fields: impl Iterator<Item = &'static Field>) -> Json {
        let mut body = json!({});
        for field in fields {
            let needed = || field.required().then(|| other_value(field, &Json::Null)).flatten();
            if let Some(value) = (self.value)(field).or_else(needed) {
                body[field.wire()] = value;
            }
        }
        body
    }

    /// A form with a value in each field that it needs, or in one that says yes or no.
    fn form(&self, fields: &'static [Field]) -> Json {
        let body = self.filled(fields.iter());
        match fields.iter().find(|field| matches!(field.kind, Kind::Bool)) {
            Some(switch) if body == json!({}) => json!({ switch.wire(): false }),
            _ => body,
        }
    }

    /// The bodies that an operation can be sent, each with the member that it changes; `None` where its declaration says too
    /// little.
    pub fn bodies(&self, op: &Op) -> Option<Vec<(String, Option<Json>)>> {
        let many = |bodies: Vec<(String, Json)>| {
            bodies.into_iter().map(|(name, body)| (name, json!([body]))).collect()
        };
        let key = ["id", "key", "clientAppId"]
            .iter()
            .find_map(|name| self.row.get(name))
            .cloned()
            .unwrap_or_default();
        let creating =
            || vec![(String::new(), self.filled(op.shape.fields.iter().filter(|field| field.access.create)))];
        let found: Vec<(String, Json)> = match op.action {
            Action::List | Action::Read => Vec::new(),
            Action::Delete => return Some(vec![(String::new(), None)]),
            Action::Create => creating(),
            Action::CreateBatch => many(creating()),
            Action::Replace => self.replacing(op),
            Action::ReplaceBatch => many(self.replacing(op)),
            Action::DeleteBatch => vec![(String::new(), json!([key]))],
            Action::Patch => self.patching(op.shape.fields.iter().filter(|field| field.access.patch)),
            Action::ReplaceMembers(fields) => self.patching(fields.iter().copied()),
            Action::Relate(..) => return None,
            Action::Custom(Custom { body, .. }) => match body {
                Body::None | Body::Bytes(..) => return Some(vec![(String::new(), None)]),
                Body::Form(of) => vec![(String::new(), self.form(of.fields))],
                Body::Resource => self.replacing(op),
                Body::Resources => many(self.replacing(op)),
                Body::JsonPatch(_) if op.is_batch() => {
                    let patches = self.patches(op).into_iter();
                    patches.map(|(name, patch)| (name, json!([{ "ids": [key], "patch": patch }]))).collect()
                }
                Body::JsonPatch(_) => self.patches(op),
                Body::Json(_) => return None,
            },
        };
        Some(found.into_iter().map(|(name, body)| (name, Some(body))).collect())
    }
}
