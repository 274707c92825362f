//! The pages and the browser's endpoints of the OpenID provider: cookies, forms, languages, headers.

mod assets;
mod cookies;
mod device;
mod language;
mod post;
mod provider_return;
mod redirect;
mod render;
mod reset;
mod script;
pub mod sign_out;

use chancery_auth::Issuer;
use chancery_record::{Secret, Timestamp, is_loopback_url, origin_of, parse_id};
use chancery_resource::{Problem, ProblemKind, random};
use chancery_signin::{
    ACCESS_PASS, BrowserResponse, CONTINUE, EXTERNAL, Form, IN_ROW, LONGEST_QUERY, NewSession, Origin,
    Owners, PASSWORD, Page, PageError, PendingFlow, Provider, SIGNED_OUT, SignInPage, Visit,
};
use http::{Method, Response, header, request::Parts};
use uuid::Uuid;

pub use assets::content;
pub use cookies::Cookies;
pub use language::languages;
pub use provider_return::returned;
pub use redirect::see_other;
pub use script::script;
pub use sign_out::sign_out;

use self::{
    redirect::{LONGEST_LOCATION, redirect_as_get, redirect_to_client},
    render::{Shown, error_page, error_page_leading_to, page},
};
use crate::{
    app::{App, refusal_log::RefusalEntry},
    body::parse::read_form_body,
    connection::request_body::{RequestBody, SMALL_BODY},
    message::{
        answer::AnswerBody,
        peer::address_of,
        request::{read_form, text},
    },
    routes::system_route::SystemRoute,
};

type Parameters = Vec<(String, String)>;

/// The client app in the address of a flow's page: a browser that no longer stores the flow is still led back to it.
const APPLICATION: &str = "app";

/// The field by which a form proves that it comes from a page of this server.
const CSRF: &str = "csrf";

/// A request of a browser, and the context of its answer.
pub struct Browser<'a> {
    pub app: &'a App,
    /// The endpoint.
    pub route: SystemRoute,
    pub parts: &'a Parts,
    pub cookies: Cookies,
    pub visit: Visit,
    pub query: Parameters,
    /// The language tags that the browser prefers, the first one first.
    pub languages: Vec<String>,
    /// The flow in the address, if this browser stores it: under way or over.
    pub flow: Option<PendingFlow>,
}

/// Whether people sign in here.
pub fn are_served(app: &App) -> bool {
    app.sign_in.is_on && can_be_served(&app.token_service.public_url)
}

/// Whether pages can be served: by https, or on the machine itself.
fn can_be_served(public_url: &str) -> bool {
    public_url.starts_with("https://") || (public_url.starts_with("http://") && is_loopback_url(public_url))
}

/// Answers a request of a browser.
pub async fn answer(
    app: &App,
    route: SystemRoute,
    issuer: &Issuer,
    step: &str,
    parts: &Parts,
    body: &mut RequestBody,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    if !can_be_served(&app.token_service.public_url) {
        let detail = "Pages need https. Set the public URL to an https address.";
        return Err(Problem::new(ProblemKind::Unavailable, detail));
    }
    let raw = parts.uri.query().unwrap_or_default();
    let form = if parts.method == Method::POST {
        Some(read_form_body(app, parts, body, SMALL_BODY).await?)
    } else {
        None
    };
    let mut is_too_long = raw.len() > LONGEST_QUERY;
    if let (SystemRoute::Authorize | SystemRoute::EndSession, Some(form)) = (route, &form)
        && !form.iter().any(|(name, _)| name == CSRF)
    {
        if let Some(led) = redirect_as_get(app, route, issuer, parts, form, now).await? {
            return Ok(led);
        }
        is_too_long = true;
    }
    let mut cookies = Cookies::read(&parts.headers, &app.token_service.public_url);
    // a form of another site sends no cookies: it must not replace those that are there
    let visit = visit(&mut cookies, issuer, parts, parts.method == Method::GET, now);
    let query = read_form(raw)?;
    let named = query.iter().find(|(name, _)| name == "flow").map(|(_, id)| id.as_str());
    let flow = match named.and_then(|id| Some((id, cookies.flow(id)?))) {
        Some((id, cookie)) => app.provider(&app.store).flow_of(&visit, id, &cookie).await?,
        None => None,
    };
    // a flow's pages are those of its issuer: below another's they would show one tenant at the other's address
    let is_own = |flow: &PendingFlow| {
        // the page of a forgotten password is a tenant's, also in a flow of the installation's issuer
        flow.issuing == issuer.tenant_id() || (route == SystemRoute::PasswordReset && flow.issuing.is_none())
    };
    let flow = flow.filter(is_own);
    let browser = Browser { app, route, parts, cookies, visit, query, languages: languages(parts), flow };
    if is_too_long {
        return Ok(error_page(&browser, PageError::TOO_LONG).await);
    }
    // only an existing session is exempt from the limit: a cookie can be forged
    if !browser.provider().has_session(&browser.visit).await?
        && let Err(problem) = app.page_limiter.admit_address(address_of(parts), now)
    {
        return Ok(error_page(&browser, PageError::too_many(seconds_of(&problem))).await);
    }
    match (route, form) {
        (SystemRoute::Authorize, _) => browser.authorize().await,
        (SystemRoute::EndSession, form) => browser.end_session(form).await,
        (SystemRoute::Device, form) => browser.device(form).await,
        (SystemRoute::PasswordReset, form) => browser.reset(form).await,
        (_, None) if step == SIGNED_OUT => Ok(browser.signed_out().await),
        (_, None) => browser.show(step).await,
        (_, Some(form)) => Box::pin(browser.post(step, form)).await,
    }
}

/// A request of a browser, identified by a cookie; one without the cookie gets it where `can_set` is true.
fn visit(cookies: &mut Cookies, issuer: &Issuer, parts: &Parts, can_set: bool, now: Timestamp) -> Visit {
    let browser = cookies.browser().unwrap_or_else(|| {
        let value = cookies::value(&random::<32>());
        if can_set {
            cookies.set_browser(&value);
        }
        value
    });
    Visit {
        issuer: issuer.clone(),
        browser,
        session: cookies.session(),
        device: cookies.device(),
        has_signed_out: cookies.has_signed_out(),
        origin: Origin {
            address: address_of(parts).to_string(),
            user_agent: text(&parts.headers, header::USER_AGENT).map(str::to_owned),
        },
        now,
    }
}

/// Whether the request comes from a browser that shows a page.
pub fn is_shown_to_people(app: &App, parts: &Parts) -> bool {
    let is_page = |range: &str| range.trim_start().starts_with("text/html");
    are_served(app)
        && text(&parts.headers, header::ACCEPT).is_some_and(|accepted| accepted.split(',').any(is_page))
}

/// Shows a problem on a page.
pub async fn problem_page(
    app: &App,
    route: SystemRoute,
    issuer: Issuer,
    parts: &Parts,
    problem: &Problem,
    now: Timestamp,
) -> Response<AnswerBody> {
    let origin = Origin { address: address_of(parts).to_string(), user_agent: None };
    let (session, device) = (None, None);
    let visit = Visit { issuer, browser: String::new(), session, device, has_signed_out: false, origin, now };
    let cookies = Cookies::read(&parts.headers, &app.token_service.public_url);
    let query = read_form(parts.uri.query().unwrap_or_default()).unwrap_or_default();
    let languages = languages(parts);
    let browser = Browser { app, parts, route, cookies, visit, query, languages, flow: None };
    let is_limited = matches!(problem.status(), 429 | 503);
    let seconds = is_limited.then(|| seconds_of(problem));
    error_page(&browser, PageError::of_status(problem.status(), seconds)).await
}

/// The `Retry-After` of a problem, in seconds.
pub fn seconds_of(problem: &Problem) -> i64 {
    let retry_after = problem.headers.iter().find(|(name, _)| *name == "retry-after");
    retry_after.and_then(|(_, seconds)| seconds.parse().ok()).unwrap_or(1)
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
        self.answer(outcome).await
    }

    /// The flow in the address, if it is under way in this browser.
    fn flow_under_way(&self) -> Option<PendingFlow> {
        self.flow.clone().filter(|flow| !flow.is_over(self.visit.now))
    }

    /// Explains why no flow is under way at this address, and leads back to the client app.
    async fn without_flow(self) -> Result<Response<AnswerBody>, Problem> {
        let error = match &self.flow {
            Some(flow) if flow.has_ended => PageError::FINISHED,
            Some(_) => PageError::NO_FLOW,
            None if self.cookies.browser().is_none() => PageError::NO_COOKIES,
            None => PageError::GONE,
        };
        let named = self.parameter(APPLICATION).and_then(|id| Uuid::try_parse(id).ok());
        let client_link = match (self.flow.as_ref().and_then(PendingFlow::home), named) {
            (None, Some(id)) => self.provider().home_of(id, self.visit.issuer.tenant_id()).await?,
            (client_link, _) => client_link,
        };
        Ok(error_page_leading_to(&self, error, client_link).await)
    }

    /// Replaces the cookie of an ended flow by the link back to its client app, or removes it beside a long address.
    fn end_flow(&mut self, address: &str) {
        let Some(flow) = &self.flow else { return };
        let room = self.cookies.room(&flow.id).min(LONGEST_LOCATION.saturating_sub(address.len()));
        match flow.ended().seal(&self.app.context.master, &self.visit.browser, room) {
            Some(sealed) => self.cookies.set_flow(&flow.id, &sealed),
            None => self.cookies.forget_flow(&flow.id),
        }
    }

    async fn show(mut self, step: &str) -> Result<Response<AnswerBody>, Problem> {
        let Some(flow) = self.flow_under_way() else { return self.without_flow().await };
        if let (Some(address), CONTINUE, Some(_)) = (&flow.answer, step, self.parameter("go")) {
            self.end_flow(address);
            let mut response = redirect_to_client(address);
            self.cookies.write(&mut response);
            return Ok(response);
        }
        let instance = self.parameter("instance").filter(|_| step == EXTERNAL).and_then(parse_id);
        if step == EXTERNAL
            && let Err(problem) = self.app.page_limiter.admit_address(address_of(self.parts), self.visit.now)
        {
            return Ok(error_page(&self, PageError::too_many(seconds_of(&problem))).await);
        }
        let outcome = match instance {
            Some(instance) => Box::pin(self.provider().go_to_provider(&self.visit, flow, instance)).await?,
            None => self.provider().show(&self.visit, flow, step).await?,
        };
        self.answer(outcome).await
    }

    async fn post(self, step: &str, form: Parameters) -> Result<Response<AnswerBody>, Problem> {
        let Some(flow) = self.flow_under_way() else { return self.without_flow().await };
        let expected = flow.csrf(&self.app.context.master, &self.visit.browser, step);
        if !self.is_ours(Form(&form), expected) {
            return Ok(error_page(&self, PageError::FOREIGN_FORM).await);
        }
        // a form of ours is only on a page that there is
        let Some(page) = SignInPage::find(step) else {
            return Ok(error_page(&self, PageError::NOT_FOUND).await);
        };
        let outcome = Box::pin(self.do_step(page, flow, Form(&form))).await?;
        self.app.metrics.note_flow(page.label(), post::result_label(&outcome));
        self.answer(outcome).await
    }

    /// The CSRF token of a page without a flow.
    fn csrf_of(&self, purpose: &str) -> String {
        let about = format!("{}\0{}", self.visit.browser, self.visit.issuer.url);
        cookies::value(&self.app.context.master.digest(purpose, about.as_bytes()))
    }

    /// Whether a form comes from this page of this server.
    fn is_ours(&self, form: Form<'_>, expected: String) -> bool {
        let shown = form.field(CSRF).unwrap_or_default();
        Secret::new(expected).matches(shown.as_bytes()) && self.is_same_origin()
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

    async fn answer(mut self, outcome: BrowserResponse) -> Result<Response<AnswerBody>, Problem> {
        Ok(match outcome {
            BrowserResponse::Refused(refusal, answer) => {
                self.log_refusal(refusal.code.name(), refusal.detail).await;
                return Box::pin(self.answer(*answer)).await;
            }
            BrowserResponse::ToClient(address) => {
                self.end_flow(&address);
                let mut response = redirect_to_client(&address);
                self.cookies.write(&mut response);
                response
            }
            BrowserResponse::ToProvider(flow, address) => {
                if let Err(error) = self.store_flow(&flow).await? {
                    return Ok(error_page(&self, error).await);
                }
                let mut response = redirect_to_client(&address);
                self.cookies.write(&mut response);
                response
            }
            BrowserResponse::ToPage(mut flow, step, session) => {
                self.set_session(session);
                // the next page starts a new ceremony where it needs an authenticator
                flow.ceremony = None;
                if let Err(error) = self.store_flow(&flow).await? {
                    return Ok(error_page(&self, error).await);
                }
                let mut response = see_other(&self.address(&flow, step));
                self.cookies.write(&mut response);
                response
            }
            BrowserResponse::Page(flow, shown) => {
                if flow.is_changed
                    && let Err(error) = self.store_flow(&flow).await?
                {
                    return Ok(error_page(&self, error).await);
                }
                let step = shown.step;
                let action = self.address(&flow, step);
                let csrf = flow.csrf(&self.app.context.master, &self.visit.browser, step);
                let leads_on = step == CONTINUE && flow.answer.is_some();
                let refresh = leads_on.then(|| format!("{action}&go=1"));
                let shown = self.with_addresses(&flow, with_link(shown, refresh.as_deref()));
                page(&self, Shown { page: shown, action, csrf, refresh, ..Shown::of_page() }, step).await
            }
            BrowserResponse::Post { action, fields, session } => {
                self.set_session(session);
                let fields: Vec<_> = fields
                    .into_iter()
                    .map(|(name, value)| serde_json::json!({ "name": name, "value": value }))
                    .collect();
                let context = serde_json::json!({ "fields": fields });
                // where no page was shown before, the request alone names its client app
                let client_app = self.parameter("client_id").and_then(|id| Uuid::try_parse(id).ok());
                let owners = Owners { client_app, ..Owners::default() };
                let shown = Page { owners, ..Page::new("Continue", CONTINUE, context) };
                page(&self, Shown { page: shown, action, ..Shown::of_page() }, "post").await
            }
            BrowserResponse::Error(error) => error_page(&self, error).await,
        })
    }

    /// Logs why the client app's request is refused: this one, or the one that began the flow.
    async fn log_refusal(&self, error: &'static str, reason: &str) {
        let is_own = matches!(self.route, SystemRoute::Authorize | SystemRoute::EndSession);
        let of_flow = self.flow.as_ref().map(|flow| &flow.parameters).filter(|_| !is_own);
        let sent = of_flow.unwrap_or(&self.query);
        let (path, issuer) = (self.route.path(), &self.visit.issuer);
        RefusalEntry::of_browser(path, issuer, sent, error, reason).report(self.app, self.visit.now).await;
    }

    fn set_session(&mut self, session: Option<NewSession>) {
        if let Some(session) = session {
            self.cookies.set_session(&session.value, session.max_age);
            self.cookies.forget_signed_out();
            if let Some((value, max_age)) = &session.device {
                self.cookies.set_device(value, *max_age);
            }
        }
    }

    /// Stores a flow in the browser. One that is too large for a cookie becomes a row, which counts as one more page.
    async fn store_flow(&mut self, flow: &PendingFlow) -> Result<Result<(), PageError>, Problem> {
        let room = self.cookies.room(&flow.id);
        if let Some(sealed) = flow.seal(&self.app.context.master, &self.visit.browser, room) {
            self.cookies.set_flow(&flow.id, &sealed);
            return Ok(Ok(()));
        }
        let is_new = self.cookies.flow(&flow.id).is_none_or(|cookie| cookie != IN_ROW);
        if is_new
            && let Err(problem) = self.app.page_limiter.admit_address(address_of(self.parts), self.visit.now)
        {
            return Ok(Err(PageError::too_many(seconds_of(&problem))));
        }
        if !self.provider().store_in_row(&self.visit, flow).await? {
            return Ok(Err(PageError::BUSY));
        }
        self.cookies.set_flow(&flow.id, IN_ROW);
        Ok(Ok(()))
    }

    /// Adds the addresses of linked pages to a page.
    fn with_addresses(&self, flow: &PendingFlow, mut page: Page) -> Page {
        if let Some(members) = page.context.as_object_mut() {
            if members.remove("access_pass") == Some(true.into()) {
                members.insert("access_pass_url".to_owned(), self.address(flow, ACCESS_PASS).into());
            }
            for provider in
                members.get_mut("providers").and_then(|all| all.as_array_mut()).into_iter().flatten()
            {
                let address = self.address(flow, EXTERNAL);
                if let Some(members) = provider.as_object_mut() {
                    let instance = members.remove("instance").unwrap_or_default();
                    let instance = instance.as_str().unwrap_or_default();
                    members.insert("url".to_owned(), format!("{address}&instance={instance}").into());
                }
            }
            if page.step == ACCESS_PASS {
                members.insert("sign_in_url".to_owned(), self.address(flow, PASSWORD).into());
            }
        }
        page
    }

    /// The address of a page of a flow, below the requested issuer.
    fn address(&self, flow: &PendingFlow, step: &str) -> String {
        let issuer = chancery_auth::issuer_url("", flow.issuing);
        self.in_language(format!(
            "{issuer}/signin/{step}?flow={}&{APPLICATION}={}",
            flow.id, flow.application
        ))
    }
}

/// The page with the link that leads on, or with the required click.
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

#[cfg(test)]
mod tests {
    use super::can_be_served;

    #[test]
    fn pages_need_https_or_the_machine_itself() {
        for good in ["https://id.example", "http://LocalHost:8080", "http://127.0.0.1:1", "http://[::1]:1"] {
            assert!(can_be_served(good), "{good}");
        }
        for bad in
            ["http://id.example", "http://localhost.example", "http://127.0.0.1.example", "ftp://localhost"]
        {
            assert!(!can_be_served(bad), "{bad}");
        }
    }
}
