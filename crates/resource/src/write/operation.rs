//! Operations of the standard pattern, run for one resource.

use crate::settings::UserStoreOption;
use chancery_record::{Form, Json, Others, Record, parse_id, read_draft};
use chancery_store::{self as store, Tx};
use uuid::Uuid;

use crate::{
    Action, Answer, Call, MAX_BATCH, Problem, Scope,
    read::{
        answer::read_one,
        list,
        load::{key_of, owner_of, select_key},
        unchanged::check_unchanged,
    },
    write::{
        delete_rows::delete_rows,
        failures::unique_violation,
        integrity::check_postconditions,
        pipeline::{Rows, Writing, write_rows},
        protect::{Target, check},
        relate::relate,
    },
};

/// Runs an operation, up to [`finish`]. It is called again with the same call when the transaction is repeated.
///
/// # Errors
/// The problem to answer; a store's error, which decides whether the transaction is repeated.
pub fn run(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    call.answer.restart()?;
    call.context.begin();
    if call.request.dry_run {
        tx.set_dry_run();
    }
    if let (true, Scope::Store(store)) = (call.request.op.changes_store(), &call.context.scope)
        && store.options.get(UserStoreOption::IS_DATABASE_READ_ONLY_MODE)
    {
        let detail = "The store is in read-only mode. Its option IsDatabaseReadOnlyMode ends that.";
        return Err(Problem::conflict(detail));
    }
    check_unchanged(call, tx)?;
    check_custom(call, tx)?;
    let answer = match call.request.op.action {
        Action::List => list::list(call, tx),
        Action::Read => read(call, tx),
        Action::Create => write_rows(call, tx, Writing::one(Rows::New, Form::Create)),
        Action::Replace => write_rows(call, tx, Writing::one(Rows::Existing, Form::Put)),
        Action::ReplaceMembers(fields) => write_rows(call, tx, Writing::fields(fields)),
        Action::Patch => {
            let form = if call.request.merge_patch { Form::MergePatch } else { Form::Patch };
            write_rows(call, tx, Writing::one(Rows::Existing, form))
        }
        Action::Delete => delete_rows(call, tx, false),
        Action::CreateBatch => write_rows(call, tx, Writing::many(Rows::New, Form::Create)),
        Action::ReplaceBatch => write_rows(call, tx, Writing::many(Rows::Existing, Form::Put)),
        Action::DeleteBatch => delete_rows(call, tx, true),
        Action::Relate(relation, how) => relate(call, tx, relation, how),
        Action::Custom(custom) => (custom.run)(call, tx),
    };
    let answer = answer.and_then(|answer| check_postconditions(&call.context, tx).map(|()| answer));
    if let Some(work) = call.steps.needed.take() {
        return Ok(Answer { work: Some(work), ..Answer::new(0) });
    }
    answer.map_err(|problem| explain(call, tx, problem))
}

/// Refuses a custom operation that changes rows which carry a counting role, whatever it writes: the row of the
/// path, or those whose ids the elements of the body are or contain.
fn check_custom(call: &Call, tx: &mut Tx<'_>) -> Result<(), Problem> {
    let op = call.request.op;
    let (true, Action::Custom(custom), Some(protection)) = (op.writes(), op.action, op.shape.protection())
    else {
        return Ok(());
    };
    if custom.is_by_rows {
        return Ok(());
    }
    let targets = match (parse_id(call.request.parameter(0)), call.request.body()) {
        (Some(id), _) => vec![Target { base: String::new(), id }],
        (None, Ok(Json::Array(elements))) => {
            // a larger batch is refused
            let batch = elements.iter().take(MAX_BATCH).enumerate();
            batch
                .filter_map(|(at, element)| Some(Target { base: format!("/{at}"), id: id_in(element)? }))
                .collect()
        }
        _ => return Ok(()),
    };
    check(&call.context, tx, protection, targets)
}

/// The id that an element of a body is, or contains.
fn id_in(element: &Json) -> Option<Uuid> {
    match element {
        Json::Text(text) => parse_id(text),
        _ => element.get("id").and_then(id_in),
    }
}

/// Sends the queued statements of an operation, together with the commit, and explains a refusal by the
/// database: the last step in the operation's transaction.
///
/// # Errors
/// The problem to answer; a store's error, which decides whether the transaction is repeated.
pub fn finish(call: &mut Call, tx: &mut Tx<'_>) -> Result<(), Problem> {
    tx.finish().map_err(|error| explain(call, tx, error.into()))
}

/// Sends the queued statements of an operation, where others follow in its transaction, and explains a refusal
/// by the database.
///
/// # Errors
/// As [`finish`].
pub fn flush(call: &mut Call, tx: &mut Tx<'_>) -> Result<(), Problem> {
    tx.flush().map_err(|error| explain(call, tx, error.into()))
}

/// Finds the member of a violated unique index. The operation runs once more where only a check before the
/// write shows it, as for the elements of a batch, and where the body cannot be the reason: then another
/// operation came first, and its rows are visible now. A custom operation may have another way then.
pub fn explain(call: &mut Call, tx: &mut Tx<'_>, mut problem: Problem) -> Problem {
    let Some(store::Error::Unique(index)) = &problem.cause else { return problem };
    let violation = unique_violation(call.request.op.shape, index, "");
    let op = call.request.op;
    let retries = op.is_batch() || matches!(op.action, Action::Custom(_)) || violation.is_none();
    if !call.steps.diagnose && retries {
        call.steps.diagnose = true;
        return tx.run_again().into();
    }
    if let Some(error) = violation {
        problem.detail = format!("{} {}", error.pointer, error.detail);
        problem.errors = vec![error].into();
    }
    problem
}

/// Reads the body as a record of the custom operation.
///
/// # Errors
/// Every member that is unknown, missing, of the wrong type or out of bounds.
pub fn read_form<R: Record>(call: &Call) -> Result<R, Problem> {
    let draft = read_draft(R::FIELDS, Others::Named(&[]), Form::Create, call.request.body()?, "")
        .map_err(Problem::wrong)?;
    Ok(R::from_values(draft.to_new(R::FIELDS))?)
}

fn read(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let owner = owner_of(call, tx, shape)?;
    let key = key_of(call, shape)?;
    let sql = select_key(&call.context, shape, owner.as_ref(), key);
    read_one(call, tx, shape, owner.as_ref(), &sql)
}
