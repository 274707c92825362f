//! One claim rule: its members, their bounds, and what it does with one claim.

use std::fmt;

use uuid::Uuid;

use crate::{
    Claim, Destination, Disclosure, Exceeded, InputSource, MAX_TEXT_BYTES, Pattern, RuleType, Source, Target,
    is_protected,
    pattern::{GoOn, Overflow},
    reading::ParsedPattern,
};

/// The most characters of a replacement.
pub const MAX_REPLACEMENT_CHARACTERS: usize = 2_000;

/// A member of a rule that something can be wrong with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The pattern of the types that it matches.
    TypeEvaluationRule,
    /// The pattern of the values that it matches.
    ValueEvaluationRule,
    /// The pattern of what is replaced in a type.
    TypeTransformationRule,
    /// The pattern of what is replaced in a value.
    ValueTransformationRule,
    /// What is written there, or the type that an `Add` adds.
    TypeTransformationReplacement,
    /// What is written there, or the value that an `Add` adds.
    ValueTransformationReplacement,
}

impl fmt::Display for Member {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TypeEvaluationRule => "type_evaluation_rule",
            Self::ValueEvaluationRule => "value_evaluation_rule",
            Self::TypeTransformationRule => "type_transformation_rule",
            Self::ValueTransformationRule => "value_transformation_rule",
            Self::TypeTransformationReplacement => "type_transformation_replacement",
            Self::ValueTransformationReplacement => "value_transformation_replacement",
        })
    }
}

/// What is wrong with a member, for people.
type MemberFault = (Member, String);

/// A rule as it is configured. Empty text means that there is none. For the meaning see the [crate].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule's id.
    pub id: Uuid,
    /// The rule's name, for people.
    pub name: String,
    /// What the rule does with the claims that it matches.
    pub rule_type: RuleType,
    /// The part of a claim that the evaluation patterns are matched against.
    pub filter_target: Target,
    /// The part of a claim that a `Transform` rewrites.
    pub transform_target: Target,
    /// The tokens that forwarded claims go into.
    pub destination: Destination,
    /// The claims that the rule looks at, by source.
    pub input_source: InputSource,
    /// When forwarded claims are put into tokens.
    pub disclosure: Disclosure,
    /// The rule's group: lower ones run first.
    pub priority: i64,
    /// The pattern of the claim types that the rule matches.
    pub type_evaluation_rule: String,
    /// The pattern of the claim values that the rule matches.
    pub value_evaluation_rule: String,
    /// The pattern of what is replaced in a type.
    pub type_transformation_rule: String,
    /// The pattern of what is replaced in a value.
    pub value_transformation_rule: String,
    /// The replacement in a type, or the type of the claim that an `Add` adds.
    pub type_transformation_replacement: String,
    /// The replacement in a value, or the value of the claim that an `Add` adds.
    pub value_transformation_replacement: String,
}

impl Rule {
    /// Parses the rule's patterns, also those that the targets leave unused: a target may be changed later
    /// by a caller who does not see the patterns.
    pub(crate) fn read(&self) -> Result<ParsedPatterns, Vec<MemberFault>> {
        let whole_type = whole_or(&self.type_transformation_rule, &self.type_transformation_replacement);
        let whole_value = whole_or(&self.value_transformation_rule, &self.value_transformation_replacement);
        let at = |member| move |detail| (member, detail);
        let readings = [
            ParsedPattern::of_filter(&self.type_evaluation_rule).map_err(at(Member::TypeEvaluationRule)),
            ParsedPattern::of_filter(&self.value_evaluation_rule).map_err(at(Member::ValueEvaluationRule)),
            ParsedPattern::of_rewriting(whole_type).map_err(at(Member::TypeTransformationRule)),
            ParsedPattern::of_rewriting(whole_value).map_err(at(Member::ValueTransformationRule)),
        ];
        let too_long = self.too_long();
        match readings {
            [Ok(evaluated_type), Ok(evaluated_value), Ok(rewritten_type), Ok(rewritten_value)]
                if too_long.is_empty() =>
            {
                Ok(ParsedPatterns { evaluated_type, evaluated_value, rewritten_type, rewritten_value })
            }
            readings => Err(readings.into_iter().filter_map(Result::err).chain(too_long).collect()),
        }
    }

    fn too_long(&self) -> Vec<MemberFault> {
        let replacements = [
            (Member::TypeTransformationReplacement, &self.type_transformation_replacement),
            (Member::ValueTransformationReplacement, &self.value_transformation_replacement),
        ];
        let judged = replacements.into_iter().filter_map(|(member, replacement)| {
            let length = replacement.chars().count();
            (length > MAX_REPLACEMENT_CHARACTERS).then(|| {
                (member, format!("takes at most {MAX_REPLACEMENT_CHARACTERS} characters, not {length}"))
            })
        });
        judged.collect()
    }

    /// The weight of the rule's patterns together (see [`Pattern::weigh`]), or what is wrong with its members.
    /// Cheap for one rule, not for thousands.
    pub fn weigh(&self) -> Result<u64, Vec<MemberFault>> {
        self.read().map(|readings| readings.weight())
    }
}

/// The parsed patterns of a rule.
pub(crate) struct ParsedPatterns {
    evaluated_type: ParsedPattern,
    evaluated_value: ParsedPattern,
    rewritten_type: ParsedPattern,
    rewritten_value: ParsedPattern,
}

impl ParsedPatterns {
    /// The weight of the patterns together.
    pub(crate) const fn weight(&self) -> u64 {
        self.evaluated_type.weight
            + self.evaluated_value.weight
            + self.rewritten_type.weight
            + self.rewritten_value.weight
    }
}

/// A compiled rule.
#[derive(Clone, Debug)]
pub(crate) struct CompiledRule {
    pub(crate) id: Uuid,
    pub(crate) rule_type: RuleType,
    pub(crate) destination: Destination,
    pub(crate) on_request: bool,
    pub(crate) priority: i64,
    input_source: InputSource,
    evaluated_type: Pattern,
    evaluated_value: Pattern,
    rewritten_type: Rewriting,
    rewritten_value: Rewriting,
}

/// A pattern with the replacement of its matches.
#[derive(Clone, Debug)]
struct Rewriting {
    pattern: Pattern,
    replacement: String,
    /// Whether the replacement is the complete new text, so that no search is needed.
    is_literal: bool,
}

impl Rewriting {
    fn rewrite(&self, text: &str, go_on: GoOn<'_>) -> Result<String, Overflow> {
        if self.is_literal {
            return Ok(self.replacement.clone());
        }
        self.pattern.rewrite(text, &self.replacement, MAX_TEXT_BYTES, go_on)
    }
}

impl CompiledRule {
    /// Compiles the patterns that are used, with this many bytes for each of their tables.
    pub(crate) fn new(rule: &Rule, read: &ParsedPatterns, table_bytes: usize) -> Result<Self, MemberFault> {
        let (filters_type, filters_value) = parts(rule.filter_target);
        let (rewrites_type, rewrites_value) = match rule.rule_type {
            // an added claim consists of the replacements, whatever the target
            RuleType::Add => (true, true),
            _ => parts(rule.transform_target),
        };
        let compile = |member, reading: &ParsedPattern, is_used: bool| {
            if !is_used {
                return Ok(Pattern::default());
            }
            Pattern::compile(reading, table_bytes).map_err(|detail| (member, detail))
        };
        let rewriting = |member, reading: &ParsedPattern, (pattern, replacement): (&str, &str), is_used| {
            let is_literal =
                is_used && pattern.is_empty() && !replacement.is_empty() && !replacement.contains('$');
            let pattern = compile(member, reading, is_used)?;
            Ok(Rewriting { pattern, replacement: replacement.to_owned(), is_literal })
        };
        Ok(Self {
            id: rule.id,
            rule_type: rule.rule_type,
            destination: rule.destination,
            on_request: rule.disclosure == Disclosure::OnRequest,
            priority: rule.priority,
            input_source: rule.input_source,
            evaluated_type: compile(Member::TypeEvaluationRule, &read.evaluated_type, filters_type)?,
            evaluated_value: compile(Member::ValueEvaluationRule, &read.evaluated_value, filters_value)?,
            rewritten_type: rewriting(
                Member::TypeTransformationRule,
                &read.rewritten_type,
                (&rule.type_transformation_rule, &rule.type_transformation_replacement),
                rewrites_type,
            )?,
            rewritten_value: rewriting(
                Member::ValueTransformationRule,
                &read.rewritten_value,
                (&rule.value_transformation_rule, &rule.value_transformation_replacement),
                rewrites_value,
            )?,
        })
    }

    pub(crate) const fn looks_at(&self, source: Source) -> bool {
        self.input_source.includes(source)
    }

    /// The one type that the rule finds, where there is one.
    pub(crate) fn only_type(&self) -> Option<&[u8]> {
        self.evaluated_type.only()
    }

    /// The one value that the rule finds, where there is one.
    pub(crate) fn only_value(&self) -> Option<&[u8]> {
        self.evaluated_value.only()
    }

    /// The most work of searching a claim's type.
    pub(crate) fn work_of_type(&self, claim: &Claim) -> u64 {
        self.evaluated_type.work(&claim.claim_type)
    }

    /// The most work of searching a claim's value.
    pub(crate) fn work_of_value(&self, claim: &Claim) -> u64 {
        self.evaluated_value.work(&claim.value)
    }

    pub(crate) fn finds_type(&self, claim: &Claim) -> Result<bool, Exceeded> {
        self.finds(&self.evaluated_type, &claim.claim_type)
    }

    pub(crate) fn finds_value(&self, claim: &Claim) -> Result<bool, Exceeded> {
        self.finds(&self.evaluated_value, &claim.value)
    }

    fn finds(&self, pattern: &Pattern, text: &str) -> Result<bool, Exceeded> {
        pattern.is_match(text).map_err(|_| Exceeded::Matching(self.id))
    }

    /// Whether the rule is why a claim goes no further, where no rule of its group forwards it.
    pub(crate) fn can_hold_back(&self, matched: bool) -> bool {
        match self.rule_type {
            RuleType::Add => false,
            RuleType::Remove => matched,
            RuleType::Filter | RuleType::Transform => true,
        }
    }

    /// Whether the rule needs no matching claim.
    pub(crate) const fn is_unconditional(&self) -> bool {
        self.evaluated_type.is_empty() && self.evaluated_value.is_empty()
    }

    /// The rewritten claim; `None` where it has no type or a protected one.
    pub(crate) fn rewrite(&self, claim: &Claim, go_on: GoOn<'_>) -> Result<Option<Claim>, Exceeded> {
        let rewrite = |rewriting: &Rewriting, text: &str| {
            rewriting.rewrite(text, go_on).map_err(|overflow| match overflow {
                Overflow::Text => Exceeded::Rewriting(self.id),
                Overflow::Time => Exceeded::Time,
            })
        };
        let claim_type = rewrite(&self.rewritten_type, &claim.claim_type)?;
        let value = rewrite(&self.rewritten_value, &claim.value)?;
        Ok(made(Claim { claim_type, value, source: claim.source }))
    }

    /// The claim that an `Add` adds; `None` where it has no type or a protected one.
    pub(crate) fn addition(&self) -> Option<Claim> {
        made(Claim {
            claim_type: self.rewritten_type.replacement.clone(),
            value: self.rewritten_value.replacement.clone(),
            source: Source::Platform,
        })
    }
}

fn made(claim: Claim) -> Option<Claim> {
    (!claim.claim_type.is_empty() && !is_protected(&claim.claim_type)).then_some(claim)
}

/// The pattern; where it is empty but has a replacement, one that matches the complete text.
const fn whole_or<'a>(pattern: &'a str, replacement: &str) -> &'a str {
    if pattern.is_empty() && !replacement.is_empty() { r"(?s)\A.*\z" } else { pattern }
}

/// Whether the target includes the type, and the value.
const fn parts(target: Target) -> (bool, bool) {
    match target {
        Target::ClaimType => (true, false),
        Target::ClaimValue => (false, true),
        Target::ClaimTypeAndValue => (true, true),
    }
}
