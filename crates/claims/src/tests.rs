//! The semantics of claim rules.

use std::{cell::Cell, slice::from_ref};

use uuid::Uuid;

use crate::{
    Claim, Destination, Disclosure, Effect, InputSource, LimitExceeded, MAX_CLAIMS, MAX_TEXT_BYTES, Member,
    OutClaim, Outcome, Rule, RuleSet, RuleSetError, RuleType, Source, Target,
};

/// A new rule with only its type.
pub(crate) fn rule(id: u128, rule_type: RuleType) -> Rule {
    Rule {
        id: Uuid::from_u128(id),
        name: format!("rule {id}"),
        rule_type,
        filter_target: Target::ClaimType,
        transform_target: Target::ClaimType,
        destination: Destination::IdTokenAndAccessToken,
        input_source: InputSource::All,
        disclosure: Disclosure::Always,
        priority: 0,
        type_evaluation_rule: String::new(),
        value_evaluation_rule: String::new(),
        type_transformation_rule: String::new(),
        value_transformation_rule: String::new(),
        type_transformation_replacement: String::new(),
        value_transformation_replacement: String::new(),
    }
}

fn matching(id: u128, rule_type: RuleType, types: &str) -> Rule {
    Rule { type_evaluation_rule: types.to_owned(), ..rule(id, rule_type) }
}

fn adding(id: u128, claim_type: &str, value: &str) -> Rule {
    Rule {
        type_transformation_replacement: claim_type.to_owned(),
        value_transformation_replacement: value.to_owned(),
        ..rule(id, RuleType::Add)
    }
}

fn claim(claim_type: &str, value: &str) -> Claim {
    Claim { claim_type: claim_type.to_owned(), value: value.to_owned(), source: Source::Platform }
}

fn provider_claim(claim_type: &str, value: &str) -> Claim {
    Claim { source: Source::IdentityProvider, ..claim(claim_type, value) }
}

fn ada() -> Vec<Claim> {
    vec![
        claim("sub", "7"),
        claim("email", "ada@example.com"),
        provider_claim("email", "ada@example.org"),
        provider_claim("role", "countess"),
    ]
}

fn outcome(rules: &[Rule], claims: &[Claim]) -> Outcome {
    RuleSet::new(rules, &|| true).unwrap().evaluate(claims.to_vec(), &|| true).unwrap()
}

/// The resulting claims as `type=value`, in order.
fn results(rules: &[Rule], claims: &[Claim]) -> Vec<String> {
    outcome(rules, claims).claims.iter().map(|one| format!("{}={}", one.claim_type, one.value)).collect()
}

fn only_claim(rules: &[Rule], claims: &[Claim], claim_type: &str) -> OutClaim {
    let matches: Vec<_> =
        outcome(rules, claims).claims.into_iter().filter(|one| one.claim_type == claim_type).collect();
    assert_eq!(matches.len(), 1, "{matches:?}");
    matches[0].clone()
}

const ALL: [&str; 4] = ["sub=7", "email=ada@example.com", "email=ada@example.org", "role=countess"];

#[test]
fn without_rules_everything_goes_into_both_tokens() {
    let outcome = outcome(&[], &ada());
    assert_eq!(results(&[], &ada()), ALL);
    for claim in outcome.claims {
        assert_eq!(claim.destination, Destination::IdTokenAndAccessToken);
        assert!(!claim.on_request && claim.path.is_empty());
    }
}

#[test]
fn a_filter_forwards_the_claims_that_it_matches() {
    assert_eq!(results(&[matching(1, RuleType::Filter, "^role$")], &ada()), ["sub=7", "role=countess"]);
    assert_eq!(results(&[rule(1, RuleType::Filter)], &ada()), ALL);
    assert_eq!(results(&[matching(1, RuleType::Filter, "nothing")], &ada()), ["sub=7"]);
}

#[test]
fn the_filter_target_selects_the_evaluation_patterns() {
    let both = Rule {
        type_evaluation_rule: "^email$".to_owned(),
        value_evaluation_rule: r"\.org$".to_owned(),
        ..rule(1, RuleType::Filter)
    };
    let with = |filter_target| results(&[Rule { filter_target, ..both.clone() }], &ada()).split_off(1);
    assert_eq!(with(Target::ClaimType), ["email=ada@example.com", "email=ada@example.org"]);
    assert_eq!(with(Target::ClaimValue), ["email=ada@example.org"]);
    assert_eq!(with(Target::ClaimTypeAndValue), ["email=ada@example.org"]);
    let other = Rule { type_evaluation_rule: "^role$".to_owned(), ..both.clone() };
    let results = results(&[Rule { filter_target: Target::ClaimTypeAndValue, ..other }], &ada());
    assert_eq!(results, ["sub=7"]);
}

#[test]
fn a_remove_forwards_the_claims_that_it_does_not_match() {
    let role = matching(1, RuleType::Remove, "^role$");
    assert_eq!(results(from_ref(&role), &ada()), &ALL[..3]);
    // two rules of one group do not undo each other
    assert_eq!(results(&[role, matching(2, RuleType::Remove, "^email$")], &ada()), ["sub=7"]);
}

#[test]
fn a_transform_forwards_rewritten_matches() {
    let renaming = Rule {
        type_transformation_rule: "^e(mail)$".to_owned(),
        type_transformation_replacement: "work_$1".to_owned(),
        ..matching(1, RuleType::Transform, "^email$")
    };
    assert_eq!(
        results(from_ref(&renaming), &ada()),
        ["sub=7", "work_mail=ada@example.com", "work_mail=ada@example.org"]
    );
    let rest = matching(2, RuleType::Remove, "^email$");
    assert_eq!(
        results(&[renaming.clone(), rest], &ada()),
        ["sub=7", "work_mail=ada@example.com", "work_mail=ada@example.org", "role=countess"]
    );
    let both = Rule {
        transform_target: Target::ClaimTypeAndValue,
        value_transformation_rule: "(?P<who>[^@]+)@.*".to_owned(),
        value_transformation_replacement: "${who}".to_owned(),
        ..renaming
    };
    let evaluation = outcome(&[both], &ada());
    assert_eq!(evaluation.claims[1].value, "ada");
    assert_eq!(evaluation.claims[2].source, Source::IdentityProvider);
}

#[test]
fn an_empty_transformation_pattern_matches_the_complete_text() {
    let whole = Rule {
        transform_target: Target::ClaimValue,
        value_transformation_replacement: "<$0>".to_owned(),
        type_transformation_replacement: "not the target".to_owned(),
        ..matching(1, RuleType::Transform, "^role$")
    };
    assert_eq!(results(&[whole], &ada()), ["sub=7", "role=<countess>"]);
    assert_eq!(results(&[rule(1, RuleType::Transform)], &ada()), ALL);
}

#[test]
fn an_add_adds_one_literal_claim() {
    let cost = adding(1, "cost", "$1");
    assert_eq!(results(from_ref(&cost), &ada()), [&ALL[..], &["cost=$1"]].concat());
    assert_eq!(results(from_ref(&cost), &[]), ["cost=$1"]);
    let when = |types: &str| Rule { type_evaluation_rule: types.to_owned(), ..cost.clone() };
    assert_eq!(results(&[when("email")], &ada()).len(), 5);
    assert_eq!(results(&[when("phone")], &ada()), ALL);
    assert_eq!(results(&[adding(1, "", "x")], &ada()), ALL);
    let added = only_claim(&[cost], &ada(), "cost");
    assert_eq!((added.source, added.path), (Source::Platform, vec![Uuid::from_u128(1)]));
}

#[test]
fn an_add_does_not_undo_a_filter_of_its_group() {
    let rules = [matching(1, RuleType::Filter, "^role$"), adding(2, "cost", "7")];
    assert_eq!(results(&rules, &ada()), ["sub=7", "role=countess", "cost=7"]);
}

#[test]
fn claims_that_no_rule_processes_pass_unchanged() {
    let platform_only = Rule { input_source: InputSource::Platform, ..matching(1, RuleType::Filter, "^$") };
    let evaluation = outcome(from_ref(&platform_only), &ada());
    assert_eq!(
        results(from_ref(&platform_only), &ada()),
        ["sub=7", "email=ada@example.org", "role=countess"]
    );
    assert!(evaluation.claims.iter().all(|claim| claim.path.is_empty()));
    // the claim is dropped if another rule of the group processes it
    let roles =
        Rule { input_source: InputSource::IdentityProvider, ..matching(2, RuleType::Filter, "^role$") };
    assert_eq!(results(&[platform_only, roles], &ada()), ["sub=7", "role=countess"]);
    let reason = Rule { type_evaluation_rule: "^role$".to_owned(), ..adding(1, "noble", "true") };
    let add = Rule { input_source: InputSource::Platform, ..reason };
    assert_eq!(results(&[add], &ada()), ALL);
}

#[test]
fn groups_run_in_sequence_and_rules_of_a_group_on_the_same_claims() {
    let renaming = |priority| Rule {
        priority,
        type_transformation_replacement: "title".to_owned(),
        ..matching(1, RuleType::Transform, "^role$")
    };
    let titles = |priority| Rule { priority, ..matching(2, RuleType::Filter, "^title$") };
    assert_eq!(results(&[titles(5), renaming(-5)], &ada()), ["sub=7", "title=countess"]);
    assert_eq!(results(&[renaming(5), titles(-5)], &ada()), ["sub=7"]);
    assert_eq!(results(&[renaming(0), titles(0)], &ada()), ["sub=7", "title=countess"]);
    let path = only_claim(&[titles(5), renaming(-5)], &ada(), "title").path;
    assert_eq!(path, [Uuid::from_u128(1), Uuid::from_u128(2)]);
}

#[test]
fn restrictions_are_merged_in_a_group_and_add_up_across_groups() {
    let roles = |id, priority, destination, disclosure| Rule {
        destination,
        disclosure,
        priority,
        ..matching(id, RuleType::Filter, "^role$")
    };
    let id = roles(1, 0, Destination::IdToken, Disclosure::OnRequest);
    let access = roles(2, 0, Destination::AccessToken, Disclosure::Always);
    let role = |rules: &[Rule]| {
        let role = only_claim(rules, &ada(), "role");
        (role.destination, role.on_request, role.path.len())
    };
    assert_eq!(role(from_ref(&id)), (Destination::IdToken, true, 1));
    assert_eq!(role(&[id.clone(), access.clone()]), (Destination::IdTokenAndAccessToken, false, 2));
    let later = Rule { priority: 1, ..access };
    assert_eq!(role(&[id, later]), (Destination::None, true, 2));
}

#[test]
fn claims_that_become_equal_are_merged() {
    let same = Rule {
        transform_target: Target::ClaimTypeAndValue,
        type_transformation_replacement: "seen".to_owned(),
        value_transformation_replacement: "yes".to_owned(),
        ..rule(1, RuleType::Transform)
    };
    let claims = [claim("a", "1"), claim("b", "2"), claim("b", "2"), provider_claim("c", "3")];
    let merged = outcome(&[same], &claims).claims;
    assert_eq!(merged.len(), 2);
    assert_eq!((merged[0].source, merged[1].source), (Source::Platform, Source::IdentityProvider));
}

#[test]
fn protected_claims_can_neither_be_dropped_nor_created() {
    let becoming = Rule {
        type_transformation_replacement: "acr".to_owned(),
        destination: Destination::None,
        ..rule(1, RuleType::Transform)
    };
    let rules = [becoming, adding(2, "client_id", "root"), rule(3, RuleType::Remove)];
    let remaining = outcome(&rules, &ada()).claims;
    assert_eq!(remaining.len(), 1);
    assert_eq!(remaining[0].claim_type, "sub");
    assert_eq!(remaining[0].destination, Destination::IdTokenAndAccessToken);
    assert!(remaining[0].path.is_empty());
}

#[test]
fn each_invalid_member_is_reported_with_its_rule() {
    let bad = Rule {
        type_evaluation_rule: "(".to_owned(),
        value_transformation_rule: "[".to_owned(),
        type_transformation_replacement: "x".repeat(2_001),
        ..rule(2, RuleType::Filter)
    };
    let refused = RuleSet::new(&[rule(1, RuleType::Filter), bad.clone()], &|| true).unwrap_err();
    let RuleSetError::Faults(faults) = refused else { panic!("{refused:?}") };
    let members: Vec<_> = faults.iter().map(|fault| (fault.rule.as_u128(), fault.member)).collect();
    assert_eq!(
        members,
        [
            (2, Member::TypeEvaluationRule),
            (2, Member::ValueTransformationRule),
            (2, Member::TypeTransformationReplacement)
        ]
    );
    assert_eq!(bad.weigh().unwrap_err().len(), 3);
    assert_eq!(rule(1, RuleType::Add).weigh(), Ok(4));
}

#[test]
fn the_number_and_size_of_claims_are_limited() {
    let evaluate = |rules: &[Rule], claims: &[Claim]| {
        RuleSet::new(rules, &|| true).unwrap().evaluate(claims.to_vec(), &|| true)
    };
    let many: Vec<_> = (0..MAX_CLAIMS).map(|number| claim("n", &number.to_string())).collect();
    assert_eq!(evaluate(&[], &many).unwrap().claims.len(), MAX_CLAIMS);
    assert_eq!(evaluate(&[adding(1, "one", "more")], &many), Err(LimitExceeded::Claims));
    assert_eq!(evaluate(&[], &[&many[..], &many[..1]].concat()), Err(LimitExceeded::Claims));

    let long = "x".repeat(MAX_TEXT_BYTES);
    assert!(evaluate(&[], &[claim("long", &long)]).is_ok());
    assert_eq!(evaluate(&[], &[claim("long", &format!("{long}x"))]), Err(LimitExceeded::Text));
    let doubling = Rule {
        transform_target: Target::ClaimValue,
        value_transformation_replacement: "$0$0".to_owned(),
        ..rule(1, RuleType::Transform)
    };
    let refused = evaluate(&[doubling], &[claim("long", &long)]);
    assert_eq!(refused, Err(LimitExceeded::Rewriting(Uuid::from_u128(1))));
    let heavy: Vec<_> = (0..65).map(|number| claim(&number.to_string(), &long)).collect();
    assert_eq!(evaluate(&[], &heavy), Err(LimitExceeded::Total));
}

/// A rule whose pattern weighs more than 300,000.
pub(crate) fn heavy(number: u128) -> Rule {
    Rule { value_evaluation_rule: r"^\w{100}$".to_owned(), ..rule(number, RuleType::Filter) }
}

/// A6: the patterns of a rule set have a memory limit, and compilation and evaluation a time limit.
#[test]
fn the_weight_and_time_of_a_rule_set_are_limited() {
    let few: Vec<Rule> = (1..=3).map(heavy).collect();
    let set = RuleSet::new(&few, &|| true).unwrap();
    let many: Vec<Rule> = (1..=60).map(heavy).collect();
    let refused = RuleSet::new(&many, &|| true).unwrap_err();
    let RuleSetError::Faults(faults) = refused else { panic!("{refused:?}") };
    assert!(faults[0].detail.contains("too much memory together"), "{faults:?}");
    let checks = Cell::new(0);
    let in_time = || checks.replace(checks.get() + 1) < 2;
    assert_eq!(RuleSet::new(&few, &in_time).unwrap_err(), RuleSetError::Time);
    assert_eq!(checks.get(), 3);
    assert_eq!(set.evaluate(vec![claim("name", "ada")], &|| false), Err(LimitExceeded::Time));
    let long = Claim { value: "a".repeat(60_000), ..claim("name", "") };
    let set = RuleSet::new(&[Rule { filter_target: Target::ClaimValue, ..heavy(1) }], &|| true).unwrap();
    assert_eq!(set.evaluate(vec![long], &|| true), Err(LimitExceeded::Matching(heavy(1).id)));
}

/// A6: look-ups without a search take time, too.
#[test]
fn the_time_limit_is_checked_during_look_ups() {
    let claims: Vec<_> = (0..MAX_CLAIMS).map(|number| claim(&number.to_string(), "yes")).collect();
    let indexed_rule = |id: u128| Rule {
        filter_target: Target::ClaimValue,
        value_evaluation_rule: "^yes$".to_owned(),
        ..adding(id, "agreed", "true")
    };
    let rules: Vec<_> = (1..=100).map(indexed_rule).collect();
    let set = RuleSet::new(&rules, &|| true).unwrap();
    let checks = Cell::new(0);
    let has_time = |max_checks: u32| checks.replace(checks.get() + 1) < max_checks;
    assert_eq!(set.evaluate(claims[1..].to_vec(), &|| has_time(10_000)).unwrap().claims.len(), MAX_CLAIMS);
    assert!(checks.replace(0) > 400);
    assert_eq!(set.evaluate(claims, &|| has_time(100)), Err(LimitExceeded::Time));
    assert_eq!(checks.get(), 101);
}

/// A6: many rules may forward a claim, so the paths are limited, too.
#[test]
fn the_length_of_all_paths_is_limited() {
    let claims: Vec<_> = (0..MAX_CLAIMS).map(|number| claim("n", &number.to_string())).collect();
    for one_after_another in [false, true] {
        let filter = |id: u128| Rule {
            priority: if one_after_another { i64::try_from(id).unwrap() } else { 0 },
            ..rule(id, RuleType::Filter)
        };
        let evaluate = |rules: u128| {
            let rules: Vec<_> = (1..=rules).map(filter).collect();
            RuleSet::new(&rules, &|| true).unwrap().evaluate(claims.clone(), &|| true)
        };
        assert_eq!(evaluate(20).unwrap().claims[0].path.len(), 20);
        assert_eq!(evaluate(21), Err(LimitExceeded::Paths));
    }
}

/// A6: each captured group of a transformation pattern adds the weight of the complete pattern.
#[test]
fn captured_groups_have_weight() {
    let groups = format!("{}[ab]{{0,190000}}", "()".repeat(900));
    let filter = Rule { type_evaluation_rule: groups.clone(), ..rule(1, RuleType::Filter) };
    assert!(filter.weigh().is_ok());
    let transform = Rule { type_transformation_rule: groups, ..rule(1, RuleType::Transform) };
    let wrong = transform.weigh().unwrap_err();
    assert_eq!(wrong[0].0, Member::TypeTransformationRule);
}

/// The steps of claims as `rule type effect`.
fn steps(rules: &[Rule], claims: &[Claim]) -> Vec<String> {
    let (_, steps) = RuleSet::new(rules, &|| true).unwrap().trace(claims.to_vec(), &|| true).unwrap();
    let formatted = steps.into_iter().map(|step| {
        let effect = match step.effect {
            Effect::Passed => "passed".to_owned(),
            Effect::Changed(claim) => format!("{}={}", claim.claim_type, claim.value),
            Effect::Dropped => "dropped".to_owned(),
            Effect::Added => "added".to_owned(),
        };
        format!("{} {} {effect}", step.rule.as_u128(), step.claim.claim_type)
    });
    formatted.collect()
}

#[test]
fn a_trace_has_each_step() {
    let shout = Rule {
        priority: 1,
        type_transformation_replacement: "ROLE".to_owned(),
        ..matching(2, RuleType::Transform, "^role$")
    };
    let rules =
        [matching(1, RuleType::Remove, "^email$"), shout, Rule { priority: 2, ..adding(3, "new", "x") }];
    let expected =
        ["1 email dropped", "1 email dropped", "1 role passed", "2 role ROLE=countess", "3 new added"];
    assert_eq!(steps(&rules, &ada()), expected);
    assert_eq!(steps(&[], &ada()), <[&str; 0]>::default());
}

/// A claim that one rule of a group forwards is not dropped by another.
#[test]
fn a_trace_has_the_rules_that_drop_a_claim() {
    let group = [matching(1, RuleType::Filter, "^role$"), matching(2, RuleType::Filter, "^email$")];
    let expected = ["2 email passed", "2 email passed", "1 role passed"];
    assert_eq!(steps(&group, &ada()), expected);
    let group = [matching(1, RuleType::Filter, "^role$"), matching(2, RuleType::Remove, "^role|email$")];
    let expected =
        ["1 email dropped", "2 email dropped", "1 email dropped", "2 email dropped", "1 role passed"];
    assert_eq!(steps(&group, &ada()), expected);
}

#[test]
fn the_steps_of_a_trace_are_limited() {
    let claims: Vec<Claim> =
        (0..=crate::MAX_STEPS / 2).map(|number| claim("role", &number.to_string())).collect();
    let rules = [rule(1, RuleType::Filter), Rule { priority: 1, ..rule(2, RuleType::Filter) }];
    let set = RuleSet::new(&rules, &|| true).unwrap();
    assert_eq!(set.trace(claims.clone(), &|| true), Err(LimitExceeded::Steps));
    assert!(set.evaluate(claims, &|| true).is_ok());
}
