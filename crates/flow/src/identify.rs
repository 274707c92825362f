//! The first half of the next step: until the person is identified.

use std::ops::ControlFlow::{self, Break, Continue};

use chancery_record::Timestamp;
use uuid::Uuid;

use crate::{
    AppFacts, Failure, FirstFactor, Flow, Identified, InstanceFacts, InstanceKind, Method, Proof,
    SessionFacts, Step,
    session::Sessions,
    tenant::{offered, only, tenant_of},
};

/// The person who is signing in, or the step that is needed to identify that person.
pub fn identify(flow: &Flow, facts: &AppFacts<'_>, now: Timestamp) -> ControlFlow<Step, Identified> {
    match resolve(flow, facts, now) {
        Break(step) if flow.request.is_silent() => Break(step.silent()),
        outcome => outcome,
    }
}

fn resolve(flow: &Flow, facts: &AppFacts<'_>, now: Timestamp) -> ControlFlow<Step, Identified> {
    let request = &flow.request;
    if let Some(failure) = flow.failure(now) {
        return Break(Step::Fail(failure));
    }
    let tenant = tenant_of(flow, facts)?;
    let instances: Vec<&InstanceFacts> = offered(request, tenant).collect();
    let ids: Vec<Uuid> = instances.iter().map(|instance| instance.id).collect();
    let sessions = Sessions { request, facts: *facts, tenant: tenant.id, offered: &ids, now };

    // the last person to prove a first factor in this flow is signing in, regardless of sessions
    let identity = match flow.current_proofs().iter().rfind(|proof| proof.method.is_first()) {
        Some(proof) if request.hinted_person.is_some_and(|expected| expected != proof.person) => {
            return Break(Step::Fail(Failure::LoginRequired));
        }
        Some(proof) => {
            let is_of_person = |session: &&SessionFacts| session.person == proof.person;
            let chosen = sessions.reusable().find(|session| Some(session.id) == flow.session);
            let reused = chosen.filter(is_of_person).or_else(|| sessions.reusable().find(is_of_person));
            let identity = identified(flow, tenant.id, &instances, proof.person, reused);
            // a session whose proofs no longer count continues with the new ones
            identity.map(|identity| Identified {
                session: identity.session.or(sessions.of(proof.person)),
                ..identity
            })
        }
        None => session_of(flow, sessions)?
            .and_then(|session| identified(flow, tenant.id, &instances, session.person, Some(session))),
    };
    identity.map_or_else(|| Break(first_factor(flow, facts, tenant.id, &instances)), Continue)
}

/// The session to continue with. A chosen session is not replaced by another person's.
fn session_of<'a>(flow: &Flow, sessions: Sessions<'a>) -> ControlFlow<Step, Option<&'a SessionFacts>> {
    if flow.is_other_account {
        return Continue(None);
    }
    if flow.session.is_some() {
        return Continue(sessions.reusable().find(|session| Some(session.id) == flow.session));
    }
    let candidates = sessions.candidates();
    let choices: Vec<Uuid> = if flow.request.wants_account() {
        sessions.eligible().map(|session| session.id).collect()
    } else {
        candidates.iter().map(|session| session.id).filter(|_| candidates.len() > 1).collect()
    };
    if choices.is_empty() {
        Continue(candidates.first().copied())
    } else {
        Break(Step::Account { tenant: sessions.tenant, sessions: choices })
    }
}

/// The person with all proofs that count; `None` without a first factor of an instance that is offered.
fn identified(
    flow: &Flow,
    tenant: Uuid,
    instances: &[&InstanceFacts],
    person: Uuid,
    session: Option<&SessionFacts>,
) -> Option<Identified> {
    let counts = |proof: &Proof| {
        Some(*proof).filter(|proof| proof.person == person).and_then(|proof| trusted(proof, instances))
    };
    let of_session = session.into_iter().flat_map(|session| &session.proofs).filter_map(counts);
    let proofs: Vec<Proof> = of_session.chain(flow.current_proofs().iter().filter_map(counts)).collect();
    let last = proofs.iter().filter(|proof| proof.method.is_first()).max_by_key(|proof| proof.at)?;
    Some(Identified {
        person,
        tenant,
        instance: last.instance,
        auth_time: last.auth_time(),
        proven_at: last.at,
        session: session.map(|session| session.id),
        is_proven_here: flow.current_proofs().iter().any(|proof| proof.person == person),
        offered: instances.iter().map(|instance| instance.id).collect(),
        proofs,
    })
}

/// The proof as it currently counts: a first factor must be of an instance that is offered and of its kind, and
/// a provider's second factor may no longer be trusted.
fn trusted(proof: Proof, instances: &[&InstanceFacts]) -> Option<Proof> {
    if !proof.method.is_first() {
        return Some(proof);
    }
    let instance = instances.iter().find(|instance| instance.id == proof.instance)?;
    let method = match (proof.method, instance.kind) {
        (Method::External { second_factor, auth_time }, InstanceKind::External { believed }) => {
            Method::External { second_factor: second_factor && believed, auth_time }
        }
        (Method::External { .. }, InstanceKind::Store) | (_, InstanceKind::External { .. }) => return None,
        (method, InstanceKind::Store) => method,
    };
    Some(Proof { method, ..proof })
}

fn first_factor(flow: &Flow, facts: &AppFacts<'_>, tenant: Uuid, instances: &[&InstanceFacts]) -> Step {
    let request = &flow.request;
    let chosen = facts.sessions.iter().find(|session| Some(session.id) == flow.session);
    // a person who wants to choose, or has just signed out, would otherwise be signed in again by the provider
    // without a prompt
    let may_redirect = !request.has_prompt() && !request.after_sign_out && !flow.is_other_account;
    let is_external = |instance: &&&InstanceFacts| matches!(instance.kind, InstanceKind::External { .. });
    Step::FirstFactor(FirstFactor {
        tenant,
        offered: instances.iter().map(|instance| **instance).collect(),
        at_once: only(instances.iter())
            .filter(is_external)
            .filter(|_| may_redirect)
            .map(|instance| instance.id),
        person: chosen.map(|session| session.person).or(request.hinted_person),
    })
}
