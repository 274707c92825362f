//! Random documents: after an `apply` succeeds, the next `plan` reports no change.
//!
//! `CHANCERY_SEQUENCES` is the number of sets of documents, `PROPTEST_RNG_SEED` the random seed.

use chancery_configuration::{Kind, kinds};
use chancery_management::SERVICE;
use chancery_record::{Field, Kind as Form};
use chancery_resource::settings::{CATALOGUE, Owner};
use chancery_testkit::on_both_engines;
use serde_json::{Map, Value, json};

use super::Set;
use crate::{
    Random,
    fixtures::{Fixtures, create_fixtures},
    pattern::{Row, key_of, rows},
};

/// The documents of each kind in a set.
const PER_KIND: usize = 3;
/// The most random members of a document.
const MAX_RANDOM_MEMBERS: usize = 4;

/// A text in a variation that a user may write.
fn varied(random: &mut Random, text: &str) -> Value {
    match random.below(9) {
        0 => json!(format!(" {text}\n")),
        1 => json!(format!("\u{a0}{text}\t")),
        2 => json!(text.to_uppercase()),
        3 => json!(text.to_lowercase()),
        4 => json!(text.trim_start_matches('/')),
        5 => json!(["", "  ", "/"][random.below(3)]),
        6 => json!(format!("{text}\u{65}\u{301}")),
        7 => Value::Null,
        _ => json!(text),
    }
}

/// A random value of a field's kind; `was` is the document's current value.
fn random_value(random: &mut Random, form: &Form, was: Option<&Value>) -> Value {
    if random.below(12) == 0 {
        return Value::Null;
    }
    let text = was.and_then(Value::as_str);
    match form {
        Form::Bool => json!(random.below(2) == 0),
        Form::Int { min, max } => json!([*min, *max, (*min).max(1), (*min).max(60)][random.below(4)]),
        Form::Text(rule) if rule.takes_object && random.below(2) == 0 => {
            serde_json::from_str(text.unwrap_or(rule.example)).unwrap_or_else(|_| json!({}))
        }
        Form::Text(rule) => varied(random, text.unwrap_or(rule.example)),
        Form::Choice(names) | Form::Numbered(names) => {
            let name = names[random.below(names.len())];
            varied(random, name)
        }
        Form::Time => json!(
            ["2036-01-02T03:04:05.6789+01:00", "2036-01-02t03:04:05z", "2036-01-02T03:04:05Z"]
                [random.below(3)]
        ),
        Form::Bytes(_) => json!(["YWI=", "YWI", "YWFh"][random.below(3)]),
        Form::Texts(rule) => {
            (0..random.below(4)).map(|_| varied(random, rule.item.example)).collect::<Value>()
        }
        Form::Pairs(rule) => json!({ rule.name.example: varied(random, rule.value.example) }),
        Form::Object(fields) => {
            let fields = fields.iter().filter(|field| field.access.create);
            fields.map(|field| (field.wire().to_owned(), random_value(random, &field.kind, None))).collect()
        }
        Form::Id => text.map_or(Value::Null, |text| varied(random, text)),
        Form::Ids => Value::Null,
    }
}

/// Documents of a kind, as the walks through all resources create them, with random members.
fn documents(
    random: &mut Random,
    kind: &Kind,
    row: &Row,
    fixtures: &Fixtures,
    known: &[Vec<String>],
) -> Vec<Value> {
    let all = kinds(&SERVICE.all().collect::<Vec<_>>());
    let of_kind = |name: &str| all.iter().position(|other| other.name == name).map(|at| &known[at]);
    let options: Vec<_> =
        CATALOGUE.iter().filter(|entry| entry.owner == Owner::Tenant && !entry.secret).collect();
    let document = |number: usize| {
        let Value::Object(mut members) = fixtures.fill(&row.create, number) else { unreachable!("a body") };
        if kind.name == "Option" && random.below(4) > 0 {
            let entry = options[random.below(options.len())];
            members.insert("name".to_owned(), json!(entry.name));
            members.insert("value".to_owned(), varied(random, entry.default));
        }
        let fields: Vec<&Field> = kind.stored_fields().collect();
        for _ in 0..random.below(MAX_RANDOM_MEMBERS + 1) {
            let field = fields[random.below(fields.len())];
            let value = random_value(random, &field.kind, members.get(field.wire()));
            members.insert(field.wire().to_owned(), value);
        }
        for set in &kind.sets {
            let Some(others) = of_kind(set.relation.target.name) else { continue };
            if random.below(4) == 0 && !others.is_empty() {
                let mut name = |_| {
                    let other = &others[random.below(others.len())];
                    varied(random, other)
                };
                let names: Vec<Value> = (0..3).map(&mut name).collect();
                members.insert(set.relation.name.to_owned(), names.into());
            }
        }
        json!({ "kind": kind.name, "members": members })
    };
    (1..=PER_KIND).map(document).collect()
}

/// Applies documents, without those that are rejected; returns the others.
async fn applied(set: &Set, mut documents: Vec<Value>) -> Vec<Value> {
    loop {
        std::fs::write(set.folder.join("set.json"), json!(documents).to_string()).unwrap();
        let output = set.run(&["apply", "--yes"]).await;
        if output.status.success() {
            return documents;
        }
        let stderr = String::from_utf8(output.stderr).unwrap();
        let rejected: Vec<usize> = stderr
            .split("set.json#/")
            .skip(1)
            .filter_map(|rest| rest.split(['/', ':']).next()?.parse().ok())
            .collect();
        assert!(!rejected.is_empty(), "{stderr}\n{documents:#?}");
        let mut number = 0..;
        documents.retain(|_| !rejected.contains(&number.next().unwrap()));
    }
}

on_both_engines! {
    /// After documents are applied, in whatever form their values are written, the next plan reports no change.
    async fn after_apply_the_plan_is_empty(world: World) {
        let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
        let mut random = Random(number("PROPTEST_RNG_SEED", 20_261_127).max(1));
        let fixtures = create_fixtures(&world.admin).await;
        let kinds = kinds(&SERVICE.all().collect::<Vec<_>>());
        let mut known = Vec::new();
        for kind in &kinds {
            let list = world.all(kind.name).await;
            let keys = list.as_array().unwrap().iter().map(|row| key_of(kind.name, row).to_owned());
            known.push(keys.collect::<Vec<_>>());
        }
        let set = Set::new(&world, "random");
        let mut accepted = Map::new();
        for _ in 0..number("CHANCERY_SEQUENCES", 2) {
            let mut documents_generated = Vec::new();
            for kind in &kinds {
                for row in rows().iter().filter(|row| row.resource == kind.name) {
                    documents_generated.extend(documents(&mut random, kind, row, &fixtures, &known));
                }
            }
            let left = applied(&set, documents_generated).await;
            for document in &left {
                accepted.insert(document["kind"].as_str().unwrap().to_owned(), Value::Null);
            }
            let planned = set.run(&["plan"]).await;
            let stdout = String::from_utf8(planned.stdout).unwrap();
            assert!(planned.status.success(), "{stdout}{}\n{left:#?}", String::from_utf8_lossy(&planned.stderr));
        }
        let missing: Vec<&str> = kinds.iter().map(|kind| kind.name).filter(|name| !accepted.contains_key(*name)).collect();
        assert_eq!(missing, [""; 0], "of these none was ever taken");
    }
}
