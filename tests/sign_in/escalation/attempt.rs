//! Requests that follow from an operation's declaration, and the checks of the answers to lower administrators.

use std::collections::BTreeSet;

use chancery_record::{Field, Kind};
use chancery_resource::{Action, Body, Custom, Op, RoleType};
use chancery_testkit::Client;
use http::Method;
use serde_json::{Value as Json, json};

/// Sample texts: each text rule accepts at least one.
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

/// A request to an operation.
pub struct Attempt {
    /// The operation.
    pub operation: String,
    /// The changed member; empty if the request is not about one member.
    pub member: String,
    /// The resource of the operation.
    pub resource: &'static str,
    pub method: Method,
    pub path: String,
    /// The media type of the body.
    pub media_type: &'static str,
    pub body: Vec<u8>,
    /// Whether it changes nothing that is protected.
    pub is_open: bool,
}

impl Attempt {
    /// Sends it as a dry run; the status and the body.
    pub async fn by(&self, client: &Client) -> (u16, String) {
        let path = format!("{}?dryRun=true", self.path);
        let answer = client
            .send(self.method.clone(), &path, &[("content-type", self.media_type)], self.body.clone())
            .await;
        (answer.status.as_u16(), String::from_utf8_lossy(&answer.bytes).into_owned())
    }

    /// The operation, and the member.
    fn name(&self) -> String {
        format!("{} {}", self.operation, self.member).trim_end().to_owned()
    }

    /// The key for coverage: the member, for all operations that change it, or the operation.
    fn coverage_key(&self) -> String {
        if self.member.is_empty() {
            self.operation.clone()
        } else {
            format!("{} {}", self.resource, self.member)
        }
    }
}

/// Sends all attempts on a target with the role `above` as a SystemAdmin and as each role that does not imply it. Protected ones must be
/// refused to each of these, naming the required role; open ones must be answered to one of them as to a SystemAdmin. Returns the
/// operations and members without coverage: those that fail for a SystemAdmin, too.
pub async fn check_attempts(
    attempts: &[Attempt],
    system_admin: &Client,
    lower: &[(RoleType, Client)],
    above: RoleType,
) -> BTreeSet<String> {
    let (mut wrong, mut never_answered, mut covered) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let lower: Vec<_> = lower.iter().filter(|(role, _)| !role.implies(above)).collect();
    assert!(!lower.is_empty(), "no role is below {}", above.name());
    for attempt in attempts {
        let name = attempt.name();
        let (allowed, answer) = attempt.by(system_admin).await;
        // SCIM operations refuse some attempts to everybody
        assert!(allowed != 403 || name.starts_with("Scim"), "{name}: {answer}");
        let (mut is_allowed, mut is_explained) = (false, false);
        for (role, client) in &lower {
            let (status, answer) = attempt.by(client).await;
            is_allowed |= status == allowed;
            is_explained |= status == 403 && (allowed == 403 || answer.contains(above.name()));
            let is_out_of_sight = status == 404 || (status == 400 && answer.contains("names no "));
            // other 400 and 409 are no refusal of the caller, if a SystemAdmin gets them, too
            let is_wrong_anyway = [400, 409].contains(&status) && (attempt.is_open || allowed >= 300);
            let is_refused = status == 403 || is_out_of_sight || is_wrong_anyway;
            if !(is_refused || (attempt.is_open && status == allowed)) {
                let answer: String = answer.chars().take(300).collect();
                wrong.push(format!("{}, {name}: {status}, others {allowed}: {answer}", role.name()));
            }
        }
        if attempt.is_open && (is_explained || !is_allowed) {
            wrong.push(format!("{name} is open, and refused to all"));
        }
        let into = if allowed < 300 || is_explained { &mut covered } else { &mut never_answered };
        into.insert(attempt.coverage_key());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    never_answered.difference(&covered).cloned().collect()
}

/// The row of an operation, and values for its bodies.
pub struct RequestContext<'a> {
    /// The row, as the service returns it.
    pub row: Json,
    /// A value for a field of a new row, or of a form; `None` if any valid value will do.
    pub value: &'a dyn Fn(&Field) -> Option<Json>,
}

/// A valid value of a field that differs from the one before.
fn other_value(field: &Field, before: &Json) -> Option<Json> {
    let all: Vec<Json> = match field.kind {
        Kind::Bool => vec![json!(true), json!(false)],
        Kind::Int { min, max } => vec![json!(min.max(1).min(max)), json!(max.min(2).max(min))],
        Kind::Choice(names) => names.iter().map(|name| json!(name)).collect(),
        Kind::Numbered(names) => (0..names.len()).map(|index| json!(index)).collect(),
        Kind::Time => vec![json!("2126-01-01T00:00:00.000Z"), json!("2127-01-01T00:00:00.000Z")],
        Kind::Text(rule) => {
            let valid = TEXTS.iter().filter(|text| rule.check((**text).to_owned()).is_ok());
            valid.map(|text| json!(text)).collect()
        }
        _ => Vec::new(),
    };
    all.into_iter().find(|value| value != before)
}

impl RequestContext<'_> {
    /// For each member, the whole body with only this member changed.
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

    /// Bodies for PUT: the row without its sets, each with one member changed.
    fn put_bodies(&self, op: &Op) -> Vec<(String, Json)> {
        let mut whole = self.row.clone();
        if let Some(members) = whole.as_object_mut() {
            members.retain(|_, value| !value.is_array());
        }
        self.changes(op.shape.fields.iter().filter(|field| field.access.put), &whole)
    }

    /// Bodies for PATCH: one member each, with the row's concurrency token.
    fn patch_bodies(&self, fields: impl Iterator<Item = &'static Field>) -> Vec<(String, Json)> {
        let only_this = |(name, body): (String, Json)| {
            let only_this = json!({ &name: body[&name], "concurrencyToken": self.row["concurrencyToken"] });
            (name, only_this)
        };
        self.changes(fields, &self.row).into_iter().map(only_this).collect()
    }

    /// A JSON Patch for each member.
    fn json_patches(&self, op: &Op) -> Vec<(String, Json)> {
        let changes = self.changes(op.shape.fields.iter().filter(|field| field.access.put), &self.row);
        let patch = |(name, body): (String, Json)| {
            let patch = json!([{ "op": "add", "path": format!("/{name}"), "value": body[&name] }]);
            (name, patch)
        };
        changes.into_iter().map(patch).collect()
    }

    /// A body with each field that has a given value or is required.
    fn body_of(&self, fields: impl Iterator<Item = &'static Field>) -> Json {
        let mut body = json!({});
        for field in fields {
            let needed = || field.required().then(|| other_value(field, &Json::Null)).flatten();
            if let Some(value) = (self.value)(field).or_else(needed) {
                body[field.wire()] = value;
            }
        }
        body
    }

    /// A form with each required field; if none is required, with its first boolean field.
    fn form(&self, fields: &'static [Field]) -> Json {
        let body = self.body_of(fields.iter());
        match fields.iter().find(|field| matches!(field.kind, Kind::Bool)) {
            Some(flag) if body == json!({}) => json!({ flag.wire(): false }),
            _ => body,
        }
    }

    /// The bodies for an operation, each with the changed member; `None` if the declaration does not describe them.
    pub fn bodies(&self, op: &Op) -> Option<Vec<(String, Option<Json>)>> {
        let many = |bodies: Vec<(String, Json)>| {
            bodies.into_iter().map(|(name, body)| (name, json!([body]))).collect()
        };
        let key = ["id", "key", "clientAppId"]
            .iter()
            .find_map(|name| self.row.get(name))
            .cloned()
            .unwrap_or_default();
        let create_bodies = || {
            vec![(String::new(), self.body_of(op.shape.fields.iter().filter(|field| field.access.create)))]
        };
        let bodies: Vec<(String, Json)> = match op.action {
            Action::List | Action::Read => Vec::new(),
            Action::Delete => return Some(vec![(String::new(), None)]),
            Action::Create => create_bodies(),
            Action::CreateBatch => many(create_bodies()),
            Action::Replace => self.put_bodies(op),
            Action::ReplaceBatch => many(self.put_bodies(op)),
            Action::DeleteBatch => vec![(String::new(), json!([key]))],
            Action::Patch => self.patch_bodies(op.shape.fields.iter().filter(|field| field.access.patch)),
            Action::ReplaceMembers(fields) => self.patch_bodies(fields.iter().copied()),
            Action::Relate(..) => return None,
            Action::Custom(Custom { body, .. }) => match body {
                Body::None | Body::Bytes(..) => return Some(vec![(String::new(), None)]),
                Body::Form(of) => vec![(String::new(), self.form(of.fields))],
                Body::Resource => self.put_bodies(op),
                Body::Resources => many(self.put_bodies(op)),
                Body::JsonPatch(_) if op.is_batch() => {
                    let json_patches = self.json_patches(op).into_iter();
                    json_patches
                        .map(|(name, patch)| (name, json!([{ "ids": [key], "patch": patch }])))
                        .collect()
                }
                Body::JsonPatch(_) => self.json_patches(op),
                Body::Json(_) => return None,
            },
        };
        Some(bodies.into_iter().map(|(name, body)| (name, Some(body))).collect())
    }
}
