//! A look at a large body before there is a transaction, so that nobody's write waits for what is only
//! refused.

use chancery_record::{FieldErrors, Form, Json};

use crate::{Action, Op, Problem};

/// Refuses a body that is wrong in more places than are told. What is wrong in fewer is found by the
/// operation itself, together with what the data say.
///
/// # Errors
/// The first of what is wrong.
pub fn check_body(op: &Op, body: &Json, merges: bool) -> Result<(), Problem> {
    let form = match op.action {
        Action::Create | Action::CreateBatch => Form::Create,
        Action::Replace | Action::ReplaceBatch | Action::ReplaceMembers(_) => Form::Put,
        Action::Patch if merges => Form::MergePatch,
        Action::Patch => Form::Patch,
        _ => return Ok(()),
    };
    let mut errors = FieldErrors::default();
    let mut read = |body: &Json, base: &str| {
        if let Err(wrong) = op.shape.read(form, body, base) {
            errors.absorb(wrong);
        }
    };
    match body {
        Json::Array(elements) if op.is_batch() => {
            elements.iter().enumerate().for_each(|(number, element)| read(element, &format!("/{number}")));
        }
        _ => read(body, ""),
    }
    if errors.more() == 0 { Ok(()) } else { Err(Problem::wrong(errors)) }
}
