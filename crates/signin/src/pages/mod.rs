//! The pages of a sign-in: the file of each has its view, its post, and how the post counts as an attempt.

mod access_pass;
mod choose;
mod confirm_email;
mod consent;
mod continue_to_app;
pub mod device;
mod enrol;
pub mod form;
mod new_password;
mod passkey;
pub mod password;
mod questionnaire;
mod recovery_codes;
mod refused;
pub mod reset;
mod resume;
mod second_factor;
mod sent_code;
mod show;
mod terms;
mod view;

use std::pin::Pin;

use chancery_flow::Event;
use chancery_resource::Problem;
use serde_json::{Map, Value};

use self::form::Form;
use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_name::DEVICE,
        pending_flow::PendingFlow,
        response::{AttemptResult, BrowserResponse},
    },
    provider::{Provider, Visit},
};

/// The response to a post, and the result of the attempt. It is boxed: the future of every request is as large as the
/// largest.
pub type Posted<'a> =
    Pin<Box<dyn Future<Output = Result<(BrowserResponse, AttemptResult), Problem>> + Send + 'a>>;

/// The additional context of a prepared page.
type Prepared<'a> = Pin<Box<dyn Future<Output = Result<Map<String, Value>, Problem>> + Send + 'a>>;

/// A function that prepares a page. It may change the flow.
type Prepare =
    for<'a> fn(Provider<'a>, &'a Visit, &'a mut PendingFlow, &'a FlowContext, &'a Evaluated) -> Prepared<'a>;

/// A page of a sign-in.
pub struct SignInPage {
    /// The name in its address.
    pub name: &'static str,
    /// Prepares the page, e.g. sends a code; `None`: there is nothing to prepare.
    prepare: Option<Prepare>,
    /// The name of its view, and the view's context.
    view: fn(&FlowContext, &PendingFlow, &Evaluated) -> (&'static str, Value),
    /// The attempt that a post is, for the limit of failed ones; `None`: it proves nothing.
    pub attempt: fn(Form<'_>, &PendingFlow) -> Option<Attempt>,
    /// Handles a post.
    pub post: for<'a> fn(Provider<'a>, &'a Visit, PendingFlow, Form<'a>) -> Posted<'a>,
}

/// All pages, except the one that only redirects to an external identity provider.
static PAGES: &[&SignInPage] = &[
    &password::PAGE,
    &access_pass::PAGE,
    &choose::PAGE,
    &refused::PAGE,
    &continue_to_app::PAGE,
    &consent::PAGE,
    &new_password::PAGE,
    &second_factor::PAGE,
    &enrol::PAGE,
    &recovery_codes::PAGE,
    &confirm_email::PAGE,
    &questionnaire::PAGE,
    &terms::PAGE,
    &passkey::PAGE,
    &device::PAGE,
];

impl SignInPage {
    /// The page of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PAGES.iter().copied().find(|page| page.name == name)
    }

    /// Its label in the metrics of posts.
    pub fn label(&self) -> &'static str {
        if self.name == DEVICE { "other" } else { self.name }
    }
}

/// An attempt to prove something.
#[derive(Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its label in the metrics.
    pub method: &'static str,
    /// Whose attempts are counted together: a typed name, the id of a person, or that of a flow.
    pub subject: String,
}

impl Attempt {
    /// An attempt of the flow's person. A flow whose person is known counts by person: a new sign-in gives no new
    /// attempts.
    fn of_person(method: &'static str, pending: &PendingFlow) -> Self {
        let subject = pending.person().map_or_else(|| pending.id.clone(), |person| person.to_string());
        Self { method, subject }
    }

    /// An attempt within this flow.
    fn of_flow(method: &'static str, pending: &PendingFlow) -> Self {
        Self { method, subject: pending.id.clone() }
    }
}

/// The response to a post that proves nothing.
fn not_counted<'a>(
    response: impl Future<Output = Result<BrowserResponse, Problem>> + Send + 'a,
) -> Posted<'a> {
    Box::pin(async { Ok((response.await?, AttemptResult::NotCounted)) })
}

/// The return to the client app without a sign-in.
fn cancel<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow) -> Posted<'a> {
    not_counted(provider.apply_event(visit, pending, |_| Event::Cancelled))
}

#[cfg(test)]
mod tests;
