//! The rules for a view's tags.
//!
//! Fuel counts steps, and one step can double a text: `{% set x = x ~ x %}`, forty times, takes more
//! than any memory. So a view only writes the values of its context. It joins no texts, captures no
//! output, and names only values that exist: the size of its values is bounded by the length of its
//! source.

use super::{
    LONGEST, Refusal,
    filters::{FILTERS, FUNCTIONS, TESTS},
    tags::{Tag, Token, tags},
};

/// The words that a tag `{% .. %}` may begin with. Left out are those that capture output
/// (`macro`, `call`, `filter`), turn escaping off (`autoescape`) or hide tags (`raw`).
const STATEMENTS: [&str; 13] = [
    "if", "elif", "else", "endif", "for", "endfor", "set", "with", "endwith", "block", "endblock", "extends",
    "include",
];

/// The statements that name a value.
const NAMING: [&str; 3] = ["for", "set", "with"];

/// The most `elif` of a view: each nests the rest of its `if` by one level.
const MAX_ELIF: usize = 100;

/// Words that are no names, so that a bracket after them is no call.
const KEYWORDS: [&str; 8] = ["and", "or", "not", "in", "is", "if", "elif", "else"];

pub(super) fn check(source: &str) -> Result<(), Refusal> {
    if source.len() > LONGEST {
        return Err(Refusal::at(0, source, format!("a view must have at most {LONGEST} bytes")));
    }
    let tags = tags(source)?;
    let mut elif = 0;
    for tag in &tags {
        check_tag(tag).map_err(|(at, detail)| Refusal::at(at, source, detail))?;
        elif += usize::from(tag.first_word() == Some("elif"));
        if elif > MAX_ELIF {
            let detail = format!("a view must have at most {MAX_ELIF} elif");
            return Err(Refusal::at(tag.at, source, detail));
        }
    }
    Ok(())
}

/// Whether a view includes or extends a view with one of these names, or may do so, since a value names what it includes.
pub fn includes(source: &str, names: &[&str]) -> bool {
    let refers = |tag: &Tag<'_>| matches!(tag.first_word(), Some("include" | "extends"));
    let may_be = |tag: &Tag<'_>| {
        let mut texts = tag.tokens.iter().filter_map(|(_, token)| match token {
            Token::Text(text) => Some(*text),
            _ => None,
        });
        texts.clone().next().is_none() || texts.any(|text| names.contains(&text))
    };
    tags(source).is_ok_and(|tags| tags.iter().any(|tag| refers(tag) && may_be(tag)))
}

impl<'a> Tag<'a> {
    /// The first word of a `{% .. %}`.
    pub(super) fn first_word(&self) -> Option<&'a str> {
        match self.tokens.first() {
            Some((_, Token::Word(word))) if !self.writes => Some(word),
            _ => None,
        }
    }

    fn token(&self, index: usize) -> Option<Token<'a>> {
        self.tokens.get(index).map(|(_, token)| *token)
    }

    fn before(&self, index: usize) -> Option<Token<'a>> {
        index.checked_sub(1).and_then(|index| self.token(index))
    }

    fn is_symbol(&self, index: usize, symbol: char) -> bool {
        self.token(index) == Some(Token::Symbol(symbol))
    }

    fn is_number(&self, index: usize) -> bool {
        // `x.1` is an item
        self.token(index) == Some(Token::Number) && self.before(index) != Some(Token::Symbol('.'))
    }

    /// Whether the tag is `{{ super() }}`, which writes at once; elsewhere `super()` captures output.
    fn is_super(&self) -> bool {
        let tokens: Vec<Token> = self.tokens.iter().map(|(_, token)| *token).collect();
        self.writes && tokens == [Token::Word("super"), Token::Symbol('('), Token::Symbol(')')]
    }
}

fn check_tag(tag: &Tag) -> Result<(), (usize, String)> {
    let first = tag.first_word();
    if !tag.writes && !first.is_some_and(|word| STATEMENTS.contains(&word)) {
        let known = STATEMENTS.join(", ");
        return Err((tag.at, format!("a tag in a view begins with one of {known}")));
    }
    let names = first.is_some_and(|word| NAMING.contains(&word));
    let mut open = 0_usize;
    for (index, (at, token)) in tag.tokens.iter().enumerate() {
        check_token(tag, index, *token, names).map_err(|detail| (*at, detail))?;
        match token {
            Token::Symbol('(') => open += 1,
            Token::Symbol(')') => open = open.saturating_sub(1),
            // `{% set a = b, c %}` makes a list
            Token::Symbol(',') if first == Some("set") && open == 0 => {
                return Err((*at, "one name is set to one value".to_owned()));
            }
            _ => {}
        }
    }
    if first == Some("set") && !tag.tokens.iter().any(|(_, token)| *token == Token::Symbol('=')) {
        return Err((tag.at, "a view keeps nothing that it has written: set needs a value".to_owned()));
    }
    Ok(())
}

fn check_token(tag: &Tag, index: usize, token: Token, names: bool) -> Result<(), String> {
    match token {
        Token::Symbol(symbol @ ('~' | '*')) => {
            Err(format!("there is no {symbol} in views; write one part after the other"))
        }
        Token::Symbol('+') if !(tag.is_number(index + 1) || index > 0 && tag.is_number(index - 1)) => {
            Err("in views + has a number beside it; write texts one after the other".to_owned())
        }
        Token::Symbol('[' | '{') if names => {
            Err("a view gives names only to what is there, not to lists and maps of its own".to_owned())
        }
        Token::Symbol('(') => check_bracket(tag, index, names),
        Token::Symbol('|') => match tag.token(index + 1) {
            Some(Token::Word(name)) if FILTERS.contains(&name) => Ok(()),
            Some(Token::Word(name)) => Err(format!("there is no filter {name} in views")),
            _ => Ok(()),
        },
        Token::Word("is") if tag.before(index) != Some(Token::Symbol('.')) => {
            let negated = tag.token(index + 1) == Some(Token::Word("not"));
            match tag.token(index + 1 + usize::from(negated)) {
                Some(Token::Word(name)) if !TESTS.contains(&name) => {
                    Err(format!("there is no test {name} in views"))
                }
                _ => Ok(()),
            }
        }
        Token::Word("recursive") if tag.first_word() == Some("for") => {
            Err("there are no recursive loops in views".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks an opening bracket: it begins a call of a known name, or groups part of an expression.
fn check_bracket(tag: &Tag, index: usize, names: bool) -> Result<(), String> {
    let no_call = |what: &str| Err(format!("{what} cannot be called in a view"));
    match tag.before(index) {
        Some(Token::Word(word)) if !KEYWORDS.contains(&word) => {
            let member = index > 1 && tag.is_symbol(index - 2, '.');
            let filter = index > 1 && tag.is_symbol(index - 2, '|');
            let known = filter || FUNCTIONS.contains(&word) || (word == "super" && tag.is_super());
            if known && !member { Ok(()) } else { no_call(word) }
        }
        Some(Token::Symbol(')' | ']' | '}') | Token::Text(_) | Token::Number) => no_call("this"),
        _ if names => Err("a view gives names only to what is there, without brackets".to_owned()),
        _ => Ok(()),
    }
}
