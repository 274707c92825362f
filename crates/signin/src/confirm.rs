//! The page that asks for a second factor, and the one that enrols an authenticator.

use chancery_application::APPLICATION_USER;
use chancery_flow::{Choice, CodeKind, Event, Method, Proven, Step};
use chancery_resource::{Context, Problem, Tx, load, note};
use chancery_userstore::user::{begin_attempt, user_of};
use uuid::Uuid;

use crate::{
    advance::{Doing, Done},
    kept_flow::KeptFlow,
    outcome::{Judged, Outcome},
    page::{ENROL, SECOND_FACTOR},
    prepare::store_of,
    provider::{Provider, Visit, context_of_person},
    record::Outcome as Recorded,
    second_factor::{
        Enrolling, Purpose, Typed, choice_of, enrol, guard, make_recovery_codes, use_code,
        verify_authenticator, verify_sent,
    },
};

/// The longest code that is looked at, in bytes.
const LONGEST: usize = 64;

/// What a person did on the page.
pub struct Confirmation {
    /// The code that was typed.
    pub code: String,
    /// Whether this browser is spared next time.
    pub remembers: bool,
}

impl Provider<'_> {
    /// Goes another way on a page of second factors: by the one that was chosen, with another code, or back to the app.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn go_other_way(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        choice: &str,
    ) -> Result<Outcome, Problem> {
        kept.mistake = None;
        match (choice, choice_of(choice)) {
            (_, Some(choice)) => self.apply(visit, kept, move |_| Event::OtherFactor(choice)).await,
            ("cancel", None) => self.apply(visit, kept, |_| Event::Cancelled).await,
            (_, None) => self.send_again(visit, kept, SECOND_FACTOR).await,
        }
    }

    /// Answers a post to the page that asks for a second factor; and what was judged.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn confirm(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        typed: Confirmation,
    ) -> Result<(Outcome, Judged), Problem> {
        if typed.code.trim().is_empty() {
            return Ok((kept.again(SECOND_FACTOR, "missing_code", "code"), Judged::Not));
        }
        kept.remembers = typed.remembers;
        let code = typed.code;
        self.advance(visit, (kept, SECOND_FACTOR), move |doing, tx| prove(doing, tx, &code)).await
    }

    /// Answers a post to the page that enrols an authenticator; and what was judged.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn enrol(
        self,
        visit: &Visit,
        kept: KeptFlow,
        code: String,
    ) -> Result<(Outcome, Judged), Problem> {
        if code.trim().is_empty() {
            return Ok((kept.again(ENROL, "missing_code", "code"), Judged::Not));
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
    let store = store_of(&doing.completion.circumstances, doing.examined);
    if guard::is_shut(tx, person, context.now)? {
        return Ok(Done::Wrong("locked", "code"));
    }
    // people from elsewhere have the guard alone
    let attempt = match &admitted.user {
        None => None,
        Some(user) => {
            let Some(user) = user_of(context, tx, user.user)? else { return Ok(Done::Nothing) };
            let Some(attempt) = begin_attempt(context, tx, Some(user))? else {
                return Ok(Done::Wrong("too_many", "code"));
            };
            Some(attempt)
        }
    };
    let typed = if typed.len() <= LONGEST { typed } else { "" };
    let proven = |instance, method, credential| Proven { person, instance, method, credential };
    let found = match choices.chosen {
        Choice::Passkey => return Ok(Done::Nothing),
        Choice::RecoveryCode { instance } => {
            let id = use_code(context, tx, (person, instance), typed)?;
            id.map(|id| proven(instance, Method::RecoveryCode, Some(id)))
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
        if let Some(attempt) = attempt {
            attempt.fail(context, tx)?;
        }
        guard::note_wrong(context, tx, store, person)?;
        let whose = (person, identified.tenant);
        doing.completion.record(Recorded::WrongFactor, identified.instance, whose).write(context, tx)?;
        return Ok(Done::Wrong("code_wrong", "code"));
    };
    guard::clear(tx, person)?;
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
    let codes = make_recovery_codes(context, tx, (person, id))?;
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
    let context = context_of_person(&context.app, person, context.now);
    let row = load(&context, tx, &APPLICATION_USER, None, person.into())?;
    note(&context, tx, &APPLICATION_USER, (&row, row.values.as_slice()), ("Modified", event))
}
