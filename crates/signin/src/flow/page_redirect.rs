//! Redirects to pages: after a post, with errors, with a decision.

use super::{
    page_name::{CONTINUE, DEVICE, EXTERNAL, PASSWORD},
    pending_flow::{FormErrors, PendingFlow},
    response::BrowserResponse,
};

/// After a post, redirects out of the server go through a page of ours: browsers apply a page's `form-action` to
/// whole redirect chains.
pub fn redirect_after_post(mut pending: PendingFlow, response: BrowserResponse) -> BrowserResponse {
    match response {
        BrowserResponse::ToClient(address) => {
            pending.answer = Some(address);
            BrowserResponse::ToPage(pending.into(), CONTINUE, None)
        }
        // the same holds for redirects to a provider: the page of the first factor has a link there
        BrowserResponse::ToPage(pending, EXTERNAL, session) => {
            BrowserResponse::ToPage(pending, PASSWORD, session)
        }
        BrowserResponse::Refused(refusal, answer) => {
            BrowserResponse::Refused(refusal, redirect_after_post(pending, *answer).into())
        }
        other => other,
    }
}

impl PendingFlow {
    /// The page again, with one error.
    pub(crate) fn with_error(self, page: &'static str, code: &str, field: &str) -> BrowserResponse {
        self.with_errors(page, vec![(code.to_owned(), field.to_owned())])
    }

    /// The page again, with these errors.
    pub(crate) fn with_errors(
        mut self,
        page: &'static str,
        errors: Vec<(String, String)>,
    ) -> BrowserResponse {
        self.form_errors = Some(FormErrors { page: page.to_owned(), errors, ..FormErrors::default() });
        BrowserResponse::ToPage(self.into(), page, None)
    }

    /// The page that shows the decision about a device: the step of this page.
    pub(crate) fn device_decided(mut self, step: &str) -> BrowserResponse {
        if let Some(device) = &mut self.device {
            device.decided = Some(step.to_owned());
        }
        BrowserResponse::ToPage(self.into(), DEVICE, None)
    }
}
