//! Query parameters of an operation's own.

use crate::{Problem, Request};

/// A query parameter of an operation's own.
#[derive(Clone, Copy, Debug)]
pub struct QueryParameter {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Its form.
    pub form: QueryForm,
}

/// The form of a query parameter.
#[derive(Clone, Copy, Debug)]
pub enum QueryForm {
    /// A whole number within these bounds, that can be missing.
    Number(i64, i64),
    /// A text that must be there: not blank, at most this many characters long.
    Text(usize),
}

impl QueryParameter {
    /// A whole number within these bounds, that can be missing.
    pub const fn number(name: &'static str, about: &'static str, (least, most): (i64, i64)) -> Self {
        Self { name, about, form: QueryForm::Number(least, most) }
    }

    /// A text that must be there: not blank, at most this many characters long.
    pub const fn text(name: &'static str, about: &'static str, most: usize) -> Self {
        Self { name, about, form: QueryForm::Text(most) }
    }

    /// Its text, without white space at both ends.
    ///
    /// # Errors
    /// There is none, it is too long, or no text.
    pub fn read_text<'a>(&self, request: &'a Request) -> Result<&'a str, Problem> {
        let QueryForm::Text(most) = self.form else { return Ok("") };
        let text = request.query(self.name).map(str::trim);
        // no text that is stored holds a NUL, and PostgreSQL takes none
        let fits = |text: &&str| !text.is_empty() && text.chars().count() <= most && !text.contains('\0');
        text.filter(fits).ok_or_else(|| {
            let name = self.name;
            Problem::invalid(format!(
                "{name} is a text of 1 to {most} characters without NUL, and must be there."
            ))
        })
    }

    /// Its number, if it is there.
    ///
    /// # Errors
    /// It is none, or out of bounds.
    pub fn read_number(&self, request: &Request) -> Result<Option<i64>, Problem> {
        let QueryForm::Number(least, most) = self.form else { return Ok(None) };
        let read = |text: &str| text.parse().ok().filter(|number| (least..=most).contains(number));
        request.query(self.name).map(read).map_or(Ok(None), |number| {
            number
                .map(Some)
                .ok_or_else(|| Problem::invalid(format!("{} is a number from {least} to {most}.", self.name)))
        })
    }
}
