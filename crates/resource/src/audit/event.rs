//! Events as `CloudEvents` 1.0 envelopes in the outbox. They contain ids and names of members, never values.
//! Position and scope, which only readers need, are added at reading.

use std::borrow::Cow;

use chancery_record::{Value, format_timestamp};
use chancery_store::{Tx, raw};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use super::{entry::to_json, placement::Placement};
use crate::{Context, Problem, Sql, declare::event_name::EventType, seal::compact::stored_text};

/// The trail of sign-in activity (sessions, grants, attempts). A user store's trail has the store's number, the
/// configuration's is 0.
pub const SIGN_INS: i64 = -1;

/// An event of a change.
pub struct Event<'a, D> {
    /// Its number, that of its audit entry if it has one.
    pub number: i64,
    /// The trail in which it gets a position.
    pub trail: i64,
    /// The store of its audit entry, if it has one.
    pub tree: Option<i64>,
    /// Its type.
    pub kind: Cow<'static, str>,
    /// The key of its subject.
    pub subject: &'a str,
    /// The scope of the subject.
    pub placement: Placement,
    /// Further data.
    pub data: D,
}

#[derive(Serialize)]
struct Envelope<'a, D> {
    specversion: &'static str,
    id: String,
    r#type: &'a str,
    subject: &'a str,
    time: String,
    datacontenttype: &'static str,
    data: D,
}

impl<D: Serialize> Event<'_, D> {
    /// Writes the event, and its pending entry for a position, with the changes of the transaction.
    pub fn queue(self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let mut time = Vec::new();
        format_timestamp(context.now, &mut time);
        let envelope = to_json(&Envelope {
            specversion: "1.0",
            id: self.number.to_string(),
            r#type: &self.kind,
            subject: self.subject,
            time: String::from_utf8(time).unwrap_or_default(),
            datacontenttype: "application/json",
            data: self.data,
        })?;
        let mut sql = Sql::new(
            "INSERT INTO outbox_event (id, store, envelope, traceparent, customer_id, subscription_id, tenant_id, \
             idp_instance_id) VALUES (",
        );
        let traceparent = context.trace.map(|trace| traceparent(trace, self.number));
        let envelope = stored_text(envelope);
        let known = [Value::Int(self.number), Value::Int(self.trail), envelope.into(), traceparent.into()];
        for value in known {
            sql = sql.bind(value).push(", ");
        }
        self.placement.add(&mut sql);
        sql.add(")");
        raw::queue(tx, &sql.text, sql.parameters)?;
        let pending = "INSERT INTO event_pending (trail, event, tree) VALUES (?1, ?2, ?3)";
        let tree = self.tree.map_or(Value::Null, Value::Int);
        raw::queue(tx, pending, vec![Value::Int(self.trail), Value::Int(self.number), tree])?;
        Ok(())
    }
}

/// A `traceparent` (W3C Trace Context) of the request: the event's number stands for the span.
fn traceparent(trace: u128, number: i64) -> String {
    format!("00-{trace:032x}-{number:016x}-01")
}

/// An event of sign-in activity, which is not audited: sessions, grants, attempts.
pub struct SignInEvent {
    /// The type of the event.
    pub kind: EventType,
    /// The id of the session, grant or record.
    pub id: Uuid,
    /// The subscription of the tenant.
    pub subscription: Option<Uuid>,
    /// The tenant.
    pub tenant: Uuid,
    /// The identity provider instance through which the person signed in.
    pub instance: Option<Uuid>,
    /// The platform user.
    pub person: Uuid,
    /// The client app.
    pub client_app: Option<Uuid>,
    /// The session.
    pub session: Option<Uuid>,
}

impl SignInEvent {
    /// Emits it with the changes of the transaction. The context's actor is its actor.
    pub fn announce(self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let id = self.id.to_string();
        let members = [
            ("platformUserId", Some(self.person)),
            ("clientAppId", self.client_app),
            ("sessionId", self.session),
        ];
        let known = members.into_iter().filter_map(|(name, id)| Some((name.to_owned(), json!(id?))));
        let mut data: Map<String, Json> = known.collect();
        data.insert("id".to_owned(), json!(id));
        data.insert("actor".to_owned(), json!(context.actor));
        let event = Event {
            number: context.app.audit_signer.number(context.now, 0),
            trail: SIGN_INS,
            tree: None,
            kind: self.kind.as_str().into(),
            subject: &id,
            placement: Placement::of_sign_in(self.subscription, self.tenant, self.instance),
            data,
        };
        event.queue(context, tx)
    }
}
