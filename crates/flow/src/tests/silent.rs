//! `prompt=none`: every step that needs a page is its error.

use crate::{
    Acr, Action, CodeKind, Consent, DueAction, Enrolment, Failure, Flow, NotAdmitted, Prompt, Request, Step,
    Urgency,
    tests::{NOON, OTHER_TENANT, TOTP, World, request, store, tenant, usable, world},
};

fn silent() -> Request {
    Request { prompt: Prompt::None, ..request() }
}

fn failure(world: &World, request: Request) -> &'static str {
    match world.step(&Flow::new(request), NOON) {
        Step::Fail(failure) => failure.name(),
        Step::Done(_) => "done",
        page => panic!("{page:?}"),
    }
}

#[test]
fn each_step_has_its_error() {
    let alice = || world().with_alice();
    assert_eq!(failure(&alice(), silent()), "done");
    assert_eq!(failure(&world(), silent()), "login_required");
    assert_eq!(failure(&alice().with_bob(), silent()), "account_selection_required");

    let mut tenants = world();
    tenants.tenants.push(tenant(OTHER_TENANT, &[store()]));
    assert_eq!(failure(&tenants, silent()), "interaction_required");

    let mut refused = alice();
    refused.person.refused = Some(NotAdmitted::Restricted);
    assert_eq!(failure(&refused, silent()), "access_denied");

    assert_eq!(failure(&alice().requiring_totp(true), silent()), "interaction_required");
    let mut enrolling = alice().requiring_totp(false);
    assert_eq!(failure(&enrolling, silent()), "access_denied", "there is none");
    enrolling.person.second_factors.enrolment = Enrolment::AtSignIn;
    assert_eq!(failure(&enrolling, silent()), "interaction_required");

    let demanding = || Request { demanded: vec![Acr::Mfa], ..silent() };
    assert_eq!(failure(&alice(), demanding()), "unmet_authentication_requirements");
    let mut stepping = alice();
    stepping.person.second_factors.usable = vec![usable(TOTP, CodeKind::Totp, true)];
    assert_eq!(failure(&stepping, demanding()), "interaction_required");

    let mut acting = alice();
    acting.person.due = vec![DueAction { action: Action::Terms, urgency: Urgency::Required }];
    assert_eq!(failure(&acting, silent()), "interaction_required");
    for action in [Action::Questionnaire, Action::Passkey] {
        acting.person.due = vec![DueAction { action, urgency: Urgency::Offered }];
        assert_eq!(failure(&acting, silent()), "done", "nothing is offered to a session alone");
    }

    let mut consenting = alice();
    consenting.person.consent = Consent::Systematic;
    assert_eq!(failure(&consenting, silent()), "consent_required");

    assert_eq!(failure(&alice(), Request { is_native: true, ..silent() }), "interaction_required");
}

#[test]
fn a_login_hint_selects_the_session() {
    let hinted = || Request { has_login_hint: true, ..silent() };
    let mut world = world().with_alice().with_bob();
    assert_eq!(failure(&world, hinted()), "login_required");
    world.sessions[0].fits_login_hint = true;
    assert_eq!(failure(&world, hinted()), "done");
}

#[test]
fn failures_have_the_names_of_openid_connect() {
    for (failure, name) in [
        (Failure::Over, "access_denied"),
        (Failure::Cancelled, "access_denied"),
        (Failure::NotAdmitted(NotAdmitted::Account), "access_denied"),
        (Failure::Denied, "access_denied"),
        (Failure::NotServed, "access_denied"),
        (Failure::LoginRequired, "login_required"),
        (Failure::AccountSelectionRequired, "account_selection_required"),
        (Failure::InteractionRequired, "interaction_required"),
        (Failure::ConsentRequired, "consent_required"),
        (Failure::UnmetAuthenticationRequirements, "unmet_authentication_requirements"),
    ] {
        assert_eq!(failure.name(), name);
    }
}
