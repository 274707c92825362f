//! The password page: counts an attempt, verifies the password outside of transactions, and completes the sign-in if
//! nothing else is due.

use std::sync::Arc;

use super::{Attempt, Form, Posted, Prepared, SignInPage, passkey, resume::missing};
use crate::{
    client_app::OfferedStore,
    flow::{
        context::{Evaluated, FlowContext},
        page_name::{PASSWORD, takes_access_passes},
        pending_flow::{FormErrors, PendingFlow},
        response::{AttemptResult, BrowserResponse, PageError},
        sign_in_transaction::{ProofResult, SignInTransaction},
    },
    person::{self, context::context_of_store},
    provider::{Provider, Visit},
};
use chancery_flow::{Method, NotAdmitted, Proven, Step};
use chancery_record::{Secret, Timestamp};
use chancery_resource::{AppContext, Context, Problem, Purpose, Tx, Work};
use chancery_store::Mode;
use chancery_userstore::{
    passkey::sign_in::{relying_party, start},
    password::{
        by_login,
        sign_in::{self, Decision, PendingSignIn, VerifiedSignIn},
    },
    user::UserForUpdate,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The maximum length of a name or password, in bytes.
pub const LONGEST: usize = 1024;

pub(super) static PAGE: SignInPage = SignInPage {
    name: PASSWORD,
    prepare: Some(prepare),
    view,
    attempt: |form, pending| match form.credential() {
        Some(_) => Some(passkey::attempt(pending)),
        None => Some(Attempt { method: PASSWORD, subject: form.name("username") }),
    },
    post,
};

/// The input of the page.
struct Credentials {
    /// The login name.
    username: String,
    /// The password.
    password: Secret,
    /// Whether the session persists after the browser is closed.
    is_persistent: bool,
}

fn prepare<'a>(
    provider: Provider<'a>,
    _: &'a Visit,
    pending: &'a mut PendingFlow,
    flow_context: &'a FlowContext,
    evaluated: &'a Evaluated,
) -> Prepared<'a> {
    Box::pin(async move {
        let mut added = Map::new();
        let public_url = &provider.context.public_url;
        let mut offered = flow_context.offered(evaluated).into_iter();
        if let Some(store) = offered.find(|store| relying_party(&store.options, public_url).is_some()) {
            let started = start(&store.options, public_url)?;
            passkey::add_challenge(pending, &mut added, Some(started));
        }
        Ok(added)
    })
}

fn view(flow_context: &FlowContext, pending: &PendingFlow, evaluated: &Evaluated) -> (&'static str, Value) {
    let hint = pending.request().and_then(|(_, request)| request.login_hint);
    let form_errors = pending.form_errors_on(PASSWORD);
    let context = json!({
        "stores": !flow_context.offered(evaluated).is_empty(),
        "providers": providers(flow_context, evaluated),
        "username": form_errors.map(|form_errors| form_errors.username.clone()).or(hint),
        "remember": pending.is_persistent,
        "access_pass": takes_access_passes(flow_context, evaluated),
        "errors": form_errors.map_or_else(|| json!([]), FormErrors::to_json),
    });
    ("SignIn", context)
}

/// The external identity providers that are offered, in order.
fn providers(flow_context: &FlowContext, evaluated: &Evaluated) -> Vec<Value> {
    let Step::FirstFactor(due) = evaluated.due.step() else { return Vec::new() };
    let Some(tenant) = flow_context.application.tenant(due.tenant) else { return Vec::new() };
    let offered = due.offered.iter().filter_map(|instance| tenant.provider(instance.id));
    let rendered = offered.map(|provider| {
        let mut rendered = provider.about.to_view();
        rendered.insert("instance".to_owned(), provider.id.to_string().into());
        rendered.into()
    });
    rendered.collect()
}

fn post<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow, form: Form<'a>) -> Posted<'a> {
    if let Some(answer) = form.credential() {
        return Box::pin(provider.verify_passkey(visit, pending, PASSWORD, answer));
    }
    let typed = Credentials {
        username: form.name("username"),
        password: form.secret("password"),
        is_persistent: form.field("remember").is_some(),
    };
    Box::pin(provider.sign_in_by_password(visit, pending, typed))
}

impl Provider<'_> {
    /// Counts an attempt, verifies the password outside of transactions, and signs in or refuses.
    ///
    /// # Errors
    /// The database fails, or the queue for hashing passwords is full: then the attempt stays counted.
    async fn sign_in_by_password(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        typed: Credentials,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        pending.is_persistent = typed.is_persistent;
        let Some((flow_context, evaluated)) = self.resume(visit, &pending).await? else {
            return Ok((BrowserResponse::Error(PageError::UNKNOWN_CLIENT), AttemptResult::NotCounted));
        };
        let Step::FirstFactor(due) = evaluated.due.step() else {
            return self.respond_after_post(visit, pending, flow_context, evaluated).await;
        };
        let tenant = due.tenant;
        let stores: Vec<OfferedStore> = flow_context.offered(&evaluated).into_iter().cloned().collect();
        let typed_fields =
            [("username", typed.username.is_empty()), ("password", typed.password.expose().is_empty())];
        let mut errors = missing(&typed_fields);
        if stores.is_empty() {
            errors.push(("not_allowed".to_owned(), String::new()));
        }
        if !errors.is_empty() {
            return Ok((
                pending.with_errors_of(PASSWORD, &typed.username, errors),
                AttemptResult::NotCounted,
            ));
        }
        let Credentials { username, password, .. } = typed;
        let (app, name, now) = (Arc::clone(self.context), username.clone(), visit.now);
        let is_readable = username.len() <= LONGEST && password.expose().len() <= LONGEST;
        let counted = self.store.run("CountSignIn", Mode::Write, None, move |tx| {
            count(&app, tx, &stores, if is_readable { &name } else { "" }, now)
        });
        let (store, attempt) = counted.await?;
        let work = Work::new(Purpose::Password, move || attempt.verify(&password));
        let verified = self.pool.run(None, work).await?;
        pending.form_errors = None;
        let Some(transaction) = self.sign_in_transaction(visit, &pending, &flow_context) else {
            return Ok((BrowserResponse::Error(PageError::NO_FLOW), AttemptResult::NotCounted));
        };
        let deciding = move |tx: &mut Tx<'_>| decide(&transaction, tx, &store, tenant, &verified);
        if let Some(decided) = self.store.run("DecideSignIn", Mode::Write, None, deciding).await? {
            return Ok((
                self.respond_to_proof(visit, pending, flow_context, decided).await?,
                AttemptResult::Succeeded,
            ));
        }
        // the response does not disclose which of the two is wrong; the password has to be typed again
        let wrong = vec![("credentials".to_owned(), "password".to_owned())];
        Ok((pending.with_errors_of(PASSWORD, &username, wrong), AttemptResult::Failed))
    }
}

/// Counts the attempt at the store that knows the name.
fn count(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    stores: &[OfferedStore],
    name: &str,
    now: Timestamp,
) -> Result<(OfferedStore, PendingSignIn), Problem> {
    let known = find_login(app, tx, stores, name, now)?;
    let (store, context, user_row) = known.ok_or_else(|| Problem::not_found("user store"))?;
    Ok((store.clone(), sign_in::begin(&context, tx, user_row)?))
}

/// A store, and its user of a name; `None` where it has no such user.
type LoginMatch<'a> = (&'a OfferedStore, Context, Option<UserForUpdate>);

/// The first store, in order, that knows the name, with its user; the first store without a user if none does. All
/// stores are queried in any case, so that an unknown name takes as long as a known one.
pub(super) fn find_login<'a>(
    app: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    stores: &'a [OfferedStore],
    name: &str,
    now: Timestamp,
) -> Result<Option<LoginMatch<'a>>, Problem> {
    let (mut known, mut unknown) = (None, None);
    for store in stores {
        let context = context_of_store(app, tx, store.id, now)?;
        match by_login(&context, tx, name)?.filter(|_| !name.is_empty()) {
            Some(user_row) if known.is_none() => known = Some((store, context, Some(user_row))),
            _ => unknown = unknown.or(Some((store, context, None))),
        }
    }
    Ok(known.or(unknown))
}

/// Completes an attempt. `None`: it is refused, without a reason.
fn decide(
    transaction: &SignInTransaction,
    tx: &mut Tx<'_>,
    store: &OfferedStore,
    tenant: Uuid,
    verified: &VerifiedSignIn,
) -> Result<Option<ProofResult>, Problem> {
    let mut context = context_of_store(&transaction.app, tx, store.id, transaction.now)?;
    let user = match sign_in::decide(&context, tx, verified)? {
        Decision::Right(user) => user,
        Decision::Wrong(user) => {
            transaction.record_wrong(&context, tx, store.id, Some(user), tenant)?;
            return Ok(None);
        }
        Decision::Refused => {
            transaction.record_wrong(&context, tx, store.id, None, tenant)?;
            return Ok(None);
        }
    };
    context.actor = Some(user.id.0);
    let person = person::of_store_user(&mut context, tx, store, user.id.0)?;
    let Some(person) = person else {
        sign_in::withdraw(&context, tx, verified)?;
        return Ok(None);
    };
    let sessions = transaction.sessions(tx)?;
    let proven = Proven { person, instance: store.id, method: Method::Password, credential: None };
    let evaluated = transaction.prove(tx, &sessions, proven)?;
    let attempt = verified.attempt();
    if let Some(decided) = transaction.sign_in(&context, tx, &sessions, &evaluated, attempt)? {
        return Ok(Some(decided));
    }
    sign_in::withdraw(&context, tx, verified)?;
    transaction.record_refusal(&context, tx, &evaluated)?;
    if *evaluated.due.step() == Step::Refuse(NotAdmitted::PasswordExpired) {
        return Ok(None);
    }
    Ok(Some(ProofResult::Continue(evaluated.due.flow().clone().into())))
}
