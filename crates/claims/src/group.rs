//! A group of rules: those of one priority. They all run on the same claims, and what they forward is united.
//!
//! A person may be in hundreds of groups, and each of a hundred rules may look for one of them. So a rule that looks for one whole text
//! is found by that text, and only the other rules search.

use std::collections::HashMap;

use crate::{
    Claim, Exceeded, RuleType, Source, is_protected,
    pattern::GoOn,
    pool::{Disposition, Numbered, Pool},
    rule::CompiledRule,
    trace::{Effect, Trace},
};

/// The work between two looks at the clock: a search counts its pattern's weight times the text's bytes, and each claim, and each rule
/// that is considered for it, counts a little.
const WORK_BETWEEN_LOOKS: u64 = 1_000_000;
const WORK_OF_A_RULE: u64 = 500;

/// Places of rules in their group.
type Places = Vec<usize>;
/// Places of the rules that look for one whole text, by this text.
type ByText = HashMap<Box<[u8]>, Places>;

/// A compiled group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The index of its first rule in the set.
    first: usize,
    rules: Vec<CompiledRule>,
    of_platform: Looking,
    of_provider: Looking,
}

/// The rules of a group that look at the claims of one source. An `Add` without patterns needs no claim, so it is not among them.
#[derive(Clone, Debug, Default)]
struct Looking {
    /// Those that look for one whole type.
    by_type: ByText,
    /// Those that search the type.
    searching_type: Places,
    /// Those that look for one whole value.
    by_value: ByText,
    /// The `Remove` rules.
    removes: Places,
    /// Whether a claim that no rule forwards goes no further.
    decides: bool,
}

impl Looking {
    fn new(rules: &[CompiledRule], source: Source) -> Self {
        let mut looking = Self::default();
        let needs_claim = |rule: &CompiledRule| rule.rule_type != RuleType::Add || !rule.is_unconditional();
        for (place, rule) in rules.iter().enumerate() {
            if !rule.looks_at(source) || !needs_claim(rule) {
                continue;
            }
            match rule.only_type() {
                Some(only) => looking.by_type.entry(only.into()).or_default().push(place),
                None => looking.searching_type.push(place),
            }
            if let Some(only) = rule.only_value() {
                looking.by_value.entry(only.into()).or_default().push(place);
            }
            if rule.rule_type == RuleType::Remove {
                looking.removes.push(place);
            }
            looking.decides |= rule.rule_type != RuleType::Add;
        }
        looking
    }

    fn is_empty(&self) -> bool {
        self.by_type.is_empty() && self.searching_type.is_empty()
    }
}

/// The places of the rules that look for this text.
fn named<'a>(by_text: &'a ByText, text: &str) -> &'a [usize] {
    by_text.get(text.as_bytes()).map_or(&[], Vec::as_slice)
}

impl Group {
    /// A group of rules in the order of running; `first` is the index of its first rule in the set.
    pub(crate) fn new(first: usize, rules: Vec<CompiledRule>) -> Self {
        let of_platform = Looking::new(&rules, Source::Platform);
        let of_provider = Looking::new(&rules, Source::IdentityProvider);
        Self { first, rules, of_platform, of_provider }
    }

    const fn looking(&self, source: Source) -> &Looking {
        match source {
            Source::Platform => &self.of_platform,
            Source::IdentityProvider => &self.of_provider,
        }
    }

    /// Rules with their places.
    fn at<'a>(&'a self, places: &'a [usize]) -> impl Iterator<Item = (usize, &'a CompiledRule)> {
        places.iter().filter_map(|place| Some((*place, self.rules.get(*place)?)))
    }

    /// Runs the group on claims that differ from each other.
    pub(crate) fn run(
        &self,
        claims: Vec<Numbered>,
        trace: &mut Trace,
        go_on: GoOn<'_>,
    ) -> Result<Vec<Numbered>, Exceeded> {
        let mut has_reason = vec![false; self.rules.len()];
        let mut forwarded = if self.of_platform.is_empty() && self.of_provider.is_empty() {
            Pool::of(claims)
        } else {
            self.forward_all(claims, &mut has_reason, (trace, go_on))?
        };
        for ((place, rule), has_reason) in self.rules.iter().enumerate().zip(has_reason) {
            if rule.rule_type == RuleType::Add
                && (has_reason || rule.is_unconditional())
                && let Some(claim) = rule.addition()
            {
                trace.note(rule, &claim, Effect::Added)?;
                forwarded.put(claim, Disposition::fresh().through(self.first + place, rule))?;
            }
        }
        forwarded.into_claims()
    }

    /// Forwards what the rules make of claims, and notes the rules that match one.
    fn forward_all(
        &self,
        claims: Vec<Numbered>,
        has_reason: &mut [bool],
        (trace, go_on): (&mut Trace, GoOn<'_>),
    ) -> Result<Pool, Exceeded> {
        let mut search = Search::new(self, go_on);
        let mut forwarded = Pool::default();
        for (_, claim, disposition) in claims {
            search.look(&claim)?;
            for place in &search.matched {
                if let Some(has_reason) = has_reason.get_mut(*place) {
                    *has_reason = true;
                }
            }
            let unchanged = if search.decides {
                self.forward((&claim, &disposition), &search, (&mut forwarded, trace))?
            } else {
                Some((forwarded.number(), disposition))
            };
            if let Some((number, disposition)) = unchanged {
                forwarded.keep(number, claim, disposition)?;
            }
        }
        Ok(forwarded)
    }

    /// Forwards what the rules make of a claim. Returns the number and the fate of the claim as it is, where a rule forwards that.
    fn forward(
        &self,
        (claim, before): (&Claim, &Disposition),
        search: &Search<'_>,
        (forwarded, trace): (&mut Pool, &mut Trace),
    ) -> Result<Option<(usize, Disposition)>, Exceeded> {
        let mut is_forwarded = false;
        let mut unchanged: Option<(usize, Disposition)> = None;
        for (place, rule) in self.at(&search.forwarding) {
            let index = self.first + place;
            if rule.rule_type == RuleType::Transform {
                if let Some(rewritten) = rule.rewrite(claim, search.clock.go_on)? {
                    is_forwarded = true;
                    trace.note_forwarded(rule, claim, &rewritten)?;
                    forwarded.put(rewritten, before.through(index, rule))?;
                }
                continue;
            }
            is_forwarded = true;
            trace.note_forwarded(rule, claim, claim)?;
            match &mut unchanged {
                Some((_, known)) => known.merge_through(before, index, rule),
                None => unchanged = Some((forwarded.number(), before.through(index, rule))),
            }
        }
        if !is_forwarded && trace.is_on() {
            let looking = self.rules.iter().enumerate().filter(|(_, rule)| rule.looks_at(claim.source));
            for (place, rule) in looking {
                if rule.can_hold_back(search.matched.contains(&place)) {
                    trace.note(rule, claim, Effect::Dropped)?;
                }
            }
        }
        Ok(unchanged)
    }
}

/// When the clock was looked at last, in work.
struct Clock<'a> {
    go_on: GoOn<'a>,
    work: u64,
}

impl Clock<'_> {
    /// Counts work before it is done.
    fn spend(&mut self, work: u64) -> Result<(), Exceeded> {
        self.work = self.work.saturating_add(work);
        if self.work < WORK_BETWEEN_LOOKS {
            return Ok(());
        }
        self.work = 0;
        if (self.go_on)() { Ok(()) } else { Err(Exceeded::Time) }
    }

    /// Counts that so many rules are considered.
    fn consider(&mut self, rules: usize) -> Result<(), Exceeded> {
        self.spend(u64::try_from(rules).unwrap_or(u64::MAX).saturating_mul(WORK_OF_A_RULE))
    }
}

/// What the rules of a group find in one claim after another.
struct Search<'a> {
    group: &'a Group,
    clock: Clock<'a>,
    /// Type and source of the last claim: claims of one type often follow each other.
    last: Option<(String, Source)>,
    /// Whether rules decide on claims of this type and source: then only what they forward goes on.
    decides: bool,
    /// Whether rules look at claims of this type and source.
    looks: bool,
    /// Whether each rule finds the type.
    finds_type: Vec<bool>,
    /// The rules that find the type and search the value.
    searching_value: Places,
    /// The rules that match the claim.
    matched: Places,
    /// The rules that forward something of the claim, ascending.
    forwarding: Places,
}

impl<'a> Search<'a> {
    fn new(group: &'a Group, go_on: GoOn<'a>) -> Self {
        Self {
            group,
            // the first search is preceded by a look
            clock: Clock { go_on, work: WORK_BETWEEN_LOOKS },
            last: None,
            decides: false,
            looks: false,
            finds_type: vec![false; group.rules.len()],
            searching_value: Vec::new(),
            matched: Vec::new(),
            forwarding: Vec::new(),
        }
    }

    /// Finds the rules that match a claim, and of those that decide the ones that forward something.
    fn look(&mut self, claim: &Claim) -> Result<(), Exceeded> {
        if !matches!(&self.last, Some((last, source)) if *source == claim.source && *last == claim.claim_type)
        {
            self.last = Some((claim.claim_type.clone(), claim.source));
            self.turn_to(claim)?;
        }
        self.matched.clear();
        self.forwarding.clear();
        if !self.looks {
            return Ok(());
        }
        let looking = self.group.looking(claim.source);
        let named = named(&looking.by_value, &claim.value);
        self.clock.consider(1 + named.len() + looking.removes.len())?;
        self.matched.extend(named.iter().filter(|place| self.finds_type.get(**place) == Some(&true)));
        for (place, rule) in self.group.at(&self.searching_value) {
            self.clock.consider(1)?;
            self.clock.spend(rule.work_of_value(claim))?;
            if rule.finds_value(claim)? {
                self.matched.push(place);
            }
        }
        let mut is_removed = false;
        for (place, rule) in self.group.at(&self.matched) {
            match rule.rule_type {
                RuleType::Filter | RuleType::Transform => self.forwarding.push(place),
                RuleType::Remove => is_removed = true,
                RuleType::Add => {}
            }
        }
        if !is_removed {
            self.forwarding.extend(&looking.removes);
        }
        self.forwarding.sort_unstable();
        Ok(())
    }

    /// Finds the rules that find the type of this claim.
    fn turn_to(&mut self, claim: &Claim) -> Result<(), Exceeded> {
        let looking = self.group.looking(claim.source);
        self.looks = !looking.is_empty() && !is_protected(&claim.claim_type);
        self.decides = self.looks && looking.decides;
        self.finds_type.fill(false);
        self.searching_value.clear();
        if !self.looks {
            return Ok(());
        }
        let named = named(&looking.by_type, &claim.claim_type);
        self.clock.consider(1 + named.len())?;
        let mut found = named.to_vec();
        for (place, rule) in self.group.at(&looking.searching_type) {
            self.clock.consider(1)?;
            self.clock.spend(rule.work_of_type(claim))?;
            if rule.finds_type(claim)? {
                found.push(place);
            }
        }
        for (place, rule) in self.group.at(&found) {
            if let Some(finds_type) = self.finds_type.get_mut(place) {
                *finds_type = true;
            }
            if rule.only_value().is_none() {
                self.searching_value.push(place);
            }
        }
        Ok(())
    }
}
