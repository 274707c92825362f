//! The response of an evaluation of claim rules.

use chancery_claims::{Claim, Effect, OutClaim, Outcome, TraceStep};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The result of an evaluation.
pub struct Evaluation {
    /// The resulting claims.
    pub outcome: Outcome,
    /// The steps, if a trace was requested.
    pub steps: Option<Vec<TraceStep>>,
    /// The rules in force, in the order of running.
    pub in_force: Vec<Uuid>,
}

impl Evaluation {
    /// The body of the answer.
    pub fn to_json(&self) -> Value {
        let claims: Vec<Value> = self.outcome.claims.iter().map(out_claim).collect();
        let mut body = Map::new();
        body.insert("claims".to_owned(), json!(claims));
        body.insert("inForce".to_owned(), ids(&self.in_force));
        if let Some(steps) = &self.steps {
            let steps: Vec<Value> = steps.iter().map(step).collect();
            body.insert("steps".to_owned(), json!(steps));
        }
        Value::Object(body)
    }
}

fn ids(ids: &[Uuid]) -> Value {
    json!(ids.iter().map(Uuid::to_string).collect::<Vec<_>>())
}

fn out_claim(claim: &OutClaim) -> Value {
    json!({
        "type": claim.claim_type, "value": claim.value, "source": claim.source.name(),
        "destination": claim.destination.name(), "onRequest": claim.on_request, "rules": ids(&claim.path),
    })
}

fn plain_claim(claim: &Claim) -> Value {
    json!({ "type": claim.claim_type, "value": claim.value, "source": claim.source.name() })
}

fn step(step: &TraceStep) -> Value {
    let (effect, became) = match &step.effect {
        Effect::Passed => ("Passed", Value::Null),
        Effect::Changed(claim) => ("Changed", plain_claim(claim)),
        Effect::Dropped => ("Dropped", Value::Null),
        Effect::Added => ("Added", Value::Null),
    };
    json!({
        "rule": step.rule.to_string(), "priority": step.priority, "effect": effect,
        "claim": plain_claim(&step.claim), "became": became,
    })
}

/// The schema of a claim, with further members.
fn claim_schema(about: &str, is_nullable: bool, more: Value) -> Value {
    let mut properties = Map::new();
    for (name, about) in [("type", "Its type."), ("value", "Its value."), ("source", "Whose it is.")] {
        properties.insert(name.to_owned(), json!({ "type": "string", "description": about }));
    }
    if let Value::Object(more) = more {
        properties.extend(more);
    }
    let kinds = if is_nullable { json!(["object", "null"]) } else { json!("object") };
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": kinds, "description": about, "required": required, "properties": properties })
}

/// The schema of the answer.
pub fn schema() -> Value {
    let uuid = json!({ "type": "string", "format": "uuid" });
    let out = json!({
        "destination": { "type": "string", "description": "Where it goes." },
        "onRequest": { "type": "boolean", "description": "Whether it is disclosed only when requested." },
        "rules": { "type": "array", "description": "The rules that it passed, in order.", "items": uuid },
    });
    json!({
        "type": "object", "description": "What became of the claims.", "required": ["claims", "inForce"],
        "properties": {
            "claims": {
                "type": "array", "description": "The claims, where they go and what they passed.",
                "items": claim_schema("A claim.", false, out),
            },
            "inForce": { "type": "array", "description": "The rules in force, in the order of running.", "items": uuid },
            "steps": {
                "type": "array", "items": step_schema(),
                "description": "What rules did with claims, in the order of running, where `trace` asks for it. Where a \
                    group of rules forwards nothing of a claim, each of its rules that could have dropped it.",
            },
        },
    })
}

fn step_schema() -> Value {
    json!({
        "type": "object", "required": ["rule", "priority", "effect", "claim", "became"],
        "properties": {
            "rule": { "type": "string", "format": "uuid", "description": "The rule." },
            "priority": { "type": "integer", "description": "Its priority, which is its group." },
            "effect": { "type": "string", "enum": ["Passed", "Changed", "Dropped", "Added"], "description": "What it did." },
            "claim": claim_schema("The claim as it came to the group; an added one as it left.", false, Value::Null),
            "became": claim_schema("What a rule that changed it forwarded.", true, Value::Null),
        },
    })
}
