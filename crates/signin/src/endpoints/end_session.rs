//! Sign-out, requested by a client app (OpenID Connect RP-Initiated Logout 1.0) or by the person.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_application::{SignOutScope, sign_out};
use chancery_auth::{Issuer, canonical_id};
use chancery_oauth::{ErrorCode, LogoutRequest, ProtocolError, with_query};
use chancery_record::Timestamp;
use chancery_resource::{MasterKey, Problem, Sql, StoreError, Tx};
use chancery_store::{Mode, selectable};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::{
    appearance::Owners,
    client_app::Application,
    flow::{
        page_name::{SIGN_OUT, SIGNED_OUT},
        response::{Page, PageError},
    },
    person::{context::context_of_person, names::locale_of},
    provider::{Provider, Visit},
    session::{
        self, Session,
        sign_in_record::{SignInOutcome, SignInRecord},
    },
};

/// The maximum of front-channel notifications on the page.
const MAX_FRAMES: usize = 32;

/// The parameter with the content of an ID token, for addresses that have no room for the token.
const SHORT_HINT: &str = "hint";
/// The other parameters that such a request retains.
const RETAINED: [&str; 5] = ["client_id", "post_logout_redirect_uri", "state", "logout_hint", "ui_locales"];

/// The content of `id_token_hint`: the client app and the person.
#[derive(Serialize, Deserialize)]
struct Hint {
    aud: Uuid,
    sub: Uuid,
}

/// The response to a sign-out request.
pub enum SignOutResponse {
    /// The person has to confirm.
    Confirm(Page),
    /// The person is signed out.
    Done(SignedOut),
    /// The request is malformed.
    Error(PageError),
}

/// The response to a sign-out request, and why the browser is not redirected to the client app.
pub struct SignOutResult {
    /// The response.
    pub response: SignOutResponse,
    /// Why the browser is not redirected to the requested address.
    pub refusal: Option<ProtocolError>,
}

/// The content of the page after a sign-out, sealed into its address.
#[derive(Serialize, Deserialize)]
pub struct SignedOut {
    /// The name of the requesting client app.
    pub application: Option<String>,
    /// The requesting client app.
    #[serde(default)]
    pub client_app: Option<Uuid>,
    /// The `post_logout_redirect_uri`, if there is a valid one.
    pub back: Option<String>,
    /// The `clientUri` of the requesting client app, if there is no `back`: a link only, since the app did not request it.
    #[serde(default)]
    pub home: Option<String>,
    /// Whether the requested `post_logout_redirect_uri` is none of the client app's.
    #[serde(default)]
    pub is_unregistered: bool,
    /// The front-channel logout addresses of client apps (OpenID Connect Front-Channel Logout 1.0).
    pub frames: Vec<String>,
    /// The end-session address of the external identity provider (OpenID Connect RP-Initiated Logout 1.0). `state` is
    /// still to be added.
    #[serde(default)]
    pub upstream: Option<String>,
    /// Whether no session is left in this browser.
    pub is_last: bool,
    /// Whether the person confirmed the sign-out, or it ended a session. A link of another site to a browser without a session does
    /// neither. The page does not need it.
    #[serde(skip)]
    pub is_intended: bool,
    /// The language of the person who was signed in.
    #[serde(default)]
    pub locale: Option<String>,
}

impl SignedOut {
    /// Seals it for the requesting browser and the requested issuer.
    pub fn seal(&self, master: &MasterKey, visit: &Visit) -> Result<String, StoreError> {
        let text = serde_json::to_vec(self)
            .map_err(|_| StoreError::Internal("a sign-out cannot be written".into()))?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode(master.seal(&associated_data(visit), &text)))
    }

    /// Completes the address of the external identity provider, if the person is signed out there, too. The provider
    /// redirects back to the page after the sign-out with the `state`, which contains the remaining work.
    pub fn via_provider(mut self, master: &MasterKey, visit: &Visit) -> Result<Self, StoreError> {
        let Some(upstream) = self.upstream.take() else { return Ok(self) };
        let frames = std::mem::take(&mut self.frames);
        let state = self.seal(master, visit)?;
        let upstream = Some(with_query(&upstream, &[("state".to_owned(), state)]));
        Ok(Self { frames, upstream, ..self })
    }

    /// The next address.
    pub fn next(&self) -> Option<&str> {
        self.upstream.as_deref().or(self.back.as_deref())
    }

    /// Opens the sealed text from a browser.
    pub fn open(master: &MasterKey, visit: &Visit, sealed: &str) -> Option<Self> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        serde_json::from_slice(master.open(&associated_data(visit), &sealed)?.expose()).ok()
    }

    /// The page.
    pub fn page(&self) -> Page {
        let application = self.application.as_ref().map(|name| json!({ "name": name }));
        let context = json!({
            "application": application, "step": "done", "return_url": self.next().or(self.home.as_deref()),
            "is_unregistered": self.is_unregistered, "frames": self.frames,
        });
        let owners = Owners { client_app: self.client_app, ..Owners::default() };
        Page { owners, ..Page::new("Logout", SIGNED_OUT, context) }.in_language(self.locale.clone())
    }
}

fn associated_data(visit: &Visit) -> String {
    format!("signed_out/{}/{}", visit.issuer.url, visit.browser)
}

fn about_hint(issuer: &Issuer) -> String {
    format!("sign_out_hint/{}", issuer.url)
}

/// The selection of sessions to end.
#[derive(Clone, Copy)]
struct SignOutSelection {
    application: Option<Uuid>,
    person: Option<Uuid>,
}

/// Whether a sign-out at this issuer ends the session: a tenant's issuer ends only that tenant's.
fn is_of_issuer(issuing: Option<Uuid>, session: &Session) -> bool {
    issuing.is_none_or(|tenant| tenant == session.tenant)
}

impl Provider<'_> {
    /// Handles a sign-out request. A link alone ends no session: a page with a form confirms it. An ID token of the
    /// person who is signed in here makes the page unnecessary, if the client app's `logoutConsent` permits it.
    pub async fn end_session(
        self,
        visit: &Visit,
        parameters: &[(String, String)],
        is_confirmed: bool,
    ) -> Result<SignOutResult, Problem> {
        let error = |error| Ok(SignOutResult { response: SignOutResponse::Error(error), refusal: None });
        let request = match LogoutRequest::read(parameters) {
            Ok(request) => request,
            Err(refusal) => return error(PageError::request(refusal.detail)),
        };
        let named = request.client_id.as_deref().map(|id| canonical_id(id).unwrap_or_default());
        let hint = match &request.id_token_hint {
            Some(token) => self.hint(token, &visit.issuer, visit.now).await?,
            None => self.short_hint(parameters, &visit.issuer),
        };
        if let (Some(named), Some(hint)) = (named, &hint)
            && named != hint.aud
        {
            let detail = "id_token_hint is another client app's than client_id.";
            return error(PageError::request(detail));
        }
        let application = match named.or(hint.as_ref().map(|hint| hint.aud)) {
            Some(id) => self.applications.find(self.store, id).await?,
            None => None,
        };
        // a tenant's pages neither name nor lead to client apps that do not serve the tenant
        let issuing = visit.issuer.tenant_id();
        let application = application
            .filter(|application| issuing.is_none_or(|tenant| application.tenant(tenant).is_some()));
        let fits = |application: &Application| {
            request.post_logout_redirect_uri.as_ref().is_some_and(|uri| application.logout_uris.contains(uri))
        };
        let back = application.as_deref().filter(|one| fits(one)).and_then(|_| request.return_address());
        let refusal = redirect_refusal(&request, application.as_deref()).filter(|_| back.is_none());
        let answer = |response| Ok(SignOutResult { response, refusal });
        let client_app = application.as_ref().map(|one| one.id);
        let about = application.as_deref().filter(|_| back.is_none());
        let done = SignedOut {
            application: application.as_ref().map(|one| one.name.clone()),
            client_app,
            home: about.and_then(|one| one.client_uri.clone()),
            is_unregistered: refusal.is_some() && application.is_some(),
            back,
            frames: Vec::new(),
            upstream: None,
            is_last: true,
            // the person confirmed it on a page of ours, whatever became of the session meanwhile
            is_intended: is_confirmed,
            locale: None,
        };
        let sessions = self.sessions(visit).await?;
        if sessions.is_empty() {
            // nothing to confirm or to end
            return answer(SignOutResponse::Done(done));
        }
        let person = hint.as_ref().map(|hint| hint.sub);
        let locale = self.locale_of(&sessions, person).await?;
        let is_silent = match (&hint, &application) {
            (Some(hint), Some(application)) if application.signs_out_silently => {
                let is_theirs = |one: &Session| one.person == hint.sub && is_of_issuer(issuing, one);
                sessions.iter().any(is_theirs)
            }
            _ => false,
        };
        if !is_confirmed && !is_silent {
            let about = application.as_ref().map(|one| json!({ "name": one.name }));
            let context = json!({ "application": about, "step": "confirm" });
            let page = Page::new("Logout", SIGN_OUT, context);
            let page = match &application {
                Some(application) => page.of(application, issuing),
                None => page,
            };
            return answer(SignOutResponse::Confirm(page.in_language(locale)));
        }
        let selection = SignOutSelection { application: client_app, person };
        let (frames, is_last, instances) = self.sign_out(visit, selection).await?;
        let is_intended = is_confirmed || !instances.is_empty();
        let upstream = self.upstream_sign_out(visit, instances).await?;
        answer(SignOutResponse::Done(SignedOut { frames, upstream, is_last, is_intended, locale, ..done }))
    }

    /// The language of the person who is signed in at this browser.
    pub async fn locale(self, visit: &Visit) -> Result<Option<String>, Problem> {
        let sessions = self.sessions(visit).await?;
        self.locale_of(&sessions, None).await
    }

    /// The language of the person with these sessions; of several people that of the named one, or of the last who
    /// used a session.
    async fn locale_of(self, sessions: &[Session], named: Option<Uuid>) -> Result<Option<String>, Problem> {
        let is_named = |session: &&Session| named == Some(session.person);
        let last = sessions.iter().max_by_key(|session| session.used_on.0);
        let Some(session) = sessions.iter().find(is_named).or(last) else { return Ok(None) };
        let (person, instance) = (session.person, session.instance);
        let reading =
            self.store.run("LocaleOfPerson", Mode::Quick, None, move |tx| locale_of(tx, person, instance));
        Ok(reading.await?)
    }

    async fn hint(self, token: &str, issuer: &Issuer, now: Timestamp) -> Result<Option<Hint>, StoreError> {
        let opened = self.tokens.open_id_token(self.store, token, issuer, now).await?;
        Ok(opened.map(|hint| Hint { aud: hint.aud, sub: hint.sub }))
    }

    fn short_hint(self, parameters: &[(String, String)], issuer: &Issuer) -> Option<Hint> {
        let (_, sealed) = parameters.iter().find(|(name, _)| name == SHORT_HINT)?;
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let opened = self.context.master.open(&about_hint(issuer), &sealed)?;
        serde_json::from_slice(opened.expose()).ok()
    }

    /// The parameters of a request with the ID token's content, sealed, instead of the token: browsers and proxies
    /// accept no address as long as a token can be. An invalid token and unknown parameters are left out.
    pub async fn with_short_hint(
        self,
        parameters: &[(String, String)],
        issuer: &Issuer,
        now: Timestamp,
    ) -> Result<Vec<(String, String)>, Problem> {
        let mut tokens = parameters.iter().filter(|(name, _)| name == "id_token_hint");
        let (Some((_, token)), None) = (tokens.next(), tokens.next()) else { return Ok(parameters.to_vec()) };
        let mut short = parameters.to_vec();
        short.retain(|(name, _)| RETAINED.contains(&name.as_str()));
        if let Some(hint) = self.hint(token, issuer, now).await? {
            let text = serde_json::to_vec(&hint)
                .map_err(|_| StoreError::Internal("a hint cannot be written".into()))?;
            let sealed = self.context.master.seal(&about_hint(issuer), &text);
            short.push((SHORT_HINT.to_owned(), BASE64_URL_SAFE_NO_PAD.encode(sealed)));
        }
        Ok(short)
    }

    /// Whether this browser has an active session: a cookie alone does not count.
    pub async fn has_session(self, visit: &Visit) -> Result<bool, Problem> {
        Ok(!self.sessions(visit).await?.is_empty())
    }

    /// The sessions of this browser.
    async fn sessions(self, visit: &Visit) -> Result<Vec<Session>, Problem> {
        let Some(cookie) = visit.session_cookie(&self.context.master) else { return Ok(Vec::new()) };
        let now = visit.now;
        let reading = self
            .store
            .run("SessionsOfBrowser", Mode::Quick, None, move |tx| session::load(tx, Some(&cookie), now));
        Ok(reading.await?)
    }

    /// Ends sessions of a browser and their grants. Returns the front-channel logout addresses, whether no session is
    /// left, and the instances of the ended sessions.
    async fn sign_out(
        self,
        visit: &Visit,
        selection: SignOutSelection,
    ) -> Result<(Vec<String>, bool, Vec<Uuid>), Problem> {
        let (cookie, now) = (visit.session_cookie(&self.context.master), visit.now);
        let (app, origin) = (Arc::clone(self.context), visit.origin.clone());
        let issuing = visit.issuer.tenant_id();
        let ending = self.store.run("SignOut", Mode::Write, None, move |tx| {
            let mut sessions = session::load(tx, cookie.as_ref(), now)?;
            let all = sessions.len();
            sessions.retain(|session| is_of_issuer(issuing, session));
            let ended = sessions_to_end(tx, &sessions, selection)?;
            let addressed = frames(tx, &ended)?;
            for session in &ended {
                let context = context_of_person(&app, session.person, now);
                sign_out(&context, tx, SignOutScope::Session(session.id))?;
                let record = SignInRecord {
                    outcome: SignInOutcome::SignedOut,
                    tenant: session.tenant,
                    application: selection.application,
                    instance: Some(session.instance),
                    person: session.person,
                    methods: &[],
                    acr: None,
                    session: Some(session.id),
                    origin: Some(&origin),
                };
                record.write(&context, tx)?;
            }
            let instances = ended.iter().map(|session| session.instance).collect();
            Ok::<_, Problem>((addressed, ended.len() == all, instances))
        });
        let (addressed, is_last, instances) = ending.await?;
        let address = |frame: Frame| {
            let issuer = ("iss".to_owned(), self.issuer_url(frame.issuing));
            let session = ("sid".to_owned(), self.session_for(frame.session, frame.application));
            let query = if frame.needs_session { vec![issuer, session] } else { Vec::new() };
            with_query(&frame.uri, &query)
        };
        Ok((addressed.into_iter().map(address).collect(), is_last, instances))
    }
}

/// Why the browser is not redirected to the `post_logout_redirect_uri` of a request.
fn redirect_refusal(request: &LogoutRequest, application: Option<&Application>) -> Option<ProtocolError> {
    request.post_logout_redirect_uri.as_ref()?;
    let detail = match application {
        Some(_) => "post_logout_redirect_uri is none of the client app's.",
        None => {
            "post_logout_redirect_uri needs a client_id or id_token_hint of a client app that serves here."
        }
    };
    Some(ProtocolError::new(ErrorCode::InvalidRequest, detail))
}

/// The sessions to end: of several accounts only the selected one.
fn sessions_to_end(
    tx: &mut Tx<'_>,
    sessions: &[Session],
    selection: SignOutSelection,
) -> Result<Vec<Session>, StoreError> {
    let of = |is_meant: &dyn Fn(&Session) -> bool| -> Vec<Session> {
        sessions.iter().filter(|session| is_meant(session)).cloned().collect()
    };
    let theirs = of(&|session| Some(session.person) == selection.person);
    if !theirs.is_empty() || sessions.len() < 2 {
        return Ok(if theirs.is_empty() { sessions.to_vec() } else { theirs });
    }
    let Some(application) = selection.application else { return Ok(sessions.to_vec()) };
    let mut sql =
        Sql::new("SELECT DISTINCT session_id FROM sign_in_grant WHERE client_app_id = ").bind(application);
    sql.add(" AND session_id IN ");
    sql.add_list(sessions.iter().map(|session| session.id.into()));
    let mut used = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        used.push(row.id(0)?);
        Ok(())
    })?;
    let theirs = of(&|session| used.contains(&session.id));
    Ok(if theirs.is_empty() { sessions.to_vec() } else { theirs })
}

selectable! {
    /// A front-channel logout of a client app.
    struct Frame {
        application: Uuid = "a.id",
        uri: String = "a.frontchannel_logout_uri",
        needs_session: bool = "a.frontchannel_logout_session_required",
        issuing: Option<Uuid> = "g.issuing_tenant_id",
        session: Uuid = "g.session_id",
    }
}

fn frames(tx: &mut Tx<'_>, sessions: &[Session]) -> Result<Vec<Frame>, StoreError> {
    let mut sql = Sql::new(format!(
        "SELECT DISTINCT {} FROM sign_in_grant g JOIN client_app a ON a.id = g.client_app_id \
         WHERE a.frontchannel_logout_uri IS NOT NULL AND g.session_id IN ",
        Frame::COLUMNS
    ));
    sql.add_list(sessions.iter().map(|session| session.id.into()));
    sql.add(&format!(" LIMIT {MAX_FRAMES}"));
    let mut rows = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        rows.push(Frame::read(row)?);
        Ok(())
    })?;
    Ok(rows)
}
