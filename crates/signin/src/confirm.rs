//! The page that asks for a second factor, and the one that enrols an authenticator.

use chancery_application::APPLICATION_USER;
use chancery_flow::{Choice, CodeKind, Event, Method, Proven, Step};
use chancery_resource::{Context, Problem, Scope, Tx, load, note};
use chancery_userstore::user::{begin_attempt, user_of};
use uuid::Uuid;

use crate::{
    advance::{Doing, Done},
    kept_flow::KeptFlow,
    outcome::Outcome,
    page::{ENROL, SECOND_FACTOR},
    provider::{Provider, Visit},
    record::{Outcome as Recorded, SignInRecord},
    second_factor::{
        Enrolling, Purpose, Typed, choice_of, enrol, make_recovery_codes, use_code, verify_authenticator,
        verify_sent,
    },
};

/// The longest code that is looked at, in bytes.
const LONGEST: usize = 64;

/// What a person did on the page.
pub struct Confirmation {
    /// The code that was typed.
    pub code: String,
    /// Whether another code is to be sent.
    pub again: bool,
    /// The other way that was chosen.
    pub choice: Option<String>,
    /// Whether this browser is spared next time.
    pub remembers: bool,
}

impl Provider<'_> {
    /// Answers a post to the page that asks for a second factor; and whether what was typed is right.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn confirm(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        typed: Confirmation,
    ) -> Result<(Outcome, bool), Problem> {
        if let Some(choice) = typed.choice.as_deref().and_then(choice_of) {
            kept.mistake = None;
            let outcome = self.apply(visit, kept, move |_| Event::OtherFactor(choice)).await?;
            return Ok((outcome, true));
        }
        if typed.again {
            return Ok((self.send_again(visit, kept, SECOND_FACTOR).await?, true));
        }
        if typed.code.trim().is_empty() {
            return Ok((kept.again(SECOND_FACTOR, "missing_code", "code"), true));
        }
        kept.remembers = typed.remembers;
        let code = typed.code;
        self.advance(visit, (kept, SECOND_FACTOR), move |doing, tx| prove(doing, tx, &code)).await
    }

    /// Answers a post to the page that enrols an authenticator; and whether the code was right.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn enrol(
        self,
        visit: &Visit,
        kept: KeptFlow,
        code: String,
    ) -> Result<(Outcome, bool), Problem> {
        if code.trim().is_empty() {
            return Ok((kept.again(ENROL, "missing_code", "code"), true));
        }
        let enrolling = kept.enrolling.clone();
        let act = move |doing: &Doing<'_>, tx: &mut Tx<'_>| keep(doing, tx, enrolling.as_ref(), &code);
        self.advance(visit, (kept, ENROL), act).await
    }

    /// Answers a post to the page of recovery codes: they were seen.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn recovery_codes_seen(self, visit: &Visit, mut kept: KeptFlow) -> Result<Outcome, Problem> {
        kept.recovery_codes.clear();
        kept.enrolling = None;
        Ok(self.advance(visit, (kept, ENROL), |_, _| Ok(Done::Nothing)).await?.0)
    }
}

/// Verifies a code, which counts as an attempt to sign in.
fn prove(doing: &Doing<'_>, tx: &mut Tx<'_>, typed: &str) -> Result<Done, Problem> {
    let (Step::SecondFactor(choices) | Step::StepUp { choices, .. }) = doing.examined.due.step() else {
        return Ok(Done::Nothing);
    };
    let (Some(identified), Some(admitted)) = (doing.examined.due.identified(), &doing.examined.admitted)
    else {
        return Ok(Done::Nothing);
    };
    let (context, person) = (doing.context, identified.person);
    let Some(user) = user_of(context, tx, admitted.user)? else { return Ok(Done::Nothing) };
    let Some(attempt) = begin_attempt(context, tx, user)? else { return Ok(Done::Wrong("too_many", "code")) };
    let typed = if typed.len() <= LONGEST { typed } else { "" };
    let proven = |instance, method, credential| Proven { person, instance, method, credential };
    let found = match choices.chosen {
        Choice::Passkey => return Ok(Done::Nothing),
        Choice::RecoveryCode { instance } => {
            use_code(context, tx, person, typed)?.then(|| proven(instance, Method::RecoveryCode, None))
        }
        Choice::Code { instance, kind } => {
            let Some(factor) = doing.completion.circumstances.factor(doing.examined, instance) else {
                return Ok(Done::Nothing);
            };
            if kind == CodeKind::Totp {
                let id = verify_authenticator(context, tx, factor, person, typed)?;
                id.map(|id| proven(instance, Method::Totp, Some(id)))
            } else {
                match verify_sent(context, tx, &Purpose::Factor(factor.clone()), person, typed)? {
                    Typed::Right => Some(proven(instance, kind.method(), None)),
                    Typed::Wrong => None,
                    // nothing was shown that could have been right
                    Typed::Over => return Ok(Done::Wrong("code_expired", "code")),
                }
            }
        }
    };
    let Some(proven) = found else {
        attempt.fail(context, tx)?;
        let whose = (person, identified.tenant);
        let record = doing.completion.record(Recorded::WrongFactor, identified.instance, whose);
        SignInRecord { ..record }.write(context, tx)?;
        return Ok(Done::Wrong("code_wrong", "code"));
    };
    Ok(Done::Event(Event::FactorProven(proven)))
}

/// Keeps an authenticator whose first code is right.
fn keep(
    doing: &Doing<'_>,
    tx: &mut Tx<'_>,
    enrolling: Option<&Enrolling>,
    typed: &str,
) -> Result<Done, Problem> {
    let (Step::EnrolFactor(choices), Some(identified), Some(enrolling)) =
        (doing.examined.due.step(), doing.examined.due.identified(), enrolling)
    else {
        return Ok(Done::Nothing);
    };
    let instance = enrolling.instance;
    let is_chosen = choices.chosen == Choice::Code { instance, kind: CodeKind::Totp };
    let Some(factor) = doing.completion.circumstances.factor(doing.examined, instance).filter(|_| is_chosen)
    else {
        return Ok(Done::Nothing);
    };
    let (context, person) = (doing.context, identified.person);
    let typed = if typed.len() <= LONGEST { typed } else { "" };
    let Some(id) = enrol(context, tx, factor, person, (enrolling, typed))? else {
        return Ok(Done::Wrong("code_wrong", "code"));
    };
    let codes = make_recovery_codes(context, tx, person)?;
    note_person(context, tx, person, "factor-enrolled")?;
    let proven = Proven { person, instance, method: Method::Totp, credential: Some(id) };
    Ok(Done::Enrolled(Event::FactorEnrolled(proven), codes))
}

/// Audits what a person did about the person's own sign-in.
///
/// # Errors
/// Those of the store.
pub fn note_person(
    context: &Context,
    tx: &mut Tx<'_>,
    person: Uuid,
    event: &'static str,
) -> Result<(), Problem> {
    let mut context = Context::of_server(&context.app, Scope::Everything, context.now);
    context.actor = Some(person);
    let row = load(&context, tx, &APPLICATION_USER, None, person.into())?;
    note(&context, tx, &APPLICATION_USER, (&row, row.values.as_slice()), ("Modified", event))
}
