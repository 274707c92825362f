//! A rule set: its groups of rules run one after another.

use std::collections::HashSet;

use uuid::Uuid;

use crate::{
    Claim, Exceeded, Member, OutClaim, Outcome, Rule,
    group::Group,
    pattern::GoOn,
    pool::{Disposition, Pool},
    rule::{CompiledRule, ParsedPatterns},
    trace::{Step, Trace},
};

/// The greatest weight of all patterns of a set. A state takes some 15 bytes compiled and 32 in a search:
/// 100 MiB in all.
const MAX_SET_WEIGHT: u64 = 2_000_000;
/// The bytes of all tables of a set, which make its patterns' searches fast.
const SET_TABLE_BYTES: usize = 48 << 20;
/// The most tables of a rule: three for each of its four patterns.
const TABLES: usize = 12;
/// The weight of a rule beside its patterns.
const RULE_WEIGHT: u64 = 1_000;

/// A fault of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The rule's id.
    pub rule: Uuid,
    /// The member at fault.
    pub member: Member,
    /// What is wrong, for people.
    pub detail: String,
}

/// Why rules cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSetError {
    /// Members of the rules are invalid.
    Faults(Vec<Fault>),
    /// The caller's time ran out.
    Time,
}

/// Compiled rules, ready to run.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// In the order of running.
    groups: Vec<Group>,
    /// The ids of the rules in the order of running, which is that of priority and id: the order in which rules are passed has no effect.
    ids: Vec<Uuid>,
    weight: u64,
}

impl RuleSet {
    /// Compiles the rules, up to a weight of all together and as long as `go_on` says that there is time. It
    /// is called before each rule; the work for one rule is bounded. The error names every invalid member.
    pub fn new(rules: &[Rule], go_on: GoOn<'_>) -> Result<Self, RuleSetError> {
        let (read, weight) = read(rules, go_on)?;
        let table_bytes = SET_TABLE_BYTES / TABLES / rules.len().max(1);
        let compile = |(rule, readings): (&Rule, ParsedPatterns)| {
            if !go_on() {
                return Err(RuleSetError::Time);
            }
            CompiledRule::new(rule, &readings, table_bytes)
                .map_err(|wrong| RuleSetError::Faults(vec![fault(rule, wrong)]))
        };
        let mut rules = read.into_iter().map(compile).collect::<Result<Vec<_>, _>>()?;
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

    /// The weight of all rules together.
    pub(crate) const fn weight(&self) -> u64 {
        self.weight
    }

    /// Runs the claims through the rules, as long as `go_on` says that there is time. It is called before
    /// the first search and after some work; the work between two calls is bounded.
    pub fn evaluate(&self, claims: Vec<Claim>, go_on: GoOn<'_>) -> Result<Outcome, Exceeded> {
        self.run_all(claims, &mut Trace::default(), go_on)
    }

    /// The same, with each step of each claim.
    pub fn trace(&self, claims: Vec<Claim>, go_on: GoOn<'_>) -> Result<(Outcome, Vec<Step>), Exceeded> {
        let mut trace = Trace::of_all();
        let outcome = self.run_all(claims, &mut trace, go_on)?;
        Ok((outcome, trace.into_steps()))
    }

    /// The ids of the rules, in the order of running.
    pub fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.ids.iter().copied()
    }

    fn run_all(&self, claims: Vec<Claim>, trace: &mut Trace, go_on: GoOn<'_>) -> Result<Outcome, Exceeded> {
        // bounds the input, even where most of the claims are equal
        if claims.len() > crate::MAX_CLAIMS {
            return Err(Exceeded::Claims);
        }
        let mut pool = Pool::default();
        let mut seen = HashSet::with_capacity(claims.len());
        let is_first: Vec<bool> = claims.iter().map(|claim| seen.insert(claim)).collect();
        for (claim, _) in claims.into_iter().zip(is_first).filter(|(_, is_first)| *is_first) {
            let number = pool.number();
            pool.keep(number, claim, Disposition::fresh())?;
        }
        let mut current = pool.into_claims()?;
        for group in &self.groups {
            current = group.run(current, trace, go_on)?;
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
type Read<'a> = Vec<(&'a Rule, ParsedPatterns)>;

/// Parses the patterns of all rules; with their weight together.
fn read<'a>(rules: &'a [Rule], go_on: GoOn<'_>) -> Result<(Read<'a>, u64), RuleSetError> {
    let (mut weight, mut faults, mut read) = (0, Vec::new(), Vec::new());
    for rule in rules {
        if !go_on() {
            return Err(RuleSetError::Time);
        }
        match rule.read() {
            Ok(readings) => {
                weight += readings.weight() + RULE_WEIGHT;
                read.push((rule, readings));
            }
            Err(wrong) => faults.extend(wrong.into_iter().map(|wrong| fault(rule, wrong))),
        }
        if weight > MAX_SET_WEIGHT {
            let detail = "is one too many: the patterns of the rules in force take too much memory together";
            return Err(RuleSetError::Faults(vec![fault(
                rule,
                (Member::TypeEvaluationRule, detail.to_owned()),
            )]));
        }
    }
    if faults.is_empty() { Ok((read, weight)) } else { Err(RuleSetError::Faults(faults)) }
}

fn fault(rule: &Rule, (member, detail): (Member, String)) -> Fault {
    Fault { rule: rule.id, member, detail }
}
