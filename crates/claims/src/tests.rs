//! The meaning of claim rules, one sentence a test.

use std::{cell::Cell, slice::from_ref};

use uuid::Uuid;

use crate::{
    Claim, Destination, Disclosure, Effect, Exceeded, InputSource, MAX_CLAIMS, MAX_TEXT_BYTES, Member,
    OutClaim, Outcome, Rule, RuleSet, RuleSetError, RuleType, Source, Target,
};

/// A rule as it is created with nothing but its type.
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

fn foreign(claim_type: &str, value: &str) -> Claim {
    Claim { source: Source::IdentityProvider, ..claim(claim_type, value) }
}

fn ada() -> Vec<Claim> {
    vec![
        claim("sub", "7"),
        claim("email", "ada@example.com"),
        foreign("email", "ada@example.org"),
        foreign("role", "countess"),
    ]
}

fn outcome(rules: &[Rule], claims: &[Claim]) -> Outcome {
    RuleSet::new(rules, &|| true).unwrap().evaluate(claims.to_vec(), &|| true).unwrap()
}

/// `type=value`, in order.
fn told(rules: &[Rule], claims: &[Claim]) -> Vec<String> {
    outcome(rules, claims).claims.iter().map(|one| format!("{}={}", one.claim_type, one.value)).collect()
}

fn one(rules: &[Rule], claims: &[Claim], claim_type: &str) -> OutClaim {
    let found: Vec<_> =
        outcome(rules, claims).claims.into_iter().filter(|one| one.claim_type == claim_type).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

const ALL: [&str; 4] = ["sub=7", "email=ada@example.com", "email=ada@example.org", "role=countess"];

#[test]
fn without_rules_everything_goes_into_both_tokens() {
    let outcome = outcome(&[], &ada());
    assert_eq!(told(&[], &ada()), ALL);
    for claim in outcome.claims {
        assert_eq!(claim.destination, Destination::IdTokenAndAccessToken);
        assert!(!claim.on_request && claim.path.is_empty());
    }
}

#[test]
fn a_filter_forwards_what_it_matches() {
    assert_eq!(told(&[matching(1, RuleType::Filter, "^role$")], &ada()), ["sub=7", "role=countess"]);
    assert_eq!(told(&[rule(1, RuleType::Filter)], &ada()), ALL);
    assert_eq!(told(&[matching(1, RuleType::Filter, "nothing")], &ada()), ["sub=7"]);
}

#[test]
fn the_filter_target_says_which_patterns_count() {
    let both = Rule {
        type_evaluation_rule: "^email$".to_owned(),
        value_evaluation_rule: r"\.org$".to_owned(),
        ..rule(1, RuleType::Filter)
    };
    let with = |filter_target| told(&[Rule { filter_target, ..both.clone() }], &ada()).split_off(1);
    assert_eq!(with(Target::ClaimType), ["email=ada@example.com", "email=ada@example.org"]);
    assert_eq!(with(Target::ClaimValue), ["email=ada@example.org"]);
    assert_eq!(with(Target::ClaimTypeAndValue), ["email=ada@example.org"]);
    let other = Rule { type_evaluation_rule: "^role$".to_owned(), ..both.clone() };
    let told = told(&[Rule { filter_target: Target::ClaimTypeAndValue, ..other }], &ada());
    assert_eq!(told, ["sub=7"]);
}

#[test]
fn a_remove_forwards_the_others() {
    let role = matching(1, RuleType::Remove, "^role$");
    assert_eq!(told(from_ref(&role), &ada()), &ALL[..3]);
    // two rules of one group do not undo each other
    assert_eq!(told(&[role, matching(2, RuleType::Remove, "^email$")], &ada()), ["sub=7"]);
}

#[test]
fn a_transform_forwards_what_it_matches_rewritten() {
    let renaming = Rule {
        type_transformation_rule: "^e(mail)$".to_owned(),
        type_transformation_replacement: "work_$1".to_owned(),
        ..matching(1, RuleType::Transform, "^email$")
    };
    assert_eq!(
        told(from_ref(&renaming), &ada()),
        ["sub=7", "work_mail=ada@example.com", "work_mail=ada@example.org"]
    );
    let rest = matching(2, RuleType::Remove, "^email$");
    assert_eq!(
        told(&[renaming.clone(), rest], &ada()),
        ["sub=7", "work_mail=ada@example.com", "work_mail=ada@example.org", "role=countess"]
    );
    let both = Rule {
        transform_target: Target::ClaimTypeAndValue,
        value_transformation_rule: "(?P<who>[^@]+)@.*".to_owned(),
        value_transformation_replacement: "${who}".to_owned(),
        ..renaming
    };
    let found = outcome(&[both], &ada());
    assert_eq!(found.claims[1].value, "ada");
    assert_eq!(found.claims[2].source, Source::IdentityProvider);
}

#[test]
fn an_empty_transformation_pattern_stands_for_the_whole_text() {
    let whole = Rule {
        transform_target: Target::ClaimValue,
        value_transformation_replacement: "<$0>".to_owned(),
        type_transformation_replacement: "not the target".to_owned(),
        ..matching(1, RuleType::Transform, "^role$")
    };
    assert_eq!(told(&[whole], &ada()), ["sub=7", "role=<countess>"]);
    assert_eq!(told(&[rule(1, RuleType::Transform)], &ada()), ALL);
}

#[test]
fn an_add_adds_one_claim_as_it_stands() {
    let cost = adding(1, "cost", "$1");
    assert_eq!(told(from_ref(&cost), &ada()), [&ALL[..], &["cost=$1"]].concat());
    assert_eq!(told(from_ref(&cost), &[]), ["cost=$1"]);
    let when = |types: &str| Rule { type_evaluation_rule: types.to_owned(), ..cost.clone() };
    assert_eq!(told(&[when("email")], &ada()).len(), 5);
    assert_eq!(told(&[when("phone")], &ada()), ALL);
    assert_eq!(told(&[adding(1, "", "x")], &ada()), ALL);
    let added = self::one(&[cost], &ada(), "cost");
    assert_eq!((added.source, added.path), (Source::Platform, vec![Uuid::from_u128(1)]));
}

#[test]
fn an_add_beside_a_filter_does_not_undo_it() {
    let rules = [matching(1, RuleType::Filter, "^role$"), adding(2, "cost", "7")];
    assert_eq!(told(&rules, &ada()), ["sub=7", "role=countess", "cost=7"]);
}

#[test]
fn what_a_group_does_not_look_at_passes() {
    let nothing = Rule { input_source: InputSource::Platform, ..matching(1, RuleType::Filter, "^$") };
    let found = outcome(from_ref(&nothing), &ada());
    assert_eq!(told(from_ref(&nothing), &ada()), ["sub=7", "email=ada@example.org", "role=countess"]);
    assert!(found.claims.iter().all(|claim| claim.path.is_empty()));
    // the claim does not pass as soon as another rule of the group looks at it
    let roles =
        Rule { input_source: InputSource::IdentityProvider, ..matching(2, RuleType::Filter, "^role$") };
    assert_eq!(told(&[nothing, roles], &ada()), ["sub=7", "role=countess"]);
    let reason = Rule { type_evaluation_rule: "^role$".to_owned(), ..adding(1, "noble", "true") };
    let blind = Rule { input_source: InputSource::Platform, ..reason };
    assert_eq!(told(&[blind], &ada()), ALL);
}

#[test]
fn groups_run_one_after_another_and_the_rules_of_one_on_the_same() {
    let renaming = |priority| Rule {
        priority,
        type_transformation_replacement: "title".to_owned(),
        ..matching(1, RuleType::Transform, "^role$")
    };
    let titles = |priority| Rule { priority, ..matching(2, RuleType::Filter, "^title$") };
    assert_eq!(told(&[titles(5), renaming(-5)], &ada()), ["sub=7", "title=countess"]);
    assert_eq!(told(&[renaming(5), titles(-5)], &ada()), ["sub=7"]);
    assert_eq!(told(&[renaming(0), titles(0)], &ada()), ["sub=7", "title=countess"]);
    let path = one(&[titles(5), renaming(-5)], &ada(), "title").path;
    assert_eq!(path, [Uuid::from_u128(1), Uuid::from_u128(2)]);
}

#[test]
fn side_by_side_the_wider_counts_and_along_the_groups_the_narrower() {
    let roles = |id, priority, destination, disclosure| Rule {
        destination,
        disclosure,
        priority,
        ..matching(id, RuleType::Filter, "^role$")
    };
    let id = roles(1, 0, Destination::IdToken, Disclosure::OnRequest);
    let access = roles(2, 0, Destination::AccessToken, Disclosure::Always);
    let role = |rules: &[Rule]| {
        let role = one(rules, &ada(), "role");
        (role.destination, role.on_request, role.path.len())
    };
    assert_eq!(role(from_ref(&id)), (Destination::IdToken, true, 1));
    assert_eq!(role(&[id.clone(), access.clone()]), (Destination::IdTokenAndAccessToken, false, 2));
    let later = Rule { priority: 1, ..access };
    assert_eq!(role(&[id, later]), (Destination::None, true, 2));
}

#[test]
fn claims_that_become_equal_are_one() {
    let same = Rule {
        transform_target: Target::ClaimTypeAndValue,
        type_transformation_replacement: "seen".to_owned(),
        value_transformation_replacement: "yes".to_owned(),
        ..rule(1, RuleType::Transform)
    };
    let claims = [claim("a", "1"), claim("b", "2"), claim("b", "2"), foreign("c", "3")];
    let found = outcome(&[same], &claims).claims;
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].source, found[1].source), (Source::Platform, Source::IdentityProvider));
}

#[test]
fn protected_claims_can_neither_be_dropped_nor_made() {
    let becoming = Rule {
        type_transformation_replacement: "acr".to_owned(),
        destination: Destination::None,
        ..rule(1, RuleType::Transform)
    };
    let rules = [becoming, adding(2, "client_id", "root"), rule(3, RuleType::Remove)];
    let found = outcome(&rules, &ada()).claims;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].claim_type, "sub");
    assert_eq!(found[0].destination, Destination::IdTokenAndAccessToken);
    assert!(found[0].path.is_empty());
}

#[test]
fn every_bad_member_is_reported_with_its_rule() {
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
fn there_is_an_end_to_claims_and_their_texts() {
    let evaluate = |rules: &[Rule], claims: &[Claim]| {
        RuleSet::new(rules, &|| true).unwrap().evaluate(claims.to_vec(), &|| true)
    };
    let many: Vec<_> = (0..MAX_CLAIMS).map(|number| claim("n", &number.to_string())).collect();
    assert_eq!(evaluate(&[], &many).unwrap().claims.len(), MAX_CLAIMS);
    assert_eq!(evaluate(&[adding(1, "one", "more")], &many), Err(Exceeded::Claims));
    assert_eq!(evaluate(&[], &[&many[..], &many[..1]].concat()), Err(Exceeded::Claims));

    let long = "x".repeat(MAX_TEXT_BYTES);
    assert!(evaluate(&[], &[claim("long", &long)]).is_ok());
    assert_eq!(evaluate(&[], &[claim("long", &format!("{long}x"))]), Err(Exceeded::Text));
    let doubling = Rule {
        transform_target: Target::ClaimValue,
        value_transformation_replacement: "$0$0".to_owned(),
        ..rule(1, RuleType::Transform)
    };
    let refused = evaluate(&[doubling], &[claim("long", &long)]);
    assert_eq!(refused, Err(Exceeded::Rewriting(Uuid::from_u128(1))));
    let heavy: Vec<_> = (0..65).map(|number| claim(&number.to_string(), &long)).collect();
    assert_eq!(evaluate(&[], &heavy), Err(Exceeded::Total));
}

/// A rule whose pattern weighs more than 300,000.
pub(crate) fn heavy(number: u128) -> Rule {
    Rule { value_evaluation_rule: r"^\w{100}$".to_owned(), ..rule(number, RuleType::Filter) }
}

/// A6: the patterns of a rule set have one budget of memory and, as its claims, one of time.
#[test]
fn a_rule_set_has_an_end() {
    let few: Vec<Rule> = (1..=3).map(heavy).collect();
    let set = RuleSet::new(&few, &|| true).unwrap();
    let many: Vec<Rule> = (1..=60).map(heavy).collect();
    let refused = RuleSet::new(&many, &|| true).unwrap_err();
    let RuleSetError::Faults(faults) = refused else { panic!("{refused:?}") };
    assert!(faults[0].detail.contains("too much memory together"), "{faults:?}");
    let asked = Cell::new(0);
    let in_time = || asked.replace(asked.get() + 1) < 2;
    assert_eq!(RuleSet::new(&few, &in_time).unwrap_err(), RuleSetError::Time);
    assert_eq!(asked.get(), 3);
    assert_eq!(set.evaluate(vec![claim("name", "ada")], &|| false), Err(Exceeded::Time));
    let long = Claim { value: "a".repeat(60_000), ..claim("name", "") };
    let judged = RuleSet::new(&[Rule { filter_target: Target::ClaimValue, ..heavy(1) }], &|| true).unwrap();
    assert_eq!(judged.evaluate(vec![long], &|| true), Err(Exceeded::Matching(heavy(1).id)));
}

/// A6: rules that are found by a text, without a search, take time, too.
#[test]
fn the_clock_is_looked_at_while_rules_are_looked_up() {
    let claims: Vec<_> = (0..MAX_CLAIMS).map(|number| claim(&number.to_string(), "yes")).collect();
    let looking = |id: u128| Rule {
        filter_target: Target::ClaimValue,
        value_evaluation_rule: "^yes$".to_owned(),
        ..adding(id, "agreed", "true")
    };
    let rules: Vec<_> = (1..=100).map(looking).collect();
    let set = RuleSet::new(&rules, &|| true).unwrap();
    let looks = Cell::new(0);
    let go_on = |most: u32| looks.replace(looks.get() + 1) < most;
    assert_eq!(set.evaluate(claims[1..].to_vec(), &|| go_on(10_000)).unwrap().claims.len(), MAX_CLAIMS);
    assert!(looks.replace(0) > 400);
    assert_eq!(set.evaluate(claims, &|| go_on(100)), Err(Exceeded::Time));
    assert_eq!(looks.get(), 101);
}

/// A6: the paths of claims are bounded, too: each claim may pass many rules.
#[test]
fn the_rules_that_claims_pass_are_bounded() {
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
        assert_eq!(evaluate(21), Err(Exceeded::Paths));
    }
}

/// A6: a group of a rule's transformation weighs as much again as the whole pattern.
#[test]
fn groups_weigh() {
    let groups = format!("{}[ab]{{0,190000}}", "()".repeat(900));
    let filter = Rule { type_evaluation_rule: groups.clone(), ..rule(1, RuleType::Filter) };
    assert!(filter.weigh().is_ok());
    let transform = Rule { type_transformation_rule: groups, ..rule(1, RuleType::Transform) };
    let wrong = transform.weigh().unwrap_err();
    assert_eq!(wrong[0].0, Member::TypeTransformationRule);
}

/// The steps of claims: `rule type=value effect`.
fn steps(rules: &[Rule], claims: &[Claim]) -> Vec<String> {
    let (_, steps) = RuleSet::new(rules, &|| true).unwrap().trace(claims.to_vec(), &|| true).unwrap();
    let told = steps.into_iter().map(|step| {
        let effect = match step.effect {
            Effect::Passed => "passed".to_owned(),
            Effect::Changed(claim) => format!("{}={}", claim.claim_type, claim.value),
            Effect::Dropped => "dropped".to_owned(),
            Effect::Added => "added".to_owned(),
        };
        format!("{} {} {effect}", step.rule.as_u128(), step.claim.claim_type)
    });
    told.collect()
}

#[test]
fn each_step_is_told_where_it_is_asked_for() {
    let shout = Rule {
        priority: 1,
        type_transformation_replacement: "ROLE".to_owned(),
        ..matching(2, RuleType::Transform, "^role$")
    };
    let rules =
        [matching(1, RuleType::Remove, "^email$"), shout, Rule { priority: 2, ..adding(3, "new", "x") }];
    let told = ["1 email dropped", "1 email dropped", "1 role passed", "2 role ROLE=countess", "3 new added"];
    assert_eq!(steps(&rules, &ada()), told);
    assert_eq!(steps(&[], &ada()), <[&str; 0]>::default());
}

/// A claim that one rule of a group forwards was not dropped by another.
#[test]
fn rules_that_hold_a_claim_back_are_told_where_none_forwards_it() {
    let group = [matching(1, RuleType::Filter, "^role$"), matching(2, RuleType::Filter, "^email$")];
    let told = ["2 email passed", "2 email passed", "1 role passed"];
    assert_eq!(steps(&group, &ada()), told);
    let group = [matching(1, RuleType::Filter, "^role$"), matching(2, RuleType::Remove, "^role|email$")];
    let told = ["1 email dropped", "2 email dropped", "1 email dropped", "2 email dropped", "1 role passed"];
    assert_eq!(steps(&group, &ada()), told);
}

#[test]
fn steps_have_a_bound() {
    let claims: Vec<Claim> =
        (0..=crate::MAX_STEPS / 2).map(|number| claim("role", &number.to_string())).collect();
    let rules = [rule(1, RuleType::Filter), Rule { priority: 1, ..rule(2, RuleType::Filter) }];
    let set = RuleSet::new(&rules, &|| true).unwrap();
    assert_eq!(set.trace(claims.clone(), &|| true), Err(Exceeded::Steps));
    assert!(set.evaluate(claims, &|| true).is_ok());
}
