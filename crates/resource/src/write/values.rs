//! The values of a row to be written: provided by the body, set by the server, adjusted by the rules.

use chancery_record::{Column, Draft, Field, FieldError, Provided, Value, pointer};

use crate::{Context, OwnerRow, Personal, Problem, Shape, StoredRow, seal::sealed::PersonKey};

/// The values of a new row that no body requests: the record's, with a new id where it has none, and a new
/// token.
///
/// # Errors
/// A violation of the resource's own rules.
pub fn new_row(
    context: &Context,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    values: Vec<Value>,
) -> Result<Vec<Value>, Problem> {
    let draft = Draft(
        values
            .into_iter()
            .map(|value| if value.is_null() { Provided::Nothing } else { Provided::Value(value) })
            .collect(),
    );
    new_values(context, shape, owner, &draft, "")?.map_err(Problem::wrong)
}

/// The values of a new row from a body: ids, token, defaults, rules. The inner error is the body's.
pub fn new_values(
    context: &Context,
    shape: &Shape,
    owner: Option<&OwnerRow>,
    draft: &Draft,
    base: &str,
) -> Result<Result<Vec<Value>, Vec<FieldError>>, Problem> {
    let plan = shape.plan();
    let mut values = draft.to_new(shape.fields);
    let mut wrong = Vec::new();
    for (field, value) in shape.fields.iter().zip(&mut values) {
        let expected = match field.access.column {
            Column::Own | Column::Derived | Column::Unstored => continue,
            Column::Scope => Value::from(context.scope.store_id()),
            Column::Owner => Value::from(owner.map(|owner| owner.id)),
        };
        if !value.is_null() && *value != expected {
            wrong.push(FieldError::new(pointer(base, field.wire()), "is not the one that the path names"));
        }
        *value = expected;
    }
    if !wrong.is_empty() {
        return Ok(Err(wrong));
    }
    if let Some(key @ Value::Null) = values.get_mut(plan.key) {
        *key = Value::Id(context.new_id());
    }
    if let Some(token) = plan.token.and_then(|index| values.get_mut(index)) {
        *token = context.new_token();
    }
    if let (Personal::Is(key), Some(Value::Id(id))) = (shape.personal, values.get(plan.key).cloned()) {
        key.set(&mut values, PersonKey::generate(&context.app.master, id));
    }
    shape.apply_rules(values, None, draft, base, false)
}

/// The reason for refusing a change of a row.
pub enum Refusal {
    /// The body breaks rules.
    Wrong(Vec<FieldError>),
    /// The token is stale; this is the current one.
    Stale(String),
}

/// Whether the value provided for a create-only member differs from the stored one. Where it is stored in
/// another form, such as a digest, the resource compares it itself.
fn differs(field: &Field, provided: &Provided, was: &Value) -> bool {
    match provided {
        Provided::Nothing => false,
        _ if field.access.column == Column::Unstored => false,
        Provided::Empty => !was.is_null(),
        Provided::Value(value) | Provided::Unfit(value, _) => value != was,
    }
}

/// The values of a row after a change: checked against its key and token, with a new token and
/// the rules applied.
pub fn changed_values(
    context: &Context,
    shape: &Shape,
    was: &StoredRow,
    draft: &Draft,
    base: &str,
    merges: bool,
) -> Result<Result<Vec<Value>, Refusal>, Problem> {
    let plan = shape.plan();
    if let (Some(provided), Some(key)) = (draft.provided(plan.key), shape.key())
        && provided != was.value(plan.key)
    {
        let error = FieldError::new(pointer(base, key.wire()), "is not the one that the path names");
        return Ok(Err(Refusal::Wrong(vec![error])));
    }
    let unfit: Vec<FieldError> = draft
        .unfit(&was.values)
        .filter_map(|(index, detail)| Some((shape.fields.get(index)?, detail)))
        .map(|(field, detail)| FieldError::new(pointer(base, field.wire()), detail))
        .collect();
    if !unfit.is_empty() {
        return Ok(Err(Refusal::Wrong(unfit)));
    }
    let mut values = draft.apply(&was.values);
    if let Some(index) = plan.token {
        if shape.base.is_none() && draft.provided(index) != Some(was.value(index)) {
            let current = match was.value(index) {
                Value::Text(current) => current.clone(),
                _ => String::new(),
            };
            return Ok(Err(Refusal::Stale(current)));
        }
        if let Some(token) = values.get_mut(index) {
            *token = context.new_token();
        }
    }
    let others = shape.fields.iter().zip(&draft.0).zip(&was.values);
    let others =
        others.filter(|((field, provided), was)| field.is_create_only() && differs(field, provided, was));
    let wrong: Vec<FieldError> = others
        .map(|((field, _), _)| {
            let detail = "is set at creation alone: it cannot become another";
            FieldError::new(pointer(base, field.wire()), detail)
        })
        .collect();
    if !wrong.is_empty() {
        return Ok(Err(Refusal::Wrong(wrong)));
    }
    let ruled = shape.apply_rules(values, Some(&was.values), draft, base, merges)?;
    Ok(ruled.map_err(Refusal::Wrong))
}
