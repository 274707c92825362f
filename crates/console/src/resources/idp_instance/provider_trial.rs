//! Test of an identity provider: checks of its configuration, and the claims it returns. Nobody is signed in.

use chancery_resource::{Op, Problem};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::provider_connect::{is_unfinished, of_row, progress};
use crate::{
    pages::item::read,
    shell::{
        components::{Card, FormPage, Line},
        directory::{Resource, encoded, operation, title_of},
        fields::plain,
        visit::{Visit, one},
    },
};

fn start_operation() -> Option<&'static Op> {
    operation!("StartIdpInstanceTrial")
}

/// The button of an instance's page, if its kind can be tested.
pub fn act(visit: &Visit<'_>, row: &Value, here: &str) -> Option<Value> {
    let is_offered = of_row(row).is_some() && visit.may(start_operation()).is_some();
    is_offered.then(|| {
        let label = visit.words.page("try_it");
        json!({ "label": label, "icon": null, "href": format!("{here}/trial"), "is_main": false, "is_dangerous": false })
    })
}

/// Shows the button that starts the test, or the one that completes it if the URL contains the response of the provider.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    visit.require(start_operation())?;
    let words = visit.words;
    let answered = visit.parameter("state").and(visit.parts.uri.query());
    let (title, about, label, fields) = match answered {
        Some(query) => {
            ("provider_came_back", "provider_came_back_about", "provider_judge", vec![("query", query)])
        }
        None => ("try_it", "provider_try_step", "provider_begin", Vec::new()),
    };
    let card = Card {
        title: words.page(title).into(),
        kind: "lines",
        lines: vec![button(visit, about, label, &fields)],
        ..Card::default()
    };
    page(visit, resource, key, vec![card], false).await
}

/// Starts or completes a test.
pub async fn run(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let is_begun = one(&visit.form, "query").is_none();
    let (op, body) = match one(&visit.form, "query") {
        Some(query) => (operation!("CompleteIdpInstanceTrial"), Some(json!({ "query": query }))),
        None => (start_operation(), None),
    };
    let op = visit.require(op)?;
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = body;
    let report = visit.perform(input).await?.json();
    let mut cards = vec![checklist(visit, resource, key, &report)];
    if is_begun {
        let on = report.get("url").and_then(Value::as_str).map(|url| Line {
            icon: Some("arrow-right"),
            text: words.page("provider_go").into(),
            sub: words.page("provider_go_about").into(),
            href: Some(url.to_owned()),
            ..Line::default()
        });
        let again = || button(visit, "provider_stuck", "provider_begin", &[]);
        cards.insert(
            0,
            Card {
                title: words.page("provider_next").into(),
                kind: "lines",
                lines: vec![on.unwrap_or_else(again)],
                ..Card::default()
            },
        );
    } else {
        cards.push(claims(visit, &report));
        cards.push(Card {
            title: words.page("provider_again").into(),
            kind: "lines",
            lines: vec![button(visit, "provider_try_step", "provider_begin", &[])],
            ..Card::default()
        });
    }
    let has_passed = !is_begun && report.get("passed") == Some(&json!(true));
    page(visit, resource, key, cards, has_passed).await
}

/// A sentence with the button of a form.
fn button(visit: &Visit<'_>, about: &str, label: &str, fields: &[(&str, &str)]) -> Line {
    let fields: Vec<Value> =
        fields.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let act = json!({ "action": visit.path(), "label": visit.words.page(label), "fields": fields });
    Line { text: visit.words.page(about).into(), act: Some(act), ..Line::default() }
}

/// The checks, failed ones first, with links to their remedies.
fn checklist(visit: &Visit<'_>, resource: &'static Resource, key: &str, report: &Value) -> Card {
    let words = visit.words;
    let mut checks: Vec<&Value> =
        report["checks"].as_array().map(|all| all.iter().collect()).unwrap_or_default();
    checks.sort_by_key(|check| check["passed"] == json!(true));
    let wrong = checks.iter().filter(|check| check["passed"] != json!(true)).count();
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let lines = checks.iter().map(|check| {
        let is_right = check["passed"] == json!(true);
        let remedy = check["option"].as_str().filter(|_| !is_right).map(|option| match option {
            "certStores" => format!("{here}/relation/certStores"),
            option => format!("{here}/settings#f-{option}"),
        });
        Line {
            tone: if is_right { "good" } else { "bad" },
            text: words.page(&format!("trial_{}", plain(&check["name"]))).to_owned(),
            sub: words.error_text(&plain(&check["detail"])).into_owned(),
            href: remedy,
            ..Line::default()
        }
    });
    Card {
        title: words.page(if wrong == 0 { "provider_right" } else { "provider_wrong" }).into(),
        kind: "checks",
        tone: if wrong == 0 { "good" } else { "bad" },
        count: Some(format!("{} / {}", checks.len() - wrong, checks.len())),
        lines: lines.collect(),
        ..Card::default()
    }
}

/// The claims that the provider returned.
fn claims(visit: &Visit<'_>, report: &Value) -> Card {
    let words = visit.words;
    let claims = report["claims"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lines = claims.iter().map(|claim| Line {
        text: format!("{} ({})", plain(&claim["type"]), plain(&claim["source"])),
        sub: plain(&claim["value"]),
        ..Line::default()
    });
    Card {
        title: words.page("provider_claims").into(),
        kind: "facts",
        about: if claims.is_empty() { words.page("provider_no_claims").into() } else { String::new() },
        count: Some(claims.len().to_string()),
        lines: lines.collect(),
        ..Card::default()
    }
}

/// The page: while the provider is being connected it is a step of that wizard, and links to the next one once all checks
/// have passed.
async fn page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    mut cards: Vec<Card>,
    has_passed: bool,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let row = read(visit, resource, key).await?;
    let title = title_of(resource, &row);
    let item = format!("{}/{}", visit.address(resource), encoded(key));
    let is_step = is_unfinished(&row) && visit.may(resource.patch).is_some();
    if is_step && has_passed {
        let on = Line {
            icon: Some("arrow-right"),
            text: words.page("connect_serve").into(),
            sub: words.page("connect_serve_next").into(),
            href: Some(format!("{item}/connect?step=serve")),
            ..Line::default()
        };
        let title = words.page("provider_next").into();
        cards.insert(0, Card { title, kind: "lines", lines: vec![on], ..Card::default() });
    }
    let heading = words.page("provider_try");
    let page = FormPage {
        back: json!({ "href": item, "label": title }),
        heading: if is_step { format!("{title}: {}", words.page("connect_trial")) } else { heading.into() },
        sub: words.page("provider_try_about").into(),
        middle: cards,
        after: if is_step { vec![progress(visit, &row, &item, "trial")] } else { Vec::new() },
        ..FormPage::default()
    };
    page.show(visit, 200)
}
