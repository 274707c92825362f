//! Many operations in one request (RFC 7644, section 3.7): in their order, each in its own transaction.

mod circle;

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
use http::{Method as HttpMethod, Response, header};
use serde_json::{Map, Value, json};

use crate::{
    address::{self, Asked, Verb},
    form::BODY,
    http::Caller,
    search::json_of,
};

const RESPONSE: &str = "urn:ietf:params:scim:api:messages:2.0:BulkResponse";
/// The most operations of a request.
const MOST: usize = 1000;
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

/// Runs the operations.
///
/// # Errors
/// The request as a whole cannot be read, or has too many operations.
pub async fn run(caller: &Caller<'_>, sent: &Json) -> Result<Response<AnswerBody>, Problem> {
    let sent = sent.to_serde();
    let mut steps = read(&sent)?;
    let most_errors = member(&sent, "failOnErrors").and_then(Value::as_u64).filter(|most| *most > 0);
    let (mut made, mut errors) = (BTreeMap::new(), 0_u64);
    let mut unmade: BTreeSet<String> = creations(&steps).map(|(id, _)| id.to_owned()).collect();
    let mut open = Vec::new();
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
            open.extend(circle::take_out(data, &unmade).into_iter().map(|link| (*index, link)));
        }
        let mut under_way = Vec::with_capacity(together.len());
        for step in together.iter().filter_map(|index| steps.get(*index)) {
            under_way.push(one(caller, step, &made));
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
    for (index, link) in open {
        if let Some(step) = steps.get_mut(index) {
            close(caller, step, &link, &made).await;
        }
    }
    let outcomes: Vec<Value> = steps.into_iter().filter_map(|step| step.outcome.map(Value::Object)).collect();
    let told = json!({ "schemas": [RESPONSE], "Operations": outcomes });
    Ok(respond(200, "application/scim+json", told.to_string()))
}

fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.as_object()?.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn read(sent: &Value) -> Result<Vec<Step>, Problem> {
    let wrong = |detail: String| Problem::from(Refusal::wrong(ScimType::InvalidSyntax, detail));
    let operations = member(sent, "Operations").and_then(Value::as_array);
    let operations =
        operations.ok_or_else(|| wrong("The body must be an object with an array Operations.".into()))?;
    if operations.len() > MOST {
        let detail = format!("A request has at most {MOST} operations, not {}.", operations.len());
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    let read = |(index, operation): (usize, &Value)| {
        let text = |name| member(operation, name).and_then(Value::as_str).map(str::to_owned);
        let method = text("method").unwrap_or_default().to_ascii_uppercase();
        if !matches!(method.as_str(), "POST" | "PUT" | "PATCH" | "DELETE") {
            return Err(wrong(format!("/Operations/{index}/method must be POST, PUT, PATCH or DELETE")));
        }
        let path = text("path").ok_or_else(|| wrong(format!("/Operations/{index}/path is missing")))?;
        let method = HttpMethod::from_bytes(method.as_bytes()).unwrap_or(HttpMethod::POST);
        if method == HttpMethod::POST && text("bulkId").is_none() {
            return Err(wrong(format!("/Operations/{index}/bulkId is missing: a POST has one")));
        }
        let data = member(operation, "data").cloned();
        Ok(Step { method, path, bulk_id: text("bulkId"), version: text("version"), data, outcome: None })
    };
    operations.iter().enumerate().map(read).collect()
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

/// Adds a reference that was taken out, because what it names came after, to what was created by then.
async fn close(caller: &Caller<'_>, step: &mut Step, link: &circle::Link, made: &BTreeMap<String, String>) {
    let own = step.bulk_id.as_ref().and_then(|id| made.get(id));
    let (Some(own), Some(outcome)) = (own, &mut step.outcome) else { return };
    let closed = match made.get(&link.to) {
        Some(id) => {
            let closing = Step {
                method: HttpMethod::PATCH,
                path: format!("{}/{own}", step.path.trim_end_matches('/')),
                bulk_id: None,
                version: None,
                data: Some(link.patch(id)),
                outcome: None,
            };
            perform(caller, &closing, made).await
        }
        None => Err(unmade(&link.to)),
    };
    match closed {
        Ok((_, _, version)) => {
            outcome.insert("version".into(), version.into());
        }
        Err(problem) => refuse(outcome, &problem),
    }
}

/// Tells why an operation was refused.
fn refuse(outcome: &mut Map<String, Value>, problem: &Problem) {
    let refusal = Refusal::from(problem);
    outcome.insert("status".into(), refusal.status.to_string().into());
    outcome.insert("response".into(), refusal.body());
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

/// Puts ids in place of references.
fn resolve(value: &mut Value, made: &BTreeMap<String, String>) -> Result<(), Problem> {
    match value {
        Value::String(text) => {
            if let Some(id) = text.strip_prefix(REFERENCE) {
                *text = made.get(id).cloned().ok_or_else(|| unmade(id))?;
            }
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| resolve(item, made))?,
        Value::Object(members) => members.values_mut().try_for_each(|value| resolve(value, made))?,
        _ => {}
    }
    Ok(())
}

fn unmade(id: &str) -> Problem {
    let id: String = id.chars().take(100).collect();
    let mut problem = Problem::conflict(format!("Nothing was created under the bulkId {id:?}."));
    problem.errors = Vec::new().into();
    problem
}

/// What an operation came to.
struct Outcome {
    told: Map<String, Value>,
    /// The id of what it created.
    made: Option<String>,
    is_error: bool,
}

async fn one(caller: &Caller<'_>, step: &Step, made: &BTreeMap<String, String>) -> Outcome {
    let mut told = Map::new();
    told.insert("method".into(), step.method.as_str().into());
    told.extend(step.bulk_id.as_ref().map(|id| ("bulkId".to_owned(), id.as_str().into())));
    match perform(caller, step, made).await {
        Ok((status, location, version)) => {
            told.insert("status".into(), status.to_string().into());
            let made = location.as_deref().and_then(|location| location.rsplit_once('/'));
            let made = made.map(|(_, id)| id.to_owned());
            told.extend(location.map(|location| ("location".to_owned(), location.into())));
            told.extend(version.map(|version| ("version".to_owned(), version.into())));
            Outcome { told, made, is_error: false }
        }
        Err(problem) => {
            refuse(&mut told, &problem);
            if step.method != HttpMethod::POST {
                told.insert("location".into(), step.path.as_str().into());
            }
            Outcome { told, made: None, is_error: true }
        }
    }
}

/// Status, address and version of what an operation wrote.
type Written = (u16, Option<String>, Option<String>);

async fn perform(
    caller: &Caller<'_>,
    step: &Step,
    made: &BTreeMap<String, String>,
) -> Result<Written, Problem> {
    let mut path = step.path.clone();
    if let Some((before, after)) = step.path.split_once(REFERENCE) {
        let id = after.split('/').next().unwrap_or_default();
        path = format!("{before}{}", made.get(id).ok_or_else(|| unmade(id))?);
    }
    let segments: Vec<String> = path.trim_start_matches('/').split('/').map(str::to_owned).collect();
    let Asked::Resources(of, verb) = address::read(&segments, &step.method)? else {
        return Err(Refusal::wrong(ScimType::InvalidPath, "A path names users or groups.").into());
    };
    if verb == Verb::Search {
        return Err(
            Refusal::wrong(ScimType::InvalidPath, "A request changes things; it does not search.").into()
        );
    }
    let (op, right) = caller.op(of, &verb);
    caller.access.check(right).await?;
    let mut data = step.data.clone();
    if let Some(data) = &mut data {
        resolve(data, made)?;
    }
    let body = if op.takes_body() { Some(Json::from_serde(data.unwrap_or_default())) } else { None };
    let response = caller.perform_if((of, &verb), body, step.version.as_deref()).await?;
    // what is there then is not told here, but 204 is for what is gone
    let status = match response.status().as_u16() {
        204 if !matches!(verb, Verb::Delete(_)) => 200,
        status => status,
    };
    let header =
        |name| response.headers().get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let version = header(header::ETAG).map(str::to_owned);
    let location = header(header::LOCATION).map(str::to_owned);
    if location.is_some() || version.is_some() || status == 204 {
        let location = location.or_else(|| Some(caller.address_of(&path)));
        return Ok((status, location, version));
    }
    let told = json_of(response).await?;
    let location = told.pointer("/meta/location").and_then(Value::as_str).map(str::to_owned);
    Ok((status, location.or_else(|| Some(caller.address_of(&path))), version))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{order, read, take_together};

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
    fn requests_are_bounded() {
        let many: Vec<_> = (0..1001).map(|_| json!({ "method": "DELETE", "path": "/Users/1" })).collect();
        assert_eq!(read(&json!({ "Operations": many })).err().unwrap().status(), 413);
        for wrong in [json!({}), json!({ "Operations": [{ "method": "GET", "path": "/Users" }] })] {
            assert_eq!(read(&wrong).err().unwrap().status(), 400);
        }
    }
}
