//! The authorization request to a provider, and the state that identifies its response.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_federation::{Client, Demands, Discovery, RequestParameters, authorization_url};
use chancery_flow::Prompt;
use chancery_management::idp_instance::connection::Secrets;
use chancery_resource::{MasterKey, random};
use uuid::Uuid;

use crate::flow::pending_flow::{PendingFlow, ProviderRedirect};

/// The maximum age of a new sign-in, in seconds: as long as a flow lasts.
const NEW_SIGN_IN_S: u64 = 30 * 60;
/// The separator between the id of the flow and the proof in a state.
const SEPARATOR: char = '.';

/// What a state is bound to.
#[derive(Clone, Copy)]
pub struct StateBinding<'a> {
    /// The instance.
    pub instance: Uuid,
    /// The id of the flow.
    pub flow: &'a str,
    /// The browser.
    pub browser: &'a str,
}

/// The secret from which state, nonce and verifier of one request are derived.
#[derive(Clone)]
pub struct Secret([u8; 16]);

impl Secret {
    /// A new one.
    pub fn new() -> Self {
        Self(random())
    }

    /// The secret of a redirect.
    pub fn of(redirect: &ProviderRedirect) -> Option<Self> {
        BASE64_URL_SAFE_NO_PAD.decode(&redirect.seed).ok()?.try_into().ok().map(Self)
    }

    /// Its text, for the sealed flow.
    pub fn text(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }

    fn derived(&self, master: &MasterKey, purpose: &str, about: &str) -> String {
        let bytes = [self.0.as_slice(), about.as_bytes()].concat();
        BASE64_URL_SAFE_NO_PAD.encode(master.digest(purpose, &bytes))
    }

    /// `state`: the id of the flow, and a proof that this browser was redirected to this instance in that flow.
    pub fn state(&self, master: &MasterKey, bound_to: StateBinding<'_>) -> String {
        let StateBinding { instance, flow, browser } = bound_to;
        let proof = self.derived(master, "external-sign-in-state", &format!("{instance}/{flow}/{browser}"));
        format!("{flow}{SEPARATOR}{proof}")
    }

    /// Nonce and verifier.
    pub fn secrets(&self, master: &MasterKey) -> Secrets {
        Secrets {
            nonce: self.derived(master, "external-sign-in-nonce", ""),
            verifier: self.derived(master, "external-sign-in-verifier", ""),
        }
    }

    /// The digest that makes the response valid once.
    pub fn spent(&self, master: &MasterKey) -> Vec<u8> {
        master.digest("external-sign-in-used", &self.0)
    }

    /// The id of this server's client assertion.
    pub fn assertion_id(&self) -> String {
        Uuid::from_bytes(self.0).to_string()
    }

    /// The authorization address for the browser of a flow.
    pub fn address(
        &self,
        master: &MasterKey,
        discovery: &Discovery,
        client: &Client,
        demands: &Demands,
        bound_to: StateBinding<'_>,
    ) -> String {
        let secrets = self.secrets(master);
        let state = self.state(master, bound_to);
        let request =
            RequestParameters { state: &state, nonce: &secrets.nonce, verifier: &secrets.verifier, demands };
        authorization_url(discovery, client, request)
    }
}

/// The id of the flow in a state, if the state is of a sign-in.
pub fn flow_of_state(state: &str) -> Option<&str> {
    state.split_once(SEPARATOR).map(|(flow, _)| flow)
}

/// The client app's requirements, which are passed on to the provider. To select another account, the person signs in
/// again.
pub fn demands(pending: &PendingFlow) -> Demands {
    let request = pending.flow.request();
    let login = matches!(request.prompt, Prompt::Pages { login: true, .. });
    // only auth_time shows that the person signed in again, and a provider must send it if max_age is sent
    let anew = login.then_some(NEW_SIGN_IN_S);
    let authorization = pending.request().map(|(_, request)| request);
    Demands {
        login: login || pending.flow.is_other_account(),
        max_age: request.max_age.into_iter().chain(anew).min(),
        since: None,
        login_hint: authorization.as_ref().and_then(|request| request.login_hint.clone()),
        acr_values: authorization.map(|request| request.acr_values.classes).unwrap_or_default(),
    }
}

/// The requirements at the time of the redirect.
pub fn demands_of(pending: &PendingFlow, redirect: &ProviderRedirect) -> Demands {
    let demanded = demands(pending);
    let is_new = matches!(pending.flow.request().prompt, Prompt::Pages { login: true, .. });
    // a new sign-in is one after the redirect
    let age = demanded.max_age.map(|age| if is_new { 0 } else { i64::try_from(age).unwrap_or(i64::MAX) });
    let since = age.map(|age| redirect.on.div_euclid(1000).saturating_sub(age));
    Demands { login: redirect.login, since, ..demanded }
}

#[cfg(test)]
mod tests {
    use chancery_resource::MasterKey;
    use uuid::Uuid;

    use super::{Secret, StateBinding, flow_of_state};

    #[test]
    fn a_state_is_bound_to_browser_flow_and_instance() {
        let (master, secret, instance) = (MasterKey::generate(), Secret::new(), Uuid::from_u128(1));
        let bound_to = StateBinding { instance, flow: "flow", browser: "browser" };
        let state = secret.state(&master, bound_to);
        assert_eq!(flow_of_state(&state), Some("flow"));
        for other in [
            secret.state(&master, StateBinding { instance: Uuid::from_u128(2), ..bound_to }),
            secret.state(&master, StateBinding { browser: "other", ..bound_to }),
            secret.state(&master, StateBinding { flow: "other", ..bound_to }),
            Secret::new().state(&master, bound_to),
            secret.state(&MasterKey::generate(), bound_to),
        ] {
            assert_ne!(other, state);
        }
        let secrets = secret.secrets(&master);
        assert_ne!(secrets.nonce, secrets.verifier);
        assert!(!state.contains(&secrets.nonce) && !state.contains(&secrets.verifier));
    }
}
