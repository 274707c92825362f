//! Events: what happened, as `CloudEvents` 1.0 envelopes in the outbox. They hold ids and names of members, never
//! values.

use chancery_record::{Value, format_timestamp};
use chancery_store::{Tx, raw};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use super::entry::written;
use crate::{Context, Problem};

/// An event of a change.
pub struct Event<'a, D> {
    /// Its number, that of its audit entry if it has one.
    pub number: i64,
    /// The store whose trail it belongs to; 0 is the configuration's, and that of sign-ins.
    pub store: i64,
    /// Where it happened.
    pub source: String,
    /// Its type, without `platform.`.
    pub kind: String,
    /// The key of what it is about.
    pub subject: &'a str,
    /// More about it.
    pub data: D,
}

#[derive(Serialize)]
struct Envelope<'a, D> {
    specversion: &'static str,
    id: String,
    source: String,
    r#type: String,
    subject: &'a str,
    time: String,
    datacontenttype: &'static str,
    data: D,
}

impl<D: Serialize> Event<'_, D> {
    /// Writes the event with the changes of the transaction.
    pub fn queue(self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let mut time = Vec::new();
        format_timestamp(context.now, &mut time);
        let envelope = written(&Envelope {
            specversion: "1.0",
            id: self.number.to_string(),
            source: self.source,
            r#type: format!("platform.{}", self.kind),
            subject: self.subject,
            time: String::from_utf8(time).unwrap_or_default(),
            datacontenttype: "application/json",
            data: self.data,
        })?;
        let parameters = vec![Value::Int(self.number), Value::Int(self.store), envelope.into()];
        raw::queue(tx, "INSERT INTO outbox_event (id, store, envelope) VALUES (?1, ?2, ?3)", parameters)?;
        Ok(())
    }
}

/// What happened to run-time state of sign-ins, which is not audited: sessions, grants, attempts.
pub struct SignInEvent {
    /// What happened, e.g. `session.created`.
    pub what: &'static str,
    /// The id of the session, grant or record.
    pub id: Uuid,
    /// The subscription of the tenant.
    pub subscription: Option<Uuid>,
    /// The tenant.
    pub tenant: Uuid,
    /// The instance by which the person signed in.
    pub instance: Option<Uuid>,
    /// The platform user.
    pub person: Uuid,
    /// The client app.
    pub client_app: Option<Uuid>,
    /// The session.
    pub session: Option<Uuid>,
}

impl SignInEvent {
    /// Announces it with the changes of the transaction. Whoever acts in the context is its actor.
    ///
    /// # Errors
    /// Those of the store.
    pub fn announce(self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let id = self.id.to_string();
        let members = |members: [(&str, Option<Uuid>); 3]| -> Map<String, Json> {
            let known = members.into_iter().filter_map(|(name, id)| Some((name.to_owned(), id?)));
            known.map(|(name, id)| (name, json!(id))).collect()
        };
        let mut data = members([
            ("platformUserId", Some(self.person)),
            ("clientAppId", self.client_app),
            ("sessionId", self.session),
        ]);
        data.insert("id".to_owned(), json!(id));
        data.insert("actor".to_owned(), json!(context.actor));
        let scope = members([
            ("subscriptionId", self.subscription),
            ("tenantId", Some(self.tenant)),
            ("idpInstanceId", self.instance),
        ]);
        data.insert("scope".to_owned(), Json::Object(scope));
        let event = Event {
            number: context.app.audit_signer.number(context.now, 0),
            store: 0,
            source: self.subscription.map_or_else(|| "/signin".to_owned(), |id| format!("/signin/{id}")),
            kind: format!("signin.{}", self.what),
            subject: &id,
            data,
        };
        event.queue(context, tx)
    }
}
