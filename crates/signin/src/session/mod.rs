//! Sessions: the proofs of a browser, stored under a keyed digest of the browser's cookie.

pub mod own_sessions;
pub mod sign_in_record;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_application::{SignOutScope, sign_out};
use chancery_flow::{Identified, Proof, SessionFacts, SignedIn};
use chancery_record::{Timestamp, Value};
use chancery_resource::settings::{Options, TenantOption};
use chancery_resource::{Context, MasterKey, Problem, SignInEvent, event_type, random};
use chancery_store::{Error, StateTable, Tx, selectable};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    client_app::{Application, ServingTenant},
    person::{context::context_of_person, external_claims::ExternalClaims},
};

/// The maximum of sessions of one browser.
const MAX_SESSIONS: usize = 10;
/// How long the previous value of the cookie is accepted, in ms: pages that load during a sign-in have it.
const FORMER_MS: i64 = 30_000;
/// The maximum interval between two writes of a session's last use, in ms.
const USE_INTERVAL_MS: i64 = 5 * 60_000;

/// The value of a session cookie with the digest under which the session is stored.
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

    /// The cookie value from a browser.
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
    /// The proofs.
    pub proofs: Vec<Proof>,
    /// Whether it persists after the browser is closed.
    pub is_persistent: bool,
    /// The last use that was written.
    pub used_on: Timestamp,
    /// When it began.
    pub started_on: Timestamp,
    /// Whether the settings of the instance were reviewed since its last first factor.
    pub precedes_review: bool,
}

impl Session {
    /// The session as input of the state machine. At the platform, one from before the review of the instance needs new proofs.
    pub fn facts(&self, fits_login_hint: bool, is_for_platform: bool) -> SessionFacts {
        let counts = !(is_for_platform && self.precedes_review);
        SessionFacts {
            id: self.id,
            tenant: self.tenant,
            person: self.person,
            proofs: if counts { self.proofs.clone() } else { Vec::new() },
            fits_login_hint,
        }
    }
}

selectable! {
    /// A session as it is stored.
    struct SessionRow<'r> {
        id: Uuid = "id",
        tenant: Uuid = "tenant_id",
        person: Uuid = "person_id",
        proofs: &'r str = "proofs",
        is_persistent: bool = "is_kept",
        used_on: Timestamp = "used_on",
        started_on: Timestamp = "started_on",
        instance: Uuid = "idp_instance_id",
        precedes_review: bool = "EXISTS (SELECT 1 FROM idp_instance i WHERE i.id = s.idp_instance_id \
            AND i.settings_confirmed_on IS NOT NULL \
            AND (s.proven_on IS NULL OR s.proven_on <= i.settings_confirmed_on))",
    }
}

impl TryFrom<SessionRow<'_>> for Session {
    type Error = Error;

    fn try_from(row: SessionRow<'_>) -> Result<Self, Error> {
        let proofs = serde_json::from_str(row.proofs)
            .map_err(|_| Error::Internal("the proofs of a session cannot be read".into()))?;
        Ok(Self {
            id: row.id,
            tenant: row.tenant,
            person: row.person,
            instance: row.instance,
            proofs,
            is_persistent: row.is_persistent,
            used_on: row.used_on,
            started_on: row.started_on,
            precedes_review: row.precedes_review,
        })
    }
}

/// The sessions of the browser with this cookie.
pub fn load(tx: &mut Tx<'_>, cookie: Option<&SessionCookie>, now: Timestamp) -> Result<Vec<Session>, Error> {
    let Some(cookie) = cookie else { return Ok(Vec::new()) };
    let text = format!(
        "SELECT {} FROM sign_in_session s \
         WHERE (browser = ?1 OR (former_browser = ?1 AND former_until > ?2)) AND ended_on IS NULL \
         AND expires_on > ?2 ORDER BY started_on, id LIMIT {MAX_SESSIONS}",
        SessionRow::COLUMNS
    );
    let mut sessions = Vec::new();
    tx.query(&text, &[cookie.digest.clone().into(), now.0.into()], |row| {
        sessions.push(SessionRow::read(row)?.try_into()?);
        Ok(())
    })?;
    Ok(sessions)
}

fn claims_data(session: Uuid) -> String {
    format!("sign_in_session/{session}")
}

/// Claims of the external identity provider by which a person signed in, in this session; empty for a person of a user store.
pub fn claims_of_sign_in(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    application: &Application,
    session: Option<Uuid>,
    signed_in: &SignedIn,
) -> Result<Vec<(String, String)>, Error> {
    match session.filter(|_| application.is_external(signed_in.tenant, signed_in.instance)) {
        Some(session) => provider_claims(tx, master, session, signed_in.instance),
        None => Ok(Vec::new()),
    }
}

/// Claims of the external identity provider of this instance in this session; empty if the person signed in
/// otherwise.
pub fn provider_claims(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    session: Uuid,
    instance: Uuid,
) -> Result<Vec<(String, String)>, Error> {
    let text = "SELECT provider_claims FROM sign_in_session WHERE id = ?1 AND provider_claims IS NOT NULL";
    let Some(sealed) = tx.one(text, &[session.into()], |row| Ok(row.bytes(0)?.to_vec()))? else {
        return Ok(Vec::new());
    };
    let opened = master.open(&claims_data(session), &sealed);
    let stored = opened.and_then(|text| serde_json::from_slice::<SessionClaims>(text.expose()).ok());
    if stored.is_none() {
        tracing::error!(%session, "what a provider told in a session cannot be read: its claims are left out");
    }
    Ok(stored.filter(|stored| stored.instance == instance).map(|stored| stored.claims).unwrap_or_default())
}

/// The claims of a provider, as they are sealed in a session.
#[derive(Serialize, Deserialize)]
struct SessionClaims {
    instance: Uuid,
    claims: Vec<(String, String)>,
}

/// Stores the claims of a provider.
fn store_claims(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    session: Uuid,
    external_claims: &ExternalClaims,
) -> Result<(), Error> {
    let claims = SessionClaims { instance: external_claims.instance, claims: external_claims.claims.clone() };
    let text = serde_json::to_vec(&claims)
        .map_err(|_| Error::Internal("the claims of a provider cannot be written".into()))?;
    let sealed = master.seal(&claims_data(session), &text);
    let text = StateTable::SignInSession.update("SET provider_claims = ?2 WHERE id = ?1");
    tx.queue(&text, vec![session.into(), sealed.into()])
}

/// The lifetime of a session from its last use, in ms.
fn lifetime(options: &Options<TenantOption>, is_persistent: bool) -> i64 {
    options.get(if is_persistent {
        TenantOption::SESSION_LIFETIME
    } else {
        TenantOption::BROWSER_SESSION_LIFETIME
    })
}

/// The expiry of a session that is used now.
fn expiry(
    options: &Options<TenantOption>,
    is_persistent: bool,
    started_on: Timestamp,
    now: Timestamp,
) -> Timestamp {
    let until = now.plus(lifetime(options, is_persistent));
    until.min(started_on.plus(options.get(TenantOption::SESSION_ABSOLUTE_LIFETIME)))
}

/// The browser in which a sign-in completes.
#[derive(Clone, Copy)]
pub struct BrowserSessions<'a> {
    /// The cookie that it sent.
    pub former: Option<&'a SessionCookie>,
    /// The cookie that it gets.
    pub new: &'a SessionCookie,
    /// Its sessions before the sign-in.
    pub known: &'a [Session],
}

/// Writes the session of a complete sign-in, a new one or the person's existing one, and moves all sessions of the
/// browser to a new cookie, which prevents session fixation. Stores the claims of an external provider with it.
/// Returns the session's id.
pub fn establish(
    context: &Context,
    tx: &mut Tx<'_>,
    browser: BrowserSessions<'_>,
    identified: &Identified,
    external_claims: Option<&ExternalClaims>,
    is_persistent: bool,
    tenant: &ServingTenant,
) -> Result<Uuid, Problem> {
    let BrowserSessions { former, new, known } = browser;
    let (now, options) = (context.now, &*tenant.options);
    let context = &context_of_person(&context.app, identified.person, now);
    if let Some(former) = former {
        let text = StateTable::SignInSession
            .update("SET former_browser = browser, former_until = ?3, browser = ?2 WHERE browser = ?1");
        let until = now.plus(FORMER_MS);
        tx.queue(&text, vec![former.digest.clone().into(), new.digest.clone().into(), until.0.into()])?;
    }
    let proven_on = Value::Int(identified.proven_at.0);
    let proofs = serde_json::to_string(&identified.proofs)
        .map_err(|_| Error::Internal("proofs cannot be written".into()))?;
    if let Some(was) = known.iter().find(|session| Some(session.id) == identified.session) {
        let is_persistent = was.is_persistent || is_persistent;
        let until = expiry(options, is_persistent, was.started_on, now);
        let text = StateTable::SignInSession.update(
            "SET proofs = ?2, is_kept = ?3, used_on = ?4, expires_on = ?5, idp_instance_id = ?6, proven_on = ?7 \
             WHERE id = ?1",
        );
        let (until, instance) = (until.0.into(), identified.instance.into());
        tx.queue(
            &text,
            vec![
                was.id.into(),
                proofs.into(),
                is_persistent.into(),
                now.0.into(),
                until,
                instance,
                proven_on,
            ],
        )?;
        if let Some(external_claims) = external_claims {
            store_claims(tx, &context.app.master, was.id, external_claims)?;
        }
        return Ok(was.id);
    }
    // one session per tenant and person: a new one replaces the previous one, and the oldest beyond the maximum
    let same =
        |session: &&Session| session.tenant == identified.tenant && session.person == identified.person;
    let surplus = (known.len() + 1).saturating_sub(MAX_SESSIONS);
    for session in known.iter().filter(same).chain(known.iter().take(surplus)) {
        sign_out(context, tx, SignOutScope::Session(session.id))?;
    }
    let id = context.new_id();
    let text = StateTable::SignInSession.insert(
        "(id, browser, tenant_id, person_id, proofs, is_kept, started_on, used_on, expires_on, idp_instance_id, \
         proven_on) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10)",
    );
    let parameters = vec![
        id.into(),
        new.digest.clone().into(),
        identified.tenant.into(),
        identified.person.into(),
        proofs.into(),
        is_persistent.into(),
        now.0.into(),
        expiry(options, is_persistent, now, now).0.into(),
        identified.instance.into(),
        proven_on,
    ];
    tx.queue(&text, parameters)?;
    if let Some(external_claims) = external_claims {
        store_claims(tx, &context.app.master, id, external_claims)?;
    }
    let created = SignInEvent {
        kind: event_type!("platform.signin.session.created"),
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

/// Whether a use has to be written: every five minutes, or every tenth of the lifetime if that is shorter. `lifetime`: in ms, from
/// the last use.
pub fn is_use_due(used_on: Timestamp, lifetime: i64, now: Timestamp) -> bool {
    now.0 - used_on.0 >= USE_INTERVAL_MS.min(lifetime / 10)
}

/// Writes the last use of a session when it is due, so that a
/// session in use does not expire.
pub fn note_use(
    tx: &mut Tx<'_>,
    session: &Session,
    options: &Options<TenantOption>,
    now: Timestamp,
) -> Result<(), Error> {
    let slides = !session.is_persistent || options.get(TenantOption::SESSION_SLIDING);
    if !slides || !is_use_due(session.used_on, lifetime(options, session.is_persistent), now) {
        return Ok(());
    }
    let until = expiry(options, session.is_persistent, session.started_on, now);
    let text = StateTable::SignInSession.update("SET used_on = ?2, expires_on = ?3 WHERE id = ?1");
    tx.queue(&text, vec![session.id.into(), now.0.into(), until.0.into()])
}

/// Whether a session has not ended.
pub fn is_session_active(tx: &mut Tx<'_>, session: Uuid, now: Timestamp) -> Result<bool, Error> {
    Ok(session_expiry(tx, session, now)?.is_some())
}

/// When a session expires; `None` once it has ended.
pub fn session_expiry(tx: &mut Tx<'_>, session: Uuid, now: Timestamp) -> Result<Option<Timestamp>, Error> {
    let text =
        "SELECT expires_on FROM sign_in_session WHERE id = ?1 AND ended_on IS NULL AND expires_on > ?2";
    tx.one(text, &[session.into(), now.0.into()], |row| Ok(Timestamp(row.int(0)?)))
}
