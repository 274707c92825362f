//! The path of each claim: the rules that applied to it, and its destination.

use serde_json::{Value, json};

use super::Names;
use crate::shell::{
    fields::{Cell, Tag, plain},
    visit::Visit,
};

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    kind: String,
    value: String,
    source: String,
}

fn claim(claim: &Value) -> Claim {
    let source = claim["source"].as_str().unwrap_or("Platform").to_owned();
    Claim { kind: plain(&claim["type"]), value: plain(&claim["value"]), source }
}

/// The path of a claim.
struct Path<'a> {
    steps: Vec<&'a Value>,
    ends: Vec<Claim>,
}

/// Follows a claim from this step on, by groups of the same priority, through the claims that rules derive from it.
fn follow(start: Claim, steps: &[Value]) -> Path<'_> {
    let (mut passed_steps, mut ends) = (Vec::new(), vec![start]);
    for group in steps.chunk_by(|one, next| one["priority"] == next["priority"]) {
        let mut next: Vec<Claim> = Vec::new();
        for end in ends {
            let own = group.iter().filter(|step| step["effect"] != "Added" && claim(&step["claim"]) == end);
            let own: Vec<&Value> = own.collect();
            let forwarded = own.iter().filter_map(|step| match step["effect"].as_str() {
                Some("Passed") => Some(end.clone()),
                Some("Changed") => Some(claim(&step["became"])),
                _ => None,
            });
            let forwarded: Vec<Claim> = if own.is_empty() { vec![end] } else { forwarded.collect() };
            next.extend(forwarded);
            passed_steps.extend(own);
        }
        next.sort();
        next.dedup();
        ends = next;
    }
    Path { steps: passed_steps, ends }
}

/// The rows of the result: each claim of the sample, and each claim that a rule added.
pub fn rows(visit: &Visit<'_>, claims: &[Value], evaluation: &Value, names: &Names) -> Vec<Value> {
    let steps = evaluation["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut starts: Vec<Claim> = Vec::new();
    for one in claims.iter().map(claim) {
        if !starts.contains(&one) {
            starts.push(one);
        }
    }
    let given = starts.into_iter().map(|start| (start.clone(), follow(start, steps)));
    let added = steps.iter().enumerate().filter(|(_, step)| step["effect"] == "Added").map(|(at, step)| {
        let later = steps.iter().skip(at).position(|next| next["priority"] != step["priority"]);
        let later = later.and_then(|later| steps.get(at + later..)).unwrap_or_default();
        let start = claim(&step["claim"]);
        let mut path = follow(start.clone(), later);
        path.steps.insert(0, step);
        (start, path)
    });
    given.chain(added).map(|(start, path)| row(visit, &start, &path, evaluation, names)).collect()
}

fn row(visit: &Visit<'_>, start: &Claim, path: &Path<'_>, evaluation: &Value, names: &Names) -> Value {
    let words = visit.words;
    let Claim { kind, value, source } = start;
    let sub =
        if source == "Platform" { value.clone() } else { format!("{value} · {}", words.choice(source)) };
    let steps = path.steps.iter().map(|step| {
        let id = plain(&step["rule"]);
        let effect = format!("effect_{}", plain(&step["effect"]));
        Tag { text: format!("{}: {}", names.name(visit, &id), words.page(&effect)), href: names.href(&id) }
    });
    let steps = Cell { items: steps.collect(), ..Cell::of("tags", "") };
    let cells = [Cell::of("title", kind).with_sub(sub), steps, goes(visit, start, path, evaluation)];
    json!({ "id": "", "href": null, "avatar": null, "cells": cells })
}

/// The destination of a claim, and the claims it was changed into.
fn goes(visit: &Visit<'_>, start: &Claim, path: &Path<'_>, evaluation: &Value) -> Cell {
    let words = visit.words;
    let out = evaluation["claims"].as_array().map(Vec::as_slice).unwrap_or_default();
    let outputs: Vec<(&Claim, &Value)> =
        path.ends.iter().filter_map(|end| Some((end, out.iter().find(|out| claim(out) == *end)?))).collect();
    let Some((_, first)) = outputs.first() else {
        return Cell::of("badge", words.page("no_token")).toned("bad");
    };
    if first["destination"] == "None" {
        return Cell::of("badge", words.page("no_token")).toned("off");
    }
    let mut destination = words.choice(&plain(&first["destination"])).to_owned();
    if first["onRequest"] == json!(true) {
        destination = format!("{destination}, {}", words.choice("OnRequest"));
    }
    let changed: Vec<String> = outputs
        .iter()
        .filter(|(end, _)| *end != start)
        .map(|(end, _)| format!("{} = {}", end.kind, end.value))
        .collect();
    Cell::of("badge", destination).toned("good").with_sub(changed.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::follow;

    fn one(name: &str) -> Value {
        json!({ "type": name, "value": "x", "source": "Platform" })
    }

    #[test]
    fn a_claim_is_followed_through_what_it_becomes() {
        let step = |priority: i64, from: &str, effect: &str, to: Value| json!({ "rule": "r", "priority": priority, "effect": effect, "claim": one(from), "became": to });
        let steps = [
            step(0, "a", "Passed", Value::Null),
            step(0, "a", "Changed", one("b")),
            step(0, "b", "Dropped", Value::Null),
            step(1, "b", "Changed", one("c")),
            step(2, "a", "Dropped", Value::Null),
        ];
        let start = super::claim(&one("a"));
        let path = follow(start, &steps);
        assert_eq!(path.ends, [super::claim(&one("c"))]);
        let effects: Vec<&str> = path.steps.iter().map(|step| step["effect"].as_str().unwrap()).collect();
        assert_eq!(effects, ["Passed", "Changed", "Changed", "Dropped"]);
        assert_eq!(follow(super::claim(&one("z")), &steps).ends, [super::claim(&one("z"))]);
    }
}
