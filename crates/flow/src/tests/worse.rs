//! Worsening of facts.

use proptest::prelude::*;

use crate::{
    Action, Consent, DueAction, Enrolment, InstanceKind, NotAdmitted, Urgency,
    tests::{World, arbitrary::ACTIONS},
};

/// A removal, or an additional requirement. A number selects of which item.
#[derive(Clone, Copy, Debug)]
pub enum Loss {
    Tenant(usize),
    Range(usize),
    Instance(usize),
    Visible(usize),
    Trust,
    Session(usize),
    SessionProof(usize),
    Recency(i64),
    Admission,
    OneFactor,
    Usable(usize),
    Enrolled(usize),
    RecoveryCode,
    Enrolment,
    Remembered,
    PasskeySatisfies,
    Passkey,
    PasskeyVerifies,
    DueAction(Action, Urgency),
    Deferral,
    Consent(bool),
}

pub fn any_loss() -> impl Strategy<Value = Loss> {
    let urgency = prop::sample::select(&[Urgency::Required, Urgency::Offered][..]);
    prop_oneof![
        1 => (0_usize..2).prop_map(Loss::Tenant),
        1 => (0_usize..2).prop_map(Loss::Range),
        3 => any::<usize>().prop_map(Loss::Instance),
        2 => any::<usize>().prop_map(Loss::Visible),
        1 => Just(Loss::Trust),
        2 => any::<usize>().prop_map(Loss::Session),
        2 => any::<usize>().prop_map(Loss::SessionProof),
        1 => (0_i64..7_200_000).prop_map(Loss::Recency),
        1 => Just(Loss::Admission),
        1 => Just(Loss::OneFactor),
        2 => any::<usize>().prop_map(Loss::Usable),
        2 => any::<usize>().prop_map(Loss::Enrolled),
        1 => Just(Loss::RecoveryCode),
        1 => Just(Loss::Enrolment),
        1 => Just(Loss::Remembered),
        1 => Just(Loss::PasskeySatisfies),
        1 => Just(Loss::Passkey),
        1 => Just(Loss::PasskeyVerifies),
        1 => (prop::sample::select(&ACTIONS[..]), urgency).prop_map(|(action, urgency)| Loss::DueAction(action, urgency)),
        1 => Just(Loss::Deferral),
        1 => any::<bool>().prop_map(Loss::Consent),
    ]
}

fn remove<T>(all: &mut Vec<T>, which: usize) {
    if !all.is_empty() {
        all.remove(which % all.len());
    }
}

fn at<T>(all: &mut [T], which: usize) -> Option<&mut T> {
    let count = all.len().max(1);
    all.get_mut(which % count)
}

pub fn worsen(world: &mut World, loss: Loss) {
    let (person, tenants) = (&mut world.person, &mut world.tenants);
    let factors = &mut person.second_factors;
    match loss {
        Loss::Tenant(which) => remove(tenants, which),
        Loss::Range(which) => remove(&mut world.in_range, which),
        Loss::Instance(which) => {
            if let Some(tenant) = at(tenants, which) {
                remove(&mut tenant.instances, which / 2);
            }
        }
        Loss::Visible(which) => {
            let instances = at(tenants, which).map(|tenant| &mut tenant.instances);
            if let Some(instance) = instances.and_then(|all| at(all, which / 2)) {
                instance.is_hidden = true;
            }
        }
        Loss::Trust => {
            for instance in tenants.iter_mut().flat_map(|tenant| &mut tenant.instances) {
                if matches!(instance.kind, InstanceKind::External { .. }) {
                    instance.kind = InstanceKind::External { believed: false };
                }
            }
        }
        Loss::Session(which) => remove(&mut world.sessions, which),
        Loss::SessionProof(which) => {
            if let Some(session) = at(&mut world.sessions, which) {
                remove(&mut session.proofs, which / 3);
            }
        }
        Loss::Recency(age) => {
            for proof in world.sessions.iter_mut().flat_map(|session| &mut session.proofs) {
                proof.at = proof.at.plus(-age);
            }
        }
        Loss::Admission => person.refused = Some(NotAdmitted::Restricted),
        Loss::OneFactor => factors.are_required = true,
        Loss::Usable(which) => remove(&mut factors.usable, which),
        Loss::Enrolled(which) => {
            if let Some(factor) = at(&mut factors.usable, which) {
                factor.is_enrolled = false;
            }
        }
        Loss::RecoveryCode => factors.has_recovery_code = false,
        Loss::Enrolment => factors.enrolment = Enrolment::Closed,
        Loss::Remembered => factors.is_remembered = false,
        Loss::PasskeySatisfies => factors.does_passkey_satisfy = false,
        Loss::Passkey => person.passkey = None,
        Loss::PasskeyVerifies => {
            person.passkey =
                person.passkey.map(|passkey| crate::PasskeyFacts { verifies_user: false, ..passkey });
        }
        Loss::DueAction(action, urgency) => person.due.push(DueAction { action, urgency }),
        Loss::Deferral => person.due.iter_mut().for_each(|due| due.urgency = Urgency::Required),
        Loss::Consent(is_systematic) => {
            person.consent = match person.consent {
                Consent::External { .. } => Consent::External { is_covered: false },
                Consent::Implicit | Consent::Explicit { is_covered: true } if !is_systematic => {
                    Consent::Explicit { is_covered: false }
                }
                _ => Consent::Systematic,
            };
        }
    }
}
