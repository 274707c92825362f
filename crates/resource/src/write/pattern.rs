//! What the words of the standard pattern mean, for one resource.

use chancery_record::{
    Field, FieldError, FieldErrors, Form, Json, Others, Record, Value, pointer, read_draft,
};
use chancery_store::{self as store, Tx};

use crate::{
    Action, Answer, Call, Context, Problem, ProblemKind, Reply, Scope, Shape,
    declare::rules::Proposed,
    read::answer::{answer_with, read_one, reply},
    read::emit::{Stored, write_no_relations, write_values},
    read::list,
    read::load::{key_name, key_of, load, owner_of, select_key},
    read::precondition::{check_if_match, minimal},
    write::batch::{self, BatchRows},
    write::change::{self, purged},
    write::integrity::{Written, check_postcondition, confine, find_children},
    write::relate::{RelationBody, relate, relate_body},
    write::values::{Refusal, changed_values, new_values},
};

/// Runs an operation. It may be called again with the same call when the transaction is
/// repeated.
///
/// # Errors
/// What the caller is to be told; a store's failure that decides about a repetition.
pub fn run(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    call.answer.restart()?;
    call.context.persons.borrow_mut().clear();
    if call.request.dry_run {
        tx.only_try();
    }
    if let (true, Scope::Store(store)) = (call.request.op.changes_store(), &call.context.scope)
        && store.options.flag("IsDatabaseReadOnlyMode")
    {
        let detail = "The store is in read-only mode. Its option IsDatabaseReadOnlyMode ends that.";
        return Err(Problem::conflict(detail));
    }
    let answer = match call.request.op.action {
        Action::List => list::list(call, tx),
        Action::Read => read(call, tx),
        Action::Create => create(call, tx),
        Action::Replace => change_one(call, tx, Form::Put, None),
        Action::ReplaceMembers(columns) => change_one(call, tx, Form::Put, Some(columns)),
        Action::Patch => {
            let form = if call.request.merge_patch { Form::MergePatch } else { Form::Patch };
            change_one(call, tx, form, None)
        }
        Action::Delete => delete(call, tx),
        Action::CreateBatch => batch::write(call, tx, BatchRows::New, Form::Create),
        Action::ReplaceBatch => batch::write(call, tx, BatchRows::There, Form::Put),
        Action::DeleteBatch => batch::delete(call, tx),
        Action::Relate(name, how) => relate(call, tx, name, how),
        Action::Custom(custom) => (custom.run)(call, tx),
    };
    let answer = answer.and_then(|answer| {
        tx.flush()?;
        Ok(answer)
    });
    if let Some(work) = call.steps.needed.take() {
        return Ok(Answer::after(work));
    }
    answer.map_err(|problem| explain(call.request.op.shape, problem))
}

/// Names the member behind a unique index.
fn explain(shape: &Shape, mut problem: Problem) -> Problem {
    let Some(store::Error::Unique(index)) = &problem.cause else { return problem };
    if let Some(error) = taken(shape, index, "") {
        problem.detail = format!("{} {}", error.pointer, error.detail);
        problem.errors = vec![error].into();
    }
    problem
}

/// What is said of an id that is or was somebody's: whose, and whether it still is, is nobody else's to know.
pub const USED: &str = "is taken, or was once: an id is never used again";

/// The error of the member behind a unique index.
pub fn taken(shape: &Shape, index: &str, base: &str) -> Option<FieldError> {
    let unique = shape.unique.iter().find(|unique| unique.index == index)?;
    let field = shape.own(unique.told)?;
    let mut error = FieldError::new(pointer(base, field.wire()), "is taken");
    if field.access.key {
        error.detail = USED.into();
    }
    Some(error)
}

/// The body as a record of its own.
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

/// Creates a row from the body.
///
/// # Errors
/// What is wrong with the body.
pub fn create(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let body = call.request.body()?;
    let draft = shape.read(Form::Create, body, "").map_err(Problem::wrong)?;
    let owner = owner_of(call, tx, shape)?;
    let brought = draft.given(shape.plan().key).cloned();
    let mut values = new_values(&call.context, shape, owner.as_ref(), &draft, "")?.map_err(Problem::wrong)?;
    if let Some(id @ Value::Id(_)) = brought
        && is_retired(&call.context, tx, shape, &id)?
    {
        let wrong = Problem::wrong_at("/id", USED);
        return Err(Problem { kind: ProblemKind::Conflict, ..wrong });
    }
    check_data(call, tx, shape, None, &mut values)?;
    change::insert(&call.context, tx, shape, owner.as_ref(), &values)?;
    if let Some(after_insert) = shape.after_insert {
        after_insert(&call.context, tx, &values)?;
    }
    let written = Written { base: String::new(), is_new: true, values: &values };
    confine(&call.context, tx, shape, std::iter::once(written))?;
    let created = values.get(shape.plan().key).map(key_name);
    if call.request.op.reply == Reply::Owner {
        check_postcondition(&call.context, tx, shape)?;
        return Ok(Answer { created, ..reply(call, tx, owner.as_ref(), None)? });
    }
    if shape.is_read_back() {
        let key = values.get(shape.plan().key).cloned().unwrap_or(Value::Null);
        let stored = load(&call.context, tx, shape, owner.as_ref(), key)?;
        let said =
            RelationBody { owner: &stored, is_new: true, body: call.request.body()?, base: String::new() };
        relate_body(call, tx, shape, &[said])?;
        check_postcondition(&call.context, tx, shape)?;
        let mut answer = answer_with(call, tx, shape, &stored)?;
        answer.created = created;
        return Ok(answer);
    }
    check_postcondition(&call.context, tx, shape)?;
    if call.request.minimal {
        let stored = Stored { rid: 0, last_entry: 0, values, owner };
        return Ok(Answer { created, ..minimal(call, shape, &stored) });
    }
    write_values((shape, &call.context.app.master), &call.context.scope, &values, &mut call.answer.bytes);
    write_no_relations(shape, &mut call.answer.bytes);
    Ok(Answer { created, ..Answer::resource(call.request.op.status) })
}

/// The rule against the data, on one row.
pub fn check_data(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    was: Option<&Stored>,
    values: &mut Vec<Value>,
) -> Result<(), Problem> {
    let mut rows = [Proposed { was, values }];
    let wrong = shape.find_violations(call, tx, &mut rows, |_| String::new())?;
    let Some((_, kind, _)) = wrong.first() else { return Ok(()) };
    let kind = *kind;
    let errors: FieldErrors = wrong.into_iter().map(|(.., error)| error).collect();
    Err(Problem { kind, ..Problem::wrong(errors) })
}

fn is_retired(context: &Context, tx: &mut Tx<'_>, shape: &Shape, id: &Value) -> Result<bool, Problem> {
    let parameters = [Value::Int(context.scope.store()), shape.name.into(), id.clone()];
    let text = "SELECT 1 FROM retired_id WHERE store = ?1 AND resource = ?2 AND id = ?3";
    Ok(tx.one(text, &parameters, |_| Ok(()))?.is_some())
}

/// Changes the row that the path names by the body, or those members of it that are in these columns.
///
/// # Errors
/// What is wrong with the body; not found.
pub fn change_one(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    only: Option<&[&Field]>,
) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let body = call.request.body()?;
    let cut;
    let body = match only {
        Some(fields) => {
            cut = only_members(shape, fields, body);
            &cut
        }
        None => body,
    };
    let mut draft = shape.read(form, body, "").map_err(Problem::wrong)?;
    if let Some(fields) = only {
        draft.keep_only(shape.fields, fields);
    }
    let owner = owner_of(call, tx, shape)?;
    let key = key_of(call, shape)?;
    let was = load(&call.context, tx, shape, owner.as_ref(), key)?;
    check_if_match(call, tx, shape, &was)?;
    let mut values = changed_values(&call.context, shape, &was, &draft, ("", call.request.merge_patch))?
        .map_err(Refusal::into_problem)?;
    check_data(call, tx, shape, Some(&was), &mut values)?;
    change::update(&call.context, tx, shape, &was, &values)?;
    let stored = was.with(values);
    let said =
        RelationBody { owner: &stored, is_new: false, body: call.request.body()?, base: String::new() };
    relate_body(call, tx, shape, &[said])?;
    check_postcondition(&call.context, tx, shape)?;
    reply(call, tx, owner.as_ref(), Some(&stored))
}

/// A body without the members that an operation on some members does not write.
fn only_members(shape: &Shape, kept: &[&Field], body: &Json) -> Json {
    let Json::Object(members) = body else { return body.clone() };
    let other = |name: &str| {
        shape.fields.iter().any(|field| {
            let is_kept = field.is_token() || field.access.key || kept.iter().any(|kept| kept.is(field));
            field.is_named(name) && !is_kept
        })
    };
    Json::Object(members.iter().filter(|(name, _)| !other(name)).cloned().collect())
}

fn delete(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let owner = owner_of(call, tx, shape)?;
    let key = key_of(call, shape)?;
    let was = load(&call.context, tx, shape, owner.as_ref(), key)?;
    check_if_match(call, tx, shape, &was)?;
    if let Some((_, detail)) = find_children(tx, shape, std::slice::from_ref(&was))?.pop() {
        return Err(Problem::conflict(format!("The {} {detail}.", shape.name)));
    }
    change::delete(&call.context, tx, shape, &was)?;
    if !change::hides(&call.context, shape) {
        purged(&mut call.context, tx, shape, std::slice::from_ref(&was))?;
    }
    check_postcondition(&call.context, tx, shape)?;
    reply(call, tx, owner.as_ref(), None)
}
