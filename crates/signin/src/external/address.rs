//! The way to a provider and back: what is asked for there, and the state by which the answer is known.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_federation::{Asked, Client, Demands, Discovery, authorization_address};
use chancery_flow::Prompt;
use chancery_management::idp_instance::connection::Secrets;
use chancery_resource::{MasterKey, random};
use uuid::Uuid;

use crate::kept_flow::{KeptFlow, SentTo};

/// How long ago a sign-in may have been that was to be a new one, in seconds: as long as a flow lasts.
const NEW_SIGN_IN_S: u64 = 30 * 60;
/// What stands between the id of the flow and the proof in a state.
const BETWEEN: char = '.';

/// What state, nonce and verifier of one request follow from.
#[derive(Clone)]
pub struct Secret([u8; 16]);

impl Secret {
    /// A new one.
    pub fn new() -> Self {
        Self(random())
    }

    /// That of a browser's way.
    pub fn of(sent: &SentTo) -> Option<Self> {
        BASE64_URL_SAFE_NO_PAD.decode(&sent.seed).ok()?.try_into().ok().map(Self)
    }

    /// It, as a sealed flow keeps it.
    pub fn text(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }

    fn derived(&self, master: &MasterKey, purpose: &str, about: &str) -> String {
        let bytes = [self.0.as_slice(), about.as_bytes()].concat();
        BASE64_URL_SAFE_NO_PAD.encode(master.digest(purpose, &bytes))
    }

    /// `state`: the id of the flow, and a proof that this browser was sent to this instance by it.
    pub fn state(&self, master: &MasterKey, instance: Uuid, flow: &str, browser: &str) -> String {
        let proof = self.derived(master, "external-sign-in-state", &format!("{instance}/{flow}/{browser}"));
        format!("{flow}{BETWEEN}{proof}")
    }

    /// Nonce and verifier.
    pub fn secrets(&self, master: &MasterKey) -> Secrets {
        Secrets {
            nonce: self.derived(master, "external-sign-in-nonce", ""),
            verifier: self.derived(master, "external-sign-in-verifier", ""),
        }
    }

    /// The digest by which the answer is good once.
    pub fn spent(&self, master: &MasterKey) -> Vec<u8> {
        master.digest("external-sign-in-used", &self.0)
    }

    /// The id of the assertion by which this server proves itself.
    pub fn assertion_id(&self) -> String {
        Uuid::from_bytes(self.0).to_string()
    }

    /// Where the browser of a flow is sent to.
    pub fn address(
        &self,
        master: &MasterKey,
        (discovery, client, demands): (&Discovery, &Client, &Demands),
        (instance, flow, browser): (Uuid, &str, &str),
    ) -> String {
        let secrets = self.secrets(master);
        let state = self.state(master, instance, flow, browser);
        let asked = Asked { state: &state, nonce: &secrets.nonce, verifier: &secrets.verifier, demands };
        authorization_address(discovery, client, asked)
    }
}

/// The id of the flow that a state names, if it is of a sign-in.
pub fn flow_of_state(state: &str) -> Option<&str> {
    state.split_once(BETWEEN).map(|(flow, _)| flow)
}

/// What the client app demands of the sign-in, which the provider is asked for in turn. Another account than one before is chosen
/// by signing in anew.
pub fn demands(kept: &KeptFlow) -> Demands {
    let request = kept.flow.request();
    let login = matches!(request.prompt, Prompt::Pages { login: true, .. });
    // that the person signed in anew shows in auth_time alone, which a provider must tell where max_age is sent
    let anew = login.then_some(NEW_SIGN_IN_S);
    let authorization = kept.request().map(|(_, request)| request);
    Demands {
        login: login || kept.flow.is_other_account(),
        max_age: request.max_age.into_iter().chain(anew).min(),
        since: None,
        login_hint: authorization.as_ref().and_then(|request| request.login_hint.clone()),
        acr_values: authorization.map(|request| request.acr_values.classes).unwrap_or_default(),
    }
}

/// What was demanded when the browser was sent.
pub fn demands_of(kept: &KeptFlow, sent: &SentTo) -> Demands {
    let demanded = demands(kept);
    let is_new = matches!(kept.flow.request().prompt, Prompt::Pages { login: true, .. });
    // a new sign-in is one since the browser was sent
    let age = demanded.max_age.map(|age| if is_new { 0 } else { i64::try_from(age).unwrap_or(i64::MAX) });
    let since = age.map(|age| sent.on.div_euclid(1000).saturating_sub(age));
    Demands { login: sent.login, since, ..demanded }
}

#[cfg(test)]
mod tests {
    use chancery_resource::MasterKey;
    use uuid::Uuid;

    use super::{Secret, flow_of_state};

    #[test]
    fn a_state_is_of_one_browser_flow_and_instance() {
        let (master, secret, instance) = (MasterKey::generate(), Secret::new(), Uuid::from_u128(1));
        let state = secret.state(&master, instance, "flow", "browser");
        assert_eq!(flow_of_state(&state), Some("flow"));
        for other in [
            secret.state(&master, Uuid::from_u128(2), "flow", "browser"),
            secret.state(&master, instance, "flow", "other"),
            secret.state(&master, instance, "other", "browser"),
            Secret::new().state(&master, instance, "flow", "browser"),
            secret.state(&MasterKey::generate(), instance, "flow", "browser"),
        ] {
            assert_ne!(other, state);
        }
        let secrets = secret.secrets(&master);
        assert_ne!(secrets.nonce, secrets.verifier);
        assert!(!state.contains(&secrets.nonce) && !state.contains(&secrets.verifier));
    }
}
