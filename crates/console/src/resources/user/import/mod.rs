//! People from a file: checked first, cell by cell, then imported at once, or not at all. Nothing of it is kept.

mod cells;
mod columns;
mod csv;
mod plan;
mod run;
mod there;

use std::collections::BTreeSet;

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use self::plan::{MOST_GROUPS, Plan, Planned, Table};
use crate::{
    pages::form::is_of_form,
    shell::{
        directory::Resource,
        visit::{Visit, done, one},
    },
};

pub use self::there::text;

/// The most wrong cells that are told.
const MOST_WRONG: usize = 100;
/// The most people that are named.
const MOST_NAMED: usize = 5;

/// Whether people are imported here.
pub fn is_offered(visit: &Visit<'_>, resource: &Resource) -> bool {
    visit.may(run::creating(resource)).is_some()
}

/// What a check found.
#[derive(Default)]
struct Found {
    plan: Plan,
    /// How many cells are wrong besides those that are known.
    more: usize,
}

/// Shows the form.
///
/// # Errors
/// It is not offered here.
pub fn show(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    visit.need(run::creating(resource))?;
    page(visit, resource, None, None)
}

/// Checks what was typed, and imports it where that was asked for and nothing is wrong.
///
/// # Errors
/// What has no place in the form.
pub async fn run(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    visit.need(run::creating(resource))?;
    let found = match check(visit, resource).await {
        Ok(found) => found,
        Err(problem) if is_of_form(&problem) => return page(visit, resource, None, Some(&problem)),
        Err(problem) => return Err(problem),
    };
    // as it was told, or it is told again
    let is_confirmed = one(&visit.form, "sure") == Some(told(&found.plan).as_str());
    if !is_confirmed || !found.plan.wrong.is_empty() {
        return page(visit, resource, Some(&found), None);
    }
    match run::run(visit, resource, &found.plan).await {
        Ok(()) => Ok(done(&visit.address(resource), "imported")),
        Err(problem) if is_of_form(&problem) => page(visit, resource, Some(&found), Some(&problem)),
        Err(problem) => Err(problem),
    }
}

async fn check(visit: &Visit<'_>, resource: &'static Resource) -> Result<Found, Problem> {
    let text = one(&visit.form, "text").unwrap_or_default();
    let table = Table::read(visit.words, resource, text)?;
    if table.group_names().len() > MOST_GROUPS {
        let bound = visit.words.page("import_groups_bound").replace("{n}", &MOST_GROUPS.to_string());
        return Err(Problem::invalid(bound));
    }
    let there = there::find(visit, resource, &table).await?;
    let mut plan = table.plan(visit, resource, &there);
    let more = run::judge(visit, resource, &mut plan).await?;
    Ok(Found { plan, more })
}

/// The numbers that are confirmed.
fn told(plan: &Plan) -> String {
    let joined: usize = plan.joined.values().map(Vec::len).sum();
    format!("{}/{}/{}/{joined}", plan.new.len(), plan.changed.len(), plan.same)
}

fn page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    found: Option<&Found>,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let address = visit.address(resource);
    let heading = words.page("import_title");
    let known: Vec<String> = columns::fields(resource).map(|field| words.field(field.wire())).collect();
    let errors: Vec<Value> =
        problem.iter().map(|problem| json!({ "text": problem.detail, "href": "#f-text" })).collect();
    let content = json!({
        "back": { "href": address, "label": words.resources(resource.name) }, "heading": heading, "errors": errors,
        "text": one(&visit.form, "text").unwrap_or_default(), "columns": known.join(", "),
        "result": found.map(|found| result(visit, found)), "cancel": { "href": address, "label": words.page("cancel") },
    });
    let status = match found {
        Some(found) if !found.plan.wrong.is_empty() => 400,
        _ => problem.map_or(200, Problem::status),
    };
    visit.page(status, "import.html", heading, &content)
}

/// What was found, as the template takes it.
fn result(visit: &Visit<'_>, found: &Found) -> Value {
    let (words, plan) = (visit.words, &found.plan);
    let wrong_cells = plan.wrong.len() + found.more;
    let lines: BTreeSet<usize> = plan.wrong.iter().map(|wrong| wrong.line).collect();
    let counts = [
        ("import_new", "good", plan.new.len(), names(&plan.new)),
        ("import_changed", "warn", plan.changed.len(), names(&plan.changed)),
        ("import_same", "off", plan.same, String::new()),
        ("import_wrong", "bad", lines.len() + found.more, String::new()),
    ];
    let counts: Vec<Value> = counts
        .into_iter()
        .map(|(key, tone, count, names)| {
            json!({ "label": words.page(key), "tone": if count == 0 { "off" } else { tone }, "count": count, "names": names })
        })
        .collect();
    let wrong: Vec<Value> = plan
        .wrong
        .iter()
        .take(MOST_WRONG)
        .map(|one| json!({ "line": one.line, "column": one.column, "cell": one.cell, "what": one.what }))
        .collect();
    let more = wrong_cells.saturating_sub(wrong.len());
    let joined: usize = plan.joined.values().map(Vec::len).sum();
    let count = plan.new.len() + plan.changed.len();
    let confirm = (wrong_cells == 0 && count > 0)
        .then(|| json!({ "label": format!("{}: {count}", words.page("import")), "value": told(plan) }));
    json!({
        "counts": counts, "wrong": wrong, "more": more, "left_out": plan.left_out.join(", "), "joined": joined,
        "confirm": confirm, "is_nothing": wrong_cells == 0 && count == 0,
    })
}

/// The first of these people, and how many more there are.
fn names(rows: &[Planned]) -> String {
    let names: Vec<&str> = rows.iter().take(MOST_NAMED).map(|row| row.login.as_str()).collect();
    let more = rows.len().saturating_sub(MOST_NAMED);
    if more > 0 { format!("{} (+{more})", names.join(", ")) } else { names.join(", ") }
}
