//! Decides whether a claim is released to a target, and why.

use chancery_claims::{Destination, OutClaim, is_protected};
use chancery_oauth::{GROUPS, OPENID};
use serde_json::{Value, json};

use super::person_claims::PersonClaims;
use crate::{
    client_app::Application,
    grant::{
        claim_scope::{is_unsafe_link, scope_of},
        claims_request::{ENTRIES, RequestedClaims},
        granted::Granted,
    },
};

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
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::IdToken => "ID token",
            Self::UserInfo => "userinfo",
            Self::AccessToken => "access token",
        }
    }

    /// The maximum of bytes of rules' claims, groups and entries. This server accepts tokens of up to 8 KiB: base64
    /// of these and other claims, and a signature.
    pub(super) const fn bound(self) -> usize {
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
    pub(super) issue: Issue,
    pub(super) scope: Vec<String>,
    pub(super) requested: RequestedClaims,
    pub(super) includes_groups: bool,
    pub(super) scope_claims_in_id_token: bool,
}

impl ReleasePolicy {
    /// The policy for tokens of this scope, which may be narrower than the granted one.
    pub fn new(application: &Application, granted: &Granted, scope: &str, issue: Issue) -> Self {
        Self {
            issue,
            scope: scope.split(' ').map(str::to_owned).collect(),
            // as for the scope of a refresh: what the client app may no longer have is not released
            requested: granted.requested.clone().within(|word| application.may_have(word)),
            includes_groups: application.includes_groups,
            scope_claims_in_id_token: application.scope_claims_in_id_token,
        }
    }

    pub(super) fn has(&self, word: &str) -> bool {
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
    pub(super) fn releases_groups(&self, target: ReleaseTarget) -> bool {
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

/// One value: Booleans and numbers of OpenID Connect Core 1.0, section 5.1, have these JSON types.
pub(super) fn json_of(claim: &OutClaim) -> Value {
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
