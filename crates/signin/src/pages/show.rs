//! Shows the page of a step.

use chancery_flow::Step;
use chancery_resource::Problem;
use serde_json::{Map, json};

use super::{SignInPage, device, view::render_page};
use crate::{
    flow::{
        context::FlowContext,
        page_name::{CONTINUE, DEVICE, EXTERNAL, may_show},
        pending_flow::PendingFlow,
        response::{BrowserResponse, Page, PageError},
    },
    provider::{Provider, Visit},
};

impl Provider<'_> {
    /// Shows the page of a step, or redirects to the due one.
    pub async fn show(
        self,
        visit: &Visit,
        mut pending: PendingFlow,
        page: &str,
    ) -> Result<BrowserResponse, Problem> {
        if let (Some(address), CONTINUE) = (pending.answer.clone(), page) {
            let name = self.application_of(&pending).await?.map(|application| application.name.clone());
            let context = json!({ "application": { "name": name }, "continue_url": address });
            let rendered = Page::new("Continue", CONTINUE, context).in_language(pending.locale.clone());
            return Ok(BrowserResponse::Page(pending.into(), rendered));
        }
        if let Some(step) = pending.device.as_ref().and_then(|device| device.decided.clone()) {
            let rendered = device::decided_page(&step, pending.locale.clone());
            return Ok(BrowserResponse::Page(pending.into(), rendered));
        }
        let Some(application) = self.application_of(&pending).await? else {
            return Ok(BrowserResponse::Error(PageError::UNKNOWN_CLIENT));
        };
        let flow_context = FlowContext::new(self, application, visit, &pending);
        let evaluated = self.evaluate(visit, &pending, &flow_context).await?;
        if page == EXTERNAL {
            let at_once = match evaluated.due.step() {
                Step::FirstFactor(due) => due.at_once,
                _ => None,
            };
            return Box::pin(self.redirect_or_step(visit, pending, flow_context, evaluated, at_once)).await;
        }
        if let (DEVICE, Step::Done(_), Some(_)) = (page, evaluated.due.step(), &pending.device) {
            let rendered = device::confirm_page(&flow_context, &pending, &evaluated);
            return Ok(BrowserResponse::Page(pending.into(), rendered));
        }
        let due = SignInPage::find(page);
        let Some(page) = due.filter(|page| may_show(page.name, &pending, &flow_context, &evaluated)) else {
            return self.respond_with_step(visit, pending, flow_context, evaluated).await;
        };
        let added = match page.prepare {
            Some(prepare) => prepare(self, visit, &mut pending, &flow_context, &evaluated).await?,
            None => Map::new(),
        };
        let rendered = render_page(page, added, &flow_context, &pending, &evaluated);
        Ok(BrowserResponse::Page(pending.into(), rendered))
    }
}
