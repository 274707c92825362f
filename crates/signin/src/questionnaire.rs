//! The page that asks people what they have not answered yet. Answers are checked outside of transactions, because of patterns, and
//! kept where the same items are still due.

use chancery_application::add_entries;
use chancery_flow::{Action, Event, Urgency};
use chancery_management::user_questionnaire_item::{AnswerFault, Item, ValidationFormat, check_submission};
use chancery_resource::{Problem, Purpose, StateTable, Tx, Work};
use chancery_userstore::{answers, synchronize::USERS};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    action::is_due,
    advance::{Doing, Done},
    kept_flow::{KeptFlow, Mistake},
    outcome::{Judged, Outcome, PageError},
    page::QUESTIONNAIRE,
    provider::{Circumstances, Examined, Provider, Visit, context_of_person},
    step::after_post,
};

/// The most bytes of what was typed that are kept for the page that says what is wrong.
const MOST_TYPED: usize = 16 << 10;

/// The answers that were typed, by the ids of the items.
type Typed = Vec<(Uuid, String)>;

/// Codes of problems, each with its field.
type Faults = Vec<(&'static str, String)>;

/// Answers that were checked.
struct Checked {
    /// The items that they are for.
    items: Vec<Item>,
    /// The keys and texts of those that are not blank.
    outcome: Result<Vec<(String, String)>, Faults>,
}

/// The field of an item's answer in the form.
fn field_of(item: Uuid) -> String {
    format!("item-{item}")
}

/// The item whose answer this field of the form is.
pub fn item_of(field: &str) -> Option<Uuid> {
    Uuid::try_parse(field.strip_prefix("item-")?).ok()
}

impl Provider<'_> {
    /// Checks the answers of a person outside of transactions, and stores them where all are good.
    ///
    /// # Errors
    /// The database fails, or the queue for patterns is full.
    pub async fn answer_questionnaire(
        self,
        visit: &Visit,
        kept: KeptFlow,
        typed: Typed,
    ) -> Result<(Outcome, Judged), Problem> {
        let Some(application) = self.application_of(&kept).await? else {
            return Ok((Outcome::Error(PageError::UNKNOWN_CLIENT), Judged::Not));
        };
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let examined = self.examine(visit, &kept, &circumstances).await?;
        let person = examined.due.identified().map(|identified| identified.person);
        let Some(person) = person.filter(|_| is_due(&examined, Action::Questionnaire).is_some()) else {
            let outcome = self.step(visit, kept.clone(), circumstances, examined).await?;
            return Ok((after_post(kept, outcome), Judged::Not));
        };
        let (items, given) = (examined.questions, typed.clone());
        let work = Work::new(Purpose::Pattern, move || check(items, &given));
        let checked = self.pool.run(Some(person), work).await?;
        let keeping = move |doing: &Doing<'_>, tx: &mut Tx<'_>| keep_answers(doing, tx, &checked);
        let (outcome, judged) = self.advance(visit, (kept, QUESTIONNAIRE), keeping).await?;
        Ok((with_typed(outcome, typed), judged))
    }
}

/// The page once more shows what was typed.
fn with_typed(outcome: Outcome, typed: Typed) -> Outcome {
    match outcome {
        Outcome::GoTo(mut kept, QUESTIONNAIRE, session) => {
            if let Some(mistake) = &mut kept.mistake {
                let mut room = MOST_TYPED;
                mistake.typed = typed
                    .into_iter()
                    .filter(|(_, text)| {
                        let fits = text.len() <= room;
                        room -= if fits { text.len() } else { 0 };
                        fits
                    })
                    .map(|(item, text)| (field_of(item), text))
                    .collect();
            }
            Outcome::GoTo(kept, QUESTIONNAIRE, session)
        }
        other => other,
    }
}

/// Checks answers by the rules of their items, and of the fields of users that they fill in.
fn check(items: Vec<Item>, given: &[(Uuid, String)]) -> Checked {
    let outcome = match check_submission(&items, given) {
        Ok(good) => fit(&items, good),
        Err(findings) if findings.iter().any(|finding| finding.fault == AnswerFault::NotAsked) => {
            Err(vec![("questionnaire_changed", String::new())])
        }
        Err(findings) => {
            Err(findings.iter().map(|finding| (code_of(finding.fault), field_of(finding.item))).collect())
        }
    };
    Checked { items, outcome }
}

fn fit(items: &[Item], good: Typed) -> Result<Vec<(String, String)>, Faults> {
    let (mut kept, mut faults) = (Vec::new(), Faults::new());
    // the answers are in the order of the items
    for (item, (_, answer)) in items.iter().zip(good).filter(|(_, (_, answer))| !answer.is_empty()) {
        match answers::fit(&item.key, answer) {
            Some(answer) => kept.push((item.key.clone(), answer)),
            None => faults.push(("answer_text", field_of(item.id))),
        }
    }
    if faults.is_empty() { Ok(kept) } else { Err(faults) }
}

/// The code of the text that says what is wrong with an answer.
const fn code_of(fault: AnswerFault) -> &'static str {
    match fault {
        AnswerFault::NotAsked => "questionnaire_changed",
        AnswerFault::Blank => "missing",
        AnswerFault::Text => "answer_text",
        AnswerFault::Short => "answer_short",
        AnswerFault::Long => "answer_long",
        AnswerFault::Email => "answer_email",
        AnswerFault::Phone => "answer_phone",
        AnswerFault::Pattern => "answer_pattern",
    }
}

fn keep_answers(doing: &Doing<'_>, tx: &mut Tx<'_>, checked: &Checked) -> Result<Done, Problem> {
    let (Some(_), Some(identified), Some(admitted)) = (
        is_due(doing.examined, Action::Questionnaire),
        doing.examined.due.identified(),
        &doing.examined.admitted,
    ) else {
        return Ok(Done::Nothing);
    };
    if doing.examined.questions != checked.items {
        return Ok(Done::Faults(vec![("questionnaire_changed", String::new())]));
    }
    let given = match &checked.outcome {
        Ok(given) => given,
        Err(faults) => return Ok(Done::Faults(faults.clone())),
    };
    if let Some(user) = &admitted.user {
        if let Err(taken) = answers::keep(doing.context, tx, user.user, given)? {
            let item = checked.items.iter().find(|item| item.key == taken.0);
            return Ok(Done::Taken("answer_taken", item.map_or_else(String::new, |item| field_of(item.id))));
        }
        let own = context_of_person(&doing.completion.app, identified.person, doing.context.now);
        let of_store = (user.store, identified.instance, user.user_id);
        USERS.refresh(&own, tx, admitted.person, of_store)?;
    } else if !given.is_empty() {
        add_entries(doing.context, tx, identified.person, given)?;
    }
    mark(doing, tx, identified.person)?;
    Ok(Done::Event(Event::ActionDone(Action::Questionnaire)))
}

/// Leaves the questions unanswered, where none must be answered.
///
/// # Errors
/// Those of the store.
pub fn leave_unanswered(doing: &Doing<'_>, tx: &mut Tx<'_>) -> Result<Done, Problem> {
    let (Some(due), Some(identified)) =
        (is_due(doing.examined, Action::Questionnaire), doing.examined.due.identified())
    else {
        return Ok(Done::Nothing);
    };
    if due.urgency == Urgency::Required {
        return Ok(Done::Nothing);
    }
    mark(doing, tx, identified.person)?;
    Ok(Done::Event(Event::PutOff(Action::Questionnaire)))
}

/// Notes that the person was shown the items that are due.
fn mark(doing: &Doing<'_>, tx: &mut Tx<'_>, person: Uuid) -> Result<(), Problem> {
    let text = StateTable::QuestionnaireMark.insert(
        "(person_id, item_id, shown_on) VALUES (?1, ?2, ?3) ON CONFLICT (person_id, item_id) DO NOTHING",
    );
    for item in &doing.examined.questions {
        tx.queue(&text, vec![person.into(), item.id.into(), doing.context.now.0.into()])?;
    }
    Ok(())
}

/// What the page shows.
pub fn context_of(kept: &KeptFlow, examined: &Examined, may_wait: bool) -> Value {
    let mistake = kept.mistake_on(QUESTIONNAIRE);
    let items: Vec<_> = examined.questions.iter().map(|item| shown(item, mistake)).collect();
    json!({ "items": items, "may_wait": may_wait })
}

fn shown(item: &Item, mistake: Option<&Mistake>) -> Value {
    let field = field_of(item.id);
    let typed = mistake.and_then(|mistake| mistake.typed.iter().find(|(name, _)| *name == field));
    let (kind, example) = match (item.format, item.key.as_str()) {
        (ValidationFormat::Email, _) | (ValidationFormat::None, "emailAddress") => ("email", None),
        (ValidationFormat::PhoneE164, _) => ("tel", Some("+4930123456")),
        (ValidationFormat::None, "phoneNumber") => ("tel", None),
        _ => ("text", None),
    };
    let count = |length: Option<i64>| length.filter(|length| *length > 0);
    json!({
        "id": field, "label": item.label, "required": item.is_required, "kind": kind,
        "autocomplete": autocomplete(&item.key), "value": typed.map(|(_, text)| text), "example": example,
        "least": count(item.min_length), "most": count(item.max_length),
    })
}

/// What a browser may fill in by itself (WCAG 2.2, 1.3.5): where the key is the name of a field that says who the person is.
fn autocomplete(key: &str) -> &'static str {
    match key {
        "firstName" => "given-name",
        "lastName" => "family-name",
        "middleName" => "additional-name",
        "nickname" => "nickname",
        "emailAddress" => "email",
        "phoneNumber" => "tel",
        "website" => "url",
        "picture" => "photo",
        "gender" => "sex",
        "birthdate" => "bday",
        "locale" => "language",
        _ => "off",
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{Item, ValidationFormat, check, field_of, item_of};

    fn item(number: u128, key: &str, is_required: bool) -> Item {
        Item {
            id: Uuid::from_u128(number),
            key: key.to_owned(),
            label: key.to_owned(),
            is_required,
            min_length: None,
            max_length: None,
            format: ValidationFormat::None,
            pattern: None,
        }
    }

    fn typed(given: &[(u128, &str)]) -> Vec<(Uuid, String)> {
        given.iter().map(|(number, text)| (Uuid::from_u128(*number), (*text).to_owned())).collect()
    }

    #[test]
    fn answers_are_kept_by_their_keys_and_blank_ones_are_not() {
        let items = vec![item(1, "firstName", true), item(2, "department", false), item(3, "team", false)];
        let checked = check(items, &typed(&[(1, " Ada "), (2, " "), (3, " R&D ")]));
        let kept = [("firstName", "Ada"), ("team", " R&D ")];
        assert_eq!(checked.outcome, Ok(kept.map(|(key, text)| (key.to_owned(), text.to_owned())).to_vec()));
    }

    #[test]
    fn each_answer_that_is_wrong_is_named() {
        let items = vec![item(1, "department", true), item(2, "birthdate", false), item(3, "team", true)];
        let found = |given: &[(u128, &str)]| check(items.clone(), &typed(given)).outcome.unwrap_err();
        let named = |code, number| (code, field_of(Uuid::from_u128(number)));
        assert_eq!(found(&[(1, ""), (2, ""), (3, "")]), [named("missing", 1), named("missing", 3)]);
        assert_eq!(found(&[(1, "a"), (2, "soon"), (3, "b")]), [named("answer_text", 2)]);
        assert_eq!(found(&[(1, "a"), (3, "")]), [("questionnaire_changed", String::new())]);
        assert_eq!(item_of(&field_of(Uuid::from_u128(7))), Some(Uuid::from_u128(7)));
        assert_eq!(item_of("item-1").or(item_of("csrf")), None);
    }
}
