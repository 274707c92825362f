//! Bulk operations (RFC 7644, section 3.7): in their order, each in its own transaction.

mod cycles;
mod dry_run;
mod run;

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::Peekable,
    sync::LazyLock,
};

use chancery_record::{Json, fold};
use chancery_resource::{Action, Body, Custom, Method, Op, Permit, Problem, ProblemKind, Reply};
use chancery_scim::{ScimError, ScimType};
use chancery_userstore::user::USER;
use chancery_web::{AnswerBody, respond};
use futures_util::future::join_all;
use http::{Method as HttpMethod, Response};
use serde_json::{Map, Value, json};

use self::run::Execution;
use crate::{caller::Caller, operations::BODY};

const RESPONSE: &str = "urn:ietf:params:scim:api:messages:2.0:BulkResponse";
/// The most operations of a request.
const MAX_OPERATIONS: usize = 1000;
/// The most references of a request to resources that it creates.
const MAX_REFERENCES: usize = 10_000;
/// The most creations that run concurrently, so that they share commits.
const BATCH: usize = 16;
/// The prefix of a reference to a resource that another operation creates.
pub const REFERENCE_PREFIX: &str = "bulkId:";

/// The operation whose body limits apply to a bulk request.
pub fn op() -> &'static Op {
    static OP: LazyLock<Op> = LazyLock::new(|| {
        let custom = Custom::writing(|call, _| Ok(chancery_resource::Answer::new(call.request.op.status)));
        let custom = custom.taking(Body::Json(&BODY)).replying(Reply::Json(&BODY));
        Op::new("ScimBulk", Method::Post, "", Permit::UserStore, &USER, Action::Custom(custom), "")
    });
    &OP
}

/// One operation.
struct BulkOperation {
    method: HttpMethod,
    path: String,
    bulk_id: Option<String>,
    version: Option<String>,
    data: Option<Value>,
    /// The response, once the operation ran.
    response: Option<Map<String, Value>>,
}

/// Runs the operations; with `dry_run` validates each by itself and writes nothing.
///
/// # Errors
/// The request as a whole is invalid, or has too many operations or references.
pub async fn run(caller: &Caller<'_>, sent: &Json, dry_run: bool) -> Result<Response<AnswerBody>, Problem> {
    let sent = sent.to_serde();
    let mut operations = read(&sent)?;
    let error_limit = error_limit(&sent)?;
    let (mut created, mut errors) = (BTreeMap::new(), 0_u64);
    let mut pending: BTreeSet<String> = creations(&operations).map(|(id, _)| id.to_owned()).collect();
    let mut managers = Vec::new();
    let mut queue = order(&operations).into_iter().peekable();
    while queue.peek().is_some() {
        if error_limit.is_some_and(|most| errors >= most) {
            break;
        }
        let batch = take_batch(&operations, &mut queue, if error_limit.is_some() { 1 } else { BATCH });
        if let [index] = batch.as_slice()
            && let Some(BulkOperation { method, data: Some(data), .. }) = operations.get_mut(*index)
            && *method == HttpMethod::POST
        {
            managers.extend(cycles::take_manager(data, &pending).map(|manager| (*index, manager)));
        }
        let execution = Execution { caller, dry_run, created: &created, pending: &pending };
        let mut running = Vec::with_capacity(batch.len());
        for operation in batch.iter().filter_map(|index| operations.get(*index)) {
            running.push(execution.run(operation));
        }
        let results = join_all(running).await;
        for (index, result) in batch.into_iter().zip(results) {
            let Some(operation) = operations.get_mut(index) else { continue };
            errors += u64::from(result.failed);
            if let Some(id) = &operation.bulk_id {
                pending.remove(id);
                created.extend(result.created.map(|created| (id.clone(), created)));
            }
            operation.response = Some(result.response);
        }
    }
    let execution = Execution { caller, dry_run, created: &created, pending: &pending };
    for (index, manager) in managers {
        if let Some(operation) = operations.get_mut(index) {
            execution.add_manager(operation, &manager).await;
        }
    }
    let responses: Vec<Value> =
        operations.into_iter().filter_map(|operation| operation.response.map(Value::Object)).collect();
    let body = json!({ "schemas": [RESPONSE], "Operations": responses });
    Ok(respond(200, "application/scim+json", body.to_string()))
}

fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.as_object()?.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn wrong(detail: String) -> Problem {
    ScimError::new(ScimType::InvalidSyntax, detail).into()
}

/// The number of errors after which the request ends (`failOnErrors`).
fn error_limit(sent: &Value) -> Result<Option<u64>, Problem> {
    match member(sent, "failOnErrors") {
        None | Some(Value::Null) => Ok(None),
        Some(most) => match most.as_u64() {
            Some(most) => Ok(Some(most).filter(|most| *most > 0)),
            None => Err(wrong("/failOnErrors must be a whole number".into())),
        },
    }
}

/// The text of an operation's member, if present.
fn text(operation: &Value, name: &str, index: usize) -> Result<Option<String>, Problem> {
    match member(operation, name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(format!("/Operations/{index}/{name} must be a string"))),
    }
}

fn read(sent: &Value) -> Result<Vec<BulkOperation>, Problem> {
    let operations = member(sent, "Operations").and_then(Value::as_array);
    let operations =
        operations.ok_or_else(|| wrong("The body must be an object with an array Operations.".into()))?;
    if operations.len() > MAX_OPERATIONS {
        let detail = format!("A request has at most {MAX_OPERATIONS} operations, not {}.", operations.len());
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    let parsed: Vec<BulkOperation> = operations
        .iter()
        .enumerate()
        .map(|(index, operation)| read_operation(index, operation))
        .collect::<Result<_, _>>()?;
    let mut ids = BTreeSet::new();
    if let Some(id) =
        parsed.iter().filter_map(|operation| operation.bulk_id.as_deref()).find(|id| !ids.insert(*id))
    {
        return Err(wrong(format!("The bulkId {} is there twice.", shortened(id))));
    }
    let mut count = 0;
    for operation in &parsed {
        references(operation, &mut |_| count += 1);
    }
    if count > MAX_REFERENCES {
        let detail = format!("A request has at most {MAX_REFERENCES} references by bulkId, not {count}.");
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    Ok(parsed)
}

fn read_operation(index: usize, operation: &Value) -> Result<BulkOperation, Problem> {
    let text = |name| text(operation, name, index);
    let method = text("method")?.unwrap_or_default().to_ascii_uppercase();
    if !matches!(method.as_str(), "POST" | "PUT" | "PATCH" | "DELETE") {
        return Err(wrong(format!("/Operations/{index}/method must be POST, PUT, PATCH or DELETE")));
    }
    let path = text("path")?.ok_or_else(|| wrong(format!("/Operations/{index}/path is missing")))?;
    let method = HttpMethod::from_bytes(method.as_bytes()).unwrap_or(HttpMethod::POST);
    let bulk_id = text("bulkId")?;
    if method == HttpMethod::POST && bulk_id.is_none() {
        return Err(wrong(format!("/Operations/{index}/bulkId is missing: a POST has one")));
    }
    let data = member(operation, "data").cloned();
    Ok(BulkOperation { method, path, bulk_id, version: text("version")?, data, response: None })
}

/// The order in which operations run: as sent, but an operation that refers to a resource created after it runs after
/// that one.
fn order(operations: &[BulkOperation]) -> Vec<usize> {
    let creates: BTreeMap<&str, usize> = creations(operations).collect();
    let (mut order, mut visited) = (Vec::with_capacity(operations.len()), vec![false; operations.len()]);
    for index in 0..operations.len() {
        visit_with_references(index, operations, &creates, &mut visited, &mut order);
    }
    order
}

/// The next operation, or the next ones if these are creations without references and with different names: their order
/// cannot be observed, and they share commits.
fn take_batch(
    operations: &[BulkOperation],
    queue: &mut Peekable<impl Iterator<Item = usize>>,
    most: usize,
) -> Vec<usize> {
    let mut names = BTreeSet::new();
    let mut is_independent = |index: &usize| {
        operations.get(*index).and_then(independent_name).is_some_and(|name| names.insert(name))
    };
    let Some(first) = queue.next() else { return Vec::new() };
    let mut batch = vec![first];
    if is_independent(&first) {
        while batch.len() < most
            && let Some(next) = queue.next_if(&mut is_independent)
        {
            batch.push(next);
        }
    }
    batch
}

/// The name of a creation without references.
fn independent_name(operation: &BulkOperation) -> Option<String> {
    let mut has_reference = false;
    references(operation, &mut |_| has_reference = true);
    let data = operation.data.as_ref().filter(|_| operation.method == HttpMethod::POST && !has_reference)?;
    let name = ["userName", "displayName"].iter().find_map(|name| member(data, name)?.as_str());
    Some(format!("{} {}", operation.path, fold(name.unwrap_or_default())))
}

/// The operations that create a resource, by their bulkIds.
fn creations(operations: &[BulkOperation]) -> impl Iterator<Item = (&str, usize)> {
    let posts = operations.iter().enumerate().filter(|(_, operation)| operation.method == HttpMethod::POST);
    posts.filter_map(|(index, operation)| Some((operation.bulk_id.as_deref()?, index)))
}

/// Orders an operation after those that it refers to. A cycle is broken where it began.
fn visit_with_references(
    index: usize,
    operations: &[BulkOperation],
    creates: &BTreeMap<&str, usize>,
    visited: &mut [bool],
    order: &mut Vec<usize>,
) {
    let mut queue = vec![(index, false)];
    while let Some((index, is_ready)) = queue.pop() {
        if is_ready {
            order.push(index);
            continue;
        }
        let (Some(operation), Some(visited)) = (operations.get(index), visited.get_mut(index)) else {
            continue;
        };
        if std::mem::replace(visited, true) {
            continue;
        }
        queue.push((index, true));
        let mut referenced = Vec::new();
        references(operation, &mut |id| referenced.extend(creates.get(id).copied()));
        queue.extend(referenced.into_iter().rev().map(|index| (index, false)));
    }
}

fn references(operation: &BulkOperation, visit: &mut dyn FnMut(&str)) {
    if let Some((_, id)) = operation.path.split_once(REFERENCE_PREFIX) {
        visit(id.split('/').next().unwrap_or_default());
    }
    if let Some(data) = &operation.data {
        each_text(data, &mut |text| {
            if let Some(id) = text.strip_prefix(REFERENCE_PREFIX) {
                visit(id);
            }
        });
    }
}

fn each_text(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(members) => members.values().for_each(|value| each_text(value, visit)),
        _ => {}
    }
}

/// The beginning of an id, quoted.
fn shortened(id: &str) -> String {
    format!("{:?}", id.chars().take(100).collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{error_limit, order, read, take_batch};

    fn ordered(operations: &serde_json::Value) -> Vec<usize> {
        order(&read(&json!({ "Operations": operations })).unwrap())
    }

    #[test]
    fn referenced_operations_run_first() {
        let group = json!({ "method": "POST", "path": "/Groups", "bulkId": "g",
            "data": { "members": [{ "value": "bulkId:u" }] } });
        let user = json!({ "method": "POST", "path": "/Users", "bulkId": "u", "data": {} });
        let patch = json!({ "method": "PATCH", "path": "/Users/bulkId:u", "data": {} });
        assert_eq!(ordered(&json!([group, user])), [1, 0]);
        assert_eq!(ordered(&json!([patch, group, user])), [2, 0, 1]);
        assert_eq!(ordered(&json!([user, group])), [0, 1]);
    }

    #[test]
    fn only_independent_creations_run_together() {
        let user = |name: &str| json!({ "method": "POST", "path": "/Users", "bulkId": name, "data": { "userName": name } });
        let patch = json!({ "method": "PATCH", "path": "/Users/1", "data": {} });
        let refers = json!({ "method": "POST", "path": "/Groups", "bulkId": "g",
            "data": { "displayName": "g", "members": [{ "value": "bulkId:a" }] } });
        let sent = json!([user("a"), user("b"), user("A"), user("c"), patch, refers, user("d")]);
        let operations = read(&json!({ "Operations": sent })).unwrap();
        let mut queue = order(&operations).into_iter().peekable();
        let mut batch_sizes = Vec::new();
        while queue.peek().is_some() {
            batch_sizes.push(take_batch(&operations, &mut queue, 2).len());
        }
        assert_eq!(batch_sizes, [2, 2, 1, 1, 1]);
    }

    #[test]
    fn a_cycle_has_an_order() {
        let one = json!({ "method": "POST", "path": "/Groups", "bulkId": "a",
            "data": { "members": [{ "value": "bulkId:b" }] } });
        let two = json!({ "method": "POST", "path": "/Groups", "bulkId": "b",
            "data": { "members": [{ "value": "bulkId:a" }] } });
        let mut order = ordered(&json!([one, two]));
        order.sort_unstable();
        assert_eq!(order, [0, 1]);
    }

    #[test]
    fn a_bulk_id_names_one_operation() {
        let post = json!({ "method": "POST", "path": "/Users", "bulkId": "a", "data": {} });
        let patch = json!({ "method": "PATCH", "path": "/Users/1", "bulkId": "a", "data": {} });
        assert_eq!(read(&json!({ "Operations": [post, patch] })).err().unwrap().status(), 400);
        assert_eq!(read(&json!({ "Operations": [post, post] })).err().unwrap().status(), 400);
        assert!(read(&json!({ "Operations": [post] })).is_ok());
    }

    #[test]
    fn members_of_a_wrong_type_are_refused() {
        for (name, value) in
            [("bulkId", json!(7)), ("version", json!(7)), ("path", json!([])), ("method", json!(1))]
        {
            let mut operation = json!({ "method": "PATCH", "path": "/Users/1", "data": {} });
            operation[name] = value;
            assert_eq!(read(&json!({ "Operations": [operation] })).err().unwrap().status(), 400, "{name}");
        }
        assert_eq!(error_limit(&json!({ "failOnErrors": "1" })).err().unwrap().status(), 400);
        assert_eq!(error_limit(&json!({ "failOnErrors": 2 })).unwrap(), Some(2));
        assert_eq!(error_limit(&json!({})).unwrap(), None);
    }

    #[test]
    fn requests_are_bounded() {
        let member = json!({ "value": "bulkId:a" });
        let group =
            json!({ "method": "PATCH", "path": "/Groups/1", "data": { "members": vec![member; 5001] } });
        assert_eq!(read(&json!({ "Operations": [group, group] })).err().unwrap().status(), 413);
        assert!(read(&json!({ "Operations": [group] })).is_ok());
        let many: Vec<_> = (0..1001).map(|_| json!({ "method": "DELETE", "path": "/Users/1" })).collect();
        assert_eq!(read(&json!({ "Operations": many })).err().unwrap().status(), 413);
        for wrong in [json!({}), json!({ "Operations": [{ "method": "GET", "path": "/Users" }] })] {
            assert_eq!(read(&wrong).err().unwrap().status(), 400);
        }
    }
}
