//! A group of rules: those of one priority. They all run on the same claims, and their results are merged.
//!
//! A user may be in hundreds of groups, and each of a hundred rules may match one of them. So the rules whose pattern matches only
//! one text are indexed by that text, and only the other rules search.

use std::collections::HashMap;

use crate::{
    Claim, LimitExceeded, RuleType, Source, is_protected,
    pattern::TimeCheck,
    pool::{Disposition, Numbered, Pool},
    rule::CompiledRule,
    trace::{Effect, Trace},
};

/// The work between two checks of the time limit. The work of a search is the pattern's weight times the text's bytes.
const WORK_BETWEEN_CHECKS: u64 = 1_000_000;
/// The work for each claim, and for each rule that is considered for it.
const WORK_OF_A_RULE: u64 = 500;

/// Positions of rules in their group.
type Positions = Vec<usize>;
/// Positions of the rules whose pattern matches only one text, by this text.
type ByText = HashMap<Box<[u8]>, Positions>;

/// A compiled group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The index of its first rule in the set.
    first: usize,
    rules: Vec<CompiledRule>,
    platform_rules: SourceRules,
    provider_rules: SourceRules,
}

/// The rules of a group that process the claims of one source, without an `Add` without patterns, which needs no claim.
#[derive(Clone, Debug, Default)]
struct SourceRules {
    /// Rules that match only one type.
    by_type: ByText,
    /// Rules that search the type.
    searching_type: Positions,
    /// Rules that match only one value.
    by_value: ByText,
    /// The `Remove` rules.
    removes: Positions,
    /// Whether claims that no rule forwards are dropped.
    drops_unforwarded: bool,
}

impl SourceRules {
    fn new(rules: &[CompiledRule], source: Source) -> Self {
        let mut indexed = Self::default();
        let needs_claim = |rule: &CompiledRule| rule.rule_type != RuleType::Add || !rule.is_unconditional();
        for (position, rule) in rules.iter().enumerate() {
            if !rule.processes(source) || !needs_claim(rule) {
                continue;
            }
            match rule.only_type() {
                Some(only) => indexed.by_type.entry(only.into()).or_default().push(position),
                None => indexed.searching_type.push(position),
            }
            if let Some(only) = rule.only_value() {
                indexed.by_value.entry(only.into()).or_default().push(position);
            }
            if rule.rule_type == RuleType::Remove {
                indexed.removes.push(position);
            }
            indexed.drops_unforwarded |= rule.rule_type != RuleType::Add;
        }
        indexed
    }

    fn is_empty(&self) -> bool {
        self.by_type.is_empty() && self.searching_type.is_empty()
    }
}

/// The positions of the rules that match this text.
fn matching<'a>(by_text: &'a ByText, text: &str) -> &'a [usize] {
    by_text.get(text.as_bytes()).map_or(&[], Vec::as_slice)
}

impl Group {
    /// A group of rules in the order of running; `first` is the index of its first rule in the set.
    pub(crate) fn new(first: usize, rules: Vec<CompiledRule>) -> Self {
        let platform_rules = SourceRules::new(&rules, Source::Platform);
        let provider_rules = SourceRules::new(&rules, Source::IdentityProvider);
        Self { first, rules, platform_rules, provider_rules }
    }

    const fn rules_of(&self, source: Source) -> &SourceRules {
        match source {
            Source::Platform => &self.platform_rules,
            Source::IdentityProvider => &self.provider_rules,
        }
    }

    /// Rules with their positions.
    fn at<'a>(&'a self, positions: &'a [usize]) -> impl Iterator<Item = (usize, &'a CompiledRule)> {
        positions.iter().filter_map(|position| Some((*position, self.rules.get(*position)?)))
    }

    /// Runs the group on claims without duplicates.
    pub(crate) fn run(
        &self,
        claims: Vec<Numbered>,
        trace: &mut Trace,
        has_time: TimeCheck<'_>,
    ) -> Result<Vec<Numbered>, LimitExceeded> {
        let mut has_match = vec![false; self.rules.len()];
        let mut forwarded = if self.platform_rules.is_empty() && self.provider_rules.is_empty() {
            Pool::of(claims)
        } else {
            self.forward_all(claims, &mut has_match, trace, has_time)?
        };
        for ((position, rule), has_match) in self.rules.iter().enumerate().zip(has_match) {
            if rule.rule_type == RuleType::Add
                && (has_match || rule.is_unconditional())
                && let Some(claim) = rule.addition()
            {
                trace.record(rule, &claim, Effect::Added)?;
                forwarded.add(claim, Disposition::initial().after(self.first + position, rule))?;
            }
        }
        forwarded.into_claims()
    }

    /// Runs the rules on claims; sets `has_match` of the rules that match one.
    fn forward_all(
        &self,
        claims: Vec<Numbered>,
        has_match: &mut [bool],
        trace: &mut Trace,
        has_time: TimeCheck<'_>,
    ) -> Result<Pool, LimitExceeded> {
        let mut search = Search::new(self, has_time);
        let mut forwarded = Pool::default();
        for (_, claim, disposition) in claims {
            search.search(&claim)?;
            for position in &search.matched {
                if let Some(has_match) = has_match.get_mut(*position) {
                    *has_match = true;
                }
            }
            let unchanged = if search.drops_unforwarded {
                self.forward(&claim, &disposition, &search, &mut forwarded, trace)?
            } else {
                Some((forwarded.number(), disposition))
            };
            if let Some((number, disposition)) = unchanged {
                forwarded.add_distinct(number, claim, disposition)?;
            }
        }
        Ok(forwarded)
    }

    /// Runs the rules on a claim. Returns its number and disposition if a rule forwards it unchanged.
    fn forward(
        &self,
        claim: &Claim,
        before: &Disposition,
        search: &Search<'_>,
        forwarded: &mut Pool,
        trace: &mut Trace,
    ) -> Result<Option<(usize, Disposition)>, LimitExceeded> {
        let mut is_forwarded = false;
        let mut unchanged: Option<(usize, Disposition)> = None;
        for (position, rule) in self.at(&search.forwarding) {
            let index = self.first + position;
            if rule.rule_type == RuleType::Transform {
                if let Some(rewritten) = rule.rewrite(claim, search.clock.has_time)? {
                    is_forwarded = true;
                    trace.record_forwarded(rule, claim, &rewritten)?;
                    forwarded.add(rewritten, before.after(index, rule))?;
                }
                continue;
            }
            is_forwarded = true;
            trace.record_forwarded(rule, claim, claim)?;
            match &mut unchanged {
                Some((_, known)) => known.merge_after(before, index, rule),
                None => unchanged = Some((forwarded.number(), before.after(index, rule))),
            }
        }
        if !is_forwarded && trace.is_enabled() {
            let involved = self.rules.iter().enumerate().filter(|(_, rule)| rule.processes(claim.source));
            for (position, rule) in involved {
                if rule.can_drop(search.matched.contains(&position)) {
                    trace.record(rule, claim, Effect::Dropped)?;
                }
            }
        }
        Ok(unchanged)
    }
}

/// The work since the last check of the time limit.
struct Clock<'a> {
    has_time: TimeCheck<'a>,
    work: u64,
}

impl Clock<'_> {
    /// Counts work before it is done.
    fn spend(&mut self, work: u64) -> Result<(), LimitExceeded> {
        self.work = self.work.saturating_add(work);
        if self.work < WORK_BETWEEN_CHECKS {
            return Ok(());
        }
        self.work = 0;
        if (self.has_time)() { Ok(()) } else { Err(LimitExceeded::Time) }
    }

    /// Counts the work of considering rules.
    fn consider(&mut self, rules: usize) -> Result<(), LimitExceeded> {
        self.spend(u64::try_from(rules).unwrap_or(u64::MAX).saturating_mul(WORK_OF_A_RULE))
    }
}

/// The matches of a group's rules in one claim after another.
struct Search<'a> {
    group: &'a Group,
    clock: Clock<'a>,
    /// Type and source of the last claim: claims of one type often follow each other.
    last: Option<(String, Source)>,
    /// Whether claims of this type and source are dropped unless a rule forwards them.
    drops_unforwarded: bool,
    /// Whether rules process claims of this type and source.
    is_processed: bool,
    /// Whether each rule matches the type.
    matches_type: Vec<bool>,
    /// The rules that match the type and search the value.
    searching_value: Positions,
    /// The rules that match the claim.
    matched: Positions,
    /// The rules that forward the claim, perhaps rewritten, in ascending order.
    forwarding: Positions,
}

impl<'a> Search<'a> {
    fn new(group: &'a Group, has_time: TimeCheck<'a>) -> Self {
        Self {
            group,
            // the time limit is checked before the first search
            clock: Clock { has_time, work: WORK_BETWEEN_CHECKS },
            last: None,
            drops_unforwarded: false,
            is_processed: false,
            matches_type: vec![false; group.rules.len()],
            searching_value: Vec::new(),
            matched: Vec::new(),
            forwarding: Vec::new(),
        }
    }

    /// Finds the rules that match a claim, and the rules that forward it.
    fn search(&mut self, claim: &Claim) -> Result<(), LimitExceeded> {
        if !matches!(&self.last, Some((last, source)) if *source == claim.source && *last == claim.claim_type)
        {
            self.last = Some((claim.claim_type.clone(), claim.source));
            self.search_type(claim)?;
        }
        self.matched.clear();
        self.forwarding.clear();
        if !self.is_processed {
            return Ok(());
        }
        let rules = self.group.rules_of(claim.source);
        let indexed = matching(&rules.by_value, &claim.value);
        self.clock.consider(1 + indexed.len() + rules.removes.len())?;
        self.matched
            .extend(indexed.iter().filter(|position| self.matches_type.get(**position) == Some(&true)));
        for (position, rule) in self.group.at(&self.searching_value) {
            self.clock.consider(1)?;
            self.clock.spend(rule.work_of_value(claim))?;
            if rule.matches_value(claim)? {
                self.matched.push(position);
            }
        }
        let mut is_removed = false;
        for (position, rule) in self.group.at(&self.matched) {
            match rule.rule_type {
                RuleType::Filter | RuleType::Transform => self.forwarding.push(position),
                RuleType::Remove => is_removed = true,
                RuleType::Add => {}
            }
        }
        if !is_removed {
            self.forwarding.extend(&rules.removes);
        }
        self.forwarding.sort_unstable();
        Ok(())
    }

    /// Finds the rules that match the type of a claim.
    fn search_type(&mut self, claim: &Claim) -> Result<(), LimitExceeded> {
        let rules = self.group.rules_of(claim.source);
        self.is_processed = !rules.is_empty() && !is_protected(&claim.claim_type);
        self.drops_unforwarded = self.is_processed && rules.drops_unforwarded;
        self.matches_type.fill(false);
        self.searching_value.clear();
        if !self.is_processed {
            return Ok(());
        }
        let indexed = matching(&rules.by_type, &claim.claim_type);
        self.clock.consider(1 + indexed.len())?;
        let mut matched = indexed.to_vec();
        for (position, rule) in self.group.at(&rules.searching_type) {
            self.clock.consider(1)?;
            self.clock.spend(rule.work_of_type(claim))?;
            if rule.matches_type(claim)? {
                matched.push(position);
            }
        }
        for (position, rule) in self.group.at(&matched) {
            if let Some(matches_type) = self.matches_type.get_mut(position) {
                *matches_type = true;
            }
            if rule.only_value().is_none() {
                self.searching_value.push(position);
            }
        }
        Ok(())
    }
}
