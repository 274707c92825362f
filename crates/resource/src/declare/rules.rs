//! A resource's own rules: between its fields, and against the data.

use std::{marker::PhantomData, sync::Arc};

use chancery_record::{
    Access, Draft, Field, FieldError, FieldOf, FieldType, Mismatch, Provided, Record, Value, pointer,
};
use chancery_store::Tx;

use crate::{Context, Problem, ProblemKind, Shape, Steps, StoredRow, Work};

/// The fields of the record `R` in a body: with a value, or emptied.
pub struct ProvidedFields<'a, R> {
    draft: &'a Draft,
    merges: bool,
    record: PhantomData<fn() -> R>,
}

impl<R: Record> ProvidedFields<'_, R> {
    fn provided<T: FieldType>(&self, field: FieldOf<R, T>) -> Option<&Provided> {
        self.draft.0.get(field.field().index())
    }

    /// Whether a merge patch emptied this field with null, rather than leaving it out.
    pub fn clears<T: FieldType>(&self, field: FieldOf<R, T>) -> bool {
        self.merges && self.provided(field) == Some(&Provided::Empty)
    }

    /// Whether the body contains this field: with a value, or emptied.
    pub fn contains<T: FieldType>(&self, field: FieldOf<R, T>) -> bool {
        self.provided(field).is_some_and(|provided| *provided != Provided::Nothing)
    }
}

/// An invalid field and the reason, for people.
pub type FieldFault = (&'static Field, String);

/// The violations of the rules between fields.
#[derive(Default)]
pub struct Findings(Vec<FieldFault>);

impl Findings {
    /// Adds a violation at a field.
    pub fn add(&mut self, field: impl Into<&'static Field>, detail: impl Into<String>) {
        self.0.push((field.into(), detail.into()));
    }
}

/// A resource's own rules. Both are called for every create, replace and patch, in this order.
pub trait Rules: Record {
    /// Sets the fields that follow from those provided.
    fn adjust(&mut self, _was: Option<&Self>, _provided: &ProvidedFields<'_, Self>) {}
    /// Checks rules between fields, without I/O.
    fn check(&self, _wrong: &mut Findings) {}
}

pub type Apply = fn(Vec<Value>, Option<&[Value]>, &Draft, bool) -> Result<RulesOutcome, Mismatch>;
/// The values after the rules, and the violations.
pub type RulesOutcome = (Vec<Value>, Vec<FieldFault>);

pub fn apply_rules<R: Rules>(
    values: Vec<Value>,
    was: Option<&[Value]>,
    draft: &Draft,
    merges: bool,
) -> Result<RulesOutcome, Mismatch> {
    let was = was.map(|was| R::from_values(was.to_vec())).transpose()?;
    let mut record = R::from_values(values)?;
    record.adjust(was.as_ref(), &ProvidedFields { draft, merges, record: PhantomData });
    let mut wrong = Findings::default();
    record.check(&mut wrong);
    Ok((record.into_values(), wrong.0))
}

/// A row that is about to be written.
pub struct ProposedRow<'a> {
    /// The row as it is stored now; `None` for a new one.
    pub was: Option<&'a StoredRow>,
    /// The values to be written.
    pub values: &'a mut Vec<Value>,
}

impl ProposedRow<'_> {
    /// The new value of a field.
    ///
    /// # Errors
    /// The row is of another record, or the value does not fit.
    pub fn get<R: Record, T: FieldType>(&self, field: FieldOf<R, T>) -> Result<T, Mismatch> {
        field.get(self.values)
    }

    /// The new text of a field; `None` where it has none.
    pub fn text<R: Record, T: FieldType>(&self, field: FieldOf<R, T>) -> Option<&str> {
        field.text(self.values)
    }

    /// Sets the new value of a field.
    ///
    /// # Errors
    /// The row is of another record.
    pub fn set<R: Record, T: FieldType>(&mut self, field: FieldOf<R, T>, value: T) -> Result<(), Mismatch> {
        field.set(self.values, value)
    }
}

/// A violation of a rule that reads other rows.
pub struct Violation {
    /// The index of the row.
    pub row: usize,
    /// The type of the problem answered.
    pub kind: ProblemKind,
    /// The field at which it is reported.
    pub field: &'static Field,
    /// The reason, for people.
    pub detail: String,
}

/// The actor and the resource of a write, and the results of work that a rule requested.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    /// The actor, its scope and the time.
    pub context: &'a Context,
    /// The results of work between transactions, and the work still needed.
    pub steps: &'a Steps,
    /// The resource, as the caller sees it.
    pub shape: &'static Shape,
}

impl Writer<'_> {
    /// Requests work that a rule needs before it can decide, outside of any transaction. The problem that this
    /// returns ends the operation, which runs again with the result. Rules run before anything is written, so it
    /// does not matter whether the transaction commits.
    #[must_use]
    pub fn need<T: Send + Sync + 'static>(self, work: Work<T>) -> Problem {
        self.steps.needed.set(Some(work.stored()));
        chancery_store::Error::Suspended.into()
    }

    /// The newest result of this type: see [`Steps::result`].
    pub fn result<T: Send + Sync + 'static>(self) -> Option<Arc<T>> {
        self.steps.result()
    }
}

/// A rule that reads other rows, on rows about to be written together.
pub type ValidateRows =
    fn(Writer<'_>, &mut Tx<'_>, &mut [ProposedRow<'_>]) -> Result<Vec<Violation>, Problem>;

impl Shape {
    /// An error of a field, at its member of the body; at the body itself where this form has no such member.
    pub(crate) fn error_at(&self, base: &str, field: &Field, detail: String) -> FieldError {
        let Some(field) = self.own(field) else { return FieldError::new(base, detail) };
        let Access { create, put, patch, shown, .. } = field.access;
        if create || put || patch || shown || self.base.is_none() {
            return FieldError::new(pointer(base, field.wire()), detail);
        }
        let detail = format!(
            "does not say enough: {} {detail}, and has no member here. Name what it applies to",
            field.wire()
        );
        FieldError::new(base, detail)
    }

    /// Applies the rules between fields to a new or changed row. `base` is the JSON Pointer of the row's
    /// body.
    pub(crate) fn apply_rules(
        &self,
        values: Vec<Value>,
        was: Option<&[Value]>,
        draft: &Draft,
        base: &str,
        merges: bool,
    ) -> Result<Result<Vec<Value>, Vec<FieldError>>, Problem> {
        let Some(apply) = self.writes.apply else { return Ok(Ok(values)) };
        let (values, wrong) = apply(values, was, draft, merges)?;
        if wrong.is_empty() {
            return Ok(Ok(values));
        }
        let errors = wrong.into_iter().map(|(field, detail)| self.error_at(base, field, detail));
        Ok(Err(errors.collect()))
    }
}
