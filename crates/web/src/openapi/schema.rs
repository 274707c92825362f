//! Schemas from field tables.

use chancery_record::{Column, Encoding, Field, Kind, Preset};
use chancery_resource::{MAX_BATCH, MAX_RELATED, Relation, Shape};
use serde_json::{Map, Value, json};

/// Which body a schema is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Response,
    Create,
    Update,
    Patch,
}

impl Form {
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Response => "",
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Patch => "Patch",
        }
    }

    fn has(self, field: &Field) -> bool {
        let access = field.access;
        match self {
            Self::Response => access.shown,
            Self::Create => access.create && !field.is_token(),
            Self::Update => {
                access.put
                    || field.is_token()
                    || (access.key && access.create && access.column == Column::Own)
            }
            Self::Patch => access.patch || field.is_token(),
        }
    }

    fn requires(self, field: &Field) -> bool {
        match self {
            Self::Response => true,
            Self::Create => field.required(),
            Self::Update | Self::Patch => field.is_token(),
        }
    }
}

pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Adds the schemas of a resource.
pub fn add_shape(schemas: &mut Map<String, Value>, shape: &Shape) {
    for form in [Form::Response, Form::Create, Form::Update, Form::Patch] {
        let is_written = shape.fields.iter().any(|field| field.access.patch);
        if form == Form::Response || is_written {
            let name = format!("{}{}", shape.name, form.suffix());
            schemas.entry(name).or_insert_with(|| body(shape, form));
        }
    }
    for relation in shape.relations {
        let name = format!("{}Reference", relation.target.name);
        schemas.entry(name).or_insert_with(|| item(relation));
    }
}

fn body(shape: &Shape, form: Form) -> Value {
    let columns: Vec<&str> =
        shape.fields.iter().filter(|field| form.has(field)).map(|field| field.column).collect();
    let mut schema = object(shape, &columns, form);
    schema["description"] = json!(match form {
        Form::Response => shape.about.trim().to_owned(),
        Form::Create => format!("A new {}.", shape.name),
        Form::Update => format!(
            "What replaces a {}: a member that can be empty and is missing becomes empty.",
            shape.name
        ),
        Form::Patch =>
            format!("What changes of a {}: a member that is missing or null stays as it is.", shape.name),
    });
    if form == Form::Response {
        for relation in shape.relations {
            schema["properties"][relation.name] = json!({
                "type": "array",
                "description": relation.about,
                "items": reference(&format!("{}Reference", relation.target.name)),
            });
            if let Some(required) = schema["required"].as_array_mut() {
                required.push(json!(relation.name));
            }
        }
    }
    schema
}

/// A body of some members of a resource.
pub fn object(shape: &Shape, columns: &[&str], form: Form) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in shape.fields.iter().filter(|field| columns.contains(&field.column)) {
        properties.insert(field.wire().to_owned(), property(field, form));
        if form.requires(field) {
            required.push(json!(field.wire()));
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    if form != Form::Response {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

fn item(relation: &Relation) -> Value {
    let mut schema = object(relation.target, relation.shown, Form::Response);
    schema["description"] = json!(format!("A {} as others show it.", relation.target.name));
    schema
}

/// A member.
fn property(field: &Field, form: Form) -> Value {
    let mut schema = kind(field, form);
    let may_be_null = match form {
        Form::Response => field.nullable,
        _ => !form.requires(field),
    };
    if may_be_null {
        if let Some(kind) = schema.get("type").cloned() {
            schema["type"] = json!([kind, "null"]);
        }
        if let Some(names) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            names.push(Value::Null);
        }
    }
    schema["description"] = json!(field.about.trim());
    if form == Form::Create {
        match field.access.preset {
            Preset::Bool(value) => schema["default"] = json!(value),
            Preset::Int(value) => schema["default"] = json!(value),
            Preset::Text(value) => schema["default"] = json!(value),
            Preset::None => {}
        }
    }
    schema
}

fn kind(field: &Field, form: Form) -> Value {
    match field.kind {
        Kind::Id => {
            json!({ "type": "string", "format": "uuid", "examples": ["0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"] })
        }
        Kind::Bool => json!({ "type": "boolean", "examples": [true] }),
        Kind::Int { min, max } => {
            json!({ "type": "integer", "format": "int64", "minimum": min, "maximum": max, "examples": [min] })
        }
        Kind::Choice(names) => json!({ "type": "string", "enum": names, "examples": names.first() }),
        Kind::Time => {
            json!({ "type": "string", "format": "date-time", "examples": ["2026-11-21T09:30:00.000Z"] })
        }
        Kind::Bytes(Encoding::Base64) => {
            json!({ "type": "string", "contentEncoding": "base64", "examples": ["AQID"] })
        }
        Kind::Bytes(Encoding::Hex) => {
            json!({ "type": "string", "pattern": "^[0-9a-f]*$", "examples": ["0a0b"] })
        }
        Kind::Text(rule) => {
            // what is stored may be longer than what is typed: an answer promises no bounds
            if form == Form::Response {
                return json!({ "type": "string", "examples": [rule.example] });
            }
            // an optional text may be sent empty, which empties it
            let (min, prefix) = if field.nullable { (0, "^$|") } else { (rule.min, "") };
            let mut schema = json!({ "type": "string", "minLength": min, "maxLength": rule.max, "examples": [rule.example] });
            if let Some(pattern) = rule.pattern {
                schema["pattern"] = json!(format!("{prefix}{pattern}"));
            }
            if let (Some(format), false) = (rule.format, field.nullable) {
                schema["format"] = json!(format);
            }
            schema
        }
    }
}

/// Schemas that all services share.
pub fn shared() -> Map<String, Value> {
    let id = json!({ "type": "string", "format": "uuid" });
    let schemas = json!({
        "Ids": {
            "type": "array", "description": "The ids of what is meant.", "items": id, "maxItems": MAX_BATCH,
            "examples": [["0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"]],
        },
        "RelatedIds": {
            "type": "object", "description": "The ids of what is related.", "required": ["relatedIds"],
            "additionalProperties": false,
            "properties": { "relatedIds": {
                "type": "array", "description": "Each id counts once.", "items": id, "maxItems": MAX_RELATED,
                "examples": [["0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"]],
            } },
        },
        "Problem": {
            "type": "object",
            "description": "What went wrong (RFC 9457).",
            "required": ["type", "title", "status", "detail", "instance", "traceId"],
            "properties": {
                "type": { "type": "string", "format": "uri-reference", "description": "The kind of problem." },
                "title": { "type": "string", "description": "The kind in words." },
                "status": { "type": "integer", "minimum": 400, "maximum": 599, "description": "The HTTP status." },
                "detail": { "type": "string", "description": "What happened and what to do." },
                "instance": { "type": "string", "description": "The path of the request." },
                "traceId": { "type": "string", "description": "What the server's log knows the request by." },
                "currentConcurrencyToken": { "type": "string", "description": "The token of the item as it is now, when a token was stale." },
                "errors": {
                    "type": "array",
                    "description": "Where the request is wrong.",
                    "items": {
                        "type": "object",
                        "required": ["pointer", "detail"],
                        "properties": {
                            "pointer": { "type": "string", "description": "A JSON Pointer (RFC 6901) into the body." },
                            "detail": { "type": "string", "description": "What is wrong there." },
                        },
                    },
                },
            },
        },
    });
    if let Value::Object(schemas) = schemas { schemas } else { Map::new() }
}
