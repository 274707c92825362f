//! The table of steps of a sign-in, row by row, except those about second factors.

use chancery_record::Timestamp;
use uuid::Uuid;

use crate::{
    Acr, Action, Consent, DueAction, Event, Failure, FirstFactor, Flow, Granted, InstanceFacts, Method,
    NotAdmitted, Prompt, Request, SignedIn, Step, Urgency,
    tests::{
        ALICE, BOB, MINUTE, NOON, OTHER_SESSION, OTHER_TENANT, PROVIDER, SESSION, STORE, TENANT, World,
        by_password, flow, proof, proven, provider, request, store, tenant, world,
    },
};

pub fn done(step: &Step) -> &SignedIn {
    let Step::Done(signed_in) = step else { panic!("{step:?}") };
    signed_in
}

pub fn first_factor(step: &Step) -> &FirstFactor {
    let Step::FirstFactor(page) = step else { panic!("{step:?}") };
    page
}

fn flow_of(request: Request) -> Flow {
    Flow::new(request)
}

fn prompting(login: bool, consent: bool, select_account: bool) -> Flow {
    flow_of(Request { prompt: Prompt::Pages { login, consent, select_account }, ..request() })
}

fn account(sessions: &[Uuid]) -> Step {
    Step::Account { tenant: TENANT, sessions: sessions.to_vec() }
}

#[test]
fn a_password_signs_in() {
    let world = world();
    assert_eq!(first_factor(&world.step(&flow(), NOON)).offered, [store()]);
    let flow = world.after(&flow(), by_password(ALICE));
    let step = world.step(&flow, NOON.plus(MINUTE));
    let signed_in = done(&step);
    assert_eq!((signed_in.person, signed_in.tenant, signed_in.instance), (ALICE, TENANT, STORE));
    assert_eq!((signed_in.acr, signed_in.amr.as_slice()), (Acr::Sfa, &["pwd"][..]));
    assert_eq!((signed_in.auth_time, signed_in.session), (NOON, None));
    assert_eq!(signed_in.proofs, flow.proofs());
}

#[test]
fn a_session_signs_in() {
    let step = world().with_alice().step(&flow(), NOON);
    assert_eq!(done(&step).session, Some(SESSION));
    assert_eq!(done(&step).auth_time, NOON.plus(-MINUTE));
}

#[test]
fn a_flow_expires_after_30_minutes() {
    let world = world().with_alice();
    assert!(!matches!(world.step(&flow(), NOON.plus(30 * MINUTE - 1)), Step::Fail(_)));
    assert_eq!(world.step(&flow(), NOON.plus(30 * MINUTE)), Step::Fail(Failure::Over));
}

#[test]
fn a_cancelled_flow_fails() {
    let flow = world().after(&flow(), Event::Cancelled);
    assert_eq!(world().with_alice().step(&flow, NOON), Step::Fail(Failure::Cancelled));
}

#[test]
fn the_tenant_is_determined_by_precedence() {
    let mut world = world();
    world.tenants.push(tenant(OTHER_TENANT, &[store()]));
    let tenant_of = |world: &World, flow: &Flow| first_factor(&world.step(flow, NOON)).tenant;
    let by_choice = Step::Tenant(vec![TENANT, OTHER_TENANT]);
    assert_eq!(world.step(&flow(), NOON), by_choice);

    let chosen = world.after(&flow(), Event::TenantChosen(OTHER_TENANT));
    assert_eq!(tenant_of(&world, &chosen), OTHER_TENANT);
    world.in_range = vec![OTHER_TENANT];
    assert_eq!(tenant_of(&world, &flow()), OTHER_TENANT);
    world.in_range = vec![TENANT, OTHER_TENANT];
    assert_eq!(world.step(&flow(), NOON), by_choice);

    // a session precedes a range, a choice precedes a session, the request precedes all
    world.in_range = vec![OTHER_TENANT];
    let mut world = world.with_alice();
    assert_eq!(done(&world.step(&flow(), NOON)).tenant, TENANT);
    assert_eq!(tenant_of(&world, &chosen), OTHER_TENANT);
    let named = Flow { request: Request { tenant: Some(TENANT), ..request() }, ..chosen.clone() };
    assert_eq!(done(&world.step(&named, NOON)).tenant, TENANT);

    // one that no longer exists is not replaced
    world.tenants.pop();
    assert_eq!(world.step(&chosen, NOON), Step::Fail(Failure::NotServed));
    world.tenants.clear();
    assert_eq!(world.step(&flow(), NOON), Step::Fail(Failure::NotServed));
}

#[test]
fn a_determined_tenant_stays() {
    let mut world = world();
    let flow = world.after(&flow(), by_password(ALICE));
    world.tenants.insert(0, tenant(OTHER_TENANT, &[store()]));
    world.in_range = vec![OTHER_TENANT];
    assert_eq!(done(&world.step(&flow, NOON)).tenant, TENANT);
}

#[test]
fn among_several_sessions_one_is_chosen() {
    let world = world().with_alice().with_bob();
    assert_eq!(world.step(&flow(), NOON), account(&[SESSION, OTHER_SESSION]));
    let chosen = world.after(&flow(), Event::SessionChosen(OTHER_SESSION));
    assert_eq!(done(&world.step(&chosen, NOON)).person, BOB);
    let other = world.after(&flow(), Event::OtherAccount);
    assert_eq!(first_factor(&world.step(&other, NOON)).person, None);
}

#[test]
fn a_chosen_session_is_not_replaced_by_another_persons() {
    let mut world = world().with_alice().with_bob();
    let chosen = world.after(&flow(), Event::SessionChosen(OTHER_SESSION));
    world.sessions.pop();
    assert_eq!(first_factor(&world.step(&chosen, NOON)).person, None);
}

#[test]
fn select_account_shows_even_one_session() {
    let flow = prompting(false, false, true);
    assert!(matches!(world().step(&flow, NOON), Step::FirstFactor(_)), "nothing to choose from");
    let world = world().with_alice();
    assert_eq!(world.step(&flow, NOON), account(&[SESSION]));
    let chosen = world.after(&flow, Event::SessionChosen(SESSION));
    assert_eq!(done(&world.step(&chosen, NOON)).person, ALICE);
}

#[test]
fn select_account_and_login_choose_the_person_to_authenticate_again() {
    let world = world().with_alice();
    let chosen = world.after(&prompting(true, false, true), Event::SessionChosen(SESSION));
    assert_eq!(first_factor(&world.step(&chosen, NOON)).person, Some(ALICE));
}

#[test]
fn a_login_hint_selects_among_sessions_and_excludes_none() {
    let hinted = flow_of(Request { has_login_hint: true, ..request() });
    assert_eq!(done(&world().with_alice().step(&hinted, NOON)).person, ALICE);
    let mut world = world().with_alice().with_bob();
    assert_eq!(world.step(&hinted, NOON), account(&[SESSION, OTHER_SESSION]));
    world.sessions[1].fits_login_hint = true;
    assert_eq!(done(&world.step(&hinted, NOON)).person, BOB);
}

#[test]
fn login_is_proven_in_this_flow() {
    let world = world().with_alice();
    let flow = prompting(true, false, false);
    assert!(matches!(world.step(&flow, NOON), Step::FirstFactor(_)));
    let flow = world.after(&flow, by_password(ALICE));
    assert_eq!(done(&world.step(&flow, NOON)).auth_time, NOON);
}

#[test]
fn max_age_counts_from_the_last_first_factor() {
    let world = world().with_alice();
    let aged = |seconds| flow_of(Request { max_age: Some(seconds), ..request() });
    assert_eq!(done(&world.step(&aged(60), NOON)).person, ALICE);
    assert!(matches!(world.step(&aged(60), NOON.plus(1)), Step::FirstFactor(_)));
    assert_eq!(done(&world.step(&aged(u64::MAX), NOON)).person, ALICE);

    let mut renewed = world.clone();
    renewed.sessions[0].proofs.push(crate::Proof { at: NOON, ..proof(ALICE, STORE, Method::Password) });
    assert_eq!(done(&renewed.step(&aged(60), NOON.plus(MINUTE))).auth_time, NOON);

    // a provider that does not state when the person authenticated there may have done so long before
    let mut federated = world.clone();
    federated.sessions[0].proofs[0].method = Method::External { second_factor: false, auth_time: None };
    federated.sessions[0].proofs[0].instance = PROVIDER;
    federated.sessions[0].proofs.truncate(1);
    let undated = federated.step(&aged(u64::MAX), NOON);
    assert!(matches!(undated, Step::FirstFactor(_)), "{undated:?}");

    // a proof in the flow is later than the request, regardless of the time that the pages take
    let flow = world.after(&aged(0), by_password(ALICE));
    assert_eq!(done(&world.step(&flow, NOON.plus(MINUTE))).auth_time, NOON);
}

#[test]
fn only_the_hinted_person_can_sign_in() {
    let world = world().with_alice();
    let hinted = flow_of(Request { hinted_person: Some(BOB), ..request() });
    assert_eq!(first_factor(&world.step(&hinted, NOON)).person, Some(BOB));
    let right = world.after(&hinted, by_password(BOB));
    assert_eq!(done(&world.step(&right, NOON)).person, BOB);
    let wrong = world.after(&hinted, by_password(ALICE));
    assert_eq!(world.step(&wrong, NOON), Step::Fail(Failure::LoginRequired));
}

#[test]
fn only_offered_instances_count() {
    let mut world = world().with_alice();
    world.tenants = vec![tenant(TENANT, &[InstanceFacts { is_hidden: true, ..store() }, provider()])];
    assert_eq!(first_factor(&world.step(&flow(), NOON)).offered, [provider()]);
    // a hidden one for a request that names it
    let named = flow_of(Request { instance: Some(STORE), ..request() });
    assert_eq!(done(&world.step(&named, NOON)).person, ALICE);
    // removing one makes no other available
    world.tenants = vec![tenant(TENANT, &[provider()])];
    assert_eq!(first_factor(&world.step(&named, NOON)).offered, []);
    world.tenants = vec![tenant(TENANT, &[])];
    assert_eq!(first_factor(&world.step(&flow(), NOON)).offered, []);
}

#[test]
fn a_removed_instance_no_longer_counts_in_a_flow_in_progress() {
    let mut before = world().with_bob();
    before.sessions.clear();
    let flow = before.after(&flow(), by_password(ALICE));
    let mut world = world().with_session(SESSION, BOB, vec![proof(BOB, PROVIDER, FED)]);
    world.tenants = vec![tenant(TENANT, &[provider()])];
    assert!(matches!(world.step(&flow, NOON), Step::FirstFactor(_)), "nor does another person's session");
}

const FED: Method = Method::External { second_factor: false, auth_time: None };

#[test]
fn a_single_external_instance_is_redirected_to_at_once() {
    let mut world = world();
    world.tenants = vec![tenant(TENANT, &[provider()])];
    let at_once = |flow: &Flow, world: &World| first_factor(&world.step(flow, NOON)).at_once;
    assert_eq!(at_once(&flow(), &world), Some(PROVIDER));
    assert_eq!(at_once(&prompting(true, false, false), &world), None);
    assert_eq!(at_once(&prompting(false, true, false), &world), None);
    assert_eq!(at_once(&flow_of(Request { after_sign_out: true, ..request() }), &world), None);
    assert_eq!(at_once(&Flow { is_other_account: true, ..flow() }, &world), None);
    world.tenants = vec![tenant(TENANT, &[provider(), store()])];
    assert_eq!(at_once(&flow(), &world), None);
    world.tenants = vec![tenant(TENANT, &[store()])];
    assert_eq!(at_once(&flow(), &world), None);
}

#[test]
fn a_person_not_admitted_returns_or_uses_another_account() {
    let mut world = world().with_alice();
    world.person.refused = Some(NotAdmitted::Restricted);
    assert_eq!(world.step(&flow(), NOON), Step::Refuse(NotAdmitted::Restricted));
    let back = world.after(&flow(), Event::Back);
    let other = world.after(&flow(), Event::OtherAccount);
    world.person.refused = None;
    assert_eq!(world.step(&back, NOON), Step::Fail(Failure::NotAdmitted(NotAdmitted::Restricted)));
    assert_eq!(first_factor(&world.step(&other, NOON)).person, None);
    let bob = world.after(&other, by_password(BOB));
    assert_eq!(done(&world.step(&bob, NOON)).person, BOB);
}

#[test]
fn another_account_starts_over() {
    let mut world = world();
    let alice = world.after(&flow(), by_password(ALICE));
    world.person.refused = Some(NotAdmitted::Account);
    let other = world.after(&alice, Event::OtherAccount);
    world.person.refused = None;
    assert_eq!(other.proofs(), alice.proofs(), "no proof is taken away");
    assert!(matches!(world.step(&other, NOON), Step::FirstFactor(_)), "none counts");
}

fn due(action: Action, urgency: Urgency) -> DueAction {
    DueAction { action, urgency }
}

#[test]
fn actions_are_due_in_their_order() {
    use Action::{Email, Passkey, Password, Questionnaire, Terms};
    let mut world = world();
    let flow = world.after(&flow(), by_password(ALICE));
    world.person.due = [Passkey, Terms, Questionnaire, Email, Password]
        .map(|action| due(action, if action == Passkey { Urgency::Offered } else { Urgency::Required }))
        .to_vec();
    for action in [Password, Email, Questionnaire, Terms, Passkey] {
        let Step::Action(current) = world.step(&flow, NOON) else { panic!("{action:?}") };
        assert_eq!(current.action, action);
        let done = world.after(&flow, Event::ActionDone(action));
        assert_eq!(world.step(&done, NOON), Step::Action(current), "it counts once the facts say so");
        world.person.due.retain(|due| due.action != action);
    }
    assert!(matches!(world.step(&flow, NOON), Step::Done(_)));
}

#[test]
fn an_offer_can_be_deferred_and_needs_a_proof_in_this_flow() {
    for action in [Action::Questionnaire, Action::Passkey] {
        let mut world = world().with_alice();
        world.person.due = vec![due(action, Urgency::Offered)];
        assert!(matches!(world.step(&flow(), NOON), Step::Done(_)), "{action:?}");
        let flow = world.after(&prompting(true, false, false), by_password(ALICE));
        assert!(matches!(world.step(&flow, NOON), Step::Action(_)), "{action:?}");
        let flow = world.after(&flow, Event::Deferred(action));
        assert!(matches!(world.step(&flow, NOON), Step::Done(_)), "{action:?}");
        // it became required meanwhile
        world.person.due = vec![due(action, Urgency::Required)];
        assert!(matches!(world.step(&flow, NOON), Step::Action(_)), "{action:?}");
    }
}

/// Questions that must be answered precede deferrable ones, and deferrable ones delay nothing else.
#[test]
fn required_questions_are_asked_of_a_session_too() {
    let mut world = world().with_alice();
    for (urgency, is_requested) in [(Urgency::Required, true), (Urgency::Offered, false)] {
        world.person.due = vec![due(Action::Questionnaire, urgency), due(Action::Terms, Urgency::Required)];
        let Step::Action(current) = world.step(&flow(), NOON) else { panic!("{urgency:?}") };
        assert_eq!(current.action == Action::Questionnaire, is_requested, "{urgency:?}");
    }
}

fn consent_of(consent: Consent, flow: &Flow) -> Step {
    let mut world = world().with_alice();
    world.person.consent = consent;
    world.step(flow, NOON)
}

#[test]
fn consent_is_requested_by_mode_and_prompt() {
    let (plain, prompted) = (flow(), prompting(false, true, false));
    let failed = Step::Fail(Failure::ConsentRequired);
    for (consent, is_requested, is_requested_with_prompt) in [
        (Consent::Implicit, false, false),
        (Consent::Explicit { is_covered: true }, false, true),
        (Consent::Explicit { is_covered: false }, true, true),
        (Consent::Systematic, true, true),
        (Consent::External { is_covered: true }, false, false),
    ] {
        for (flow, is_requested) in [(&plain, is_requested), (&prompted, is_requested_with_prompt)] {
            let step = consent_of(consent, flow);
            assert_eq!(step == Step::Consent, is_requested, "{consent:?}");
            assert_eq!(matches!(step, Step::Done(_)), !is_requested, "{consent:?}");
        }
    }
    assert_eq!(consent_of(Consent::External { is_covered: false }, &plain), failed);
    assert_eq!(consent_of(Consent::External { is_covered: false }, &prompted), failed);
}

pub fn granting(words: &[&str]) -> Event {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Event::ConsentGiven(Granted { words, is_remembered: false })
}

#[test]
fn consent_is_given_once_by_one_person() {
    let mut world = world().with_alice();
    world.person.consent = Consent::Systematic;
    let requested = ["openid", "email"].map(str::to_owned).to_vec();
    let flow = flow_of(Request { requested, ..request() });
    let given = world.after(&flow, granting(&["openid"]));
    let step = world.step(&given, NOON);
    let granted = done(&step).granted.as_ref().unwrap();
    assert_eq!(granted.words.iter().collect::<Vec<_>>(), ["openid"]);

    world.person.refused = Some(NotAdmitted::Account);
    let other = world.after(&given, Event::OtherAccount);
    world.person.refused = None;
    let bob = world.after(&other, by_password(BOB));
    assert_eq!(world.step(&bob, NOON), Step::Consent);
}

#[test]
fn denied_consent_fails() {
    let mut world = world().with_alice();
    world.person.consent = Consent::Systematic;
    let denied = world.after(&flow(), Event::ConsentDenied);
    world.person.consent = Consent::Implicit;
    assert_eq!(world.step(&denied, NOON), Step::Fail(Failure::Denied));
}

#[test]
fn a_native_app_is_opened_by_a_click() {
    let native = flow_of(Request { is_native: true, ..request() });
    let mut world = world().with_alice();
    assert_eq!(world.step(&native, NOON), Step::Touch);
    let continued = world.after(&native, Event::Continued);
    assert!(matches!(world.step(&continued, NOON), Step::Done(_)));

    world.sessions.clear();
    let with_password = world.after(&native, by_password(ALICE));
    assert!(matches!(world.step(&with_password, NOON), Step::Done(_)));

    // the redirect there and back may have been without a click
    world.tenants = vec![tenant(TENANT, &[provider()])];
    let external = Event::FirstFactorProven(proven(ALICE, PROVIDER, FED));
    assert_eq!(world.step(&world.after(&native, external), NOON), Step::Touch);
}

#[test]
fn a_sign_in_in_another_tab_is_used() {
    let flow = flow();
    assert!(matches!(world().step(&flow, NOON), Step::FirstFactor(_)));
    assert_eq!(done(&world().with_alice().step(&flow, NOON)).session, Some(SESSION));
}

#[test]
fn a_flow_survives_serialization() {
    let world = world().requiring_totp(true);
    let mut flow = world.after(&flow(), by_password(ALICE));
    flow.consent = Some((ALICE, Granted { words: ["a".to_owned()].into(), is_remembered: true }));
    flow.deferred.insert((ALICE, Action::Passkey));
    let text = serde_json::to_string(&flow).unwrap();
    assert_eq!(serde_json::from_str::<Flow>(&text).unwrap(), flow);
    assert_eq!(flow.request().started, Timestamp(NOON.0));
}
