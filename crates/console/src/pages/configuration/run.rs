//! Applies a plan in one transaction, or validates it in one that is rolled back.

use std::collections::{BTreeMap, BTreeSet};

use chancery_configuration::{Call, Change, ChangeKind, Kind, Plan, adopt, batches, links};
use chancery_management::SERVICE;
use chancery_record::FieldError;
use chancery_resource::{MAX_BATCH, Op, Problem, ProblemKind};
use chancery_store::{Class, Error};
use chancery_web::{Input, OperationTransaction};

use crate::shell::{
    configuration_kinds::{KINDS, list},
    reauthentication,
    visit::Visit,
};

/// Applies all changes of a plan, or none; a dry run applies none.
///
/// # Errors
/// The refused changes, by pointers that start with the index of the document.
pub async fn apply(visit: &Visit<'_>, plan: &Plan, is_dry: bool) -> Result<(), Problem> {
    check_rows(plan)?;
    let calls = KINDS.iter().zip(&plan.changes).flat_map(|(kind, changes)| {
        batches(kind, changes, &BTreeMap::new()).into_iter().chain(links(changes))
    });
    let mut ops = calls.filter_map(|call| operation(call.method, &call.path)).map(|(op, _)| op);
    if !is_dry && ops.any(reauthentication::is_required) {
        visit.fresh()?;
    }
    let plan = plan.clone();
    let acting = move |together: &mut OperationTransaction<'_, '_>| run(together, plan.clone(), is_dry);
    let done = visit.app.perform_in_transaction(&visit.visitor, Class::Heavy, acting, visit.now).await;
    done.map_err(|(_, problem)| visit.words.problem(problem))
}

/// Refuses a plan that writes more rows than one transaction may, including the rows that belong to new ones.
fn check_rows(plan: &Plan) -> Result<(), Problem> {
    let each = |kind: &Kind, change: &Change| {
        if change.kind == ChangeKind::Create { kind.shape.rows_each() } else { 1 }
    };
    let of_kind = |(kind, changes): (&Kind, &Vec<Change>)| {
        changes.iter().map(|change| each(kind, change)).sum::<usize>()
    };
    let rows: usize = KINDS.iter().zip(&plan.changes).map(of_kind).sum();
    if rows <= MAX_BATCH {
        return Ok(());
    }
    let detail = format!(
        "This is up to {rows} rows, with the options of new tenants and instances; here at most {MAX_BATCH} are written at once. \
         Use chancery apply."
    );
    Err(Problem::new(ProblemKind::PayloadTooLarge, detail))
}

fn run(together: &mut OperationTransaction<'_, '_>, mut plan: Plan, is_dry: bool) -> Result<(), Problem> {
    let fault = |why| Problem::from(Error::Internal(why));
    let mut created = BTreeSet::new();
    for (index, kind) in KINDS.iter().enumerate() {
        let can_adopt = plan.can_adopt(index);
        let Some(changes) = plan.changes.get_mut(index) else { continue };
        // rows that the server has created along with rows of this plan are changed instead of created
        if let Some(op) = list(kind).filter(|_| can_adopt) {
            let rows = together.perform(&Input::of(op, Vec::new()))?.json();
            adopt(kind, changes, rows, &created).map_err(fault)?;
        }
        for call in batches(kind, changes, &BTreeMap::new()) {
            send(together, changes, call, is_dry)?;
        }
        let new = changes.iter().filter(|change| change.kind == ChangeKind::Create);
        created.extend(new.map(|change| change.key.clone()));
    }
    for changes in &plan.changes {
        for call in links(changes) {
            send(together, changes, call, is_dry)?;
        }
    }
    Ok(())
}

fn send(
    together: &mut OperationTransaction<'_, '_>,
    changes: &[Change],
    call: Call,
    is_dry: bool,
) -> Result<(), Problem> {
    let Some((op, path)) = operation(call.method, &call.path) else {
        return Err(Error::Internal(format!("there is no {} {}", call.method, call.path)).into());
    };
    let mut input = Input::of(op, path);
    (input.body, input.dry_run, input.is_minimal) = (Some(call.body), is_dry, true);
    together.perform(&input).map(drop).map_err(|problem| of_documents(problem, changes, &call.of))
}

/// The operation of a method and a path, and the path parameters.
fn operation(method: &str, path: &str) -> Option<(&'static Op, Vec<String>)> {
    let parameters = |op: &'static Op| {
        let pairs = || op.path.split('/').zip(path.split('/'));
        let is_like = pairs().all(|(own, segment)| own.starts_with('{') || own == segment)
            && op.path.matches('/').count() == path.matches('/').count();
        let filled = || pairs().filter(|(own, _)| own.starts_with('{'));
        is_like.then(|| filled().map(|(_, segment)| segment.to_owned()).collect())
    };
    let mut of_method = SERVICE.all().filter(|op| op.method.name() == method);
    let exact = SERVICE.all().find(|op| op.method.name() == method && op.path == path);
    exact.map(|op| (op, Vec::new())).or_else(|| of_method.find_map(|op| Some((op, parameters(op)?))))
}

/// Maps a batch problem to documents: `/3/name` becomes `/17/members/name`.
fn of_documents(mut problem: Problem, changes: &[Change], of: &[usize]) -> Problem {
    let document = |at: usize| of.get(at).and_then(|at| changes.get(*at)).and_then(|change| change.document);
    for error in &mut *problem.errors {
        let (first, rest) = error.pointer.trim_start_matches('/').split_once('/').unwrap_or_else(|| {
            let whole = error.pointer.trim_start_matches('/');
            (whole, "")
        });
        let pointer = match first.parse().ok().and_then(document) {
            Some(number) if rest.is_empty() => format!("/{number}"),
            Some(number) => format!("/{number}/members/{rest}"),
            // relation changes are on one row
            None => document(0).map_or_else(String::new, |number| format!("/{number}")),
        };
        error.pointer = pointer;
    }
    if let ([only], true) = (of, problem.errors.is_empty())
        && let Some(number) = changes.get(*only).and_then(|change| change.document)
    {
        let detail = problem.detail.clone();
        problem.errors.note(|| FieldError::new(format!("/{number}"), detail));
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::operation;

    #[test]
    fn calls_resolve_to_operations() {
        let resolved = |method, path| operation(method, path).map(|(op, path)| (op.name, path));
        assert_eq!(resolved("POST", "/Tenant/batch"), Some(("CreateTenantBatch", Vec::new())));
        let (name, path) = resolved("DELETE", "/ClientApp/0192/tenants").unwrap_or_default();
        assert!(name.contains("Tenant") && path == ["0192"], "{name} {path:?}");
        assert_eq!(resolved("POST", "/Nothing/batch"), None);
    }
}
