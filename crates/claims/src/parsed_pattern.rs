//! Parsed patterns, whose cost is known before the compilation.

use std::convert::Infallible;

use regex_syntax::{
    ast::{self, Ast, ClassSetBinaryOp, ClassSetItem, FlagsItemKind, Visitor, visit},
    hir::{Class, Hir, HirKind, translate::Translator},
    utf8::Utf8Sequences,
};

/// The maximum length of a pattern, in characters.
pub const MAX_PATTERN_CHARACTERS: usize = 2_000;
/// The maximum weight of a pattern. The weight is the number of the automaton's states, once for the
/// match itself and once more for each captured group. A pattern of a hundred letters of any script
/// weighs 280,000.
pub const MAX_PATTERN_WEIGHT: u64 = 400_000;
/// The maximum number of character classes of a pattern that ignores case anywhere: the library iterates over each
/// class character by character, and a class may have a million.
const MAX_FOLDED_CLASSES: usize = 32;

/// A parsed pattern.
pub(crate) struct ParsedPattern {
    /// The expression; `None` if the text is empty.
    pub(crate) expression: Option<Hir>,
    pub(crate) weight: u64,
    /// Whether a search captures the groups.
    pub(crate) captures_groups: bool,
}

impl ParsedPattern {
    /// Parses an evaluation pattern.
    pub(crate) fn of_filter(text: &str) -> Result<Self, String> {
        Self::new(text, false)
    }

    /// Parses a transformation pattern, with its groups.
    pub(crate) fn of_rewriting(text: &str) -> Result<Self, String> {
        Self::new(text, true)
    }

    fn new(text: &str, captures_groups: bool) -> Result<Self, String> {
        let length = text.chars().count();
        if length > MAX_PATTERN_CHARACTERS {
            return Err(format!("takes at most {MAX_PATTERN_CHARACTERS} characters, not {length}"));
        }
        let tree = ast::parse::Parser::new().parse(text).map_err(|error| explain(text, error.into()))?;
        let folded = Folding::of(&tree);
        if folded > MAX_FOLDED_CLASSES {
            return Err(format!(
                "takes at most {MAX_FOLDED_CLASSES} classes of characters where case is ignored, not {folded}"
            ));
        }
        let expression =
            Translator::new().translate(text, &tree).map_err(|error| explain(text, error.into()))?;
        let groups = if captures_groups { expression.properties().explicit_captures_len() } else { 0 };
        let factor = u64::try_from(groups).unwrap_or(u64::MAX).saturating_add(1);
        let weight = weigh(&expression).saturating_mul(factor);
        if weight > MAX_PATTERN_WEIGHT {
            let groups = if groups > 0 { ", and fewer groups" } else { "" };
            return Err(format!("takes too much memory: write it with fewer or smaller repetitions{groups}"));
        }
        Ok(Self { expression: (!text.is_empty()).then_some(expression), weight, captures_groups })
    }
}

/// The classes of a pattern, and whether case is ignored anywhere in it.
#[derive(Default)]
struct Folding {
    classes: usize,
    ignores_case: bool,
}

impl Folding {
    /// The number of classes if case is ignored anywhere, otherwise 0.
    fn of(tree: &Ast) -> usize {
        match visit(tree, Self::default()) {
            Ok(Self { classes, ignores_case: true }) => classes,
            Ok(_) => 0,
            Err(never) => match never {},
        }
    }

    fn note(&mut self, flags: &ast::Flags) {
        let ignores = FlagsItemKind::Flag(ast::Flag::CaseInsensitive);
        self.ignores_case |= flags.items.iter().any(|item| item.kind == ignores);
    }
}

impl Visitor for Folding {
    type Output = Self;
    type Err = Infallible;

    fn finish(self) -> Result<Self, Infallible> {
        Ok(self)
    }

    fn visit_pre(&mut self, tree: &Ast) -> Result<(), Infallible> {
        match tree {
            Ast::ClassBracketed(_) | Ast::ClassUnicode(_) => self.classes += 1,
            Ast::Flags(set) => self.note(&set.flags),
            Ast::Group(group) => group.flags().into_iter().for_each(|flags| self.note(flags)),
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
        if matches!(item, ClassSetItem::Bracketed(_) | ClassSetItem::Unicode(_)) {
            self.classes += 1;
        }
        Ok(())
    }

    fn visit_class_set_binary_op_pre(&mut self, _: &ClassSetBinaryOp) -> Result<(), Infallible> {
        self.classes += 2;
        Ok(())
    }
}

/// The number of states of the automaton that the library compiles from the expression.
fn weigh(expression: &Hir) -> u64 {
    let sum = |parts: &[Hir]| parts.iter().fold(1, |sum: u64, part| sum.saturating_add(weigh(part)));
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Literal(literal) => u64::try_from(literal.0.len()).unwrap_or(u64::MAX),
        HirKind::Class(Class::Unicode(class)) => class
            .ranges()
            .iter()
            .flat_map(|range| Utf8Sequences::new(range.start(), range.end()))
            .map(|sequence| u64::try_from(sequence.len()).unwrap_or(u64::MAX))
            .sum(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(repetition.min).max(1);
            weigh(&repetition.sub).saturating_add(1).saturating_mul(times.into())
        }
        HirKind::Capture(capture) => weigh(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

/// Formats an error in one line: the library's own text has several.
fn explain(text: &str, error: regex_syntax::Error) -> String {
    let (problem, offset) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.offset),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start.offset),
        _ => return "is not a regular expression".to_owned(),
    };
    let character = text.get(..offset).map_or(0, |before| before.chars().count()) + 1;
    format!("is not a regular expression: {problem} (at character {character})")
}
