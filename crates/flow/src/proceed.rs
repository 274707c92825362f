//! The second half of the next step: once the person is identified.

use crate::{
    DueAction, Flow, Identified, PersonFacts, Proof, SignedIn, Step, Urgency, acr_of, amr_of,
    consent::consent_step, factor::Factors,
};

/// The next step for a person, by facts about that person.
pub fn proceed(flow: &Flow, identified: &Identified, facts: &PersonFacts) -> Step {
    let proofs: Vec<Proof> = identified.proofs.iter().filter(|proof| counts(proof, facts)).copied().collect();
    let factors = Factors { flow, facts, proofs: &proofs };
    let granted = flow.granted_by(identified.person);
    let step = facts
        .refused
        .map(Step::Refuse)
        .or_else(|| factors.second_factor())
        .or_else(|| factors.step_up())
        .or_else(|| due_action(flow, identified, facts).map(Step::Action))
        .or_else(|| consent_step(flow, facts.consent, granted))
        .or_else(|| (flow.request.is_native && !flow.is_touched).then_some(Step::Touch));
    match step {
        Some(step) if flow.request.is_silent() => step.silent(),
        Some(step) => step,
        None => done(flow, identified, proofs),
    }
}

/// Whether a proof counts: a second factor only while its instance is usable.
fn counts(proof: &Proof, facts: &PersonFacts) -> bool {
    let usable = &facts.second_factors.usable;
    proof.method.is_first() || usable.iter().any(|factor| factor.instance == proof.instance)
}

/// The first due action. A person who only returns with a session is offered nothing.
fn due_action(flow: &Flow, identified: &Identified, facts: &PersonFacts) -> Option<DueAction> {
    let is_due = |due: &&DueAction| match due.urgency {
        Urgency::Required => true,
        Urgency::Offered => {
            identified.is_proven_here && !flow.deferred.contains(&(identified.person, due.action))
        }
    };
    facts.due.iter().filter(is_due).min().copied()
}

fn done(flow: &Flow, identified: &Identified, proofs: Vec<Proof>) -> Step {
    let methods = || proofs.iter().map(|proof| proof.method);
    Step::Done(Box::new(SignedIn {
        person: identified.person,
        tenant: identified.tenant,
        instance: identified.instance,
        session: identified.session,
        acr: acr_of(methods()).unwrap_or(crate::Acr::Sfa),
        amr: amr_of(methods()),
        auth_time: identified.auth_time,
        proven_at: identified.proven_at,
        granted: flow.granted_by(identified.person).cloned(),
        proofs,
    }))
}
