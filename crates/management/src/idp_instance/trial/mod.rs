//! Trial of a provider: an administrator signs in there once, and gets all checks and the claims that
//! came back. A trial signs nobody in, and stores nothing but the use of its state.

mod response;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_federation::{Demands, ProviderKind, RequestParameters, TrialState, authorization_url};
use chancery_record::{JsonText, OPEN, Timestamp, Value, record};
use chancery_resource::{
    Action as A, Answer, Body, BodyForm, Call, Context, Custom, JsonForm, Method as M, Op,
    Permit::SubscriptionAdmin, Problem, Purpose, Reply, StateTable, StoredRow, Tx, Work, random, read_form,
};
use serde_json::json;
use uuid::Uuid;

use super::{
    IDP_INSTANCE, IdpInstance,
    connection::{
        Begun, Completed, Connection, ProviderClient, Returned, Secrets, begin, complete, parameters,
    },
    look_up::find,
};

/// A trial demands nothing of the sign-in.
static NO_DEMANDS: Demands = Demands::NONE;
/// The maximum duration of a trial, in ms.
const MAX_DURATION: i64 = 10 * 60_000;

record! {
    /// The response of an identity provider to a trial.
    struct IdpInstanceTrialAnswer {
        /// The query string of the address to which the identity provider redirected, unchanged.
        #[de("Suche", "Die Query der Adresse, zu der der Identitätsanbieter weitergeleitet hat, unverändert.")]
        query: JsonText = OPEN.like("code=b25l&state=dHdv"),
    }
}

static ANSWER: BodyForm = BodyForm::of::<IdpInstanceTrialAnswer>("IdpInstanceTrialAnswer");
static BEGUN: JsonForm = JsonForm { name: "IdpInstanceTrial", schema: response::begun_schema };
static COMPLETED: JsonForm = JsonForm { name: "IdpInstanceTrialOutcome", schema: response::completed_schema };

/// The operations of a trial.
pub static OPERATIONS: &[Op] = &[
    Op::new(
        "StartIdpInstanceTrial",
        M::Post,
        "/IdpInstance/{idpInstance}/trial",
        SubscriptionAdmin,
        &IDP_INSTANCE,
        A::Custom(Custom::working(Purpose::Outbound, start_trial).by_rows().replying(Reply::Json(&BEGUN))),
        "Starts a trial of an identity provider: checks its metadata and returns the URL for the sign-in. Nobody is signed in by the trial.",
    )
    .answering(200, Reply::Json(&BEGUN))
    .added(),
    Op::new(
        "CompleteIdpInstanceTrial",
        M::Post,
        "/IdpInstance/{idpInstance}/trial/answer",
        SubscriptionAdmin,
        &IDP_INSTANCE,
        A::Custom(
            Custom::working(Purpose::Outbound, complete_trial)
                .by_rows()
                .taking(Body::Form(&ANSWER))
                .replying(Reply::Json(&COMPLETED)),
        ),
        "Completes a trial with the response of the identity provider, which is accepted once. Returns the results of all checks and the received claims.",
    )
    .answering(200, Reply::Json(&COMPLETED))
    .added(),
];

fn start_trial(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let instance = find(call, tx, &IDP_INSTANCE)?;
    let Some(begun) = call.result::<Begun>() else {
        let connection = connection(call, tx, &instance)?;
        return Ok(Answer::after(Work::waiting(
            Purpose::Outbound,
            begin(provider_client(call), connection, &NO_DEMANDS),
        )));
    };
    let client = &begun.connection.client;
    let url = match (&begun.discovery, call.context.actor) {
        (Some(discovery), Some(actor)) if begun.can_go_on() => {
            let state = TrialState {
                instance: instance.get(IdpInstance::ID)?.0,
                actor,
                until: Timestamp(call.context.now.0 + MAX_DURATION),
                seed: random(),
                path: begun.connection.path.clone(),
            };
            let secrets = secrets(&call.context, &state);
            let sealed = call.context.app.master.seal(TrialState::LABEL, &state.to_bytes());
            let request = RequestParameters {
                state: &BASE64_URL_SAFE_NO_PAD.encode(sealed),
                nonce: &secrets.nonce,
                verifier: &secrets.verifier,
                demands: &Demands::default(),
            };
            Some(authorization_url(discovery, client, request))
        }
        _ => None,
    };
    let body =
        json!({ "url": url, "callback": client.redirect_uri, "checks": response::checks(&begun.checks) });
    call.answer.bytes.extend_from_slice(body.to_string().as_bytes());
    Ok(Answer::new(call.request.op.status))
}

fn complete_trial(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let instance = find(call, tx, &IDP_INSTANCE)?;
    if let Some(completed) = call.result::<Completed>() {
        call.answer.bytes.extend_from_slice(response::completed(&completed).to_string().as_bytes());
        return Ok(Answer::new(call.request.op.status));
    }
    let form: IdpInstanceTrialAnswer = read_form(call)?;
    let parameters = parameters(form.query.as_str());
    let expired = || {
        let detail = "is of no trial of yours here that is under way: begin it anew";
        Problem::wrong_field(IdpInstanceTrialAnswer::QUERY, detail)
    };
    let state = parameters.iter().find(|(name, _)| name == "state").and_then(|(_, sealed)| {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        TrialState::read(call.context.app.master.open(TrialState::LABEL, &sealed)?.expose())
    });
    let is_own = |state: &TrialState| {
        Ok::<_, Problem>(
            state.instance == instance.get(IdpInstance::ID)?.0
                && call.context.actor == Some(state.actor)
                && call.context.now.0 < state.until.0,
        )
    };
    let state = state.ok_or_else(expired)?;
    if !is_own(&state)? || !claim(&call.context, tx, &state)? {
        return Err(expired());
    }
    let connection = connection(call, tx, &instance)?;
    let returned = Returned {
        parameters,
        secrets: secrets(&call.context, &state),
        demands: Demands::default(),
        assertion_id: Uuid::from_bytes(state.seed).to_string(),
    };
    Ok(Answer::after(Work::waiting(Purpose::Outbound, complete(provider_client(call), connection, returned))))
}

/// The connection of an instance; only an external provider has one.
fn connection(call: &Call, tx: &mut Tx<'_>, instance: &StoredRow) -> Result<Connection, Problem> {
    let kind_name = instance.text(IdpInstance::IDP_FACTORY_TYPE).unwrap_or_default();
    let Some(kind) = ProviderKind::named(kind_name) else {
        return Err(Problem::conflict(format!(
            "An instance of type {kind_name} cannot be tried out: only external identity providers can."
        )));
    };
    if instance.get(IdpInstance::HAS_CONFIGURATION_ERROR)? {
        return Err(Problem::conflict(
            "The instance has options that are empty and must not be, or cannot be read: set them first. In the place of \
             ClientSecret a certificate of type OidcTokenSigning can be linked.",
        ));
    }
    let id = instance.get(IdpInstance::ID)?.0;
    Ok(Connection::read(&call.context.app, tx, id, kind, call.context.now)?)
}

/// A provider client without a cache: a trial reads every document anew.
fn provider_client(call: &Call) -> ProviderClient {
    let send = call.context.app.send_outbound.clone();
    ProviderClient { send, documents: None, max_age_ms: 0, now: call.context.now }
}

fn secrets(context: &Context, state: &TrialState) -> Secrets {
    let derive = |purpose| BASE64_URL_SAFE_NO_PAD.encode(context.app.master.digest(purpose, &state.seed));
    Secrets { nonce: derive("idp-instance-trial-nonce"), verifier: derive("idp-instance-trial-verifier") }
}

/// Redeems a state; false if it was redeemed before.
fn claim(context: &Context, tx: &mut Tx<'_>, state: &TrialState) -> Result<bool, Problem> {
    let text =
        StateTable::UsedProof.insert("(digest, expires_on) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING");
    let digest = context.app.master.digest("idp-instance-trial-used", &state.seed);
    Ok(tx.execute(&text, &[Value::Bytes(digest), state.until.0.into()])? == 1)
}
