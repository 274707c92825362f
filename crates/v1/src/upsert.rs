//! createorupdate: what is there by the key in the body is replaced, what is not is created.

use chancery_record::{Form, Json};
use chancery_resource::{
    Answer, BatchRows, Call, Problem, change_one, create, load_keys, owner_of, write_batch,
};
use chancery_store::Tx;

/// Creates or replaces one.
///
/// # Errors
/// What is wrong with the body.
pub fn upsert(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let name = shape.fields.iter().find(|field| field.access.key).map_or("id", |field| field.wire());
    let Some(Json::Text(text)) = call.request.body()?.get(name) else { return create(call, tx) };
    let text = text.clone();
    let key = shape
        .read_key(&text)
        .map_err(|_| Problem::wrong_at(format!("/{name}"), "is no key of this resource"))?;
    let owner = owner_of(call, tx, shape)?;
    if load_keys(&call.context, tx, shape, owner.as_ref(), &[key])?.is_empty() {
        return create(call, tx);
    }
    call.request.path.push(text);
    let answer = change_one(call, tx, Form::Put, None);
    call.request.path.pop();
    answer
}

/// Creates or replaces many, all or none.
///
/// # Errors
/// What is wrong with the elements.
pub fn upsert_many(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    write_batch(call, tx, BatchRows::Either, Form::Put)
}
