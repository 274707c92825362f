//! The outcomes of mails in the outbox, on both engines.

use chancery_mail::{
    ATTEMPTS, DeliveryReport, MailServer, deliver_due, prune,
    sink::{Fault, ReceivedMail, Sink, SinkConfig, Step},
};
use chancery_record::Timestamp;
use chancery_store::{Error, Mode, Store};
use uuid::Uuid;

use crate::{
    engine,
    fixture::{Fixture, HOUR, MINUTE, NOW, SECOND, delivered, mail, open},
};

macro_rules! on_engines {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $test() {
                let (_folder, target) = super::engine::sqlite();
                super::engine::on(&target, super::$test);
            })*
        }
        mod postgres {
            $(#[test] fn $test() {
                if let Some(target) = super::engine::postgres() {
                    super::engine::on(&target, super::$test);
                }
            })*
        }
    };
}

on_engines!(
    refused_for_now_it_is_sent_later,
    refused_for_good_it_dies,
    a_server_that_is_down_is_tried_with_growing_rests,
    a_server_that_dies_before_its_last_reply_may_get_the_mail_twice,
    several_jobs_send_each_mail_once,
    an_expired_mail_is_not_sent,
    a_job_that_dies_before_the_mail_is_sent_loses_nothing,
    a_job_that_dies_after_the_mail_was_sent_repeats_it_by_its_id,
    a_mail_that_kills_its_jobs_dies_in_the_end,
    a_mail_that_is_rolled_back_is_not_sent,
    without_a_server_or_a_key_it_waits,
    mails_that_were_given_up_are_retained_and_then_pruned,
    a_store_whose_server_stalls_does_not_hold_up_others,
);

async fn fixture(store: Store) -> (Fixture, Sink) {
    let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
    let server = sink.server().unwrap();
    (Fixture::new(store, server), sink)
}

async fn refused_for_now_it_is_sent_later(store: Store) {
    let (fixture, sink) = fixture(store).await;
    fixture.queue(mail(1)).await;
    sink.next(Step::Recipient, Fault::Reply("450 4.2.0 greylisted"));
    assert_eq!(fixture.deliver(NOW, 1).await, delivered(0, 1, 0));
    assert_eq!(fixture.last_error(1).await.0, "the mail server answered 450 4.2.0");
    assert_eq!(fixture.deliver(NOW.plus(30 * SECOND - 1), 2).await, delivered(0, 0, 0));
    assert_eq!(fixture.counts().await, (1, 0));
    assert_eq!(fixture.deliver(NOW.plus(30 * SECOND), 3).await, delivered(1, 0, 0));
    assert_eq!(sink.received().len(), 1);
    assert_eq!(fixture.counts().await, (0, 0));
    assert_eq!(fixture.deliver(NOW.plus(HOUR), 4).await, delivered(0, 0, 0));
}

async fn refused_for_good_it_dies(store: Store) {
    let (fixture, sink) = fixture(store).await;
    let steps = [Step::From, Step::Recipient, Step::Data, Step::End];
    for (number, step) in (1..).zip(steps) {
        fixture.queue(mail(number)).await;
        sink.next(step, Fault::Reply("550 5.1.1 nobody here called tulip"));
        assert_eq!(fixture.deliver(NOW, number).await, delivered(0, 0, 1), "{step:?}");
        let expected = ("the mail server answered 550 5.1.1".to_owned(), 0);
        assert_eq!(fixture.last_error(number).await, expected, "its token is not kept");
    }
    let mut nowhere = mail(9);
    nowhere.recipient = String::from("nowhere");
    fixture.queue(nowhere).await;
    assert_eq!(fixture.deliver(NOW, 9).await, delivered(0, 0, 1));
    assert_eq!(fixture.counts().await, (0, 5));
    assert_eq!(fixture.deliver(NOW.plus(HOUR / 2), 10).await, delivered(0, 0, 0));
    assert!(sink.received().is_empty());
}

async fn a_server_that_is_down_is_tried_with_growing_rests(store: Store) {
    let (fixture, sink) = fixture(store).await;
    drop(sink);
    let mut patient = mail(1);
    patient.expires_on = NOW.plus(24 * HOUR);
    fixture.queue(patient).await;
    let mut now = NOW;
    for lease in 1..ATTEMPTS {
        assert_eq!(fixture.deliver(now, lease.unsigned_abs().into()).await, delivered(0, 1, 0), "{lease}");
        let rest = ((30 * SECOND) << (lease - 1)).min(HOUR);
        now = now.plus(rest - 1);
        assert_eq!(fixture.deliver(now, 98).await, delivered(0, 0, 0), "{lease}");
        now = now.plus(1);
    }
    assert_eq!(fixture.deliver(now, 99).await, delivered(0, 0, 1));
    let (why, retained_bytes) = fixture.last_error(1).await;
    assert!(why.starts_with("given up after 10 attempts: Connection error"), "{why}");
    assert_eq!(retained_bytes, 0);
    assert_eq!(fixture.counts().await, (0, 1));
}

/// The one case that cannot be decided: the mail was transferred completely, and the reply did not arrive.
async fn a_server_that_dies_before_its_last_reply_may_get_the_mail_twice(store: Store) {
    let (fixture, sink) = fixture(store).await;
    fixture.queue(mail(1)).await;
    for (lease, fault) in [(1, Fault::Drop), (2, Fault::Stall)] {
        sink.next(Step::End, fault);
        let now = NOW.plus(MINUTE * i64::try_from(lease).unwrap());
        assert_eq!(fixture.deliver(now, lease).await, delivered(0, 1, 0));
    }
    assert_eq!(fixture.deliver(NOW.plus(10 * MINUTE), 3).await, delivered(1, 0, 0));
    let received = sink.received();
    assert_eq!(received.len(), 3);
    assert!(received.iter().all(|mail| mail.message_id() == received[0].message_id()));
}

async fn several_jobs_send_each_mail_once(store: Store) {
    let (fixture, sink) = fixture(store).await;
    for number in 1..=13 {
        fixture.queue(mail(number)).await;
    }
    let work = async |first: u128| {
        let mut sent = 0;
        for lease in first.. {
            let delivered = fixture.deliver(NOW, lease).await;
            assert_eq!((delivered.retried, delivered.given_up), (0, 0));
            sent += delivered.sent;
            if !delivered.left {
                break;
            }
        }
        sent
    };
    let (one, two, three) = tokio::join!(work(100), work(200), work(300));
    assert_eq!(one + two + three, 13);
    let mut ids: Vec<String> = sink.received().iter().map(ReceivedMail::message_id).collect();
    assert_eq!(ids.len(), 13);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 13);
    assert_eq!(fixture.counts().await, (0, 0));
}

async fn an_expired_mail_is_not_sent(store: Store) {
    let (fixture, sink) = fixture(store).await;
    fixture.queue(mail(1)).await;
    assert_eq!(fixture.deliver(NOW.plus(HOUR), 1).await, delivered(0, 0, 1));
    assert_eq!(fixture.last_error(1).await, ("it expired before it could be sent".to_owned(), 0));
    assert_eq!(fixture.counts().await, (0, 1));
    assert!(sink.received().is_empty());
}

/// Starts a delivery and kills it when the sink stalls.
async fn killed(fixture: &Fixture, sink: &Sink, now: Timestamp, lease: u128, stalls: usize) {
    let permission = chancery_fetch::Outbound::On.permission().unwrap();
    let lease = Uuid::from_u128(lease);
    tokio::select! {
        delivered = deliver_due(&fixture.store, permission, now, now, lease, &open, &fixture.server_of) => {
            panic!("it should have stalled: {delivered:?}");
        }
        () = sink.wait_for_stall(stalls) => {}
    }
}

/// The length of a lease: the timeout of the sink's configuration, and a minute.
const LEASE: i64 = SECOND + MINUTE;

async fn a_job_that_dies_before_the_mail_is_sent_loses_nothing(store: Store) {
    let (fixture, sink) = fixture(store).await;
    fixture.queue(mail(1)).await;
    sink.next(Step::Greeting, Fault::Stall);
    killed(&fixture, &sink, NOW, 1, 1).await;
    assert_eq!(fixture.counts().await, (1, 0));
    assert_eq!(fixture.deliver(NOW.plus(LEASE - 1), 2).await, delivered(0, 0, 0));
    assert_eq!(fixture.deliver(NOW.plus(LEASE), 3).await, delivered(1, 0, 0));
    assert_eq!(sink.received().len(), 1);
    assert_eq!(fixture.counts().await, (0, 0));
}

async fn a_job_that_dies_after_the_mail_was_sent_repeats_it_by_its_id(store: Store) {
    let (fixture, sink) = fixture(store).await;
    fixture.queue(mail(1)).await;
    sink.next(Step::End, Fault::Stall);
    killed(&fixture, &sink, NOW, 1, 1).await;
    assert_eq!(sink.received().len(), 1);
    assert_eq!(fixture.deliver(NOW.plus(LEASE), 2).await, delivered(1, 0, 0));
    let received = sink.wait_for(2).await;
    assert_eq!(received[0].message_id(), received[1].message_id());
    assert_eq!(fixture.counts().await, (0, 0));
}

async fn a_mail_that_kills_its_jobs_dies_in_the_end(store: Store) {
    let (fixture, sink) = fixture(store).await;
    fixture.queue(mail(1)).await;
    let mut now = NOW;
    for stalls in 1..=usize::try_from(ATTEMPTS).unwrap() {
        sink.next(Step::Greeting, Fault::Stall);
        killed(&fixture, &sink, now, 1, stalls).await;
        now = now.plus(LEASE);
    }
    assert_eq!(fixture.deliver(now, 99).await, delivered(0, 0, 1));
    assert!(sink.received().is_empty());
}

async fn a_mail_that_is_rolled_back_is_not_sent(store: Store) {
    let (fixture, sink) = fixture(store).await;
    let queue = |tx: &mut chancery_store::Tx<'_>| {
        chancery_mail::enqueue(tx, mail(1))?;
        tx.set_dry_run();
        Ok(())
    };
    fixture.store.run::<_, Error, _>("Try", Mode::Write, None, queue).await.unwrap();
    assert_eq!(fixture.deliver(NOW, 1).await, delivered(0, 0, 0));
    assert!(sink.received().is_empty());
}

async fn without_a_server_or_a_key_it_waits(store: Store) {
    let (fixture, sink) = fixture(store).await;
    let mut homeless = mail(1);
    homeless.store += 1;
    fixture.queue(homeless).await;
    let mut foreign = mail(2);
    foreign.sealed_data = b"sealed by another key".to_vec();
    fixture.queue(foreign).await;
    assert_eq!(fixture.deliver(NOW, 1).await, delivered(0, 2, 0));
    assert_eq!(fixture.last_error(1).await.0, "the store has no valid mail server");
    assert_eq!(fixture.last_error(2).await.0, "its data cannot be decrypted");

    let repaired = Fixture::new(fixture.store, sink.server().unwrap());
    let server_of = repaired.server_of.clone();
    let repaired = Fixture {
        server_of: std::sync::Arc::new(move |tx, _, own| server_of(tx, crate::fixture::STORE, own)),
        ..repaired
    };
    assert_eq!(repaired.deliver(NOW.plus(MINUTE), 2).await, delivered(1, 1, 0));
    assert_eq!(sink.received()[0].to, ["user1@example.com"]);
}

async fn a_store_whose_server_stalls_does_not_hold_up_others(store: Store) {
    let (slow, stalling) = fixture(store).await;
    let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
    let server = sink.server().unwrap();
    let (of_slow, mut others) = (slow.server_of.clone(), mail(100));
    let fixture = Fixture {
        store: slow.store.clone(),
        server_of: std::sync::Arc::new(move |tx, number, own| {
            if number == crate::fixture::STORE {
                of_slow(tx, number, own)
            } else {
                Ok(Some(server.clone().into()))
            }
        }),
    };
    for number in 1..=9 {
        stalling.next(Step::Recipient, Fault::Stall);
        fixture.queue(mail(number)).await;
    }
    others.store += 1;
    fixture.queue(others).await;
    let sent = fixture.deliver(NOW, 1).await;
    assert_eq!(
        (sent.sent, sent.retried, sent.left),
        (1, 2, true),
        "the ninth mail of one waits, the first of another does not"
    );
    assert_eq!(sink.received().len(), 1);
}

async fn mails_that_were_given_up_are_retained_and_then_pruned(store: Store) {
    let unreachable = MailServer::parse(r#"{"Host": "127.0.0.1"}"#).unwrap();
    let fixture = Fixture::new(store, unreachable);
    for number in 1..=5 {
        fixture.queue(mail(number)).await;
    }
    let given_up = NOW.plus(2 * HOUR);
    for lease in [1, 2] {
        let some = fixture.deliver(given_up, lease).await;
        assert_eq!(some, DeliveryReport { given_up: 2, left: true, ..DeliveryReport::default() });
    }
    assert_eq!(fixture.deliver(given_up.plus(1), 3).await, delivered(0, 0, 1));
    let mut waiting = mail(6);
    waiting.expires_on = NOW.plus(24 * HOUR);
    fixture.queue(waiting).await;
    for (before, expected, left) in
        [(given_up, 0, (1, 5)), (given_up.plus(1), 4, (1, 1)), (given_up.plus(9), 1, (1, 0))]
    {
        let prune = move |tx: &mut chancery_store::Tx<'_>| prune(tx, before);
        let pruned = fixture.store.run::<_, Error, _>("Prune", Mode::Write, None, prune).await.unwrap();
        assert_eq!(pruned, expected);
        assert_eq!(fixture.counts().await, left);
    }
}
