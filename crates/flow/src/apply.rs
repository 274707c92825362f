//! The effect of each event on a flow.

use uuid::Uuid;

use crate::{
    Action, Choice, Choices, Due, Event, EventRefusal, FirstFactor, Flow, Identified, InstanceKind, Method,
    Proof, Proven, Step, Urgency, consent::may_grant, flow::Ending,
};

impl Due {
    /// The flow after the event, at the time of the facts.
    ///
    /// # Errors
    /// A [`EventRefusal`] where the event does not belong to the current step.
    pub fn apply(&self, event: Event) -> Result<Flow, EventRefusal> {
        let mut flow = self.flow.clone();
        flow.is_touched |= is_user_interaction(&event);
        // a resolved tenant or session stays: a session that starts or ends in another tab changes neither
        // tenant nor person
        flow.tenant = self.tenant().or(flow.tenant);
        if let Some(session) = self.identified.as_ref().and_then(|identified| identified.session) {
            flow.session = Some(session);
        }
        self.change(&mut flow, event)?;
        Ok(flow)
    }

    fn tenant(&self) -> Option<Uuid> {
        match &self.step {
            Step::Account { tenant, .. } => Some(*tenant),
            Step::FirstFactor(page) => Some(page.tenant),
            _ => self.identified.as_ref().map(|identified| identified.tenant),
        }
    }

    fn change(&self, flow: &mut Flow, event: Event) -> Result<(), EventRefusal> {
        match (&self.step, event) {
            (Step::Fail(_) | Step::Done(_), _) => return Err(EventRefusal::NotDue),
            (Step::Refuse(reason), Event::Back | Event::Cancelled) => {
                flow.ending = Some(Ending::NotAdmitted(*reason));
            }
            (_, Event::Cancelled) => flow.ending = Some(Ending::Cancelled),
            (Step::Tenant(tenants), Event::TenantChosen(tenant)) => {
                flow.tenant = Some(check_offered(tenants, tenant)?);
            }
            (Step::Account { sessions, .. }, Event::SessionChosen(session)) => {
                flow.session = Some(check_offered(sessions, session)?);
            }
            (Step::Account { .. } | Step::Refuse(_), Event::OtherAccount) => other_account(flow),
            (Step::FirstFactor(page), Event::FirstFactorProven(proven)) => {
                check_first_factor(page, &proven)?;
                flow.proofs.push(Proof::new(proven, self.now));
            }
            (Step::SecondFactor(choices) | Step::StepUp { choices, .. }, Event::FactorProven(proven))
            | (Step::EnrolFactor(choices), Event::FactorEnrolled(proven)) => {
                check_factor(choices, self.identified.as_ref(), &proven)?;
                flow.proofs.push(Proof::new(proven, self.now));
            }
            (
                Step::SecondFactor(choices) | Step::StepUp { choices, .. } | Step::EnrolFactor(choices),
                Event::OtherFactor(choice),
            ) => flow.choice = Some(check_offered::<Choice>(&choices.all, choice)?),
            (Step::Action(due), Event::ActionDone(action)) if due.action == action => {}
            (Step::Action(due), Event::PasswordSet(proven)) if due.action == Action::Password => {
                check_password(self.identified.as_ref(), &proven)?;
                flow.proofs.push(Proof::new(proven, self.now));
            }
            (Step::Action(due), Event::Deferred(action)) if due.action == action => {
                if due.urgency == Urgency::Required {
                    return Err(EventRefusal::NotOffered);
                }
                flow.deferred.insert((self.person()?, action));
            }
            (Step::Consent, Event::ConsentGiven(granted)) => {
                if !may_grant(&flow.request, &granted) {
                    return Err(EventRefusal::NotOffered);
                }
                flow.consent = Some((self.person()?, granted));
            }
            (Step::Consent, Event::ConsentDenied) => flow.ending = Some(Ending::Denied),
            (Step::Touch, Event::Continued) => {}
            _ => return Err(EventRefusal::NotDue),
        }
        Ok(())
    }

    fn person(&self) -> Result<Uuid, EventRefusal> {
        self.identified.as_ref().map(|identified| identified.person).ok_or(EventRefusal::NotDue)
    }
}

/// Whether a person acted here. A person who returns from a provider may have been redirected there and back
/// without a click.
const fn is_user_interaction(event: &Event) -> bool {
    !matches!(event, Event::FirstFactorProven(Proven { method: Method::External { .. }, .. }))
}

/// Another account was requested: neither the session nor earlier proofs count any longer.
fn other_account(flow: &mut Flow) {
    flow.session = None;
    flow.is_other_account = true;
    flow.set_aside = flow.proofs.len();
}

fn check_offered<T: PartialEq>(all: &[T], one: T) -> Result<T, EventRefusal> {
    if all.contains(&one) { Ok(one) } else { Err(EventRefusal::NotOffered) }
}

/// A first factor must be proven at an instance that is offered, at a provider if and only if the instance is
/// one.
fn check_first_factor(page: &FirstFactor, proven: &Proven) -> Result<(), EventRefusal> {
    let is_external = matches!(proven.method, Method::External { .. });
    let fits = page.offered.iter().any(|instance| {
        instance.id == proven.instance
            && matches!(instance.kind, InstanceKind::External { .. }) == is_external
    });
    if fits && proven.method.is_first() { Ok(()) } else { Err(EventRefusal::NotOffered) }
}

/// A password is set by the person who is signing in, where the first factor was proven.
fn check_password(identified: Option<&Identified>, proven: &Proven) -> Result<(), EventRefusal> {
    let identified = identified.ok_or(EventRefusal::NotDue)?;
    if proven.person != identified.person {
        return Err(EventRefusal::OtherPerson);
    }
    let fits = proven.method == Method::Password && proven.instance == identified.instance;
    if fits { Ok(()) } else { Err(EventRefusal::NotOffered) }
}

/// A second factor must be one of the choices, proven by the person who is signing in.
fn check_factor(
    choices: &Choices,
    identified: Option<&Identified>,
    proven: &Proven,
) -> Result<(), EventRefusal> {
    let identified = identified.ok_or(EventRefusal::NotDue)?;
    if proven.person != identified.person {
        return Err(EventRefusal::OtherPerson);
    }
    let is_choice = choices.all.iter().any(|choice| choice.is_satisfied_by(proven, &identified.offered));
    if is_choice { Ok(()) } else { Err(EventRefusal::NotOffered) }
}
