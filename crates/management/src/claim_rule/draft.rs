//! A claim rule that is tried before it is saved.

use chancery_claims::Rule;
use chancery_record::{FieldError, Form, Json, Others, Provided, Record as _, Value, pointer, read_draft};
use chancery_resource::{Call, FieldFault, Problem, check_listed};
use uuid::Uuid;

use super::{CLAIM_RULE, ClaimRule};

/// The member of the body that holds it.
pub const MEMBER: &str = "draft";

/// An unsaved rule. It applies whatever its level: the body names the target of the evaluation.
pub struct RuleDraft {
    /// The rule; without an id of its own it has the nil one.
    pub rule: Rule,
    /// Whether it is active.
    pub is_active: bool,
}

impl RuleDraft {
    /// Reads the draft of a body.
    ///
    /// # Errors
    /// A creation would refuse its members.
    pub fn read(call: &Call) -> Result<Option<Self>, Problem> {
        let base = pointer("", MEMBER);
        let body = match call.request.body()?.get(MEMBER) {
            None | Some(Json::Null) => return Ok(None),
            Some(body) => body,
        };
        let arrays = CLAIM_RULE.arrays();
        let draft = read_draft(CLAIM_RULE.fields, Others::Named(&arrays), Form::Create, body, &base);
        let mut draft = draft.map_err(Problem::wrong)?;
        check_listed(&CLAIM_RULE, body, &base)?;
        for (field, slot) in CLAIM_RULE.fields.iter().zip(&mut draft.0) {
            if field.access.key && *slot == Provided::Nothing {
                *slot = Provided::Value(Value::Id(Uuid::nil()));
            }
            if field.is_token() {
                *slot = Provided::Value(call.context.new_token());
            }
        }
        let rule = ClaimRule::from_values(draft.to_new(CLAIM_RULE.fields))?;
        Ok(Some(Self { rule: rule.known()?, is_active: rule.is_active }))
    }

    /// Replaces the rule of the same id in the rules in force, or joins them.
    pub fn apply_to(self, rules: &mut Vec<Rule>) {
        rules.retain(|rule| rule.id != self.rule.id);
        if self.is_active {
            rules.push(self.rule);
        }
    }
}

/// The refusal of a draft with these faults.
pub fn refusal(faults: &[FieldFault]) -> Problem {
    let base = pointer("", MEMBER);
    let errors =
        faults.iter().map(|(field, detail)| FieldError::new(pointer(&base, field.wire()), detail.clone()));
    Problem::wrong(errors.collect::<Vec<_>>())
}
