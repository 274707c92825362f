//! Operations in the OpenAPI document.

#![expect(clippy::indexing_slicing, reason = "indexing a serde_json::Value to write makes the member")]

use chancery_record::{Column, Field, Kind, Sealing};
use chancery_resource::{
    Action, Body, Custom, MAX_BATCH, MAX_COUNT, Method, Op, Permit, Purpose, QueryForm, QueryParameter,
    ROLES, RelationChange, Reply, Role, Service, Shape,
};
use serde_json::{Map, Value, json};

use super::schema::{self, Form, object, reference};
use crate::message::answer_headers::reads_one;

/// Describes an operation; its own body forms are added to the schemas.
pub fn describe(service: &Service, op: &Op, schemas: &mut Map<String, Value>) -> Value {
    let mut operation = json!({
        "operationId": op.name,
        "summary": op.summary,
        "description": description(op),
        "tags": [op.shape.name],
        "parameters": parameters(service, op),
        "responses": responses(op, schemas),
    });
    if op.permit == Permit::Public {
        operation["security"] = json!([]);
    }
    if let Some(body) = request(op, schemas) {
        operation["requestBody"] = body;
    }
    if service.is_deprecated {
        operation["deprecated"] = json!(true);
    }
    if op.addition {
        operation["x-addition"] = json!(true);
    }
    operation
}

/// The lowest roles that satisfy a permit, in words.
fn who_may(permit: Permit) -> String {
    let lowest = |is_match: &dyn Fn(&Role) -> bool| {
        let lines = ROLES.iter().rev().filter(|line| line.permits.contains(&permit) && is_match(line));
        lines.map(|line| line.role.name()).collect::<Vec<_>>().join(" or ")
    };
    let roles = lowest(&|_| true);
    match permit {
        Permit::UserStore => format!("{roles} of the store, or one above it"),
        Permit::UserStoreAudit | Permit::Audit => format!("SystemAdmin or {roles}"),
        Permit::SystemAdmin => roles,
        Permit::CustomerAdmin => format!("{roles} within its customer, or SystemAdmin"),
        Permit::SubscriptionAdmin => format!("{roles} within its subscription, or one above it"),
        Permit::TenantAdmin => format!("{roles} for what its tenant owns, or one above it"),
        Permit::TenantMember => format!("{roles} for what its tenant owns or is assigned, or one above it"),
        Permit::Administrator => format!("{roles} of any, or one above them"),
        Permit::SignInRecord => format!("{roles}, or one above the former: each sees what its scope holds"),
        Permit::Oneself => "an administrator whose scope covers it, or the principal itself".to_owned(),
        Permit::Person => "a person who signed in, about the own user".to_owned(),
        Permit::ApplicationData => {
            let readers = lowest(&|line| !line.permits.contains(&Permit::Administrator));
            format!("{readers}, or an administrator: each sees what its scope holds")
        }
        Permit::Public => {
            "none; the body is the proof, and calls are limited by address and login name".to_owned()
        }
    }
}

/// The description: the required role, and the behaviour beyond its summary.
fn description(op: &Op) -> String {
    let role = who_may(op.permit);
    let does = match op.action {
        Action::List => {
            "Returns the whole set as one array, in key order. With `count`, returns one page and a `Link` to the next one."
        }
        Action::Create => {
            "The body may contain the id of the new item. An id that was ever used is rejected."
        }
        Action::Read => "With `If-None-Match`, the response has no body if the item is unchanged.",
        Action::Replace => {
            "The body must contain the item's current concurrency token. A missing member becomes empty if it can be empty. Otherwise it keeps its value."
        }
        Action::Patch => {
            "The body must contain the item's current concurrency token. Missing members keep their values. A null member keeps its value with `application/json` and becomes empty with `application/merge-patch+json`."
        }
        Action::Delete => "Everything that belongs to this item alone is deleted with it.",
        Action::CreateBatch | Action::ReplaceBatch => {
            "All or nothing, in one transaction. The response is in the order of the request. Errors are reported with pointers that begin with the element's index."
        }
        Action::DeleteBatch => {
            "All or nothing, in one transaction. An unknown id is reported with its index."
        }
        Action::ReplaceMembers(_) => {
            "Replaces only these members. The body must contain the item's current concurrency token."
        }
        Action::Relate(_, RelationChange::Set) => {
            "The set is replaced by the ids in the body. If an id is unknown, the whole call is rejected."
        }
        Action::Relate(_, RelationChange::Add) => {
            "An id that is already in the set is not an error. If an id is unknown, the whole call is rejected."
        }
        Action::Relate(_, RelationChange::Remove) => {
            "An id that is not in the set is not an error. If an id is unknown, the whole call is rejected."
        }
        Action::Custom(_) if op.is_list() => {
            "Returns the whole set as one array. With `count`, returns one page and a `Link` to the next one."
        }
        Action::Custom(_) => op.summary,
    };
    format!("{does}\n\nRole: {role}.")
}

fn parameters(service: &Service, op: &Op) -> Vec<Value> {
    let path = format!("{}{}", service.base, op.path);
    let names = path.split(['{', '}']).skip(1).step_by(2);
    let mut parameters: Vec<Value> = names.map(|name| path_parameter(name, op)).collect();
    let query = |name: &str, about: &str, schema: Value| {
        json!({
            "name": name, "in": "query", "required": false, "description": about, "schema": schema,
        })
    };
    parameters.extend(op.query.iter().map(own_parameter));
    if op.is_list() {
        if op.shape.deletes.deletion.hiding().is_some() && matches!(op.action, Action::List) {
            let about = "Whether to list the items that wait for deletion, and only them.";
            parameters.push(query("quarantined", about, json!({ "type": "boolean", "default": false })));
        }
        let orders: Vec<&str> =
            op.shape.fields.iter().filter(|field| gives_order(field)).map(Field::wire).collect();
        let key = op.shape.fields.iter().find(|field| field.access.key).map_or("id", Field::wire);
        parameters.extend([
            query(
                "filter",
                "The filter for the items, in the grammar of RFC 7644, section 3.4.2.2, with the members' names.",
                json!({
                    "type": "string", "format": "scim-filter", "minLength": 1, "maxLength": 2048,
                    "examples": [format!("{key} pr")],
                }),
            ),
            query(
                "sortBy",
                "The member to sort by. Items without a value come last.",
                json!({ "type": "string", "enum": orders }),
            ),
            query(
                "sortOrder",
                "The sort order.",
                json!({ "type": "string", "enum": ["ascending", "descending"], "default": "ascending" }),
            ),
            query(
                "count",
                "The maximum number of items per page. Without it, the whole set is returned.",
                json!({ "type": "integer", "minimum": 1, "maximum": MAX_COUNT }),
            ),
            query(
                "cursor",
                "The cursor of the next page, from the `Link` header of the previous page.",
                json!({ "type": "string", "format": "cursor", "minLength": 1 }),
            ),
            query(
                "includeTotal",
                "Whether to count all items that match the filter.",
                json!({ "type": "boolean", "default": false }),
            ),
        ]);
    }
    if op.writes() {
        parameters.push(query(
            "dryRun",
            "Whether to change nothing and only respond as the real call would.",
            json!({ "type": "boolean", "default": false }),
        ));
    }
    if op.writes() && matches!(op.reply, Reply::One | Reply::Owner | Reply::Many) {
        parameters.push(json!({
            "name": "Prefer", "in": "header", "required": false,
            "description": "With `return=minimal`, the response has the same status and no body.",
            "schema": { "type": "string", "examples": ["return=minimal"] },
        }));
    }
    let header = |name: &str, about: &str, schema: Value| json!({ "name": name, "in": "header", "required": false, "description": about, "schema": schema });
    let if_match = || {
        let about =
            "The item's ETag or its quoted concurrency token. If it does not match, the request fails.";
        header("If-Match", about, json!({ "type": "string", "examples": ["*"] }))
    };
    match op.method {
        Method::Post if op.permit != Permit::Public && op.writes() => parameters.push(header(
            "Idempotency-Key",
            "A key that makes it safe to retry the request. For one day, a retry gets the first response again.",
            json!({ "type": "string", "minLength": 1, "maxLength": 255 }),
        )),
        Method::Put | Method::Patch | Method::Delete if op.has_item() => {
            parameters.push(if_match());
        }
        Method::Get if reads_one(op) => {
            parameters.push(if_match());
            parameters.push(header(
                "If-None-Match",
                "An ETag. The response is 304 if the item is unchanged.",
                json!({ "type": "string", "examples": ["\"none\""] }),
            ));
        }
        _ => {}
    }
    parameters
}

/// A query parameter of an operation's own.
fn own_parameter(parameter: &QueryParameter) -> Value {
    let (is_required, schema) = match parameter.form {
        QueryForm::Number(least, i64::MAX) => {
            (false, json!({ "type": "integer", "format": "int64", "minimum": least }))
        }
        QueryForm::Number(least, most) => {
            (false, json!({ "type": "integer", "minimum": least, "maximum": most }))
        }
        QueryForm::Optional(most) => {
            (false, json!({ "type": "string", "minLength": 1, "maxLength": most, "pattern": r"^[^\x00]*$" }))
        }
        QueryForm::Id => (false, json!({ "type": "string", "format": "uuid" })),
        QueryForm::Several(times, most) => {
            let text =
                json!({ "type": "string", "minLength": 1, "maxLength": most, "pattern": r"^[^\x00]*$" });
            (false, json!({ "type": "array", "maxItems": times, "items": text }))
        }
        QueryForm::Choice(words) => (false, json!({ "type": "string", "enum": words })),
        QueryForm::Text(most) => {
            // not blank, and without the characters that no text has
            let pattern = r"^[^\x00]*[^\s\x85\x00][^\x00]*$";
            (true, json!({ "type": "string", "minLength": 1, "maxLength": most, "pattern": pattern }))
        }
    };
    json!({
        "name": parameter.name, "in": "query", "required": is_required, "description": parameter.about,
        "schema": schema,
    })
}

/// Whether a list can be sorted by a field.
fn gives_order(field: &Field) -> bool {
    field.access.shown
        && field.access.column == Column::Own
        && field.access.sealing == Sealing::Open
        && !matches!(field.kind, Kind::Bytes(_) | Kind::Ids | Kind::Texts(_) | Kind::Pairs(_))
}

fn path_parameter(name: &str, op: &Op) -> Value {
    let shape = op.shape;
    let word = |example: &str| json!({ "type": "string", "examples": [example] });
    let key = shape.fields.iter().find(|field| field.access.key);
    let (about, schema) = match (name, key) {
        ("userstore", _) => ("The user store: the id of its instance, or its name.", word("default")),
        ("userName" | "loginName" | "loginname", _) => ("The login name.", word("ada")),
        ("type", _) if !op.choices.is_empty() => (
            "The type of the item that the option belongs to.",
            json!({ "type": "string", "enum": op.choices }),
        ),
        ("type", _) => ("The type, with the same values as in the items.", type_schema(shape)),
        ("name", _) => ("The name.", word("UserStore")),
        ("viewName", _) => ("The name of a shipped view.", word("SignIn")),
        ("idpInstance", _) => ("The id or the name of the identity provider instance.", word("default")),
        ("id", Some(key)) if shape.is_located() => {
            ("The location of the item.", schema::kind(key, Form::Create))
        }
        ("key", Some(key)) => ("The key of the entry.", schema::kind(key, Form::Create)),
        ("id", Some(key)) if matches!(key.kind, Kind::Int { .. }) => {
            ("The entry's number.", schema::kind(key, Form::Create))
        }
        _ => ("The item's id.", json!({ "type": "string", "format": "uuid" })),
    };
    json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
}

/// The schema of a resource's type.
fn type_schema(shape: &Shape) -> Value {
    let is_choice = |field: &Field| matches!(field.kind, Kind::Choice(_) | Kind::Numbered(_));
    let field = shape.fields.iter().find(|field| field.wire().ends_with("Type") && is_choice(field));
    match field.map(|field| (field, field.kind)) {
        // the name or the number
        Some((_, Kind::Numbered(names))) => {
            let numbers = (0..names.len()).map(|number| number.to_string());
            let known: Vec<String> = names.iter().map(|name| (*name).to_owned()).chain(numbers).collect();
            json!({ "type": "string", "enum": known })
        }
        Some((field, _)) => schema::kind(field, Form::Create),
        None => json!({ "type": "string" }),
    }
}

fn request(op: &Op, schemas: &mut Map<String, Value>) -> Option<Value> {
    let name = op.shape.name;
    let form = |form: Form| reference(&form.name(name));
    let most = op.shape.max_batch();
    let array = |items: Value| json!({ "type": "array", "items": items, "maxItems": most });
    let schema = match op.action {
        Action::Create | Action::Custom(Custom { body: Body::Resource, .. }) => form(Form::Create),
        Action::Replace => form(Form::Update),
        Action::Patch => form(Form::Patch),
        Action::CreateBatch | Action::Custom(Custom { body: Body::Resources, .. }) => {
            array(form(Form::Create))
        }
        Action::ReplaceBatch => array(form(Form::UpdateElement)),
        Action::DeleteBatch if op.shape.has_id() && most == MAX_BATCH => reference("Ids"),
        Action::DeleteBatch => {
            let key = op.shape.fields.iter().find(|field| field.access.key);
            array(key.map_or_else(|| json!({ "type": "string" }), |key| schema::kind(key, Form::Create)))
        }
        Action::Relate(..) => reference("RelatedIds"),
        Action::ReplaceMembers(members) => {
            let has = |field: &Field| {
                field.access.key || field.is_token() || members.iter().any(|member| member.is(field))
            };
            let body = format!("{}Body", op.name);
            schemas.entry(body.clone()).or_insert_with(|| {
                let mut schema = object(op.shape, &has, Form::Update);
                schema["description"] = json!(format!("Those members of a {name} that are replaced."));
                schema
            });
            reference(&body)
        }
        Action::Custom(Custom { body: Body::Form(form), .. }) => {
            schemas.entry(form.name).or_insert_with(|| {
                let mut schema = schema::own(form, Form::Create);
                // version 1 ignores unknown members
                schema["additionalProperties"] = json!(op.successor.is_some());
                schema
            });
            reference(form.name)
        }
        Action::Custom(Custom { body: Body::Json(form) | Body::JsonPatch(form), .. }) => {
            schemas.entry(form.name).or_insert_with(form.schema);
            reference(form.name)
        }
        Action::Custom(Custom { body: Body::Bytes(types, bound), .. }) => {
            let bytes = |kind: &&str| {
                let schema = match *kind {
                    "application/json" => json!({
                        "type": "object", "required": ["contentType", "data"], "additionalProperties": false,
                        "description": "The content as base64.",
                        "properties": {
                            "contentType": { "type": "string", "description": "The media type of the content.", "examples": ["image/png"] },
                            "data": { "type": "string", "contentEncoding": "base64", "description": "The content." },
                        },
                    }),
                    "multipart/form-data" => json!({
                        "type": "object", "required": ["file"],
                        "properties": { "file": { "type": "string", "format": "binary", "description": "The content." } },
                    }),
                    _ => json!({ "type": "string", "format": "binary", "maxLength": bound }),
                };
                ((*kind).to_owned(), json!({ "schema": schema }))
            };
            let content: Map<String, Value> = types.iter().map(bytes).collect();
            return Some(json!({ "required": true, "content": content }));
        }
        Action::List | Action::Read | Action::Delete | Action::Custom(_) => return None,
    };
    let mut content = json!({ "application/json": { "schema": schema } });
    if matches!(op.action, Action::Patch) {
        content["application/merge-patch+json"] = json!({ "schema": form(Form::MergePatch) });
    }
    if let Action::Custom(Custom { body: Body::JsonPatch(_), .. }) = op.action {
        content["application/json-patch+json"] = content["application/json"].clone();
    }
    let is_optional = matches!(op.action, Action::Custom(Custom { is_optional: true, .. }));
    Some(json!({ "required": !is_optional, "content": content }))
}

fn responses(op: &Op, schemas: &mut Map<String, Value>) -> Value {
    let about = match op.status {
        201 => "Created.",
        202 => "Changed.",
        204 => "Done.",
        _ => "The requested data.",
    };
    let answered = match (op.reply, op.shape.owner) {
        (Reply::Owner, Some(owner)) => owner.shape.name,
        _ => op.shape.name,
    };
    let form = Form::Response.name(answered);
    let mut success = json!({ "description": about });
    let header = |about: &str, kind: &str| json!({ "description": about, "schema": { "type": kind } });
    match op.reply {
        Reply::One | Reply::Owner => {
            success["content"] = json!({ "application/json": { "schema": reference(&form) } });
            success["headers"] =
                json!({ "ETag": header("The state of the item, derived from its content.", "string") });
        }
        Reply::Many => {
            success["content"] = json!({ "application/json": { "schema": {
                "type": "array", "items": reference(&form),
            } } });
            if op.is_list() {
                success["headers"] = json!({
                    "Link": header("Where the next page is, with rel=\"next\", if there is one.", "string"),
                    "X-Total-Count": header("The total number of items, if it was requested.", "integer"),
                    "X-Event-Cursor": header("The cursor from which the event feed continues after this list. Some events may concern changes that the list already shows, but no event is missed.", "string"),
                });
            }
        }
        Reply::Items => {
            let name = format!("{answered}List");
            schemas.entry(name.clone()).or_insert_with(|| {
                json!({
                    "type": "object", "description": "A part of a list.", "required": ["items", "totalCount"],
                    "properties": {
                        "items": { "type": "array", "description": "The items.", "items": reference(&form) },
                        "totalCount": { "type": "integer", "description": "The number of items before paging." },
                    },
                })
            });
            success["content"] = json!({ "application/json": { "schema": reference(&name) } });
        }
        Reply::Form(form) => {
            schemas.entry(form.name).or_insert_with(|| schema::own(form, Form::Response));
            success["content"] = json!({ "application/json": { "schema": reference(form.name) } });
        }
        Reply::Json(form) => {
            schemas.entry(form.name).or_insert_with(form.schema);
            success["content"] = json!({ "application/json": { "schema": reference(form.name) } });
        }
        Reply::Content(types) => {
            let content = types.iter().map(|kind| {
                ((*kind).to_owned(), json!({ "schema": { "type": "string", "format": "binary" } }))
            });
            success["content"] = Value::Object(content.collect());
        }
        Reply::Events => {
            success["content"] = json!({ "text/event-stream": { "schema": { "type": "string" } } });
        }
        Reply::Empty => {}
    }
    if op.method == Method::Post && op.permit != Permit::Public && op.writes() {
        success["headers"]["Idempotency-Replayed"] =
            header("`true` if the response is that of an earlier request with the same key.", "string");
    }
    if reads_one(op) {
        success["headers"]["ETag"] = header("The state of the item, derived from its content.", "string");
    }
    let mut responses = Map::new();
    responses.insert(op.status.to_string(), success);
    if reads_one(op) {
        responses.insert("304".into(), json!({ "description": "The item still matches If-None-Match." }));
    }
    for status in refusals(op) {
        responses
            .insert(status.to_string(), json!({ "$ref": format!("#/components/responses/Problem{status}") }));
    }
    Value::Object(responses)
}

/// The statuses by which an operation refuses.
fn refusals(op: &Op) -> Vec<u16> {
    let mut statuses = vec![400, 404, 405, 406, 429, 500, 503];
    if op.permit != Permit::Public {
        statuses.extend([401, 403]);
    }
    if op.writes() {
        statuses.push(409);
    }
    if op.writes() || reads_one(op) {
        statuses.push(412);
    }
    if op.takes_body() {
        statuses.extend([413, 415]);
    }
    if op.takes_body() || op.method == Method::Post {
        statuses.push(422);
    }
    let is_feed = matches!(op.action, Action::Custom(Custom { works: Some(Purpose::Event), .. }));
    if is_feed || (op.method == Method::Post && op.permit != Permit::Public && op.writes()) {
        statuses.push(410);
    }
    statuses
}
