//! The rules together: groups, one after another.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::{
    Claim, Exceeded, OutClaim, Outcome, Rule, RuleType, is_protected,
    pool::{Fate, Pool},
    rule::Compiled,
};

/// What is wrong with one of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which rule.
    pub rule: Uuid,
    /// Which member, by the name of its column.
    pub member: &'static str,
    /// What is wrong, for people.
    pub detail: String,
}

/// The rules that apply, ready to run.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// By priority, within one by id: the order in which rules are given shows nowhere.
    rules: Vec<Compiled>,
}

impl RuleSet {
    /// Compiles the rules; `Err` names every member that is bad.
    pub fn new(rules: &[Rule]) -> Result<Self, Vec<Fault>> {
        let mut compiled = Vec::with_capacity(rules.len());
        let mut faults = Vec::new();
        for rule in rules {
            match Compiled::new(rule) {
                Ok(good) => compiled.push(good),
                Err(wrong) => faults.extend(wrong.into_iter().map(|(member, detail)| Fault {
                    rule: rule.id,
                    member,
                    detail,
                })),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        compiled.sort_by_key(|rule| (rule.priority, rule.id));
        Ok(Self { rules: compiled })
    }

    /// Runs the claims through the rules.
    pub fn evaluate(&self, claims: &[Claim]) -> Result<Outcome, Exceeded> {
        // the bound of what comes in, also where most of it is the same
        if claims.len() > crate::MAX_CLAIMS {
            return Err(Exceeded::Claims);
        }
        let mut pool = Pool::default();
        for claim in claims {
            pool.put(claim.clone(), Fate::fresh())?;
        }
        let mut current = pool.into_claims();
        let mut first = 0;
        for group in self.rules.chunk_by(|one, next| one.priority == next.priority) {
            current = run(first, group, &current)?;
            first += group.len();
        }
        Ok(Outcome { claims: current.into_iter().map(|(claim, fate)| self.told(claim, &fate)).collect() })
    }

    fn told(&self, claim: Claim, fate: &Fate) -> OutClaim {
        OutClaim {
            claim_type: claim.claim_type,
            value: claim.value,
            source: claim.source,
            destination: fate.destination,
            on_request: fate.on_request,
            path: fate.path.iter().filter_map(|place| Some(self.rules.get(*place)?.id)).collect(),
        }
    }
}

/// Runs one group, whose first rule has this place among all.
fn run(first: usize, group: &[Compiled], claims: &[(Claim, Fate)]) -> Result<Vec<(Claim, Fate)>, Exceeded> {
    let rules = || (first..).zip(group);
    let mut forwarded = Pool::default();
    let mut reasons = BTreeSet::new();
    for (claim, fate) in claims {
        if is_protected(&claim.claim_type) {
            forwarded.put(claim.clone(), fate.clone())?;
            continue;
        }
        let looking: Vec<_> = rules()
            .filter(|(_, rule)| rule.looks_at(claim.source))
            .map(|(place, rule)| (place, rule, rule.is_match(claim)))
            .collect();
        let removed = looking.iter().any(|(_, rule, matched)| *matched && rule.rule_type == RuleType::Remove);
        let mut decided = false;
        for (place, rule, matched) in looking {
            decided |= rule.rule_type != RuleType::Add;
            let passes = match rule.rule_type {
                RuleType::Filter if matched => Some(claim.clone()),
                RuleType::Remove if !removed => Some(claim.clone()),
                RuleType::Transform if matched => rule.rewrite(claim)?,
                RuleType::Add if matched => {
                    reasons.insert(place);
                    None
                }
                _ => None,
            };
            if let Some(passes) = passes {
                forwarded.put(passes, fate.through(place, rule))?;
            }
        }
        if !decided {
            forwarded.put(claim.clone(), fate.clone())?;
        }
    }
    for (place, rule) in rules().filter(|(_, rule)| rule.rule_type == RuleType::Add) {
        if let Some(claim) = rule.addition()
            && (rule.is_unconditional() || reasons.contains(&place))
        {
            forwarded.put(claim, Fate::fresh().through(place, rule))?;
        }
    }
    Ok(forwarded.into_claims())
}
