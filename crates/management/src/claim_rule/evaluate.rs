//! Evaluating the claim rules in force on claims that the caller provides, without issuing a token.

use std::{sync::Arc, time::Instant};

use aws_lc_rs::digest::{SHA256, digest};
use chancery_claims::{Claim, Fault, Rule, RuleSet, RuleSetError, RuleSets, Source};
use chancery_record::{Json, Record as _, Value, parse_id};
use chancery_resource::{
    Action as A, Answer, Body, Call, Custom, FieldFault, JsonForm, Method as M, Mode, Op,
    Permit::TenantMember, Problem, Purpose, Reply, Sql, Tx, Work, visible,
};
use serde_json::json;
use uuid::Uuid;

use super::{
    CLAIM_RULE, ClaimRule,
    draft::{self, RuleDraft},
    outcome::{self, Evaluation},
    weigh,
};
use crate::{client_app::CLIENT_APP, idp_instance::IDP_INSTANCE, judge::TIME, tenant::TENANT};

/// The most claims of a call.
const MAX_CLAIMS: usize = 10_000;
/// The most rules that are in force at once.
const MAX_RULES: usize = 1_000;
/// The most unusable rules that a refusal names.
const MAX_REPORTED: usize = 10;

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
    "Evaluates the rules in force on claims: where each goes, and the rules that it passed.",
)
.added()];

fn body_schema() -> serde_json::Value {
    let id = |about: &str| json!({ "type": ["string", "null"], "format": "uuid", "description": about });
    json!({
        "type": "object", "description": "Claims, and for whom.", "required": ["claims"], "additionalProperties": false,
        "properties": {
            "claims": {
                "type": "array", "maxItems": MAX_CLAIMS, "description": "The claims.",
                "items": {
                    "type": "object", "required": ["type", "value"], "additionalProperties": false,
                    "properties": {
                        "type": { "type": "string", "description": "Its type.", "examples": ["role"] },
                        "value": { "type": "string", "description": "Its value.", "examples": ["editor"] },
                        "source": { "type": ["string", "null"], "enum": ["Platform", "IdentityProvider", null],
                            "description": "Whose it is; Platform where it is not said." },
                    },
                },
            },
            "clientAppId": id("The client app that a token is for."),
            "idpInstanceId": id("The instance that the person comes from."),
            "tenantId": id("The tenant that the person signs in at."),
            "draft": { "anyOf": [{ "$ref": "#/components/schemas/ClaimRuleCreate" }, { "type": "null" }],
                "description": "A rule that takes part as if it were saved, whatever it applies to: in the place of the rule \
                    with its `id`, else beside the others, and then with the nil UUID. An inactive one is left out." },
            "trace": { "type": ["boolean", "null"], "description": "Whether each step of each claim is told." },
        },
    })
}

/// The rule sets that this process compiled last.
static COMPILED: RuleSets = RuleSets::new();

/// The outcome of an evaluation, or why there is none.
type Evaluated = Result<Evaluation, Unusable>;

/// Why rules come to nothing.
enum Unusable {
    /// Those in force, or they with these claims.
    Rules(String),
    /// The draft has these faults.
    Draft(Vec<FieldFault>),
}

/// Reads rules and claims in the transaction. Compiling and evaluating take time, so both happen in the pool
/// of workers, between two transactions.
fn evaluate(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    if let Some(evaluated) = call.result::<Evaluated>(0)? {
        let evaluation = Result::as_ref(&evaluated).map_err(|unusable| match unusable {
            Unusable::Rules(detail) => Problem::conflict(detail.clone()),
            Unusable::Draft(faults) => draft::refusal(faults),
        })?;
        call.answer.bytes.extend_from_slice(evaluation.to_json().to_string().as_bytes());
        return Ok(Answer::new(call.request.op.status));
    }
    let body = call.request.body()?;
    let (claims, traces, draft) = (read_claims(body)?, read_trace(body)?, RuleDraft::read(call)?);
    let (key, rules) = in_force(call, tx)?;
    let work = move || run((&key, rules), draft, (&claims, traces));
    Ok(Answer::after(Work::new(Purpose::Pattern, work)))
}

/// Compiles the rules, unless they are cached, and evaluates the claims; each may take [`TIME`].
fn run(
    (key, mut rules): (&[u8], Vec<Rule>),
    draft: Option<RuleDraft>,
    (claims, traces): (&[Claim], bool),
) -> Evaluated {
    let started = Instant::now();
    let go_on = || started.elapsed() < TIME;
    let set = match draft {
        None => COMPILED.compiled(key, &rules, &go_on),
        Some(draft) => {
            weigh(&draft.rule).map_err(Unusable::Draft)?;
            draft.take_part(&mut rules);
            RuleSet::new(&rules, &go_on).map(Arc::new)
        }
    };
    let set = set.map_err(|unusable| match unusable {
        RuleSetError::Faults(faults) => Unusable::Rules(describe(&faults)),
        RuleSetError::Time => {
            Unusable::Rules("The rules in force take too long to compile: there are too many.".to_owned())
        }
    })?;
    let started = Instant::now();
    let go_on = || started.elapsed() < TIME;
    let evaluated = if traces {
        set.trace(claims, &go_on).map(|(outcome, steps)| (outcome, Some(steps)))
    } else {
        set.evaluate(claims, &go_on).map(|outcome| (outcome, None))
    };
    let (outcome, steps) = evaluated.map_err(|exceeded| Unusable::Rules(format!("{exceeded}.")))?;
    Ok(Evaluation { outcome, steps, in_force: set.ids().collect() })
}

fn describe(faults: &[Fault]) -> String {
    let faults: Vec<String> = faults
        .iter()
        .take(MAX_REPORTED)
        .map(|fault| format!("{} of rule {}: {}", fault.member, fault.rule, fault.detail))
        .collect();
    format!("A rule in force cannot be used: {}.", faults.join("; "))
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

/// The active rules that apply: those of the subscription, the tenant, the client app, and the client
/// app with the instance. With them their cache key, of which rules they are and as of when.
fn in_force(call: &Call, tx: &mut Tx<'_>) -> Result<(Vec<u8>, Vec<Rule>), Problem> {
    let app = named(call, tx, "clientAppId", &CLIENT_APP)?;
    let instance = named(call, tx, "idpInstanceId", &IDP_INSTANCE)?;
    let tenant = named(call, tx, "tenantId", &TENANT)?;
    let null = |id: Option<Uuid>| id.map_or(Value::Null, Value::Id);
    let mut sql =
        Sql::new("SELECT ").push(&columns()).push(" FROM claim_rule t WHERE t.is_active AND (FALSE");
    for (table, id) in [("client_app", app), ("tenant", tenant), ("idp_instance", instance)] {
        if let Some((id, _)) = id {
            sql = sql.push(&format!(
                " OR (t.rule_level = 'Subscription' AND t.apply_to_subscription_id = (SELECT subscription_id FROM {table} WHERE id = "
            ));
            sql = sql.bind(id).push("))");
        }
    }
    if let Some((id, _)) = tenant {
        sql = sql
            .push(" OR (t.rule_level = 'Tenant' AND t.apply_to_tenant_id = ")
            .bind(null(Some(id)))
            .push(")");
    }
    if let Some((_, rid)) = app {
        sql = sql.push(
            " OR (t.rid IN (SELECT m.claim_rule_rid FROM client_app_claim_rule m WHERE m.client_app_rid = ",
        );
        sql = sql.bind(rid).push(") AND (t.rule_level = 'ClientApp'");
        if let Some((id, _)) = instance {
            sql = sql
                .push(" OR (t.rule_level = 'ClientAppIdpInstance' AND t.apply_to_idp_instance_id = ")
                .bind(id)
                .push(")");
        }
        sql = sql.push("))");
    }
    sql.add(&format!(") ORDER BY t.priority, t.id LIMIT {}", MAX_RULES + 1));
    let mut rules = Vec::new();
    let kinds: Vec<_> = CLAIM_RULE.fields.iter().map(|field| field.kind).collect();
    tx.query(&sql.text, &sql.parameters, |row| {
        let values =
            kinds.iter().enumerate().map(|(at, kind)| row.value(at, kind)).collect::<Result<Vec<_>, _>>()?;
        rules.push(values);
        Ok(())
    })?;
    if rules.len() > MAX_RULES {
        return Err(Problem::conflict(format!(
            "More than {MAX_RULES} rules are in force at once: there are too many."
        )));
    }
    let rules = rules.into_iter().map(ClaimRule::from_values).collect::<Result<Vec<_>, _>>()?;
    let versions =
        rules.iter().flat_map(|rule| [rule.id.0.as_bytes(), rule.concurrency_token.as_str().as_bytes()]);
    let key = digest(&SHA256, &versions.collect::<Vec<_>>().concat());
    let rules = rules.iter().map(ClaimRule::known).collect::<Result<_, _>>()?;
    Ok((key.as_ref().to_vec(), rules))
}

fn columns() -> String {
    CLAIM_RULE.fields.iter().map(|field| format!("t.{}", field.column)).collect::<Vec<_>>().join(", ")
}
