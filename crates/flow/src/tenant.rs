//! The tenant of a flow, and the instances that it offers.

use std::ops::ControlFlow;

use uuid::Uuid;

use crate::{AppFacts, Failure, Flow, InstanceFacts, Request, Step, TenantFacts};

/// The flow's tenant. The first of these decides: the request, the flow so far, the browser's sessions, there
/// being only one, the caller's address. A tenant that the first two name and that no longer exists is not
/// replaced.
pub fn tenant_of<'a>(flow: &Flow, facts: &AppFacts<'a>) -> ControlFlow<Step, &'a TenantFacts> {
    let tenants = facts.tenants;
    let tenant = match flow.request.tenant.or(flow.tenant) {
        Some(named) => tenants.iter().find(|tenant| tenant.id == named),
        None => only(tenants.iter().filter(|tenant| has_session(facts, tenant.id)))
            .or_else(|| only(tenants.iter()))
            .or_else(|| only(tenants.iter().filter(|tenant| facts.in_range.contains(&tenant.id)))),
    };
    let may_choose = flow.request.tenant.or(flow.tenant).is_none() && !tenants.is_empty();
    match tenant {
        Some(tenant) => ControlFlow::Continue(tenant),
        None if may_choose => {
            ControlFlow::Break(Step::Tenant(tenants.iter().map(|tenant| tenant.id).collect()))
        }
        None => ControlFlow::Break(Step::Fail(Failure::NotServed)),
    }
}

fn has_session(facts: &AppFacts<'_>, tenant: Uuid) -> bool {
    facts.sessions.iter().any(|session| session.tenant == tenant)
}

/// The only one; `None` where there are none or more.
pub fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

/// The instances that are offered. One that the request names and that is not usable is not replaced: removing
/// it must not make others available.
pub fn offered<'a>(
    request: &Request,
    tenant: &'a TenantFacts,
) -> impl Iterator<Item = &'a InstanceFacts> + use<'a> {
    let named = request.instance;
    tenant.instances.iter().filter(move |instance| match named {
        Some(named) => instance.id == named,
        None => !instance.is_hidden,
    })
}
