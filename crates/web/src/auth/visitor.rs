//! People who administer by pages: a session of the console instead of a token, and their current rights.

use std::sync::Arc;

use chancery_auth::{
    AccessDenied, Caller, RightsLookup, SecurityContext, StoreContext, decide, has_store_access,
    load_store_context, session_caller, store_names,
};
use chancery_record::Timestamp;
use chancery_resource::{
    CONSOLE, CarriedRole, Context, LIST, Op, Permit, Problem, ProblemKind, Scope, Shape,
};
use chancery_signin::{
    ConsolePreference, ConsoleSession, console_digest, console_names, console_preference,
    find_console_session, is_at_least, note_console_use,
};
use chancery_store::{Class, Mode, Tx};
use uuid::Uuid;

use super::authorization::{Authorization, problem_of_denial};
use crate::app::App;

/// The most user stores of which the names are read.
const MAX_STORES: usize = 50;

/// The user store of a page.
#[derive(Clone, Copy)]
pub enum RequestedStore<'a> {
    /// The path names it.
    Named(&'a str),
    /// The path names none: the user store that was viewed last, or the default one.
    LastViewed(&'a str),
}

/// A person who administers by pages.
#[derive(Clone)]
pub struct Visitor {
    /// The session.
    pub session: ConsoleSession,
    /// The digest by which the session is stored.
    pub digest: Vec<u8>,
    /// The person and the person's roles.
    pub caller: Arc<Caller>,
    /// A display name.
    pub name: String,
    /// The login name.
    pub login: String,
    /// The viewed user store, if it exists.
    pub store: Option<Arc<StoreContext>>,
    /// The names of the first user stores in which the person may do something.
    pub stores: Vec<String>,
    /// Whether there are more of them.
    pub has_more_stores: bool,
    /// The presentation that the person prefers.
    pub preference: ConsolePreference,
}

impl Visitor {
    /// Whether the person may call an operation here, as far as roles say.
    pub fn may(&self, op: &Op) -> bool {
        self.authorize(op.permit).is_ok()
    }

    /// Whether the person holds a permit.
    pub fn has(&self, permit: Permit) -> bool {
        self.authorize(permit).is_ok()
    }

    /// Whether the person has no role at all.
    pub fn has_no_role(&self) -> bool {
        self.caller.roles.is_empty()
    }

    pub(crate) fn authorize(&self, permit: Permit) -> Result<Authorization, AccessDenied> {
        let scope = decide(permit, &self.caller, self.store.as_deref())?;
        Ok(Authorization { epoch: 0, caller: Some(Arc::clone(&self.caller)), provisioner: None, scope })
    }
}

/// A session and the permit that an operation needs: enough to decide within its transaction.
pub struct SessionAuthority {
    pub session: SessionLookup,
    pub permit: Permit,
}

impl SessionAuthority {
    /// Decides by the session and the roles that the transaction reads.
    pub fn decide(&self, tx: &mut Tx<'_>) -> Result<Authorization, Problem> {
        self.session.look_up(tx)?.decide(self.permit)
    }
}

/// A session, as a transaction reads it.
pub struct SessionLookup {
    pub digest: Vec<u8>,
    pub store: RightsLookup,
    pub idle: i64,
    pub admin_acr: &'static str,
    pub now: Timestamp,
}

impl SessionLookup {
    /// The current rights of the session.
    pub fn look_up(&self, tx: &mut Tx<'_>) -> Result<SessionRights, Problem> {
        let found = find_console_session(tx, &self.digest, self.idle, self.now)?.ok_or_else(session_ended)?;
        let caller = caller_of(tx, &found, self.admin_acr, self.now)?.ok_or_else(session_ended)?;
        let SecurityContext { epoch, store, .. } = self.store.look_up(tx)?;
        Ok(SessionRights { caller: Arc::new(caller), epoch, store })
    }
}

/// The rights of a session, as read within a transaction.
pub struct SessionRights {
    caller: Arc<Caller>,
    epoch: i64,
    store: Option<Arc<StoreContext>>,
}

impl SessionRights {
    /// Decides whether an operation with this permit may run.
    pub fn decide(&self, permit: Permit) -> Result<Authorization, Problem> {
        let scope = decide(permit, &self.caller, self.store.as_deref()).map_err(problem_of_denial)?;
        Ok(Authorization {
            epoch: self.epoch,
            caller: Some(Arc::clone(&self.caller)),
            provisioner: None,
            scope,
        })
    }
}

/// The problem of a session that has ended.
fn session_ended() -> Problem {
    Problem::new(ProblemKind::Unauthorized, "The session has ended. Sign in again.")
}

/// The person of a session, while the person may administer: the sign-in is valid, and its class sufficient.
fn caller_of(
    tx: &mut Tx<'_>,
    session: &ConsoleSession,
    admin_acr: &str,
    now: Timestamp,
) -> Result<Option<Caller>, Problem> {
    if !is_at_least(Some(&session.acr), admin_acr) {
        return Ok(None);
    }
    let caller = session_caller(tx, session.person, session.sign_in, CONSOLE, now)?;
    Ok(caller.filter(|caller| caller.enabled))
}

impl App {
    /// The roles that rows of the viewed user store carry, by the ids of the rows.
    pub async fn carried_roles(
        &self,
        visitor: &Visitor,
        shape: &'static Shape,
        ids: Vec<Uuid>,
        now: Timestamp,
    ) -> Result<Vec<CarriedRole>, Problem> {
        let store = visitor.store.as_ref().map(|store| store.scope.clone());
        let Some((protection, store)) = shape.writes.protection.zip(store).filter(|_| !ids.is_empty()) else {
            return Ok(Vec::new());
        };
        let app = Arc::clone(&self.context);
        let looking = move |tx: &mut Tx<'_>| {
            let context = Context::new(&app, Scope::Store(store.clone()), now, None, None);
            let mut found = Vec::new();
            for ids in ids.chunks(LIST) {
                found.extend((protection.find)(&context, tx, ids)?);
            }
            Ok::<_, Problem>(found)
        };
        self.store.run("CarriedRoles", Mode::Quick, None, looking).await
    }

    /// The person of this cookie's session, if it lasts. The viewed user store is the one in the path,
    /// else the last one if it is still open to the person, else the first that is.
    pub async fn visitor(
        &self,
        cookie: &str,
        store: RequestedStore<'_>,
        is_used: bool,
        now: Timestamp,
    ) -> Result<Option<Visitor>, Problem> {
        let digest = console_digest(&self.context.master, cookie);
        let (RequestedStore::Named(name) | RequestedStore::LastViewed(name)) = store;
        let is_named = matches!(store, RequestedStore::Named(_));
        let lookup = RightsLookup::new(&self.store, &self.token_service, None, Some(name), now).await?;
        let (idle, admin_acr) = (self.console_lifetimes.idle, self.sign_in.admin_acr);
        let key = digest.clone();
        let urgent = self.store.with(Class::Urgent);
        let looking = urgent.run("Visitor", Mode::Quick, None, move |tx| {
            let Some(session) = find_console_session(tx, &key, idle, now)? else { return Ok(None) };
            let Some(caller) = caller_of(tx, &session, admin_acr, now)? else { return Ok(None) };
            let preference = console_preference(tx, session.person)?;
            let (name, login) = console_names(tx, &session)?;
            // a person of an external identity provider may have no other name
            let login = Some(login).filter(|login| !login.is_empty()).or_else(|| caller.login_name.clone());
            let login = login.unwrap_or_default();
            let name = if name.is_empty() { login.clone() } else { name };
            let mut names = store_names(tx, &caller, MAX_STORES + 1)?;
            let has_more_stores = names.len() > MAX_STORES;
            names.truncate(MAX_STORES);
            let mut store = lookup.look_up(tx)?.store;
            if !is_named && !store.as_ref().is_some_and(|store| has_store_access(&caller, store)) {
                let first = names.first().map(|name| load_store_context(tx, name)).transpose()?.flatten();
                store = first.map(Arc::new);
            }
            Ok::<_, Problem>(Some(Visitor {
                session,
                digest: key.clone(),
                caller: Arc::new(caller),
                name,
                login,
                store,
                stores: names,
                has_more_stores,
                preference,
            }))
        });
        let found = looking.await?;
        if is_used && found.as_ref().is_some_and(|visitor| visitor.session.is_use_noted(now)) {
            let noting = move |tx: &mut Tx<'_>| note_console_use(tx, &digest, now);
            self.store.run("NoteVisit", Mode::Write, None, noting).await?;
        }
        Ok(found)
    }
}
