//! The tags of a template, found as MiniJinja finds them.
//!
//! MiniJinja does not export its lexer, and its parser must not run first: parser and compiler
//! recurse, and a tag that nests too deeply overflows the stack. Whatever is unclear here is refused,
//! never skipped, so that both agree on where a tag begins and ends.

use super::Refusal;

/// The most bytes of a tag. Each may nest an expression by one level, and each level takes stack.
const LONGEST_TAG: usize = 1000;

/// A part of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// The text between quotes, with its escapes.
    Text(&'a str),
    /// A number.
    Number,
    /// One character of an operator, or a bracket.
    Symbol(char),
}

/// A tag: `{{ .. }}` or `{% .. %}`.
#[derive(Debug)]
pub(super) struct Tag<'a> {
    /// The byte of the source at which the tag begins.
    pub at: usize,
    /// Whether the tag writes a value: `{{ .. }}`.
    pub writes: bool,
    /// The tag's tokens, each with the byte of the source at which it begins.
    pub tokens: Vec<(usize, Token<'a>)>,
}

/// All tags of a template.
pub(super) fn tags(source: &str) -> Result<Vec<Tag<'_>>, Refusal> {
    let mut tags = Vec::new();
    let mut reader = Reader { source, at: 0 };
    while let Some(found) = reader.rest().find('{') {
        reader.at += found;
        let at = reader.at;
        match reader.byte(1) {
            Some(b'#') => {
                reader.begin();
                let end = reader.rest().find("#}");
                reader.at += end.ok_or_else(|| Refusal::at(at, source, "the comment does not end"))? + 2;
            }
            Some(b'{') => tags.push(reader.tag(true)?),
            Some(b'%') => tags.push(reader.tag(false)?),
            _ => reader.at += 1,
        }
    }
    Ok(tags)
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + ahead).copied()
    }

    /// Skips the two characters that begin a tag, and the sign that may follow them.
    fn begin(&mut self) {
        self.at += if matches!(self.byte(2), Some(b'-' | b'+')) { 3 } else { 2 };
    }

    fn tag(&mut self, writes: bool) -> Result<Tag<'a>, Refusal> {
        let source = self.source;
        let mut tag = Tag { at: self.at, writes, tokens: Vec::new() };
        self.begin();
        let end = if writes { "}}" } else { "%}" };
        let mut open = 0_i32;
        loop {
            let rest = self.rest();
            if self.at - tag.at > LONGEST_TAG {
                let detail = format!("a tag must have at most {LONGEST_TAG} bytes");
                return Err(Refusal::at(tag.at, source, detail));
            }
            // as in MiniJinja, no tag ends while a bracket is open
            if open == 0 {
                let signed = rest.strip_prefix(['-', '+']).is_some_and(|rest| rest.starts_with(end));
                if signed || rest.starts_with(end) {
                    self.at += if signed { 3 } else { 2 };
                    return Ok(tag);
                }
            }
            let Some(first) = rest.chars().next() else {
                return Err(Refusal::at(tag.at, source, "the tag does not end"));
            };
            let at = self.at;
            let token = match first {
                _ if first.is_ascii_whitespace() => {
                    self.at += 1;
                    continue;
                }
                '"' | '\'' => self.text(first)?,
                '0'..='9' => {
                    self.word();
                    Token::Number
                }
                '_' | 'a'..='z' | 'A'..='Z' => Token::Word(self.word()),
                '(' | '[' | '{' => {
                    open += 1;
                    self.symbol(first)
                }
                ')' | ']' | '}' => {
                    open -= 1;
                    self.symbol(first)
                }
                '+' | '-' | '*' | '/' | '%' | '.' | ',' | ':' | '~' | '|' | '=' | '!' | '<' | '>' => {
                    self.symbol(first)
                }
                _ => return Err(Refusal::at(at, source, format!("unexpected character {first:?}"))),
            };
            tag.tokens.push((at, token));
        }
    }

    fn symbol(&mut self, symbol: char) -> Token<'a> {
        self.at += 1;
        Token::Symbol(symbol)
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric());
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.at += word.len();
        word
    }

    fn text(&mut self, quote: char) -> Result<Token<'a>, Refusal> {
        let inside = self.rest().get(1..).unwrap_or_default();
        let mut escaped = false;
        let end = inside.find(|letter: char| {
            let ends = letter == quote && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        });
        let text = end.and_then(|end| inside.get(..end));
        let text = text.ok_or_else(|| Refusal::at(self.at, self.source, "the text does not end"))?;
        self.at += text.len() + 2;
        Ok(Token::Text(text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Reader, Token, tags};

    #[test]
    fn tags_end_where_minijinja_ends_them() {
        let source = "a{ {{- x['}}'] -}}{#- {{ #}b{% if {'a': 1}.a %}{{ \"\\\"}}\" }}{{ 'é' | e(1.5) }}";
        let tags = tags(source).unwrap();
        let tokens: Vec<Vec<Token>> =
            tags.iter().map(|tag| tag.tokens.iter().map(|(_, token)| *token).collect()).collect();
        assert_eq!(tokens.len(), 4);
        assert_eq!(tokens[0], [Token::Word("x"), Token::Symbol('['), Token::Text("}}"), Token::Symbol(']')]);
        assert_eq!(tokens[1].len(), 8);
        assert_eq!(tokens[2], [Token::Text("\\\"}}")]);
        assert!(tags[0].writes && !tags[1].writes);
        assert_eq!(&source[tags[1].at..tags[1].at + 5], "{% if");
    }

    proptest! {
        /// No tag is missed: a missed tag is one that no rule checks.
        #[test]
        fn no_tag_is_missed(source in "(\\{\\{|\\}\\}|\\{%|%\\}|\\{#|#\\}|[-+ a1.'\"\\\\(\\[\\{\\)\\]\\}]|\\{% if a|\\{%endif|'a'|é){0,16}") {
            let mut environment = minijinja::Environment::empty();
            environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
            environment.set_formatter(|_, _, _| Err(minijinja::ErrorKind::InvalidOperation.into()));
            if let Ok(tags) = tags(&source) && environment.template_from_str(&source).is_ok() {
                let mut rest = source.clone();
                for tag in tags.iter().rev() {
                    let mut reader = Reader { source: &source, at: tag.at };
                    reader.tag(tag.writes).unwrap();
                    rest.replace_range(tag.at..reader.at, "()");
                }
                // any tag in the rest would fail: it writes a value or looks a name up
                let written = environment.render_str(&rest, ());
                prop_assert!(written.is_ok(), "{} {:?}", rest, written);
            }
        }
    }
}
