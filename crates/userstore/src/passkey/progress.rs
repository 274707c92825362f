//! Readiness of a store for sign-ins without passwords: the number of people whom each reason blocks.

use chancery_passkey::{Policy, REASONS};
use chancery_record::format_timestamp;
use chancery_resource::{
    Action as A, Answer, Call, Context, Custom, JsonForm, LIST, Method as M, Mode, Op, Permit::UserStore,
    Problem, QueryParameter, Reply, Tx,
};
use serde_json::{Value as Json, json};

use super::{
    PASSKEY, facts,
    overview::{count, flag, object, user_schema},
    policy,
};

/// The maximum number of people who are assessed in one call.
const MAX_PEOPLE: u64 = 500_000;
/// The maximum number of people who are listed.
const MAX_LISTED: usize = 100;

/// The groups of people who can be listed: the ready, and those whom a reason blocks.
const LISTABLE: [&str; 10] = {
    let [a, b, c, d, e, f, g, h, i] = REASONS;
    [READY, a, b, c, d, e, f, g, h, i]
};
const READY: &str = "Ready";

const REASON: QueryParameter = QueryParameter::choice(
    "reason",
    "The users to list in addition: those whom this reason blocks, or those whom no reason blocks.",
    &LISTABLE,
);
const REQUIRED: QueryParameter = QueryParameter::number(
    "requiredCredentialCount",
    "The number of required passkeys to assume. Without it, the store's options apply.",
    0,
    100,
);

static READINESS: JsonForm = JsonForm {
    name: "PasskeyReadinessCounts",
    schema: || {
        let reason = object(
            "A reason and the number of users whom it blocks.",
            &[
                ("reason", json!({ "type": "string", "enum": REASONS, "description": "The reason." })),
                ("users", count("The number of users whom the reason blocks.")),
            ],
        );
        object(
            "The number of users who are ready for sign-in without a password, and the reasons that block the others.",
            &[
                (
                    "generatedOn",
                    json!({ "type": "string", "format": "date-time", "description": "Time at which the users were counted." }),
                ),
                ("users", count("The number of users who were assessed.")),
                (
                    "isComplete",
                    flag("Whether all users of the store were counted, and not only the first ones."),
                ),
                ("ready", count("The number of users whom no reason blocks.")),
                ("requiredCredentialCount", count("The number of passkeys required of each user.")),
                (
                    "people",
                    json!({ "type": ["array", "null"], "description": "The first 100 of the requested users.", "items": user_schema() }),
                ),
                (
                    "reasons",
                    json!({ "type": "array", "description": "All reasons, in the order of a user's `blockingReasons`. Several reasons can apply to one user.", "items": reason }),
                ),
            ],
        )
    },
};

/// The operation that counts.
pub static OPERATIONS: &[Op] = &[Op::new(
    "PasskeyReadiness",
    M::Get,
    "/administration/passkey-security/readiness",
    UserStore,
    &PASSKEY,
    A::Custom(Custom { mode: Mode::Long, ..Custom::reading(readiness).replying(Reply::Json(&READINESS)) }),
    "Counts the users who are ready for sign-in without a password, and the others by blocking reason.",
)
.with_query(&[REASON, REQUIRED])
.added()];

/// The counts.
#[derive(Default)]
struct Counts {
    users: u64,
    ready: u64,
    reasons: [u64; REASONS.len()],
    is_complete: bool,
    people: Vec<Json>,
}

fn readiness(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let listed = REASON.read_choice(&call.request)?;
    let mut policy = policy(&call.context)?;
    if let Some(required) = REQUIRED.read_number(&call.request)? {
        policy.required_credential_count = required;
    }
    let counts = assess_all(&call.context, tx, &policy, listed)?;
    let mut moment = Vec::new();
    format_timestamp(call.context.now, &mut moment);
    let reasons = REASONS.iter().zip(counts.reasons);
    let reasons: Vec<Json> =
        reasons.map(|(reason, users)| json!({ "reason": reason, "users": users })).collect();
    let answer = json!({
        "generatedOn": String::from_utf8(moment).unwrap_or_default(), "users": counts.users,
        "isComplete": counts.is_complete, "ready": counts.ready, "reasons": reasons,
        "requiredCredentialCount": policy.required_credential_count, "people": listed.map(|_| counts.people),
    });
    call.answer.bytes.extend_from_slice(answer.to_string().as_bytes());
    Ok(Answer::new(call.request.op.status))
}

/// Assesses people chunk by chunk, with the same facts and the same function as one user's readiness.
fn assess_all(
    context: &Context,
    tx: &mut Tx<'_>,
    policy: &Policy,
    listed: Option<&str>,
) -> Result<Counts, Problem> {
    let order = format!(" ORDER BY t.rid LIMIT {LIST}");
    let (mut counts, mut after) = (Counts::default(), 0);
    while counts.users < MAX_PEOPLE {
        let people = facts::people(context, tx, |sql| sql.push(" AND t.rid > ").bind(after).push(&order))?;
        let Some(last) = people.last() else {
            counts.is_complete = true;
            break;
        };
        after = last.rid;
        for person in &people {
            let assessment = person.assess(policy, context.now);
            let is_ready = assessment.ready_for_password_removal;
            let is_listed = |name: &str| {
                if name == READY { is_ready } else { assessment.blocking_reasons.contains(&name) }
            };
            if counts.people.len() < MAX_LISTED && listed.is_some_and(is_listed) {
                counts.people.push(person.user());
            }
            counts.users += 1;
            counts.ready += u64::from(is_ready);
            for (count, reason) in counts.reasons.iter_mut().zip(REASONS) {
                *count += u64::from(assessment.blocking_reasons.contains(&reason));
            }
        }
    }
    Ok(counts)
}
