//! Selects the claims of each token from those that the rules forwarded.

use std::collections::BTreeMap;

use chancery_claims::{Destination, OutClaim, Source, is_protected};
use chancery_management::claim_rule::Unusable;
use chancery_oauth::{GROUPS, OPENID};
use serde_json::{Map, Value, json};

use super::person_claims::PersonClaims;
use crate::{
    client_app::Application,
    grant::{
        claim_scope::{is_unsafe_link, scope_of},
        claims_request::{ENTRIES, RequestedClaims},
        granted::Granted,
    },
};

/// The maximum of group names in a token, and of their bytes: tokens are sent in headers, addresses and cookies.
const MOST_GROUPS: usize = 500;
const MOST_GROUP_BYTES: usize = 4 << 10;

/// Claims that apps rely on: a provider's values are released only by rules.
const RELIED_ON: [&str; 5] = [GROUPS, "email", "email_verified", "phone_number", "phone_number_verified"];

/// The target of released claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseTarget {
    /// The ID token.
    IdToken,
    /// The UserInfo endpoint.
    UserInfo,
    /// The access token.
    AccessToken,
}

impl ReleaseTarget {
    const fn name(self) -> &'static str {
        match self {
            Self::IdToken => "ID token",
            Self::UserInfo => "userinfo",
            Self::AccessToken => "access token",
        }
    }

    /// The maximum of bytes of rules' claims, groups and entries. This server accepts tokens of up to 8 KiB: base64
    /// of these and other claims, and a signature.
    const fn bound(self) -> usize {
        match self {
            Self::IdToken => 4 << 10,
            Self::UserInfo => usize::MAX,
            Self::AccessToken => 2560,
        }
    }

    /// Whether claims of this destination are sent to this target.
    fn is_reached(self, destination: Destination) -> bool {
        let own = if self == Self::AccessToken { Destination::AccessToken } else { Destination::IdToken };
        destination & own == own
    }
}

/// The released claims about a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleasedClaims {
    /// In the ID token.
    pub id_token: Map<String, Value>,
    /// At the UserInfo endpoint.
    pub userinfo: Map<String, Value>,
    /// In the access token.
    pub access_token: BTreeMap<String, Value>,
}

/// The kind of issuance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issue {
    /// An access token, and an ID token with the scope `openid`.
    Tokens,
    /// An access token in exchange for another.
    Exchange,
    /// A response of the UserInfo endpoint.
    UserInfo,
}

/// The policy by which claims are released to a client app.
#[derive(Clone, Debug)]
pub struct ReleasePolicy {
    issue: Issue,
    scope: Vec<String>,
    requested: RequestedClaims,
    includes_groups: bool,
    scope_claims_in_id_token: bool,
}

impl ReleasePolicy {
    /// The policy for tokens of this scope, which may be narrower than the granted one.
    pub fn new(application: &Application, (granted, scope): (&Granted, &str), issue: Issue) -> Self {
        Self {
            issue,
            scope: scope.split(' ').map(str::to_owned).collect(),
            // as for the scope of a refresh: what the client app may no longer have is not released
            requested: granted.requested.clone().within(|word| application.may_have(word)),
            includes_groups: application.includes_groups,
            scope_claims_in_id_token: application.scope_claims_in_id_token,
        }
    }

    fn has(&self, word: &str) -> bool {
        self.scope.iter().any(|one| one == word)
    }

    /// Whether claims about the person are released without rules.
    pub fn releases_any(&self) -> bool {
        match self.issue {
            Issue::UserInfo => true,
            Issue::Exchange => false,
            Issue::Tokens => {
                self.has(OPENID) && (self.scope_claims_in_id_token || self.requested.is_about_id_token())
            }
        }
    }

    /// Whether entries of the user can be released.
    pub fn may_release_entries(&self) -> bool {
        self.has(ENTRIES) || self.requested.may_name_entries()
    }

    /// Whether groups are released to this target regardless of rules.
    fn releases_groups(&self, target: ReleaseTarget) -> bool {
        let is_selected = match target {
            ReleaseTarget::IdToken => self.scope_claims_in_id_token,
            ReleaseTarget::UserInfo => true,
            ReleaseTarget::AccessToken => false,
        };
        self.includes_groups && is_selected
    }

    /// The reason to release or withhold a claim of this scope whose destination is this target.
    fn reason_for(
        &self,
        target: ReleaseTarget,
        claim: &OutClaim,
        scope: Option<&'static str>,
        facts: &PersonClaims,
    ) -> Result<ReleaseReason, WithholdReason> {
        let is_entry = scope.is_none() && facts.has_entry(claim);
        let Some(word) = scope.or_else(|| is_entry.then_some(ENTRIES)) else {
            return self.reason_for_rule_claim(target, claim);
        };
        if word == GROUPS && !self.includes_groups {
            return Err(WithholdReason::NoGroups);
        }
        // groups are released without their scope, too
        let is_granted = word == GROUPS || self.has(word);
        let by_scope = target != ReleaseTarget::IdToken || self.scope_claims_in_id_token;
        if is_granted && by_scope {
            return Ok(if word == GROUPS { ReleaseReason::Groups } else { ReleaseReason::Scope(word) });
        }
        if (!is_entry || self.requested.allows_entries()) && self.is_requested_by_name(target, claim) {
            return Ok(ReleaseReason::Name);
        }
        Err(if is_granted { WithholdReason::Minimal } else { WithholdReason::Scope(word) })
    }

    /// The same for a claim of rules that belongs to no scope.
    fn reason_for_rule_claim(
        &self,
        target: ReleaseTarget,
        claim: &OutClaim,
    ) -> Result<ReleaseReason, WithholdReason> {
        if !claim.on_request {
            Ok(ReleaseReason::Rule)
        } else if self.is_requested_by_name(target, claim) {
            Ok(ReleaseReason::Name)
        } else if self.has(&claim.claim_type) {
            Ok(ReleaseReason::OwnScope)
        } else {
            Err(WithholdReason::OnRequest)
        }
    }

    /// Whether the request names a claim of this value for this target.
    fn is_requested_by_name(&self, target: ReleaseTarget, claim: &OutClaim) -> bool {
        let (name, value) = (&claim.claim_type, || json_of(claim));
        match target {
            ReleaseTarget::IdToken => self.requested.is_in_id_token(name, value),
            ReleaseTarget::UserInfo => self.requested.is_in_userinfo(name, value),
            ReleaseTarget::AccessToken => {
                self.requested.is_in_id_token(name, value) || self.requested.is_in_userinfo(name, value)
            }
        }
    }
}

/// Why a claim is included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseReason {
    /// By this scope, which is granted.
    Scope(&'static str),
    /// By a granted scope with the name of the claim.
    OwnScope,
    /// By its name in `claims`.
    Name,
    /// By `includeGroupsClaims` of the client app.
    Groups,
    /// By a claim rule that always discloses it.
    Rule,
}

/// Why a claim is withheld from a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WithholdReason {
    /// This scope is not granted.
    Scope(&'static str),
    /// The client app has `includeGroupsClaims` off.
    NoGroups,
    /// The client app has `idTokenClaims` Minimal.
    Minimal,
    /// Its rule discloses it on request, and it is not requested.
    OnRequest,
    /// Access tokens contain only claims that rules send there.
    NoRule,
    /// The rules send it to another destination.
    OtherDestination,
    /// The rules forward no claim of this type.
    Dropped,
    /// There is no room for it in a token.
    NoRoom,
    /// Rules cannot set claims of the protocol.
    Protected,
    /// Its value would run a script where an app links to it.
    UnsafeLink,
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

/// The reason for releasing a forwarded claim of this type to a target, or for withholding it.
pub fn release_reason(
    target: ReleaseTarget,
    claim: &OutClaim,
    of_type: TypeOfClaim,
    facts: &PersonClaims,
    policy: &ReleasePolicy,
) -> Result<ReleaseReason, WithholdReason> {
    if of_type.is_protected {
        return Err(WithholdReason::Protected);
    }
    if is_unsafe_link(&claim.claim_type, &claim.value) {
        return Err(WithholdReason::UnsafeLink);
    }
    if target == ReleaseTarget::AccessToken && claim.path.is_empty() {
        return Err(WithholdReason::NoRule);
    }
    if !target.is_reached(claim.destination) {
        return Err(WithholdReason::OtherDestination);
    }
    policy.reason_for(target, claim, of_type.scope, facts)
}

/// The claims without rules: those of the platform's table, and entries. Other claims of a provider or a directory
/// are released only by rules.
pub fn without_rules(facts: &PersonClaims) -> Vec<OutClaim> {
    let forwarded = facts.claims.iter().map(|claim| OutClaim {
        claim_type: claim.claim_type.clone(),
        value: claim.value.clone(),
        source: claim.source,
        destination: Destination::IdTokenAndAccessToken,
        on_request: false,
        path: Vec::new(),
    });
    let is_released = |claim: &OutClaim| {
        // groups give rights and a verified address identifies a person: a provider's are not the platform's
        let is_foreign =
            claim.source == Source::IdentityProvider && RELIED_ON.contains(&claim.claim_type.as_str());
        !is_foreign && (scope_of(&claim.claim_type).is_some() || facts.has_entry(claim))
    };
    forwarded.filter(is_released).collect()
}

/// Selects the requested claims from those that the rules forwarded.
///
/// # Errors
/// The rules forward more to a token than it holds.
pub fn release_claims(
    claims: &[OutClaim],
    facts: &PersonClaims,
    policy: &ReleasePolicy,
) -> Result<ReleasedClaims, Unusable> {
    let released = |target, is_requested: bool| {
        if is_requested { release_in(target, claims, facts, policy) } else { Ok(Map::new()) }
    };
    let is_userinfo = policy.issue == Issue::UserInfo;
    Ok(ReleasedClaims {
        id_token: released(ReleaseTarget::IdToken, policy.issue == Issue::Tokens && policy.has(OPENID))?,
        userinfo: released(ReleaseTarget::UserInfo, is_userinfo)?,
        access_token: released(ReleaseTarget::AccessToken, !is_userinfo)?.into_iter().collect(),
    })
}

fn release_in(
    target: ReleaseTarget,
    claims: &[OutClaim],
    facts: &PersonClaims,
    policy: &ReleasePolicy,
) -> Result<Map<String, Value>, Unusable> {
    let (mut groups, mut entries, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for of_type in claims.chunk_by(|one, next| one.claim_type == next.claim_type) {
        let Some(name) = of_type.first().map(|claim| claim.claim_type.as_str()) else { continue };
        let known = TypeOfClaim::of(name);
        for claim in of_type {
            if release_reason(target, claim, known, facts, policy).is_err() {
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
    let rule_bytes: usize = others.iter().filter(|claim| !claim.path.is_empty()).map(size).sum();
    let Some(room) = target.bound().checked_sub(rule_bytes) else {
        let (bound, name) = (target.bound(), target.name());
        let detail = format!("The rules in force send more than {bound} bytes of claims to the {name}.");
        return Err(Unusable(detail));
    };
    let mut members = Map::new();
    let room = release_groups(&mut members, target, room, &groups, policy.releases_groups(target));
    // what does not fit is available at UserInfo
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

/// Adds the sorted groups, if any; too many for a token become `groups_truncated`. Returns the remaining room.
fn release_groups(
    members: &mut Map<String, Value>,
    target: ReleaseTarget,
    room: usize,
    claims: &[&OutClaim],
    are_required: bool,
) -> usize {
    let mut names: Vec<&str> = claims.iter().map(|claim| claim.value.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() && !are_required {
        return room;
    }
    let bytes = names.iter().map(|name| name.len()).sum::<usize>();
    let is_short = names.len() <= MOST_GROUPS && bytes <= MOST_GROUP_BYTES.min(room);
    if is_short || target == ReleaseTarget::UserInfo {
        members.insert(GROUPS.to_owned(), json!(names));
        return room.saturating_sub(bytes);
    }
    members.insert("groups_truncated".to_owned(), json!(true));
    room
}

/// The value of a claim; several are an array. In claims of the platform its own values replace a provider's.
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

/// One value: Booleans and numbers of OpenID Connect Core 1.0, section 5.1, have these JSON types.
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

    use super::{Issue, ReleasePolicy, ReleasedClaims, release_claims};
    use crate::{claims::person_claims::PersonClaims, grant::claims_request::RequestedClaims};

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

    fn released(claims: &[OutClaim], issue: Issue) -> ReleasedClaims {
        let policy = ReleasePolicy {
            issue,
            scope: vec!["openid".to_owned(), "profile".to_owned(), "email".to_owned()],
            requested: RequestedClaims::default(),
            includes_groups: true,
            scope_claims_in_id_token: true,
        };
        release_claims(claims, &PersonClaims::default(), &policy).unwrap()
    }

    #[test]
    fn platform_values_override_provider_values_in_platform_claims() {
        use Source::{IdentityProvider, Platform};
        let claims = [
            claim("email", "their@example.com", IdentityProvider),
            claim("email", "our@example.com", Platform),
            claim("name", "Their Name", IdentityProvider),
            claim("role", "a", IdentityProvider),
            claim("role", "b", Platform),
            claim("role", "a", Platform),
        ];
        let released = Value::Object(released(&claims, Issue::UserInfo).userinfo);
        assert_eq!(
            released,
            json!({ "email": "our@example.com", "name": "Their Name", "role": ["a", "b"], "groups": [] })
        );
    }

    #[test]
    fn claim_values_have_the_json_types_of_openid_connect() {
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
        assert_eq!(Value::Object(released(&claims, Issue::Tokens).id_token), expected);
        let invalid =
            released(&[own("email_verified", "perhaps"), own("updated_at", "soon")], Issue::Tokens).id_token;
        assert_eq!(
            Value::Object(invalid),
            json!({ "email_verified": "perhaps", "updated_at": "soon", "groups": [] })
        );
    }

    /// The members of an access token's claims are one object with the claims of rules.
    #[test]
    fn rules_cannot_set_protocol_claims_of_an_access_token() {
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
            rule_claims: BTreeMap::new(),
        };
        let members = serde_json::to_value(claims).unwrap();
        assert!(members.as_object().unwrap().keys().all(|name| is_protected(name)), "{members}");
    }
}
