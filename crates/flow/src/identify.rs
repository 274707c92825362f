//! The first half of what comes next: until it is known who is signing in.

use std::ops::ControlFlow::{self, Break, Continue};

use chancery_record::Timestamp;
use uuid::Uuid;

use crate::{
    AppFacts, Failure, FirstFactor, Flow, Identified, InstanceFacts, InstanceKind, Method, Proof,
    SessionFacts, Step,
    session::Sessions,
    tenant::{offered, only, tenant_of},
};

/// Who is signing in, or the step that comes before that is known.
pub fn identify(flow: &Flow, facts: &AppFacts<'_>, now: Timestamp) -> ControlFlow<Step, Identified> {
    match find(flow, facts, now) {
        Break(step) if flow.request.is_silent() => Break(step.silent()),
        found => found,
    }
}

fn find(flow: &Flow, facts: &AppFacts<'_>, now: Timestamp) -> ControlFlow<Step, Identified> {
    let request = &flow.request;
    if let Some(failure) = flow.failure(now) {
        return Break(Step::Fail(failure));
    }
    let tenant = tenant_of(flow, facts)?;
    let instances: Vec<&InstanceFacts> = offered(request, tenant).collect();
    let ids: Vec<Uuid> = instances.iter().map(|instance| instance.id).collect();
    let sessions = Sessions { request, facts: *facts, tenant: tenant.id, offered: &ids, now };

    // the last to prove a first factor in this flow is signing in, whatever sessions there are
    let found = match flow.own_proofs().iter().rfind(|proof| proof.method.is_first()) {
        Some(proof) if request.hinted_person.is_some_and(|hinted| hinted != proof.person) => {
            return Break(Step::Fail(Failure::LoginRequired));
        }
        Some(proof) => {
            let of_person = |session: &&SessionFacts| session.person == proof.person;
            let chosen = sessions.fitting().find(|session| Some(session.id) == flow.session);
            let lending = chosen.filter(of_person).or_else(|| sessions.fitting().find(of_person));
            let found = identified(flow, tenant.id, &instances, proof.person, lending);
            // one whose own proofs no longer count goes on with the new ones, too
            found.map(|found| Identified { session: found.session.or(sessions.of(proof.person)), ..found })
        }
        None => session_of(flow, sessions)?
            .and_then(|session| identified(flow, tenant.id, &instances, session.person, Some(session))),
    };
    found.map_or_else(|| Break(first_factor(flow, facts, tenant.id, &instances)), Continue)
}

/// The session to go on with. One that was chosen is not replaced by another person's.
fn session_of<'a>(flow: &Flow, sessions: Sessions<'a>) -> ControlFlow<Step, Option<&'a SessionFacts>> {
    if flow.is_other_account {
        return Continue(None);
    }
    if flow.session.is_some() {
        return Continue(sessions.fitting().find(|session| Some(session.id) == flow.session));
    }
    let candidates = sessions.candidates();
    let shown: Vec<Uuid> = if flow.request.wants_account() {
        sessions.eligible().map(|session| session.id).collect()
    } else {
        candidates.iter().map(|session| session.id).filter(|_| candidates.len() > 1).collect()
    };
    if shown.is_empty() {
        Continue(candidates.first().copied())
    } else {
        Break(Step::Account { tenant: sessions.tenant, sessions: shown })
    }
}

/// The person with all that counts; `None` without a first factor of an instance that is offered.
fn identified(
    flow: &Flow,
    tenant: Uuid,
    instances: &[&InstanceFacts],
    person: Uuid,
    session: Option<&SessionFacts>,
) -> Option<Identified> {
    let counts = |proof: &Proof| {
        Some(*proof).filter(|proof| proof.person == person).and_then(|proof| believed(proof, instances))
    };
    let of_session = session.into_iter().flat_map(|session| &session.proofs).filter_map(counts);
    let proofs: Vec<Proof> = of_session.chain(flow.own_proofs().iter().filter_map(counts)).collect();
    let last = proofs.iter().filter(|proof| proof.method.is_first()).max_by_key(|proof| proof.at)?;
    Some(Identified {
        person,
        tenant,
        instance: last.instance,
        auth_time: last.auth_time(),
        proven_at: last.at,
        session: session.map(|session| session.id),
        is_proven_here: flow.own_proofs().iter().any(|proof| proof.person == person),
        offered: instances.iter().map(|instance| instance.id).collect(),
        proofs,
    })
}

/// The proof as it counts now: a first factor is of an instance that is offered and of its kind, and a
/// provider may no longer be believed.
fn believed(proof: Proof, instances: &[&InstanceFacts]) -> Option<Proof> {
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
    // who wants to choose, or has just signed out, would be signed in again by the provider, unasked
    let may_go = !request.has_prompt() && !request.after_sign_out && !flow.is_other_account;
    let external = |instance: &&&InstanceFacts| matches!(instance.kind, InstanceKind::External { .. });
    Step::FirstFactor(FirstFactor {
        tenant,
        offered: instances.iter().map(|instance| **instance).collect(),
        at_once: only(instances.iter()).filter(external).filter(|_| may_go).map(|instance| instance.id),
        person: chosen.map(|session| session.person).or(request.hinted_person),
    })
}
