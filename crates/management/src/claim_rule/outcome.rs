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
    /// The rules in force, in the order in which they run.
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
    for (name, about) in [("type", "Its type."), ("value", "Its value."), ("source", "Source of the claim.")]
    {
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
        "destination": { "type": "string", "description": "Destination of the claim." },
        "onRequest": { "type": "boolean", "description": "Whether it is disclosed only when requested." },
        "rules": { "type": "array", "description": "The rules that the claim passed, in order.", "items": uuid },
    });
    json!({
        "type": "object", "description": "The result of the evaluation.", "required": ["claims", "inForce"],
        "properties": {
            "claims": {
                "type": "array", "description": "The resulting claims, with their destinations and the rules that they passed.",
                "items": claim_schema("A claim.", false, out),
            },
            "inForce": { "type": "array", "description": "The rules in force, in the order in which they run.", "items": uuid },
            "steps": {
                "type": "array", "items": step_schema(),
                "description": "The effects of rules on claims, in the order in which the rules run, if `trace` is true. If a group of rules forwards nothing of a claim, there is a step for each of its rules that could have dropped the claim.",
            },
        },
    })
}

fn step_schema() -> Value {
    json!({
        "type": "object", "required": ["rule", "priority", "effect", "claim", "became"],
        "properties": {
            "rule": { "type": "string", "format": "uuid", "description": "The rule." },
            "priority": { "type": "integer", "description": "Priority of the rule, which identifies its group." },
            "effect": { "type": "string", "enum": ["Passed", "Changed", "Dropped", "Added"], "description": "Effect of the rule on the claim." },
            "claim": claim_schema("The claim before the group of rules ran. For an added claim: the claim after it.", false, Value::Null),
            "became": claim_schema("The claim that the rule forwarded, if the rule changed it.", true, Value::Null),
        },
    })
}
