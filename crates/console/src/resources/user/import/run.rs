//! Runs the operations of a plan: validated by dry runs, then run in one transaction.

use std::collections::BTreeSet;

use chancery_resource::{Action, Op, Problem, RelationChange};
use chancery_userstore::group::GROUP;
use chancery_web::Input;
use serde_json::{Value, json};

use super::plan::{CellError, Plan, Planned};
use crate::{
    pages::{batch::error_locations, relate},
    shell::{
        directory::{self, Resource},
        fields::plain,
        visit::Visit,
    },
};

/// The batch operation that creates users.
pub fn creating(resource: &Resource) -> Option<&'static Op> {
    resource.batches.iter().copied().find(|op| matches!(op.action, Action::CreateBatch))
}

fn updating(resource: &Resource) -> Option<&'static Op> {
    resource.batches.iter().copied().find(|op| matches!(op.action, Action::ReplaceBatch))
}

/// Adds the validation errors of the API to a plan; returns the number of errors that the API does not list.
///
/// # Errors
/// A problem that is not about rows.
pub async fn validate(visit: &Visit<'_>, resource: &Resource, plan: &mut Plan) -> Result<usize, Problem> {
    let mut more = 0;
    for (op, rows) in [(creating(resource), &plan.new), (updating(resource), &plan.changed)] {
        let Some(mut input) = writing(visit, op, rows)? else { continue };
        input.dry_run = true;
        let Err(problem) = visit.perform(input).await else { continue };
        let errors = wrong(visit, rows, &problem);
        if errors.is_empty() {
            return Err(problem);
        }
        more += problem.errors.more();
        plan.wrong.extend(errors);
    }
    plan.wrong.sort_by_key(|wrong| wrong.line);
    let lines: BTreeSet<usize> = plan.wrong.iter().map(|wrong| wrong.line).collect();
    for rows in [&mut plan.new, &mut plan.changed] {
        rows.retain(|row| !lines.contains(&row.line));
    }
    Ok(more)
}

/// Applies all changes of a plan, or none.
///
/// # Errors
/// A change is refused.
pub async fn run(visit: &Visit<'_>, resource: &Resource, plan: &Plan) -> Result<(), Problem> {
    let mut inputs = Vec::new();
    inputs.extend(writing(visit, creating(resource), &plan.new)?);
    inputs.extend(writing(visit, updating(resource), &plan.changed)?);
    let groups = directory::of_shape(&GROUP);
    for (group, members) in &plan.joined {
        let op = groups.and_then(|groups| relate::operation(groups, "memberUsers", RelationChange::Add));
        let mut input = Input::of(visit.require(op)?, vec![group.clone()]);
        (input.body, input.is_minimal) = (Some(json!({ "relatedIds": members })), true);
        inputs.push(input);
    }
    visit.perform_all(inputs).await.map(drop).map_err(|(_, problem)| problem)
}

/// The batch input for these rows, if there are any to write.
fn writing(visit: &Visit<'_>, op: Option<&'static Op>, rows: &[Planned]) -> Result<Option<Input>, Problem> {
    let bodies: Vec<Value> = rows.iter().filter_map(|row| row.body.clone()).map(Value::Object).collect();
    if bodies.is_empty() {
        return Ok(None);
    }
    let mut input = Input::of(visit.require(op)?, Vec::new());
    (input.body, input.is_minimal) = (Some(Value::Array(bodies)), true);
    Ok(Some(input))
}

/// The cells that a problem is about.
fn wrong(visit: &Visit<'_>, rows: &[Planned], problem: &Problem) -> Vec<CellError> {
    let written: Vec<&Planned> = rows.iter().filter(|row| row.body.is_some()).collect();
    let errors = error_locations(problem).into_iter().filter_map(|(at, member, what)| {
        let row = written.get(at)?;
        let cell =
            row.body.as_ref().and_then(|body| body.get(&member)).map_or_else(|| row.login.clone(), plain);
        let column = if member.is_empty() { String::new() } else { visit.words.field(&member) };
        Some(CellError { line: row.line, column, cell, what })
    });
    errors.collect()
}
