//! Evaluating the claim rules in force on claims that the caller provides, without issuing a token.

use chancery_claims::{Claim, Source};
use chancery_record::{Json, parse_id};
use chancery_resource::{
    Action as A, Answer, Body, Call, Custom, FieldFault, JsonForm, Method as M, Mode, Op,
    Permit::TenantMember, Problem, Purpose, Reply, Tx, Work, visible,
};
use serde_json::json;
use uuid::Uuid;

use super::{
    CLAIM_RULE,
    draft::{self, RuleDraft},
    in_force::{ActiveRules, RuleScope, Unusable, run},
    outcome::{self, Evaluation},
    weigh,
};
use crate::{client_app::CLIENT_APP, idp_instance::IDP_INSTANCE, tenant::TENANT};

/// The maximum number of claims in a call.
const MAX_CLAIMS: usize = 10_000;

static BODY: JsonForm = JsonForm { name: "ClaimRuleEvaluation", schema: body_schema };
static REPLY: JsonForm = JsonForm { name: "ClaimRuleOutcome", schema: outcome::schema };

/// The operation that evaluates claim rules.
pub static OPERATIONS: &[Op] = &[Op::new(
    "EvaluateClaimRules",
    M::Post,
    "/ClaimRule/evaluate",
    TenantMember,
    &CLAIM_RULE,
    A::Custom(
        Custom { mode: Mode::Long, ..Custom::reading(evaluate) }
            .taking(Body::Json(&BODY))
            .replying(Reply::Json(&REPLY)),
    ),
    "Evaluates the rules in force on claims. Returns the destination of each claim and the rules that it passed.",
)
.added()];

fn body_schema() -> serde_json::Value {
    let id = |about: &str| json!({ "type": ["string", "null"], "format": "uuid", "description": about });
    json!({
        "type": "object", "description": "Claims, and the target that they are evaluated for.", "required": ["claims"], "additionalProperties": false,
        "properties": {
            "claims": {
                "type": "array", "maxItems": MAX_CLAIMS, "description": "The claims.",
                "items": {
                    "type": "object", "required": ["type", "value"], "additionalProperties": false,
                    "properties": {
                        "type": { "type": "string", "description": "Its type.", "examples": ["role"] },
                        "value": { "type": "string", "description": "Its value.", "examples": ["editor"] },
                        "source": { "type": ["string", "null"], "enum": ["Platform", "IdentityProvider", null],
                            "description": "Source of the claim. Default: Platform." },
                    },
                },
            },
            "clientAppId": id("The client app that a token is for."),
            "idpInstanceId": id("The identity provider instance of the person."),
            "tenantId": id("The tenant that the person signs in at."),
            "draft": { "anyOf": [{ "$ref": "#/components/schemas/ClaimRuleCreate" }, { "type": "null" }],
                "description": "A rule that is evaluated as if it were saved, whatever it applies to. It replaces the rule with its `id`. Without an `id`, it is added to the other rules with the nil UUID. An inactive rule is left out." },
            "trace": { "type": ["boolean", "null"], "description": "Whether the response contains each step of each claim." },
        },
    })
}

/// The error of an evaluation.
enum EvaluationError {
    /// The rules cannot run.
    Rules(Unusable),
    /// The draft has these faults.
    Draft(Vec<FieldFault>),
}

impl From<Unusable> for EvaluationError {
    fn from(unusable: Unusable) -> Self {
        Self::Rules(unusable)
    }
}

/// The result of an evaluation.
type Evaluated = Result<Evaluation, EvaluationError>;

/// Reads rules and claims in the transaction. Compiling and evaluating take time, so both happen in the pool
/// of workers, between two transactions.
fn evaluate(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    if let Some(evaluated) = call.result::<Evaluated>() {
        let evaluation = Result::as_ref(&evaluated).map_err(|none| match none {
            EvaluationError::Rules(Unusable(detail)) => Problem::conflict(detail.clone()),
            EvaluationError::Draft(faults) => draft::refusal(faults),
        })?;
        call.answer.bytes.extend_from_slice(evaluation.to_json().to_string().as_bytes());
        return Ok(Answer::new(call.request.op.status));
    }
    let body = call.request.body()?;
    let (claims, traces, draft) = (read_claims(body)?, read_trace(body)?, RuleDraft::read(call)?);
    let scope = scope(call, tx)?;
    let in_force = ActiveRules::read(tx, scope)?;
    let work = move || compile_and_run(in_force, draft, claims, traces);
    Ok(Answer::after(Work::new(Purpose::Pattern, work)))
}

/// Compiles the rules, unless they are cached, and evaluates the claims.
fn compile_and_run(
    in_force: ActiveRules,
    draft: Option<RuleDraft>,
    claims: Vec<Claim>,
    traces: bool,
) -> Evaluated {
    let set = match draft {
        None => in_force.compile(),
        Some(draft) => {
            weigh(&draft.rule).map_err(EvaluationError::Draft)?;
            in_force.compile_with(|rules| draft.apply_to(rules))
        }
    };
    Ok(run(&*set?, claims, traces)?)
}

fn read_claims(body: &Json) -> Result<Vec<Claim>, Problem> {
    let Json::Object(members) = body else {
        return Err(Problem::wrong_at("", format!("must be an object, not {}", body.word())));
    };
    let known = ["claims", "clientAppId", "idpInstanceId", "tenantId", draft::MEMBER, "trace"];
    if let Some((name, _)) = members.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        return Err(Problem::wrong_at(chancery_record::pointer("", name), "is not a member of this body"));
    }
    let items = match body.get("claims") {
        Some(Json::Array(items)) if items.len() <= MAX_CLAIMS => items,
        Some(_) => {
            return Err(Problem::wrong_at(
                "/claims",
                format!("must be an array of at most {MAX_CLAIMS} claims"),
            ));
        }
        None => return Err(Problem::wrong_at("/claims", "is missing")),
    };
    items.iter().enumerate().map(|(index, item)| read_claim(index, item)).collect()
}

fn read_trace(body: &Json) -> Result<bool, Problem> {
    match body.get("trace") {
        None | Some(Json::Null) => Ok(false),
        Some(Json::Bool(traces)) => Ok(*traces),
        Some(other) => {
            Err(Problem::wrong_at("/trace", format!("must be true or false, not {}", other.word())))
        }
    }
}

fn read_claim(index: usize, item: &Json) -> Result<Claim, Problem> {
    let at = |member: &str| format!("/claims/{index}/{member}");
    if let Json::Object(members) = item
        && let Some((name, _)) =
            members.iter().find(|(name, _)| !["type", "value", "source"].contains(&name.as_str()))
    {
        return Err(Problem::wrong_at(at(name), "is not a member of a claim"));
    }
    let text = |member: &str| match item.get(member) {
        Some(Json::Text(text)) => Ok(text.clone()),
        Some(other) => Err(Problem::wrong_at(at(member), format!("must be a string, not {}", other.word()))),
        None => Err(Problem::wrong_at(at(member), "is missing")),
    };
    let source = match item.get("source") {
        None | Some(Json::Null) => Source::Platform,
        Some(Json::Text(name)) => Source::parse(name).ok_or_else(|| {
            Problem::wrong_at(at("source"), format!("must be one of {}", Source::NAMES.join(", ")))
        })?,
        Some(_) => return Err(Problem::wrong_at(at("source"), "must be a string")),
    };
    Ok(Claim { claim_type: text("type")?, value: text("value")?, source })
}

/// The id in a member with its row number; it must be visible to the caller.
fn named(
    call: &Call,
    tx: &mut Tx<'_>,
    member: &'static str,
    shape: &'static chancery_resource::Shape,
) -> Result<Option<(Uuid, i64)>, Problem> {
    let text = match call.request.body()?.get(member) {
        None | Some(Json::Null) => return Ok(None),
        Some(Json::Text(text)) => text,
        Some(_) => return Err(Problem::wrong_at(format!("/{member}"), "must be a UUID")),
    };
    let wrong = || Problem::wrong_at(format!("/{member}"), format!("names no {}", shape.name));
    let id = parse_id(text).ok_or_else(|| Problem::wrong_at(format!("/{member}"), "must be a UUID"))?;
    let found = visible(&call.context, tx, shape, &[id])?;
    found.get(&id).map(|rid| Some((id, *rid))).ok_or_else(wrong)
}

/// The scope that the body names.
fn scope(call: &Call, tx: &mut Tx<'_>) -> Result<RuleScope, Problem> {
    Ok(RuleScope {
        app: named(call, tx, "clientAppId", &CLIENT_APP)?,
        instance: named(call, tx, "idpInstanceId", &IDP_INSTANCE)?.map(|(id, _)| id),
        tenant: named(call, tx, "tenantId", &TENANT)?.map(|(id, _)| id),
    })
}
