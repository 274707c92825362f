//! Arbitrary requests, facts and events.

use chancery_record::Timestamp;
use proptest::{prelude::*, sample::subsequence};
use uuid::Uuid;

use crate::{
    Acr, Action, Choice, CodeKind, Consent, DueAction, Enrolment, Event, Granted, InstanceFacts,
    InstanceKind, Method, NotAdmitted, PasskeyFacts, PersonFacts, Prompt, Proof, Proven, Request,
    SecondFactors, SessionFacts, Step, TenantFacts, Urgency, UsableFactor,
    tests::{
        ALICE, BOB, EMAIL, NOON, OTHER_TENANT, PROVIDER, STORE, TENANT, TOTP, World, proven, provider, store,
    },
};

pub const OTHER_STORE: Uuid = Uuid::from_u128(13);
pub const TENANTS: [Uuid; 2] = [TENANT, OTHER_TENANT];
pub const PEOPLE: [Uuid; 2] = [ALICE, BOB];
pub const ACTIONS: [Action; 5] =
    [Action::Password, Action::Email, Action::Questionnaire, Action::Terms, Action::Passkey];
const INSTANCES: [Uuid; 3] = [STORE, PROVIDER, OTHER_STORE];

/// Rarely true.
fn rarely() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.15)
}

fn rarely_some<T: Strategy>(strategy: T) -> impl Strategy<Value = Option<T::Value>> {
    prop::option::weighted(0.15, strategy)
}

fn any_passkey() -> impl Strategy<Value = Method> {
    any::<(bool, bool)>().prop_map(|(user_verified, hardware)| Method::Passkey { user_verified, hardware })
}

fn any_method() -> impl Strategy<Value = Method> {
    prop_oneof![
        4 => Just(Method::Password),
        1 => Just(Method::AccessPass),
        2 => any_passkey(),
        2 => any::<bool>().prop_map(|second_factor| Method::External { second_factor, auth_time: None }),
        2 => Just(Method::Totp),
        1 => Just(Method::EmailCode),
        1 => Just(Method::SmsCode),
        1 => Just(Method::RecoveryCode),
    ]
}

fn any_proof() -> impl Strategy<Value = Proof> {
    let instances =
        (prop::sample::select(&INSTANCES[..]), prop::sample::select(&[TOTP, EMAIL][..]), rarely());
    (prop::sample::select(&PEOPLE[..]), instances, any_method(), 0_i64..7_200_000).prop_map(
        |(person, (instance, factor, is_mismatched), method, age)| {
            let instance = match method {
                _ if is_mismatched => instance,
                Method::External { .. } => PROVIDER,
                _ if !method.is_first() => factor,
                _ if instance == PROVIDER => STORE,
                _ => instance,
            };
            Proof { person, instance, method, credential: None, at: NOON.plus(-age) }
        },
    )
}

fn any_sessions() -> impl Strategy<Value = Vec<SessionFacts>> {
    let one = (
        prop::sample::select(&TENANTS[..]),
        prop::sample::select(&PEOPLE[..]),
        prop::collection::vec(any_proof(), 1..4),
        any::<bool>(),
        prop::bool::weighted(0.9),
    );
    prop::collection::vec(one, 0..3).prop_map(|all| {
        type Generated = (Uuid, Uuid, Vec<Proof>, bool, bool);
        let session =
            |(number, (tenant, person, mut proofs, fits_login_hint, is_consistent)): (u128, Generated)| {
                if is_consistent {
                    for proof in &mut proofs {
                        proof.person = person;
                    }
                }
                SessionFacts { id: Uuid::from_u128(41 + number), tenant, person, proofs, fits_login_hint }
            };
        (0_u128..).zip(all).map(session).collect()
    })
}

fn any_tenants() -> impl Strategy<Value = Vec<TenantFacts>> {
    let other = InstanceFacts { id: OTHER_STORE, ..store() };
    let instances = (
        prop_oneof![3 => Just(vec![store(), provider(), other]), 1 => subsequence(vec![store(), provider(), other], 0..=3)],
        rarely(),
        any::<bool>(),
    )
        .prop_map(|(mut instances, is_hidden, believed)| {
            for instance in &mut instances {
                if matches!(instance.kind, InstanceKind::External { .. }) {
                    instance.kind = InstanceKind::External { believed };
                } else {
                    instance.is_hidden = is_hidden;
                }
            }
            instances
        });
    let tenants = prop_oneof![
        4 => Just(vec![TENANT]),
        2 => Just(TENANTS.to_vec()),
        1 => subsequence(TENANTS.to_vec(), 0..=2),
    ];
    (tenants, prop::collection::vec(instances, 2)).prop_map(|(tenants, instances)| {
        tenants.into_iter().zip(instances).map(|(id, instances)| TenantFacts { id, instances }).collect()
    })
}

fn any_second_factors() -> impl Strategy<Value = SecondFactors> {
    let usable = any::<(bool, bool)>().prop_map(|(first, second)| {
        vec![
            UsableFactor { instance: TOTP, kind: CodeKind::Totp, is_enrolled: first },
            UsableFactor { instance: EMAIL, kind: CodeKind::Email, is_enrolled: second },
        ]
    });
    let usable =
        usable.prop_flat_map(|all| prop_oneof![3 => Just(all.clone()), 1 => subsequence(all, 0..=2)]);
    let enrolment =
        prop::sample::select(&[Enrolment::Closed, Enrolment::AtSignIn, Enrolment::AfterAccessPass][..]);
    (any::<bool>(), usable, any::<bool>(), enrolment, rarely(), any::<bool>()).prop_map(
        |(are_required, usable, has_recovery_code, enrolment, is_remembered, does_passkey_satisfy)| {
            SecondFactors {
                are_required,
                usable,
                has_recovery_code,
                enrolment,
                is_remembered,
                does_passkey_satisfy,
            }
        },
    )
}

fn any_person() -> impl Strategy<Value = PersonFacts> {
    let passkey = any::<(bool, bool)>()
        .prop_map(|(verifies_user, is_hardware)| PasskeyFacts { verifies_user, is_hardware });
    let urgency = prop::sample::select(&[Urgency::Required, Urgency::Offered][..]);
    let due = (prop::sample::select(&ACTIONS[..]), urgency)
        .prop_map(|(action, urgency)| DueAction { action, urgency });
    let consent = prop_oneof![
        2 => Just(Consent::Implicit),
        2 => any::<bool>().prop_map(|is_covered| Consent::Explicit { is_covered }),
        1 => Just(Consent::Systematic),
        1 => any::<bool>().prop_map(|is_covered| Consent::External { is_covered }),
    ];
    let refused =
        prop::sample::select(&[NotAdmitted::Account, NotAdmitted::Restricted, NotAdmitted::NoIdentity][..]);
    (
        rarely_some(refused),
        any_second_factors(),
        prop::option::of(passkey),
        prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(due, 0..3)],
        consent,
    )
        .prop_map(|(refused, second_factors, passkey, due, consent)| PersonFacts {
            refused,
            second_factors,
            passkey,
            due,
            consent,
        })
}

pub fn any_world() -> impl Strategy<Value = World> {
    (any_tenants(), subsequence(TENANTS.to_vec(), 0..=2), any_sessions(), any_person())
        .prop_map(|(tenants, in_range, sessions, person)| World { tenants, in_range, sessions, person })
}

fn any_prompt() -> impl Strategy<Value = Prompt> {
    let values = (any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        5 => Just(Prompt::OPEN),
        2 => Just(Prompt::None),
        3 => values.prop_map(|(login, consent, select_account)| Prompt::Pages { login, consent, select_account }),
    ]
}

pub fn any_request() -> impl Strategy<Value = Request> {
    (
        any_prompt(),
        prop::option::weighted(0.3, prop::sample::select(&[0_u64, 60, 3600, u64::MAX][..])),
        rarely_some(prop::sample::select(&PEOPLE[..])),
        any::<bool>(),
        prop_oneof![2 => Just(Vec::new()), 1 => subsequence(Acr::ALL.to_vec(), 0..=4)],
        prop::option::weighted(0.4, prop::sample::select(&TENANTS[..])),
        rarely_some(prop::sample::select(&INSTANCES[..])),
        any::<(bool, bool)>(),
    )
        .prop_map(
            |(
                prompt,
                max_age,
                hinted_person,
                has_login_hint,
                demanded,
                tenant,
                instance,
                (is_native, after_sign_out),
            )| Request {
                started: NOON,
                prompt,
                max_age,
                hinted_person,
                has_login_hint,
                demanded,
                tenant,
                instance,
                requested: vec!["openid".to_owned(), "email".to_owned()],
                is_native,
                after_sign_out,
            },
        )
}

/// One action in a browser: after a delay, in a world that may have changed.
#[derive(Clone, Debug)]
pub struct Move {
    pub wait: i64,
    pub world: Option<World>,
    pub event: EventChoice,
}

/// An event, whether it belongs to the step or not.
#[derive(Clone, Debug)]
pub enum EventChoice {
    /// An event of the step, selected by this number.
    Fitting(usize),
    /// This event.
    Any(Event),
}

fn any_proven() -> impl Strategy<Value = Proven> {
    let instances = prop::sample::select(&[STORE, PROVIDER, OTHER_STORE, TOTP, EMAIL][..]);
    (prop::sample::select(&PEOPLE[..]), instances, any_method())
        .prop_map(|(person, instance, method)| proven(person, instance, method))
}

fn any_event() -> impl Strategy<Value = Event> {
    let action = || prop::sample::select(&ACTIONS[..]);
    prop_oneof![
        Just(Event::Cancelled),
        Just(Event::OtherAccount),
        Just(Event::Back),
        Just(Event::ConsentDenied),
        Just(Event::Continued),
        prop::sample::select(&TENANTS[..]).prop_map(Event::TenantChosen),
        (41_u128..44).prop_map(|id| Event::SessionChosen(Uuid::from_u128(id))),
        any_proven().prop_map(Event::FirstFactorProven),
        any_proven().prop_map(Event::FactorProven),
        any_proven().prop_map(Event::FactorEnrolled),
        Just(Event::OtherFactor(Choice::Passkey)),
        action().prop_map(Event::ActionDone),
        any_proven().prop_map(Event::PasswordSet),
        action().prop_map(Event::Deferred),
        subsequence(vec!["openid", "email", "profile"], 0..=3).prop_map(|words| granted(&words)),
    ]
}

fn granted(words: &[&str]) -> Event {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Event::ConsentGiven(Granted { words, is_remembered: true })
}

pub fn any_moves() -> impl Strategy<Value = Vec<Move>> {
    let wait = prop_oneof![8 => 0_i64..60_000, 1 => 0_i64..1_200_000];
    let event = prop_oneof![
        5 => any::<usize>().prop_map(EventChoice::Fitting),
        1 => any_event().prop_map(EventChoice::Any),
    ];
    let one = (wait, prop::option::weighted(0.2, any_world()), event).prop_map(|(wait, world, event)| Move {
        wait,
        world,
        event,
    });
    prop::collection::vec(one, 0..10)
}

/// The instant after a move.
pub fn later(now: Timestamp, next: &Move) -> Timestamp {
    now.plus(next.wait)
}

impl EventChoice {
    /// The event, for this person's current step.
    pub fn event(&self, step: &Step, person: Option<Uuid>) -> Event {
        match self {
            Self::Any(event) => event.clone(),
            Self::Fitting(seed) => fitting(step, person.unwrap_or(ALICE), *seed),
        }
    }
}

fn at<T: Copy>(all: &[T], seed: usize) -> Option<T> {
    all.get(seed % all.len().max(1)).copied()
}

fn fitting(step: &Step, person: Uuid, seed: usize) -> Event {
    let event = match step {
        Step::Fail(_) | Step::Done(_) => None,
        Step::Tenant(tenants) => at(tenants, seed).map(Event::TenantChosen),
        Step::Account { .. } if seed.is_multiple_of(4) => Some(Event::OtherAccount),
        Step::Account { sessions, .. } => at(sessions, seed).map(Event::SessionChosen),
        Step::FirstFactor(page) => at(&page.offered, seed).map(|instance| {
            let second_factor = seed.is_multiple_of(2);
            let method = match instance.kind {
                InstanceKind::External { .. } => Method::External { second_factor, auth_time: None },
                InstanceKind::Store => at(&STORE_METHODS, seed / 3).unwrap_or(Method::Password),
            };
            let person = page.person.or(at(&PEOPLE, seed / 5)).unwrap_or(ALICE);
            Event::FirstFactorProven(proven(person, instance.id, method))
        }),
        Step::Refuse(_) if seed.is_multiple_of(8) => Some(Event::Back),
        Step::Refuse(_) => Some(Event::OtherAccount),
        Step::SecondFactor(choices) | Step::StepUp { choices, .. } => {
            at(&choices.all, seed).map(|choice| Event::FactorProven(by_choice(choice, person, seed)))
        }
        Step::EnrolFactor(choices) => {
            at(&choices.all, seed).map(|choice| Event::FactorEnrolled(by_choice(choice, person, seed)))
        }
        Step::Action(due) if due.urgency == Urgency::Offered => Some(Event::Deferred(due.action)),
        Step::Action(due) => Some(Event::ActionDone(due.action)),
        Step::Consent if seed.is_multiple_of(8) => Some(Event::ConsentDenied),
        Step::Consent => Some(granted(&["openid"])),
        Step::Touch => Some(Event::Continued),
    };
    event.unwrap_or(Event::Cancelled)
}

const STORE_METHODS: [Method; 5] = [
    Method::Password,
    Method::AccessPass,
    Method::Passkey { user_verified: true, hardware: true },
    Method::Passkey { user_verified: true, hardware: false },
    Method::Passkey { user_verified: false, hardware: false },
];

fn by_choice(choice: Choice, person: Uuid, seed: usize) -> Proven {
    match choice {
        Choice::Code { instance, kind } => proven(person, instance, kind.method()),
        Choice::RecoveryCode { instance } => proven(person, instance, Method::RecoveryCode),
        Choice::Passkey => {
            let method = Method::Passkey { user_verified: true, hardware: seed.is_multiple_of(2) };
            proven(person, at(&[STORE, OTHER_STORE], seed).unwrap_or(STORE), method)
        }
    }
}
