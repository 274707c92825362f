//! The filter grammar of RFC 7644, section 3.4.2.2, parsed into a tree.

use crate::Problem;

/// The longest filter, in bytes.
const MAX_LENGTH: usize = 8192;
/// The most comparisons of one filter.
const MAX_TERMS: usize = 100;
/// The maximum depth of brackets.
const MAX_DEPTH: usize = 20;

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `eq`
    Equal,
    /// `ne`
    NotEqual,
    /// `co`
    Contains,
    /// `sw`
    StartsWith,
    /// `ew`
    EndsWith,
    /// `gt`
    Greater,
    /// `ge`
    GreaterOrEqual,
    /// `lt`
    Less,
    /// `le`
    LessOrEqual,
    /// `pr`: has a value
    Present,
}

const OPERATORS: [(&str, Operator); 10] = [
    ("eq", Operator::Equal),
    ("ne", Operator::NotEqual),
    ("co", Operator::Contains),
    ("sw", Operator::StartsWith),
    ("ew", Operator::EndsWith),
    ("gt", Operator::Greater),
    ("ge", Operator::GreaterOrEqual),
    ("lt", Operator::Less),
    ("le", Operator::LessOrEqual),
    ("pr", Operator::Present),
];

/// A value in a filter, as in JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A string.
    Text(String),
}

/// A filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// Both filters match.
    And(Box<Self>, Box<Self>),
    /// At least one of the filters matches.
    Or(Box<Self>, Box<Self>),
    /// The filter does not match.
    Not(Box<Self>),
    /// A comparison: attribute, sub-attribute, operator, value and column.
    Compare {
        /// The attribute.
        attribute: String,
        /// The sub-attribute, after a dot.
        part: Option<String>,
        /// The operator.
        operator: Operator,
        /// The value to compare with; null for [`Operator::Present`].
        value: Literal,
        /// Column of the attribute in the filter, from 1.
        column: usize,
    },
    /// `attribute[filter]`: an element of a nested array matches.
    Some {
        /// The nested array.
        attribute: String,
        /// The filter that an element must match.
        inner: Box<Self>,
        /// Column of the attribute in the filter, from 1.
        column: usize,
    },
}

/// A problem at a column of the filter.
pub fn problem_at(column: usize, detail: &str) -> Problem {
    Problem::wrong_at("", format!("filter, column {column}: {detail}")).with_detail_only()
}

impl Problem {
    fn with_detail_only(mut self) -> Self {
        if let Some(error) = self.errors.pop() {
            self.detail = format!("In {}", error.detail);
        }
        self
    }
}

/// Parses a filter.
///
/// # Errors
/// Text that is not in the grammar or exceeds a bound, with its column.
pub fn parse(text: &str) -> Result<Expression, Problem> {
    if text.len() > MAX_LENGTH {
        return Err(problem_at(MAX_LENGTH, &format!("a filter has at most {MAX_LENGTH} bytes")));
    }
    let mut parser = Parser { text, at: 0, terms: 0 };
    let expression = parser.disjunction(0)?;
    parser.skip_blanks();
    if parser.at < text.len() {
        return Err(parser.problem("expected \"and\", \"or\" or the end"));
    }
    Ok(expression)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    terms: usize,
}

type Parsed = Result<Expression, Problem>;

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn column(&self) -> usize {
        self.text.get(..self.at).map_or(0, |before| before.chars().count()) + 1
    }

    fn problem(&self, detail: &str) -> Problem {
        problem_at(self.column(), detail)
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches(' ').len();
    }

    fn consume(&mut self, symbol: char) -> bool {
        self.skip_blanks();
        let matches = self.rest().starts_with(symbol);
        if matches {
            self.at += symbol.len_utf8();
        }
        matches
    }

    /// A word of letters, digits, `_`, `-`, `:` and `$`.
    fn word(&mut self) -> &'a str {
        self.skip_blanks();
        let rest = self.rest();
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && !"_-:$".contains(letter));
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.at += word.len();
        word
    }

    /// Consumes the word if it is the next one.
    fn keyword(&mut self, expected: &str) -> bool {
        let before = self.at;
        let matches = self.word().eq_ignore_ascii_case(expected);
        if !matches {
            self.at = before;
        }
        matches
    }

    fn disjunction(&mut self, depth: usize) -> Parsed {
        let mut left = self.conjunction(depth)?;
        while self.keyword("or") {
            left = Expression::Or(Box::new(left), Box::new(self.conjunction(depth)?));
        }
        Ok(left)
    }

    fn conjunction(&mut self, depth: usize) -> Parsed {
        let mut left = self.term(depth)?;
        while self.keyword("and") {
            left = Expression::And(Box::new(left), Box::new(self.term(depth)?));
        }
        Ok(left)
    }

    fn term(&mut self, depth: usize) -> Parsed {
        if depth > MAX_DEPTH {
            return Err(self.problem(&format!("brackets nest more than {MAX_DEPTH} deep")));
        }
        self.terms += 1;
        if self.terms > MAX_TERMS {
            return Err(self.problem(&format!("a filter has at most {MAX_TERMS} terms")));
        }
        if self.consume('(') {
            return self.group(depth);
        }
        let before = self.at;
        if self.keyword("not") {
            if self.consume('(') {
                return Ok(Expression::Not(Box::new(self.group(depth)?)));
            }
            self.at = before;
        }
        self.compare(depth)
    }

    fn group(&mut self, depth: usize) -> Parsed {
        let inner = self.disjunction(depth + 1)?;
        if self.consume(')') { Ok(inner) } else { Err(self.problem("expected \")\"")) }
    }

    /// The name of an attribute. After a URN, whose version has a dot, it begins at the last colon.
    fn name(&mut self) -> &'a str {
        self.skip_blanks();
        let rest = self.rest();
        if !rest.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("urn:")) {
            return self.word();
        }
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && !"_-:$.".contains(letter));
        let whole = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let after = whole.rfind(':').map_or(0, |colon| colon + 1);
        let own = whole.get(after..).unwrap_or_default();
        let name = whole.get(..after + own.find('.').unwrap_or(own.len())).unwrap_or_default();
        self.at += name.len();
        name
    }

    fn compare(&mut self, depth: usize) -> Parsed {
        self.skip_blanks();
        let column = self.column();
        let attribute = self.name().to_owned();
        if attribute.is_empty() {
            return Err(self.problem("expected an attribute"));
        }
        if self.rest().starts_with('[') {
            self.at += 1;
            let mut inner = Box::new(self.disjunction(depth + 1)?);
            if !self.consume(']') {
                return Err(self.problem("expected \"]\""));
            }
            if self.rest().starts_with('.') {
                inner = Box::new(Expression::And(inner, Box::new(self.part_of_element()?)));
            }
            return Ok(Expression::Some { attribute, inner, column });
        }
        let part = if self.rest().starts_with('.') {
            self.at += 1;
            Some(self.word().to_owned())
        } else {
            None
        };
        self.comparison(attribute, part, column)
    }

    /// `.part operator value` after a bracket: the same element must match this, too.
    fn part_of_element(&mut self) -> Parsed {
        self.at += 1;
        self.terms += 1;
        let column = self.column();
        let part = self.word().to_owned();
        if part.is_empty() {
            return Err(self.problem("expected an attribute"));
        }
        self.comparison(part, None, column)
    }

    fn comparison(&mut self, attribute: String, part: Option<String>, column: usize) -> Parsed {
        self.skip_blanks();
        let at = self.at;
        let name = self.word();
        let known = OPERATORS.iter().find(|(word, _)| name.eq_ignore_ascii_case(word));
        let Some((_, operator)) = known else {
            self.at = at;
            return Err(self.problem("expected one of eq ne co sw ew gt ge lt le pr"));
        };
        let value = if *operator == Operator::Present { Literal::Null } else { self.literal()? };
        Ok(Expression::Compare { attribute, part, operator: *operator, value, column })
    }

    fn literal(&mut self) -> Result<Literal, Problem> {
        self.skip_blanks();
        let start = self.at;
        if self.rest().starts_with('"') {
            let end = string_end(self.rest()).ok_or_else(|| self.problem("the string does not end"))?;
            let json = self.rest().get(..end).unwrap_or_default();
            let text: String =
                serde_json::from_str(json).map_err(|_| self.problem("the string is not a JSON string"))?;
            if text.contains('\0') {
                return Err(self.problem("no text contains a NUL character"));
            }
            self.at += end;
            return Ok(Literal::Text(text));
        }
        let word = self.word();
        let literal = match word {
            _ if word.eq_ignore_ascii_case("true") => Some(Literal::Bool(true)),
            _ if word.eq_ignore_ascii_case("false") => Some(Literal::Bool(false)),
            _ if word.eq_ignore_ascii_case("null") => Some(Literal::Null),
            _ => word.parse().ok().map(Literal::Int),
        };
        literal.ok_or_else(|| {
            self.at = start;
            self.problem("expected a value: a string in double quotes, a whole number, true, false or null")
        })
    }
}

/// The end of a JSON string that begins here.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
