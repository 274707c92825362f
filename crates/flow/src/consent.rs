//! Whether an app needs a consent, and what a person may grant.

use crate::{Consent, Failure, Flow, Granted, Request, Step};

/// The step that asks for consent, where none was given in this flow.
pub fn consent_step(flow: &Flow, consent: Consent, granted: Option<&Granted>) -> Option<Step> {
    let is_due = match consent {
        Consent::Implicit | Consent::External { is_covered: true } => false,
        Consent::External { is_covered: false } => return Some(Step::Fail(Failure::ConsentRequired)),
        Consent::Explicit { is_covered } => !is_covered || flow.request.wants_consent(),
        Consent::Systematic => true,
    };
    (is_due && granted.is_none()).then_some(Step::Consent)
}

/// Whether this may be granted: nothing except what was requested, and `openid` with it.
pub fn may_grant(request: &Request, granted: &Granted) -> bool {
    let is_openid = |word: &&String| word.as_str() == "openid";
    granted.words.iter().all(|word| request.requested.contains(word))
        && request.requested.iter().filter(is_openid).all(|word| granted.words.contains(word))
}
