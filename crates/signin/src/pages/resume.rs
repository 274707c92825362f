//! The common parts of posts: continuing the flow, and reporting errors in its form.

use chancery_resource::Problem;

use crate::{
    flow::{
        context::{Evaluated, FlowContext},
        page_redirect::redirect_after_post,
        pending_flow::{FormErrors, PendingFlow},
        response::{AttemptResult, BrowserResponse},
    },
    provider::{Provider, Visit},
};

/// The maximum length of a login name that is shown again, in bytes: longer ones would take too much of the cookie.
const MAX_SHOWN: usize = 320;

impl Provider<'_> {
    /// The context of a flow and its due step; `None`: the client app is unknown or does not serve here.
    pub(super) async fn resume(
        self,
        visit: &Visit,
        pending: &PendingFlow,
    ) -> Result<Option<(FlowContext, Evaluated)>, Problem> {
        let Some(application) = self.application_of(pending).await? else { return Ok(None) };
        let flow_context = FlowContext::new(self, application, visit, pending);
        let evaluated = self.evaluate(visit, pending, &flow_context).await?;
        Ok(Some((flow_context, evaluated)))
    }

    /// The response to a post that does not belong to the due step, e.g. because another tab has signed in.
    pub(super) async fn respond_after_post(
        self,
        visit: &Visit,
        pending: PendingFlow,
        flow_context: FlowContext,
        evaluated: Evaluated,
    ) -> Result<(BrowserResponse, AttemptResult), Problem> {
        let response = self.respond_with_step(visit, pending.clone(), flow_context, evaluated).await?;
        Ok((redirect_after_post(pending, response), AttemptResult::NotCounted))
    }
}

impl PendingFlow {
    /// The page again, with these errors and the typed login name.
    pub(super) fn with_errors_of(
        mut self,
        page: &'static str,
        username: &str,
        errors: Vec<(String, String)>,
    ) -> BrowserResponse {
        let username = if username.len() <= MAX_SHOWN { username.to_owned() } else { String::new() };
        self.form_errors =
            Some(FormErrors { page: page.to_owned(), username, errors, ..FormErrors::default() });
        BrowserResponse::ToPage(self.into(), page, None)
    }
}

/// The errors of empty fields.
pub(super) fn missing(fields: &[(&str, bool)]) -> Vec<(String, String)> {
    let empty = fields.iter().filter(|(_, is_empty)| *is_empty);
    empty.map(|(field, _)| (format!("missing_{field}"), (*field).to_owned())).collect()
}
