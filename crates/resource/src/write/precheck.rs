//! A check of a large body before its transaction begins, so that other writes do not wait for one that will be
//! refused.

use chancery_record::{FieldErrors, Form, Json, Others, read_draft};

use crate::{
    Action, Body, Custom, Op, Problem,
    write::{elements::check_count, relate::check_listed_count},
};

/// Refuses a body that exceeds the limits of one call, and one with more errors than are reported. Fewer errors
/// are found by the operation itself, together with those against the data.
///
/// # Errors
/// Too many elements, or links; the first errors.
pub fn check_body(op: &Op, body: &Json, merges: bool) -> Result<(), Problem> {
    let form = match op.action {
        Action::Create | Action::CreateBatch => Form::Create,
        Action::Replace
        | Action::ReplaceBatch
        | Action::ReplaceMembers(_)
        | Action::Custom(Custom { body: Body::Resources, .. }) => Form::Put,
        Action::Patch if merges => Form::MergePatch,
        Action::Patch => Form::Patch,
        // version 1 reads forms under other names
        Action::Custom(Custom { body: Body::Form(form), .. }) if op.successor.is_none() => {
            let read = read_draft(form.fields, Others::Named(&[]), Form::Create, body, "");
            return refuse(read.err().unwrap_or_default());
        }
        Action::DeleteBatch => {
            return if let Json::Array(elements) = body {
                check_count(op.shape, elements.len())
            } else {
                Ok(())
            };
        }
        _ => return Ok(()),
    };
    if let (Json::Array(elements), true) = (body, op.is_batch()) {
        check_count(op.shape, elements.len())?;
        check_listed_count(op.shape, elements.iter())?;
    }
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
    refuse(errors)
}

fn refuse(errors: FieldErrors) -> Result<(), Problem> {
    if errors.more() == 0 { Ok(()) } else { Err(Problem::wrong(errors)) }
}
