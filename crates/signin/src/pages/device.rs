//! The pages that authorize a device (RFC 8628): a person types its code, signs in and confirms it.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_flow::{Flow, Request, Step};
use chancery_record::{Timestamp, Value as Bound};
use chancery_resource::{Context, MasterKey, Problem, Scope, StateTable, StoreError, Tx, random};
use chancery_store::{Mode, selectable};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Form, Posted, SignInPage, not_counted};
use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_name::DEVICE,
        page_redirect::redirect_after_post,
        pending_flow::{PendingFlow, WaitingDevice},
        response::{BrowserResponse, Page, PageError},
    },
    grant::{
        claims_request::RequestedClaims,
        device_code::{associated_data, user_digest},
        granted::Granted,
    },
    person::consent,
    provider::{Provider, Visit},
    session,
};

/// A redirect URI that no response uses: the parameters of a device's flow are parsed like any others.
const NOWHERE: &str = "https://device.invalid/";

pub(super) static PAGE: SignInPage =
    SignInPage { name: DEVICE, prepare: None, view, attempt: |_, _| None, post };

fn post<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow, form: Form<'a>) -> Posted<'a> {
    let is_allowed = form.field("decision") == Some("allow");
    not_counted(provider.decide_device(visit, pending, is_allowed))
}

impl Provider<'_> {
    /// Starts the sign-in of a person who typed a user code. `None`: no device waits with it.
    pub async fn begin_device(self, visit: &Visit, typed: &str) -> Result<Option<BrowserResponse>, Problem> {
        let issuing = visit.issuer.tenant_id();
        let (user, now) = (user_digest(&self.context.master, issuing, typed), visit.now);
        let row =
            self.store.run("FindDevice", Mode::Quick, None, move |tx| find_waiting(tx, &user, now)).await?;
        let Some(waiting) = row else { return Ok(None) };
        let Some(application) = self.application(waiting.application, issuing).await? else {
            return Ok(None);
        };
        let parameters = [
            ("client_id", application.id.to_string()),
            ("redirect_uri", NOWHERE.to_owned()),
            ("response_type", "none".to_owned()),
        ];
        let mut parameters: Vec<_> = parameters.map(|(name, value)| (name.to_owned(), value)).into();
        if !waiting.scope.is_empty() {
            parameters.push(("scope".to_owned(), waiting.scope.clone()));
        }
        let words = waiting.scope.split_whitespace().chain(waiting.resources.split_whitespace());
        let demanded = Request {
            tenant: issuing,
            requested: words.map(str::to_owned).collect(),
            after_sign_out: visit.has_signed_out,
            ..Request::new(visit.now)
        };
        let mut pending = PendingFlow::new(issuing, application.id, parameters, Flow::new(demanded));
        pending.device = Some(WaitingDevice {
            digest: BASE64_URL_SAFE_NO_PAD.encode(waiting.digest),
            user_code: typed.trim().to_ascii_uppercase(),
            decided: None,
        });
        let flow_context = FlowContext::new(self, application, visit, &pending);
        let evaluated = self.evaluate(visit, &pending, &flow_context).await?;
        let response = self.respond_with_step(visit, pending.clone(), flow_context, evaluated).await?;
        Ok(Some(redirect_after_post(pending, response)))
    }

    /// Approves or denies a device.
    async fn decide_device(
        self,
        visit: &Visit,
        pending: PendingFlow,
        is_allowed: bool,
    ) -> Result<BrowserResponse, Problem> {
        let Some(application) = self.application_of(&pending).await? else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        let Some(digest) =
            pending.device.as_ref().and_then(|device| BASE64_URL_SAFE_NO_PAD.decode(&device.digest).ok())
        else {
            return Ok(BrowserResponse::Error(PageError::NO_FLOW));
        };
        let flow_context = FlowContext::new(self, application, visit, &pending);
        let (flow, now, app) = (pending.flow.clone(), visit.now, Arc::clone(self.context));
        let cookie = visit.session_cookie(&app.master);
        let deciding = self.store.run("DecideDevice", Mode::Write, None, move |tx| {
            let sessions = session::load(tx, cookie.as_ref(), now)?;
            let evaluated = flow_context.evaluate(tx, flow.clone(), &sessions, now)?;
            let Step::Done(signed_in) = evaluated.due.step() else { return Ok(None) };
            let requested = &flow.request().requested;
            let granted = signed_in.granted.as_ref();
            let Some(access) = requested_access(tx, &digest, now)? else { return Ok(None) };
            let is_granted = |word: &&str| granted.is_none_or(|granted| granted.words.contains(*word));
            let scope: Vec<&str> = access
                .scope
                .split_whitespace()
                .filter(|word| requested.iter().any(|one| one == word))
                .filter(is_granted)
                .collect();
            let resources: Vec<String> = access.resources.split_whitespace().map(str::to_owned).collect();
            if is_allowed {
                let mut context = Context::of_server(&app, Scope::Everything, now);
                context.actor = Some(signed_in.person);
                consent::store(&context, tx, flow_context.application.id, signed_in, &resources)?;
            }
            let granted = Granted {
                person: signed_in.person,
                tenant: signed_in.tenant,
                issuing: flow_context.issuing,
                instance: signed_in.instance,
                session: None,
                auth_time: signed_in.auth_time.0.div_euclid(1000),
                proven_at: Some(signed_in.proven_at.0),
                acr: signed_in.acr.name().to_owned(),
                amr: signed_in.amr.iter().map(|word| (*word).to_owned()).collect(),
                scope: scope.join(" "),
                resources,
                cnf: None,
                requested: RequestedClaims::default(),
                provider_claims: session::claims_of_sign_in(
                    tx,
                    &app.master,
                    &flow_context.application,
                    signed_in.session,
                    signed_in,
                )?,
            };
            approve(tx, &app.master, &digest, is_allowed.then_some(granted)).map(Some).map_err(Problem::from)
        });
        Ok(match deciding.await? {
            Some(true) if is_allowed => pending.device_decided("done"),
            Some(true) => pending.device_decided("rejected"),
            _ => BrowserResponse::Error(PageError::NO_FLOW),
        })
    }
}

selectable! {
    /// A waiting device.
    struct Waiting from "FROM device_authorization \
        WHERE user_code = ?1 AND status = 'Pending' AND expires_on > ?2" {
        digest: Vec<u8> = "digest",
        application: Uuid = "client_app_id",
        scope: String = "scope",
        resources: String = "resources",
    }
}

fn find_waiting(tx: &mut Tx<'_>, user: &[u8], now: Timestamp) -> Result<Option<Waiting>, StoreError> {
    tx.one(Waiting::SELECT, &[user.to_vec().into(), now.0.into()], Waiting::read)
}

selectable! {
    /// What a waiting device requested.
    struct RequestedAccess from "FROM device_authorization \
        WHERE digest = ?1 AND status = 'Pending' AND expires_on > ?2" {
        scope: String = "scope",
        resources: String = "resources",
    }
}

fn requested_access(
    tx: &mut Tx<'_>,
    digest: &[u8],
    now: Timestamp,
) -> Result<Option<RequestedAccess>, StoreError> {
    tx.one(RequestedAccess::SELECT, &[digest.to_vec().into(), now.0.into()], RequestedAccess::read)
}

/// Approves or denies a waiting device. `false`: it has been decided already.
fn approve(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    digest: &[u8],
    granted: Option<Granted>,
) -> Result<bool, StoreError> {
    let text = StateTable::DeviceAuthorization
        .update("SET status = ?2, sealed = ?3, grant_id = ?4 WHERE digest = ?1 AND status = 'Pending'");
    let status = if granted.is_some() { "Approved" } else { "Denied" };
    let sealed = granted.as_ref().map(serde_json::to_vec).transpose();
    let sealed = sealed.map_err(|_| StoreError::Internal("a device's grant cannot be written".into()))?;
    let sealed = sealed.map(|text| master.seal(&associated_data(digest), &text));
    let grant = granted.map_or(Bound::Null, |_| Bound::Id(Uuid::from_bytes(random::<16>())));
    let parameters = [digest.to_vec().into(), status.into(), sealed.into(), grant];
    Ok(tx.execute(&text, &parameters)? == 1)
}

/// The page that confirms that the device is the person's own.
pub(super) fn confirm_page(flow_context: &FlowContext, pending: &PendingFlow, evaluated: &Evaluated) -> Page {
    let (view, context) = view(flow_context, pending, evaluated);
    let page = Page::new(view, DEVICE, context);
    let page = page.of(&flow_context.application, flow_context.tenant_of(evaluated));
    page.in_language(evaluated.locale().cloned())
}

fn view(flow_context: &FlowContext, pending: &PendingFlow, evaluated: &Evaluated) -> (&'static str, Value) {
    let session = match evaluated.due.step() {
        Step::Done(signed_in) => signed_in.session,
        _ => None,
    };
    let names = session.and_then(|session| evaluated.names.get(&session));
    let context = json!({
        "step": "confirm",
        "application": { "name": flow_context.application.name },
        "user": names.map(|names| names.detail().unwrap_or(names.display_name())),
        "user_code": pending.device.as_ref().map(|device| &device.user_code),
    });
    ("DeviceCode", context)
}

/// The page that prompts for a user code: the input, and whether no device waits with it.
pub fn enter_page(typed: &str, is_wrong: bool) -> Page {
    let errors: Vec<_> =
        is_wrong.then(|| json!({ "code": "code_wrong", "field": "user_code" })).into_iter().collect();
    let context = json!({ "step": "enter", "user_code": typed, "errors": errors });
    Page::new("DeviceCode", DEVICE, context)
}

/// The page after the decision.
pub(super) fn decided_page(step: &str, locale: Option<String>) -> Page {
    Page::new("DeviceCode", DEVICE, json!({ "step": step })).in_language(locale)
}
