//! Sign-in at an external identity provider: the browser goes there and comes back with an answer, which is judged outside of
//! transactions.

mod address;
mod claims;
mod person;
mod rules;
mod sign_out;

use std::{sync::Arc, time::Instant};

use chancery_application::ExternalProfile;
use chancery_federation::Check;
use chancery_flow::{Method, Proven, Step};
use chancery_management::{
    claim_rule::Unusable,
    identity_replacement::prove_replacing,
    idp_instance::connection::{
        Asking, Connection, KEPT_MS, REDIRECT_MAX_AGE_MS, RETRY_MAX_AGE_MS, Returned, begin, complete,
    },
};
use chancery_record::{Timestamp, Value};
use chancery_resource::{Context, Problem, Scope, StateTable, Tx};
use chancery_store::Mode;
use uuid::Uuid;

pub use address::flow_of_state;

use self::{address::Secret, claims::ProviderIdentity};
use crate::{
    application::{OfferedProvider, ProviderKind},
    completion::{Completion, Decided},
    kept_flow::{KeptFlow, SentTo, ToldElsewhere},
    outcome::{Judged, Outcome, PageError},
    page::PASSWORD,
    provider::{Circumstances, Examined, Provider, Visit, context_of_person},
};

/// The page that leads to an external identity provider, by its name in addresses.
pub const EXTERNAL: &str = "external";

impl Provider<'_> {
    /// Sends a browser to an external identity provider that the sign-in offers; shows the page that is due where it does not.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn go_to_provider(
        self,
        visit: &Visit,
        kept: KeptFlow,
        instance: Uuid,
    ) -> Result<Outcome, Problem> {
        let Some(application) = self.application_of(&kept).await? else {
            return Ok(Outcome::Error(PageError::UNKNOWN_CLIENT));
        };
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let examined = self.examine(visit, &kept, &circumstances).await?;
        self.go_from(visit, kept, (circumstances, examined), Some(instance)).await
    }

    /// Sends a browser to this provider, if the sign-in offers it; shows the page that is due where it does not.
    pub(crate) async fn go_from(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        (circumstances, examined): (Circumstances, Examined),
        instance: Option<Uuid>,
    ) -> Result<Outcome, Problem> {
        kept.mistake = None;
        let provider = instance.and_then(|id| offered(&circumstances, &examined, id)).cloned();
        match (provider, examined.due.step()) {
            (Some(provider), _) => self.send_to(visit, kept, &provider).await,
            (None, Step::FirstFactor(due)) if !due.offered.is_empty() => {
                Ok(Outcome::GoTo(kept.into(), PASSWORD, None))
            }
            (None, _) => self.step(visit, kept, circumstances, examined).await,
        }
    }

    /// Sends a browser to this provider, or back to the page with what is wrong.
    async fn send_to(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        provider: &OfferedProvider,
    ) -> Result<Outcome, Problem> {
        let connection = self.connection(provider.id, provider.kind, visit.now).await?;
        let secret = Secret::new();
        let demands = address::demands(&kept);
        let asked = Instant::now();
        // whoever is sent there once more did not come back
        let is_again = kept.sent_to.as_ref().is_some_and(|sent| sent.instance == provider.id);
        let max_age_ms = if is_again { RETRY_MAX_AGE_MS } else { REDIRECT_MAX_AGE_MS };
        let begun = begin(Asking { max_age_ms, ..self.asking(visit.now) }, connection, &demands).await;
        let Some(discovery) = begun.discovery.as_ref().filter(|_| begun.can_go_on()) else {
            self.counts.providers.note(provider.id, false, asked.elapsed());
            log(provider, &begun.checks);
            return Ok(failed(kept, "provider_failed"));
        };
        let sent = SentTo {
            instance: provider.id,
            path: begun.connection.path.clone(),
            seed: secret.text(),
            login: demands.login,
            on: visit.now.0,
        };
        let address = secret.address(
            &self.context.master,
            (discovery, &begun.connection.client, &demands),
            (provider.id, &kept.id, &visit.browser),
        );
        kept.sent_to = Some(sent);
        Ok(Outcome::Elsewhere(kept.into(), address))
    }

    async fn connection(
        self,
        instance: Uuid,
        kind: ProviderKind,
        now: Timestamp,
    ) -> Result<Connection, Problem> {
        let app = Arc::clone(self.context);
        let reading = self.store.run("ReadProvider", Mode::Quick, None, move |tx| {
            Connection::read(&app, tx, (instance, kind), now)
        });
        Ok(reading.await?)
    }

    fn asking(self, now: Timestamp) -> Asking {
        let documents = Some(Arc::clone(self.documents));
        Asking { ask: self.context.ask_elsewhere.clone(), documents, max_age_ms: KEPT_MS, now }
    }

    /// Takes the answer of an external identity provider that a browser brings back, and goes on; and what was judged.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn return_from_provider(
        self,
        visit: &Visit,
        mut kept: KeptFlow,
        parameters: Vec<(String, String)>,
    ) -> Result<(Outcome, Judged), Problem> {
        let no_flow = || Ok((Outcome::Error(PageError::NO_FLOW), Judged::Not));
        let Some(sent) = kept.sent_to.take() else { return no_flow() };
        let Some(secret) = Secret::of(&sent) else { return no_flow() };
        let shown = parameters.iter().find(|(name, _)| name == "state").map(|(_, state)| state.as_str());
        if shown != Some(secret.state(&self.context.master, sent.instance, &kept.id, &visit.browser).as_str())
        {
            return no_flow();
        }
        let Some(application) = self.application_of(&kept).await? else {
            return Ok((Outcome::Error(PageError::UNKNOWN_CLIENT), Judged::Not));
        };
        let circumstances = Circumstances::new(self, application, (visit, &kept));
        let examined = self.examine(visit, &kept, &circumstances).await?;
        let offered = offered(&circumstances, &examined, sent.instance).cloned();
        let Some((provider, tenant)) = offered.zip(circumstances.tenant_of(&examined)) else {
            return Ok((self.step(visit, kept, circumstances, examined).await?, Judged::Not));
        };
        let connection = self.connection(provider.id, provider.kind, visit.now).await?;
        let is_denied = parameters.iter().any(|(name, value)| name == "error" && value == "access_denied");
        let demands = address::demands_of(&kept, &sent);
        let returned = Returned {
            parameters,
            secrets: secret.secrets(&self.context.master),
            demands,
            assertion_id: secret.assertion_id(),
        };
        let asked = Instant::now();
        let completed = complete(self.asking(visit.now), connection, returned).await;
        self.counts.providers.note(provider.id, completed.has_passed(), asked.elapsed());
        let Some(identity) = ProviderIdentity::of(&completed, &provider).filter(|_| completed.has_passed())
        else {
            log(&provider, &completed.checks);
            return Ok((
                failed(kept, if is_denied { "provider_denied" } else { "provider_failed" }),
                Judged::Not,
            ));
        };
        let profile = match self.profile_by_rules(&identity, (tenant, provider.id)).await? {
            Ok(profile) => profile,
            Err(Unusable(reason)) => {
                tracing::error!(%tenant, instance = %provider.id, reason, "claim rules cannot run: nobody signs in by an identity provider");
                return Ok((failed(kept, "unexpected"), Judged::Not));
            }
        };
        self.end_external(visit, (kept, circumstances), (provider, secret), (identity, profile)).await
    }

    async fn end_external(
        self,
        visit: &Visit,
        (mut kept, mut circumstances): (KeptFlow, Circumstances),
        (provider, secret): (OfferedProvider, Secret),
        who: (ProviderIdentity, ExternalProfile),
    ) -> Result<(Outcome, Judged), Problem> {
        let Some(completion) = self.completion(visit, &kept, &circumstances) else {
            return Ok((Outcome::Error(PageError::NO_FLOW), Judged::Not));
        };
        let spent = secret.spent(&self.context.master);
        let deciding = self.store.run("EndExternalSignIn", Mode::Write, None, move |tx| {
            if !spend(tx, &completion, &spent)? {
                return Ok(Ended::Used);
            }
            decide(&completion, tx, &provider, &who)
        });
        Ok(match deciding.await? {
            Ended::Used => (Outcome::Error(PageError::NO_FLOW), Judged::Wrong),
            Ended::Unknown => (failed(kept, "not_allowed"), Judged::Not),
            Ended::Decided(decided, told) => {
                // a session keeps it, where there is one already
                kept.told = matches!(decided, Decided::GoOn(_)).then_some(told);
                circumstances.told = kept.told.clone().map(Arc::new);
                (self.conclude(visit, kept, circumstances, decided).await?, Judged::Right)
            }
        })
    }
}

/// What came of an answer that was right.
enum Ended {
    /// The answer was shown before.
    Used,
    /// The person is not known here, and does not become a platform user.
    Unknown,
    /// The person goes on.
    Decided(Decided, ToldElsewhere),
}

/// The provider, where a first factor may be proven there now.
fn offered<'a>(
    circumstances: &'a Circumstances,
    examined: &Examined,
    instance: Uuid,
) -> Option<&'a OfferedProvider> {
    let Step::FirstFactor(due) = examined.due.step() else { return None };
    due.offered.iter().find(|offered| offered.id == instance)?;
    circumstances.application.tenant(due.tenant)?.provider(instance)
}

/// The page of the first factor, with what went wrong elsewhere.
fn failed(mut kept: KeptFlow, code: &str) -> Outcome {
    kept.sent_to = None;
    kept.again(PASSWORD, code, "")
}

/// Tells the log alone what a provider said.
fn log(provider: &OfferedProvider, checks: &[Check]) {
    let wrong: Vec<&str> =
        checks.iter().filter(|check| !check.passed).map(|check| check.detail.as_str()).collect();
    tracing::warn!(instance = %provider.id, reason = wrong.join(" "), "a sign-in at an identity provider failed");
}

/// Uses an answer up; false where it was used before.
fn spend(tx: &mut Tx<'_>, completion: &Completion, digest: &[u8]) -> Result<bool, Problem> {
    let text =
        StateTable::UsedProof.insert("(digest, expires_on) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING");
    let until = completion.now.plus(chancery_flow::LIFETIME_MS);
    Ok(tx.execute(&text, &[Value::Bytes(digest.to_vec()), until.0.into()])? == 1)
}

fn decide(
    completion: &Completion,
    tx: &mut Tx<'_>,
    provider: &OfferedProvider,
    (identity, profile): &(ProviderIdentity, ExternalProfile),
) -> Result<Ended, Problem> {
    let context = Context::of_server(&completion.app, Scope::Everything, completion.now);
    let application = &completion.circumstances.application;
    // also where the person cannot sign in yet by the identity that is to be
    prove_replacing(&context, tx, (provider.id, identity.subject.as_str()))?;
    // nobody becomes a platform user who is refused anyway
    let is_at_home =
        application.allow_cross_subscription || application.subscription == provider.subscription;
    let may_be_new = is_at_home && !application.is_restricted;
    let Some(person) = person::find_or_create(&context, tx, (provider, may_be_new), (identity, profile))?
    else {
        return Ok(Ended::Unknown);
    };
    let told_elsewhere = ToldElsewhere { person, instance: provider.id, claims: identity.claims.clone() };
    let completion = &completion.clone().with_told(told_elsewhere.clone());
    let context = context_of_person(&completion.app, person, completion.now);
    let sessions = completion.sessions(tx)?;
    let method =
        Method::External { second_factor: identity.has_second_factor, auth_time: identity.auth_time };
    let proven = Proven { person, instance: provider.id, method, credential: None };
    let examined = completion.prove(tx, &sessions, proven)?;
    let decided = completion.sign_in(&context, tx, &sessions, &examined, None)?;
    if decided.is_none() {
        completion.record_refusal(&context, tx, &examined)?;
    }
    let decided = decided.unwrap_or_else(|| Decided::GoOn(examined.due.flow().clone().into()));
    Ok(Ended::Decided(decided, told_elsewhere))
}
