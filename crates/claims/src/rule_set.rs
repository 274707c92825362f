//! A rule set: its groups of rules run one after another.

use std::collections::HashSet;

use uuid::Uuid;

use crate::{
    Claim, LimitExceeded, Member, OutClaim, Outcome, Rule,
    group::Group,
    pattern::TimeCheck,
    pool::{Disposition, Pool},
    rule::{CompiledRule, ParsedPatterns},
    trace::{Trace, TraceStep},
};

/// The maximum weight of all patterns of a set. A state takes some 15 bytes compiled and 32 in a search: 100 MiB in total.
const MAX_SET_WEIGHT: u64 = 2_000_000;
/// The maximum size of all tables of a set, which accelerate searches, in bytes.
const SET_TABLE_BYTES: usize = 48 << 20;
/// The maximum number of tables of a rule: three for each of its four patterns.
const TABLES: usize = 12;
/// The weight of a rule in addition to its patterns.
const RULE_WEIGHT: u64 = 1_000;

/// A fault of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The rule's id.
    pub rule: Uuid,
    /// The invalid member.
    pub member: Member,
    /// The explanation for people.
    pub detail: String,
}

/// The reason why rules cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSetError {
    /// Members of the rules are invalid.
    Faults(Vec<Fault>),
    /// The caller's time limit was exceeded.
    Time,
}

/// A compiled rule set.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// The groups in the order of running.
    groups: Vec<Group>,
    /// The ids of the rules in the order of running, by priority and id: the order of the input has no effect.
    ids: Vec<Uuid>,
    weight: u64,
}

impl RuleSet {
    /// Compiles the rules, within the maximum weight and the time limit. `has_time` is called before each rule, and the work
    /// for one rule is bounded. The error names every invalid member.
    pub fn new(rules: &[Rule], has_time: TimeCheck<'_>) -> Result<Self, RuleSetError> {
        let (parsed, weight) = parse(rules, has_time)?;
        let table_bytes = SET_TABLE_BYTES / TABLES / rules.len().max(1);
        let compile = |(rule, patterns): (&Rule, ParsedPatterns)| {
            if !has_time() {
                return Err(RuleSetError::Time);
            }
            CompiledRule::new(rule, &patterns, table_bytes)
                .map_err(|(member, detail)| RuleSetError::Faults(vec![fault(rule, member, detail)]))
        };
        let mut rules = parsed.into_iter().map(compile).collect::<Result<Vec<_>, _>>()?;
        rules.sort_by_key(|rule| (rule.priority, rule.id));
        let ids: Vec<Uuid> = rules.iter().map(|rule| rule.id).collect();
        let mut groups = Vec::new();
        while let Some(priority) = rules.first().map(|rule| rule.priority) {
            let others = rules.split_off(rules.partition_point(|rule| rule.priority == priority));
            groups.push(Group::new(ids.len() - rules.len() - others.len(), rules));
            rules = others;
        }
        Ok(Self { groups, ids, weight })
    }

    /// The total weight of the rules.
    pub(crate) const fn weight(&self) -> u64 {
        self.weight
    }

    /// Runs the claims through the rules, within the time limit. `has_time` is called before the first search and then
    /// regularly; the work between two calls is bounded.
    pub fn evaluate(&self, claims: Vec<Claim>, has_time: TimeCheck<'_>) -> Result<Outcome, LimitExceeded> {
        self.run_all(claims, &mut Trace::default(), has_time)
    }

    /// Evaluates like [`Self::evaluate`], and returns each step of each claim.
    pub fn trace(
        &self,
        claims: Vec<Claim>,
        has_time: TimeCheck<'_>,
    ) -> Result<(Outcome, Vec<TraceStep>), LimitExceeded> {
        let mut trace = Trace::enabled();
        let outcome = self.run_all(claims, &mut trace, has_time)?;
        Ok((outcome, trace.into_steps()))
    }

    /// The ids of the rules, in the order of running.
    pub fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.ids.iter().copied()
    }

    fn run_all(
        &self,
        claims: Vec<Claim>,
        trace: &mut Trace,
        has_time: TimeCheck<'_>,
    ) -> Result<Outcome, LimitExceeded> {
        // bounds the input, even where most of the claims are equal
        if claims.len() > crate::MAX_CLAIMS {
            return Err(LimitExceeded::Claims);
        }
        let mut pool = Pool::default();
        let mut seen = HashSet::with_capacity(claims.len());
        let is_first: Vec<bool> = claims.iter().map(|claim| seen.insert(claim)).collect();
        for (claim, _) in claims.into_iter().zip(is_first).filter(|(_, is_first)| *is_first) {
            let number = pool.number();
            pool.add_distinct(number, claim, Disposition::initial())?;
        }
        let mut current = pool.into_claims()?;
        for group in &self.groups {
            current = group.run(current, trace, has_time)?;
        }
        Ok(Outcome {
            claims: current
                .into_iter()
                .map(|(_, claim, disposition)| self.output(claim, &disposition))
                .collect(),
        })
    }

    fn output(&self, claim: Claim, disposition: &Disposition) -> OutClaim {
        OutClaim {
            claim_type: claim.claim_type,
            value: claim.value,
            source: claim.source,
            destination: disposition.destination,
            on_request: disposition.on_request,
            path: disposition.path.indexes().filter_map(|index| self.ids.get(index).copied()).collect(),
        }
    }
}

/// Rules with their parsed patterns.
type Parsed<'a> = Vec<(&'a Rule, ParsedPatterns)>;

/// Parses the patterns of all rules; returns also their total weight.
fn parse<'a>(rules: &'a [Rule], has_time: TimeCheck<'_>) -> Result<(Parsed<'a>, u64), RuleSetError> {
    let (mut weight, mut faults, mut parsed) = (0, Vec::new(), Vec::new());
    for rule in rules {
        if !has_time() {
            return Err(RuleSetError::Time);
        }
        match rule.parse() {
            Ok(patterns) => {
                weight += patterns.weight() + RULE_WEIGHT;
                parsed.push((rule, patterns));
            }
            Err(invalid) => {
                faults.extend(invalid.into_iter().map(|(member, detail)| fault(rule, member, detail)));
            }
        }
        if weight > MAX_SET_WEIGHT {
            let detail = "is one too many: the patterns of the rules in force take too much memory together";
            return Err(RuleSetError::Faults(vec![fault(
                rule,
                Member::TypeEvaluationRule,
                detail.to_owned(),
            )]));
        }
    }
    if faults.is_empty() { Ok((parsed, weight)) } else { Err(RuleSetError::Faults(faults)) }
}

fn fault(rule: &Rule, member: Member, detail: String) -> Fault {
    Fault { rule: rule.id, member, detail }
}
