//! A sign-in flow in progress, stored by the browser: sealed in a cookie and bound to the browser.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_flow::{Flow, Request};
use chancery_oauth::{AuthorizationRequest, ResponseTarget};
use chancery_record::{Timestamp, Value};
use chancery_resource::{CONSOLE, MasterKey, Problem, StateTable, StoreError, Tx, random};
use chancery_store::Mode;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    client_app::console_path::CONSOLE_PATH,
    person::external_claims::ExternalClaims,
    provider::{Provider, Visit},
    second_factor::Enrolling,
};

/// The cookie value of a flow that is too large for a cookie and is stored in a row.
pub const IN_ROW: &str = "row";
/// The maximum of stored flows. Unauthenticated callers can start a flow, so the installation has a limit besides
/// that of each address: 10,000 rows are less than 200 MB.
const MAX_ROWS: i64 = 10_000;

/// A sign-in flow in progress.
#[derive(Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct PendingFlow {
    /// Its id, which the addresses of its pages contain.
    #[serde(skip)]
    pub id: String,
    /// The tenant whose issuer got the request; `None`: the installation.
    pub issuing: Option<Uuid>,
    /// The client app.
    pub application: Uuid,
    /// The parameters of the authorization request.
    pub parameters: Vec<(String, String)>,
    /// The choices and proofs so far.
    pub flow: Flow,
    /// The waiting device; `None`: the request came from a client app in this browser.
    #[serde(default)]
    pub device: Option<WaitingDevice>,
    /// Whether the session persists after the browser is closed ("stay signed in").
    #[serde(default, rename = "keeps")]
    pub is_persistent: bool,
    /// Whether this browser skips the second factor next time ("remember this device").
    #[serde(default, rename = "remembers")]
    pub remembers_device: bool,
    /// Errors of the last post. It is answered by a redirect, so that going back resubmits no form.
    #[serde(default, rename = "mistake")]
    pub form_errors: Option<FormErrors>,
    /// The authenticator that is being enrolled.
    #[serde(default)]
    pub enrolling: Option<Enrolling>,
    /// Recovery codes to show before the flow continues.
    #[serde(default)]
    pub recovery_codes: Vec<String>,
    /// State of the WebAuthn ceremony of the open page, in base64url.
    #[serde(default)]
    pub ceremony: Option<String>,
    /// Whether the person prefers a password where a passkey could be registered instead.
    #[serde(default)]
    pub prefers_password: bool,
    /// The external identity provider to which the browser was redirected.
    #[serde(default, rename = "sent_to")]
    pub provider_redirect: Option<ProviderRedirect>,
    /// Claims of the external provider, until a session stores them.
    #[serde(default, rename = "told")]
    pub external_claims: Option<ExternalClaims>,
    /// Whether rendering a page changed the flow, so that the cookie has to be set again.
    #[serde(skip)]
    pub is_changed: bool,
    /// Whether the person was signed in: a session that has ended since is not created again.
    #[serde(default)]
    pub has_signed_in: bool,
    /// The language of the person once the sign-in is complete, for pages that read nothing else.
    #[serde(default)]
    pub locale: Option<String>,
    /// The address of the response to the client app, once the flow has ended.
    pub answer: Option<String>,
    /// Whether the client app has got its response.
    #[serde(default)]
    pub has_ended: bool,
}

/// A redirect to an external identity provider, against which its response is validated.
#[derive(Clone, Serialize, Deserialize)]
pub struct ProviderRedirect {
    /// The instance.
    pub instance: Uuid,
    /// The path of the callback.
    pub path: String,
    /// The seed of state, nonce and verifier, in base64url. It makes the response valid once.
    pub seed: String,
    /// Whether a new sign-in was requested there (`prompt=login`).
    pub login: bool,
    /// When the browser was redirected, in ms since 1970.
    pub on: i64,
}

/// A device that waits for this flow (RFC 8628).
#[derive(Clone, Serialize, Deserialize)]
pub struct WaitingDevice {
    /// The digest of its code, in base64url.
    pub digest: String,
    /// The user code, as it was typed.
    pub user_code: String,
    /// The decision: the step of the page that shows it.
    pub decided: Option<String>,
}

/// The input of a form with its errors.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct FormErrors {
    /// The page; no other one shows the errors.
    pub page: String,
    /// The login name.
    pub username: String,
    /// Error codes, each with its field.
    pub errors: Vec<(String, String)>,
    /// Other input, by field.
    #[serde(default)]
    pub typed: Vec<(String, String)>,
}

impl FormErrors {
    /// The errors in the form that views expect.
    pub fn to_json(&self) -> serde_json::Value {
        self.errors.iter().map(|(code, field)| serde_json::json!({ "code": code, "field": field })).collect()
    }
}

impl PendingFlow {
    /// A new flow.
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
            is_persistent: false,
            remembers_device: false,
            form_errors: None,
            enrolling: None,
            recovery_codes: Vec::new(),
            ceremony: None,
            prefers_password: false,
            provider_redirect: None,
            external_claims: None,
            is_changed: false,
            has_signed_in: false,
            locale: None,
            answer: None,
            has_ended: false,
        }
    }

    /// The remainder of an ended flow: the data that leads back to the client app.
    #[must_use]
    pub fn ended(&self) -> Self {
        let is_retained = |name: &str| matches!(name, "redirect_uri" | "ui_locales");
        let parameters = self.parameters.iter().filter(|(name, _)| is_retained(name)).cloned().collect();
        let flow = Flow::new(Request::new(self.flow.request().started));
        let pending = Self::new(self.issuing, self.application, parameters, flow);
        Self { id: self.id.clone(), has_ended: true, locale: self.locale.clone(), ..pending }
    }

    /// The person of the last proof.
    pub fn person(&self) -> Option<Uuid> {
        self.flow.proofs().last().map(|proof| proof.person)
    }

    /// The errors of this page.
    pub fn form_errors_on(&self, page: &str) -> Option<&FormErrors> {
        self.form_errors.as_ref().filter(|form_errors| form_errors.page == page)
    }

    /// The origin of the client app, as a link on error pages.
    pub fn home(&self) -> Option<String> {
        let (_, address) = self.parameters.iter().find(|(name, _)| name == "redirect_uri")?;
        home_of(self.application, address)
    }

    /// The authorization request, parsed again from its parameters, which were validated when the flow began.
    pub fn request(&self) -> Option<(ResponseTarget, AuthorizationRequest)> {
        let addressing = ResponseTarget::read(&self.parameters).ok()?;
        let request = AuthorizationRequest::read(&addressing, &self.parameters).ok()?;
        Some((addressing, request))
    }

    fn seal_bytes(&self, master: &MasterKey, browser: &str) -> Option<Vec<u8>> {
        let text = serde_json::to_vec(self).ok()?;
        Some(master.seal(&associated_data(master, &self.id, browser), &text))
    }

    /// The flow, sealed for the browser with this cookie value; `None` if it is larger than `room` bytes.
    pub fn seal(&self, master: &MasterKey, browser: &str, room: usize) -> Option<String> {
        let sealed = BASE64_URL_SAFE_NO_PAD.encode(self.seal_bytes(master, browser)?);
        (sealed.len() <= room).then_some(sealed)
    }

    /// Opens a flow from the cookie of this browser.
    pub fn open(master: &MasterKey, id: &str, browser: &str, sealed: &str) -> Option<Self> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        Self::open_bytes(master, id, browser, &sealed)
    }

    fn open_bytes(master: &MasterKey, id: &str, browser: &str, sealed: &[u8]) -> Option<Self> {
        let text = master.open(&associated_data(master, id, browser), sealed)?;
        let flow: Self = serde_json::from_slice(text.expose()).ok()?;
        Some(Self { id: id.to_owned(), ..flow })
    }

    /// The CSRF token of a form of this flow (`csrf`).
    pub fn csrf(&self, master: &MasterKey, browser: &str, step: &str) -> String {
        let about = format!("{}\0{browser}\0{step}", self.id);
        BASE64_URL_SAFE_NO_PAD.encode(master.digest("sign-in-csrf", about.as_bytes()))
    }

    /// Whether the flow has ended or expired.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.has_ended || now >= self.flow.request().started.plus(chancery_flow::LIFETIME_MS)
    }
}

impl Provider<'_> {
    /// Stores a flow that is too large for a cookie in a row; its cookie is [`IN_ROW`]. Returns false if the limit of
    /// rows is reached.
    pub async fn store_in_row(self, visit: &Visit, pending: &PendingFlow) -> Result<bool, Problem> {
        let (master, now) = (&self.context.master, visit.now);
        let unwritable = || StoreError::Internal("a flow cannot be written".into());
        let sealed = pending.seal_bytes(master, &visit.browser).ok_or_else(unwritable)?;
        let until = pending.flow.request().started.plus(chancery_flow::LIFETIME_MS);
        let (id, sealed) = (Value::from(pending.id.clone()), Value::from(sealed));
        let writing = move |tx: &mut Tx<'_>| {
            let text = StateTable::SignInFlow.update("SET sealed = ?2 WHERE id = ?1");
            if tx.execute(&text, &[id.clone(), sealed.clone()])? == 1 {
                return Ok(true);
            }
            if rows(tx, now)? >= MAX_ROWS {
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

    /// The flow of this id, from the browser's cookie or from the row that it names.
    pub async fn flow_of(
        self,
        visit: &Visit,
        id: &str,
        cookie: &str,
    ) -> Result<Option<PendingFlow>, Problem> {
        let master = &self.context.master;
        if cookie != IN_ROW {
            return Ok(PendingFlow::open(master, id, &visit.browser, cookie));
        }
        let key = id.to_owned();
        let reading = move |tx: &mut Tx<'_>| {
            let text = "SELECT sealed FROM sign_in_flow WHERE id = ?1";
            tx.one(text, &[key.as_str().into()], |row| Ok(row.bytes(0)?.to_vec()))
        };
        let sealed = self.store.run("ReadSignIn", Mode::Quick, None, reading).await?;
        Ok(sealed.and_then(|sealed| PendingFlow::open_bytes(master, id, &visit.browser, &sealed)))
    }
}

/// The origin of one of a client app's redirect URIs, as a link on error pages.
pub fn home_of(application: Uuid, address: &str) -> Option<String> {
    let (scheme, rest) =
        address.split_once("://").filter(|(scheme, _)| matches!(*scheme, "https" | "http"))?;
    let host = rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty())?;
    Some(if application == CONSOLE { CONSOLE_PATH.to_owned() } else { format!("{scheme}://{host}/") })
}

/// Counts stored flows, up to the limit.
fn rows(tx: &mut Tx<'_>, now: Timestamp) -> Result<i64, StoreError> {
    let text =
        format!("SELECT count(*) FROM (SELECT 1 FROM sign_in_flow WHERE expires_on > ?1 LIMIT {MAX_ROWS}) w");
    Ok(tx.one(&text, &[now.0.into()], |row| row.int(0))?.unwrap_or_default())
}

/// A flow opens only in its own era, so that proofs from before a restore are invalid.
fn associated_data(master: &MasterKey, id: &str, browser: &str) -> String {
    format!("sign_in_flow/{id}/{browser}{}", master.era())
}

#[cfg(test)]
mod tests {
    use chancery_flow::{Flow, Request};
    use chancery_record::Timestamp;
    use chancery_resource::MasterKey;
    use uuid::Uuid;

    use super::PendingFlow;

    fn pending() -> PendingFlow {
        let parameters = vec![("state".to_owned(), "s".to_owned())];
        PendingFlow::new(None, Uuid::from_u128(1), parameters, Flow::new(Request::new(Timestamp(1))))
    }

    #[test]
    fn a_sealed_flow_opens_only_in_its_own_browser() {
        let (master, pending) = (MasterKey::generate(), pending());
        let sealed = pending.seal(&master, "browser", 2_000).unwrap();
        assert_eq!(
            PendingFlow::open(&master, &pending.id, "browser", &sealed).unwrap().parameters,
            pending.parameters
        );
        assert!(PendingFlow::open(&master, &pending.id, "other", &sealed).is_none());
        assert!(PendingFlow::open(&master, "another", "browser", &sealed).is_none());
        assert!(PendingFlow::open(&MasterKey::generate(), &pending.id, "browser", &sealed).is_none());
        assert!(PendingFlow::open(&master.in_era("another"), &pending.id, "browser", &sealed).is_none());
        assert!(PendingFlow::open(&master, &pending.id, "browser", "!").is_none());
    }

    #[test]
    fn a_csrf_token_is_bound_to_flow_step_and_browser() {
        let (master, pending) = (MasterKey::generate(), pending());
        let own = pending.csrf(&master, "browser", "password");
        assert_eq!(own, pending.csrf(&master, "browser", "password"));
        assert_ne!(own, pending.csrf(&master, "browser", "consent"));
        assert_ne!(own, pending.csrf(&master, "other", "password"));
        assert_ne!(
            own,
            super::PendingFlow { id: "other".into(), ..pending }.csrf(&master, "browser", "password")
        );
    }

    #[test]
    fn a_flow_that_does_not_fit_a_cookie_is_not_sealed() {
        let mut pending = pending();
        let sealed = pending.seal(&MasterKey::generate(), "browser", 2_000).unwrap();
        assert!(pending.seal(&MasterKey::generate(), "browser", sealed.len() - 1).is_none());
        pending.parameters = vec![("state".to_owned(), "s".repeat(4_000))];
        assert!(pending.seal(&MasterKey::generate(), "browser", 2_000).is_none());
    }
}
