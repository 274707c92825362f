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

/// How a person can satisfy a requirement.
enum Available {
    Prove(Choices),
    Enrol(Choices),
    None,
}

impl Factors<'_> {
    /// The step that provides the second factor that an app or instance requires.
    pub fn second_factor(&self) -> Option<Step> {
        let factors = &self.facts.second_factors;
        if !factors.are_required || self.has_second_factor() || self.is_exempt() {
            return None;
        }
        Some(match self.available(|method| self.is_second_factor(method)) {
            Available::Prove(choices) => Step::SecondFactor(choices),
            Available::Enrol(choices) => Step::EnrolFactor(choices),
            Available::None => Step::Refuse(NotAdmitted::SecondFactorUnavailable),
        })
    }

    /// The step that reaches a demanded class.
    pub fn step_up(&self) -> Option<Step> {
        let to = self.flow.request.required_acr().filter(|required| self.acr_with(None) < Some(*required))?;
        Some(match self.available(|method| self.acr_with(Some(method)) >= Some(to)) {
            Available::Prove(choices) if to == Acr::Mfa && !self.has_second_factor() => {
                Step::SecondFactor(choices)
            }
            Available::Prove(choices) => Step::StepUp { to, choices },
            Available::Enrol(choices) => Step::EnrolFactor(choices),
            Available::None => Step::Fail(Failure::UnmetAuthenticationRequirements),
        })
    }

    fn has_second_factor(&self) -> bool {
        self.proofs.iter().any(|proof| self.is_second_factor(proof.method))
    }

    /// Whether the method is a second factor as an app or instance requires it.
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

    /// Whether the browser is remembered: never against a demanded class, nor where no second factor could be
    /// proven.
    fn is_exempt(&self) -> bool {
        let factors = &self.facts.second_factors;
        let is_required = self.flow.request.required_acr() >= Some(Acr::Mfa);
        factors.is_remembered && !factors.usable.is_empty() && !is_required
    }

    /// The class that is reached, with one additional method.
    fn acr_with(&self, additional: Option<Method>) -> Option<Acr> {
        acr_of(self.proofs.iter().map(|proof| proof.method).chain(additional))
    }

    fn available(&self, suffices: impl Fn(Method) -> bool) -> Available {
        let provable = self.provable().into_iter().filter(|(_, method)| suffices(*method));
        if let Some(choices) = self.choices(provable.map(|(choice, _)| choice).collect()) {
            return Available::Prove(choices);
        }
        let authenticators = self.authenticators().filter(|_| self.may_enrol() && suffices(Method::Totp));
        let all = authenticators.map(|instance| Choice::Code { instance, kind: CodeKind::Totp }).collect();
        self.choices(all).map_or(Available::None, Available::Enrol)
    }

    fn choices(&self, all: Vec<Choice>) -> Option<Choices> {
        Choices::new(all, self.flow.choice)
    }

    /// Everything that the person can prove besides a first factor, with the method of that proof.
    fn provable(&self) -> Vec<(Choice, Method)> {
        let factors = &self.facts.second_factors;
        let code = |factor: &UsableFactor| {
            (Choice::Code { instance: factor.instance, kind: factor.kind }, factor.kind.method())
        };
        let is_enrolled_totp = |factor: &&UsableFactor| factor.kind == CodeKind::Totp && factor.is_enrolled;
        let recovery = factors.usable.iter().find(is_enrolled_totp).filter(|_| factors.has_recovery_code);
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
