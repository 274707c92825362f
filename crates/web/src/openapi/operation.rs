//! Operations as the document tells them.

use chancery_record::Kind;
use chancery_resource::{Action, MAX_BATCH, MAX_COUNT, Method, Op, Reply, Service, Shape};
use chancery_store::Mode;
use serde_json::{Map, Value, json};

use super::schema::{Form, object, reference};

/// Describes an operation; a body of its own is added to the schemas.
pub fn describe(service: &Service, op: &Op, schemas: &mut Map<String, Value>) -> Value {
    let mut operation = json!({
        "operationId": op.name,
        "summary": op.summary,
        "tags": [op.shape.name],
        "parameters": parameters(service, op),
        "responses": responses(op),
    });
    if let Some(body) = request(op, schemas) {
        operation["requestBody"] = body;
    }
    if op.addition {
        operation["x-addition"] = json!(true);
    }
    operation
}

fn parameters(service: &Service, op: &Op) -> Vec<Value> {
    let path = format!("{}{}", service.base, op.path);
    let names = path.split(['{', '}']).skip(1).step_by(2);
    let mut parameters: Vec<Value> = names.map(|name| path_parameter(name, op.shape)).collect();
    let query = |name: &str, about: &str, schema: Value| {
        json!({
            "name": name, "in": "query", "required": false, "description": about, "schema": schema,
        })
    };
    if op.reply == Reply::Many && op.mode() == Mode::Long {
        parameters.extend([
            query(
                "filter",
                "Which items: the grammar of RFC 7644, section 3.4.2.2, with the members' names.",
                json!({ "type": "string", "maxLength": 8192, "examples": ["concurrencyToken pr"] }),
            ),
            query(
                "sortBy",
                "The member to sort by; items without a value come last.",
                json!({ "type": "string" }),
            ),
            query(
                "sortOrder",
                "The order.",
                json!({ "type": "string", "enum": ["ascending", "descending"], "default": "ascending" }),
            ),
            query(
                "count",
                "The most items of a page; the whole set without it.",
                json!({ "type": "integer", "minimum": 1, "maximum": MAX_COUNT }),
            ),
            query("cursor", "Where to go on: from the Link of the page before.", json!({ "type": "string" })),
            query(
                "includeTotal",
                "Whether to count all items that the filter lets through.",
                json!({ "type": "boolean", "default": false }),
            ),
        ]);
    }
    if op.writes() {
        parameters.push(query(
            "dryRun",
            "Answer as the real call would, and change nothing.",
            json!({ "type": "boolean", "default": false }),
        ));
    }
    let header = |name: &str, about: &str| {
        json!({
            "name": name, "in": "header", "required": false, "description": about, "schema": { "type": "string" },
        })
    };
    match op.method {
        Method::Post if op.takes_body() => parameters.push(header(
            "Idempotency-Key",
            "Makes a repetition of the request harmless: it gets the first answer again, for a day.",
        )),
        Method::Put | Method::Patch | Method::Delete if !op.is_batch() => {
            parameters.push(header(
                "If-Match",
                "The item's ETag or its quoted concurrency token, or the request fails.",
            ));
        }
        Method::Get if op.reply == Reply::One => {
            parameters.push(header("If-None-Match", "An ETag: answers 304 if the item is still the same."));
        }
        _ => {}
    }
    parameters
}

fn path_parameter(name: &str, shape: &Shape) -> Value {
    let is_key = name == "key"
        || (name == "id" && !matches!(shape.fields.first().map(|field| field.kind), Some(Kind::Id)));
    let (about, schema) = match name {
        "userstore" => (
            "The user store: the id of its instance, or its name.",
            json!({ "type": "string", "examples": ["default"] }),
        ),
        "userName" => ("The login name.", json!({ "type": "string", "examples": ["ada"] })),
        "key" => ("The entry's key.", json!({ "type": "string", "examples": ["department"] })),
        "id" if is_key
            && shape
                .fields
                .iter()
                .any(|field| field.access.key && matches!(field.kind, Kind::Int { .. })) =>
        {
            ("The entry's number.", json!({ "type": "integer", "format": "int64", "minimum": 0 }))
        }
        _ => ("The item's id.", json!({ "type": "string", "format": "uuid" })),
    };
    json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
}

fn request(op: &Op, schemas: &mut Map<String, Value>) -> Option<Value> {
    let name = op.shape.name;
    let form = |form: Form| reference(&format!("{name}{}", form.suffix()));
    let array = |items: Value| json!({ "type": "array", "items": items, "maxItems": MAX_BATCH });
    let schema = match op.action {
        Action::Create => form(Form::Create),
        Action::Replace => form(Form::Update),
        Action::Patch => form(Form::Patch),
        Action::CreateBatch => array(form(Form::Create)),
        Action::ReplaceBatch => array(form(Form::Update)),
        Action::DeleteBatch => reference("Ids"),
        Action::Relate(..) => reference("RelatedIds"),
        Action::ReplaceMembers(columns) => {
            let columns: Vec<&str> = columns.iter().copied().chain(["concurrency_token"]).collect();
            let body = format!("{}Body", op.name);
            schemas.entry(body.clone()).or_insert_with(|| object(op.shape, &columns, Form::Update));
            reference(&body)
        }
        Action::List | Action::Read | Action::Delete | Action::Custom(_) => return None,
    };
    let mut content = json!({ "application/json": { "schema": schema } });
    if matches!(op.action, Action::Patch) {
        content["application/merge-patch+json"] = json!({ "schema": schema });
    }
    Some(json!({ "required": true, "content": content }))
}

fn responses(op: &Op) -> Value {
    let about = match op.status {
        201 => "Created.",
        202 => "Changed.",
        204 => "Done.",
        _ => "What was asked for.",
    };
    let answered = match (op.reply, op.shape.owner) {
        (Reply::Owner, Some(owner)) => owner.shape.name,
        _ => op.shape.name,
    };
    let mut success = json!({ "description": about });
    let header = |about: &str, kind: &str| json!({ "description": about, "schema": { "type": kind } });
    match op.reply {
        Reply::One | Reply::Owner => {
            success["content"] = json!({ "application/json": { "schema": reference(answered) } });
            success["headers"] =
                json!({ "ETag": header("The state of the item, by its content.", "string") });
        }
        Reply::Many => {
            success["content"] = json!({ "application/json": { "schema": {
                "type": "array", "items": reference(answered),
            } } });
            if op.mode() == Mode::Long {
                success["headers"] = json!({
                    "Link": header("Where the next page is, with rel=\"next\", if there is one.", "string"),
                    "X-Total-Count": header("How many items there are in all, if it was asked for.", "integer"),
                });
            }
        }
        Reply::Empty => {}
    }
    let mut responses = Map::new();
    responses.insert(op.status.to_string(), success);
    if op.method == Method::Get && op.reply == Reply::One {
        responses
            .insert("304".into(), json!({ "description": "The item is still what If-None-Match names." }));
    }
    let mut statuses = vec![400, 401, 403, 404, 405, 406, 429, 500, 503];
    if op.writes() {
        statuses.extend([409, 412]);
    }
    if op.takes_body() {
        statuses.extend([413, 415, 422]);
    }
    for status in statuses {
        responses
            .insert(status.to_string(), json!({ "$ref": format!("#/components/responses/Problem{status}") }));
    }
    Value::Object(responses)
}
