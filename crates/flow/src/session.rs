//! The browser's sessions that can replace a first factor.

use chancery_record::Timestamp;
use uuid::Uuid;

use crate::{AppFacts, Proof, Request, SessionFacts};

/// The browser's sessions, as they apply to a request in a tenant.
#[derive(Clone, Copy)]
pub struct Sessions<'a> {
    pub request: &'a Request,
    pub facts: AppFacts<'a>,
    pub tenant: Uuid,
    pub offered: &'a [Uuid],
    pub now: Timestamp,
}

impl<'a> Sessions<'a> {
    /// The sessions of the tenant and of the people whom the hints name, by an instance that is offered. A
    /// `login_hint` only fills in the name, unless there is no page for a name.
    pub fn eligible(self) -> impl Iterator<Item = &'a SessionFacts> {
        self.facts.sessions.iter().filter(move |session| {
            let request = self.request;
            session.tenant == self.tenant
                && request.hinted_person.is_none_or(|person| person == session.person)
                && (session.fits_login_hint || !request.has_login_hint || !request.is_silent())
                && self.first_factors(session).next().is_some()
        })
    }

    /// The sessions that need no new first factor.
    pub fn reusable(self) -> impl Iterator<Item = &'a SessionFacts> {
        self.eligible().filter(move |session| self.is_fresh(session))
    }

    /// The sessions to choose among where none was chosen: those that match the `login_hint`, if there are any.
    pub fn candidates(self) -> Vec<&'a SessionFacts> {
        let mut all: Vec<&SessionFacts> = self.reusable().collect();
        if self.request.has_login_hint && all.iter().any(|session| session.fits_login_hint) {
            all.retain(|session| session.fits_login_hint);
        }
        all
    }

    /// The session of this person; a browser has only one in a tenant.
    pub fn of(self, person: Uuid) -> Option<Uuid> {
        let is_of_person =
            |session: &&SessionFacts| session.tenant == self.tenant && session.person == person;
        self.facts.sessions.iter().find(is_of_person).map(|session| session.id)
    }

    fn is_fresh(self, session: &SessionFacts) -> bool {
        if self.request.wants_login() {
            return false;
        }
        let Some(seconds) = self.request.max_age else { return self.first_factors(session).next().is_some() };
        let max_age_ms = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
        let with_auth_time = self.first_factors(session).filter(|proof| proof.has_auth_time());
        with_auth_time
            .map(Proof::auth_time)
            .max()
            .is_some_and(|time| self.now.0.saturating_sub(time.0) <= max_age_ms)
    }

    fn first_factors(self, session: &SessionFacts) -> impl Iterator<Item = &Proof> {
        session.proofs.iter().filter(move |proof| {
            proof.person == session.person
                && proof.method.is_first()
                && self.offered.contains(&proof.instance)
        })
    }
}
