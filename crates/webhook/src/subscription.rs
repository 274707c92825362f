//! The resource: receivers of events.

use chancery_record::{
    DERIVED, DefaultValue, Email, FIXED, FieldType, HIDDEN, KEY, Kind, ListRule, Mismatch, Name, OPEN,
    OptionValue, PairsRule, SHOWN, Sealing, ShortText, TextRule, Timestamp, Token, Value, WebAddress,
    choice_types, id_types, list_of, list_value, pairs_of, pairs_value, record,
};
use chancery_resource::{
    Context, EventCursor, EventName, EventType, Problem, ProblemKind, ProposedRow, SIGN_INS, Scope,
    StateTable, StoreError, Tx, Violation, Writer, event_name, event_type, open_secret,
};
use url::Url;
use uuid::Uuid;

use crate::secret::new_secret;

/// The table of the resource.
pub const TABLE: &str = "event_subscription";

id_types! {
    /// The id of an event subscription.
    EventSubscriptionId
}

choice_types! {
    /// How deliveries preserve the order of events.
    EventOrdering {
        /// Later events of a subject wait behind one that is tried again.
        Subject,
        /// None waits for another.
        None,
    }
    /// The status of deliveries.
    EventStatus {
        /// Nothing is sent yet.
        Pending,
        /// Events are delivered.
        Active,
        /// Something could not be delivered, and is tried again.
        Failing,
        /// Nothing is sent any more: the receiver refused for good, or failed for five days.
        Disabled,
    }
}

/// A type of events, perhaps ending in an asterisk.
static TYPE: TextRule = TextRule {
    name: "EventType",
    min: 1,
    max: 200,
    pattern: Some(r"^[a-z0-9.-]*\*?$"),
    example: "platform.userstore.user.*",
    shape: |text| {
        let start = text.strip_suffix('*').unwrap_or(text);
        let is_good = start
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte));
        if is_good {
            Ok(None)
        } else {
            Err("a type such as platform.userstore.user.created, or the beginning of one and *")
        }
    },
    ..TextRule::PLAIN
};

/// The name of a header (RFC 9110, section 5.1).
static HEADER_NAME: TextRule = TextRule {
    name: "HeaderName",
    min: 1,
    max: 64,
    pattern: Some(r"^[A-Za-z0-9_-]+$"),
    example: "X-Api-Key",
    shape: |text| {
        let is_good = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if is_good { Ok(None) } else { Err("letters, digits, dashes and underscores") }
    },
    ..TextRule::PLAIN
};

/// The value of a header: printable ASCII.
static HEADER_VALUE: TextRule = TextRule {
    name: "HeaderValue",
    min: 1,
    max: 500,
    pattern: Some(r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$"),
    example: "a secret of the receiver",
    shape: |text| {
        let is_good = text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim() == text;
        if is_good { Ok(None) } else { Err("printable ASCII without white space at its ends") }
    },
    ..TextRule::PLAIN
};

static TYPES: ListRule = ListRule { item: &TYPE, most: 50 };
static HEADERS: PairsRule = PairsRule { name: &HEADER_NAME, value: &HEADER_VALUE, most: 10 };

/// Types of events; all where there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTypes(pub Vec<String>);

impl FieldType for EventTypes {
    const KIND: Kind = Kind::Texts(&TYPES);
    fn into_value(self) -> Value {
        list_value(&self.0)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        let Value::Text(text) = value else { return Err(Mismatch("")) };
        list_of(&text).map(Self).ok_or(Mismatch(""))
    }
}

/// Headers of requests by their names; a value that is not told is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventHeaders(pub Vec<(String, Option<String>)>);

impl FieldType for EventHeaders {
    const KIND: Kind = Kind::Pairs(&HEADERS);
    fn into_value(self) -> Value {
        pairs_value(&self.0)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        let Value::Text(text) = value else { return Err(Mismatch("")) };
        pairs_of(&text).map(Self).ok_or(Mismatch(""))
    }
}

record! {
    /// An event subscription: a receiver to which events are sent, each as a signed request (Standard Webhooks 1.0).
    pub struct EventSubscription {
        /// The subscription.
        id: EventSubscriptionId = KEY,
        /// Its name.
        name: Name = OPEN,
        /// The URL to which events are sent: https, at port 443 or a port from 1024 on. The receiver must be on the public internet, or in
        /// a network that the operator allows.
        #[de(
            "Adresse",
            "Die URL, an die Ereignisse gesendet werden: https, an Port 443 oder einem Port ab 1024. Der Empfänger muss im öffentlichen Internet sein oder in einem Netz, das der Betreiber erlaubt."
        )]
        url: WebAddress = OPEN.like("https://receiver.example.com/events"),
        /// The types of events that are sent. A type may end in an asterisk. If empty, all types are sent.
        #[de(
            "Arten von Ereignissen",
            "Die Arten von Ereignissen, die gesendet werden. Eine Art darf mit einem Stern enden. Ohne Angabe werden alle gesendet."
        )]
        types: EventTypes = OPEN.or(DefaultValue::Text("[]")),
        /// Whether events are sent. Activate the subscription after a test has succeeded. Events are sent from the activation on.
        #[de(
            _,
            "Ob Ereignisse gesendet werden. Schalten Sie den Webhook nach einem erfolgreichen Test ein. Ereignisse werden ab dem Einschalten gesendet."
        )]
        is_active: bool = OPEN.or(DefaultValue::Bool(false)),
        /// The status of deliveries.
        status: EventStatus = DERIVED.or(DefaultValue::Text("Pending")),
        /// How deliveries preserve the order of events.
        #[de("Reihenfolge", "Wie Zustellungen die Reihenfolge der Ereignisse einhalten.")]
        ordering: EventOrdering = OPEN.or(DefaultValue::Text("Subject")),
        /// The e-mail address that is notified when the subscription is disabled.
        #[de("Ansprechpartner", "Die E-Mail-Adresse, die benachrichtigt wird, wenn der Webhook abgeschaltet wird.")]
        contact: Option<Email> = OPEN,
        /// The headers of every request. Their values are returned as null. In a request, null keeps the stored value.
        #[de(
            "Kopfzeilen",
            "Die Header jeder Anfrage. Ihre Werte werden nicht angezeigt. Ohne Angabe bleibt der gespeicherte Wert erhalten."
        )]
        headers: EventHeaders = OPEN.or(DefaultValue::Text("{}")),
        /// A cursor of the feed after which the subscription starts, instead of at its activation.
        #[de("Beginnen nach", "Eine Stelle im Feed, hinter der der Webhook beginnt, statt beim Einschalten.")]
        start_after: Option<ShortText> = FIXED.unstored(),
        /// The secret with which requests are signed. It is returned when it is created and never again.
        secret: Option<ShortText> = SHOWN.unstored(),
        /// The platform subscription whose events are sent. It is `Default` if that is the only one. A user store has none.
        #[de(
            _,
            "Das Abonnement der Plattform, dessen Ereignisse gesendet werden. Es ist `Default`, wenn dies das einzige ist. Ein Benutzerspeicher hat keines."
        )]
        subscription_id: Option<Uuid> = FIXED,
        /// The tenant to whose events the subscription is restricted.
        #[de(_, "Der Mandant, auf dessen Ereignisse der Webhook beschränkt ist.")]
        apply_to_tenant_id: Option<Uuid> = FIXED,
        /// The number of events that were delivered.
        #[de("Zugestellt")]
        delivered: i64 = DERIVED.or(DefaultValue::Int(0)),
        /// The number of deliveries that wait for another attempt, or behind such a delivery. 1,001 means more than 1,000.
        #[de("Wartend")]
        waiting: i64 = DERIVED.or(DefaultValue::Int(0)),
        /// The number of deliveries that were given up and can be replayed. 1,001 means more than 1,000.
        #[de("Fehlgeschlagen")]
        dead: i64 = DERIVED.or(DefaultValue::Int(0)),
        /// When a delivery last succeeded.
        #[de("Zuletzt gelungen")]
        last_success_on: Option<Timestamp> = DERIVED,
        /// When a delivery last failed.
        #[de("Letzter Fehler")]
        last_failure_on: Option<Timestamp> = DERIVED,
        /// The reason for the failure.
        #[de("Fehlerursache")]
        last_failure: Option<ShortText> = DERIVED,
        /// The headers with their values.
        sealed_headers: Option<OptionValue> = HIDDEN.sealed(Sealing::Secret),
        /// What signs.
        signing_secret: Option<OptionValue> = HIDDEN.sealed(Sealing::Secret),
        /// What signed before.
        former_secret: Option<OptionValue> = HIDDEN.sealed(Sealing::Secret),
        /// Until when that signs, too.
        former_until: Option<Timestamp> = HIDDEN,
        /// The address that the last successful test went to.
        tested_url: Option<WebAddress> = HIDDEN,
        /// Where it begins.
        begins_after: Option<ShortText> = HIDDEN,
        /// Concurrency token. It changes with every write to the subscription.
        concurrency_token: Token = SHOWN,
    }
}

/// The query of subscriptions: the rows, and the health of their deliveries. The condition on the store follows.
macro_rules! subscriptions {
    ($condition:literal) => {
        concat!(
            "(SELECT s.*, CASE WHEN s.is_active THEN CASE WHEN coalesce(f.failures, 0) > 0 THEN 'Failing' ELSE 'Active' END \
             WHEN f.disabled_on IS NULL THEN 'Pending' ELSE 'Disabled' END AS status, \
             coalesce(f.delivered, 0) AS delivered, f.last_success_on, f.last_failure_on, f.last_failure, \
             (SELECT count(*) FROM (SELECT 1 FROM event_delivery d WHERE d.subscription_id = s.id AND d.dead_on IS NULL \
             LIMIT 1001) w) AS waiting, \
             (SELECT count(*) FROM (SELECT 1 FROM event_delivery d WHERE d.subscription_id = s.id AND d.dead_on IS NOT NULL \
             LIMIT 1001) w) AS dead \
             FROM event_subscription s LEFT JOIN event_subscriber f ON f.subscription_id = s.id WHERE ",
            $condition,
            ")"
        )
    };
}

/// The queries of subscriptions: those of the configuration, and those of user stores.
pub const SUBSCRIPTIONS: [&str; 2] =
    [subscriptions!("s.store IS NULL"), subscriptions!("s.store IS NOT NULL")];

/// The events of a subscription that are not named after it.
pub const NAMED_EVENTS: &[(EventName, EventType)] =
    &[(event_name!("subscription-disabled"), event_type!("platform.event.subscription-disabled"))];

/// Headers that are the server's own, or would change the meaning of a request.
const RESERVED: [&str; 14] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];

/// The trails whose events a subscription of these types gets.
pub fn trails(store: Option<i64>, types: &[String]) -> Vec<i64> {
    if let Some(store) = store {
        return vec![store];
    }
    let signs_in = |kind: &String| match kind.strip_suffix('*') {
        Some(start) => start.starts_with(OF_SIGN_INS) || OF_SIGN_INS.starts_with(start),
        None => kind.starts_with(OF_SIGN_INS),
    };
    let is_other = |kind: &String| !kind.starts_with(OF_SIGN_INS);
    let mut trails = Vec::new();
    if types.is_empty() || types.iter().any(is_other) {
        trails.push(0);
    }
    if types.is_empty() || types.iter().any(signs_in) {
        trails.push(SIGN_INS);
    }
    trails
}

/// The prefix of the types of events in sign-ins.
const OF_SIGN_INS: &str = "platform.signin.";

fn fault(row: usize, kind: ProblemKind, field: &'static chancery_record::Field, detail: &str) -> Violation {
    Violation { row, kind, field, detail: detail.to_owned() }
}

/// Checks subscriptions, and creates the secret and the first cursor of new ones.
///
/// # Errors
/// The row is of another record.
pub fn prepare(writer: Writer<'_>, rows: &mut [ProposedRow<'_>]) -> Result<Vec<Violation>, Problem> {
    let mut violations = Vec::new();
    for (index, row) in rows.iter_mut().enumerate() {
        let mut wrong = |kind, field: &'static chancery_record::Field, detail: &str| {
            violations.push(fault(index, kind, field, detail));
        };
        let url = row.get(EventSubscription::URL)?;
        if let Err(detail) = check_address(url.as_str()) {
            wrong(ProblemKind::InvalidRequest, EventSubscription::URL.field(), detail);
        }
        if row.get(EventSubscription::IS_ACTIVE)? && row.get(EventSubscription::TESTED_URL)? != Some(url) {
            let detail = "is for after a test: create or change the subscription with isActive false, call its test, \
                then activate it";
            wrong(ProblemKind::Conflict, EventSubscription::IS_ACTIVE.field(), detail);
        }
        if let Err(detail) = merge_headers(writer, row)? {
            wrong(ProblemKind::InvalidRequest, EventSubscription::HEADERS.field(), &detail);
        }
        set_status(row)?;
        let given = row.text(EventSubscription::START_AFTER).map(str::to_owned);
        row.set(EventSubscription::START_AFTER, None)?;
        if row.was.is_some() {
            row.set(EventSubscription::SECRET, None)?;
            continue;
        }
        if let Some(cursor) = given {
            let types = row.get(EventSubscription::TYPES)?.0;
            let trails = trails(store_of(writer.context), &types);
            let read = EventCursor::read(&writer.context.app, &cursor);
            if read.is_some_and(|cursor| trails.contains(&cursor.trail)) {
                row.set(EventSubscription::BEGINS_AFTER, ShortText::new(cursor).ok())?;
            } else {
                let detail = "is no cursor of the feed of these events: take next of an answer, or X-Event-Cursor of a list";
                wrong(ProblemKind::InvalidRequest, EventSubscription::START_AFTER.field(), detail);
            }
        }
        give_secret(row.values);
    }
    Ok(violations)
}

/// Sets the status after a change in the answer: a read returns the same.
fn set_status(row: &mut ProposedRow<'_>) -> Result<(), Problem> {
    let is_active = row.get(EventSubscription::IS_ACTIVE)?;
    let was_active = row.was.is_some_and(|was| was.get(EventSubscription::IS_ACTIVE) == Ok(true));
    if is_active != was_active {
        let status = if is_active { EventStatus::Active } else { EventStatus::Pending };
        row.set(EventSubscription::STATUS, status)?;
    }
    Ok(())
}

/// The user store of a context.
pub const fn store_of(context: &Context) -> Option<i64> {
    if let Scope::Store(store) = &context.scope { Some(store.number) } else { None }
}

/// Gives values a new secret, which the answer to this call shows.
pub fn give_secret(values: &mut [Value]) {
    let secret = new_secret();
    EventSubscription::SIGNING_SECRET.field().set(values, secret.as_str().into());
    EventSubscription::SECRET.field().set(values, secret.into());
}

/// Whether events can be sent to an address; `Err` is the requirement.
fn check_address(text: &str) -> Result<(), &'static str> {
    let url = Url::parse(text).map_err(|_| "must be a URL")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must name no user: a receiver knows the request by its signature, or by headers");
    }
    if url.fragment().is_some() {
        return Err("must have no fragment: it is not sent");
    }
    match url.port_or_known_default() {
        Some(443 | 1024..) => Ok(()),
        Some(80) if url.scheme() == "http" => Ok(()),
        _ => Err("must be at port 443, or at one from 1024 on"),
    }
}

/// Merges the values of headers: null retains the stored one. Answers have names alone.
fn merge_headers(writer: Writer<'_>, row: &mut ProposedRow<'_>) -> Result<Result<(), String>, Problem> {
    let given = row.get(EventSubscription::HEADERS)?.0;
    let key = Value::Id(row.get(EventSubscription::ID)?.0);
    let stored = row.text(EventSubscription::SEALED_HEADERS).and_then(|text| {
        open_secret(&writer.context.app.master, TABLE, EventSubscription::SEALED_HEADERS.column(), &key, text)
    });
    let stored = stored.as_deref().and_then(pairs_of).unwrap_or_default();
    let mut all = Vec::with_capacity(given.len());
    for (name, value) in given {
        let lower = name.to_ascii_lowercase();
        if RESERVED.contains(&lower.as_str()) || lower.starts_with("webhook-") {
            return Ok(Err(format!("must not name {name:?}: that header is the server's own")));
        }
        let known = || {
            stored
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(&name))
                .and_then(|(_, value)| value.clone())
        };
        let Some(value) = value.or_else(known) else {
            return Ok(Err(format!("has no value for {name:?}: null keeps one that is there")));
        };
        all.push((name, Some(value)));
    }
    if all != stored {
        let sealed = if all.is_empty() { Value::Null } else { pairs_value(&all) };
        EventSubscription::SEALED_HEADERS.field().set(row.values, sealed);
    }
    row.set(
        EventSubscription::HEADERS,
        EventHeaders(all.into_iter().map(|(name, _)| (name, None)).collect()),
    )?;
    Ok(Ok(()))
}

/// Stores the cursors of an active subscription in its trails, if it has none there: events placed before are not sent.
pub fn store_reader_cursors(context: &Context, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    if !EventSubscription::IS_ACTIVE.get(values)? {
        return Ok(());
    }
    let id = EventSubscription::ID.get(values)?.0;
    let types = EventSubscription::TYPES.get(values)?.0;
    let begins =
        EventSubscription::BEGINS_AFTER.text(values).and_then(|text| EventCursor::read(&context.app, text));
    for trail in trails(store_of(context), &types) {
        if let Some(cursor) = begins.filter(|cursor| cursor.trail == trail) {
            let text = "(subscription_id, trail, position, event) SELECT s.id, ?2, ?3, ?4 FROM event_subscription s \
                WHERE s.id = ?1 ON CONFLICT DO NOTHING";
            let row = vec![Value::Id(id), trail.into(), cursor.position.into(), cursor.event.into()];
            tx.queue(&StateTable::EventReader.insert(text), row)?;
            continue;
        }
        // a subscription that was deleted begins nowhere; earlier events that are not placed yet are not sent either
        let text = "(subscription_id, trail, position, event, since) SELECT s.id, ?2, \
            coalesce((SELECT placed FROM event_trail WHERE trail = ?2), 0), \
            coalesce((SELECT p.event FROM event_trail t JOIN event_place p ON p.trail = t.trail AND p.position = t.placed \
            WHERE t.trail = ?2), 0), \
            coalesce((SELECT event FROM event_pending WHERE trail = ?2 ORDER BY event DESC LIMIT 1), 0) FROM event_subscription s \
            WHERE s.id = ?1 ON CONFLICT DO NOTHING";
        tx.queue(&StateTable::EventReader.insert(text), vec![Value::Id(id), trail.into()])?;
    }
    let text = "SET disabled_on = NULL, failing_since = NULL, failures = 0, paused_until = 0 \
        WHERE subscription_id = ?1 AND disabled_on IS NOT NULL";
    Ok::<_, StoreError>(tx.queue(&StateTable::EventSubscriber.update(text), vec![Value::Id(id)])?)
        .map_err(Problem::from)
}

#[cfg(test)]
mod tests {
    use super::{check_address, trails};

    #[test]
    fn types_determine_the_trails_that_are_read() {
        let of =
            |types: &[&str]| trails(None, &types.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]), [0, -1]);
        assert_eq!(of(&["*"]), [0, -1]);
        assert_eq!(of(&["platform.s*"]), [0, -1]);
        assert_eq!(of(&["platform.signin.*"]), [-1]);
        assert_eq!(of(&["platform.signin.session.created"]), [-1]);
        assert_eq!(of(&["platform.management.tenant.created"]), [0]);
        assert_eq!(trails(Some(7), &["platform.signin.*".to_owned()]), [7]);
    }

    #[test]
    fn addresses_are_those_that_a_receiver_can_have() {
        for good in [
            "https://a.example/x?y=z",
            "https://a.example:8443",
            "http://localhost:8080/",
            "http://127.0.0.1/",
        ] {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        for wrong in [
            "https://u@a.example",
            "https://u:p@a.example",
            "https://a.example:22",
            "https://a.example#x",
            "https://a.example:80",
        ] {
            assert!(check_address(wrong).is_err(), "{wrong}");
        }
    }
}
