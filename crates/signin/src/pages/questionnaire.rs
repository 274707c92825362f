//! The questionnaire page. Answers are checked outside of transactions, because of patterns, and stored if the same
//! items are still due.

use chancery_application::add_entries;
use chancery_flow::{Action, Event, Urgency};
use chancery_management::user_questionnaire_item::{AnswerFault, Item, ValidationFormat, check_submission};
use chancery_resource::{Problem, Purpose, StateTable, Tx, Work};
use chancery_userstore::{answers, user::MIRROR};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Attempt, Form, Posted, SignInPage, cancel};
use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_action::{ActionContext, ActionResult},
        page_name::{CONFIRM, QUESTIONNAIRE},
        pending_flow::{FormErrors, PendingFlow},
        response::{AttemptResult, BrowserResponse, PageError},
    },
    person::context::context_of_person,
    provider::{Provider, Visit},
};

pub(super) static PAGE: SignInPage = SignInPage {
    name: QUESTIONNAIRE,
    prepare: None,
    view,
    attempt: |form, pending| {
        let method = if form.field("choice").is_some() { CONFIRM } else { QUESTIONNAIRE };
        Some(Attempt::of_person(method, pending))
    },
    post,
};

/// The maximum of bytes of input that the page with the errors shows again.
const MAX_TYPED: usize = 16 << 10;

/// The typed answers, by the ids of the items.
type Typed = Vec<(Uuid, String)>;

/// Error codes, each with its field.
type Faults = Vec<(&'static str, String)>;

/// Checked answers.
struct Checked {
    /// Their items.
    items: Vec<Item>,
    /// Keys and texts of the non-blank ones, or the errors.
    outcome: Result<Vec<(String, String)>, Faults>,
}

/// The field of an item's answer in the form.
fn field_of(item: Uuid) -> String {
    format!("item-{item}")
}

/// The item of a form field.
fn item_of(field: &str) -> Option<Uuid> {
    Uuid::try_parse(field.strip_prefix("item-")?).ok()
}

fn view(_: &FlowContext, pending: &PendingFlow, evaluated: &Evaluated) -> (&'static str, Value) {
    let due = evaluated.due_action(Action::Questionnaire);
    let may_wait = due.is_some_and(|due| due.urgency == Urgency::Offered);
    let form_errors = pending.form_errors_on(QUESTIONNAIRE);
    let items: Vec<_> = evaluated.questions.iter().map(|item| shown(item, form_errors)).collect();
    ("Questionnaire", json!({ "items": items, "may_wait": may_wait }))
}

fn post<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow, form: Form<'a>) -> Posted<'a> {
    match form.field("choice") {
        None => {
            let typed = form.0.iter().filter_map(|(name, text)| Some((item_of(name)?, text.clone())));
            Box::pin(provider.answer_questionnaire(visit, pending, typed.collect()))
        }
        Some("later") => Box::pin(provider.run_page_action(visit, pending, QUESTIONNAIRE, leave_unanswered)),
        Some(_) => cancel(provider, visit, pending),
    }
}

impl Provider<'_> {
    /// Checks the answers of a person outside of transactions, and stores them if all are valid.
    ///
    /// # Errors
    /// The database fails, or the queue for patterns is full.
    async fn answer_questionnaire(
        self,
        visit: &Visit,
        pending: PendingFlow,
        typed: Typed,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        let Some((flow_context, evaluated)) = self.resume(visit, &pending).await? else {
            return Ok((BrowserResponse::Error(PageError::UNKNOWN_CLIENT), AttemptResult::NotCounted));
        };
        let person = evaluated.due.identified().map(|identified| identified.person);
        let Some(person) = person.filter(|_| evaluated.due_action(Action::Questionnaire).is_some()) else {
            return self.respond_after_post(visit, pending, flow_context, evaluated).await;
        };
        let (items, given) = (evaluated.questions, typed.clone());
        let work = Work::new(Purpose::Pattern, move || check(items, &given));
        let checked = self.pool.run(Some(person), work).await?;
        let storing = move |action: &ActionContext<'_>, tx: &mut Tx<'_>| store_answers(action, tx, &checked);
        let (response, attempt_result) = self.run_page_action(visit, pending, QUESTIONNAIRE, storing).await?;
        Ok((with_typed(response, typed), attempt_result))
    }
}

/// Adds the input to the page with the errors.
fn with_typed(response: BrowserResponse, typed: Typed) -> BrowserResponse {
    match response {
        BrowserResponse::ToPage(mut pending, QUESTIONNAIRE, session) => {
            if let Some(form_errors) = &mut pending.form_errors {
                let mut room = MAX_TYPED;
                form_errors.typed = typed
                    .into_iter()
                    .filter(|(_, text)| {
                        let fits = text.len() <= room;
                        room -= if fits { text.len() } else { 0 };
                        fits
                    })
                    .map(|(item, text)| (field_of(item), text))
                    .collect();
            }
            BrowserResponse::ToPage(pending, QUESTIONNAIRE, session)
        }
        other => other,
    }
}

/// Checks answers by the rules of their items and of the users' fields that they set.
fn check(items: Vec<Item>, given: &[(Uuid, String)]) -> Checked {
    let outcome = match check_submission(&items, given) {
        Ok(good) => fit(&items, good),
        Err(findings) if findings.iter().any(|finding| finding.fault == AnswerFault::UnknownItem) => {
            Err(vec![("questionnaire_changed", String::new())])
        }
        Err(findings) => {
            Err(findings.iter().map(|finding| (code_of(finding.fault), field_of(finding.item))).collect())
        }
    };
    Checked { items, outcome }
}

fn fit(items: &[Item], good: Typed) -> Result<Vec<(String, String)>, Faults> {
    let (mut accepted, mut faults) = (Vec::new(), Faults::new());
    // the answers are in the order of the items
    for (item, (_, answer)) in items.iter().zip(good).filter(|(_, (_, answer))| !answer.is_empty()) {
        match answers::normalize(&item.key, answer) {
            Some(answer) => accepted.push((item.key.clone(), answer)),
            None => faults.push(("answer_text", field_of(item.id))),
        }
    }
    if faults.is_empty() { Ok(accepted) } else { Err(faults) }
}

/// The error code of an invalid answer.
const fn code_of(fault: AnswerFault) -> &'static str {
    match fault {
        AnswerFault::UnknownItem => "questionnaire_changed",
        AnswerFault::Blank => "missing",
        AnswerFault::Text => "answer_text",
        AnswerFault::Short => "answer_short",
        AnswerFault::Long => "answer_long",
        AnswerFault::Email => "answer_email",
        AnswerFault::Phone => "answer_phone",
        AnswerFault::Pattern => "answer_pattern",
    }
}

fn store_answers(
    action: &ActionContext<'_>,
    tx: &mut Tx<'_>,
    checked: &Checked,
) -> Result<ActionResult, Problem> {
    let (Some(_), Some(identified), Some(admitted)) = (
        action.evaluated.due_action(Action::Questionnaire),
        action.evaluated.due.identified(),
        &action.evaluated.admitted,
    ) else {
        return Ok(ActionResult::Nothing);
    };
    if action.evaluated.questions != checked.items {
        return Ok(ActionResult::Invalid(vec![("questionnaire_changed", String::new())]));
    }
    let given = match &checked.outcome {
        Ok(given) => given,
        Err(faults) => return Ok(ActionResult::Invalid(faults.clone())),
    };
    if let Some(user) = &admitted.user {
        if let Err(taken) = answers::store(action.context, tx, user.user, given)? {
            let item = checked.items.iter().find(|item| item.key == taken.0);
            return Ok(ActionResult::Taken(
                "answer_taken",
                item.map_or_else(String::new, |item| field_of(item.id)),
            ));
        }
        let own = context_of_person(&action.transaction.app, identified.person, action.context.now);
        MIRROR.refresh(&own, tx, admitted.person, user.store, identified.instance, user.user_id)?;
    } else if !given.is_empty() {
        add_entries(action.context, tx, identified.person, given)?;
    }
    mark(action, tx, identified.person)?;
    Ok(ActionResult::Event(Event::ActionDone(Action::Questionnaire)))
}

/// Skips the questionnaire, if no item is required.
fn leave_unanswered(action: &ActionContext<'_>, tx: &mut Tx<'_>) -> Result<ActionResult, Problem> {
    let (Some(due), Some(identified)) =
        (action.evaluated.due_action(Action::Questionnaire), action.evaluated.due.identified())
    else {
        return Ok(ActionResult::Nothing);
    };
    if due.urgency == Urgency::Required {
        return Ok(ActionResult::Nothing);
    }
    mark(action, tx, identified.person)?;
    Ok(ActionResult::Event(Event::Deferred(Action::Questionnaire)))
}

/// Marks the due items as shown to the person.
fn mark(action: &ActionContext<'_>, tx: &mut Tx<'_>, person: Uuid) -> Result<(), Problem> {
    let text = StateTable::QuestionnaireMark.insert(
        "(person_id, item_id, shown_on) VALUES (?1, ?2, ?3) ON CONFLICT (person_id, item_id) DO NOTHING",
    );
    for item in &action.evaluated.questions {
        tx.queue(&text, vec![person.into(), item.id.into(), action.context.now.0.into()])?;
    }
    Ok(())
}

fn shown(item: &Item, form_errors: Option<&FormErrors>) -> Value {
    let field = field_of(item.id);
    let typed = form_errors.and_then(|form_errors| form_errors.typed.iter().find(|(name, _)| *name == field));
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

/// The `autocomplete` value (WCAG 2.2, 1.3.5), if the key is the name of a field that identifies the person.
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
    fn answers_are_stored_by_key_without_blank_ones() {
        let items = vec![item(1, "firstName", true), item(2, "department", false), item(3, "team", false)];
        let checked = check(items, &typed(&[(1, " Ada "), (2, " "), (3, " R&D ")]));
        let expected = [("firstName", "Ada"), ("team", " R&D ")];
        assert_eq!(
            checked.outcome,
            Ok(expected.map(|(key, text)| (key.to_owned(), text.to_owned())).to_vec())
        );
    }

    #[test]
    fn every_invalid_answer_is_reported() {
        let items = vec![item(1, "department", true), item(2, "birthdate", false), item(3, "team", true)];
        let faults = |given: &[(u128, &str)]| check(items.clone(), &typed(given)).outcome.unwrap_err();
        let named = |code, number| (code, field_of(Uuid::from_u128(number)));
        assert_eq!(faults(&[(1, ""), (2, ""), (3, "")]), [named("missing", 1), named("missing", 3)]);
        assert_eq!(faults(&[(1, "a"), (2, "soon"), (3, "b")]), [named("answer_text", 2)]);
        assert_eq!(faults(&[(1, "a"), (3, "")]), [("questionnaire_changed", String::new())]);
        assert_eq!(item_of(&field_of(Uuid::from_u128(7))), Some(Uuid::from_u128(7)));
        assert_eq!(item_of("item-1").or(item_of("csrf")), None);
    }
}
