//! Sign-in at an external identity provider: redirects the browser, and validates the response outside of
//! transactions.

mod authorization_request;
mod claim_rules;
mod claims;
mod person;
mod upstream_sign_out;

use std::{sync::Arc, time::Instant};

use chancery_application::ExternalProfile;
use chancery_federation::Check;
use chancery_flow::{Method, Proven, Step};
use chancery_management::{
    claim_rule::Unusable,
    identity_replacement::prove_replacing,
    idp_instance::connection::{
        Connection, DOCUMENT_TTL_MS, ProviderClient, REDIRECT_MAX_AGE_MS, RETRY_MAX_AGE_MS, Returned, begin,
        complete,
    },
};
use chancery_record::{Timestamp, Value};
use chancery_resource::{Context, Problem, Scope, StateTable, Tx};
use chancery_store::Mode;
use uuid::Uuid;

pub use authorization_request::flow_of_state;

use self::{
    authorization_request::{Secret, StateBinding},
    claims::ProviderIdentity,
};
use crate::{
    client_app::{OfferedProvider, ProviderKind},
    flow::{
        context::{Evaluated, FlowContext},
        page_name::PASSWORD,
        pending_flow::{PendingFlow, ProviderRedirect},
        response::{AttemptResult, BrowserResponse, PageError},
        sign_in_transaction::{ProofResult, SignInTransaction},
    },
    person::{context::context_of_person, external_claims::ExternalClaims},
    provider::{Provider, Visit},
};

impl Provider<'_> {
    /// Redirects to an external identity provider, if the sign-in offers it; else shows the due page.
    pub async fn go_to_provider(
        self,
        visit: &Visit,
        pending: PendingFlow,
        instance: Uuid,
    ) -> Result<BrowserResponse, Problem> {
        let Some(application) = self.application_of(&pending).await? else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        let flow_context = FlowContext::new(self, application, visit, &pending);
        let evaluated = self.evaluate(visit, &pending, &flow_context).await?;
        self.redirect_or_step(visit, pending, flow_context, evaluated, Some(instance)).await
    }

    /// Redirects to this provider, if the sign-in offers it; else shows the due page.
    pub(crate) async fn redirect_or_step(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        flow_context: FlowContext,
        evaluated: Evaluated,
        instance: Option<Uuid>,
    ) -> Result<BrowserResponse, Problem> {
        pending.form_errors = None;
        let provider = instance.and_then(|id| offered(&flow_context, &evaluated, id)).cloned();
        match (provider, evaluated.due.step()) {
            (Some(provider), _) => self.send_to(visit, pending, &provider).await,
            (None, Step::FirstFactor(due)) if !due.offered.is_empty() => {
                Ok(BrowserResponse::ToPage(pending.into(), PASSWORD, None))
            }
            (None, _) => self.respond_with_step(visit, pending, flow_context, evaluated).await,
        }
    }

    /// Redirects to this provider, or shows the page again with the error.
    async fn send_to(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        provider: &OfferedProvider,
    ) -> Result<BrowserResponse, Problem> {
        let connection = self.connection(provider.id, provider.kind, visit.now).await?;
        let secret = Secret::new();
        let demands = authorization_request::demands(&pending);
        let started = Instant::now();
        // a repeated redirect means that the browser did not return
        let is_again =
            pending.provider_redirect.as_ref().is_some_and(|redirect| redirect.instance == provider.id);
        let max_age_ms = if is_again { RETRY_MAX_AGE_MS } else { REDIRECT_MAX_AGE_MS };
        let begun =
            begin(ProviderClient { max_age_ms, ..self.provider_client(visit.now) }, connection, &demands)
                .await;
        let Some(discovery) = begun.discovery.as_ref().filter(|_| begun.can_go_on()) else {
            self.counts.providers.note(provider.id, false, started.elapsed());
            log(provider, &begun.checks);
            return Ok(failed(pending, "provider_failed"));
        };
        let redirect = ProviderRedirect {
            instance: provider.id,
            path: begun.connection.path.clone(),
            seed: secret.text(),
            login: demands.login,
            on: visit.now.0,
        };
        let bound_to = StateBinding { instance: provider.id, flow: &pending.id, browser: &visit.browser };
        let client = &begun.connection.client;
        let address = secret.address(&self.context.master, discovery, client, &demands, bound_to);
        pending.provider_redirect = Some(redirect);
        Ok(BrowserResponse::ToProvider(pending.into(), address))
    }

    async fn connection(
        self,
        instance: Uuid,
        kind: ProviderKind,
        now: Timestamp,
    ) -> Result<Connection, Problem> {
        let app = Arc::clone(self.context);
        let reading = self.store.run("ReadProvider", Mode::Quick, None, move |tx| {
            Connection::read(&app, tx, instance, kind, now)
        });
        Ok(reading.await?)
    }

    fn provider_client(self, now: Timestamp) -> ProviderClient {
        let documents = Some(Arc::clone(self.documents));
        ProviderClient {
            send: self.context.send_outbound.clone(),
            documents,
            max_age_ms: DOCUMENT_TTL_MS,
            now,
        }
    }

    /// Handles the response of an external identity provider. Returns the response to the browser and the result of
    /// the attempt.
    pub async fn return_from_provider(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        parameters: Vec<(String, String)>,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        let no_flow = || Ok((BrowserResponse::Error(PageError::NO_FLOW), AttemptResult::NotCounted));
        let Some(redirect) = pending.provider_redirect.take() else { return no_flow() };
        let Some(secret) = Secret::of(&redirect) else { return no_flow() };
        let shown = parameters.iter().find(|(name, _)| name == "state").map(|(_, state)| state.as_str());
        let bound_to =
            StateBinding { instance: redirect.instance, flow: &pending.id, browser: &visit.browser };
        if shown != Some(secret.state(&self.context.master, bound_to).as_str()) {
            return no_flow();
        }
        let Some(application) = self.application_of(&pending).await? else {
            return Ok((BrowserResponse::Error(PageError::UNKNOWN_CLIENT), AttemptResult::NotCounted));
        };
        let flow_context = FlowContext::new(self, application, visit, &pending);
        let evaluated = self.evaluate(visit, &pending, &flow_context).await?;
        let offered = offered(&flow_context, &evaluated, redirect.instance).cloned();
        let Some((provider, tenant)) = offered.zip(flow_context.tenant_of(&evaluated)) else {
            return Ok((
                self.respond_with_step(visit, pending, flow_context, evaluated).await?,
                AttemptResult::NotCounted,
            ));
        };
        let connection = self.connection(provider.id, provider.kind, visit.now).await?;
        let is_denied = parameters.iter().any(|(name, value)| name == "error" && value == "access_denied");
        let demands = authorization_request::demands_of(&pending, &redirect);
        let returned = Returned {
            parameters,
            secrets: secret.secrets(&self.context.master),
            demands,
            assertion_id: secret.assertion_id(),
        };
        let started = Instant::now();
        let completed = complete(self.provider_client(visit.now), connection, returned).await;
        self.counts.providers.note(provider.id, completed.has_passed(), started.elapsed());
        let Some(identity) = ProviderIdentity::of(&completed, &provider).filter(|_| completed.has_passed())
        else {
            log(&provider, &completed.checks);
            return Ok((
                failed(pending, if is_denied { "provider_denied" } else { "provider_failed" }),
                AttemptResult::NotCounted,
            ));
        };
        let profile = match self.profile_by_rules(&identity, tenant, provider.id).await? {
            Ok(profile) => profile,
            Err(Unusable(reason)) => {
                tracing::error!(%tenant, instance = %provider.id, reason, "claim rules cannot run: nobody signs in by an identity provider");
                return Ok((failed(pending, "unexpected"), AttemptResult::NotCounted));
            }
        };
        self.complete_external(
            visit,
            pending,
            flow_context,
            provider,
            secret,
            ExternalPerson { identity, profile },
        )
        .await
    }

    async fn complete_external(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        mut flow_context: FlowContext,
        provider: OfferedProvider,
        secret: Secret,
        external: ExternalPerson,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        let Some(transaction) = self.sign_in_transaction(visit, &pending, &flow_context) else {
            return Ok((BrowserResponse::Error(PageError::NO_FLOW), AttemptResult::NotCounted));
        };
        let spent = secret.spent(&self.context.master);
        let deciding = self.store.run("EndExternalSignIn", Mode::Write, None, move |tx| {
            if !spend(tx, &transaction, &spent)? {
                return Ok(ExternalResult::Replayed);
            }
            decide(&transaction, tx, &provider, &external)
        });
        Ok(match deciding.await? {
            ExternalResult::Replayed => (BrowserResponse::Error(PageError::NO_FLOW), AttemptResult::Failed),
            ExternalResult::Unknown => (failed(pending, "not_allowed"), AttemptResult::NotCounted),
            ExternalResult::Decided(decided, external_claims) => {
                // otherwise a session stores them
                pending.external_claims =
                    matches!(decided, ProofResult::Continue(_)).then_some(external_claims);
                flow_context.external_claims = pending.external_claims.clone().map(Arc::new);
                (
                    self.respond_to_proof(visit, pending, flow_context, decided).await?,
                    AttemptResult::Succeeded,
                )
            }
        })
    }
}

/// A person at a provider.
struct ExternalPerson {
    identity: ProviderIdentity,
    /// The fields of the platform user.
    profile: ExternalProfile,
}

/// The result of a valid response of a provider.
enum ExternalResult {
    /// The response was presented before.
    Replayed,
    /// The person is unknown here, and no platform user may be created.
    Unknown,
    /// The sign-in continues.
    Decided(ProofResult, ExternalClaims),
}

/// The provider, if it is offered for the first factor now.
fn offered<'a>(
    flow_context: &'a FlowContext,
    evaluated: &Evaluated,
    instance: Uuid,
) -> Option<&'a OfferedProvider> {
    let Step::FirstFactor(due) = evaluated.due.step() else { return None };
    due.offered.iter().find(|offered| offered.id == instance)?;
    flow_context.application.tenant(due.tenant)?.provider(instance)
}

/// The page of the first factor, with an error of the provider.
fn failed(mut pending: PendingFlow, code: &str) -> BrowserResponse {
    pending.provider_redirect = None;
    pending.with_error(PASSWORD, code, "")
}

/// Logs the failed checks of a provider's response, which pages do not show.
fn log(provider: &OfferedProvider, checks: &[Check]) {
    let wrong: Vec<&str> =
        checks.iter().filter(|check| !check.passed).map(|check| check.detail.as_str()).collect();
    tracing::warn!(instance = %provider.id, reason = wrong.join(" "), "a sign-in at an identity provider failed");
}

/// Marks a response as used. `false`: it was used before.
fn spend(tx: &mut Tx<'_>, transaction: &SignInTransaction, digest: &[u8]) -> Result<bool, Problem> {
    let text =
        StateTable::UsedProof.insert("(digest, expires_on) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING");
    let until = transaction.now.plus(chancery_flow::LIFETIME_MS);
    Ok(tx.execute(&text, &[Value::Bytes(digest.to_vec()), until.0.into()])? == 1)
}

fn decide(
    transaction: &SignInTransaction,
    tx: &mut Tx<'_>,
    provider: &OfferedProvider,
    external: &ExternalPerson,
) -> Result<ExternalResult, Problem> {
    let ExternalPerson { identity, profile } = external;
    let context = Context::of_server(&transaction.app, Scope::Everything, transaction.now);
    let application = &transaction.flow_context.application;
    // also if the person cannot sign in by the replacing identity yet
    prove_replacing(&context, tx, provider.id, identity.subject.as_str())?;
    // no platform user is created for a person who would be refused
    let is_own_subscription =
        application.allow_cross_subscription || application.subscription == provider.subscription;
    let may_be_new = is_own_subscription && !application.is_restricted;
    let Some(person) = person::find_or_create(&context, tx, provider, may_be_new, identity, profile)? else {
        return Ok(ExternalResult::Unknown);
    };
    let external_claims = ExternalClaims { person, instance: provider.id, claims: identity.claims.clone() };
    let transaction = &transaction.clone().with_external_claims(external_claims.clone());
    let context = context_of_person(&transaction.app, person, transaction.now);
    let sessions = transaction.sessions(tx)?;
    let method =
        Method::External { second_factor: identity.has_second_factor, auth_time: identity.auth_time };
    let proven = Proven { person, instance: provider.id, method, credential: None };
    let evaluated = transaction.prove(tx, &sessions, proven)?;
    let decided = transaction.sign_in(&context, tx, &sessions, &evaluated, None)?;
    if decided.is_none() {
        transaction.record_refusal(&context, tx, &evaluated)?;
    }
    let decided = decided.unwrap_or_else(|| ProofResult::Continue(evaluated.due.flow().clone().into()));
    Ok(ExternalResult::Decided(decided, external_claims))
}
