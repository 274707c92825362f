//! Second factors, enrolment and step-up.

use crate::{
    Acr, Choice, Choices, CodeKind, Enrolment, Event, Failure, Flow, InstanceFacts, InstanceKind, Method,
    NotAdmitted, PasskeyFacts, Request, Step,
    tests::{
        ALICE, EMAIL, MINUTE, NOON, PASSKEY, PROVIDER, SESSION, STORE, TENANT, TOTP, World, by_password,
        by_totp, flow, proof, proven, provider, request, table::done, tenant, usable, world,
    },
};

const BY_TOTP: Choice = Choice::Code { instance: TOTP, kind: CodeKind::Totp };
const BY_EMAIL: Choice = Choice::Code { instance: EMAIL, kind: CodeKind::Email };
const BY_RECOVERY: Choice = Choice::RecoveryCode { instance: TOTP };
const UNAVAILABLE: Step = Step::Refuse(NotAdmitted::SecondFactorUnavailable);

fn demanding(demanded: &[Acr]) -> Flow {
    Flow::new(Request { demanded: demanded.to_vec(), ..request() })
}

fn second_factor_choices(step: &Step) -> Vec<Choice> {
    let Step::SecondFactor(Choices { all, .. }) = step else { panic!("{step:?}") };
    all.clone()
}

fn with_passkey(mut world: World, verifies_user: bool, is_hardware: bool) -> World {
    world.person.passkey = Some(PasskeyFacts { verifies_user, is_hardware });
    world
}

fn alice_by(method: Method) -> World {
    let instance = if matches!(method, Method::External { .. }) { PROVIDER } else { STORE };
    let mut world = world().with_session(SESSION, ALICE, vec![proof(ALICE, instance, method)]);
    world.tenants[0].instances.push(provider());
    world
}

#[test]
fn a_required_second_factor_is_proven() {
    let world = world().with_alice().requiring_totp(true);
    assert_eq!(second_factor_choices(&world.step(&flow(), NOON)), [BY_TOTP]);
    let flow = world.after(&flow(), by_totp(ALICE));
    let step = world.step(&flow, NOON.plus(MINUTE));
    assert_eq!((done(&step).acr, done(&step).session), (Acr::Mfa, Some(SESSION)));
    assert_eq!(done(&step).auth_time, NOON.plus(-MINUTE), "a second factor is no new sign-in");
    assert_eq!(done(&step).proofs.len(), 2);
}

#[test]
fn any_enrolled_factor_can_be_chosen() {
    let mut world = with_passkey(world().with_alice().requiring_totp(true), true, false);
    world.person.second_factors.usable.push(usable(EMAIL, CodeKind::Email, true));
    world.person.second_factors.has_recovery_code = true;
    let all = [BY_TOTP, BY_EMAIL, Choice::Passkey, BY_RECOVERY];
    assert_eq!(second_factor_choices(&world.step(&flow(), NOON)), all);
    for choice in all {
        let flow = world.after(&flow(), Event::OtherFactor(choice));
        let Step::SecondFactor(choices) = world.step(&flow, NOON) else { panic!() };
        assert_eq!(choices.chosen, choice);
    }
    for (instance, method) in
        [(TOTP, Method::Totp), (EMAIL, Method::EmailCode), (STORE, PASSKEY), (TOTP, Method::RecoveryCode)]
    {
        let flow = world.after(&flow(), Event::FactorProven(proven(ALICE, instance, method)));
        assert!(matches!(world.step(&flow, NOON), Step::Done(_)), "{method:?}");
    }
}

#[test]
fn a_person_without_a_factor_enrols_where_allowed() {
    for (enrolment, first, may_enrol) in [
        (Enrolment::Closed, Method::AccessPass, false),
        (Enrolment::AtSignIn, Method::Password, true),
        (Enrolment::AfterAccessPass, Method::Password, false),
        (Enrolment::AfterAccessPass, Method::AccessPass, true),
    ] {
        let mut world = alice_by(first).requiring_totp(false);
        world.person.second_factors.enrolment = enrolment;
        let step = world.step(&flow(), NOON);
        assert_eq!(matches!(step, Step::EnrolFactor(_)), may_enrol, "{enrolment:?}");
        if may_enrol {
            let enrolled = Event::FactorEnrolled(proven(ALICE, TOTP, Method::Totp));
            let flow = world.after(&flow(), enrolled);
            assert_eq!(done(&world.step(&flow, NOON)).acr, Acr::Mfa);
        } else {
            assert_eq!(step, UNAVAILABLE);
        }
    }
}

#[test]
fn without_a_usable_instance_sign_in_is_refused() {
    let mut world = world().with_alice().requiring_totp(true);
    let flow = world.after(&flow(), by_totp(ALICE));
    world.person.second_factors.usable.clear();
    world.person.second_factors.is_remembered = true;
    assert_eq!(world.step(&flow, NOON), UNAVAILABLE);
}

#[test]
fn a_passkey_counts_for_both_factors_while_the_tenant_allows_it() {
    let mut world = alice_by(PASSKEY).requiring_totp(true);
    assert_eq!(done(&world.step(&flow(), NOON)).acr, Acr::Phr);
    world.person.second_factors.does_passkey_satisfy = false;
    assert_eq!(second_factor_choices(&world.step(&flow(), NOON)), [BY_TOTP]);
    let unverified = alice_by(Method::Passkey { user_verified: false, hardware: true }).requiring_totp(true);
    assert_eq!(second_factor_choices(&unverified.step(&flow(), NOON)), [BY_TOTP]);
}

#[test]
fn a_provider_counts_for_both_factors_while_it_is_trusted() {
    let mut world = alice_by(Method::External { second_factor: true, auth_time: None }).requiring_totp(true);
    assert_eq!(done(&world.step(&flow(), NOON)).acr, Acr::Mfa);
    let untrusted = InstanceFacts { kind: InstanceKind::External { believed: false }, ..provider() };
    world.tenants = vec![tenant(TENANT, &[untrusted])];
    assert_eq!(second_factor_choices(&world.step(&flow(), NOON)), [BY_TOTP]);
    let world = alice_by(Method::External { second_factor: false, auth_time: None }).requiring_totp(true);
    assert_eq!(second_factor_choices(&world.step(&flow(), NOON)), [BY_TOTP]);
}

#[test]
fn a_proof_that_does_not_match_its_instance_does_not_count() {
    for (instance, method) in
        [(STORE, Method::External { second_factor: true, auth_time: None }), (PROVIDER, PASSKEY)]
    {
        let mut world = world().with_session(SESSION, ALICE, vec![proof(ALICE, instance, method)]);
        world.tenants[0].instances.push(provider());
        assert!(matches!(world.step(&flow(), NOON), Step::FirstFactor(_)), "{method:?}");
    }
}

#[test]
fn a_remembered_browser_is_exempt_unless_acr_demands_a_second_factor() {
    let mut world = world().with_alice().requiring_totp(true);
    world.person.second_factors.is_remembered = true;
    assert_eq!(done(&world.step(&flow(), NOON)).acr, Acr::Sfa);
    assert_eq!(done(&world.step(&demanding(&[Acr::Sfa]), NOON)).acr, Acr::Sfa);
    assert_eq!(second_factor_choices(&world.step(&demanding(&[Acr::Mfa]), NOON)), [BY_TOTP]);

    let mut world = alice_by(PASSKEY).requiring_totp(true);
    world.person.second_factors.does_passkey_satisfy = false;
    world.person.second_factors.is_remembered = true;
    assert_eq!(done(&world.step(&flow(), NOON)).acr, Acr::Phr);
    assert_eq!(second_factor_choices(&world.step(&demanding(&[Acr::Phr]), NOON)), [BY_TOTP]);
}

#[test]
fn any_demanded_class_suffices() {
    let world = world().with_alice();
    assert_eq!(done(&world.step(&demanding(&[Acr::Phrh, Acr::Sfa]), NOON)).acr, Acr::Sfa);
    let world = alice_by(PASSKEY);
    assert_eq!(done(&world.step(&demanding(&[Acr::Mfa]), NOON)).acr, Acr::Phr, "a higher one holds it");
}

#[test]
fn acr_alone_can_demand_a_second_factor() {
    let mut world = world().with_alice().requiring_totp(true);
    world.person.second_factors.are_required = false;
    assert_eq!(second_factor_choices(&world.step(&demanding(&[Acr::Mfa]), NOON)), [BY_TOTP]);
    let flow = world.after(&demanding(&[Acr::Mfa]), by_totp(ALICE));
    assert_eq!(done(&world.step(&flow, NOON)).acr, Acr::Mfa);
    world.person.second_factors.usable = vec![usable(TOTP, CodeKind::Totp, false)];
    let unmet = Step::Fail(Failure::UnmetAuthenticationRequirements);
    assert_eq!(world.step(&demanding(&[Acr::Mfa]), NOON), unmet);
    world.person.second_factors.enrolment = Enrolment::AtSignIn;
    assert!(matches!(world.step(&demanding(&[Acr::Mfa]), NOON), Step::EnrolFactor(_)));
}

#[test]
fn a_passkey_steps_up() {
    let world = world().with_alice();
    for (demanded, passkey, is_met) in [
        (Acr::Phr, None, false),
        (Acr::Phr, Some((false, true)), false),
        (Acr::Phr, Some((true, false)), true),
        (Acr::Phrh, Some((true, false)), false),
        (Acr::Phrh, Some((true, true)), true),
    ] {
        let mut world = world.clone();
        if let Some((verifies_user, is_hardware)) = passkey {
            world = with_passkey(world, verifies_user, is_hardware);
        }
        let flow = demanding(&[demanded]);
        let step = world.step(&flow, NOON);
        if !is_met {
            assert_eq!(step, Step::Fail(Failure::UnmetAuthenticationRequirements), "{demanded:?}");
            continue;
        }
        let Step::StepUp { to, choices } = step else { panic!("{step:?}") };
        assert_eq!((to, choices.all), (demanded, vec![Choice::Passkey]));
        let method = world.person.passkey.unwrap().method();
        let flow = world.after(&flow, Event::FactorProven(proven(ALICE, STORE, method)));
        let step = world.step(&flow, NOON.plus(MINUTE));
        assert_eq!((done(&step).acr, done(&step).auth_time), (demanded, NOON));
        assert_eq!(done(&step).session, Some(SESSION));
    }
}

#[test]
fn two_factors_of_one_kind_need_a_third_to_step_up() {
    let unverified = Method::Passkey { user_verified: false, hardware: false };
    let world = with_passkey(alice_by(unverified).requiring_totp(true), true, false);
    let flow = demanding(&[Acr::Mfa]);
    let flow = world.after(&flow, by_totp(ALICE));
    assert!(matches!(world.step(&flow, NOON), Step::StepUp { to: Acr::Mfa, .. }));
}

#[test]
fn the_second_factor_of_the_persons_session_counts() {
    let fresh = world().requiring_totp(true);
    let flow = fresh.after(&flow(), by_password(ALICE));
    let proofs = vec![proof(ALICE, STORE, Method::Password), proof(ALICE, TOTP, Method::Totp)];
    let world = fresh.with_session(SESSION, ALICE, proofs);
    assert_eq!(done(&world.step(&flow, NOON)).session, Some(SESSION), "it was made in another tab");
    // but not where everything must be proven again
    let request = Request {
        prompt: crate::Prompt::Pages { login: true, consent: false, select_account: false },
        ..request()
    };
    let flow = world.after(&Flow::new(request), by_password(ALICE));
    assert_eq!(second_factor_choices(&world.step(&flow, NOON)), [BY_TOTP]);
}
