//! Sends logout tokens to client apps when a session ends (OpenID Connect Back-Channel Logout 1.0).

use chancery_fetch::{Limits, Permission, Policy, PostBody, post};
use chancery_record::Timestamp;
use chancery_resource::{StateTable, StoreError, Tx, random};
use chancery_store::{Mode, selectable};
use serde_json::json;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::provider::Provider;

/// The number of concurrent deliveries.
const BATCH: usize = 16;
/// The duration of a lease, in ms: longer than an attempt.
const LEASE: i64 = 60_000;
/// The limits of an attempt.
const LIMITS: Limits = Limits { bytes: 4 << 10, seconds: 5 };
/// The delay after the first failed attempt, in ms; it doubles with each further one.
const RETRY_DELAY: i64 = 10_000;
/// The maximum delay, in ms.
const LONGEST_RETRY_DELAY: i64 = 10 * 60_000;
/// How long deliveries are retried, in ms.
const RETRY_WINDOW: i64 = 3_600_000;
/// The lifetime of a logout token, in seconds.
const LIFETIME: i64 = 120;
/// The `typ` of a logout token (section 2.4).
const LOGOUT_TOKEN: &str = "logout+jwt";

selectable! {
    /// A due logout token of a client app.
    struct Delivery {
        id: Uuid = "l.id",
        application: Uuid = "l.client_app_id",
        issuing: Option<Uuid> = "l.issuing_tenant_id",
        person: Uuid = "l.person_id",
        session: Option<Uuid> = "l.session_id",
        queued_on: Timestamp = "l.queued_on",
        tries: i64 = "l.tries",
        uri: String = "a.backchannel_logout_uri",
    }
}

/// The results of a batch of deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignOutDeliveries {
    /// The delivered logout tokens.
    pub delivered: usize,
    /// The failed deliveries.
    pub failed: usize,
}

impl SignOutDeliveries {
    /// Whether any delivery was due.
    pub const fn any(self) -> bool {
        self.delivered + self.failed > 0
    }
}

impl Provider<'_> {
    /// Sends a batch of the due logout tokens.
    ///
    /// # Errors
    /// Fails when the database does, or when a token cannot be signed.
    pub async fn deliver_sign_outs(
        self,
        permission: Permission,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<SignOutDeliveries, StoreError> {
        if !self.store.run("AnySignOuts", Mode::Quick, None, move |tx| is_any_due(tx, now)).await? {
            return Ok(SignOutDeliveries::default());
        }
        let lease = Uuid::from_bytes(random::<16>());
        let due = self.store.run("DueSignOuts", Mode::Write, None, move |tx| take(tx, lease, now)).await?;
        let mut sending = JoinSet::new();
        for delivery in due {
            let Some(token) = self.logout_token(&delivery, now).await? else {
                // the tenant is no longer active, so it has no issuer to sign the token
                sending.spawn(async move { (delivery, true) });
                continue;
            };
            let policy = policy.clone();
            sending.spawn(async move {
                let body = PostBody::form(format!("logout_token={token}"));
                let sent = post(permission, &delivery.uri, body, LIMITS, &policy).await;
                match &sent {
                    Err(failure) => {
                        tracing::info!(client_app = %delivery.application, %failure, "a client app cannot be told of a sign-out");
                    }
                    Ok(status) if !(200..300).contains(status) => {
                        tracing::info!(client_app = %delivery.application, status, "a client app refuses to be told of a sign-out");
                    }
                    Ok(_) => {}
                }
                // a client app that refuses the token permanently gets no further attempt (section 2.8)
                (delivery, sent.is_ok_and(|status| (200..300).contains(&status) || status == 400))
            });
        }
        let done = sending.join_all().await;
        let delivered = done.iter().filter(|(_, is_delivered)| *is_delivered).count();
        let count = SignOutDeliveries { delivered, failed: done.len() - delivered };
        if !done.is_empty() {
            let settling = move |tx: &mut Tx<'_>| settle(tx, &done, lease, now);
            self.store.run("SettleSignOuts", Mode::Write, None, settling).await?;
        }
        Ok(count)
    }

    /// The logout token of this attempt (section 2.4).
    async fn logout_token(self, delivery: &Delivery, now: Timestamp) -> Result<Option<String>, StoreError> {
        let issuer = match delivery.issuing {
            None => self.tokens.installation(),
            Some(tenant) => match self.tokens.issuer_of(self.store, &tenant.to_string()).await? {
                Some(issuer) => issuer,
                None => return Ok(None),
            },
        };
        let seconds = now.0.div_euclid(1000);
        let claims = json!({
            "iss": issuer.url,
            "sub": delivery.person,
            "aud": delivery.application,
            "iat": seconds,
            "exp": seconds + LIFETIME,
            "jti": Uuid::from_bytes(random::<16>()),
            "sid": delivery.session.map(|session| self.session_for(session, delivery.application)),
            "events": { "http://schemas.openid.net/event/backchannel-logout": {} },
        });
        let epoch = self.store.epoch().await?;
        let claims = |_: &str| claims;
        self.tokens.sign_id_token(self.store, LOGOUT_TOKEN, claims, &issuer, now, epoch).await.map(Some)
    }
}

fn is_any_due(tx: &mut Tx<'_>, now: Timestamp) -> Result<bool, StoreError> {
    let text =
        "SELECT 1 FROM logout_delivery WHERE due_on <= ?1 AND leased_until <= ?1 AND dead_on IS NULL LIMIT 1";
    Ok(tx.one(text, &[now.0.into()], |_| Ok(()))?.is_some())
}

/// Leases the due deliveries and counts the attempt in advance, so that one that kills its process counts, too.
fn take(tx: &mut Tx<'_>, lease: Uuid, now: Timestamp) -> Result<Vec<Delivery>, StoreError> {
    let text = format!(
        "SELECT {} FROM logout_delivery l JOIN client_app a ON a.id = l.client_app_id \
         AND a.backchannel_logout_uri IS NOT NULL WHERE l.due_on <= ?1 AND l.leased_until <= ?1 \
         AND l.dead_on IS NULL ORDER BY l.due_on, l.id LIMIT {BATCH}",
        Delivery::COLUMNS
    );
    let mut due = Vec::new();
    tx.query(&text, &[now.0.into()], |row| {
        let stored = Delivery::read(row)?;
        due.push(Delivery { tries: stored.tries + 1, ..stored });
        Ok(())
    })?;
    let text = StateTable::LogoutDelivery
        .update("SET lease = ?2, leased_until = ?3, tries = tries + 1 WHERE id = ?1 AND leased_until <= ?4");
    let mut leased = Vec::with_capacity(due.len());
    for delivery in due {
        let parameters = [delivery.id.into(), lease.into(), now.plus(LEASE).0.into(), now.0.into()];
        if tx.execute(&text, &parameters)? == 1 {
            leased.push(delivery);
        }
    }
    Ok(leased)
}

/// Writes the results of attempts whose lease is still held.
fn settle(tx: &mut Tx<'_>, done: &[(Delivery, bool)], lease: Uuid, now: Timestamp) -> Result<(), StoreError> {
    let delete = StateTable::LogoutDelivery.delete("WHERE id = ?1 AND lease = ?2");
    let delay = StateTable::LogoutDelivery
        .update("SET due_on = ?3, dead_on = ?4, leased_until = 0 WHERE id = ?1 AND lease = ?2");
    for (delivery, is_delivered) in done {
        let (id, lease) = (delivery.id.into(), lease.into());
        if *is_delivered {
            tx.queue(&delete, vec![id, lease])?;
            continue;
        }
        let doublings = u32::try_from(delivery.tries.clamp(1, 16) - 1).unwrap_or_default();
        let due = now.plus((RETRY_DELAY << doublings).min(LONGEST_RETRY_DELAY));
        let dead_on = (due.0 - delivery.queued_on.0 > RETRY_WINDOW).then_some(now.0);
        tx.queue(&delay, vec![id, lease, due.0.into(), dead_on.into()])?;
    }
    Ok(())
}
