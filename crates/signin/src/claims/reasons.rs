//! The claims that tokens would contain, with the reason of each. Facts, rules and selection are evaluated by the
//! functions that issue; only the reasons are determined here.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use chancery_claims::OutClaim;
use chancery_management::claim_rule::{Unusable, run};
use chancery_oauth::GROUPS;
use chancery_resource::{Problem, Tx};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    person_claims::{self, ClaimGroups, PersonClaims},
    release::{ReleasedClaims, release_claims, without_rules},
    release_policy::{
        Issue, ReleasePolicy, ReleaseReason, ReleaseTarget, TypeOfClaim, WithholdReason, release_reason,
    },
    rules_of,
};
use crate::{
    client_app::{Application, claim_rules::Rules},
    grant::granted::Granted,
    person::Admitted,
};

/// The facts about a person, and the release policy of a client app.
pub struct Preview {
    facts: PersonClaims,
    rules: Option<Rules>,
    tokens: ReleasePolicy,
    userinfo: ReleasePolicy,
}

/// The claims that would be released.
pub struct Previewed {
    /// The claims of ID token and access token.
    pub tokens: ReleasedClaims,
    /// The claims of the UserInfo endpoint.
    pub userinfo: Map<String, Value>,
    /// The reasons for the ID token, the access token and the UserInfo endpoint.
    pub reasons: [Reasons; 3],
}

/// Why claims are released to one target, or are not.
#[derive(Debug, Default)]
pub struct Reasons {
    /// For each released claim: the reason, and the rules that it passed.
    pub released: BTreeMap<String, (ReleaseReason, Vec<Uuid>)>,
    /// Claims that are withheld, fully or in part, each with a reason.
    pub withheld: BTreeSet<(WithholdReason, String)>,
}

impl Preview {
    /// Reads the facts about a person; `None` if the user no longer exists.
    pub fn read(
        tx: &mut Tx<'_>,
        application: &Application,
        granted: &Granted,
        user: &Admitted,
    ) -> Result<Option<Self>, Problem> {
        let rules = rules_of(tx, application, granted)?;
        let Some(facts) = person_claims::read(tx, user, ClaimGroups::ALL, &granted.provider_claims)? else {
            return Ok(None);
        };
        let policy = |issue| ReleasePolicy::new(application, granted, &granted.scope, issue);
        Ok(Some(Self { facts, rules, tokens: policy(Issue::Tokens), userinfo: policy(Issue::UserInfo) }))
    }

    /// Runs the rules and selects the claims of tokens. Call it outside of transactions.
    ///
    /// # Errors
    /// The rules cannot run.
    pub fn evaluate(&self) -> Result<Previewed, Unusable> {
        let Self { facts, rules, tokens: policy, userinfo } = self;
        let claims = match rules {
            Some(rules) => run(&*rules.compile()?, facts.claims.clone(), false)?.outcome.claims,
            None => without_rules(facts),
        };
        let tokens = release_claims(&claims, facts, policy)?;
        let released = release_claims(&claims, facts, userinfo)?.userinfo;
        let of = |target, policy, released: &[&String]| reasons(target, &claims, facts, policy, released);
        let reasons = [
            of(ReleaseTarget::IdToken, policy, &tokens.id_token.keys().collect::<Vec<_>>()),
            of(ReleaseTarget::AccessToken, policy, &tokens.access_token.keys().collect::<Vec<_>>()),
            of(ReleaseTarget::UserInfo, userinfo, &released.keys().collect::<Vec<_>>()),
        ];
        Ok(Previewed { tokens, userinfo: released, reasons })
    }
}

/// Why these claims are released to a target, and why others are not.
fn reasons(
    target: ReleaseTarget,
    claims: &[OutClaim],
    facts: &PersonClaims,
    policy: &ReleasePolicy,
    released: &[&String],
) -> Reasons {
    let released: HashSet<&str> = released.iter().map(|name| name.as_str()).collect();
    // the groups claim is also released as an empty list, or replaced by `groups_truncated`, without a claim of its
    // own
    let bare = released.iter().map(|name| ((*name).to_owned(), (ReleaseReason::Groups, Vec::new())));
    let mut reasons = Reasons { released: bare.collect(), withheld: BTreeSet::new() };
    let mut passed: HashSet<(&str, Uuid)> = HashSet::new();
    let mut explained: HashSet<&str> = HashSet::new();
    for claim in claims {
        let name = claim.claim_type.as_str();
        let why = match release_reason(target, claim, TypeOfClaim::of(name), facts, policy) {
            Ok(_) if !released.contains(name) => WithholdReason::NoRoom,
            Ok(reason) => {
                let Some((by, rules)) = reasons.released.get_mut(name) else { continue };
                if explained.insert(name) {
                    *by = reason;
                }
                rules.extend(claim.path.iter().copied().filter(|rule| passed.insert((name, *rule))));
                continue;
            }
            // these would be one for each claim, and none indicates an error
            Err(WithholdReason::NoRule | WithholdReason::Protected) => continue,
            Err(why) => why,
        };
        reasons.withheld.insert((why, name.to_owned()));
    }
    if target != ReleaseTarget::AccessToken {
        let forwarded: HashSet<&str> = claims.iter().map(|claim| claim.claim_type.as_str()).collect();
        let dropped = facts.claims.iter().filter(|claim| !forwarded.contains(claim.claim_type.as_str()));
        let dropped = dropped.filter(|claim| claim.claim_type != GROUPS || !released.contains(GROUPS));
        reasons.withheld.extend(dropped.map(|claim| (WithholdReason::Dropped, claim.claim_type.clone())));
    }
    reasons
}
