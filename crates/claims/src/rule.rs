//! One rule: its members, what they may be, and what it does with one claim.

use uuid::Uuid;

use crate::{
    Claim, Destination, Disclosure, Exceeded, InputSource, MAX_TEXT_BYTES, Pattern, RuleType, Source, Target,
    is_protected,
};

/// How many characters a replacement may have.
pub const MAX_REPLACEMENT_CHARACTERS: usize = 2_000;

/// A rule as it is configured. Empty text is none. What it means: see the [crate].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its id.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// What it does with the claims that it matches.
    pub rule_type: RuleType,
    /// What of a claim its evaluation patterns are looked for in.
    pub filter_target: Target,
    /// What of a claim a `Transform` rewrites.
    pub transform_target: Target,
    /// Where the claims go that it forwards.
    pub destination: Destination,
    /// Which claims it looks at.
    pub input_source: InputSource,
    /// When the claims are told that it forwards.
    pub disclosure: Disclosure,
    /// Its group: lower ones run first.
    pub priority: i64,
    /// The pattern of the types that it matches.
    pub type_evaluation_rule: String,
    /// The pattern of the values that it matches.
    pub value_evaluation_rule: String,
    /// The pattern of what is replaced in a type.
    pub type_transformation_rule: String,
    /// The pattern of what is replaced in a value.
    pub value_transformation_rule: String,
    /// What is written there, or the type that an `Add` adds.
    pub type_transformation_replacement: String,
    /// What is written there, or the value that an `Add` adds.
    pub value_transformation_replacement: String,
}

/// What is wrong with a rule: the members' names as columns, with a detail for people.
pub fn check_rule(rule: &Rule) -> Vec<(&'static str, String)> {
    Compiled::new(rule).err().unwrap_or_default()
}

/// A rule ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
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

/// A pattern with what takes its place.
#[derive(Clone, Debug)]
struct Rewriting {
    pattern: Pattern,
    replacement: String,
}

impl Compiled {
    /// Compiles all patterns, also those that the targets leave unused: a target may be changed
    /// later by who does not see the patterns.
    pub(crate) fn new(rule: &Rule) -> Result<Self, Vec<(&'static str, String)>> {
        let mut wrong = Vec::new();
        let mut pattern =
            |member, text: &str| Pattern::new(text).map_err(|detail| wrong.push((member, detail))).ok();
        let evaluated_type = pattern("type_evaluation_rule", &rule.type_evaluation_rule);
        let evaluated_value = pattern("value_evaluation_rule", &rule.value_evaluation_rule);
        let type_pattern = pattern(
            "type_transformation_rule",
            whole_or(&rule.type_transformation_rule, &rule.type_transformation_replacement),
        );
        let value_pattern = pattern(
            "value_transformation_rule",
            whole_or(&rule.value_transformation_rule, &rule.value_transformation_replacement),
        );
        for (member, replacement) in [
            ("type_transformation_replacement", &rule.type_transformation_replacement),
            ("value_transformation_replacement", &rule.value_transformation_replacement),
        ] {
            let length = replacement.chars().count();
            if length > MAX_REPLACEMENT_CHARACTERS {
                let detail = format!("takes at most {MAX_REPLACEMENT_CHARACTERS} characters, not {length}");
                wrong.push((member, detail));
            }
        }
        let (Some(evaluated_type), Some(evaluated_value), Some(type_pattern), Some(value_pattern), true) =
            (evaluated_type, evaluated_value, type_pattern, value_pattern, wrong.is_empty())
        else {
            return Err(wrong);
        };
        let (filters_type, filters_value) = parts(rule.filter_target);
        let (rewrites_type, rewrites_value) = match rule.rule_type {
            // its claim is its replacements, whatever the target
            RuleType::Add => (true, true),
            _ => parts(rule.transform_target),
        };
        let used = |pattern, used| if used { pattern } else { Pattern::default() };
        Ok(Self {
            id: rule.id,
            rule_type: rule.rule_type,
            destination: rule.destination,
            on_request: rule.disclosure == Disclosure::OnRequest,
            priority: rule.priority,
            input_source: rule.input_source,
            evaluated_type: used(evaluated_type, filters_type),
            evaluated_value: used(evaluated_value, filters_value),
            rewritten_type: Rewriting {
                pattern: used(type_pattern, rewrites_type),
                replacement: rule.type_transformation_replacement.clone(),
            },
            rewritten_value: Rewriting {
                pattern: used(value_pattern, rewrites_value),
                replacement: rule.value_transformation_replacement.clone(),
            },
        })
    }

    pub(crate) const fn looks_at(&self, source: Source) -> bool {
        self.input_source.includes(source)
    }

    pub(crate) fn is_match(&self, claim: &Claim) -> bool {
        self.evaluated_type.is_match(&claim.claim_type) && self.evaluated_value.is_match(&claim.value)
    }

    /// Whether there is nothing that it has to match.
    pub(crate) const fn is_unconditional(&self) -> bool {
        self.evaluated_type.is_empty() && self.evaluated_value.is_empty()
    }

    /// The claim rewritten; none where that has no type or a protected one.
    pub(crate) fn rewrite(&self, claim: &Claim) -> Result<Option<Claim>, Exceeded> {
        let rewrite = |rewriting: &Rewriting, text: &str| {
            rewriting
                .pattern
                .rewrite(text, &rewriting.replacement, MAX_TEXT_BYTES)
                .map_err(|_| Exceeded::Rewriting(self.id))
        };
        let claim_type = rewrite(&self.rewritten_type, &claim.claim_type)?;
        let value = rewrite(&self.rewritten_value, &claim.value)?;
        Ok(made(Claim { claim_type, value, source: claim.source }))
    }

    /// The claim that an `Add` adds; none where that has no type or a protected one.
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

/// An empty pattern with a replacement stands for the whole text.
const fn whole_or<'a>(pattern: &'a str, replacement: &str) -> &'a str {
    if pattern.is_empty() && !replacement.is_empty() { r"(?s)\A.*\z" } else { pattern }
}

/// Whether the target has the type, and the value, in it.
const fn parts(target: Target) -> (bool, bool) {
    match target {
        Target::ClaimType => (true, false),
        Target::ClaimValue => (false, true),
        Target::ClaimTypeAndValue => (true, true),
    }
}
