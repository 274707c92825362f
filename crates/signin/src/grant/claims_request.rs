//! The claims that an authorization request names in `claims` (OpenID Connect Core 1.0, section 5.5), as stored with
//! its grant.

use std::collections::{BTreeMap, BTreeSet};

use chancery_claims::is_protected;
use chancery_oauth::{ClaimsRequest, GROUPS, RequestedClaim, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::claim_scope::scope_of;
use crate::client_app::{Application, ConsentMode};

/// The scope of the entries of a user.
pub const ENTRIES: &str = "profile";

/// Names of claims, each with the requested values; empty: any value.
type Names = BTreeMap<String, Vec<Value>>;

/// The claims that a request names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedClaims {
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    userinfo: Names,
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    id_token: Names,
    /// Whether entries of the user may be requested.
    #[serde(default)]
    entries: bool,
}

impl RequestedClaims {
    /// The named claims that the client app could also get by scope. If administrators consent, they consent to the
    /// scope: then only its claims count.
    pub fn of(application: &Application, request: &ClaimsRequest, scope: &Scope) -> Self {
        let may_have = |word: &str| {
            application.may_have(word) && (application.consent != ConsentMode::External || scope.has(word))
        };
        let names = |claims: &[RequestedClaim]| -> Names {
            let named = claims.iter().filter(|claim| !is_protected(&claim.name));
            let values =
                |claim: &RequestedClaim| claim.values.iter().map(chancery_record::Json::to_serde).collect();
            named.map(|claim| (claim.name.clone(), values(claim))).collect()
        };
        let all =
            Self { userinfo: names(&request.userinfo), id_token: names(&request.id_token), entries: true };
        all.within(may_have)
    }

    /// Removes the claims of scopes that are not granted.
    #[must_use]
    pub fn within(mut self, is_granted: impl Fn(&str) -> bool) -> Self {
        // groups are released by `includeGroupsClaims`, whatever the scope
        let is_left = |name: &str| scope_of(name).is_none_or(|word| word == GROUPS || is_granted(word));
        self.userinfo.retain(|name, _| is_left(name));
        self.id_token.retain(|name, _| is_left(name));
        self.entries = self.entries && is_granted(ENTRIES);
        self
    }

    /// The scopes of the claims, for consent. A name of no claim of the platform may be that of an entry of the user.
    pub fn scopes(&self) -> BTreeSet<&'static str> {
        let names = self.userinfo.keys().chain(self.id_token.keys());
        let scope = |name: &String| match scope_of(name) {
            None => Some(ENTRIES).filter(|_| self.entries),
            known => known.filter(|word| *word != GROUPS),
        };
        names.filter_map(scope).collect()
    }

    /// Whether entries of the user may be released because they are named.
    pub fn may_name_entries(&self) -> bool {
        self.entries && self.userinfo.keys().chain(self.id_token.keys()).any(|name| scope_of(name).is_none())
    }

    /// Whether claims are requested in the ID token.
    pub fn is_about_id_token(&self) -> bool {
        !self.id_token.is_empty()
    }

    /// Whether a claim of this value is requested in the ID token.
    pub fn is_in_id_token(&self, name: &str, value: impl FnOnce() -> Value) -> bool {
        names(&self.id_token, name, value)
    }

    /// Whether a claim of this value is requested at UserInfo.
    pub fn is_in_userinfo(&self, name: &str, value: impl FnOnce() -> Value) -> bool {
        names(&self.userinfo, name, value)
    }

    /// Whether a named claim that is an entry of the user may be released.
    pub const fn allows_entries(&self) -> bool {
        self.entries
    }
}

fn names(names: &Names, name: &str, value: impl FnOnce() -> Value) -> bool {
    names.get(name).is_some_and(|values| values.is_empty() || values.contains(&value()))
}
