//! Redirects after a post.

use crate::{
    page_name::{CONTINUE, EXTERNAL, PASSWORD},
    pending_flow::PendingFlow,
    response::BrowserResponse,
};

/// After a post, redirects out of the server go through a page of ours: browsers apply a page's `form-action` to
/// whole redirect chains.
pub fn after_post(mut pending: PendingFlow, response: BrowserResponse) -> BrowserResponse {
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
            BrowserResponse::Refused(refusal, after_post(pending, *answer).into())
        }
        other => other,
    }
}
