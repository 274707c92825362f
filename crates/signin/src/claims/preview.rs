//! What tokens would tell of a person, with the reason for each claim. Claims, rules and what is told come from the functions that
//! issue; only the reasons are found here.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use chancery_claims::OutClaim;
use chancery_management::claim_rule::{Unusable, run};
use chancery_oauth::GROUPS;
use chancery_resource::{Problem, Tx};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    facts::{self, Facts, Wanted},
    rules::Rules,
    rules_of,
    told::{Asked, Ground, Issue, Place, ReleasedClaims, TypeOfClaim, Withheld, release, tell, untouched},
};
use crate::{application::Application, granted::Granted, person::Admitted};

/// What is known of a person, and what a client app asks for.
pub struct Preview {
    facts: Facts,
    rules: Option<Rules>,
    tokens: Asked,
    userinfo: Asked,
}

/// What tokens would tell.
pub struct Previewed {
    /// What ID token and access token tell.
    pub tokens: ReleasedClaims,
    /// What the UserInfo endpoint tells.
    pub userinfo: Map<String, Value>,
    /// The reasons: of the ID token, of the access token, and of the UserInfo endpoint.
    pub reasons: [Reasons; 3],
}

/// Why claims are told in one place, or are not.
#[derive(Debug, Default)]
pub struct Reasons {
    /// Of each claim that is told: by what, and the rules that it passed.
    pub told: BTreeMap<String, (Ground, Vec<Uuid>)>,
    /// Claims that are not told, or not with all of their values, each with a reason.
    pub withheld: BTreeSet<(Withheld, String)>,
}

impl Preview {
    /// Reads what is known of a person; `None` if the user does not exist any more.
    ///
    /// # Errors
    /// Those of the store.
    pub fn read(
        tx: &mut Tx<'_>,
        application: &Application,
        granted: &Granted,
        user: &Admitted,
    ) -> Result<Option<Self>, Problem> {
        let rules = rules_of(tx, application, granted)?;
        let Some(facts) = facts::read(tx, user, Wanted::ALL, &granted.provider_claims)? else {
            return Ok(None);
        };
        let asked = |issue| Asked::new(application, (granted, &granted.scope), issue);
        Ok(Some(Self { facts, rules, tokens: asked(Issue::Tokens), userinfo: asked(Issue::UserInfo) }))
    }

    /// Runs the rules, and tells what tokens would tell. Call it outside of transactions.
    ///
    /// # Errors
    /// The rules cannot run.
    pub fn tell(&self) -> Result<Previewed, Unusable> {
        let Self { facts, rules, tokens: asked, userinfo } = self;
        let claims = match rules {
            Some(rules) => run(&*rules.compile()?, facts.claims.clone(), false)?.outcome.claims,
            None => untouched(facts),
        };
        let tokens = tell(&claims, facts, asked)?;
        let told = tell(&claims, facts, userinfo)?.userinfo;
        let of = |place, asked, told: &[&String]| reasons(place, (&claims, facts), asked, told);
        let reasons = [
            of(Place::IdToken, asked, &tokens.id_token.keys().collect::<Vec<_>>()),
            of(Place::AccessToken, asked, &tokens.access_token.keys().collect::<Vec<_>>()),
            of(Place::UserInfo, userinfo, &told.keys().collect::<Vec<_>>()),
        ];
        Ok(Previewed { tokens, userinfo: told, reasons })
    }
}

/// Why these claims are told in a place, and why others are not.
fn reasons(place: Place, (claims, facts): (&[OutClaim], &Facts), asked: &Asked, told: &[&String]) -> Reasons {
    let told: HashSet<&str> = told.iter().map(|name| name.as_str()).collect();
    // a list of groups is told where there are none, too, and where there are too many, that it is
    let bare = told.iter().map(|name| ((*name).to_owned(), (Ground::Groups, Vec::new())));
    let mut reasons = Reasons { told: bare.collect(), withheld: BTreeSet::new() };
    let mut passed: HashSet<(&str, Uuid)> = HashSet::new();
    let mut grounds: HashSet<&str> = HashSet::new();
    for claim in claims {
        let name = claim.claim_type.as_str();
        let why = match release(place, (claim, TypeOfClaim::of(name)), facts, asked) {
            Ok(_) if !told.contains(name) => Withheld::NoRoom,
            Ok(ground) => {
                let Some((by, rules)) = reasons.told.get_mut(name) else { continue };
                if grounds.insert(name) {
                    *by = ground;
                }
                rules.extend(claim.path.iter().copied().filter(|rule| passed.insert((name, *rule))));
                continue;
            }
            // of these there would be one for each claim, and none says what is wrong
            Err(Withheld::NoRule | Withheld::Protected) => continue,
            Err(why) => why,
        };
        reasons.withheld.insert((why, name.to_owned()));
    }
    if place != Place::AccessToken {
        let forwarded: HashSet<&str> = claims.iter().map(|claim| claim.claim_type.as_str()).collect();
        let dropped = facts.claims.iter().filter(|claim| !forwarded.contains(claim.claim_type.as_str()));
        let dropped = dropped.filter(|claim| claim.claim_type != GROUPS || !told.contains(GROUPS));
        reasons.withheld.extend(dropped.map(|claim| (Withheld::Dropped, claim.claim_type.clone())));
    }
    reasons
}
