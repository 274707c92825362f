//! Many operations in one request (RFC 7644, section 3.7): in their order, each in its own transaction.

mod circle;
mod run;
mod trial;

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::Peekable,
    sync::LazyLock,
};

use chancery_record::{Json, fold};
use chancery_resource::{Action, Body, Custom, Method, Op, Permit, Problem, ProblemKind, Reply};
use chancery_scim::{Refusal, ScimType};
use chancery_userstore::user::USER;
use chancery_web::{AnswerBody, respond};
use futures_util::future::join_all;
use http::{Method as HttpMethod, Response};
use serde_json::{Map, Value, json};

use self::run::Execution;
use crate::{form::BODY, http::Caller};

const RESPONSE: &str = "urn:ietf:params:scim:api:messages:2.0:BulkResponse";
/// The most operations of a request.
const MOST: usize = 1000;
/// The most references of a request to what it creates.
const REFERENCES: usize = 10_000;
/// How many creations run at once, so that they share commits.
const TOGETHER: usize = 16;
/// The beginning of a reference to what another operation creates.
pub const REFERENCE: &str = "bulkId:";

/// Takes the body of a request.
pub fn op() -> &'static Op {
    static OP: LazyLock<Op> = LazyLock::new(|| {
        let custom = Custom::writing(|call, _| Ok(chancery_resource::Answer::new(call.request.op.status)));
        let custom = custom.taking(Body::Json(&BODY)).replying(Reply::Json(&BODY));
        Op::new("ScimBulk", Method::Post, "", Permit::UserStore, &USER, Action::Custom(custom), "")
    });
    &OP
}

/// One operation.
struct Step {
    method: HttpMethod,
    path: String,
    bulk_id: Option<String>,
    version: Option<String>,
    data: Option<Value>,
    /// What the operation came to, once it ran.
    outcome: Option<Map<String, Value>>,
}

/// Runs the operations; where `dry_run` is set, tries each by itself and writes nothing.
///
/// # Errors
/// The request as a whole cannot be read, or has too many operations or references.
pub async fn run(caller: &Caller<'_>, sent: &Json, dry_run: bool) -> Result<Response<AnswerBody>, Problem> {
    let sent = sent.to_serde();
    let mut steps = read(&sent)?;
    let most_errors = most_errors(&sent)?;
    let (mut made, mut errors) = (BTreeMap::new(), 0_u64);
    let mut unmade: BTreeSet<String> = creations(&steps).map(|(id, _)| id.to_owned()).collect();
    let mut managers = Vec::new();
    let mut waiting = order(&steps).into_iter().peekable();
    while waiting.peek().is_some() {
        if most_errors.is_some_and(|most| errors >= most) {
            break;
        }
        let together = take_together(&steps, &mut waiting, if most_errors.is_some() { 1 } else { TOGETHER });
        if let [index] = together.as_slice()
            && let Some(Step { method, data: Some(data), .. }) = steps.get_mut(*index)
            && *method == HttpMethod::POST
        {
            managers.extend(circle::take_manager(data, &unmade).map(|manager| (*index, manager)));
        }
        let run = Execution { caller, dry_run, made: &made, unmade: &unmade };
        let mut under_way = Vec::with_capacity(together.len());
        for step in together.iter().filter_map(|index| steps.get(*index)) {
            under_way.push(run.one(step));
        }
        let outcomes = join_all(under_way).await;
        for (index, outcome) in together.into_iter().zip(outcomes) {
            let Some(step) = steps.get_mut(index) else { continue };
            errors += u64::from(outcome.is_error);
            if let Some(id) = &step.bulk_id {
                unmade.remove(id);
                made.extend(outcome.made.map(|made| (id.clone(), made)));
            }
            step.outcome = Some(outcome.told);
        }
    }
    let run = Execution { caller, dry_run, made: &made, unmade: &unmade };
    for (index, manager) in managers {
        if let Some(step) = steps.get_mut(index) {
            run.close(step, &manager).await;
        }
    }
    let outcomes: Vec<Value> = steps.into_iter().filter_map(|step| step.outcome.map(Value::Object)).collect();
    let told = json!({ "schemas": [RESPONSE], "Operations": outcomes });
    Ok(respond(200, "application/scim+json", told.to_string()))
}

fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.as_object()?.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn wrong(detail: String) -> Problem {
    Refusal::wrong(ScimType::InvalidSyntax, detail).into()
}

/// After how many errors the request ends, if it says so.
fn most_errors(sent: &Value) -> Result<Option<u64>, Problem> {
    match member(sent, "failOnErrors") {
        None | Some(Value::Null) => Ok(None),
        Some(most) => match most.as_u64() {
            Some(most) => Ok(Some(most).filter(|most| *most > 0)),
            None => Err(wrong("/failOnErrors must be a whole number".into())),
        },
    }
}

/// The text of an operation's member, if it has one.
fn text(operation: &Value, name: &str, index: usize) -> Result<Option<String>, Problem> {
    match member(operation, name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(format!("/Operations/{index}/{name} must be a string"))),
    }
}

fn read(sent: &Value) -> Result<Vec<Step>, Problem> {
    let operations = member(sent, "Operations").and_then(Value::as_array);
    let operations =
        operations.ok_or_else(|| wrong("The body must be an object with an array Operations.".into()))?;
    if operations.len() > MOST {
        let detail = format!("A request has at most {MOST} operations, not {}.", operations.len());
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    let steps: Vec<Step> = operations.iter().enumerate().map(read_step).collect::<Result<_, _>>()?;
    let mut ids = BTreeSet::new();
    if let Some(id) = steps.iter().filter_map(|step| step.bulk_id.as_deref()).find(|id| !ids.insert(*id)) {
        return Err(wrong(format!("The bulkId {} is there twice.", shortened(id))));
    }
    let mut count = 0;
    for step in &steps {
        references(step, &mut |_| count += 1);
    }
    if count > REFERENCES {
        let detail = format!("A request has at most {REFERENCES} references by bulkId, not {count}.");
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    Ok(steps)
}

fn read_step((index, operation): (usize, &Value)) -> Result<Step, Problem> {
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
    Ok(Step { method, path, bulk_id, version: text("version")?, data, outcome: None })
}

/// The order in which operations run: as they came, but what refers to something that is created behind it comes after
/// that.
fn order(steps: &[Step]) -> Vec<usize> {
    let creates: BTreeMap<&str, usize> = creations(steps).collect();
    let (mut order, mut placed) = (Vec::with_capacity(steps.len()), vec![false; steps.len()]);
    for index in 0..steps.len() {
        place(index, steps, &creates, &mut placed, &mut order);
    }
    order
}

/// The next operation, or the next ones where these are creations that refer to nothing and have different names: then
/// nobody can tell in which order they ran, and they share commits.
fn take_together(
    steps: &[Step],
    waiting: &mut Peekable<impl Iterator<Item = usize>>,
    most: usize,
) -> Vec<usize> {
    let mut names = BTreeSet::new();
    let mut is_free =
        |index: &usize| steps.get(*index).and_then(free_name).is_some_and(|name| names.insert(name));
    let Some(first) = waiting.next() else { return Vec::new() };
    let mut together = vec![first];
    if is_free(&first) {
        while together.len() < most
            && let Some(next) = waiting.next_if(&mut is_free)
        {
            together.push(next);
        }
    }
    together
}

/// What a creation that refers to nothing is called.
fn free_name(step: &Step) -> Option<String> {
    let mut is_bound = false;
    references(step, &mut |_| is_bound = true);
    let data = step.data.as_ref().filter(|_| step.method == HttpMethod::POST && !is_bound)?;
    let name = ["userName", "displayName"].iter().find_map(|name| member(data, name)?.as_str());
    Some(format!("{} {}", step.path, fold(name.unwrap_or_default())))
}

/// The operations that create something, by their bulkIds.
fn creations(steps: &[Step]) -> impl Iterator<Item = (&str, usize)> {
    let posts = steps.iter().enumerate().filter(|(_, step)| step.method == HttpMethod::POST);
    posts.filter_map(|(index, step)| Some((step.bulk_id.as_deref()?, index)))
}

/// Places what an operation refers to, and then the operation. A circle is broken where it began.
fn place(
    index: usize,
    steps: &[Step],
    creates: &BTreeMap<&str, usize>,
    placed: &mut [bool],
    order: &mut Vec<usize>,
) {
    let mut waiting = vec![(index, false)];
    while let Some((index, is_ready)) = waiting.pop() {
        if is_ready {
            order.push(index);
            continue;
        }
        let (Some(step), Some(placed)) = (steps.get(index), placed.get_mut(index)) else { continue };
        if std::mem::replace(placed, true) {
            continue;
        }
        waiting.push((index, true));
        let mut named = Vec::new();
        references(step, &mut |id| named.extend(creates.get(id).copied()));
        waiting.extend(named.into_iter().rev().map(|index| (index, false)));
    }
}

fn references(step: &Step, see: &mut dyn FnMut(&str)) {
    if let Some((_, id)) = step.path.split_once(REFERENCE) {
        see(id.split('/').next().unwrap_or_default());
    }
    if let Some(data) = &step.data {
        each_text(data, &mut |text| {
            if let Some(id) = text.strip_prefix(REFERENCE) {
                see(id);
            }
        });
    }
}

fn each_text(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, see)),
        Value::Object(members) => members.values().for_each(|value| each_text(value, see)),
        _ => {}
    }
}

/// The beginning of an id, in quotes.
fn shortened(id: &str) -> String {
    format!("{:?}", id.chars().take(100).collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{most_errors, order, read, take_together};

    fn ordered(operations: &serde_json::Value) -> Vec<usize> {
        order(&read(&json!({ "Operations": operations })).unwrap())
    }

    #[test]
    fn what_is_referred_to_comes_first() {
        let group = json!({ "method": "POST", "path": "/Groups", "bulkId": "g",
            "data": { "members": [{ "value": "bulkId:u" }] } });
        let user = json!({ "method": "POST", "path": "/Users", "bulkId": "u", "data": {} });
        let patch = json!({ "method": "PATCH", "path": "/Users/bulkId:u", "data": {} });
        assert_eq!(ordered(&json!([group, user])), [1, 0]);
        assert_eq!(ordered(&json!([patch, group, user])), [2, 0, 1]);
        assert_eq!(ordered(&json!([user, group])), [0, 1]);
    }

    #[test]
    fn only_what_has_no_order_runs_together() {
        let user = |name: &str| json!({ "method": "POST", "path": "/Users", "bulkId": name, "data": { "userName": name } });
        let patch = json!({ "method": "PATCH", "path": "/Users/1", "data": {} });
        let refers = json!({ "method": "POST", "path": "/Groups", "bulkId": "g",
            "data": { "displayName": "g", "members": [{ "value": "bulkId:a" }] } });
        let sent = json!([user("a"), user("b"), user("A"), user("c"), patch, refers, user("d")]);
        let steps = read(&json!({ "Operations": sent })).unwrap();
        let mut waiting = order(&steps).into_iter().peekable();
        let mut taken = Vec::new();
        while waiting.peek().is_some() {
            taken.push(take_together(&steps, &mut waiting, 2).len());
        }
        assert_eq!(taken, [2, 2, 1, 1, 1]);
    }

    #[test]
    fn a_circle_has_an_order() {
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
        assert_eq!(most_errors(&json!({ "failOnErrors": "1" })).err().unwrap().status(), 400);
        assert_eq!(most_errors(&json!({ "failOnErrors": 2 })).unwrap(), Some(2));
        assert_eq!(most_errors(&json!({})).unwrap(), None);
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
