//! What the words of the standard pattern mean, for one resource.

use chancery_record::{FieldError, FieldErrors, Form, Json, Others, Record, Value, pointer, read_draft};
use chancery_store::{self as store, Tx};

use crate::{
    Action, Answer, Call, Problem, ProblemKind, Reply, Scope, Shape,
    answer::{answer_with, read_one, reply},
    batch::{self, Taking},
    change::{self, gone},
    condition::{check_if_match, minimal},
    emit::{Stored, write_no_relations, write_values},
    family::{Written, confine, find_children, keep},
    list,
    load::{key_name, key_of, load, owner_of, select_key},
    relate::{Speaking, relate, relate_body},
    rules::Proposed,
    values::{Refusal, changed_values, new_values},
};

/// Runs an operation, up to [`finish`]. It may be called again with the same call when the transaction is
/// repeated.
///
/// # Errors
/// What the caller is to be told; a store's failure that decides about a repetition.
pub fn run(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    call.out.restart()?;
    call.persons.borrow_mut().clear();
    if call.dry_run {
        tx.only_try();
    }
    if let (true, Scope::Store(store)) = (call.op.changes_store(), &call.scope)
        && store.options.flag("IsDatabaseReadOnlyMode")
    {
        let detail = "The store is in read-only mode. Its option IsDatabaseReadOnlyMode ends that.";
        return Err(Problem::conflict(detail));
    }
    let answer = match call.op.action {
        Action::List => list::list(call, tx),
        Action::Read => read(call, tx),
        Action::Create => create(call, tx),
        Action::Replace => change_one(call, tx, Form::Put, None),
        Action::ReplaceMembers(columns) => change_one(call, tx, Form::Put, Some(columns)),
        Action::Patch => {
            let form = if call.merge_patch { Form::MergePatch } else { Form::Patch };
            change_one(call, tx, form, None)
        }
        Action::Delete => delete(call, tx),
        Action::CreateBatch => batch::write(call, tx, Taking::New, Form::Create),
        Action::ReplaceBatch => batch::write(call, tx, Taking::There, Form::Put),
        Action::DeleteBatch => batch::delete(call, tx),
        Action::Relate(name, how) => relate(call, tx, name, how),
        Action::Custom(custom) => (custom.run)(call, tx),
    };
    if let Some(work) = call.needed.take() {
        return Ok(Answer::after(work));
    }
    answer.map_err(|problem| explain(call.op.shape, problem))
}

/// Sends what an operation has left to be sent, with the word to commit, and explains what refuses it: the last
/// thing that is done in its transaction.
///
/// # Errors
/// What the caller is to be told; a store's failure that decides about a repetition.
pub fn finish(call: &Call, tx: &mut Tx<'_>) -> Result<(), Problem> {
    tx.finish().map_err(|error| explain(call.op.shape, error.into()))
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
    let field = shape.fields.iter().find(|field| field.column == unique.column)?;
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
    let draft =
        read_draft(R::FIELDS, Others::Named(&[]), Form::Create, call.body()?, "").map_err(Problem::wrong)?;
    Ok(R::from_values(draft.to_new(R::FIELDS))?)
}

fn read(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.op.shape;
    let owner = owner_of(call, tx, shape)?;
    let key = key_of(call, shape)?;
    let sql = select_key(call, shape, owner.as_ref(), key);
    read_one(call, tx, shape, owner.as_ref(), &sql)
}

/// Creates a row from the body.
///
/// # Errors
/// What is wrong with the body.
pub fn create(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.op.shape;
    let body = call.body()?;
    let draft = shape.read(Form::Create, body, "").map_err(Problem::wrong)?;
    let owner = owner_of(call, tx, shape)?;
    let brought = draft.given(shape.plan().key).cloned();
    let mut values = new_values(call, shape, owner.as_ref(), &draft, "")?.map_err(Problem::wrong)?;
    if let Some(id @ Value::Id(_)) = brought
        && is_retired(call, tx, shape, &id)?
    {
        let wrong = Problem::wrong_at("/id", USED);
        return Err(Problem { kind: ProblemKind::Conflict, ..wrong });
    }
    check_data(call, tx, shape, None, &mut values)?;
    change::insert(call, tx, shape, owner.as_ref(), &values)?;
    if let Some(born) = shape.born {
        born(call, tx, &values)?;
    }
    let written = Written { base: String::new(), is_new: true, values: &values };
    confine(call, tx, shape, std::iter::once(written))?;
    let created = values.get(shape.plan().key).map(key_name);
    if call.op.reply == Reply::Owner {
        keep(call, tx, shape)?;
        return Ok(Answer { created, ..reply(call, tx, owner.as_ref(), None)? });
    }
    if shape.is_read_back() {
        let key = values.get(shape.plan().key).cloned().unwrap_or(Value::Null);
        let stored = load(call, tx, shape, owner.as_ref(), key)?;
        let said = Speaking { owner: &stored, is_new: true, body: call.body()?, base: String::new() };
        relate_body(call, tx, shape, &[said])?;
        keep(call, tx, shape)?;
        let mut answer = answer_with(call, tx, shape, &stored)?;
        answer.created = created;
        return Ok(answer);
    }
    keep(call, tx, shape)?;
    if call.minimal {
        let stored = Stored { rid: 0, last_entry: 0, values, owner };
        return Ok(Answer { created, ..minimal(call, shape, &stored) });
    }
    write_values((shape, &call.desk.master), &call.scope, &values, &mut call.out.bytes);
    write_no_relations(shape, &mut call.out.bytes);
    Ok(Answer { created, ..Answer::resource(call.op.status) })
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
    let wrong = shape.check_against(call, tx, &mut rows, |_| String::new())?;
    let Some((_, kind, _)) = wrong.first() else { return Ok(()) };
    let kind = *kind;
    let errors: FieldErrors = wrong.into_iter().map(|(.., error)| error).collect();
    Err(Problem { kind, ..Problem::wrong(errors) })
}

fn is_retired(call: &Call, tx: &mut Tx<'_>, shape: &Shape, id: &Value) -> Result<bool, Problem> {
    let parameters = [Value::Int(call.scope.store()), shape.name.into(), id.clone()];
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
    only: Option<&[&str]>,
) -> Result<Answer, Problem> {
    let shape = call.op.shape;
    let body = call.body()?;
    let cut;
    let body = match only {
        Some(columns) => {
            cut = only_members(shape, columns, body);
            &cut
        }
        None => body,
    };
    let mut draft = shape.read(form, body, "").map_err(Problem::wrong)?;
    if let Some(columns) = only {
        draft.keep_only(shape.fields, columns);
    }
    let owner = owner_of(call, tx, shape)?;
    let key = key_of(call, shape)?;
    let was = load(call, tx, shape, owner.as_ref(), key)?;
    check_if_match(call, tx, shape, &was)?;
    let mut values = changed_values(call, shape, &was, &draft, "")?.map_err(Refusal::into_problem)?;
    check_data(call, tx, shape, Some(&was), &mut values)?;
    change::update(call, tx, shape, &was, &values)?;
    let stored = was.with(values);
    let said = Speaking { owner: &stored, is_new: false, body: call.body()?, base: String::new() };
    relate_body(call, tx, shape, &[said])?;
    keep(call, tx, shape)?;
    reply(call, tx, owner.as_ref(), Some(&stored))
}

/// A body without the members that an operation on some members does not write.
fn only_members(shape: &Shape, columns: &[&str], body: &Json) -> Json {
    let Json::Object(members) = body else { return body.clone() };
    let other = |name: &str| {
        shape.fields.iter().any(|field| {
            field.is_named(name) && !field.is_token() && !field.access.key && !columns.contains(&field.column)
        })
    };
    Json::Object(members.iter().filter(|(name, _)| !other(name)).cloned().collect())
}

fn delete(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.op.shape;
    let owner = owner_of(call, tx, shape)?;
    let key = key_of(call, shape)?;
    let was = load(call, tx, shape, owner.as_ref(), key)?;
    check_if_match(call, tx, shape, &was)?;
    if let Some((_, detail)) = find_children(tx, shape, std::slice::from_ref(&was))?.pop() {
        return Err(Problem::conflict(format!("The {} {detail}.", shape.name)));
    }
    change::delete(call, tx, shape, &was)?;
    if !change::hides(call, shape) {
        gone(call, tx, shape, std::slice::from_ref(&was))?;
    }
    keep(call, tx, shape)?;
    reply(call, tx, owner.as_ref(), None)
}
