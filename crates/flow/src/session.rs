//! Which of a browser's sessions may take the place of a first factor.

use chancery_record::Timestamp;
use uuid::Uuid;

use crate::{AppFacts, Proof, Request, SessionFacts};

/// The browser's sessions, seen by a request in a tenant.
#[derive(Clone, Copy)]
pub struct Sessions<'a> {
    pub request: &'a Request,
    pub facts: AppFacts<'a>,
    pub tenant: Uuid,
    pub offered: &'a [Uuid],
    pub now: Timestamp,
}

impl<'a> Sessions<'a> {
    /// Those of the tenant and of the people whom the hints name, by an instance that is offered. A
    /// `login_hint` only fills the name, unless there is no page for a name.
    pub fn eligible(self) -> impl Iterator<Item = &'a SessionFacts> {
        self.facts.sessions.iter().filter(move |session| {
            let request = self.request;
            session.tenant == self.tenant
                && request.hinted_person.is_none_or(|person| person == session.person)
                && (session.fits_login_hint || !request.has_login_hint || !request.is_silent())
                && self.first_factors(session).next().is_some()
        })
    }

    /// Those that need no new first factor.
    pub fn fitting(self) -> impl Iterator<Item = &'a SessionFacts> {
        self.eligible().filter(move |session| self.is_fresh(session))
    }

    /// Those among which to choose where none was chosen: if the `login_hint` fits some, these.
    pub fn candidates(self) -> Vec<&'a SessionFacts> {
        let mut all: Vec<&SessionFacts> = self.fitting().collect();
        if self.request.has_login_hint && all.iter().any(|session| session.fits_login_hint) {
            all.retain(|session| session.fits_login_hint);
        }
        all
    }

    /// The session of this person, of which a browser has one in a tenant.
    pub fn of(self, person: Uuid) -> Option<Uuid> {
        let is_theirs = |session: &&SessionFacts| session.tenant == self.tenant && session.person == person;
        self.facts.sessions.iter().find(is_theirs).map(|session| session.id)
    }

    fn is_fresh(self, session: &SessionFacts) -> bool {
        if self.request.wants_login() {
            return false;
        }
        let Some(seconds) = self.request.max_age else { return self.first_factors(session).next().is_some() };
        let longest = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
        let dated = self.first_factors(session).filter(|proof| proof.has_auth_time());
        dated.map(Proof::auth_time).max().is_some_and(|time| self.now.0.saturating_sub(time.0) <= longest)
    }

    fn first_factors(self, session: &SessionFacts) -> impl Iterator<Item = &Proof> {
        session.proofs.iter().filter(move |proof| {
            proof.person == session.person
                && proof.method.is_first()
                && self.offered.contains(&proof.instance)
        })
    }
}
