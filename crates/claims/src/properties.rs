//! Property tests with arbitrary rules.

use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*, sample::select};

use crate::{
    Claim, Destination, Disclosure, InputSource, MAX_TEXT_BYTES, Outcome, PROTECTED, Rule, RuleSet, RuleType,
    Source, Target, is_protected, tests::rule,
};

/// So few words that rules match claims.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec!["role", "email", "ada", "adaada", "x", ""]),
        1 => select(&PROTECTED[..]),
    ]
    .prop_map(str::to_owned)
}

fn claim() -> impl Strategy<Value = Claim> {
    (word(), word(), select(Source::ALL)).prop_map(|(claim_type, value, source)| Claim {
        claim_type,
        value,
        source,
    })
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => select(vec!["", "", "a", "(a)(d)", ".*", "^.", "x|email", "[^a]+", "^$", "i"]),
        1 => select(vec!["^role$", "^email$", "^ada$", "^adaada$", "^x$"]),
    ]
    .prop_map(str::to_owned)
}

fn replacement() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["", "role", "$0$0", "${1}b", "$nobody", "sub", "s${2}ub", "$$"]).prop_map(str::to_owned),
        word(),
    ]
}

prop_compose! {
    fn any_rule(types: &'static [RuleType])(
        rule_type in select(types),
        filter_target in select(Target::ALL),
        transform_target in select(Target::ALL),
        destination in select(Destination::ALL),
        input_source in select(InputSource::ALL),
        disclosure in select(Disclosure::ALL),
        priority in -1..2_i64,
        patterns in [pattern(), pattern(), pattern(), pattern()],
        replacements in [replacement(), replacement()],
    ) -> Rule {
        let [type_evaluation_rule, value_evaluation_rule, type_transformation_rule, value_transformation_rule] =
            patterns;
        let [type_transformation_replacement, value_transformation_replacement] = replacements;
        Rule {
            filter_target, transform_target, destination, input_source, disclosure, priority,
            type_evaluation_rule, value_evaluation_rule, type_transformation_rule, value_transformation_rule,
            type_transformation_replacement, value_transformation_replacement,
            ..rule(0, rule_type)
        }
    }
}

/// Rules with distinct ids.
fn rules(types: &'static [RuleType]) -> impl Strategy<Value = Vec<Rule>> {
    vec(any_rule(types), 0..7).prop_map(|mut rules| {
        for (id, rule) in (1..).zip(&mut rules) {
            rule.id = uuid::Uuid::from_u128(id);
        }
        rules
    })
}

fn evaluate(rules: &[Rule], claims: &[Claim]) -> Outcome {
    RuleSet::new(rules, &|| true).unwrap().evaluate(claims.to_vec(), &|| true).unwrap()
}

fn plain(outcome: &Outcome) -> Vec<Claim> {
    outcome
        .claims
        .iter()
        .map(|one| Claim { claim_type: one.claim_type.clone(), value: one.value.clone(), source: one.source })
        .collect()
}

proptest! {
    #[test]
    fn without_rules_claims_are_unchanged(claims in vec(claim(), 0..12)) {
        let mut seen = BTreeSet::new();
        let distinct: Vec<_> = claims.iter().filter(|one| seen.insert(*one)).cloned().collect();
        prop_assert_eq!(plain(&evaluate(&[], &claims)), distinct);
    }

    #[test]
    fn protected_claims_are_unchanged(rules in rules(RuleType::ALL), claims in vec(claim(), 0..12)) {
        let protected = |outcome: &Outcome| -> Vec<_> {
            outcome.claims.iter().filter(|one| is_protected(&one.claim_type)).cloned().collect()
        };
        prop_assert_eq!(protected(&evaluate(&rules, &claims)), protected(&evaluate(&[], &claims)));
    }

    #[test]
    fn the_order_of_the_rules_has_no_effect(
        (rules, shuffled) in rules(RuleType::ALL).prop_flat_map(|rules| {
            (Just(rules.clone()), Just(rules).prop_shuffle())
        }),
        claims in vec(claim(), 0..12),
    ) {
        prop_assert_eq!(evaluate(&rules, &claims), evaluate(&shuffled, &claims));
    }

    #[test]
    fn the_ids_of_rules_in_a_group_have_no_effect(rules in rules(RuleType::ALL), claims in vec(claim(), 0..12)) {
        let reversed: Vec<_> = rules
            .iter()
            .map(|rule| Rule { id: uuid::Uuid::from_u128(100 - rule.id.as_u128()), ..rule.clone() })
            .collect();
        let set = |rules: &[Rule]| -> BTreeSet<_> {
            let outcome = evaluate(rules, &claims);
            let dispositions = outcome.claims.iter().map(|one| (one.destination, one.on_request, one.path.len()));
            plain(&outcome).into_iter().zip(dispositions).collect()
        };
        prop_assert_eq!(set(&rules), set(&reversed));
    }

    #[test]
    fn claims_and_paths_have_no_duplicates(
        rules in rules(RuleType::ALL),
        claims in vec(claim(), 0..12),
    ) {
        let outcome = evaluate(&rules, &claims);
        let distinct: BTreeSet<_> = plain(&outcome).into_iter().collect();
        prop_assert_eq!(distinct.len(), outcome.claims.len());
        for one in &outcome.claims {
            let priorities: Vec<_> = one
                .path
                .iter()
                .map(|id| rules.iter().find(|rule| rule.id == *id).unwrap().priority)
                .collect();
            prop_assert!(priorities.is_sorted());
            prop_assert_eq!(one.path.iter().collect::<BTreeSet<_>>().len(), one.path.len());
        }
    }

    /// A pattern with a group is searched, and the same one without is looked up.
    #[test]
    fn an_indexed_rule_has_the_result_of_a_search(
        rules in rules(RuleType::ALL),
        claims in vec(claim(), 0..12),
    ) {
        let searching = |pattern: &str| {
            let word = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
            word.map_or_else(|| pattern.to_owned(), |word| format!("^({word})$"))
        };
        let searched: Vec<_> = rules
            .iter()
            .map(|rule| Rule {
                type_evaluation_rule: searching(&rule.type_evaluation_rule),
                value_evaluation_rule: searching(&rule.value_evaluation_rule),
                ..rule.clone()
            })
            .collect();
        let trace = |rules: &[Rule]| RuleSet::new(rules, &|| true).unwrap().trace(claims.clone(), &|| true);
        prop_assert_eq!(trace(&rules), trace(&searched));
        prop_assert_eq!(evaluate(&rules, &claims), trace(&rules).unwrap().0);
    }

    /// The replacement of the complete text needs no search.
    #[test]
    fn a_literal_replacement_has_the_result_of_a_search(
        rules in rules(RuleType::ALL),
        claims in vec(claim(), 0..12),
    ) {
        let searching = |pattern: &str, replacement: &str| {
            if pattern.is_empty() && !replacement.is_empty() { r"(?s)\A.*\z".to_owned() } else { pattern.to_owned() }
        };
        let searched: Vec<_> = rules
            .iter()
            .map(|rule| Rule {
                type_transformation_rule: searching(&rule.type_transformation_rule, &rule.type_transformation_replacement),
                value_transformation_rule: searching(
                    &rule.value_transformation_rule,
                    &rule.value_transformation_replacement,
                ),
                ..rule.clone()
            })
            .collect();
        prop_assert_eq!(evaluate(&rules, &claims), evaluate(&searched, &claims));
    }

    #[test]
    fn filter_and_remove_create_no_claims(
        rules in rules(&[RuleType::Filter, RuleType::Remove]),
        claims in vec(claim(), 0..12),
    ) {
        for one in plain(&evaluate(&rules, &claims)) {
            prop_assert!(claims.contains(&one));
        }
    }

    #[test]
    fn any_rule_compiles_or_is_rejected(
        mut rule in any_rule(RuleType::ALL),
        texts in vec(prop_oneof!["\\PC{0,24}", r"([a-c]|[()\[\]{}.*+?|^$\\]|\$[0-9a-c]){0,16}"], 6),
        claims in vec(("\\PC{0,12}", any::<String>()), 0..6),
    ) {
        let mut texts = texts.into_iter();
        for member in [
            &mut rule.type_evaluation_rule,
            &mut rule.value_evaluation_rule,
            &mut rule.type_transformation_rule,
            &mut rule.value_transformation_rule,
            &mut rule.type_transformation_replacement,
            &mut rule.value_transformation_replacement,
        ] {
            *member = texts.next().unwrap();
        }
        let claims: Vec<_> = claims
            .into_iter()
            .map(|(claim_type, value)| Claim { claim_type, value, source: Source::Platform })
            .collect();
        let Ok(rules) = RuleSet::new(&[rule], &|| true) else { return Ok(()) };
        for one in rules.evaluate(claims, &|| true).map_or_else(|_| Vec::new(), |outcome| outcome.claims) {
            prop_assert!(one.claim_type.len().max(one.value.len()) <= MAX_TEXT_BYTES);
        }
    }
}
