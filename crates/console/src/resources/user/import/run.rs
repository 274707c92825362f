//! A plan's operations: judged by dry runs, then done in one transaction.

use std::collections::BTreeSet;

use chancery_resource::{Action, Op, Problem, RelationChange};
use chancery_userstore::group::GROUP;
use chancery_web::Input;
use serde_json::{Value, json};

use super::plan::{Plan, Planned, Wrong};
use crate::{
    pages::{batch::places_of, relate},
    shell::{
        directory::{self, Resource},
        fields::plain,
        visit::Visit,
    },
};

/// The operation that makes many.
pub fn creating(resource: &Resource) -> Option<&'static Op> {
    resource.batches.iter().copied().find(|op| matches!(op.action, Action::CreateBatch))
}

fn updating(resource: &Resource) -> Option<&'static Op> {
    resource.batches.iter().copied().find(|op| matches!(op.action, Action::ReplaceBatch))
}

/// Adds what the interface finds wrong with a plan's people; how many more there are than it names.
///
/// # Errors
/// What is not about rows.
pub async fn judge(visit: &Visit<'_>, resource: &Resource, plan: &mut Plan) -> Result<usize, Problem> {
    let mut more = 0;
    for (op, rows) in [(creating(resource), &plan.new), (updating(resource), &plan.changed)] {
        let Some(mut input) = writing(visit, op, rows)? else { continue };
        input.dry_run = true;
        let Err(problem) = visit.perform(input).await else { continue };
        let found = wrong(visit, rows, &problem);
        if found.is_empty() {
            return Err(problem);
        }
        more += problem.errors.more();
        plan.wrong.extend(found);
    }
    plan.wrong.sort_by_key(|wrong| wrong.line);
    let lines: BTreeSet<usize> = plan.wrong.iter().map(|wrong| wrong.line).collect();
    for rows in [&mut plan.new, &mut plan.changed] {
        rows.retain(|row| !lines.contains(&row.line));
    }
    Ok(more)
}

/// Does what a plan says, all of it or nothing.
///
/// # Errors
/// What is refused.
pub async fn run(visit: &Visit<'_>, resource: &Resource, plan: &Plan) -> Result<(), Problem> {
    let mut inputs = Vec::new();
    inputs.extend(writing(visit, creating(resource), &plan.new)?);
    inputs.extend(writing(visit, updating(resource), &plan.changed)?);
    let groups = directory::of_shape(&GROUP);
    for (group, members) in &plan.joined {
        let op = groups.and_then(|groups| relate::operation(groups, "memberUsers", RelationChange::Add));
        let mut input = Input::of(visit.need(op)?, vec![group.clone()]);
        (input.body, input.is_brief) = (Some(json!({ "relatedIds": members })), true);
        inputs.push(input);
    }
    visit.perform_together(inputs).await.map(drop).map_err(|(_, problem)| problem)
}

/// The call that writes these rows, if there are any to be written.
fn writing(visit: &Visit<'_>, op: Option<&'static Op>, rows: &[Planned]) -> Result<Option<Input>, Problem> {
    let bodies: Vec<Value> = rows.iter().filter_map(|row| row.body.clone()).map(Value::Object).collect();
    if bodies.is_empty() {
        return Ok(None);
    }
    let mut input = Input::of(visit.need(op)?, Vec::new());
    (input.body, input.is_brief) = (Some(Value::Array(bodies)), true);
    Ok(Some(input))
}

/// The cells that a problem is about.
fn wrong(visit: &Visit<'_>, rows: &[Planned], problem: &Problem) -> Vec<Wrong> {
    let written: Vec<&Planned> = rows.iter().filter(|row| row.body.is_some()).collect();
    let found = places_of(problem).into_iter().filter_map(|(at, member, what)| {
        let row = written.get(at)?;
        let cell =
            row.body.as_ref().and_then(|body| body.get(&member)).map_or_else(|| row.login.clone(), plain);
        let column = if member.is_empty() { String::new() } else { visit.words.field(&member) };
        Some(Wrong { line: row.line, column, cell, what })
    });
    found.collect()
}
