//! Sessions: what a browser has proven, kept under a keyed digest of the browser's cookie.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_application::{EndOf, sign_out};
use chancery_flow::{Identified, Proof, SessionFacts};
use chancery_record::Timestamp;
use chancery_resource::settings::{Options, TenantOption};
use chancery_resource::{Context, MasterKey, Problem, SignInEvent, random};
use chancery_store::{Error, StateTable, Tx};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{application::ServingTenant, kept_flow::ToldElsewhere, provider::context_of_person};

/// The most sessions of one browser.
const MOST: usize = 10;
/// How long the former value of the cookie still reads, in ms: pages that load beside a sign-in have it.
const FORMER_MS: i64 = 30_000;
/// The longest time between two writes of a session's last use, in ms.
const USE_MS: i64 = 5 * 60_000;

/// The value of a session cookie, and the digest that it is kept by.
#[derive(Clone)]
pub struct SessionCookie {
    /// The value: 32 random bytes in base64url.
    pub value: String,
    digest: Vec<u8>,
}

impl SessionCookie {
    /// A new value.
    pub fn new(master: &MasterKey) -> Self {
        Self::of(master, BASE64_URL_SAFE_NO_PAD.encode(random::<32>()))
    }

    /// The value that a browser shows.
    pub fn of(master: &MasterKey, value: String) -> Self {
        let digest = master.digest("sign-in-session", value.as_bytes());
        Self { value, digest }
    }
}

/// A session of a browser.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its id.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: Uuid,
    /// Its platform user.
    pub person: Uuid,
    /// The instance of the last first factor.
    pub instance: Uuid,
    /// What was proven in it.
    pub proofs: Vec<Proof>,
    /// Whether it outlives the browser's own session.
    pub is_kept: bool,
    /// When it was last used, as far as that is written.
    pub used_on: Timestamp,
    /// When it began.
    pub started_on: Timestamp,
}

impl Session {
    /// The session as the state machine sees it.
    pub fn facts(&self, fits_login_hint: bool) -> SessionFacts {
        SessionFacts {
            id: self.id,
            tenant: self.tenant,
            person: self.person,
            proofs: self.proofs.clone(),
            fits_login_hint,
        }
    }
}

/// The sessions of the browser that shows this cookie.
///
/// # Errors
/// Errors of the store.
pub fn load(tx: &mut Tx<'_>, cookie: Option<&SessionCookie>, now: Timestamp) -> Result<Vec<Session>, Error> {
    let Some(cookie) = cookie else { return Ok(Vec::new()) };
    let text = format!(
        "SELECT id, tenant_id, person_id, proofs, is_kept, used_on, started_on, idp_instance_id FROM sign_in_session \
         WHERE (browser = ?1 OR (former_browser = ?1 AND former_until > ?2)) AND ended_on IS NULL \
         AND expires_on > ?2 ORDER BY started_on, id LIMIT {MOST}"
    );
    let mut sessions = Vec::new();
    tx.query(&text, &[cookie.digest.clone().into(), now.0.into()], |row| {
        let proofs = serde_json::from_str(row.text(3)?)
            .map_err(|_| Error::Internal("the proofs of a session cannot be read".into()))?;
        sessions.push(Session {
            id: row.id(0)?,
            tenant: row.id(1)?,
            person: row.id(2)?,
            proofs,
            is_kept: row.bool(4)?,
            used_on: Timestamp(row.int(5)?),
            started_on: Timestamp(row.int(6)?),
            instance: row.id(7)?,
        });
        Ok(())
    })?;
    Ok(sessions)
}

fn claims_data(session: Uuid) -> String {
    format!("sign_in_session/{session}")
}

/// What the external identity provider of this instance told of the person in this session, if the person came by it.
///
/// # Errors
/// Errors of the store.
pub fn provider_claims(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    (session, instance): (Uuid, Uuid),
) -> Result<Vec<(String, String)>, Error> {
    let text = "SELECT provider_claims FROM sign_in_session WHERE id = ?1 AND provider_claims IS NOT NULL";
    let Some(sealed) = tx.one(text, &[session.into()], |row| Ok(row.bytes(0)?.to_vec()))? else {
        return Ok(Vec::new());
    };
    let opened = master.open(&claims_data(session), &sealed);
    let found = opened.and_then(|text| serde_json::from_slice::<SessionClaims>(text.expose()).ok());
    if found.is_none() {
        tracing::error!(%session, "what a provider told in a session cannot be read: its claims are left out");
    }
    Ok(found.filter(|found| found.instance == instance).map(|found| found.claims).unwrap_or_default())
}

/// What a provider told in a session.
#[derive(Serialize, Deserialize)]
struct SessionClaims {
    instance: Uuid,
    claims: Vec<(String, String)>,
}

/// Keeps what a provider told.
fn keep_claims(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    session: Uuid,
    told: &ToldElsewhere,
) -> Result<(), Error> {
    let claims = SessionClaims { instance: told.instance, claims: told.claims.clone() };
    let text = serde_json::to_vec(&claims)
        .map_err(|_| Error::Internal("the claims of a provider cannot be written".into()))?;
    let sealed = master.seal(&claims_data(session), &text);
    let text = StateTable::SignInSession.update("SET provider_claims = ?2 WHERE id = ?1");
    tx.queue(&text, vec![session.into(), sealed.into()])
}

/// How long a session lasts from its last use, in ms.
fn lifetime(options: &Options<TenantOption>, is_kept: bool) -> i64 {
    options.get(if is_kept { TenantOption::SESSION_LIFETIME } else { TenantOption::BROWSER_SESSION_LIFETIME })
}

/// Until when a session lasts that is used now.
fn expiry(
    options: &Options<TenantOption>,
    is_kept: bool,
    started_on: Timestamp,
    now: Timestamp,
) -> Timestamp {
    let until = now.plus(lifetime(options, is_kept));
    until.min(started_on.plus(options.get(TenantOption::SESSION_ABSOLUTE_LIFETIME)))
}

/// Where a sign-in is complete: writes its session, a new one or that of the person, and moves all sessions of the
/// browser to a new cookie, so that a value that was planted or seen before the proof is worth nothing. What an external provider
/// told in this sign-in is kept with it. Returns the session's id.
///
/// # Errors
/// Errors of the store.
pub fn establish(
    context: &Context,
    tx: &mut Tx<'_>,
    (former, new, known): (Option<&SessionCookie>, &SessionCookie, &[Session]),
    (identified, told): (&Identified, Option<&ToldElsewhere>),
    (keeps, tenant): (bool, &ServingTenant),
) -> Result<Uuid, Problem> {
    let (now, options) = (context.now, &*tenant.options);
    let context = &context_of_person(&context.app, identified.person, now);
    if let Some(former) = former {
        let text = StateTable::SignInSession
            .update("SET former_browser = browser, former_until = ?3, browser = ?2 WHERE browser = ?1");
        let until = now.plus(FORMER_MS);
        tx.queue(&text, vec![former.digest.clone().into(), new.digest.clone().into(), until.0.into()])?;
    }
    let proofs = serde_json::to_string(&identified.proofs)
        .map_err(|_| Error::Internal("proofs cannot be written".into()))?;
    if let Some(was) = known.iter().find(|session| Some(session.id) == identified.session) {
        let is_kept = was.is_kept || keeps;
        let until = expiry(options, is_kept, was.started_on, now);
        let text = StateTable::SignInSession.update(
            "SET proofs = ?2, is_kept = ?3, used_on = ?4, expires_on = ?5, idp_instance_id = ?6 WHERE id = ?1",
        );
        let (until, instance) = (until.0.into(), identified.instance.into());
        tx.queue(&text, vec![was.id.into(), proofs.into(), is_kept.into(), now.0.into(), until, instance])?;
        if let Some(told) = told {
            keep_claims(tx, &context.app.master, was.id, told)?;
        }
        return Ok(was.id);
    }
    // one session a tenant and person: a new one takes the place of the one before, and of the oldest of too many
    let same =
        |session: &&Session| session.tenant == identified.tenant && session.person == identified.person;
    let surplus = (known.len() + 1).saturating_sub(MOST);
    for session in known.iter().filter(same).chain(known.iter().take(surplus)) {
        sign_out(context, tx, EndOf::Session(session.id))?;
    }
    let id = context.new_id();
    let text = StateTable::SignInSession.insert(
        "(id, browser, tenant_id, person_id, proofs, is_kept, started_on, used_on, expires_on, idp_instance_id) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9)",
    );
    let parameters = vec![
        id.into(),
        new.digest.clone().into(),
        identified.tenant.into(),
        identified.person.into(),
        proofs.into(),
        keeps.into(),
        now.0.into(),
        expiry(options, keeps, now, now).0.into(),
        identified.instance.into(),
    ];
    tx.queue(&text, parameters)?;
    if let Some(told) = told {
        keep_claims(tx, &context.app.master, id, told)?;
    }
    let created = SignInEvent {
        what: "session.created",
        id,
        subscription: Some(tenant.subscription),
        tenant: identified.tenant,
        instance: Some(identified.instance),
        person: identified.person,
        client_app: None,
        session: Some(id),
    };
    created.announce(context, tx)?;
    Ok(id)
}

/// Notes that a session was used: once in five minutes, or in a tenth of its lifetime where that is shorter, so that a session
/// in use does not end.
///
/// # Errors
/// Errors of the store.
pub fn note_use(
    tx: &mut Tx<'_>,
    session: &Session,
    options: &Options<TenantOption>,
    now: Timestamp,
) -> Result<(), Error> {
    let slides = !session.is_kept || options.get(TenantOption::SESSION_SLIDING);
    let pause = USE_MS.min(lifetime(options, session.is_kept) / 10);
    if !slides || now.0 - session.used_on.0 < pause {
        return Ok(());
    }
    let until = expiry(options, session.is_kept, session.started_on, now);
    let text = StateTable::SignInSession.update("SET used_on = ?2, expires_on = ?3 WHERE id = ?1");
    tx.queue(&text, vec![session.id.into(), now.0.into(), until.0.into()])
}
