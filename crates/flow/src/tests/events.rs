//! Events that do not belong to the current step are refused.

use uuid::Uuid;

use crate::{
    Action, Choice, Consent, DueAction, Event, EventRefusal, Flow, Method, NotAdmitted, Request, Step,
    Urgency,
    tests::{
        ALICE, BOB, EMAIL, NOON, OTHER_SESSION, OTHER_TENANT, PROVIDER, SESSION, STORE, TENANT, TOTP, World,
        by_password, by_totp, flow, proven, request, store, table::granting, tenant, world,
    },
};

/// A world and a flow for each step, with the events that are accepted there.
fn steps() -> Vec<(&'static str, World, Flow, Vec<&'static str>)> {
    let (plain, alice) = (world(), world().with_alice());
    let mut tenants = world();
    tenants.tenants.push(tenant(OTHER_TENANT, &[store()]));
    let mut refused = alice.clone();
    refused.person.refused = Some(NotAdmitted::Restricted);
    let mut enrolling = alice.clone().requiring_totp(false);
    enrolling.person.second_factors.enrolment = crate::Enrolment::AtSignIn;
    let acting = |urgency| {
        let mut world = alice.clone();
        world.person.due = vec![DueAction { action: Action::Terms, urgency }];
        world
    };
    let mut consenting = alice.clone();
    consenting.person.consent = Consent::Systematic;
    let native = Flow::new(Request { is_native: true, ..request() });
    let cancelled = plain.after(&flow(), Event::Cancelled);
    vec![
        ("Fail", alice.clone(), cancelled, vec![]),
        ("Tenant", tenants, flow(), vec!["Cancelled", "TenantChosen"]),
        ("Account", alice.clone().with_bob(), flow(), vec!["Cancelled", "SessionChosen", "OtherAccount"]),
        ("FirstFactor", plain, flow(), vec!["Cancelled", "FirstFactorProven"]),
        ("Refuse", refused, flow(), vec!["Cancelled", "OtherAccount", "Back"]),
        (
            "SecondFactor",
            alice.clone().requiring_totp(true),
            flow(),
            vec!["Cancelled", "FactorProven", "OtherFactor"],
        ),
        ("EnrolFactor", enrolling, flow(), vec!["Cancelled", "FactorEnrolled", "OtherFactor"]),
        ("Action", acting(Urgency::Required), flow(), vec!["Cancelled", "ActionDone"]),
        ("Consent", consenting, flow(), vec!["Cancelled", "ConsentGiven", "ConsentDenied"]),
        ("Touch", alice.clone(), native, vec!["Cancelled", "Continued"]),
        ("Done", alice, flow(), vec![]),
    ]
}

fn events() -> Vec<Event> {
    vec![
        Event::Cancelled,
        Event::TenantChosen(TENANT),
        Event::SessionChosen(SESSION),
        Event::OtherAccount,
        by_password(ALICE),
        Event::Back,
        by_totp(ALICE),
        Event::FactorEnrolled(proven(ALICE, TOTP, Method::Totp)),
        Event::OtherFactor(Choice::Code { instance: TOTP, kind: crate::CodeKind::Totp }),
        Event::ActionDone(Action::Terms),
        Event::PasswordSet(proven(ALICE, STORE, Method::Password)),
        Event::Deferred(Action::Terms),
        granting(&[]),
        Event::ConsentDenied,
        Event::Continued,
    ]
}

fn name(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").split(['(', ' ']).next().unwrap_or_default().to_owned()
}

/// Every combination of step and event.
#[test]
fn each_step_accepts_only_its_events() {
    for (step, world, flow, accepted) in steps() {
        let due = world.due(&flow, NOON);
        assert_eq!(name(due.step()), step);
        for event in events() {
            let is_accepted = accepted.contains(&name(&event).as_str());
            let applied = due.apply(event.clone());
            assert_eq!(applied.is_ok(), is_accepted, "{event:?} at {step}: {applied:?}");
        }
    }
}

#[test]
fn choices_that_were_not_offered_are_refused() {
    let refused = |world: &World, flow: &Flow, event: Event| world.due(flow, NOON).apply(event).unwrap_err();
    let mut several = world();
    several.tenants.push(tenant(OTHER_TENANT, &[store()]));
    assert_eq!(refused(&several, &flow(), Event::TenantChosen(Uuid::nil())), EventRefusal::NotOffered);

    let mut sessions = world().with_alice().with_bob();
    assert_eq!(refused(&sessions, &flow(), Event::SessionChosen(Uuid::nil())), EventRefusal::NotOffered);
    sessions.sessions[1].tenant = OTHER_TENANT;
    let choosing = Flow::new(Request {
        prompt: crate::Prompt::Pages { login: false, consent: false, select_account: true },
        ..request()
    });
    let of_other_tenant = Event::SessionChosen(OTHER_SESSION);
    assert_eq!(refused(&sessions, &choosing, of_other_tenant), EventRefusal::NotOffered);

    for (instance, method) in [
        (PROVIDER, Method::Password),
        (STORE, Method::External { second_factor: true, auth_time: None }),
        (STORE, Method::Totp),
    ] {
        let event = Event::FirstFactorProven(proven(ALICE, instance, method));
        assert_eq!(refused(&world(), &flow(), event), EventRefusal::NotOffered, "{method:?}");
    }

    let totp = world().with_alice().requiring_totp(true);
    for (instance, method) in [
        (EMAIL, Method::Totp),
        (TOTP, Method::EmailCode),
        (TOTP, Method::RecoveryCode),
        (STORE, Method::Password),
        (STORE, crate::tests::PASSKEY),
    ] {
        let event = Event::FactorProven(proven(ALICE, instance, method));
        assert_eq!(refused(&totp, &flow(), event), EventRefusal::NotOffered, "{method:?}");
    }
    assert_eq!(refused(&totp, &flow(), by_totp(BOB)), EventRefusal::OtherPerson);
    assert_eq!(refused(&totp, &flow(), Event::OtherFactor(Choice::Passkey)), EventRefusal::NotOffered);
}

#[test]
fn a_step_up_accepts_a_factor_that_reaches_the_class() {
    let mut world = world().with_alice().requiring_totp(true);
    world.person.second_factors.are_required = false;
    world.person.passkey = Some(crate::PasskeyFacts { verifies_user: true, is_hardware: false });
    let due = world.due(&Flow::new(Request { demanded: vec![crate::Acr::Phr], ..request() }), NOON);
    assert_eq!(name(due.step()), "StepUp");
    let passkey = |person| proven(person, STORE, crate::tests::PASSKEY);
    assert!(due.apply(Event::FactorProven(passkey(ALICE))).is_ok());
    assert_eq!(due.apply(Event::FactorProven(passkey(BOB))), Err(EventRefusal::OtherPerson));
    assert_eq!(due.apply(Event::FactorEnrolled(passkey(ALICE))), Err(EventRefusal::NotDue));
    assert_eq!(due.apply(by_totp(ALICE)), Err(EventRefusal::NotOffered));
    assert_eq!(due.apply(by_password(ALICE)), Err(EventRefusal::NotDue));
}

#[test]
fn a_required_action_cannot_be_deferred() {
    let mut world = world().with_alice();
    world.person.due = vec![DueAction { action: Action::Terms, urgency: Urgency::Required }];
    let due = world.due(&flow(), NOON);
    assert_eq!(due.apply(Event::Deferred(Action::Terms)), Err(EventRefusal::NotOffered));
    assert_eq!(due.apply(Event::ActionDone(Action::Email)), Err(EventRefusal::NotDue));
}

/// A password is set where one is due, by the person who is signing in, and is proven thereby.
#[test]
fn a_due_password_is_set_and_proven() {
    let mut world = world().with_alice();
    world.person.due = vec![DueAction { action: Action::Password, urgency: Urgency::Required }];
    let due = world.due(&flow(), NOON);
    let with_password =
        |person, instance, method| due.apply(Event::PasswordSet(proven(person, instance, method)));
    assert_eq!(with_password(BOB, STORE, Method::Password), Err(EventRefusal::OtherPerson));
    assert_eq!(with_password(ALICE, PROVIDER, Method::Password), Err(EventRefusal::NotOffered));
    assert_eq!(with_password(ALICE, STORE, Method::AccessPass), Err(EventRefusal::NotOffered));
    let flow = with_password(ALICE, STORE, Method::Password).unwrap();
    assert_eq!(flow.proofs().last().map(|proof| (proof.method, proof.at)), Some((Method::Password, NOON)));
}

#[test]
fn only_requested_scopes_are_granted_and_openid_always() {
    let mut world = world().with_alice();
    world.person.consent = Consent::Systematic;
    let requested = ["openid", "email"].map(str::to_owned).to_vec();
    let flow = Flow::new(Request { requested, ..request() });
    let due = world.due(&flow, NOON);
    assert_eq!(due.step(), &Step::Consent);
    assert!(due.apply(granting(&["openid"])).is_ok());
    assert!(due.apply(granting(&["openid", "email"])).is_ok());
    assert_eq!(due.apply(granting(&["openid", "profile"])), Err(EventRefusal::NotOffered));
    assert_eq!(due.apply(granting(&["email"])), Err(EventRefusal::NotOffered));
}

/// A session that starts in another tab does not take over a flow in which the person has acted.
#[test]
fn a_flow_stays_with_its_session() {
    let totp = world().with_alice().requiring_totp(true);
    let flow = totp.after(&flow(), by_totp(ALICE));
    let step = totp.with_bob().step(&flow, NOON);
    assert!(matches!(&step, Step::Done(signed_in) if signed_in.person == ALICE), "{step:?}");
}
