//! A flow under way as the browser keeps it: sealed in a cookie, bound to the browser.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_flow::{Flow, Request};
use chancery_oauth::{Addressing, AuthorizationRequest};
use chancery_record::{Timestamp, Value};
use chancery_resource::{CONSOLE, MasterKey, Problem, StateTable, StoreError, Tx, random};
use chancery_store::Mode;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    console::CONSOLE_PATH,
    provider::{Provider, Visit},
    second_factor::Enrolling,
};

/// The cookie of a flow that does not fit one.
pub const IN_ROW: &str = "row";
/// The most rows of flows under way. Anybody can begin a flow, so an installation has a bound besides that of each
/// address: 10,000 rows are less than 200 MB.
const MOST_ROWS: i64 = 10_000;

/// A flow under way.
#[derive(Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct KeptFlow {
    /// Its id, by which its pages name it.
    #[serde(skip)]
    pub id: String,
    /// The tenant whose issuer was asked; none is the installation.
    pub issuing: Option<Uuid>,
    /// The client app.
    pub application: Uuid,
    /// The parameters of the authorization request.
    pub parameters: Vec<(String, String)>,
    /// What was chosen and proven.
    pub flow: Flow,
    /// The device that waits; none: a client app in this browser asked.
    #[serde(default)]
    pub device: Option<WaitingDevice>,
    /// Whether the session is to outlive the browser's own, as was ticked.
    #[serde(default)]
    pub keeps: bool,
    /// Whether this browser is spared a second factor next time, as was ticked.
    #[serde(default)]
    pub remembers: bool,
    /// What was wrong on the page before: it is answered by a redirect, so that going back repeats no form.
    #[serde(default)]
    pub mistake: Option<Mistake>,
    /// The authenticator that is being enrolled.
    #[serde(default)]
    pub enrolling: Option<Enrolling>,
    /// Recovery codes that are shown before the flow goes on.
    #[serde(default)]
    pub recovery_codes: Vec<String>,
    /// By what the answer of an authenticator is judged that the open page asks for a passkey, in base64url.
    #[serde(default)]
    pub ceremony: Option<String>,
    /// Whether a password is to be made where a passkey could be, too.
    #[serde(default)]
    pub prefers_password: bool,
    /// The external identity provider that the browser was sent to.
    #[serde(default)]
    pub sent_to: Option<SentTo>,
    /// What a provider told of the person, until a session keeps it.
    #[serde(default)]
    pub told: Option<ToldElsewhere>,
    /// Whether a page that is shown changed the flow, so that the browser keeps it anew.
    #[serde(skip)]
    pub is_changed: bool,
    /// Whether the person was signed in: a session that ended since is not made anew.
    #[serde(default)]
    pub has_signed_in: bool,
    /// The language of the person whose sign-in has come to its end, for the pages that look nothing up any more.
    #[serde(default)]
    pub locale: Option<String>,
    /// Where the flow ends, once it has: the address of the answer to the client app.
    pub answer: Option<String>,
    /// Whether the client app was answered.
    #[serde(default)]
    pub has_ended: bool,
}

/// A browser's way to an external identity provider: by what its answer is judged.
#[derive(Clone, Serialize, Deserialize)]
pub struct SentTo {
    /// The instance.
    pub instance: Uuid,
    /// The path that the provider leads back to.
    pub path: String,
    /// What state, nonce and verifier follow from, and by which the answer is good once, in base64url.
    pub seed: String,
    /// Whether the person was to sign in anew there.
    pub login: bool,
    /// When the browser was sent, in ms since 1970.
    pub on: i64,
}

/// What an external identity provider told of a person.
#[derive(Clone, Serialize, Deserialize)]
pub struct ToldElsewhere {
    /// The person.
    pub person: Uuid,
    /// The instance.
    pub instance: Uuid,
    /// The types and values of the claims.
    pub claims: Vec<(String, String)>,
}

/// A device that waits for the end of a flow.
#[derive(Clone, Serialize, Deserialize)]
pub struct WaitingDevice {
    /// The digest of its code, in base64url.
    pub digest: String,
    /// The user code, as it was typed.
    pub user_code: String,
    /// What was decided: the step of the page that says so.
    pub decided: Option<String>,
}

/// What was typed on a page, and what is wrong there.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Mistake {
    /// The page: another one shows nothing of it.
    pub page: String,
    /// The name.
    pub username: String,
    /// Codes of problems, each with its field.
    pub errors: Vec<(String, String)>,
    /// What else was typed, by fields.
    #[serde(default)]
    pub typed: Vec<(String, String)>,
}

impl Mistake {
    /// What is wrong, as pages take it.
    pub fn told(&self) -> serde_json::Value {
        self.errors.iter().map(|(code, field)| serde_json::json!({ "code": code, "field": field })).collect()
    }
}

impl KeptFlow {
    /// A flow at its beginning.
    pub fn new(
        issuing: Option<Uuid>,
        application: Uuid,
        parameters: Vec<(String, String)>,
        flow: Flow,
    ) -> Self {
        let id = BASE64_URL_SAFE_NO_PAD.encode(random::<12>());
        Self {
            id,
            issuing,
            application,
            parameters,
            flow,
            device: None,
            keeps: false,
            remembers: false,
            mistake: None,
            enrolling: None,
            recovery_codes: Vec::new(),
            ceremony: None,
            prefers_password: false,
            sent_to: None,
            told: None,
            is_changed: false,
            has_signed_in: false,
            locale: None,
            answer: None,
            has_ended: false,
        }
    }

    /// What is kept of it once the client app was answered: where it leads back to.
    #[must_use]
    pub fn ended(&self) -> Self {
        let is_kept = |name: &str| matches!(name, "redirect_uri" | "ui_locales");
        let parameters = self.parameters.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
        let flow = Flow::new(Request::new(self.flow.request().started));
        let kept = Self::new(self.issuing, self.application, parameters, flow);
        Self { id: self.id.clone(), has_ended: true, locale: self.locale.clone(), ..kept }
    }

    /// Who proved something last.
    pub fn person(&self) -> Option<Uuid> {
        self.flow.proofs().last().map(|proof| proof.person)
    }

    /// What was wrong on this page.
    pub fn mistake_on(&self, page: &str) -> Option<&Mistake> {
        self.mistake.as_ref().filter(|mistake| mistake.page == page)
    }

    /// The beginning of the client app's address, for who gets lost.
    pub fn home(&self) -> Option<String> {
        let (_, address) = self.parameters.iter().find(|(name, _)| name == "redirect_uri")?;
        home_of(self.application, address)
    }

    /// The authorization request, read again from its parameters, which were judged when the flow began.
    pub fn request(&self) -> Option<(Addressing, AuthorizationRequest)> {
        let addressing = Addressing::read(&self.parameters).ok()?;
        let request = AuthorizationRequest::read(&addressing, &self.parameters).ok()?;
        Some((addressing, request))
    }

    fn seal_bytes(&self, master: &MasterKey, browser: &str) -> Option<Vec<u8>> {
        let text = serde_json::to_vec(self).ok()?;
        Some(master.seal(&associated_data(master, &self.id, browser), &text))
    }

    /// The flow, sealed for the browser with this cookie value; `None` where it has more bytes than a cookie has room for.
    pub fn seal(&self, master: &MasterKey, browser: &str, room: usize) -> Option<String> {
        let sealed = BASE64_URL_SAFE_NO_PAD.encode(self.seal_bytes(master, browser)?);
        (sealed.len() <= room).then_some(sealed)
    }

    /// Opens a flow that the browser with this cookie value shows.
    pub fn open(master: &MasterKey, id: &str, browser: &str, sealed: &str) -> Option<Self> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        Self::open_bytes(master, id, browser, &sealed)
    }

    fn open_bytes(master: &MasterKey, id: &str, browser: &str, sealed: &[u8]) -> Option<Self> {
        let text = master.open(&associated_data(master, id, browser), sealed)?;
        let flow: Self = serde_json::from_slice(text.expose()).ok()?;
        Some(Self { id: id.to_owned(), ..flow })
    }

    /// What a form of this flow's page sends along, so that no other site can send it (`csrf`).
    pub fn csrf(&self, master: &MasterKey, browser: &str, step: &str) -> String {
        let about = format!("{}\0{browser}\0{step}", self.id);
        BASE64_URL_SAFE_NO_PAD.encode(master.digest("sign-in-csrf", about.as_bytes()))
    }

    /// Whether the flow has ended, or its time is over.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.has_ended || now >= self.flow.request().started.plus(chancery_flow::LIFETIME_MS)
    }
}

impl Provider<'_> {
    /// Keeps a flow that is too large for a cookie in a row; its cookie is [`IN_ROW`]. Whether there was a place for it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn keep_in_row(self, visit: &Visit, kept: &KeptFlow) -> Result<bool, Problem> {
        let (master, now) = (&self.context.master, visit.now);
        let unwritable = || StoreError::Internal("a flow cannot be written".into());
        let sealed = kept.seal_bytes(master, &visit.browser).ok_or_else(unwritable)?;
        let until = kept.flow.request().started.plus(chancery_flow::LIFETIME_MS);
        let (id, sealed) = (Value::from(kept.id.clone()), Value::from(sealed));
        let writing = move |tx: &mut Tx<'_>| {
            let text = StateTable::SignInFlow.update("SET sealed = ?2 WHERE id = ?1");
            if tx.execute(&text, &[id.clone(), sealed.clone()])? == 1 {
                return Ok(true);
            }
            if rows(tx, now)? >= MOST_ROWS {
                return Ok(false);
            }
            let text = StateTable::SignInFlow.insert(
                "(id, sealed, expires_on) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET sealed = ?2",
            );
            tx.queue(&text, vec![id.clone(), sealed.clone(), until.0.into()])?;
            Ok::<_, StoreError>(true)
        };
        Ok(self.store.run("KeepSignIn", Mode::Write, None, writing).await?)
    }

    /// The flow of this id that a browser's cookie holds, or the row that it names.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn flow_of(self, visit: &Visit, id: &str, cookie: &str) -> Result<Option<KeptFlow>, Problem> {
        let master = &self.context.master;
        if cookie != IN_ROW {
            return Ok(KeptFlow::open(master, id, &visit.browser, cookie));
        }
        let key = id.to_owned();
        let reading = move |tx: &mut Tx<'_>| {
            let text = "SELECT sealed FROM sign_in_flow WHERE id = ?1";
            tx.one(text, &[key.as_str().into()], |row| Ok(row.bytes(0)?.to_vec()))
        };
        let sealed = self.store.run("ReadSignIn", Mode::Quick, None, reading).await?;
        Ok(sealed.and_then(|sealed| KeptFlow::open_bytes(master, id, &visit.browser, &sealed)))
    }
}

/// Where a client app is, for who gets lost: the origin of one of its redirect URIs.
pub fn home_of(application: Uuid, address: &str) -> Option<String> {
    let (scheme, rest) =
        address.split_once("://").filter(|(scheme, _)| matches!(*scheme, "https" | "http"))?;
    let host = rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty())?;
    Some(if application == CONSOLE { CONSOLE_PATH.to_owned() } else { format!("{scheme}://{host}/") })
}

/// The rows of flows under way.
fn rows(tx: &mut Tx<'_>, now: Timestamp) -> Result<i64, StoreError> {
    let text = format!(
        "SELECT count(*) FROM (SELECT 1 FROM sign_in_flow WHERE expires_on > ?1 LIMIT {MOST_ROWS}) w"
    );
    Ok(tx.one(&text, &[now.0.into()], |row| row.int(0))?.unwrap_or_default())
}

/// A flow is opened in its own era alone: what people proved in one that began before a restore counts no longer.
fn associated_data(master: &MasterKey, id: &str, browser: &str) -> String {
    format!("sign_in_flow/{id}/{browser}{}", master.era())
}

#[cfg(test)]
mod tests {
    use chancery_flow::{Flow, Request};
    use chancery_record::Timestamp;
    use chancery_resource::MasterKey;
    use uuid::Uuid;

    use super::KeptFlow;

    fn kept() -> KeptFlow {
        let parameters = vec![("state".to_owned(), "s".to_owned())];
        KeptFlow::new(None, Uuid::from_u128(1), parameters, Flow::new(Request::new(Timestamp(1))))
    }

    #[test]
    fn a_flow_opens_in_its_own_browser_alone() {
        let (master, kept) = (MasterKey::generate(), kept());
        let sealed = kept.seal(&master, "browser", 2_000).unwrap();
        assert_eq!(
            KeptFlow::open(&master, &kept.id, "browser", &sealed).unwrap().parameters,
            kept.parameters
        );
        assert!(KeptFlow::open(&master, &kept.id, "other", &sealed).is_none());
        assert!(KeptFlow::open(&master, "another", "browser", &sealed).is_none());
        assert!(KeptFlow::open(&MasterKey::generate(), &kept.id, "browser", &sealed).is_none());
        assert!(KeptFlow::open(&master.in_era("another"), &kept.id, "browser", &sealed).is_none());
        assert!(KeptFlow::open(&master, &kept.id, "browser", "!").is_none());
    }

    #[test]
    fn a_form_is_of_one_flow_step_and_browser() {
        let (master, kept) = (MasterKey::generate(), kept());
        let own = kept.csrf(&master, "browser", "password");
        assert_eq!(own, kept.csrf(&master, "browser", "password"));
        assert_ne!(own, kept.csrf(&master, "browser", "consent"));
        assert_ne!(own, kept.csrf(&master, "other", "password"));
        assert_ne!(own, super::KeptFlow { id: "other".into(), ..kept }.csrf(&master, "browser", "password"));
    }

    #[test]
    fn what_does_not_fit_a_cookie_is_not_sealed() {
        let mut kept = kept();
        let sealed = kept.seal(&MasterKey::generate(), "browser", 2_000).unwrap();
        assert!(kept.seal(&MasterKey::generate(), "browser", sealed.len() - 1).is_none());
        kept.parameters = vec![("state".to_owned(), "s".repeat(4_000))];
        assert!(kept.seal(&MasterKey::generate(), "browser", 2_000).is_none());
    }
}
