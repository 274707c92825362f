//! The pages and the browser's endpoints of the OpenID provider: cookies, forms, languages, headers.

mod cookies;
mod render;

use chancery_auth::Issuer;
use chancery_record::{Secret, Timestamp};
use chancery_resource::{Problem, ProblemKind, random};
use chancery_signin::{
    Begun, CONTINUE, Credentials, KeptFlow, LONGEST_QUERY, Origin, Outcome, PASSWORD, Page, PageError,
    Provider, SIGN_OUT, SigningOut, Visit,
};
use http::{HeaderValue, Method, Response, header, request::Parts};

use self::{
    cookies::Cookies,
    render::{Shown, error_page, page},
};
use crate::{
    answer::{AnswerBody, respond},
    app::{App, address_of},
    body::{RequestBody, SMALL_BODY},
    request::{MediaType, media_type, read_form, text},
    system::SystemRoute,
};

type Parameters = Vec<(String, String)>;

/// A request of a browser, and what its answer needs.
pub struct Browser<'a> {
    pub app: &'a App,
    pub parts: &'a Parts,
    pub cookies: Cookies,
    pub visit: Visit,
    pub query: Parameters,
}

/// Whether pages are served: by https, or on the machine itself.
pub fn are_served(public_url: &str) -> bool {
    let host =
        public_url.strip_prefix("http://").map(|rest| rest.split(['/', ':']).next().unwrap_or_default());
    public_url.starts_with("https://")
        || matches!(host, Some("localhost" | "127.0.0.1"))
        || public_url.starts_with("http://[::1]")
}

/// Answers a request of a browser.
pub async fn answer(
    app: &App,
    route: SystemRoute,
    (issuer, step): (&Issuer, &str),
    parts: &Parts,
    body: &mut RequestBody,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    if !are_served(&app.token_service.public_url) {
        let detail = "Pages need https. Set the public URL to an https address.";
        return Err(Problem::new(ProblemKind::Unavailable, detail));
    }
    let raw = parts.uri.query().unwrap_or_default();
    let mut cookies = Cookies::read(&parts.headers, &app.token_service.public_url);
    let browser = cookies.browser().unwrap_or_else(|| {
        let made = cookies::value(&random::<32>());
        cookies.set_browser(&made);
        made
    });
    let visit = Visit {
        issuer: issuer.clone(),
        browser,
        session: cookies.session(),
        origin: Origin {
            address: address_of(parts).to_string(),
            user_agent: text(&parts.headers, header::USER_AGENT).map(str::to_owned),
        },
        languages: languages(parts),
        now,
    };
    let browser = Browser { app, parts, cookies, visit, query: read_form(raw)? };
    if raw.len() > LONGEST_QUERY {
        return Ok(error_page(&browser, PageError::request("The query is longer than 8 KiB.")));
    }
    let form = if parts.method == Method::POST { Some(receive(app, parts, body).await?) } else { None };
    match (route, form) {
        (SystemRoute::Authorize, None) => browser.authorize().await,
        (SystemRoute::Authorize, Some(form)) => Ok(as_get(&browser, &form)),
        (SystemRoute::EndSession, form) => browser.end_session(form).await,
        (_, None) => browser.show(step).await,
        (_, Some(form)) => browser.post(step, form).await,
    }
}

async fn receive(app: &App, parts: &Parts, body: &mut RequestBody) -> Result<Parameters, Problem> {
    if media_type(&parts.headers) != Some(MediaType::Form) {
        return Err(Problem::invalid("Send application/x-www-form-urlencoded."));
    }
    let mut room = app.bodies.reserve(None, &parts.headers, SMALL_BODY).await?;
    let bytes = body.receive(&app.connections, &parts.headers, &mut room).await?;
    read_form(std::str::from_utf8(&bytes).map_err(|_| Problem::invalid("The form is not UTF-8."))?)
}

/// The language tags that the browser prefers, without their weights: browsers list them in order.
fn languages(parts: &Parts) -> Vec<String> {
    let listed = text(&parts.headers, header::ACCEPT_LANGUAGE).unwrap_or_default();
    let tags = listed.split(',').map(|range| range.split(';').next().unwrap_or_default().trim());
    tags.filter(|tag| !tag.is_empty()).take(10).map(str::to_owned).collect()
}

/// A redirect that is followed by GET.
fn see_other(address: &str) -> Response<AnswerBody> {
    let mut response = respond(303, "text/plain", "");
    if let Ok(address) = HeaderValue::try_from(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    response
}

/// A POST to the authorization endpoint is answered by the same as GET, so that cookies come along.
fn as_get(browser: &Browser<'_>, form: &[(String, String)]) -> Response<AnswerBody> {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    see_other(&format!("{}?{query}", browser.parts.uri.path()))
}

impl Browser<'_> {
    fn provider(&self) -> Provider<'_> {
        self.app.provider(&self.app.store)
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    async fn authorize(self) -> Result<Response<AnswerBody>, Problem> {
        let outcome = self.provider().authorize(&self.visit, self.query.clone()).await?;
        Ok(self.answer(outcome))
    }

    /// The flow that the address names, if this browser keeps it.
    fn flow(&self) -> Option<KeptFlow> {
        let id = self.parameter("flow")?;
        let sealed = self.cookies.flow(id)?;
        let kept = KeptFlow::open(&self.app.context.master, id, &self.visit.browser, &sealed)?;
        (!kept.is_over(self.visit.now)).then_some(kept)
    }

    async fn show(mut self, step: &str) -> Result<Response<AnswerBody>, Problem> {
        let Some(kept) = self.flow() else { return Ok(error_page(&self, PageError::NO_FLOW)) };
        if let (Some(address), CONTINUE, Some(_)) = (&kept.answer, step, self.parameter("go")) {
            self.cookies.forget_flow(&kept.id);
            let mut response = see_other(address);
            self.cookies.write(&mut response);
            return Ok(response);
        }
        let outcome = self.provider().show(&self.visit, kept, step).await?;
        Ok(self.answer(outcome))
    }

    async fn post(self, step: &str, form: Parameters) -> Result<Response<AnswerBody>, Problem> {
        let Some(kept) = self.flow() else { return Ok(error_page(&self, PageError::NO_FLOW)) };
        let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let expected = kept.csrf(&self.app.context.master, &self.visit.browser, step);
        let is_ours = Secret::new(expected).matches(field("csrf").unwrap_or_default().as_bytes());
        if !is_ours || !self.is_same_origin() {
            return Ok(error_page(&self, PageError::FOREIGN_FORM));
        }
        let outcome = if step == PASSWORD {
            let typed = Credentials {
                username: field("username").unwrap_or_default().trim().to_owned(),
                password: Secret::new(field("password").unwrap_or_default()),
                keeps: field("remember").is_some(),
            };
            self.sign_in(kept, typed).await?
        } else {
            self.provider().choose(&self.visit, kept, field("choice").unwrap_or_default()).await?
        };
        Ok(self.answer(outcome))
    }

    async fn sign_in(&self, kept: KeptFlow, typed: Credentials) -> Result<Outcome, Problem> {
        let (address, now) = (address_of(self.parts), self.visit.now);
        let name = typed.username.clone();
        let Ok(attempt) = self.app.proof_limiter.admit(address, (&name, true), now).await else {
            return Ok(Outcome::Error(PageError {
                status: 429,
                code: "temporarily_unavailable",
                detail: "Too many.",
            }));
        };
        match self.provider().begin_password(&self.visit, kept, typed).await? {
            Begun::Answered(outcome) => Ok(outcome),
            Begun::Verify(pending, work) => {
                let verified = self.app.pool.run(None, work).await?;
                let outcome = self.provider().end_password(&self.visit, pending, verified).await?;
                if matches!(&outcome, Outcome::Page(..)) {
                    attempt.was_wrong(now);
                } else {
                    attempt.was_right();
                }
                Ok(outcome)
            }
        }
    }

    /// Whether a form was sent by a page of this server. `Origin: null`, which browsers send under a policy of no
    /// referrers, proves nothing and refuses nothing: the form's own proof decides.
    fn is_same_origin(&self) -> bool {
        if let Some(site) = self.parts.headers.get("sec-fetch-site") {
            return site == "same-origin";
        }
        match text(&self.parts.headers, header::ORIGIN) {
            None | Some("null") => true,
            Some(origin) => origin == origin_of(&self.app.token_service.public_url),
        }
    }

    async fn end_session(mut self, form: Option<Parameters>) -> Result<Response<AnswerBody>, Problem> {
        let field = |name: &str| {
            let form = form.as_deref().unwrap_or_default();
            form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
        };
        let master = &self.app.context.master;
        let expected = cookies::value(&master.digest("sign-out-csrf", self.visit.browser.as_bytes()));
        let is_confirmed = Secret::new(expected.clone())
            .matches(field("csrf").unwrap_or_default().as_bytes())
            && self.is_same_origin();
        if is_confirmed && field("decision") == Some("deny") {
            return Ok(see_other(&self.app.token_service.public_url));
        }
        // an app may post its request; a page of ours posts to the address with the request in it
        let parameters = match &form {
            Some(form) if self.query.is_empty() => form.clone(),
            _ => self.query.clone(),
        };
        let outcome = self.provider().end_session(&self.visit, &parameters, is_confirmed).await?;
        Ok(match outcome {
            SigningOut::Ask(asked) => {
                let query =
                    form_urlencoded::Serializer::new(String::new()).extend_pairs(&parameters).finish();
                let action = format!("{}?{query}", self.parts.uri.path());
                let shown = Shown { page: asked, action, csrf: expected, refresh: None };
                page(&self, shown, SIGN_OUT)
            }
            SigningOut::Done { back: Some(address), .. } => {
                self.cookies.forget_session();
                let mut response = see_other(&address);
                self.cookies.write(&mut response);
                response
            }
            SigningOut::Done { page: done, .. } => {
                self.cookies.forget_session();
                let shown = Shown { page: done, action: String::new(), csrf: String::new(), refresh: None };
                page(&self, shown, SIGN_OUT)
            }
            SigningOut::Error(error) => error_page(&self, error),
        })
    }

    fn answer(mut self, outcome: Outcome) -> Response<AnswerBody> {
        match outcome {
            Outcome::Leave(address) => {
                if let Some(id) = self.parameter("flow").map(str::to_owned) {
                    self.cookies.forget_flow(&id);
                }
                let mut response = see_other(&address);
                self.cookies.write(&mut response);
                response
            }
            Outcome::GoTo(kept, step) => self.go_to(&kept, step),
            Outcome::SignedIn(kept, session) => {
                self.cookies.set_session(&session.value, session.max_age);
                self.go_to(&kept, CONTINUE)
            }
            Outcome::Page(kept, shown) => {
                let step = shown.step;
                let action = address(&kept, step);
                let csrf = kept.csrf(&self.app.context.master, &self.visit.browser, step);
                let leads_on = step == CONTINUE && kept.answer.is_some();
                let refresh = leads_on.then(|| format!("{action}&go=1"));
                page(&self, Shown { page: with_link(shown, refresh.as_deref()), action, csrf, refresh }, step)
            }
            Outcome::Post { action, fields, session } => {
                if let Some(session) = session {
                    self.cookies.set_session(&session.value, session.max_age);
                }
                let fields: Vec<_> = fields
                    .into_iter()
                    .map(|(name, value)| serde_json::json!({ "name": name, "value": value }))
                    .collect();
                let context = serde_json::json!({ "fields": fields });
                let shown = Page { view: "Continue", step: CONTINUE, status: 200, context };
                page(&self, Shown { page: shown, action, csrf: String::new(), refresh: None }, "post")
            }
            Outcome::Error(error) => error_page(&self, error),
        }
    }

    fn go_to(mut self, kept: &KeptFlow, step: &str) -> Response<AnswerBody> {
        let Some(sealed) = kept.seal(&self.app.context.master, &self.visit.browser) else {
            return error_page(&self, PageError::request("The authorization request is too long."));
        };
        self.cookies.set_flow(&kept.id, &sealed);
        let mut response = see_other(&address(kept, step));
        self.cookies.write(&mut response);
        response
    }
}

/// The address of a page of a flow, below the issuer that was asked.
fn address(kept: &KeptFlow, step: &str) -> String {
    let issuer = chancery_auth::issuer_url("", kept.issuing);
    format!("{issuer}/signin/{step}?flow={}", kept.id)
}

/// The page with the link that leads on, or with the click that is asked for.
fn with_link(mut page: Page, refresh: Option<&str>) -> Page {
    if let Some(members) = page.context.as_object_mut()
        && page.step == CONTINUE
    {
        match refresh {
            Some(address) => members.insert("continue_url".to_owned(), address.into()),
            None => members.insert("touch".to_owned(), true.into()),
        };
    }
    page
}

/// Scheme and authority of a URL.
fn origin_of(url: &str) -> &str {
    let after = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(after..).and_then(|rest| rest.find('/')).map_or(url.len(), |at| after + at);
    url.get(..end).unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::{are_served, origin_of};

    #[test]
    fn pages_need_https_or_the_machine_itself() {
        for good in ["https://id.example", "http://localhost:8080", "http://127.0.0.1:1", "http://[::1]:1"] {
            assert!(are_served(good), "{good}");
        }
        for bad in
            ["http://id.example", "http://localhost.example", "http://127.0.0.1.example", "ftp://localhost"]
        {
            assert!(!are_served(bad), "{bad}");
        }
    }

    #[test]
    fn an_origin_has_no_path() {
        assert_eq!(origin_of("https://id.example/a/b"), "https://id.example");
        assert_eq!(origin_of("http://127.0.0.1:80"), "http://127.0.0.1:80");
    }
}
