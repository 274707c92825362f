//! Query parameters of an operation's own.

use chancery_record::{Uuid, parse_id};

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
    /// A text of at most this many characters, that can be missing.
    Optional(usize),
    /// An id, that can be missing.
    Id,
    /// Texts that can be there several times: how many at most, and of how many characters each.
    Several(usize, usize),
    /// One of these words, that can be missing.
    Choice(&'static [&'static str]),
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

    /// A text of at most this many characters, that can be missing.
    pub const fn optional(name: &'static str, about: &'static str, most: usize) -> Self {
        Self { name, about, form: QueryForm::Optional(most) }
    }

    /// An id, that can be missing.
    pub const fn id(name: &'static str, about: &'static str) -> Self {
        Self { name, about, form: QueryForm::Id }
    }

    /// Texts: how many at most, and of how many characters each.
    pub const fn several(name: &'static str, about: &'static str, (times, most): (usize, usize)) -> Self {
        Self { name, about, form: QueryForm::Several(times, most) }
    }

    /// Whether it can be there more than once.
    pub const fn is_repeated(&self) -> bool {
        matches!(self.form, QueryForm::Several(..))
    }

    /// Its text, if it is there.
    ///
    /// # Errors
    /// It is empty or too long.
    pub fn read_optional<'a>(&self, request: &'a Request) -> Result<Option<&'a str>, Problem> {
        let QueryForm::Optional(most) = self.form else { return Ok(None) };
        request.query(self.name).map(|text| self.fitting(text, most)).transpose()
    }

    /// Its id, if it is there.
    ///
    /// # Errors
    /// It is not a UUID.
    pub fn read_id(&self, request: &Request) -> Result<Option<Uuid>, Problem> {
        let wrong = || Problem::invalid(format!("{} is a UUID.", self.name));
        request.query(self.name).map(|text| parse_id(text).ok_or_else(wrong)).transpose()
    }

    /// Its texts.
    ///
    /// # Errors
    /// There are too many, or one is empty or too long.
    pub fn read_several<'a>(&self, request: &'a Request) -> Result<Vec<&'a str>, Problem> {
        let QueryForm::Several(times, most) = self.form else { return Ok(Vec::new()) };
        let named = request.query.iter().filter(|(name, _)| name == self.name);
        let texts: Vec<&str> = named.map(|(_, text)| self.fitting(text, most)).collect::<Result<_, _>>()?;
        if texts.len() > times {
            return Err(Problem::invalid(format!("{} is there at most {times} times.", self.name)));
        }
        Ok(texts)
    }

    fn fitting<'a>(&self, text: &'a str, most: usize) -> Result<&'a str, Problem> {
        let fits = !text.is_empty() && text.chars().count() <= most && !text.contains('\0');
        let name = self.name;
        let wrong = || Problem::invalid(format!("{name} is a text of 1 to {most} characters without NUL."));
        fits.then_some(text).ok_or_else(wrong)
    }

    /// One of these words, that can be missing.
    pub const fn choice(name: &'static str, about: &'static str, words: &'static [&'static str]) -> Self {
        Self { name, about, form: QueryForm::Choice(words) }
    }

    /// Its word, if it is there.
    ///
    /// # Errors
    /// It is none of the words.
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
