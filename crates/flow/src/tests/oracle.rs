//! The requirements of a sign-in, derived independently from the facts, for the properties.

use chancery_record::Timestamp;

use crate::{
    Acr, Consent, Flow, Granted, InstanceFacts, InstanceKind, Method, Prompt, Proof, SessionFacts, SignedIn,
    Urgency, tests::World,
};

/// The unmet requirements of a sign-in.
pub fn unmet_requirements(
    world: &World,
    flow: &Flow,
    now: Timestamp,
    signed_in: &SignedIn,
) -> Vec<&'static str> {
    let case = Case { world, flow, now, signed_in };
    [
        (now.0 - flow.request.started.0 < 30 * 60_000, "time"),
        (flow.ending.is_none(), "a flow that goes on"),
        (case.has_tenant(), "a tenant that serves"),
        (flow.request.hinted_person.is_none_or(|expected| expected == signed_in.person), "the hinted person"),
        (case.has_first_factor(), "a first factor of an offered instance within max_age"),
        (world.person.refused.is_none(), "admission"),
        (case.has_second_factor(), "the second factor that is asked for"),
        (case.has_acr(), "the class that is demanded"),
        (case.has_genuine_acr(), "proofs of its class"),
        (case.has_genuine_proofs(), "proofs that were made by this person"),
        (case.has_done_actions(), "an action that is due"),
        (case.has_consent(), "consent"),
        (case.was_requested(), "a request for what was granted"),
        (case.has_interaction(), "a touch"),
    ]
    .into_iter()
    .filter_map(|(is_met, requirement)| (!is_met).then_some(requirement))
    .collect()
}

struct Case<'a> {
    world: &'a World,
    flow: &'a Flow,
    now: Timestamp,
    signed_in: &'a SignedIn,
}

impl<'a> Case<'a> {
    fn has_tenant(&self) -> bool {
        let tenant = self.signed_in.tenant;
        let requested = self.flow.request.tenant.or(self.flow.tenant);
        self.world.tenants.iter().any(|served| served.id == tenant)
            && requested.is_none_or(|requested| requested == tenant)
    }

    fn instance_of(&self, proof: &Proof) -> Option<&'a InstanceFacts> {
        let tenant = self.world.tenants.iter().find(|tenant| tenant.id == self.signed_in.tenant)?;
        let instance = tenant.instances.iter().find(|instance| instance.id == proof.instance)?;
        let is_offered = match self.flow.request.instance {
            Some(requested) => requested == instance.id,
            None => !instance.is_hidden,
        };
        is_offered.then_some(instance)
    }

    fn is_first(&self, proof: &Proof) -> bool {
        proof.person == self.signed_in.person && proof.method.is_first() && self.instance_of(proof).is_some()
    }

    /// The proofs of this flow, since the account was last changed.
    fn current_proofs(&self) -> Vec<Proof> {
        self.flow.proofs.iter().skip(self.flow.set_aside).copied().collect()
    }

    /// The sessions that could replace a first factor.
    fn sessions(&self) -> Vec<&'a SessionFacts> {
        let request = &self.flow.request;
        let fits = |session: &&SessionFacts| {
            let is_recent = |proof: &Proof| {
                let age = u64::try_from(self.now.0 - proof.at.0).unwrap_or(0);
                let is_dated = !matches!(proof.method, Method::External { auth_time: None, .. });
                request.max_age.is_none_or(|seconds| is_dated && age <= seconds.saturating_mul(1000))
            };
            session.tenant == self.signed_in.tenant
                && session.person == self.signed_in.person
                && !matches!(request.prompt, Prompt::Pages { login: true, .. })
                && (request.prompt != Prompt::None || !request.has_login_hint || session.fits_login_hint)
                && session.proofs.iter().any(|proof| self.is_first(proof) && is_recent(proof))
        };
        self.world.sessions.iter().filter(fits).collect()
    }

    /// All proofs of the person that can count.
    fn all(&self) -> Vec<Proof> {
        let from_sessions = self.sessions().into_iter().flat_map(|session| session.proofs.clone());
        from_sessions
            .chain(self.current_proofs())
            .filter(|proof| proof.person == self.signed_in.person)
            .collect()
    }

    fn has_first_factor(&self) -> bool {
        let current_proofs = self.current_proofs();
        let is_own_first_factor =
            |proof: &Proof| proof.method.is_first() && proof.person == self.signed_in.person;
        let may_use_session = !self.flow.is_other_account || current_proofs.iter().any(is_own_first_factor);
        current_proofs.iter().any(|proof| self.is_first(proof))
            || (may_use_session && !self.sessions().is_empty())
    }

    fn is_usable_code(&self, proof: &Proof) -> bool {
        let usable = &self.world.person.second_factors.usable;
        !proof.method.is_first() && usable.iter().any(|factor| factor.instance == proof.instance)
    }

    fn is_verifying_passkey(&self, proof: &Proof) -> bool {
        matches!(proof.method, Method::Passkey { user_verified: true, .. }) && self.is_first(proof)
    }

    fn is_trusted(&self, proof: &Proof) -> bool {
        proof.method == Method::External { second_factor: true, auth_time: None }
            && self
                .instance_of(proof)
                .is_some_and(|instance| instance.kind == InstanceKind::External { believed: true })
    }

    fn has_second_factor(&self) -> bool {
        let factors = &self.world.person.second_factors;
        let is_second = |proof: &Proof| {
            self.is_usable_code(proof)
                || self.is_trusted(proof)
                || (factors.does_passkey_satisfy && self.is_verifying_passkey(proof))
        };
        let demanded = &self.flow.request.demanded;
        let is_demanded = !demanded.is_empty() && !demanded.contains(&Acr::Sfa);
        !factors.are_required
            || self.all().iter().any(is_second)
            || (factors.is_remembered && !factors.usable.is_empty() && !is_demanded)
    }

    fn has_acr(&self) -> bool {
        let demanded = &self.flow.request.demanded;
        demanded.is_empty() || demanded.iter().any(|acr| self.signed_in.acr >= *acr)
    }

    fn has_genuine_acr(&self) -> bool {
        let all = self.all();
        let knows = |proof: &Proof| self.is_first(proof) && !matches!(proof.method, Method::Passkey { .. });
        let has = |proof: &Proof| {
            self.is_usable_code(proof)
                || (self.is_first(proof) && matches!(proof.method, Method::Passkey { .. }))
        };
        let is_hardware = |proof: &Proof| {
            self.is_first(proof) && proof.method == Method::Passkey { user_verified: true, hardware: true }
        };
        match self.signed_in.acr {
            Acr::Sfa => true,
            Acr::Mfa => {
                all.iter().any(|proof| self.is_trusted(proof))
                    || (all.iter().any(knows) && all.iter().any(has))
            }
            Acr::Phr => all.iter().any(|proof| self.is_verifying_passkey(proof)),
            Acr::Phrh => all.iter().any(is_hardware),
        }
    }

    fn has_genuine_proofs(&self) -> bool {
        let all = self.all();
        let is_genuine = |proof: &Proof| {
            all.iter().any(|counted| counted.at == proof.at && counted.instance == proof.instance)
                && proof.person == self.signed_in.person
        };
        self.signed_in.proofs.iter().all(is_genuine)
            && all.iter().any(|proof| self.is_first(proof) && proof.at == self.signed_in.auth_time)
    }

    fn has_done_actions(&self) -> bool {
        let is_proven_here = self.current_proofs().iter().any(|proof| proof.person == self.signed_in.person);
        self.world.person.due.iter().all(|due| {
            due.urgency == Urgency::Offered
                && (!is_proven_here || self.flow.deferred.contains(&(self.signed_in.person, due.action)))
        })
    }

    fn has_consent(&self) -> bool {
        let is_prompted = matches!(self.flow.request.prompt, Prompt::Pages { consent: true, .. });
        let is_given = self.flow.consent.as_ref().is_some_and(|(grantor, granted)| {
            *grantor == self.signed_in.person && Some(granted) == self.signed_in.granted.as_ref()
        });
        match self.world.person.consent {
            Consent::Implicit => true,
            Consent::Explicit { is_covered } => is_given || (is_covered && !is_prompted),
            Consent::Systematic => is_given,
            Consent::External { is_covered } => is_covered,
        }
    }

    fn was_requested(&self) -> bool {
        let requested = &self.flow.request.requested;
        let fits = |granted: &Granted| {
            granted.words.contains("openid") && granted.words.iter().all(|word| requested.contains(word))
        };
        self.signed_in.granted.as_ref().is_none_or(fits)
    }

    fn has_interaction(&self) -> bool {
        !self.flow.request.is_native || self.flow.is_touched
    }
}
