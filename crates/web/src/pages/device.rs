//! The page where a person types a device's code.

use chancery_resource::Problem;
use chancery_signin::{DEVICE, Form, PageError, enter_page};
use http::Response;

use super::{Browser, Parameters, Shown, error_page, page, see_other};
use crate::{
    limits::proof_limiter::About,
    message::{answer::AnswerBody, peer::address_of},
};

impl Browser<'_> {
    /// The page where a person types a device's code.
    pub(super) async fn device(self, form: Option<Parameters>) -> Result<Response<AnswerBody>, Problem> {
        let csrf = self.csrf_of("device-csrf");
        let shown = form.clone().unwrap_or_default();
        let shown = Form(&shown);
        let typed = shown.field("user_code").or(self.parameter("user_code")).unwrap_or_default().to_owned();
        let enter = |is_wrong| Shown {
            page: enter_page(&typed, is_wrong),
            action: self.parts.uri.path().to_owned(),
            csrf: csrf.clone(),
            ..Shown::of_page()
        };
        if form.is_none() {
            return Ok(page(&self, enter(self.parameter("wrong").is_some()), DEVICE).await);
        }
        if !self.is_ours(shown, csrf.clone()) {
            return Ok(error_page(&self, PageError::FOREIGN_FORM).await);
        }
        let (address, now) = (address_of(self.parts), self.visit.now);
        let attempt = match self.app.sign_in_limiter.admit(address, About::Bearer(DEVICE), now).await {
            Ok(attempt) => attempt,
            Err(seconds) => return Ok(error_page(&self, PageError::too_many(seconds)).await),
        };
        let begun = self.provider().begin_device(&self.visit, &typed).await;
        attempt.settle(begun.as_ref().ok().map(Option::is_some));
        let Some(outcome) = begun? else {
            // a post is answered by a redirect, and reveals of the code no more than that it is wrong
            let typed: String = typed.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
            let address = format!("{}?wrong=1&user_code={typed}", self.parts.uri.path());
            return Ok(see_other(&self.in_language(address)));
        };
        self.answer(outcome).await
    }
}
