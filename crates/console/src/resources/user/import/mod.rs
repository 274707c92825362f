//! Import of users from a file: validated cell by cell, then imported in one transaction. The file is not stored.

mod cells;
mod columns;
mod csv;
mod existing;
mod plan;
mod run;

use std::collections::BTreeSet;

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use self::plan::{MAX_GROUPS, Plan, Planned, Table};
use crate::{
    pages::form::is_of_form,
    shell::{
        directory::Resource,
        visit::{Visit, one, redirect_with_notice},
    },
};

pub use self::existing::text;

/// Maximum number of listed errors.
const MAX_WRONG: usize = 100;
/// Maximum number of named users.
const MAX_NAMED: usize = 5;

/// Whether the user may import users.
pub fn is_offered(visit: &Visit<'_>, resource: &Resource) -> bool {
    visit.may(run::creating(resource)).is_some()
}

/// The result of a validation.
#[derive(Default)]
struct Checked {
    plan: Plan,
    /// The number of errors that are not listed.
    more: usize,
}

/// Shows the form.
///
/// # Errors
/// The user may not import users.
pub fn show(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    visit.require(run::creating(resource))?;
    page(visit, resource, None, None)
}

/// Validates the file, and imports it once it is confirmed and valid.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    visit.require(run::creating(resource))?;
    let checked = match check(visit, resource).await {
        Ok(checked) => checked,
        Err(problem) if is_of_form(&problem) => return page(visit, resource, None, Some(&problem)),
        Err(problem) => return Err(problem),
    };
    // if the numbers have changed since they were confirmed, they are shown again
    let is_confirmed = one(&visit.form, "sure") == Some(confirmation(&checked.plan).as_str());
    if !is_confirmed || !checked.plan.wrong.is_empty() {
        return page(visit, resource, Some(&checked), None);
    }
    match run::run(visit, resource, &checked.plan).await {
        Ok(()) => Ok(redirect_with_notice(&visit.address(resource), "imported")),
        Err(problem) if is_of_form(&problem) => page(visit, resource, Some(&checked), Some(&problem)),
        Err(problem) => Err(problem),
    }
}

async fn check(visit: &Visit<'_>, resource: &'static Resource) -> Result<Checked, Problem> {
    let text = one(&visit.form, "text").unwrap_or_default();
    let table = Table::read(visit.words, resource, text)?;
    if table.group_names().len() > MAX_GROUPS {
        let bound = visit.words.page("import_groups_bound").replace("{n}", &MAX_GROUPS.to_string());
        return Err(Problem::invalid(bound));
    }
    let existing = existing::find(visit, resource, &table).await?;
    let mut plan = table.plan(visit, resource, &existing);
    let more = run::validate(visit, resource, &mut plan).await?;
    Ok(Checked { plan, more })
}

/// The numbers that the user confirms.
fn confirmation(plan: &Plan) -> String {
    let joined: usize = plan.joined.values().map(Vec::len).sum();
    format!("{}/{}/{}/{joined}", plan.new.len(), plan.changed.len(), plan.same)
}

fn page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    checked: Option<&Checked>,
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
        "result": checked.map(|checked| result(visit, checked)), "cancel": { "href": address, "label": words.page("cancel") },
    });
    let status = match checked {
        Some(checked) if !checked.plan.wrong.is_empty() => 400,
        _ => problem.map_or(200, Problem::status),
    };
    visit.page(status, "import.html", heading, &content)
}

/// The template context of the result.
fn result(visit: &Visit<'_>, checked: &Checked) -> Value {
    let (words, plan) = (visit.words, &checked.plan);
    let wrong_cells = plan.wrong.len() + checked.more;
    let lines: BTreeSet<usize> = plan.wrong.iter().map(|wrong| wrong.line).collect();
    let counts = [
        ("import_new", "good", plan.new.len(), names(&plan.new)),
        ("import_changed", "warn", plan.changed.len(), names(&plan.changed)),
        ("import_same", "off", plan.same, String::new()),
        ("import_wrong", "bad", lines.len() + checked.more, String::new()),
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
        .take(MAX_WRONG)
        .map(|one| json!({ "line": one.line, "column": one.column, "cell": one.cell, "what": one.what }))
        .collect();
    let more = wrong_cells.saturating_sub(wrong.len());
    let joined: usize = plan.joined.values().map(Vec::len).sum();
    let count = plan.new.len() + plan.changed.len();
    let confirm = (wrong_cells == 0 && count > 0).then(
        || json!({ "label": format!("{}: {count}", words.page("import")), "value": confirmation(plan) }),
    );
    json!({
        "counts": counts, "wrong": wrong, "more": more, "left_out": plan.left_out.join(", "), "joined": joined,
        "confirm": confirm, "is_nothing": wrong_cells == 0 && count == 0,
    })
}

/// The first of these users, and the number of the others.
fn names(rows: &[Planned]) -> String {
    let names: Vec<&str> = rows.iter().take(MAX_NAMED).map(|row| row.login.as_str()).collect();
    let more = rows.len().saturating_sub(MAX_NAMED);
    if more > 0 { format!("{} (+{more})", names.join(", ")) } else { names.join(", ") }
}
