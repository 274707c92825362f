//! The properties of section 11, over arbitrary requests, facts and events.

use std::collections::BTreeSet;

use chancery_record::Timestamp;
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::{
    Due, Event, Flow, Request, Step,
    tests::{
        NOON, World,
        arbitrary::{Move, any_moves, any_request, any_world, later},
        oracle::lacks,
        worse::{any_loss, worsen},
    },
};

/// What an observer sees of one move.
struct Seen<'a> {
    world: &'a World,
    due: &'a Due,
    now: Timestamp,
    /// What happened then, unless it was refused.
    applied: Option<(&'a Event, &'a Flow)>,
}

/// Plays the moves, shows each to the observer, and at last the flow to which nothing happens any more.
fn play(
    request: Request,
    world: World,
    moves: &[Move],
    mut observe: impl FnMut(&Seen<'_>) -> Result<(), TestCaseError>,
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
        observe(&Seen { world: &world, due: &due, now, applied })?;
        flow = after.unwrap_or(flow);
    }
    let due = world.due(&flow, now);
    observe(&Seen { world: &world, due: &due, now, applied: None })?;
    Ok((world, flow, now))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    /// Done only with a first factor of an offered instance within max_age, a second wherever asked for, no
    /// due action, consent where due, and all else that the oracle knows.
    #[test]
    fn nobody_is_signed_in_who_lacks_something(
        request in any_request(), world in any_world(), moves in any_moves(),
    ) {
        play(request, world, &moves, |seen| {
            if let Step::Done(signed_in) = seen.due.step() {
                let lacking = lacks(seen.world, seen.due.flow(), seen.now, signed_in);
                prop_assert!(lacking.is_empty(), "{lacking:?} at {signed_in:?}");
            }
            Ok(())
        })?;
    }

    /// After denial only Fail: nor after going back, cancelling, or the end of the flow's time.
    #[test]
    fn what_has_ended_stays_ended(request in any_request(), world in any_world(), moves in any_moves()) {
        let mut has_ended = false;
        play(request, world, &moves, |seen| {
            has_ended |= seen.now >= NOON.plus(30 * 60_000);
            prop_assert!(!has_ended || matches!(seen.due.step(), Step::Fail(_)), "{:?}", seen.due.step());
            prop_assert!(!has_ended || seen.applied.is_none());
            let ends = |event: &Event| matches!(event, Event::ConsentDenied | Event::Back | Event::Cancelled);
            has_ended |= seen.applied.is_some_and(|(event, _)| ends(event));
            Ok(())
        })?;
    }

    /// No event takes a proof away or dates it later; what is new is of now, and there is at most one.
    #[test]
    fn proofs_stay_as_they_were(request in any_request(), world in any_world(), moves in any_moves()) {
        play(request, world, &moves, |seen| {
            let Some((_, after)) = seen.applied else { return Ok(()) };
            let before = seen.due.flow().proofs();
            prop_assert!(after.proofs().starts_with(before));
            prop_assert!(after.proofs().len() <= before.len() + 1);
            let added = after.proofs().iter().skip(before.len());
            prop_assert!(added.into_iter().all(|proof| proof.at == seen.now));
            prop_assert_eq!(after.request(), seen.due.flow().request());
            Ok(())
        })?;
    }

    /// `prompt=none` gives no page; and so no event is taken.
    #[test]
    fn silence_is_kept(request in any_request(), world in any_world(), moves in any_moves()) {
        let request = Request { prompt: crate::Prompt::None, ..request };
        play(request, world, &moves, |seen| {
            prop_assert!(!seen.due.step().is_page(), "{:?}", seen.due.step());
            prop_assert!(seen.applied.is_none());
            Ok(())
        })?;
    }

    /// Worse facts never turn a page into Done. What is taken away may leave one tenant or session of several,
    /// so that there is no more to choose: then the same choice gives the same, or stronger, with the better
    /// facts.
    #[test]
    fn worse_facts_sign_nobody_in(
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
        if let Step::Done(found) = worse.step(&flow, now) {
            let session = found.session.or(flow.session);
            let choosing = Flow { tenant: Some(found.tenant), session, ..flow };
            let step = world.step(&choosing, now);
            let Step::Done(better) = &step else { return Err(TestCaseError::fail(format!("{step:?}"))) };
            prop_assert_eq!((better.person, better.tenant), (found.person, found.tenant));
            prop_assert!(better.acr >= found.acr && better.auth_time >= found.auth_time);
        }
    }
}

/// The properties speak of something: what is played reaches every step, and often the end.
#[test]
fn every_step_is_reached() {
    let mut runner = TestRunner::deterministic();
    let (mut steps, mut played_to_done) = (BTreeSet::new(), 0);
    for _ in 0..2_000 {
        let strategy = (any_request(), any_world(), any_moves());
        let (request, world, moves) = strategy.new_tree(&mut runner).unwrap().current();
        let (mut is_done, mut has_acted) = (false, false);
        play(request, world, &moves, |seen| {
            let step = seen.due.step();
            is_done |= has_acted && matches!(step, Step::Done(_));
            has_acted |= seen.applied.is_some();
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
