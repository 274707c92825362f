//! A resource's own rules: between its fields, and against the data.

use chancery_record::{Access, Draft, Field, FieldError, Given, Mismatch, Record, Value, pointer};
use chancery_store::Tx;

use crate::{Call, Problem, ProblemKind, Shape, read::emit::Stored, write::integrity};

/// Which fields a body gave a value or emptied.
pub struct ProvidedFields<'a> {
    fields: &'static [Field],
    draft: &'a Draft,
    merges: bool,
}

impl ProvidedFields<'_> {
    fn given(&self, column: &str) -> Option<&Given> {
        let place = self.fields.iter().position(|field| field.column == column);
        place.and_then(|place| self.draft.0.get(place))
    }

    /// Whether a merge patch emptied this column, which a body that leaves it out does not.
    pub fn clears(&self, column: &str) -> bool {
        self.merges && self.given(column) == Some(&Given::Empty)
    }

    /// Whether the body gave this column a value or emptied it.
    pub fn contains(&self, column: &str) -> bool {
        self.given(column).is_some_and(|given| *given != Given::Nothing)
    }
}

/// A resource's own rules. Both are called for every create, replace and patch, in this order.
pub trait Rules: Record {
    /// Sets what follows from what was said.
    fn adjust(&mut self, _was: Option<&Self>, _provided: &ProvidedFields<'_>) {}
    /// Rules between fields. Pure.
    fn check(&self, _wrong: &mut Vec<(&'static str, String)>) {}
}

pub type Apply = fn(Vec<Value>, Option<&[Value]>, &ProvidedFields<'_>) -> Result<Ruled, Mismatch>;
/// The values after the rules, and what they found wrong: column and detail.
pub type Ruled = (Vec<Value>, Vec<(&'static str, String)>);

pub fn apply_rules<R: Rules>(
    values: Vec<Value>,
    was: Option<&[Value]>,
    provided: &ProvidedFields<'_>,
) -> Result<Ruled, Mismatch> {
    let was = was.map(|was| R::from_values(was.to_vec())).transpose()?;
    let mut record = R::from_values(values)?;
    record.adjust(was.as_ref(), provided);
    let mut wrong = Vec::new();
    record.check(&mut wrong);
    Ok((record.into_values(), wrong))
}

/// A row that is about to be written.
pub struct Proposed<'a> {
    /// What is there now.
    pub was: Option<&'a Stored>,
    /// What is to be.
    pub values: &'a mut Vec<Value>,
}

/// What a rule against the data finds wrong with one of the rows.
pub struct Violation {
    /// The place of the row.
    pub row: usize,
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// The column.
    pub column: &'static str,
    /// What is wrong, for people.
    pub detail: String,
}

/// A rule against the data, on rows about to be written together.
pub type ValidateRows = fn(&Call, &mut Tx<'_>, &mut [Proposed<'_>]) -> Result<Vec<Violation>, Problem>;

impl Shape {
    /// What the rule against the data finds wrong with rows to be written together: the place of
    /// the row, the kind and the error.
    pub(crate) fn find_violations(
        &self,
        call: &Call,
        tx: &mut Tx<'_>,
        rows: &mut [Proposed<'_>],
        base: impl Fn(usize) -> String,
    ) -> Result<Vec<(usize, ProblemKind, FieldError)>, Problem> {
        let mut violations = match self.validate_rows {
            Some(validate) => validate(call, tx, rows)?,
            None => Vec::new(),
        };
        violations.extend(integrity::find_strangers(self, &call.context, tx, rows)?);
        violations.extend(integrity::find_crowds(self, tx, rows)?);
        let errors = violations.into_iter().map(|Violation { row, kind, column, detail }| {
            (row, kind, self.error_at(&base(row), column, detail))
        });
        Ok(errors.collect())
    }

    /// What is wrong with a column, at its member of the body; at the body where this form has no such member.
    fn error_at(&self, base: &str, column: &str, detail: String) -> FieldError {
        let Some(field) = self.field_index(column).and_then(|place| self.fields.get(place)) else {
            return FieldError::new(base, detail);
        };
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

    /// The rules' say on a new or changed row. `base` is where the body stands.
    pub(crate) fn apply_rules(
        &self,
        values: Vec<Value>,
        was: Option<&[Value]>,
        draft: &Draft,
        (base, merges): (&str, bool),
    ) -> Result<Result<Vec<Value>, Vec<FieldError>>, Problem> {
        let Some(apply) = self.apply else { return Ok(Ok(values)) };
        let (values, wrong) = apply(values, was, &ProvidedFields { fields: self.fields, draft, merges })?;
        if wrong.is_empty() {
            return Ok(Ok(values));
        }
        let errors = wrong.into_iter().map(|(column, detail)| self.error_at(base, column, detail));
        Ok(Err(errors.collect()))
    }
}
