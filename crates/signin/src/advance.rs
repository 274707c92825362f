//! What a person does on a page, and what comes next: in one transaction.

use chancery_flow::Event;
use chancery_resource::{Context, Problem, Tx};
use chancery_store::Mode;

use crate::{
    completion::{Completion, Decided},
    kept_flow::{KeptFlow, Mistake},
    outcome::{Judged, Outcome, PageError},
    provider::{Circumstances, Examined, Provider, Visit, context_of},
};

/// What a person did.
pub enum Done {
    /// This happened.
    Event(Event),
    /// These happened, one after the other, as far as they belong to what is due.
    Events([Event; 2]),
    /// An authenticator was enrolled: these recovery codes are shown before the flow goes on.
    Enrolled(Event, Vec<String>),
    /// What was typed is wrong: the code of the text that says why, and the field.
    Wrong(&'static str, &'static str),
    /// What was typed is wrong in these respects: the code of each text, and its field.
    Faults(Vec<(&'static str, String)>),
    /// The same, where the answer tells something of others: it counts as a wrong proof.
    Taken(&'static str, String),
    /// It does not belong to the step that is due, or nothing is left to do.
    Nothing,
}

/// What came of it.
pub enum Advanced {
    Wrong(&'static str, &'static str),
    Faults(Vec<(&'static str, String)>, Judged),
    Decided(Decided, Vec<String>, Judged),
}

/// The transaction in which a person does something.
pub struct Doing<'a> {
    /// All that is known of the flow.
    pub completion: &'a Completion,
    /// The store by which the person signs in, acting for that person; of people from elsewhere the person.
    pub context: &'a Context,
    /// What is due.
    pub examined: &'a Examined,
}

impl Provider<'_> {
    /// Does what a person wants on a page, and goes on; and what was judged.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn advance(
        self,
        visit: &Visit,
        (mut kept, page): (KeptFlow, &'static str),
        act: impl Fn(&Doing<'_>, &mut Tx<'_>) -> Result<Done, Problem> + Send + Sync + 'static,
    ) -> Result<(Outcome, Judged), Problem> {
        let Some(application) = self.application_of(&kept).await? else {
            return Ok((Outcome::Error(PageError::UNKNOWN_CLIENT), Judged::Not));
        };
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let Some(completion) = self.completion(visit, &kept, &circumstances) else {
            return Ok((Outcome::Error(PageError::NO_FLOW), Judged::Not));
        };
        kept.mistake = None;
        let advancing = move |tx: &mut Tx<'_>| run(&completion, tx, &act);
        match self.store.run("AdvanceSignIn", Mode::Write, None, advancing).await? {
            Advanced::Wrong(code, field) => Ok((kept.again(page, code, field), Judged::Wrong)),
            Advanced::Faults(faults, judged) => {
                let faults = faults.into_iter().map(|(code, field)| (code.to_owned(), field));
                Ok((kept.again_with(page, faults.collect()), judged))
            }
            Advanced::Decided(decided, codes, judged) => {
                if !codes.is_empty() {
                    kept.enrolling = None;
                }
                kept.recovery_codes = codes;
                Ok((self.conclude(visit, kept, circumstances, decided).await?, judged))
            }
        }
    }
}

fn run(
    completion: &Completion,
    tx: &mut Tx<'_>,
    act: &dyn Fn(&Doing<'_>, &mut Tx<'_>) -> Result<Done, Problem>,
) -> Result<Advanced, Problem> {
    let sessions = completion.sessions(tx)?;
    let before = completion.examine(tx, &sessions)?;
    let go_on = |examined: &Examined| Decided::GoOn(examined.due.flow().clone().into());
    let (Some(identified), Some(admitted)) = (before.due.identified(), &before.admitted) else {
        return Ok(Advanced::Decided(go_on(&before), Vec::new(), Judged::Not));
    };
    let context = context_of(&completion.app, tx, (admitted, identified), completion.now)?;
    let doing = Doing { completion, context: &context, examined: &before };
    let (events, codes) = match act(&doing, tx)? {
        Done::Wrong(code, field) => return Ok(Advanced::Wrong(code, field)),
        Done::Faults(faults) => return Ok(Advanced::Faults(faults, Judged::Not)),
        Done::Taken(code, field) => return Ok(Advanced::Faults(vec![(code, field)], Judged::Wrong)),
        Done::Event(event) => (vec![event], Vec::new()),
        Done::Events(events) => (events.to_vec(), Vec::new()),
        Done::Enrolled(event, codes) => (vec![event], codes),
        Done::Nothing => (Vec::new(), Vec::new()),
    };
    let is_changed = !events.is_empty();
    let mut after = before;
    for event in events {
        after = completion.apply(tx, &sessions, after, event)?;
    }
    // the codes are shown first: they are shown once
    let decided =
        if codes.is_empty() { completion.sign_in(&context, tx, &sessions, &after, None)? } else { None };
    if is_changed && decided.is_none() {
        completion.record_refusal(&context, tx, &after)?;
    }
    let judged = if is_changed { Judged::Right } else { Judged::Not };
    Ok(Advanced::Decided(decided.unwrap_or_else(|| go_on(&after)), codes, judged))
}

impl KeptFlow {
    /// A page once more, with what is wrong.
    pub(crate) fn again(self, page: &'static str, code: &str, field: &str) -> Outcome {
        self.again_with(page, vec![(code.to_owned(), field.to_owned())])
    }

    /// A page once more, with all that is wrong.
    pub(crate) fn again_with(mut self, page: &'static str, errors: Vec<(String, String)>) -> Outcome {
        self.mistake = Some(Mistake { page: page.to_owned(), errors, ..Mistake::default() });
        Outcome::GoTo(self.into(), page, None)
    }
}
