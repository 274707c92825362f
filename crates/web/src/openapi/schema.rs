//! JSON schemas from field tables.

#![expect(clippy::indexing_slicing, reason = "indexing a serde_json::Value to write makes the member")]

use chancery_record::{Column, DefaultValue, Encoding, Field, Kind, MAX_ERRORS, Sealing, TextRule};
use chancery_resource::{BodyForm, MAX_BATCH, MAX_RELATED, NestedFields, Relation, Shape, article};
use serde_json::{Map, Value, json};

/// Text without control characters.
const ANY: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";
/// A year, or a day of the Gregorian calendar with or without a time.
const BIRTHDATE: &str = concat!(
    r"^([0-9]{4}|([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)",
    r"|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)",
    r"(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?)?)$"
);

/// Names that generated clients cannot use: a model `Option` breaks one in Rust.
const RESERVED_NAMES: [&str; 5] = ["Box", "Option", "Result", "String", "Vec"];

/// The body that a schema describes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Response,
    Create,
    Update,
    /// An element of a PUT of many, which contains its own id because no path does.
    UpdateElement,
    Patch,
    /// A merge patch (RFC 7396): null clears.
    MergePatch,
}

impl Form {
    const ALL: [Self; 6] =
        [Self::Response, Self::Create, Self::Update, Self::UpdateElement, Self::Patch, Self::MergePatch];

    const fn suffix(self) -> &'static str {
        match self {
            Self::Response => "",
            Self::Create => "Create",
            Self::Update => "Update",
            Self::UpdateElement => "UpdateElement",
            Self::Patch => "Patch",
            Self::MergePatch => "MergePatch",
        }
    }

    /// The name of a resource's schema in this form.
    pub fn name(self, resource: &str) -> String {
        let suffix = match self {
            Self::Response if RESERVED_NAMES.contains(&resource) => "Resource",
            _ => self.suffix(),
        };
        format!("{resource}{suffix}")
    }

    fn has(self, field: &Field) -> bool {
        let access = field.access;
        let names_item = field.is_required_token() || (access.key && access.column == Column::Own);
        match self {
            Self::Response => access.shown,
            Self::Create => access.create && !field.is_token(),
            Self::Update | Self::UpdateElement => access.put || names_item,
            Self::Patch | Self::MergePatch => access.patch || names_item,
        }
    }

    fn requires(self, field: &Field) -> bool {
        match self {
            Self::Response => true,
            Self::Create => field.required(),
            Self::Update | Self::Patch | Self::MergePatch => field.is_required_token(),
            Self::UpdateElement => field.is_required_token() || field.access.key,
        }
    }

    fn takes_null(self, field: &Field) -> bool {
        match self {
            // readers without access to a secret see null in its place
            Self::Response => field.nullable || field.access.sealing == Sealing::Secret,
            Self::MergePatch => !self.requires(field) && (field.nullable || field.access.key),
            _ => !self.requires(field),
        }
    }
}

pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Adds the schemas of a resource.
pub fn add_shape(schemas: &mut Map<String, Value>, shape: &Shape) {
    for form in Form::ALL {
        schemas.entry(form.name(shape.name)).or_insert_with(|| body(shape, form));
    }
    for relation in shape.relations {
        schemas.entry(item_name(relation)).or_insert_with(|| item(relation));
    }
}

fn body(shape: &Shape, form: Form) -> Value {
    let mut schema = object(shape, &|field| form.has(field), form);
    let (a, name) = (article(shape.name), shape.name);
    schema["description"] = json!(match form {
        Form::Response => shape.about.trim().to_owned(),
        Form::Create => format!("A new {name}. Members that are missing or null get their default."),
        Form::Update =>
            format!("The new state of {a} {name}. An optional member that is missing becomes empty."),
        Form::UpdateElement => format!("The new state of {a} {name} in a batch, with its `id`."),
        Form::Patch => format!("Changes to {a} {name}. Members that are missing or null keep their value."),
        Form::MergePatch => format!(
            "Changes to {a} {name} (RFC 7396). Missing members keep their value, and null empties a member."
        ),
    });
    if form == Form::Create {
        for relation in shape.relations.iter().filter(|relation| relation.listed.at_creation()) {
            schema["properties"][relation.name] = json!({
                "type": ["array", "null"], "maxItems": MAX_RELATED, "description": relation.about,
                "items": { "type": "object", "required": ["id"], "properties": {
                    "id": { "type": "string", "format": "uuid", "description": "The id of the related item." },
                } },
            });
        }
    }
    if form == Form::Response {
        for relation in shape.relations {
            let item = reference(&item_name(relation));
            schema["properties"][relation.name] = if relation.single {
                json!({ "description": relation.about, "anyOf": [item, { "type": "null" }] })
            } else {
                json!({ "type": "array", "description": relation.about, "items": item })
            };
            if let Some(required) = schema["required"].as_array_mut() {
                required.push(json!(relation.name));
            }
        }
    }
    schema
}

/// A body of those members of a resource for which `has` is true. The other members of its response form are
/// read and ignored, so that an answer can be changed and sent back.
pub fn object(shape: &Shape, has: &dyn Fn(&Field) -> bool, form: Form) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut ignored = Vec::new();
    let is_change = form != Form::Create && form != Form::Response;
    for field in shape.fields {
        if has(field) {
            properties.insert(field.wire().to_owned(), property(field, form));
            if form.requires(field) {
                required.push(json!(field.wire()));
            }
        } else if form != Form::Response && field.access.repeated {
            let mut schema = kind(field, form);
            schema["description"] = json!(format!("{} Ignored in requests.", field.about.trim()));
            properties.insert(field.wire().to_owned(), schema);
        } else if is_change && shape.base.is_none() && field.is_create_only() {
            let mut schema = property(field, form);
            schema["description"] = json!(format!(
                "{} Set at creation only: omit it, or send the current value.",
                field.about.trim()
            ));
            properties.insert(field.wire().to_owned(), schema);
        } else if field.access.shown {
            ignored.push(field.wire());
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    if form != Form::Response {
        let written = |name: &&str| {
            form == Form::Create && shape.relation(name).is_some_and(|one| one.listed.at_creation())
        };
        ignored.extend(shape.arrays().into_iter().filter(|name| !written(name)));
        if !ignored.is_empty() {
            let names = format!("^({})$", ignored.join("|"));
            schema["patternProperties"] = json!({ names: {
                "description": "Members of responses that this body does not write. They are ignored.",
            } });
        }
        schema["additionalProperties"] = json!(shape.base.is_some());
    }
    schema
}

/// The schema name of a relation's items. Those that show all fields use the resource's own.
fn item_name(relation: &Relation) -> String {
    let kind = if matches!(relation.shown, NestedFields::All) { "Item" } else { "Reference" };
    format!("{}{kind}", relation.target.name)
}

fn item(relation: &Relation) -> Value {
    let is_shown = |field: &Field| relation.fields().any(|shown| shown.is(field));
    let mut schema = object(relation.target, &is_shown, Form::Response);
    let name = relation.target.name;
    schema["description"] = json!(format!("{name} as it is embedded in other resources."));
    schema
}

/// The schema of an operation's own JSON object.
pub fn own(form: &BodyForm, direction: Form) -> Value {
    let mut schema = members(form.fields, direction);
    schema["description"] = json!(form.about.trim());
    schema
}

/// The schema of an object with these members.
fn members(fields: &[Field], direction: Form) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        properties.insert(field.wire().to_owned(), property(field, direction));
        if direction.requires(field) {
            required.push(json!(field.wire()));
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    if direction != Form::Response {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

/// The schema of a member.
fn property(field: &Field, form: Form) -> Value {
    let mut schema = kind(field, form);
    if form.takes_null(field) {
        match schema.get("type").cloned() {
            Some(Value::Array(mut kinds)) => {
                kinds.push(json!("null"));
                schema["type"] = Value::Array(kinds);
            }
            Some(kind) => schema["type"] = json!([kind, "null"]),
            None => {}
        }
        if let Some(names) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            names.push(Value::Null);
        }
    }
    schema["description"] = json!(field.about.trim());
    if form == Form::Create {
        match field.access.default {
            DefaultValue::Bool(value) => schema["default"] = json!(value),
            DefaultValue::Int(value) => schema["default"] = json!(value),
            // generators of clients take no list and no object for a default
            DefaultValue::Text(_) if matches!(field.kind, Kind::Texts(_) | Kind::Pairs(_)) => {}
            DefaultValue::Text(value) => {
                schema["default"] = match field.kind {
                    Kind::Numbered(names) => json!(names.iter().position(|name| *name == value)),
                    _ => json!(value),
                };
            }
            DefaultValue::None => {}
        }
    }
    schema
}

pub fn kind(field: &Field, form: Form) -> Value {
    match field.kind {
        Kind::Id => {
            json!({ "type": "string", "format": "uuid", "examples": ["0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"] })
        }
        Kind::Bool => json!({ "type": "boolean", "examples": [true] }),
        Kind::Int { min, max } => {
            json!({ "type": "integer", "format": "int64", "minimum": min, "maximum": max, "examples": [min] })
        }
        Kind::Choice(names) => json!({ "type": "string", "enum": names, "examples": [names.first()] }),
        Kind::Numbered(names) => {
            let about: Vec<String> =
                names.iter().enumerate().map(|(index, name)| format!("{index} {name}")).collect();
            json!({
                "type": "integer", "format": "int32", "minimum": 0, "maximum": names.len().saturating_sub(1),
                "examples": [0], "x-enum-varnames": names, "title": about.join(", "),
            })
        }
        Kind::Time => {
            json!({ "type": "string", "format": "date-time", "examples": ["2026-11-21T09:30:00.000Z"] })
        }
        Kind::Bytes(Encoding::Base64) => {
            json!({ "type": "string", "contentEncoding": "base64", "examples": ["AQID"] })
        }
        Kind::Object(fields) => members(fields, form),
        Kind::Ids => {
            json!({ "type": "array", "items": { "type": "string", "format": "uuid" }, "examples": [[]] })
        }
        Kind::Texts(rule) => {
            let mut schema =
                json!({ "type": "array", "items": { "type": "string" }, "examples": [[rule.item.example]] });
            if form != Form::Response {
                schema["items"] = bounded(rule.item);
                schema["maxItems"] = json!(rule.most);
            }
            schema
        }
        Kind::Pairs(rule) => {
            let example = json!({ rule.name.example: rule.value.example });
            let mut schema = json!({
                "type": "object", "additionalProperties": { "type": ["string", "null"] }, "examples": [example],
            });
            if form != Form::Response {
                schema["additionalProperties"] =
                    json!({ "anyOf": [bounded(rule.value), { "type": "null" }] });
                schema["propertyNames"] = bounded(rule.name);
                schema["maxProperties"] = json!(rule.most);
            }
            schema
        }
        Kind::Bytes(Encoding::Hex) => {
            json!({ "type": "string", "pattern": "^[0-9a-f]*$", "examples": ["0a0b"] })
        }
        Kind::Text(rule) => {
            let example = field.access.example.unwrap_or(rule.example);
            // a stored text may be longer than a provided one: an answer promises no bounds
            if form == Form::Response {
                return json!({ "type": "string", "examples": [example] });
            }
            // an optional text may be sent empty, which clears it
            let (min, prefix) = if field.nullable { (0, "^$|") } else { (rule.min, "") };
            let mut schema =
                json!({ "type": "string", "minLength": min, "maxLength": rule.max, "examples": [example] });
            let pattern = match rule.pattern {
                Some(pattern) => pattern,
                None if rule.name == "Birthdate" => BIRTHDATE,
                None => ANY,
            };
            if rule.takes_object {
                schema["type"] = json!(["string", "object"]);
            }
            // this program treats U+0085 as white space, the pattern language does not
            schema["pattern"] = json!(format!("{prefix}{}", pattern.replace(r"\s", r"\s\x85")));
            if let (Some(format), false) = (rule.format, field.nullable) {
                schema["format"] = json!(format);
            }
            schema
        }
    }
}

/// A text by its rule.
fn bounded(rule: &TextRule) -> Value {
    let pattern = rule.pattern.unwrap_or(ANY).replace(r"\s", r"\s\x85");
    json!({ "type": "string", "minLength": rule.min, "maxLength": rule.max, "pattern": pattern })
}

/// Schemas that all services share.
pub fn shared() -> Map<String, Value> {
    let id = json!({ "type": "string", "format": "uuid" });
    let schemas = json!({
        "Ids": {
            "type": "array", "description": "The ids of the items.", "items": id, "maxItems": MAX_BATCH,
            "examples": [["0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"]],
        },
        "RelatedIds": {
            "type": "object", "description": "The ids of related items.", "required": ["relatedIds"],
            "additionalProperties": false,
            "properties": { "relatedIds": {
                "type": "array", "description": "The ids of the related items. Duplicates are ignored.", "items": id, "maxItems": MAX_RELATED,
                "examples": [["0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"]],
            } },
        },
        "Problem": {
            "type": "object",
            "description": "An error response (RFC 9457).",
            "required": ["type", "title", "status", "detail", "instance", "traceId"],
            "properties": {
                "type": { "type": "string", "format": "uri-reference", "description": "The problem type." },
                "title": { "type": "string", "description": "The title of the problem type." },
                "status": { "type": "integer", "minimum": 400, "maximum": 599, "description": "The HTTP status." },
                "detail": { "type": "string", "description": "What happened and what to do." },
                "instance": { "type": "string", "description": "The path of the request." },
                "traceId": { "type": "string", "description": "The id of the request in the server's log." },
                "currentConcurrencyToken": { "type": "string", "description": "The current concurrency token of the item, if the request contained a stale one." },
                "errors": {
                    "type": "array",
                    "description": "The invalid parts of the request.",
                    "items": {
                        "type": "object",
                        "required": ["pointer", "detail"],
                        "properties": {
                            "pointer": { "type": "string", "description": "A JSON Pointer (RFC 6901) into the body." },
                            "detail": { "type": "string", "description": "Description of the error at this place." },
                        },
                    },
                    "maxItems": MAX_ERRORS,
                },
                "moreErrors": { "type": "integer", "minimum": 1, "description": "The number of further errors that are not reported." },
            },
        },
    });
    if let Value::Object(schemas) = schemas { schemas } else { Map::new() }
}
