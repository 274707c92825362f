//! What became of each claim: the rules that it met, and where it goes.

use serde_json::{Value, json};

use super::Names;
use crate::shell::{
    fields::{Cell, Tag, plain},
    visit::Visit,
};

/// A claim as steps name it.
type Claim = (String, String, String);

fn claim(value: &Value) -> Claim {
    let source = value["source"].as_str().unwrap_or("Platform");
    (plain(&value["type"]), plain(&value["value"]), source.to_owned())
}

/// What became of one claim.
struct Path<'a> {
    steps: Vec<&'a Value>,
    ends: Vec<Claim>,
}

/// Follows a claim from this step on: group by group, through what rules made of it.
fn follow(start: Claim, steps: &[Value]) -> Path<'_> {
    let (mut told, mut ends) = (Vec::new(), vec![start]);
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
            told.extend(own);
        }
        next.sort();
        next.dedup();
        ends = next;
    }
    Path { steps: told, ends }
}

/// The rows of the outcome: each claim of the sample, and each that a rule added.
pub fn rows(visit: &Visit<'_>, (claims, told): (&[Value], &Value), names: &Names) -> Vec<Value> {
    let steps = told["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
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
    given.chain(added).map(|(start, path)| row(visit, &start, &path, (told, names))).collect()
}

fn row(visit: &Visit<'_>, start: &Claim, path: &Path<'_>, (told, names): (&Value, &Names)) -> Value {
    let words = visit.words;
    let (claim_type, value, source) = start;
    let sub =
        if source == "Platform" { value.clone() } else { format!("{value} · {}", words.choice(source)) };
    let steps = path.steps.iter().map(|step| {
        let id = plain(&step["rule"]);
        let effect = format!("effect_{}", plain(&step["effect"]));
        Tag { text: format!("{}: {}", names.name(visit, &id), words.page(&effect)), href: names.href(&id) }
    });
    let steps = Cell { items: steps.collect(), ..Cell::of("tags", "") };
    let cells = [Cell::of("title", claim_type).with_sub(sub), steps, goes(visit, start, path, told)];
    json!({ "id": "", "href": null, "avatar": null, "cells": cells })
}

/// Where a claim goes, and as what.
fn goes(visit: &Visit<'_>, start: &Claim, path: &Path<'_>, told: &Value) -> Cell {
    let words = visit.words;
    let out = told["claims"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found: Vec<(&Claim, &Value)> =
        path.ends.iter().filter_map(|end| Some((end, out.iter().find(|out| claim(out) == *end)?))).collect();
    let Some((_, first)) = found.first() else {
        return Cell::of("badge", words.page("no_token")).toned("bad");
    };
    if first["destination"] == "None" {
        return Cell::of("badge", words.page("no_token")).toned("off");
    }
    let mut destination = words.choice(&plain(&first["destination"])).to_owned();
    if first["onRequest"] == json!(true) {
        destination = format!("{destination}, {}", words.choice("OnRequest"));
    }
    let changed: Vec<String> = found
        .iter()
        .filter(|(end, _)| *end != start)
        .map(|((claim_type, value, _), _)| format!("{claim_type} = {value}"))
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
        let told: Vec<&str> = path.steps.iter().map(|step| step["effect"].as_str().unwrap()).collect();
        assert_eq!(told, ["Passed", "Changed", "Changed", "Dropped"]);
        assert_eq!(follow(super::claim(&one("z")), &steps).ends, [super::claim(&one("z"))]);
    }
}
