//! The deliveries of an event subscription, and their replay.

use chancery_resource::{Op, Problem};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use crate::{
    pages::item::read,
    shell::{
        components::{Card, Line},
        directory::{self, OperationName, Resource, encoded, operation_name, title_of},
        fields::plain,
        visit::{Visit, not_found, one, redirect_with_notice},
    },
};

/// Maximum number of deliveries on the page.
const MAX_SHOWN: usize = 100;

/// An operation of this resource or of its deliveries: both services have operations of these names.
fn operation(resource: &Resource, name: OperationName) -> Option<&'static Op> {
    let is_of = |op: &&Op| {
        let parents = op.shape.parents.iter().map(|parent| parent.shape);
        parents.chain([op.shape]).any(|shape| std::ptr::eq(shape, resource.shape))
    };
    directory::operations().filter(|op| name.is_of(op)).find(is_of)
}

fn address(visit: &Visit<'_>, resource: &Resource, key: &str) -> String {
    format!("{}/{}/deliveries", visit.address(resource), encoded(key))
}

/// The form of a button that sends again.
fn again(visit: &Visit<'_>, here: &str, name: &str, value: &str, label: &str) -> Value {
    json!({
        "action": here, "label": visit.words.page(label), "fields": [{ "name": name, "value": value }],
    })
}

/// The card with the numbers of deliveries.
pub fn card(visit: &Visit<'_>, resource: &Resource, key: &str, row: &Value) -> Card {
    let here = address(visit, resource, key);
    let number = |wire: &str| row.get(wire).and_then(Value::as_i64).unwrap_or(0);
    let line = |key: &str, count: i64, tone: &'static str| Line {
        tone: if count == 0 { "" } else { tone },
        text: visit.words.page(key).replace("{n}", &count.to_string()),
        ..Line::default()
    };
    let failure = row.get("lastFailure").and_then(Value::as_str).map(|why| Line {
        tone: "off",
        text: visit.words.page("deliveries_last_failure").to_owned(),
        sub: why.to_owned(),
        iso: plain(row.get("lastFailureOn").unwrap_or(&Value::Null)),
        ..Line::default()
    });
    let mut lines = vec![
        line("deliveries_made", number("delivered"), "good"),
        line("deliveries_waiting", number("waiting"), "warn"),
        line("deliveries_dead", number("dead"), "bad"),
    ];
    lines.extend(failure);
    Card {
        title: visit.words.page("deliveries").into(),
        kind: "checks",
        lines,
        more: Some(json!({ "href": here, "label": visit.words.page("show") })),
        ..Card::default()
    }
}

/// Shows the last deliveries.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let op = visit.require(operation(resource, operation_name!("GetEventDeliveries")))?;
    let row = read(visit, resource, key).await?;
    let here = address(visit, resource, key);
    let mut input = Input::of(op, vec![key.to_owned()]);
    let count = MAX_SHOWN.to_string();
    for (name, value) in [("sortBy", "id"), ("sortOrder", "descending"), ("count", count.as_str())] {
        input.query.push((name.to_owned(), value.to_owned()));
    }
    let listed = visit.perform(input).await?.json();
    let may_replay = visit.may(operation(resource, operation_name!("ReplayEventDeliveries"))).is_some();
    let rows = listed.as_array().map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<Line> =
        rows.iter().map(|row| line(visit, row, may_replay.then_some(here.as_str()))).collect();
    let mut state = Card { more: None, ..card(visit, resource, key, &row) };
    if may_replay && row.get("dead").and_then(Value::as_i64) > Some(0) {
        let act = again(visit, &here, "dead", "true", "deliveries_send_dead");
        state.lines.push(Line {
            text: words.page("deliveries_about_dead").into(),
            act: Some(act),
            ..Line::default()
        });
    }
    let about =
        if lines.is_empty() { words.page("nothing_yet") } else { words.page("deliveries_tries_about") };
    let tries = Card {
        title: words.page("deliveries_tries").into(),
        kind: "checks",
        about: about.into(),
        lines,
        ..Card::default()
    };
    let content = json!({
        "back": { "href": format!("{}/{}", visit.address(resource), encoded(key)), "label": title_of(resource, &row) },
        "heading": words.page("deliveries"), "about": words.page("deliveries_about"), "acts": [], "cards": [state, tries],
    });
    visit.page(200, "cards.html", words.page("deliveries"), &content)
}

/// One attempt, or several events that were delivered at once.
fn line(visit: &Visit<'_>, row: &Value, here: Option<&str>) -> Line {
    let words = visit.words;
    let text = |wire: &str| plain(row.get(wire).unwrap_or(&Value::Null));
    let count = row.get("count").and_then(Value::as_i64).unwrap_or(0);
    let several = (count > 1).then(|| words.page("deliveries_several").replace("{n}", &count.to_string()));
    let status = Some(text("reason")).filter(|reason| !reason.is_empty()).or_else(|| Some(text("status")));
    let number = words.page("deliveries_try").replace("{n}", &text("number"));
    let parts: Vec<String> =
        several.into_iter().chain(status).chain([number, format!("{} ms", text("duration"))]).collect();
    let event = text("event");
    // of several events only the last id is known, and the server's own notifications are no events of the feed
    let can_be_sent = count <= 1 && !text("type").starts_with("platform.event.");
    let act =
        here.filter(|_| can_be_sent).map(|here| again(visit, here, "event", &event, "deliveries_send_again"));
    Line {
        tone: if count > 0 { "good" } else { "bad" },
        text: text("type"),
        sub: parts.join(" · "),
        iso: text("triedOn"),
        act,
        ..Line::default()
    }
}

/// Sends an event again, or all that were given up.
pub async fn send_again(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(operation(resource, operation_name!("ReplayEventDeliveries")))?;
    let body = match (one(&visit.form, "event"), one(&visit.form, "dead")) {
        (Some(event), _) => json!({ "ids": [event] }),
        (None, Some(_)) => json!({ "dead": true }),
        (None, None) => return Err(not_found()),
    };
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = Some(body);
    visit.perform(input).await?;
    Ok(redirect_with_notice(&address(visit, resource, key), "sent_again"))
}
