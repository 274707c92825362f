//! A rule set: its groups of rules run one after another.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::{
    Claim, Exceeded, Member, OutClaim, Outcome, Rule, RuleType, is_protected,
    pattern::GoOn,
    pool::{Disposition, Pool},
    rule::{CompiledRule, ParsedPatterns},
    trace::{Effect, Step, Trace},
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
    /// Sorted by priority and id, so that the order in which rules are passed has no effect.
    rules: Vec<CompiledRule>,
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
        Ok(Self { rules, weight })
    }

    /// The weight of all rules together.
    pub(crate) const fn weight(&self) -> u64 {
        self.weight
    }

    /// Runs the claims through the rules, as long as `go_on` says that there is time. It is called before
    /// the first search and after some work; the work between two calls is bounded.
    pub fn evaluate(&self, claims: &[Claim], go_on: GoOn<'_>) -> Result<Outcome, Exceeded> {
        self.run_all(claims, &mut Trace::default(), go_on)
    }

    /// The same, with each step of each claim.
    pub fn trace(&self, claims: &[Claim], go_on: GoOn<'_>) -> Result<(Outcome, Vec<Step>), Exceeded> {
        let mut trace = Trace::of_all();
        let outcome = self.run_all(claims, &mut trace, go_on)?;
        Ok((outcome, trace.into_steps()))
    }

    /// The ids of the rules, in the order of running.
    pub fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.rules.iter().map(|rule| rule.id)
    }

    fn run_all(&self, claims: &[Claim], trace: &mut Trace, go_on: GoOn<'_>) -> Result<Outcome, Exceeded> {
        // bounds the input, even where most of the claims are equal
        if claims.len() > crate::MAX_CLAIMS {
            return Err(Exceeded::Claims);
        }
        let mut pool = Pool::default();
        for claim in claims {
            pool.put(claim.clone(), Disposition::fresh())?;
        }
        let mut current = pool.into_claims()?;
        let mut first = 0;
        for group in self.rules.chunk_by(|one, next| one.priority == next.priority) {
            current = run((first, group), current, trace, go_on)?;
            first += group.len();
        }
        Ok(Outcome {
            claims: current
                .into_iter()
                .map(|(claim, disposition)| self.output(claim, &disposition))
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
            path: disposition.path.indexes().filter_map(|index| Some(self.rules.get(index)?.id)).collect(),
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

/// The work between two looks at the clock: a search counts its pattern's weight times the text's bytes, and each claim that a rule
/// looks at counts a little.
const WORK_BETWEEN_LOOKS: u64 = 1_000_000;
const WORK_OF_A_CLAIM: u64 = 500;

/// A group under way.
struct Running<'a> {
    /// The rules, with their indexes in the set.
    rules: Vec<(usize, &'a CompiledRule)>,
    /// Whether each rule finds the type of the last claim: claims of one type often follow each other.
    found_type: Vec<Option<bool>>,
    last_type: String,
    /// Since the last look at the clock.
    work: u64,
}

impl<'a> Running<'a> {
    fn new(first: usize, group: &'a [CompiledRule]) -> Self {
        let found_type = vec![None; group.len()];
        Self {
            rules: (first..).zip(group).collect(),
            found_type,
            last_type: String::new(),
            work: WORK_BETWEEN_LOOKS,
        }
    }

    /// The rules that look at a claim, with whether they match it.
    fn looking(
        &mut self,
        claim: &Claim,
        go_on: GoOn<'_>,
    ) -> Result<Vec<(usize, &'a CompiledRule, bool)>, Exceeded> {
        if self.last_type != claim.claim_type {
            self.last_type.clone_from(&claim.claim_type);
            self.found_type.fill(None);
        }
        let mut looking = Vec::with_capacity(self.rules.len());
        for ((index, rule), found_type) in self.rules.iter().zip(&mut self.found_type) {
            if !rule.looks_at(claim.source) {
                continue;
            }
            self.work = self.work.saturating_add(rule.work(claim)).saturating_add(WORK_OF_A_CLAIM);
            if self.work >= WORK_BETWEEN_LOOKS {
                self.work = 0;
                if !go_on() {
                    return Err(Exceeded::Time);
                }
            }
            let is_type = match *found_type {
                Some(found) => found,
                None => *found_type.insert(rule.finds_type(claim)?),
            };
            looking.push((*index, *rule, is_type && rule.finds_value(claim)?));
        }
        Ok(looking)
    }
}

/// Runs one group; `first` is the index of its first rule in the set.
fn run(
    (first, group): (usize, &[CompiledRule]),
    claims: Vec<(Claim, Disposition)>,
    trace: &mut Trace,
    go_on: GoOn<'_>,
) -> Result<Vec<(Claim, Disposition)>, Exceeded> {
    let mut running = Running::new(first, group);
    let mut forwarded = Pool::default();
    let mut reasons = BTreeSet::new();
    for (claim, disposition) in claims {
        if is_protected(&claim.claim_type) {
            let number = forwarded.number();
            forwarded.keep(number, claim, disposition)?;
            continue;
        }
        let looking = running.looking(&claim, go_on)?;
        let removed = looking.iter().any(|(_, rule, matched)| *matched && rule.rule_type == RuleType::Remove);
        let mut decided = false;
        let mut is_forwarded = false;
        let mut unchanged: Option<(usize, Disposition)> = None;
        for &(index, rule, matched) in &looking {
            decided |= rule.rule_type != RuleType::Add;
            let passes = match rule.rule_type {
                RuleType::Filter => matched,
                RuleType::Remove => !removed,
                RuleType::Transform if matched => {
                    if let Some(rewritten) = rule.rewrite(&claim, go_on)? {
                        is_forwarded = true;
                        trace.note_forwarded(rule, &claim, &rewritten)?;
                        forwarded.put(rewritten, disposition.through(index, rule))?;
                    }
                    false
                }
                RuleType::Add if matched => {
                    reasons.insert(index);
                    false
                }
                RuleType::Transform | RuleType::Add => false,
            };
            if passes {
                is_forwarded = true;
                trace.note_forwarded(rule, &claim, &claim)?;
                match &mut unchanged {
                    Some((_, known)) => known.merge_through(&disposition, index, rule),
                    None => unchanged = Some((forwarded.number(), disposition.through(index, rule))),
                }
            }
        }
        let holding =
            looking.iter().filter(|(_, rule, matched)| !is_forwarded && rule.can_hold_back(*matched));
        for (_, rule, _) in holding {
            trace.note(rule, &claim, Effect::Dropped)?;
        }
        if !decided {
            unchanged = Some((forwarded.number(), disposition));
        }
        if let Some((number, disposition)) = unchanged {
            forwarded.keep(number, claim, disposition)?;
        }
    }
    for (index, rule) in (first..).zip(group).filter(|(_, rule)| rule.rule_type == RuleType::Add) {
        if let Some(claim) = rule.addition()
            && (rule.is_unconditional() || reasons.contains(&index))
        {
            trace.note(rule, &claim, Effect::Added)?;
            forwarded.put(claim, Disposition::fresh().through(index, rule))?;
        }
    }
    forwarded.into_claims()
}
