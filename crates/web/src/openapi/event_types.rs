//! The types of events, from `spec/events.tsv`: the JSON Schema of each, and the webhooks of the OpenAPI documents.

use std::sync::LazyLock;

use chancery_resource::{Service, envelope_schema};
use serde_json::{Map, Value, json};

/// A row of `spec/events.tsv`.
pub struct EventRow {
    /// The type; empty for operations that leave no event.
    pub kind: &'static str,
    /// The resource that it is about.
    pub resource: &'static str,
    /// The operations that cause it, as `service:Name`; one that ends in `?` need not.
    pub operations: Vec<&'static str>,
    /// The members of `data` besides id, actor and scope, with `?` where they may be missing; the reason where there
    /// is no event.
    pub data: &'static str,
    /// Whether it has an entry of the audit trail: yes, no, or where an administrator asked for it.
    pub audited: &'static str,
    /// The security event derived from it.
    pub signal: &'static str,
}

/// The headers of a webhook, with their descriptions.
const HEADERS: [(&str, &str); 3] = [
    ("webhook-id", "The id of the event. It is the same for every attempt."),
    ("webhook-timestamp", "Time at which the request was sent, in seconds since 1970."),
    (
        "webhook-signature",
        "`v1,` and the signature in base64. There is more than one signature while a secret is being replaced.",
    ),
];

static ROWS: LazyLock<Vec<EventRow>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let mut columns = line.split('\t').map(|column| if column == "-" { "" } else { column });
        let mut next = || columns.next().unwrap_or_default();
        EventRow {
            kind: next(),
            resource: next(),
            operations: next().split_whitespace().collect(),
            data: next(),
            audited: next(),
            signal: next(),
        }
    };
    include_str!("../../../../spec/events.tsv").lines().skip(1).map(row).collect()
});

/// The rows of `spec/events.tsv`.
pub fn event_rows() -> &'static [EventRow] {
    &ROWS
}

/// The JSON Schema of a type of events, as its envelopes name it in `dataschema`; none for an unknown type.
pub fn schema(kind: &str, public_url: &str) -> Option<Value> {
    let row = ROWS.iter().find(|row| row.kind == kind && !kind.is_empty())?;
    let id = chancery_resource::schema_of(public_url, kind);
    let mut schema = envelope_schema();
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": id, "title": kind, "description": row.about(),
    });
    let members = schema.as_object_mut()?;
    members.extend(head.as_object()?.clone());
    let own = json!({ "type": { "const": kind }, "dataschema": { "const": id }, "data": row.data_schema() });
    members.get_mut("properties")?.as_object_mut()?.extend(own.as_object()?.clone());
    if row.is_sent_alone() {
        members.get_mut("required")?.as_array_mut()?.retain(|name| name != "sequence");
    }
    Some(schema)
}

/// The headers of webhooks, by name, as OpenAPI's parameters.
pub fn headers() -> Map<String, Value> {
    let parameters = HEADERS.map(|(name, about)| {
        let text = json!({ "type": "string" });
        let header =
            json!({ "name": name, "in": "header", "required": true, "description": about, "schema": text });
        (name.to_owned(), header)
    });
    parameters.into_iter().collect()
}

/// The webhooks of a service's OpenAPI document, by type.
pub fn webhooks(service: &Service) -> Map<String, Value> {
    let is_own = |kind: &str| {
        let area = kind.split('.').nth(1).unwrap_or_default();
        area == service.name || area == "event" || (area == "signin" && service.name == "management")
    };
    let rows = ROWS.iter().filter(|row| is_own(row.kind));
    rows.map(|row| (row.kind.to_owned(), row.webhook())).collect()
}

impl EventRow {
    /// Whether it is sent to a receiver, and is in no feed.
    fn is_sent_alone(&self) -> bool {
        self.operations.is_empty() && self.audited == "no"
    }

    fn about(&self) -> String {
        let what = self.kind.rsplit('.').next().unwrap_or_default();
        let by: Vec<&str> =
            self.operations.iter().filter_map(|name| name.trim_end_matches('?').split(':').nth(1)).collect();
        let by = if by.is_empty() { String::new() } else { format!(" Caused by {}.", by.join(", ")) };
        format!("{}: {what}.{by}", self.resource)
    }

    /// The members of its own, and whether each is always there.
    fn members(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let names = self.data.split(", ").filter(|name| !name.is_empty());
        let is_always = |name: &str| ["changed", "relation", "after", "next"].contains(&name);
        names.map(move |name| (name.trim_end_matches('?'), is_always(name)))
    }

    fn data_schema(&self) -> Value {
        let of_all: &[&str] = if self.is_sent_alone() { &[] } else { &["id", "actor", "scope"] };
        let mut properties: Map<String, Value> = of_all
            .iter()
            .copied()
            .chain(self.members().map(|(name, _)| name))
            .map(|name| (name.to_owned(), member(name)))
            .collect();
        if self.members().any(|(name, _)| name == "added") {
            let more = ["addedCount", "removedCount", "complete"];
            properties.extend(more.map(|name| (name.to_owned(), member(name))));
        }
        let always = self.members().filter(|(_, is_always)| *is_always).map(|(name, _)| name);
        let required: Vec<&str> = of_all.iter().copied().chain(always).collect();
        json!({
            "type": "object", "description": "Ids and names of members, never values.", "required": required,
            "properties": properties,
        })
    }

    fn webhook(&self) -> Value {
        let words = self.kind.split(['.', '-']).skip(1);
        let name: String = words
            .map(|word| {
                word.chars()
                    .take(1)
                    .flat_map(char::to_uppercase)
                    .chain(word.chars().skip(1))
                    .collect::<String>()
            })
            .collect();
        json!({ "post": {
            "operationId": format!("On{name}"),
            "tags": ["EventSubscription"],
            "summary": self.about().split_once('.').map_or_else(String::new, |(first, _)| format!("{first}.")),
            "description": format!(
                "Sent to event subscriptions, signed as Standard Webhooks 1.0 say. {} Its JSON Schema is at `{}`.",
                self.about(), chancery_resource::schema_of("", self.kind)
            ),
            "security": [],
            "parameters": HEADERS.map(|(name, _)| json!({ "$ref": format!("#/components/parameters/{name}") })),
            "requestBody": { "required": true, "content": { "application/cloudevents+json": {
                "schema": { "$ref": "#/components/schemas/Event" },
            } } },
            "responses": {
                "2XX": { "description": "The event was received." },
                "410": { "description": "The receiver wants no more events. The subscription is disabled." },
                "4XX": { "description": "The delivery is retried." },
                "5XX": { "description": "The delivery is retried." },
            },
        } })
    }
}

/// The schema of a member of `data`.
fn member(name: &str) -> Value {
    let uuid = json!({ "type": "string", "format": "uuid" });
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    match name {
        "id" | "relation" => json!({ "type": "string" }),
        "actor" => json!({ "type": ["string", "null"], "format": "uuid" }),
        "scope" => json!({ "type": "object", "additionalProperties": uuid }),
        "changed" => texts,
        "added" | "removed" => json!({ "type": "array", "maxItems": 500, "items": { "type": "string" } }),
        "addedCount" | "removedCount" | "after" | "next" => json!({ "type": "integer", "minimum": 0 }),
        "complete" => json!({ "const": false }),
        _ => uuid,
    }
}
