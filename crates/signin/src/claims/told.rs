//! What each token tells of the claims that the rules forwarded.

use std::collections::BTreeMap;

use chancery_claims::{Destination, OutClaim, Source, is_protected};
use chancery_management::claim_rule::Unusable;
use chancery_oauth::{GROUPS, OPENID};
use serde_json::{Map, Value, json};

use super::{
    facts::Facts,
    requested::{ENTRIES, Requested},
    scope_of,
};
use crate::{application::Application, granted::Granted};

/// The most group names in a token, and their most bytes: tokens are sent in headers, addresses and cookies.
const MOST_GROUPS: usize = 500;
const MOST_GROUP_BYTES: usize = 4 << 10;

/// What apps rely on: of these a provider's are told by rules alone.
const RELIED_ON: [&str; 5] = [GROUPS, "email", "email_verified", "phone_number", "phone_number_verified"];

/// Where claims are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The ID token.
    IdToken,
    /// The UserInfo endpoint.
    UserInfo,
    /// The access token.
    AccessToken,
}

impl Place {
    const fn name(self) -> &'static str {
        match self {
            Self::IdToken => "ID token",
            Self::UserInfo => "userinfo",
            Self::AccessToken => "access token",
        }
    }

    /// The most bytes of what rules send there, of groups, and of the user's entries. This server takes tokens of up to 8 KiB, which are
    /// base64 of these and others, and a signature.
    const fn bound(self) -> usize {
        match self {
            Self::IdToken => 4 << 10,
            Self::UserInfo => usize::MAX,
            Self::AccessToken => 2560,
        }
    }

    /// Whether claims of this destination go there.
    fn is_reached(self, destination: Destination) -> bool {
        let own = if self == Self::AccessToken { Destination::AccessToken } else { Destination::IdToken };
        destination & own == own
    }
}

/// What tokens tell about a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleasedClaims {
    /// In the ID token.
    pub id_token: Map<String, Value>,
    /// At the UserInfo endpoint.
    pub userinfo: Map<String, Value>,
    /// In the access token.
    pub access_token: BTreeMap<String, Value>,
}

/// What is issued or answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issue {
    /// An access token, and an ID token with the scope `openid`.
    Tokens,
    /// An access token in the place of another.
    Exchange,
    /// An answer of the UserInfo endpoint.
    UserInfo,
}

/// What a client app may be told.
#[derive(Clone, Debug)]
pub struct Asked {
    issue: Issue,
    scope: Vec<String>,
    requested: Requested,
    includes_groups: bool,
    tells_in_id_token: bool,
}

impl Asked {
    /// By tokens of this scope, which may be narrower than what was granted.
    pub fn new(application: &Application, (granted, scope): (&Granted, &str), issue: Issue) -> Self {
        Self {
            issue,
            scope: scope.split(' ').map(str::to_owned).collect(),
            // as the scope of a refresh: what the client app may not have any more is not told
            requested: granted.requested.clone().within(|word| application.may_have(word)),
            includes_groups: application.includes_groups,
            tells_in_id_token: application.tells_in_id_token,
        }
    }

    fn has(&self, word: &str) -> bool {
        self.scope.iter().any(|one| one == word)
    }

    /// Whether claims about the person are told, where there are no rules.
    pub fn is_told(&self) -> bool {
        match self.issue {
            Issue::UserInfo => true,
            Issue::Exchange => false,
            Issue::Tokens => {
                self.has(OPENID) && (self.tells_in_id_token || self.requested.is_about_id_token())
            }
        }
    }

    /// Whether entries of the user can be told.
    pub fn wants_entries(&self) -> bool {
        self.has(ENTRIES) || self.requested.may_name_entries()
    }

    /// Whether groups are told in this place, whatever rules do.
    fn tells_groups(&self, place: Place) -> bool {
        let is_place = match place {
            Place::IdToken => self.tells_in_id_token,
            Place::UserInfo => true,
            Place::AccessToken => false,
        };
        self.includes_groups && is_place
    }

    /// By what a claim of this scope is told in this place, given that its destination is there, or why it is not.
    fn judge(
        &self,
        place: Place,
        (claim, scope): (&OutClaim, Option<&'static str>),
        facts: &Facts,
    ) -> Result<Ground, Withheld> {
        let is_entry = scope.is_none() && facts.has_entry(claim);
        let Some(word) = scope.or_else(|| is_entry.then_some(ENTRIES)) else {
            return self.judge_other(place, claim);
        };
        if word == GROUPS && !self.includes_groups {
            return Err(Withheld::NoGroups);
        }
        // groups are told without their scope, too
        let is_granted = word == GROUPS || self.has(word);
        let by_scope = place != Place::IdToken || self.tells_in_id_token;
        if is_granted && by_scope {
            return Ok(if word == GROUPS { Ground::Groups } else { Ground::Scope(word) });
        }
        if (!is_entry || self.requested.allows_entries()) && self.is_named(place, claim) {
            return Ok(Ground::Name);
        }
        Err(if is_granted { Withheld::Minimal } else { Withheld::Scope(word) })
    }

    /// The same of a claim that rules made and no scope has.
    fn judge_other(&self, place: Place, claim: &OutClaim) -> Result<Ground, Withheld> {
        if !claim.on_request {
            Ok(Ground::Rule)
        } else if self.is_named(place, claim) {
            Ok(Ground::Name)
        } else if self.has(&claim.claim_type) {
            Ok(Ground::OwnScope)
        } else {
            Err(Withheld::OnRequest)
        }
    }

    /// Whether the request names a claim of this value for a place.
    fn is_named(&self, place: Place, claim: &OutClaim) -> bool {
        let (name, value) = (&claim.claim_type, || json_of(claim));
        match place {
            Place::IdToken => self.requested.is_in_id_token(name, value),
            Place::UserInfo => self.requested.is_in_userinfo(name, value),
            Place::AccessToken => {
                self.requested.is_in_id_token(name, value) || self.requested.is_in_userinfo(name, value)
            }
        }
    }
}

/// Why a claim is included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// By this scope, which is granted.
    Scope(&'static str),
    /// By a granted scope that is called like the claim.
    OwnScope,
    /// By its name in `claims`.
    Name,
    /// By `includeGroupsClaims` of the client app.
    Groups,
    /// By a claim rule that discloses it always.
    Rule,
}

/// Why a claim is not told in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Withheld {
    /// This scope is not granted.
    Scope(&'static str),
    /// The client app has `includeGroupsClaims` off.
    NoGroups,
    /// The client app has `idTokenClaims` Minimal.
    Minimal,
    /// Its rule discloses it on request, and nothing requests it.
    OnRequest,
    /// It is not in an access token, which tells what rules send there alone.
    NoRule,
    /// The rules send it elsewhere.
    Elsewhere,
    /// The rules forward no claim of this type.
    Dropped,
    /// There is no room for it in a token.
    NoRoom,
    /// No rule makes a claim of the protocol.
    Protected,
}

/// The properties of a claim's type. A person can have hundreds of groups, so consecutive claims of one type share one lookup.
#[derive(Clone, Copy)]
pub struct TypeOfClaim {
    is_protected: bool,
    scope: Option<&'static str>,
}

impl TypeOfClaim {
    /// The properties of this type.
    pub fn of(claim_type: &str) -> Self {
        Self { is_protected: is_protected(claim_type), scope: scope_of(claim_type) }
    }
}

/// By what a claim of this type, which the rules forwarded, is told in a place, or why it is not.
pub fn release(
    place: Place,
    (claim, of_type): (&OutClaim, TypeOfClaim),
    facts: &Facts,
    asked: &Asked,
) -> Result<Ground, Withheld> {
    if of_type.is_protected {
        return Err(Withheld::Protected);
    }
    if place == Place::AccessToken && claim.path.is_empty() {
        return Err(Withheld::NoRule);
    }
    if !place.is_reached(claim.destination) {
        return Err(Withheld::Elsewhere);
    }
    asked.judge(place, (claim, of_type.scope), facts)
}

/// The claims as they are where there are no rules: those of the platform's table, and entries. What else a provider told, or a
/// directory, is told by rules alone.
pub fn untouched(facts: &Facts) -> Vec<OutClaim> {
    let forwarded = facts.claims.iter().map(|claim| OutClaim {
        claim_type: claim.claim_type.clone(),
        value: claim.value.clone(),
        source: claim.source,
        destination: Destination::IdTokenAndAccessToken,
        on_request: false,
        path: Vec::new(),
    });
    let is_told = |claim: &OutClaim| {
        // groups give rights in apps, and a verified address or number stands for a person: a provider's are not mistaken for the
        // platform's
        let is_foreign =
            claim.source == Source::IdentityProvider && RELIED_ON.contains(&claim.claim_type.as_str());
        !is_foreign && (scope_of(&claim.claim_type).is_some() || facts.has_entry(claim))
    };
    forwarded.filter(is_told).collect()
}

/// What is told of the claims that the rules forwarded, where it is asked for.
///
/// # Errors
/// The rules forward more to a token than it holds.
pub fn tell(claims: &[OutClaim], facts: &Facts, asked: &Asked) -> Result<ReleasedClaims, Unusable> {
    let told = |place, is_asked: bool| {
        if is_asked { tell_in(place, claims, facts, asked) } else { Ok(Map::new()) }
    };
    let is_userinfo = asked.issue == Issue::UserInfo;
    Ok(ReleasedClaims {
        id_token: told(Place::IdToken, asked.issue == Issue::Tokens && asked.has(OPENID))?,
        userinfo: told(Place::UserInfo, is_userinfo)?,
        access_token: told(Place::AccessToken, !is_userinfo)?.into_iter().collect(),
    })
}

fn tell_in(
    place: Place,
    claims: &[OutClaim],
    facts: &Facts,
    asked: &Asked,
) -> Result<Map<String, Value>, Unusable> {
    let (mut groups, mut entries, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for of_type in claims.chunk_by(|one, next| one.claim_type == next.claim_type) {
        let Some(name) = of_type.first().map(|claim| claim.claim_type.as_str()) else { continue };
        let known = TypeOfClaim::of(name);
        for claim in of_type {
            if release(place, (claim, known), facts, asked).is_err() {
                continue;
            }
            if name == GROUPS {
                groups.push(claim);
            } else if facts.has_entry(claim) {
                entries.push(claim);
            } else {
                others.push(claim);
            }
        }
    }
    let size = |claim: &&OutClaim| claim.claim_type.len() + json_of(claim).to_string().len();
    let ruled: usize = others.iter().filter(|claim| !claim.path.is_empty()).map(size).sum();
    let Some(room) = place.bound().checked_sub(ruled) else {
        let (bound, name) = (place.bound(), place.name());
        let detail = format!("The rules in force send more than {bound} bytes of claims to the {name}.");
        return Err(Unusable(detail));
    };
    let mut members = Map::new();
    let room = tell_groups(&mut members, (place, room), &groups, asked.tells_groups(place));
    // what does not fit is at userinfo
    let has_room = entries.iter().map(size).sum::<usize>() <= room;
    let mut by_type = BTreeMap::<&str, Vec<&OutClaim>>::new();
    for claim in others.into_iter().chain(entries.into_iter().filter(|_| has_room)) {
        by_type.entry(&claim.claim_type).or_default().push(claim);
    }
    for (claim_type, claims) in by_type {
        members.insert(claim_type.to_owned(), value_of(claim_type, &claims));
    }
    Ok(members)
}

/// Tells all groups, sorted, an empty list where there are none; in a token `groups_truncated` in their place if there are too many. Returns the room that is left.
fn tell_groups(
    members: &mut Map<String, Value>,
    (place, room): (Place, usize),
    claims: &[&OutClaim],
    are_told: bool,
) -> usize {
    let mut names: Vec<&str> = claims.iter().map(|claim| claim.value.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() && !are_told {
        return room;
    }
    let bytes = names.iter().map(|name| name.len()).sum::<usize>();
    let is_short = names.len() <= MOST_GROUPS && bytes <= MOST_GROUP_BYTES.min(room);
    if is_short || place == Place::UserInfo {
        members.insert(GROUPS.to_owned(), json!(names));
        return room.saturating_sub(bytes);
    }
    members.insert("groups_truncated".to_owned(), json!(true));
    room
}

/// The value of a claim: several are an array. Of a claim of the platform the platform's own values win over those of the identity
/// provider.
fn value_of(claim_type: &str, claims: &[&OutClaim]) -> Value {
    let is_own = |claim: &OutClaim| claim.source == Source::Platform;
    let own_alone = scope_of(claim_type).is_some() && claims.iter().any(|claim| is_own(claim));
    let mut values: Vec<Value> = Vec::new();
    for claim in claims.iter().filter(|claim| !own_alone || is_own(claim)) {
        let value = json_of(claim);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    if values.len() == 1 { values.remove(0) } else { Value::Array(values) }
}

/// One value: claims that OpenID Connect Core 1.0, section 5.1, has as Booleans and numbers are these.
fn json_of(claim: &OutClaim) -> Value {
    match claim.claim_type.as_str() {
        "email_verified" | "phone_number_verified" => match claim.value.as_str() {
            "true" => json!(true),
            "false" => json!(false),
            other => json!(other),
        },
        "updated_at" => {
            claim.value.parse::<i64>().map_or_else(|_| json!(claim.value), |seconds| json!(seconds))
        }
        _ => json!(claim.value),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chancery_auth::{Claims, Confirmation};
    use chancery_claims::{Destination, OutClaim, Source, is_protected};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::{Asked, Issue, ReleasedClaims, tell};
    use crate::claims::{facts::Facts, requested::Requested};

    fn claim(claim_type: &str, value: &str, source: Source) -> OutClaim {
        OutClaim {
            claim_type: claim_type.to_owned(),
            value: value.to_owned(),
            source,
            destination: Destination::IdTokenAndAccessToken,
            on_request: false,
            path: vec![Uuid::nil()],
        }
    }

    fn told(claims: &[OutClaim], issue: Issue) -> ReleasedClaims {
        let asked = Asked {
            issue,
            scope: vec!["openid".to_owned(), "profile".to_owned(), "email".to_owned()],
            requested: Requested::default(),
            includes_groups: true,
            tells_in_id_token: true,
        };
        tell(claims, &Facts::default(), &asked).unwrap()
    }

    #[test]
    fn the_platform_s_value_wins_of_its_own_claims() {
        use Source::{IdentityProvider, Platform};
        let claims = [
            claim("email", "their@example.com", IdentityProvider),
            claim("email", "our@example.com", Platform),
            claim("name", "Their Name", IdentityProvider),
            claim("role", "a", IdentityProvider),
            claim("role", "b", Platform),
            claim("role", "a", Platform),
        ];
        let told = Value::Object(told(&claims, Issue::UserInfo).userinfo);
        assert_eq!(
            told,
            json!({ "email": "our@example.com", "name": "Their Name", "role": ["a", "b"], "groups": [] })
        );
    }

    #[test]
    fn values_have_the_types_of_the_standard() {
        let own = |name: &str, value: &str| claim(name, value, Source::Platform);
        let claims = [
            own("email_verified", "false"),
            own("updated_at", "7"),
            own("birthdate", "1990"),
            own("groups", "b"),
            own("groups", "a"),
        ];
        let expected =
            json!({ "email_verified": false, "updated_at": 7, "birthdate": "1990", "groups": ["a", "b"] });
        assert_eq!(Value::Object(told(&claims, Issue::Tokens).id_token), expected);
        let odd =
            told(&[own("email_verified", "perhaps"), own("updated_at", "soon")], Issue::Tokens).id_token;
        assert_eq!(
            Value::Object(odd),
            json!({ "email_verified": "perhaps", "updated_at": "soon", "groups": [] })
        );
    }

    /// The members of an access token's claims are one object with what rules tell.
    #[test]
    fn no_rule_tells_a_claim_of_an_access_token() {
        let id = Uuid::nil();
        let claims = Claims {
            iss: String::new(),
            sub: id,
            client_id: id,
            aud: Vec::new(),
            iat: 0,
            exp: 0,
            jti: String::new(),
            scope: Some(String::new()),
            cnf: Some(Confirmation::default()),
            act: Some(json!({})),
            gid: Some(id),
            tid: Some(id),
            auth_time: Some(0),
            acr: Some(String::new()),
            amr: vec![String::new()],
            from_jti: vec![String::new()],
            told: BTreeMap::new(),
        };
        let members = serde_json::to_value(claims).unwrap();
        assert!(members.as_object().unwrap().keys().all(|name| is_protected(name)), "{members}");
    }
}
