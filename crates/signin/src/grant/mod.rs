//! Grants of a person to a client app. A person's tokens contain the grant's id and are valid while it is.

pub mod authorization_code;
pub mod claim_scope;
pub mod claims_request;
pub mod device_code;
pub mod expiry;
pub mod granted;
pub mod refresh_token;

use std::sync::Arc;

use chancery_application::{SignOutScope, sign_out};
use chancery_record::{Timestamp, Value};
use chancery_resource::{
    AppContext, Context, EventType, MasterKey, Problem, SignInEvent, StateTable, StoreError, Tx, event_type,
    random,
};
use chancery_store::selectable;
use uuid::Uuid;

use self::granted::Granted;
use crate::{person::context::context_of_person, session::is_use_due};

/// A grant that has not ended.
pub struct Grant {
    /// Its id: `gid` of tokens.
    pub id: Uuid,
    /// The client app.
    pub application: Uuid,
    /// The content.
    pub granted: Granted,
    /// The generation of the valid refresh token.
    pub generation: i64,
    /// When that one replaced its predecessor.
    pub rotated_on: Option<Timestamp>,
    /// The salt of its refresh tokens' digests.
    pub salt: Vec<u8>,
    /// When it was created.
    pub started_on: Timestamp,
    /// When its refresh token was last used, as it is stored: see [`Grant::is_use_due`].
    pub used_on: Timestamp,
    /// Until when it is retained, as it is stored.
    expires_on: Timestamp,
}

selectable! {
    /// A grant as it is stored.
    struct GrantRow<'r> from "FROM sign_in_grant WHERE id = ?1 AND ended_on IS NULL" {
        application: Uuid = "client_app_id",
        generation: i64 = "generation",
        rotated_on: Option<Timestamp> = "rotated_on",
        salt: Vec<u8> = "salt",
        sealed: &'r [u8] = "sealed",
        started_on: Timestamp = "started_on",
        used_on: Timestamp = "used_on",
        expires_on: Timestamp = "expires_on",
    }
}

fn associated_data(id: Uuid) -> String {
    format!("sign_in_grant/{id}")
}

/// An hour, in ms.
const HOUR: i64 = 3_600_000;

/// The retention of a grant whose last token expires then, rounded up to full hours. So most uses change no indexed
/// column, and uses of neighbouring grants do not touch the same index pages, which PostgreSQL would report as a
/// conflict.
const fn retained_until(until: Timestamp) -> Timestamp {
    Timestamp(until.0.div_euclid(HOUR).saturating_add(1).saturating_mul(HOUR))
}

impl Grant {
    /// A new grant.
    pub fn new(id: Uuid, application: Uuid, granted: Granted, now: Timestamp) -> Self {
        let salt = random::<16>().to_vec();
        Self {
            id,
            application,
            granted,
            generation: 0,
            rotated_on: None,
            salt,
            started_on: now,
            used_on: now,
            expires_on: now,
        }
    }

    /// Whether it is for offline access (OpenID Connect Core 1.0, section 11).
    pub fn is_offline(&self) -> bool {
        self.granted.has(chancery_oauth::OFFLINE_ACCESS)
    }

    /// Writes a new grant in a tenant of this subscription; its last token expires at `until`.
    pub fn insert(
        &self,
        app: &Arc<AppContext>,
        tx: &mut Tx<'_>,
        subscription: Uuid,
        until: Timestamp,
    ) -> Result<(), Problem> {
        let text = serde_json::to_vec(&self.granted)
            .map_err(|_| StoreError::Internal("a grant cannot be written".into()))?;
        let optional = |id: Option<Uuid>| id.map_or(Value::Null, Value::Id);
        let granted = &self.granted;
        let parameters = vec![
            self.id.into(),
            optional(granted.session),
            optional(granted.issuing),
            granted.tenant.into(),
            granted.person.into(),
            self.application.into(),
            granted.instance.into(),
            granted.scope.as_str().into(),
            self.is_offline().into(),
            self.salt.clone().into(),
            app.master.seal(&associated_data(self.id), &text).into(),
            self.started_on.0.into(),
            retained_until(until).0.into(),
            granted.proven_at.into(),
        ];
        let insert = StateTable::SignInGrant.insert(
            "(id, session_id, issuing_tenant_id, tenant_id, person_id, client_app_id, idp_instance_id, scope, \
             is_offline, salt, sealed, started_on, used_on, expires_on, proven_on, generation) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?13, ?14, 0)",
        );
        tx.queue(&insert, parameters)?;
        let context = context_of_person(app, granted.person, self.started_on);
        self.event(event_type!("platform.signin.grant.created"), Some(subscription)).announce(&context, tx)
    }

    /// Its event.
    pub fn event(&self, kind: EventType, subscription: Option<Uuid>) -> SignInEvent {
        SignInEvent {
            kind,
            id: self.id,
            subscription,
            tenant: self.granted.tenant,
            instance: Some(self.granted.instance),
            person: self.granted.person,
            client_app: Some(self.application),
            session: self.granted.session,
        }
    }

    /// Finds a grant that has not ended.
    pub fn find(tx: &mut Tx<'_>, master: &MasterKey, id: Uuid) -> Result<Option<Self>, StoreError> {
        tx.one(GrantRow::SELECT, &[id.into()], |row| {
            let row = GrantRow::read(row)?;
            let opened = master.open(&associated_data(id), row.sealed);
            let granted = opened.and_then(|text| serde_json::from_slice(text.expose()).ok());
            Ok(Self {
                id,
                application: row.application,
                granted: granted.ok_or_else(|| StoreError::Internal("a grant cannot be read".into()))?,
                generation: row.generation,
                rotated_on: row.rotated_on,
                salt: row.salt,
                started_on: row.started_on,
                used_on: row.used_on,
                expires_on: row.expires_on,
            })
        })
    }

    /// Whether a use of the refresh token has to be written: every five minutes, or every tenth of the refresh token's lifetime
    /// if that is shorter, and if the tokens that expire at `until` would outlive the grant.
    pub fn is_use_due(&self, lifetime: i64, until: Timestamp, now: Timestamp) -> bool {
        is_use_due(self.used_on, lifetime, now) || retained_until(until) > self.expires_on
    }

    /// Writes a use of the refresh token, and replaces it by its successor if `rotates`. `false`: another request has
    /// done so.
    pub fn advance(
        &mut self,
        tx: &mut Tx<'_>,
        rotates: bool,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let next = self.generation + i64::from(rotates);
        let rotated_on = if rotates { Some(now) } else { self.rotated_on };
        let text = StateTable::SignInGrant.update(
            "SET generation = ?3, rotated_on = ?4, used_on = ?5, expires_on = ?6 \
             WHERE id = ?1 AND generation = ?2 AND ended_on IS NULL",
        );
        let parameters = [
            self.id.into(),
            self.generation.into(),
            next.into(),
            rotated_on.map_or(Value::Null, |on| on.0.into()),
            now.0.into(),
            retained_until(until).0.into(),
        ];
        (self.generation, self.rotated_on) = (next, rotated_on);
        Ok(tx.execute(&text, &parameters)? == 1)
    }

    /// Ends the grant.
    pub fn end(&self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        sign_out(context, tx, SignOutScope::Grant(self.id))
    }
}
