//! A claim rule: its members, their limits, and its effect on one claim.

use std::fmt;

use uuid::Uuid;

use crate::{
    Claim, Destination, Disclosure, InputSource, LimitExceeded, MAX_TEXT_BYTES, Pattern, RuleType, Source,
    Target, is_protected,
    parsed_pattern::ParsedPattern,
    pattern::{Overflow, TimeCheck},
};

/// The maximum length of a replacement, in characters.
pub const MAX_REPLACEMENT_CHARACTERS: usize = 2_000;

/// A member of a rule that can be invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The evaluation pattern of the type.
    TypeEvaluationRule,
    /// The evaluation pattern of the value.
    ValueEvaluationRule,
    /// The transformation pattern of the type.
    TypeTransformationRule,
    /// The transformation pattern of the value.
    ValueTransformationRule,
    /// The replacement in the type, or the type of an `Add`.
    TypeTransformationReplacement,
    /// The replacement in the value, or the value of an `Add`.
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

/// An invalid member, with the explanation for people.
type MemberFault = (Member, String);

/// The configuration of a rule, described in the [crate]. Empty text means no pattern or replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule's id.
    pub id: Uuid,
    /// The rule's name, for people.
    pub name: String,
    /// The effect of the rule on the claims that it matches.
    pub rule_type: RuleType,
    /// The part of a claim that the evaluation patterns match.
    pub filter_target: Target,
    /// The part of a claim that a `Transform` rewrites.
    pub transform_target: Target,
    /// The tokens that contain forwarded claims.
    pub destination: Destination,
    /// The claims that the rule processes, by source.
    pub input_source: InputSource,
    /// The condition for including forwarded claims in tokens.
    pub disclosure: Disclosure,
    /// The rule's group: lower ones run first.
    pub priority: i64,
    /// The evaluation pattern of the type.
    pub type_evaluation_rule: String,
    /// The evaluation pattern of the value.
    pub value_evaluation_rule: String,
    /// The transformation pattern of the type.
    pub type_transformation_rule: String,
    /// The transformation pattern of the value.
    pub value_transformation_rule: String,
    /// The replacement in the type, or the type of an `Add`.
    pub type_transformation_replacement: String,
    /// The replacement in the value, or the value of an `Add`.
    pub value_transformation_replacement: String,
}

impl Rule {
    /// Parses the rule's patterns, also those that the targets leave unused: a target may be changed later
    /// without the patterns.
    pub(crate) fn parse(&self) -> Result<ParsedPatterns, Vec<MemberFault>> {
        let whole_type = whole_or(&self.type_transformation_rule, &self.type_transformation_replacement);
        let whole_value = whole_or(&self.value_transformation_rule, &self.value_transformation_replacement);
        let at = |member| move |detail| (member, detail);
        let parsed = [
            ParsedPattern::of_filter(&self.type_evaluation_rule).map_err(at(Member::TypeEvaluationRule)),
            ParsedPattern::of_filter(&self.value_evaluation_rule).map_err(at(Member::ValueEvaluationRule)),
            ParsedPattern::of_rewriting(whole_type).map_err(at(Member::TypeTransformationRule)),
            ParsedPattern::of_rewriting(whole_value).map_err(at(Member::ValueTransformationRule)),
        ];
        let too_long = self.too_long();
        match parsed {
            [Ok(evaluated_type), Ok(evaluated_value), Ok(rewritten_type), Ok(rewritten_value)]
                if too_long.is_empty() =>
            {
                Ok(ParsedPatterns { evaluated_type, evaluated_value, rewritten_type, rewritten_value })
            }
            parsed => Err(parsed.into_iter().filter_map(Result::err).chain(too_long).collect()),
        }
    }

    fn too_long(&self) -> Vec<MemberFault> {
        let replacements = [
            (Member::TypeTransformationReplacement, &self.type_transformation_replacement),
            (Member::ValueTransformationReplacement, &self.value_transformation_replacement),
        ];
        let faults = replacements.into_iter().filter_map(|(member, replacement)| {
            let length = replacement.chars().count();
            (length > MAX_REPLACEMENT_CHARACTERS).then(|| {
                (member, format!("takes at most {MAX_REPLACEMENT_CHARACTERS} characters, not {length}"))
            })
        });
        faults.collect()
    }

    /// The total weight of the rule's patterns (see [`Pattern::weigh`]), or all invalid members. Cheap for one rule, not
    /// for thousands.
    pub fn weigh(&self) -> Result<u64, Vec<MemberFault>> {
        self.parse().map(|parsed| parsed.weight())
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
    /// The total weight of the patterns.
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

/// A transformation pattern with its replacement.
#[derive(Clone, Debug)]
struct Rewriting {
    pattern: Pattern,
    replacement: String,
    /// Whether the replacement is the complete new text, so that no search is needed.
    is_literal: bool,
}

impl Rewriting {
    fn rewrite(&self, text: &str, has_time: TimeCheck<'_>) -> Result<String, Overflow> {
        if self.is_literal {
            return Ok(self.replacement.clone());
        }
        self.pattern.rewrite(text, &self.replacement, MAX_TEXT_BYTES, has_time)
    }
}

impl CompiledRule {
    /// Compiles the patterns in use; `table_bytes` is the maximum size of each of their tables.
    pub(crate) fn new(rule: &Rule, parsed: &ParsedPatterns, table_bytes: usize) -> Result<Self, MemberFault> {
        let (filters_type, filters_value) = includes(rule.filter_target);
        let (rewrites_type, rewrites_value) = match rule.rule_type {
            // the target of an `Add` is ignored: its claim consists of the replacements
            RuleType::Add => (true, true),
            _ => includes(rule.transform_target),
        };
        let compile = |member, pattern: &ParsedPattern, is_used: bool| {
            if !is_used {
                return Ok(Pattern::default());
            }
            Pattern::compile(pattern, table_bytes).map_err(|detail| (member, detail))
        };
        let rewriting = |member, parsed: &ParsedPattern, (pattern, replacement): (&str, &str), is_used| {
            let is_literal =
                is_used && pattern.is_empty() && !replacement.is_empty() && !replacement.contains('$');
            let pattern = compile(member, parsed, is_used)?;
            Ok(Rewriting { pattern, replacement: replacement.to_owned(), is_literal })
        };
        Ok(Self {
            id: rule.id,
            rule_type: rule.rule_type,
            destination: rule.destination,
            on_request: rule.disclosure == Disclosure::OnRequest,
            priority: rule.priority,
            input_source: rule.input_source,
            evaluated_type: compile(Member::TypeEvaluationRule, &parsed.evaluated_type, filters_type)?,
            evaluated_value: compile(Member::ValueEvaluationRule, &parsed.evaluated_value, filters_value)?,
            rewritten_type: rewriting(
                Member::TypeTransformationRule,
                &parsed.rewritten_type,
                (&rule.type_transformation_rule, &rule.type_transformation_replacement),
                rewrites_type,
            )?,
            rewritten_value: rewriting(
                Member::ValueTransformationRule,
                &parsed.rewritten_value,
                (&rule.value_transformation_rule, &rule.value_transformation_replacement),
                rewrites_value,
            )?,
        })
    }

    /// Whether the rule processes claims of a source.
    pub(crate) const fn processes(&self, source: Source) -> bool {
        self.input_source.includes(source)
    }

    /// The only type that the rule matches, if there is only one.
    pub(crate) fn only_type(&self) -> Option<&[u8]> {
        self.evaluated_type.only()
    }

    /// The only value that the rule matches, if there is only one.
    pub(crate) fn only_value(&self) -> Option<&[u8]> {
        self.evaluated_value.only()
    }

    /// The maximum work of searching a claim's type.
    pub(crate) fn work_of_type(&self, claim: &Claim) -> u64 {
        self.evaluated_type.work(&claim.claim_type)
    }

    /// The maximum work of searching a claim's value.
    pub(crate) fn work_of_value(&self, claim: &Claim) -> u64 {
        self.evaluated_value.work(&claim.value)
    }

    pub(crate) fn matches_type(&self, claim: &Claim) -> Result<bool, LimitExceeded> {
        self.matches(&self.evaluated_type, &claim.claim_type)
    }

    pub(crate) fn matches_value(&self, claim: &Claim) -> Result<bool, LimitExceeded> {
        self.matches(&self.evaluated_value, &claim.value)
    }

    fn matches(&self, pattern: &Pattern, text: &str) -> Result<bool, LimitExceeded> {
        pattern.is_match(text).map_err(|_| LimitExceeded::Matching(self.id))
    }

    /// Whether the rule is a reason for dropping a claim that no rule of its group forwards.
    pub(crate) fn can_drop(&self, matched: bool) -> bool {
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

    /// The rewritten claim; `None` if its type is empty or protected.
    pub(crate) fn rewrite(
        &self,
        claim: &Claim,
        has_time: TimeCheck<'_>,
    ) -> Result<Option<Claim>, LimitExceeded> {
        let rewrite = |rewriting: &Rewriting, text: &str| {
            rewriting.rewrite(text, has_time).map_err(|overflow| match overflow {
                Overflow::Text => LimitExceeded::Rewriting(self.id),
                Overflow::Time => LimitExceeded::Time,
            })
        };
        let claim_type = rewrite(&self.rewritten_type, &claim.claim_type)?;
        let value = rewrite(&self.rewritten_value, &claim.value)?;
        Ok(valid(Claim { claim_type, value, source: claim.source }))
    }

    /// The claim of an `Add`; `None` if its type is empty or protected.
    pub(crate) fn addition(&self) -> Option<Claim> {
        valid(Claim {
            claim_type: self.rewritten_type.replacement.clone(),
            value: self.rewritten_value.replacement.clone(),
            source: Source::Platform,
        })
    }
}

/// The claim, unless its type is empty or protected.
fn valid(claim: Claim) -> Option<Claim> {
    (!claim.claim_type.is_empty() && !is_protected(&claim.claim_type)).then_some(claim)
}

/// The pattern; if it is empty but has a replacement, one that matches the complete text.
const fn whole_or<'a>(pattern: &'a str, replacement: &str) -> &'a str {
    if pattern.is_empty() && !replacement.is_empty() { r"(?s)\A.*\z" } else { pattern }
}

/// Whether the target includes the type, and the value.
const fn includes(target: Target) -> (bool, bool) {
    match target {
        Target::ClaimType => (true, false),
        Target::ClaimValue => (false, true),
        Target::ClaimTypeAndValue => (true, true),
    }
}
