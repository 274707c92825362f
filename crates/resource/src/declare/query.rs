//! Query parameters of custom operations.

use chancery_record::{Uuid, parse_id};

use crate::{Problem, Request};

/// A query parameter of a custom operation.
#[derive(Clone, Copy, Debug)]
pub struct QueryParameter {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Its form.
    pub form: QueryForm,
}

/// The type of a query parameter.
#[derive(Clone, Copy, Debug)]
pub enum QueryForm {
    /// An optional integer within these bounds.
    Number(i64, i64),
    /// A required text: not blank, at most this many characters long.
    Text(usize),
    /// An optional text of at most this many characters.
    Optional(usize),
    /// An optional id.
    Id,
    /// A repeatable text: the maximum number, and the maximum of characters of each.
    Several(usize, usize),
    /// An optional word of this list.
    Choice(&'static [&'static str]),
}

impl QueryParameter {
    /// An optional integer within these bounds.
    pub const fn number(name: &'static str, about: &'static str, least: i64, most: i64) -> Self {
        Self { name, about, form: QueryForm::Number(least, most) }
    }

    /// A required text: not blank, at most this many characters long.
    pub const fn text(name: &'static str, about: &'static str, most: usize) -> Self {
        Self { name, about, form: QueryForm::Text(most) }
    }

    /// An optional text of at most this many characters.
    pub const fn optional(name: &'static str, about: &'static str, most: usize) -> Self {
        Self { name, about, form: QueryForm::Optional(most) }
    }

    /// An optional id.
    pub const fn id(name: &'static str, about: &'static str) -> Self {
        Self { name, about, form: QueryForm::Id }
    }

    /// A repeatable text: the maximum number, and the maximum of characters of each.
    pub const fn several(name: &'static str, about: &'static str, times: usize, most: usize) -> Self {
        Self { name, about, form: QueryForm::Several(times, most) }
    }

    /// Whether it may be repeated.
    pub const fn is_repeated(&self) -> bool {
        matches!(self.form, QueryForm::Several(..))
    }

    /// Its text, if present.
    ///
    /// # Errors
    /// The value is empty or too long.
    pub fn read_optional<'a>(&self, request: &'a Request) -> Result<Option<&'a str>, Problem> {
        let QueryForm::Optional(most) = self.form else { return Ok(None) };
        request.query(self.name).map(|text| self.checked(text, most)).transpose()
    }

    /// Its id, if present.
    ///
    /// # Errors
    /// The value is not a UUID.
    pub fn read_id(&self, request: &Request) -> Result<Option<Uuid>, Problem> {
        let wrong = || Problem::invalid(format!("{} is a UUID.", self.name));
        request.query(self.name).map(|text| parse_id(text).ok_or_else(wrong)).transpose()
    }

    /// Its texts.
    ///
    /// # Errors
    /// Too many values, or one that is empty or too long.
    pub fn read_several<'a>(&self, request: &'a Request) -> Result<Vec<&'a str>, Problem> {
        let QueryForm::Several(times, most) = self.form else { return Ok(Vec::new()) };
        let matching = request.query.iter().filter(|(name, _)| name == self.name);
        let texts: Vec<&str> =
            matching.map(|(_, text)| self.checked(text, most)).collect::<Result<_, _>>()?;
        if texts.len() > times {
            return Err(Problem::invalid(format!("{} is there at most {times} times.", self.name)));
        }
        Ok(texts)
    }

    fn checked<'a>(&self, text: &'a str, most: usize) -> Result<&'a str, Problem> {
        let fits = !text.is_empty() && text.chars().count() <= most && !text.contains('\0');
        let name = self.name;
        let wrong = || Problem::invalid(format!("{name} is a text of 1 to {most} characters without NUL."));
        fits.then_some(text).ok_or_else(wrong)
    }

    /// An optional word of this list.
    pub const fn choice(name: &'static str, about: &'static str, words: &'static [&'static str]) -> Self {
        Self { name, about, form: QueryForm::Choice(words) }
    }

    /// Its word, if present.
    ///
    /// # Errors
    /// The value is not one of the words.
    pub fn read_choice(&self, request: &Request) -> Result<Option<&'static str>, Problem> {
        let QueryForm::Choice(words) = self.form else { return Ok(None) };
        let Some(text) = request.query(self.name) else { return Ok(None) };
        let known = words.iter().find(|word| **word == text).copied();
        let wrong = || Problem::invalid(format!("{} is one of {}.", self.name, words.join(", ")));
        known.map(Some).ok_or_else(wrong)
    }

    /// Its text, without white space at both ends.
    ///
    /// # Errors
    /// The value is missing, too long, or contains NUL.
    pub fn read_text<'a>(&self, request: &'a Request) -> Result<&'a str, Problem> {
        let QueryForm::Text(most) = self.form else { return Ok("") };
        let text = request.query(self.name).map(str::trim);
        // stored texts contain no NUL, and PostgreSQL accepts none
        let fits = |text: &&str| !text.is_empty() && text.chars().count() <= most && !text.contains('\0');
        text.filter(fits).ok_or_else(|| {
            let name = self.name;
            Problem::invalid(format!(
                "{name} is a text of 1 to {most} characters without NUL, and must be there."
            ))
        })
    }

    /// Its number, if present.
    ///
    /// # Errors
    /// The value is not a number, or is out of bounds.
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
