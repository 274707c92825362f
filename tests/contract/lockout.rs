//! Failed attempts: counted, slowed down, locked out. A second, naive model of the rules predicts
//! the expected state.

use chancery_credential::lockout::{
    Limits,
    model::{Action, Model},
};
use chancery_record::{Timestamp, Value as Bound};
use chancery_testkit::{Client, Database, Engine, Process, World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    id,
    signing::{FIRST, Person, SECOND, counters, mails, millis, now, set, set_all, set_mail_server},
};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// Numbers that look random and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }

    fn limits(&mut self) -> Limits {
        Limits {
            attempts_before_user_locked: self.one_of(&[0, 0, 4, 7]),
            temporary_lock_enabled: self.one_of(&[true, true, true, false]),
            attempts_before_temporary_lock: self.one_of(&[0, 2, 3]),
            temporary_lock_duration_ms: 2 * HOUR,
            throttling_enabled: self.one_of(&[true, false, false]),
            throttling_initial_delay_ms: HOUR,
            throttling_max_delay_ms: 4 * HOUR,
        }
    }

    /// Lengths of time differ from each other and from the locks' by more than a test takes.
    fn action(&mut self) -> Action {
        match self.below(20) {
            0..=8 => Action::Login { right: false },
            9..=11 => Action::Login { right: true },
            12..=14 => Action::Wait(self.one_of(&[1, 2, 5]) * HOUR + MINUTE),
            15 => Action::SetLocked(self.one_of(&[true, false])),
            16 => Action::SetLockedUntil(Some(self.one_of(&[1, 2, 3]) * HOUR)),
            17 => Action::Reset,
            18 => Action::UseToken,
            _ if self.below(2) == 0 => Action::SetLimits(self.limits()),
            _ => Action::SetLockEnabled(self.one_of(&[true, false])),
        }
    }
}

async fn set_limits(client: &Client, limits: Limits) {
    let hours = |length: i64| format!("PT{}H", length / HOUR);
    set_all(
        client,
        &[
            ("AttemptsBeforeUserLocked", &limits.attempts_before_user_locked.to_string()),
            ("TemporaryLockEnabled", &limits.temporary_lock_enabled.to_string()),
            ("AttemptsBeforeTemporaryLock", &limits.attempts_before_temporary_lock.to_string()),
            ("TemporaryLockDuration", &hours(limits.temporary_lock_duration_ms)),
            ("LoginThrottlingEnabled", &limits.throttling_enabled.to_string()),
            ("LoginThrottlingInitialDelay", &hours(limits.throttling_initial_delay_ms)),
            ("LoginThrottlingMaxDelay", &hours(limits.throttling_max_delay_ms)),
        ],
    )
    .await;
}

/// Applies an action of the model to a user; returns whether it was let through.
async fn act(world: &World, user: &Person<'_>, passwords: &mut u32, action: Action) -> bool {
    let password = |number: u32| format!("a hedge with {number} gates");
    match action {
        Action::Login { right } => {
            let old = if right { password(*passwords) } else { "not it".to_owned() };
            let status = user.change(&old, &password(*passwords + 1)).await.status;
            assert!(status == 200 || status == 400, "{status}");
            *passwords += u32::from(status == 200);
            return status == 200;
        }
        Action::UseToken => {
            let token = user.token().await;
            let status = user.redeem(&token, &password(*passwords + 1)).await.status;
            *passwords += u32::from(status == 200);
            return status == 200;
        }
        Action::Wait(milliseconds) => user.age(milliseconds).await,
        Action::SetLocked(locked) => user.post("state", json!({ "isUserLocked": locked })).await.expect(200),
        Action::SetLockedUntil(from_now) => {
            let mut until = Vec::new();
            chancery_record::format_timestamp(Timestamp(now() + from_now.unwrap()), &mut until);
            user.post("state", json!({ "lockedUntil": String::from_utf8(until).unwrap() })).await.expect(200);
        }
        Action::Reset => user.call("lockout/reset").await.expect(200),
        Action::SetLimits(limits) => set_limits(&world.admin, limits).await,
        Action::SetLockEnabled(enabled) => drop(user.patch(json!({ "isUserLockEnabled": enabled })).await),
    }
    true
}

async fn burst(guesses: usize, callers: &[(&Client, String)]) {
    let body = json!({ "oldPassword": "not it", "newPassword": SECOND });
    let guess = |number: usize| {
        let (client, path) = &callers[number % callers.len()];
        client.post(path, body.clone())
    };
    let answers = futures_util::future::join_all((0..guesses).map(guess)).await;
    let other: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status != 400)
        .map(|answer| (answer.status, &answer.bytes))
        .collect();
    assert!(other.is_empty(), "{other:?}");
}

async fn burst_at(world: &World, user: &Person<'_>, guesses: usize) -> Value {
    burst(guesses, &[(&world.admin, format!("{}/password/change", user.path))]).await;
    user.read().await
}

on_both_engines! {
    /// After any actions in any order, the state is that of the model.
    ///
    /// - Effect of `UserStore options.LoginThrottlingEnabled`: After a failed sign-in the next attempt must wait.
    /// - Effect of `UserStore options.TemporaryLockDuration`: A temporary lock lasts for this time.
    /// - Effect of `UserStore options.TemporaryLockEnabled`: Failed sign-ins lock the user for a while.
    async fn follows_the_model(world: World) {
        set_mail_server(&world.admin).await;
        for seed in 1..=6 {
            let mut chance = Chance(seed * 7919);
            let limits = chance.limits();
            set_limits(&world.admin, limits).await;
            let body = json!({ "loginName": format!("u{seed}"), "emailAddress": "u@example.com" });
            let user = Person::new(&world, body).await;
            user.reset("a hedge with 0 gates").await.expect(200);
            let mut model = Model::new(limits, Timestamp(0));
            let (mut passwords, mut story) = (0, vec![format!("{limits:?}")]);
            for _ in 0..35 {
                let action = chance.action();
                story.push(format!("{action:?}"));
                let accepted = act(&world, &user, &mut passwords, action).await;
                let expected = model.step(action);
                let seen = user.read().await;
                let story = format!("seed {seed}: {story:#?}\nexpected {expected:?}\nseen {seen}");
                assert_eq!(accepted, expected.accepted, "{story}");
                assert_eq!(seen["isUserLocked"], expected.is_locked, "{story}");
                assert_eq!(counters(&seen), (expected.failed_user_login_attempts, expected.failed_temporary_lock_attempts), "{story}");
                assert_eq!(seen["lockedUntil"].is_string(), expected.locked_until.is_some(), "{story}");
                if let Some(until) = expected.locked_until {
                    let apart = (millis(&seen["lockedUntil"]) - now()) - (until.0 - model.now().0);
                    assert!(apart.abs() < MINUTE, "{story}");
                }
            }
        }
    }

    /// Failed attempts are counted before the password is checked, atomically.
    ///
    /// - Effect of `UserStore options.AttemptsBeforeTemporaryLock`: This number of failed sign-ins locks the user for a while.
    async fn nobody_gets_more_guesses_than_the_limit(world: World) {
        set(&world.admin, "LoginThrottlingEnabled", "false").await;
        let ada = Person::named(&world, "ada").await;
        let begun = now();
        let seen = burst_at(&world, &ada, 20).await;
        assert_eq!((counters(&seen), &seen["isUserLocked"]), ((5, 5), &json!(false)));
        assert!((begun + 5 * MINUTE..=now() + 5 * MINUTE).contains(&millis(&seen["lockedUntil"])), "TemporaryLockDuration is 5 minutes");
        // during the lock the right one fails too, and nothing is counted
        ada.change(FIRST, SECOND).await.expect(400);
        assert_eq!(ada.read().await, seen);
        assert_eq!(ada.events().await.iter().filter(|kind| *kind == "locked").count(), 1);
        // after it the temporary count starts again, the permanent one continues
        ada.age(5 * MINUTE).await;
        ada.change("not it", SECOND).await.expect(400);
        assert_eq!(counters(&ada.read().await), (6, 1));
        ada.change(FIRST, SECOND).await.expect(200);
        let seen = ada.read().await;
        assert_eq!((counters(&seen), &seen["lockedUntil"]), ((0, 0), &json!(null)));
    }

    /// - Effect of `UserStore options.AttemptsBeforeUserLocked`: This number of failed sign-ins locks the user until an administrator ends
    ///   the lock; 0 never locks.
    async fn nobody_gets_more_guesses_than_the_permanent_limit(world: World) {
        set_all(&world.admin, &[("LoginThrottlingEnabled", "false"), ("TemporaryLockEnabled", "false"), ("AttemptsBeforeUserLocked", "4")]).await;
        let ada = Person::named(&world, "ada").await;
        let seen = burst_at(&world, &ada, 20).await;
        assert_eq!((counters(&seen), &seen["isUserLocked"], &seen["lockedUntil"]), ((4, 4), &json!(true), &json!(null)));
        ada.change(FIRST, SECOND).await.expect(400);
        assert_eq!(ada.read().await, seen);
        ada.age(1000 * HOUR).await;
        ada.change(FIRST, SECOND).await.expect(400);
        ada.call("lockout/reset").await.expect(200);
        ada.change(FIRST, SECOND).await.expect(200);
    }

    /// isUserLockEnabled false: neither applies.
    ///
    /// - Effect of `User.isUserLockEnabled`: Failed sign-ins lock the user only if this is set.
    async fn an_exempt_user_is_never_locked(world: World) {
        set_all(&world.admin, &[("LoginThrottlingEnabled", "false"), ("AttemptsBeforeUserLocked", "3")]).await;
        let ada = Person::named(&world, "ada").await;
        ada.patch(json!({ "isUserLockEnabled": false })).await;
        let seen = burst_at(&world, &ada, 12).await;
        assert_eq!((&seen["isUserLocked"], &seen["lockedUntil"]), (&json!(false), &json!(null)));
        ada.post("state", json!({ "isUserLocked": true, "lockedUntil": "2099-01-01T00:00:00Z" })).await.expect(200);
        ada.change(FIRST, SECOND).await.expect(200);
    }

    /// Attempts refused by the throttle count nothing; each further failure doubles the delay.
    ///
    /// - Effect of `UserStore options.LoginThrottlingInitialDelay`: The first failed sign-in causes this wait, which doubles with each
    ///   further one.
    /// - Effect of `UserStore options.LoginThrottlingMaxDelay`: The wait grows no longer than this.
    async fn the_throttle_slows_guesses(world: World) {
        set_all(&world.admin, &[("LoginThrottlingInitialDelay", "01:00:00"), ("LoginThrottlingMaxDelay", "03:00:00")]).await;
        let ada = Person::named(&world, "ada").await;
        let seen = burst_at(&world, &ada, 12).await;
        assert_eq!((counters(&seen), &seen["lockedUntil"]), ((1, 1), &json!(null)));
        ada.change(FIRST, SECOND).await.expect(400);
        for (failures, delay) in [(1, HOUR), (2, 2 * HOUR), (3, 3 * HOUR)] {
            ada.age(delay - MINUTE).await;
            ada.change(FIRST, SECOND).await.expect(400);
            assert_eq!(counters(&ada.read().await), (failures, failures), "too soon");
            ada.age(MINUTE).await;
            ada.change("not it", SECOND).await.expect(400);
        }
        ada.age(3 * HOUR).await;
        ada.change(FIRST, SECOND).await.expect(200);
        ada.change(SECOND, FIRST).await.expect(200);
    }

    /// The attempt that reaches the limit keeps others out until it is decided; one that is never
    /// decided has failed.
    async fn an_attempt_that_was_never_decided_has_failed(world: World) {
        set(&world.admin, "LoginThrottlingEnabled", "false").await;
        let ada = Person::named(&world, "ada").await;
        let begin = |ago: i64| (
            "UPDATE user_account SET failed_user_login_attempts = 5, failed_temporary_lock_attempts = 5, \
             closing_attempt = ?1, closing_since = ?2",
            vec![Bound::Id(Uuid::from_u128(7)), Bound::Int(now() - ago)],
        );
        world.sql(vec![begin(1000)]).await;
        ada.change(FIRST, SECOND).await.expect(400);
        let seen = ada.read().await;
        assert_eq!((counters(&seen), &seen["lockedUntil"]), ((5, 5), &json!(null)));
        world.sql(vec![begin(61_000)]).await;
        ada.change(FIRST, SECOND).await.expect(400);
        let seen = ada.read().await;
        assert_eq!(counters(&seen), (5, 5));
        assert!(seen["lockedUntil"].is_string());
        ada.age(5 * MINUTE).await;
        ada.change(FIRST, SECOND).await.expect(200);
    }

    /// UserLockNotificationEnabled: the recipients are notified of each lock, once.
    ///
    /// - Effect of `UserStore options.UserLockNotificationEnabled`: Operators get a mail when a user is locked.
    async fn operators_are_notified_of_locks(world: World) {
        set_mail_server(&world.admin).await;
        set_all(&world.admin, &[
            ("LoginThrottlingEnabled", "false"), ("AttemptsBeforeTemporaryLock", "2"), ("UserLockNotificationEnabled", "true"),
            ("UserLockNotificationRecipients", "a@example.com, b@example.com"),
        ]).await;
        let ada = Person::named(&world, "ada").await;
        burst_at(&world, &ada, 6).await;
        let sent = mails(&world).await;
        assert_eq!(sent.iter().map(|mail| mail["recipient"].as_str().unwrap()).collect::<Vec<_>>(), ["a@example.com", "b@example.com"]);
        assert!(sent.iter().all(|mail| mail["login_name"] == "ada" && mail["until"].is_i64()));
        set(&world.admin, "UserLockNotificationEnabled", "false").await;
        ada.age(5 * MINUTE).await;
        burst_at(&world, &ada, 6).await;
        assert_eq!(mails(&world).await.len(), 2);
    }
}

/// Two processes count as one.
#[tokio::test]
async fn nobody_gets_more_guesses_from_two_processes() {
    let database = Database::create(Engine::Postgres);
    let (left, right) = (Process::start(&database, &[]).await, Process::start(&database, &[]).await);
    set(&left.admin, "LoginThrottlingEnabled", "false").await;
    let users = "/api/userstore/v2/default/administration/User";
    let user = left.admin.post(users, json!({ "loginName": "ada" })).await.is(201).json();
    let path = format!("{users}/{}/password", id(&user));
    left.admin.post(&format!("{path}/reset"), json!({ "newPassword": FIRST })).await.expect(200);
    let change = format!("{path}/change");
    burst(16, &[(&left.admin, change.clone()), (&right.admin, change)]).await;
    let seen = right.admin.get(&format!("{users}/{}", id(&user))).await.is(200).json();
    assert_eq!(counters(&seen), (5, 5));
    assert!(seen["lockedUntil"].is_string());
}
