//! Preview of the tokens and claims that a client app would receive for a person, with their sources. Nothing is issued.

use std::collections::BTreeSet;

use chancery_management::claim_rule::CLAIM_RULE;
use chancery_oauth::{SignInFacts, maximum_scope};
use chancery_record::Field;
use chancery_resource::{Op, Problem, ProblemKind};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use crate::{
    pages::{
        form::{at, error_at, errors, is_of_form, status_of},
        item::read,
        reference,
    },
    shell::{
        components::{Card, Line},
        directory::{self, Resource, encoded, operation, title_of},
        fields::{Cell, FormField, Tag, filled, plain, with},
        presentation::Names,
        visit::Visit,
        words::raised,
    },
};

/// The documents of a preview, each with the key of its title.
const DOCUMENTS: [(&str, &str); 3] = [
    ("idToken", "preview_id_token"),
    ("accessToken", "preview_access_token"),
    ("userInfo", "preview_userinfo"),
];
/// The fields that are shown first; the others are rarely needed.
const FIRST: [&str; 3] = ["platformUserId", "scope", "resources"];

fn operation() -> Option<&'static Op> {
    operation!("PreviewTokens")
}

/// The button of a client app's page, if the user may preview tokens.
pub fn act(visit: &Visit<'_>, here: &str) -> Option<Value> {
    let is_offered = visit.may(operation()).is_some();
    is_offered.then(|| {
        let label = visit.words.page("preview_tokens");
        json!({ "label": label, "icon": null, "href": format!("{here}/tokens"), "is_main": false, "is_dangerous": false })
    })
}

/// Shows the form, with the largest scope that the client app may request.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    visit.require(operation())?;
    let app = read(visit, resource, key).await?;
    let values = json!({ "scope": scope_of(&app), "platformUserId": visit.parameter("platformUserId") });
    page(visit, resource, key, &app, &values, Preview::default(), None).await
}

/// Previews the tokens.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(operation())?;
    let app = read(visit, resource, key).await?;
    let body = Value::Object(filled(directory::body_fields(op).into_iter(), &visit.form));
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = Some(body.clone());
    match visit.perform(input).await {
        Ok(output) => {
            let report = output.json();
            let names = rules_of(visit, &report).await?;
            let outcomes =
                DOCUMENTS.iter().map(|(document, title)| outcome(visit, &report, document, title, &names));
            let outcomes = if at(&report, "refusal").is_null() { outcomes.collect() } else { Vec::new() };
            let sidebar =
                DOCUMENTS.iter().filter_map(|(document, title)| withheld(visit, &report, document, title));
            let preview =
                Preview { cards: refusal_card(visit, &report), outcomes, sidebar: sidebar.collect() };
            page(visit, resource, key, &app, &body, preview, None).await
        }
        Err(problem) if is_of_form(&problem) || problem.kind == ProblemKind::Forbidden => {
            page(visit, resource, key, &app, &body, Preview::default(), Some(&problem)).await
        }
        Err(problem) => Err(problem),
    }
}

/// The largest scope that a client app may request.
fn scope_of(app: &Value) -> String {
    let own = app["clientAppScopes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let scopes: Vec<&str> = own.iter().filter_map(|scope| scope["key"].as_str()).collect();
    let is = |member: &str| app[member] == json!(true);
    let facts = SignInFacts {
        scope_filter_enabled: is("scopeFilterEnabled"),
        has_groups: is("includeGroupsClaims"),
        scopes: &scopes,
        ..SignInFacts::default()
    };
    maximum_scope(&facts).to_string()
}

/// The names of the rules that produced claims, as far as the user may read them.
async fn rules_of(visit: &Visit<'_>, report: &Value) -> Result<Names, Problem> {
    let mut names = Names::new();
    let Some(rules) = directory::of_shape(&CLAIM_RULE) else { return Ok(names) };
    let claims =
        DOCUMENTS.iter().filter_map(|(document, _)| at(at(report, document), "claims").as_array()).flatten();
    let ids = claims.filter_map(|claim| claim["rules"].as_array()).flatten();
    let ids: BTreeSet<String> = ids.filter_map(Value::as_str).map(str::to_owned).collect();
    reference::find(visit, rules, &ids, &mut names).await?;
    Ok(names)
}

/// Why no tokens would be issued.
fn refusal_card(visit: &Visit<'_>, report: &Value) -> Vec<Card> {
    let Some(detail) = at(at(report, "refusal"), "detail").as_str() else { return Vec::new() };
    let line = Line {
        tone: "bad",
        text: visit.words.error_text(detail).into_owned(),
        sub: plain(at(at(report, "refusal"), "error")),
        ..Line::default()
    };
    let title = visit.words.page("preview_none").into();
    vec![Card { title, kind: "checks", tone: "bad", lines: vec![line], ..Card::default() }]
}

/// The claims of a document, as a table.
fn outcome(visit: &Visit<'_>, report: &Value, document: &str, title: &str, names: &Names) -> Value {
    let words = visit.words;
    let report = at(report, document);
    let claims = report["claims"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows = claims.iter().map(|claim| row(visit, claim, names));
    let columns = ["col_claim", "preview_value", "preview_from"];
    let columns: Vec<Value> =
        columns.iter().map(|key| json!({ "label": words.page(key), "sort": null })).collect();
    let about = at(at(report, "refusal"), "detail")
        .as_str()
        .map(|detail| words.error_text(detail))
        .unwrap_or_default();
    json!({
        "title": words.page(title), "is_titled": true, "about": about, "columns": columns,
        "rows": rows.collect::<Vec<Value>>(),
    })
}

fn row(visit: &Visit<'_>, claim: &Value, names: &Names) -> Value {
    let words = visit.words;
    let from = plain(&claim["from"]);
    let value = if from == "SignIn" {
        Cell::of("text", words.page("preview_later"))
    } else {
        Cell::of("code", plain(&claim["value"]))
    };
    let ground = match from.as_str() {
        "Scope" => Some(format!("{} {}", words.page("preview_scope"), plain(&claim["scope"]))),
        "IncludeGroupsClaims" => Some(words.field("includeGroupsClaims")),
        "ClaimRule" => None,
        other => Some(words.page(&format!("preview_{other}")).to_owned()),
    };
    let rules = claim["rules"].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(|rule| {
        let (name, href) = match names.get(&plain(rule)) {
            Some((name, href)) => (name.as_str(), href.clone()),
            None => (words.page("rule_of_others"), None),
        };
        Tag { text: format!("{}: {name}", raised(&words.resource(CLAIM_RULE.name))), href }
    });
    let ground = ground.into_iter().map(|text| Tag { text, href: None });
    let from = Cell { items: ground.chain(rules).collect(), ..Cell::of("tags", "") };
    let cells = [Cell::of("title", plain(&claim["name"])), value, from];
    json!({ "id": "", "href": null, "avatar": null, "cells": cells })
}

/// The claims that a document omits, with one line for each reason.
fn withheld(visit: &Visit<'_>, report: &Value, document: &str, title: &str) -> Option<Card> {
    let words = visit.words;
    let all = at(at(report, document), "withheld").as_array().filter(|all| !all.is_empty())?;
    let mut lines: Vec<Line> = Vec::new();
    for one in all {
        let (name, why) = (plain(&one["name"]), words.error_text(one["detail"].as_str()?));
        match lines.iter_mut().find(|line| line.sub == why) {
            Some(line) => line.text = format!("{}, {name}", line.text),
            None => lines.push(Line { text: name, sub: why.into_owned(), ..Line::default() }),
        }
    }
    let title = format!("{}: {}", words.page("preview_withheld"), words.page(title));
    Some(Card { title, kind: "lines", count: Some(all.len().to_string()), lines, ..Card::default() })
}

/// What the page shows of a preview: nothing before one.
#[derive(Default)]
struct Preview {
    /// Why no tokens would be issued.
    cards: Vec<Card>,
    /// The claims of each document.
    outcomes: Vec<Value>,
    /// The claims that each document omits.
    sidebar: Vec<Card>,
}

async fn page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    app: &Value,
    values: &Value,
    preview: Preview,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let op = visit.require(operation())?;
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for field in directory::body_fields(op) {
        let rendered = preview_field(visit, field, values, problem).await?;
        if FIRST.contains(&field.wire()) { first.push(rendered) } else { others.push(rendered) }
    }
    let is_open = others.iter().any(|field| field["value"] != json!("") || field["error"] != json!(""));
    let sections = [
        json!({ "title": words.page("preview_whom"), "about": "", "fields": first, "is_readonly": false }),
        json!({ "title": words.page("preview_more"), "about": "", "fields": others, "is_readonly": false,
            "fold": if is_open { "open" } else { "closed" } }),
    ];
    let title = title_of(resource, app);
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let heading = words.page("preview_tokens");
    let content = json!({
        "back": { "href": here, "label": title }, "heading": heading, "about": words.page("preview_about"),
        "errors": errors(visit, problem), "cards": preview.cards, "outcomes": preview.outcomes, "sidebar": preview.sidebar,
        "sections": sections,
        "action": format!("{here}/tokens"), "hidden": [], "submit": words.page("preview_show"), "save": null,
    });
    visit.page(status_of(problem), "trial.html", heading, &content)
}

/// A control of the form: references are looked up by name.
async fn preview_field(
    visit: &Visit<'_>,
    field: &'static Field,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Value, Problem> {
    let wire = field.wire();
    let other = match wire {
        "platformUserId" | "tenantId" | "idpInstanceId" => directory::referenced(wire),
        _ => None,
    };
    let error = error_at(problem, wire);
    let rendered = FormField {
        field,
        row: values,
        is_fixed: false,
        is_required: wire == "platformUserId",
        error: &error,
        href: None,
        search: other.map(|other| format!("/console/find?in={}", other.name)),
    }
    .render(visit.words);
    let rendered = if wire == "scope" { with(rendered, json!({ "control": "text" })) } else { rendered };
    let (Some(other), Some(id)) = (other, values[wire].as_str()) else { return Ok(rendered) };
    let mut names = Names::new();
    if chancery_record::parse_id(id).is_some() {
        reference::find(visit, other, &BTreeSet::from([id.to_owned()]), &mut names).await?;
    }
    let shown = names.get(id).map_or(id, |(name, _)| name.as_str());
    Ok(with(rendered, json!({ "shown": shown })))
}
