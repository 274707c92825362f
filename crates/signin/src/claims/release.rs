//! Selects the claims of each token from those that the rules forwarded.

use std::collections::BTreeMap;

use chancery_claims::{Destination, OutClaim, Source};
use chancery_management::claim_rule::Unusable;
use chancery_oauth::{GROUPS, OPENID};
use serde_json::{Map, Value, json};

use super::{
    person_claims::PersonClaims,
    release_policy::{Issue, ReleasePolicy, ReleaseTarget, TypeOfClaim, json_of, release_reason},
};
use crate::grant::claim_scope::scope_of;

/// The maximum of group names in a token, and of their bytes: tokens are sent in headers, addresses and cookies.
const MAX_GROUPS: usize = 500;
const MAX_GROUP_BYTES: usize = 4 << 10;

/// Claims that apps rely on: a provider's values are released only by rules.
const RELIED_ON: [&str; 5] = [GROUPS, "email", "email_verified", "phone_number", "phone_number_verified"];

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
    let is_short = names.len() <= MAX_GROUPS && bytes <= MAX_GROUP_BYTES.min(room);
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
