//! Properties of every sign-in flow, over arbitrary requests, facts and events.

use std::collections::BTreeSet;

use chancery_record::Timestamp;
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::{
    Due, Event, Flow, Request, Step,
    tests::{
        NOON, World,
        arbitrary::{Move, any_moves, any_request, any_world, later},
        oracle::unmet_requirements,
        worse::{any_loss, worsen},
    },
};

/// The state at one move.
struct Observation<'a> {
    world: &'a World,
    due: &'a Due,
    now: Timestamp,
    /// The event and its result, unless it was refused.
    applied: Option<(&'a Event, &'a Flow)>,
}

/// Performs the moves, passes each to the observer, and finally the flow after the last of them.
fn play(
    request: Request,
    world: World,
    moves: &[Move],
    mut observe: impl FnMut(&Observation<'_>) -> Result<(), TestCaseError>,
) -> Result<(World, Flow, Timestamp), TestCaseError> {
    let (mut world, mut flow, mut now) = (world, Flow::new(request), NOON);
    for next in moves {
        now = later(now, next);
        world = next.world.clone().unwrap_or(world);
        let due = world.due(&flow, now);
        let person = due.identified().map(|identified| identified.person);
        let event = next.event.event(due.step(), person);
        let after = due.apply(event.clone()).ok();
        let applied = after.as_ref().map(|flow| (&event, flow));
        observe(&Observation { world: &world, due: &due, now, applied })?;
        flow = after.unwrap_or(flow);
    }
    let due = world.due(&flow, now);
    observe(&Observation { world: &world, due: &due, now, applied: None })?;
    Ok((world, flow, now))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    /// Done only with a first factor of an offered instance within max_age, a second one where required, no due
    /// action, consent where due, and everything else that the oracle checks.
    #[test]
    fn no_sign_in_lacks_a_requirement(
        request in any_request(), world in any_world(), moves in any_moves(),
    ) {
        play(request, world, &moves, |observation| {
            if let Step::Done(signed_in) = observation.due.step() {
                let unmet = unmet_requirements(observation.world, observation.due.flow(), observation.now, signed_in);
                prop_assert!(unmet.is_empty(), "{unmet:?} at {signed_in:?}");
            }
            Ok(())
        })?;
    }

    /// After denial only Fail: likewise after going back, cancelling, or expiry.
    #[test]
    fn an_ended_flow_stays_ended(request in any_request(), world in any_world(), moves in any_moves()) {
        let mut has_ended = false;
        play(request, world, &moves, |observation| {
            has_ended |= observation.now >= NOON.plus(30 * 60_000);
            prop_assert!(!has_ended || matches!(observation.due.step(), Step::Fail(_)), "{:?}", observation.due.step());
            prop_assert!(!has_ended || observation.applied.is_none());
            let ends = |event: &Event| matches!(event, Event::ConsentDenied | Event::Back | Event::Cancelled);
            has_ended |= observation.applied.is_some_and(|(event, _)| ends(event));
            Ok(())
        })?;
    }

    /// No event removes a proof or dates it later; a new one has the current time, and there is at most one.
    #[test]
    fn proofs_are_only_appended(request in any_request(), world in any_world(), moves in any_moves()) {
        play(request, world, &moves, |observation| {
            let Some((_, after)) = observation.applied else { return Ok(()) };
            let before = observation.due.flow().proofs();
            prop_assert!(after.proofs().starts_with(before));
            prop_assert!(after.proofs().len() <= before.len() + 1);
            let added = after.proofs().iter().skip(before.len());
            prop_assert!(added.into_iter().all(|proof| proof.at == observation.now));
            prop_assert_eq!(after.request(), observation.due.flow().request());
            Ok(())
        })?;
    }

    /// `prompt=none` gives no page, so no event is accepted.
    #[test]
    fn prompt_none_never_gives_a_page(request in any_request(), world in any_world(), moves in any_moves()) {
        let request = Request { prompt: crate::Prompt::None, ..request };
        play(request, world, &moves, |observation| {
            prop_assert!(!observation.due.step().is_page(), "{:?}", observation.due.step());
            prop_assert!(observation.applied.is_none());
            Ok(())
        })?;
    }

    /// Worse facts never turn a page into Done. A removal may leave one of several tenants or sessions, so that
    /// no choice remains: then the same choice gives the same, or a stronger result, with the better facts.
    #[test]
    fn worse_facts_never_complete_a_sign_in(
        request in any_request(),
        world in any_world(),
        moves in any_moves(),
        losses in prop::collection::vec(any_loss(), 1..5),
    ) {
        let (world, flow, now) = play(request, world, &moves, |_| Ok(()))?;
        let mut worse = world.clone();
        for loss in losses {
            worsen(&mut worse, loss);
        }
        if let Step::Done(with_worse) = worse.step(&flow, now) {
            let session = with_worse.session.or(flow.session);
            let choosing = Flow { tenant: Some(with_worse.tenant), session, ..flow };
            let step = world.step(&choosing, now);
            let Step::Done(with_better) = &step else { return Err(TestCaseError::fail(format!("{step:?}"))) };
            prop_assert_eq!((with_better.person, with_better.tenant), (with_worse.person, with_worse.tenant));
            prop_assert!(with_better.acr >= with_worse.acr && with_better.auth_time >= with_worse.auth_time);
        }
    }
}

/// The properties are not vacuous: the moves reach every step, and often the end.
#[test]
fn every_step_is_reached() {
    let mut runner = TestRunner::deterministic();
    let (mut steps, mut played_to_done) = (BTreeSet::new(), 0);
    for _ in 0..2_000 {
        let strategy = (any_request(), any_world(), any_moves());
        let (request, world, moves) = strategy.new_tree(&mut runner).unwrap().current();
        let (mut is_done, mut has_acted) = (false, false);
        play(request, world, &moves, |observation| {
            let step = observation.due.step();
            is_done |= has_acted && matches!(step, Step::Done(_));
            has_acted |= observation.applied.is_some();
            let name = format!("{step:?}");
            let parts = if matches!(step, Step::Fail(_)) { 2 } else { 1 };
            steps.insert(name.split(['(', ' ', ')']).take(parts).collect::<Vec<_>>().join(" "));
            Ok(())
        })
        .unwrap();
        played_to_done += usize::from(is_done);
    }
    let names: Vec<&str> = steps.iter().map(String::as_str).collect();
    let expected = [
        "Account",
        "Action",
        "Consent",
        "Done",
        "EnrolFactor",
        "Fail AccountSelectionRequired",
        "Fail Cancelled",
        "Fail ConsentRequired",
        "Fail Denied",
        "Fail InteractionRequired",
        "Fail LoginRequired",
        "Fail NotAdmitted",
        "Fail NotServed",
        "Fail Over",
        "Fail UnmetAuthenticationRequirements",
        "FirstFactor",
        "Refuse",
        "SecondFactor",
        "StepUp",
        "Tenant",
        "Touch",
    ];
    assert_eq!(names, expected);
    assert!(played_to_done > 150, "{played_to_done} of 2000");
}
