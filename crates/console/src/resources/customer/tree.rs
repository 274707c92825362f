//! Customers, their subscriptions and their tenants as an expandable tree.

use chancery_management::{subscription::SUBSCRIPTION, tenant::TENANT};
use chancery_resource::{Problem, Shape};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use crate::{
    pages::list::cursor_of,
    shell::{
        call::call,
        directory::{self, Resource, encoded, key_of, title_of},
        fields::plain,
        visit::Visit,
    },
};

/// Page size of customers.
const PAGE_SIZE: &str = "50";
/// Maximum number of children of a level that are read.
const MAX_CHILDREN: usize = 500;
/// Maximum number of parents in one filter.
const AT_ONCE: usize = 50;
/// Maximum number of expanded nodes.
const MAX_OPEN: usize = 50;
/// The parameters that select the list.
const OF_LISTS: [&str; 4] = ["q", "view", "of", "cursor"];

/// Whether the URL requests the tree.
pub fn is_requested(visit: &Visit<'_>) -> bool {
    OF_LISTS.iter().all(|name| visit.parameter(name).is_none())
}

/// The children of the nodes of one level, as far as the user may list them.
struct Level {
    resource: &'static Resource,
    wire: &'static str,
    rows: Vec<Value>,
    is_cut: bool,
}

impl Level {
    /// Reads the children of these parents.
    async fn read(
        visit: &Visit<'_>,
        shape: &Shape,
        wire: &'static str,
        parents: &[String],
    ) -> Result<Option<Self>, Problem> {
        let Some(resource) = directory::of_shape(shape) else { return Ok(None) };
        let Some(op) = visit.may(resource.list) else { return Ok(None) };
        let mut rows = Vec::new();
        for ids in parents.chunks(AT_ONCE) {
            let one = ids.iter().map(|id| format!("{wire} eq {}", json!(id)));
            let mut input = Input::of(op, Vec::new());
            input.query.push(("filter".to_owned(), one.collect::<Vec<_>>().join(" or ")));
            input.query.push(("count".to_owned(), MAX_CHILDREN.to_string()));
            if let Value::Array(children) = visit.perform(input).await?.json() {
                rows.extend(children);
            }
        }
        let is_cut = rows.len() >= MAX_CHILDREN;
        Ok(Some(Self { resource, wire, rows, is_cut }))
    }

    fn of<'a>(&'a self, parent: &'a str) -> impl Iterator<Item = &'a Value> {
        self.rows.iter().filter(move |row| row.get(self.wire).and_then(Value::as_str) == Some(parent))
    }

    /// The number of children of a parent, as text.
    fn counted(&self, visit: &Visit<'_>, parent: &str) -> String {
        let count = self.of(parent).count();
        let more = if self.is_cut { "+" } else { "" };
        let name = self.resource.name;
        let what = if count == 1 { visit.words.resource(name) } else { visit.words.many(name) };
        format!("{count}{more} {what}")
    }
}

/// The keys of the expanded nodes.
fn open<'a>(visit: &'a Visit<'_>) -> Vec<&'a str> {
    let keys = visit.parameter("open").unwrap_or_default().split(',').filter(|key| !key.is_empty());
    keys.take(MAX_OPEN).collect()
}

/// The link that expands or collapses a node.
fn toggle(visit: &Visit<'_>, key: &str, name: &str) -> Value {
    let open = open(visit);
    let is_open = open.contains(&key);
    let others = open.into_iter().filter(|other| *other != key);
    let keys: Vec<&str> = others.chain((!is_open).then_some(key)).collect();
    let after =
        visit.parameter("after").map_or_else(String::new, |after| format!("&after={}", encoded(after)));
    let word = visit.words.page(if is_open { "fold" } else { "unfold" });
    json!({
        "href": format!("{}?open={}{after}#node-{}", visit.path(), keys.join(","), encoded(key)),
        "is_open": is_open, "label": format!("{word}: {name}"),
    })
}

/// A node: a row with its children.
fn node(
    visit: &Visit<'_>,
    resource: &Resource,
    row: &Value,
    below: Option<&Level>,
    nodes: &[Value],
) -> Value {
    let (key, name) = (key_of(resource, row), title_of(resource, row));
    let has_any = below.is_some_and(|level| level.of(&key).next().is_some());
    json!({
        "id": format!("node-{key}"), "label": name, "icon": resource.presentation.icon,
        "href": format!("{}/{}", visit.address(resource), encoded(&key)),
        "is_off": row["isActive"] == json!(false),
        "count": below.map_or_else(String::new, |level| level.counted(visit, &key)),
        "toggle": has_any.then(|| toggle(visit, &key, &name)), "nodes": nodes,
    })
}

/// Shows the tree.
pub async fn show(visit: &Visit<'_>, customers: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let Some(op) = customers.list else { return Err(Problem::not_found("list of this")) };
    let mut input = Input::of(op, Vec::new());
    let query = [("count", PAGE_SIZE), ("sortBy", "name")];
    let after = visit.parameter("after").map(|after| ("cursor", after));
    input
        .query
        .extend(query.into_iter().chain(after).map(|(name, value)| (name.to_owned(), value.to_owned())));
    let call = call(visit, &input);
    let output = visit.perform(input).await?;
    let next = output.header("link").and_then(cursor_of);
    let rows = output.json();
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let nodes = nodes(visit, customers, rows).await?;
    let words = visit.words;
    let address = visit.address(customers);
    let create = visit.may(customers.create).map(|_| {
        json!({ "href": format!("{address}/new"), "label": format!("{} {}", words.page("new"), words.resource(customers.name)) })
    });
    let heading = words.resources(customers.name);
    let content = json!({
        "heading": heading, "about": words.page("customers_about"), "api_call": call, "create": create, "nodes": nodes,
        "placeholder": words.field("name"), "next": next.map(|cursor| format!("{address}?after={}", encoded(&cursor))),
        "views": [
            { "label": words.page("view_tree"), "href": address, "is_current": true },
            { "label": words.page("view_list"), "href": format!("{address}?view=list"), "is_current": false },
        ],
    });
    visit.page(200, "tree.html", &heading, &content)
}

/// The customers with their expanded children.
async fn nodes(
    visit: &Visit<'_>,
    customers: &'static Resource,
    rows: &[Value],
) -> Result<Vec<Value>, Problem> {
    let open = open(visit);
    let keys: Vec<String> = rows.iter().map(|row| key_of(customers, row)).collect();
    let subscriptions = Level::read(visit, &SUBSCRIPTION, "customerId", &keys).await?;
    let shown = subscriptions.iter().flat_map(|level| {
        let is_open = |row: &&Value| open.contains(&plain(&row[level.wire]).as_str());
        level.rows.iter().filter(is_open).map(|row| key_of(level.resource, row)).collect::<Vec<_>>()
    });
    let shown: Vec<String> = shown.collect();
    let tenants = Level::read(visit, &TENANT, "subscriptionId", &shown).await?;
    let below = |level: Option<&Level>, key: &str, make: &dyn Fn(&Resource, &Value) -> Value| -> Vec<Value> {
        let level = level.filter(|_| open.contains(&key));
        level.map_or_else(Vec::new, |level| level.of(key).map(|row| make(level.resource, row)).collect())
    };
    let tenant = |resource: &Resource, row: &Value| node(visit, resource, row, None, &[]);
    let subscription = |resource: &Resource, row: &Value| {
        let nodes = below(tenants.as_ref(), &key_of(resource, row), &tenant);
        node(visit, resource, row, tenants.as_ref(), &nodes)
    };
    let customer = |row: &Value| {
        let nodes = below(subscriptions.as_ref(), &key_of(customers, row), &subscription);
        node(visit, customers, row, subscriptions.as_ref(), &nodes)
    };
    Ok(rows.iter().map(customer).collect())
}
