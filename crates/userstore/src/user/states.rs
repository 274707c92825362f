//! The state of many users at once, all or none.

use std::collections::HashSet;

use chancery_record::{
    FieldError, FieldErrors, Form, Json, OPEN, Others, Record as _, Timestamp, Token, Value, pointer,
    read_draft, record,
};
use chancery_resource::{
    Action as A, Answer, Body, Call, Custom, JsonForm, MAX_BATCH, Method as M, Op, Permit::UserStore,
    Problem, ProblemKind, Reply, StoredRow, Tx, load_keys, write_all,
};
use serde_json::json;

use super::{StateChange, USER, UserForUpdate};
use crate::UserId;

record! {
    /// What is to change of the state of one of many users.
    pub struct UserStateElement {
        /// The user.
        id: UserId = OPEN,
        /// Whether the user may sign in at all.
        is_user_active: Option<bool> = OPEN,
        /// Whether the user is locked. False also resets the counters of failed sign-ins and removes a temporary lock.
        is_user_locked: Option<bool> = OPEN,
        /// Time until which the user is locked.
        locked_until: Option<Timestamp> = OPEN,
        /// The user's concurrency token. If it is given, it must be the current one.
        concurrency_token: Option<Token> = OPEN.stored_as("expected_token"),
    }
}

static STATES: JsonForm = JsonForm { name: "UserStates", schema: states_schema };

fn states_schema() -> serde_json::Value {
    let optional = |kind: &str, about: &str| json!({ "type": [kind, "null"], "description": about });
    let token = json!({
        "type": ["string", "null"], "maxLength": Token::RULE.max, "examples": [Token::RULE.example],
        "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$",
        "description": "The user's concurrency token. If it is given, it must be the current one.",
    });
    let until = json!({
        "type": ["string", "null"], "format": "date-time", "description": "Time until which the user is locked.",
    });
    json!({
        "type": "array", "maxItems": MAX_BATCH, "description": "The changes to the state of users. Each user is listed once.",
        "items": {
            "type": "object", "required": ["id"], "minProperties": 2, "additionalProperties": false,
            "properties": {
                "id": { "type": "string", "format": "uuid", "description": "The user." },
                "isUserActive": optional("boolean", "Whether the user may sign in at all."),
                "isUserLocked": optional(
                    "boolean",
                    "Whether the user is locked. False also resets the counters of failed sign-ins and removes a temporary lock.",
                ),
                "lockedUntil": until,
                "concurrencyToken": token,
            },
        },
    })
}

/// The operation on the state of many users.
pub static STATES_OPERATIONS: &[Op] = &[Op::new(
    "SetUserStateBatch",
    M::Post,
    "/administration/User/state/batch",
    UserStore,
    &USER,
    A::Custom(Custom::writing(set_states).taking(Body::Json(&STATES)).replying(Reply::Many).in_batch()),
    "Activates, deactivates, locks or unlocks many users, all or none.",
)
.added()];

fn set_states(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let requested = read(call.request.body()?)?;
    let keys: Vec<Value> = requested.iter().map(|one| Value::Id(one.id.0)).collect();
    let mut loaded = load_keys(&call.context, tx, &USER, None, &keys)?;
    let rows = requested.iter().map(|one| loaded.remove(&one.id.0.to_string()));
    let rows: Vec<Option<StoredRow>> = rows.collect();
    let unknown = rows.iter().enumerate().filter(|(_, row)| row.is_none());
    let unknown = unknown.map(|(at, _)| FieldError::new(format!("/{at}/id"), "names no User"));
    refuse_elements(unknown, ProblemKind::NotFound)?;
    let pairs: Vec<(UserStateElement, UserForUpdate)> = requested
        .into_iter()
        .zip(rows.into_iter().flatten())
        .map(|(one, row)| Ok((one, UserForUpdate::new(row)?)))
        .collect::<Result<_, Problem>>()?;
    let is_stale = |(one, loaded): &(UserStateElement, UserForUpdate)| {
        one.concurrency_token.as_ref().is_some_and(|token| *token != loaded.user.concurrency_token)
    };
    let stale = pairs.iter().enumerate().filter(|(_, pair)| is_stale(pair));
    let stale = stale.map(|(at, _)| FieldError::new(format!("/{at}/concurrencyToken"), "is stale"));
    refuse_elements(stale, ProblemKind::ConcurrencyConflict)?;
    let mut done = Vec::with_capacity(pairs.len());
    for (one, mut loaded) in pairs {
        let change = StateChange {
            is_active: one.is_user_active,
            is_locked: one.is_user_locked,
            locked_until: one.locked_until,
        };
        let audit = loaded.set(&call.context, change)?;
        done.push(loaded.save(&call.context, tx, audit)?);
    }
    if !call.request.minimal {
        write_all(call, tx, &USER, &done)?;
    }
    Ok(Answer::new(call.request.op.status))
}

/// The elements of the body.
fn read(body: &Json) -> Result<Vec<UserStateElement>, Problem> {
    let elements = elements_of(body)?;
    let (mut all, mut seen, mut errors) = (Vec::new(), HashSet::new(), FieldErrors::default());
    for (number, element) in elements.iter().enumerate() {
        let base = format!("/{number}");
        let fields = UserStateElement::FIELDS;
        let draft = match read_draft(fields, Others::Named(&[]), Form::Create, element, &base) {
            Ok(draft) => draft,
            Err(wrong) => {
                errors.absorb(wrong);
                continue;
            }
        };
        let one = UserStateElement::from_values(draft.to_new(fields))?;
        if (one.is_user_active, one.is_user_locked, one.locked_until) == (None, None, None) {
            errors.note(|| FieldError::new(&base, "needs isUserActive, isUserLocked or lockedUntil"));
        }
        if !seen.insert(one.id.0) {
            errors.note(|| FieldError::new(pointer(&base, "id"), "is in this batch twice"));
        }
        all.push(one);
    }
    if errors.all() == 0 { Ok(all) } else { Err(Problem::wrong(errors)) }
}

/// The elements of a batch, up to the limit.
pub fn elements_of(body: &Json) -> Result<&[Json], Problem> {
    let Json::Array(elements) = body else {
        return Err(Problem::wrong_at("", format!("must be an array, not {}", body.word())));
    };
    if elements.len() > MAX_BATCH {
        let detail = format!("A batch takes at most {MAX_BATCH} elements, not {}.", elements.len());
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    Ok(elements)
}

/// Refuses a batch if there are faults of its elements.
pub fn refuse_elements(wrong: impl Iterator<Item = FieldError>, kind: ProblemKind) -> Result<(), Problem> {
    let mut errors = FieldErrors::default();
    wrong.for_each(|error| errors.note(|| error));
    if errors.all() == 0 {
        return Ok(());
    }
    let detail = format!("{} of the elements cannot be done, so nothing was. See errors.", errors.all());
    Err(Problem { errors, ..Problem::new(kind, detail) })
}
