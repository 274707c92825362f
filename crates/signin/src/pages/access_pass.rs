//! The page of a temporary access pass: a first factor for persons who have no other one.

use std::sync::Arc;

use chancery_flow::{Method, Proven, Step};
use chancery_record::Secret;
use chancery_resource::{Problem, Tx};
use chancery_store::Mode;
use chancery_userstore::{
    attempt::begin_attempt,
    passkey::{find_access_pass, note_access_pass},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Attempt, Form, Posted, SignInPage,
    password::{LONGEST, find_login},
    resume::missing,
};
use crate::{
    client_app::OfferedStore,
    flow::{
        context::{Evaluated, FlowContext},
        page_name::ACCESS_PASS,
        pending_flow::PendingFlow,
        response::{AttemptResult, BrowserResponse, PageError},
        sign_in_transaction::{ProofResult, SignInTransaction},
    },
    person,
    provider::{Provider, Visit},
};

pub(super) static PAGE: SignInPage = SignInPage {
    name: ACCESS_PASS,
    prepare: None,
    view,
    attempt: |form, _| Some(Attempt { method: ACCESS_PASS, subject: form.name("username") }),
    post,
};

/// The input of the page.
struct TypedPass {
    /// The login name.
    username: String,
    /// The temporary access pass.
    pass: Secret,
}

fn view(_: &FlowContext, pending: &PendingFlow, _: &Evaluated) -> (&'static str, Value) {
    let hint = pending.request().and_then(|(_, request)| request.login_hint);
    let context = match pending.form_errors_on(ACCESS_PASS) {
        Some(form_errors) => json!({ "username": form_errors.username, "errors": form_errors.to_json() }),
        None => json!({ "username": hint }),
    };
    ("AccessPass", context)
}

fn post<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow, form: Form<'a>) -> Posted<'a> {
    let typed = TypedPass { username: form.name("username"), pass: form.secret("pass") };
    Box::pin(provider.use_access_pass(visit, pending, typed))
}

impl Provider<'_> {
    /// Handles a post of the page. Returns the response and the result of the attempt.
    async fn use_access_pass(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        typed: TypedPass,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        let Some((flow_context, evaluated)) = self.resume(visit, &pending).await? else {
            return Ok((BrowserResponse::Error(PageError::UNKNOWN_CLIENT), AttemptResult::NotCounted));
        };
        let Step::FirstFactor(due) = evaluated.due.step() else {
            return self.respond_after_post(visit, pending, flow_context, evaluated).await;
        };
        let tenant = due.tenant;
        let fields = [("username", typed.username.is_empty()), ("pass", typed.pass.expose().is_empty())];
        let errors = missing(&fields);
        if !errors.is_empty() {
            return Ok((
                pending.with_errors_of(ACCESS_PASS, &typed.username, errors),
                AttemptResult::NotCounted,
            ));
        }
        let stores: Vec<OfferedStore> = flow_context.offered(&evaluated).into_iter().cloned().collect();
        pending.form_errors = None;
        let Some(transaction) = self.sign_in_transaction(visit, &pending, &flow_context) else {
            return Ok((BrowserResponse::Error(PageError::NO_FLOW), AttemptResult::NotCounted));
        };
        let (username, typed) = (typed.username.clone(), Arc::new(typed));
        let deciding = move |tx: &mut Tx<'_>| decide(&transaction, tx, &stores, tenant, &typed);
        if let Some(decided) = self.store.run("UseAccessPass", Mode::Write, None, deciding).await? {
            return Ok((
                self.respond_to_proof(visit, pending, flow_context, decided).await?,
                AttemptResult::Succeeded,
            ));
        }
        let wrong = vec![("pass_wrong".to_owned(), "pass".to_owned())];
        Ok((pending.with_errors_of(ACCESS_PASS, &username, wrong), AttemptResult::Failed))
    }
}

/// Uses the pass of the first store, in order, that knows the name. `None`: it is refused, without a reason.
fn decide(
    transaction: &SignInTransaction,
    tx: &mut Tx<'_>,
    stores: &[OfferedStore],
    tenant: Uuid,
    typed: &TypedPass,
) -> Result<Option<ProofResult>, Problem> {
    let is_readable = typed.username.len().max(typed.pass.expose().len()) <= LONGEST;
    let name = if is_readable { typed.username.as_str() } else { "" };
    let known = find_login(&transaction.app, tx, stores, name, transaction.now)?;
    let Some((store, mut context, user_row)) = known else { return Ok(None) };
    let Some(attempt) = begin_attempt(&context, tx, user_row)? else {
        find_access_pass(&context, tx, Uuid::nil(), &typed.pass)?;
        transaction.record_wrong(&context, tx, store.id, None, tenant)?;
        return Ok(None);
    };
    let user = attempt.loaded.user.id;
    let Some(pass) = find_access_pass(&context, tx, user.0, &typed.pass)? else {
        attempt.fail(&context, tx)?;
        transaction.record_wrong(&context, tx, store.id, Some(user.0), tenant)?;
        return Ok(None);
    };
    context.actor = Some(user.0);
    let Some(person) = person::of_store_user(&mut context, tx, store, user.0)? else { return Ok(None) };
    note_access_pass(&context, tx, user, pass)?;
    let sessions = transaction.sessions(tx)?;
    let proven = Proven { person, instance: store.id, method: Method::AccessPass, credential: None };
    let evaluated = transaction.prove(tx, &sessions, proven)?;
    if let Some(decided) = transaction.sign_in(&context, tx, &sessions, &evaluated, None)? {
        return Ok(Some(decided));
    }
    transaction.record_refusal(&context, tx, &evaluated)?;
    Ok(Some(ProofResult::Continue(evaluated.due.flow().clone().into())))
}
