//! Whether a second factor is proven, and how it can be.

use uuid::Uuid;

use crate::{
    Acr, Choice, Choices, CodeKind, Enrolment, Failure, Flow, Method, NotAdmitted, PersonFacts, Proof, Step,
    UsableFactor, acr_of,
};

/// The proofs of a person, and what else the person can prove.
pub struct Factors<'a> {
    pub flow: &'a Flow,
    pub facts: &'a PersonFacts,
    /// The proofs that count.
    pub proofs: &'a [Proof],
}

/// What a person can do for a demand.
enum Way {
    Prove(Choices),
    Enrol(Choices),
    None,
}

impl Factors<'_> {
    /// The step by which an app or instance gets the second factor that it asks for.
    pub fn second_factor(&self) -> Option<Step> {
        let factors = &self.facts.second_factors;
        if !factors.are_asked_for || self.has_second_factor() || self.is_spared() {
            return None;
        }
        Some(match self.way(|method| self.is_second_factor(method)) {
            Way::Prove(choices) => Step::SecondFactor(choices),
            Way::Enrol(choices) => Step::EnrolFactor(choices),
            Way::None => Step::Refuse(NotAdmitted::SecondFactorUnavailable),
        })
    }

    /// The step by which a demanded class is reached.
    pub fn step_up(&self) -> Option<Step> {
        let to = self.flow.request.needed().filter(|needed| self.acr_with(None) < Some(*needed))?;
        Some(match self.way(|method| self.acr_with(Some(method)) >= Some(to)) {
            Way::Prove(choices) if to == Acr::Mfa && !self.has_second_factor() => Step::SecondFactor(choices),
            Way::Prove(choices) => Step::StepUp { to, choices },
            Way::Enrol(choices) => Step::EnrolFactor(choices),
            Way::None => Step::Fail(Failure::UnmetAuthenticationRequirements),
        })
    }

    fn has_second_factor(&self) -> bool {
        self.proofs.iter().any(|proof| self.is_second_factor(proof.method))
    }

    /// Whether the method gives what an app or instance asks for.
    const fn is_second_factor(&self, method: Method) -> bool {
        match method {
            Method::Totp | Method::EmailCode | Method::SmsCode | Method::RecoveryCode => true,
            Method::Passkey { user_verified, .. } => {
                user_verified && self.facts.second_factors.does_passkey_satisfy
            }
            Method::External { second_factor, .. } => second_factor,
            Method::Password | Method::AccessPass => false,
        }
    }

    /// Whether the browser is remembered: never against a demand, nor where no second factor could be proven.
    fn is_spared(&self) -> bool {
        let factors = &self.facts.second_factors;
        let is_demanded = self.flow.request.needed() >= Some(Acr::Mfa);
        factors.is_remembered && !factors.usable.is_empty() && !is_demanded
    }

    /// The class that is reached, with one method more.
    fn acr_with(&self, more: Option<Method>) -> Option<Acr> {
        acr_of(self.proofs.iter().map(|proof| proof.method).chain(more))
    }

    fn way(&self, helps: impl Fn(Method) -> bool) -> Way {
        let provable = self.provable().into_iter().filter(|(_, method)| helps(*method));
        if let Some(choices) = self.choices(provable.map(|(choice, _)| choice).collect()) {
            return Way::Prove(choices);
        }
        let authenticators = self.authenticators().filter(|_| self.may_enrol() && helps(Method::Totp));
        let all = authenticators.map(|instance| Choice::Code { instance, kind: CodeKind::Totp }).collect();
        self.choices(all).map_or(Way::None, Way::Enrol)
    }

    fn choices(&self, all: Vec<Choice>) -> Option<Choices> {
        Choices::new(all, self.flow.choice)
    }

    /// All that the person can prove beside a first factor, with the method that it would be.
    fn provable(&self) -> Vec<(Choice, Method)> {
        let factors = &self.facts.second_factors;
        let code = |factor: &UsableFactor| {
            (Choice::Code { instance: factor.instance, kind: factor.kind }, factor.kind.method())
        };
        let enrolled = |factor: &&UsableFactor| factor.kind == CodeKind::Totp && factor.is_enrolled;
        let recovery = factors.usable.iter().find(enrolled).filter(|_| factors.has_recovery_code);
        factors
            .usable
            .iter()
            .filter(|factor| factor.is_enrolled)
            .map(code)
            .chain(self.facts.passkey.map(|passkey| (Choice::Passkey, passkey.method())))
            .chain(
                recovery
                    .map(|factor| (Choice::RecoveryCode { instance: factor.instance }, Method::RecoveryCode)),
            )
            .collect()
    }

    fn authenticators(&self) -> impl Iterator<Item = Uuid> {
        let usable = self.facts.second_factors.usable.iter();
        usable.filter(|factor| factor.kind == CodeKind::Totp).map(|factor| factor.instance)
    }

    fn may_enrol(&self) -> bool {
        match self.facts.second_factors.enrolment {
            Enrolment::Closed => false,
            Enrolment::AtSignIn => true,
            Enrolment::AfterAccessPass => self.proofs.iter().any(|proof| proof.method == Method::AccessPass),
        }
    }
}
