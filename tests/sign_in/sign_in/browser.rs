//! A browser without scripts: stores cookies, follows redirects to the server, and posts forms.

use std::collections::BTreeMap;

use chancery_testkit::{Answer, Client, World};
use chancery_web::BasePath;
use http::Method;

use super::encode;

/// A browser.
#[derive(Clone)]
pub struct Browser {
    client: Client,
    base: String,
    /// The path of the public URL.
    path: String,
    /// Whether a proxy in front of the server strips that path.
    pub is_taken_off: bool,
    pub cookies: BTreeMap<String, String>,
}

/// A page that the browser shows.
pub struct Page {
    /// Its URL.
    pub address: String,
    /// The status.
    pub status: u16,
    /// The body.
    pub html: String,
    /// Target of the redirect, if it leaves the server.
    pub left: Option<String>,
    /// The response.
    pub answer: Answer,
}

impl Page {
    /// The value of a hidden field.
    pub fn field(&self, name: &str) -> String {
        let begin = format!("name=\"{name}\" value=\"");
        let from =
            self.html.find(&begin).unwrap_or_else(|| panic!("no {name} in {}", self.html)) + begin.len();
        self.html[from..].split('"').next().unwrap().to_owned()
    }

    /// The challenge for an authenticator, in the format of the API.
    pub fn challenge(&self) -> serde_json::Value {
        let from =
            self.html.find("data-options=\"").unwrap_or_else(|| panic!("asks for no passkey: {}", self.html));
        let text = self.html[from + 14..].split('"').next().unwrap().replace("&quot;", "\"");
        serde_json::json!({ "publicKey": serde_json::from_str::<serde_json::Value>(&text).unwrap() })
    }

    /// Whether the page asks for consent.
    pub fn asks_for_consent(&self) -> bool {
        self.html.contains("Allow access?")
    }

    /// Target of a page that redirects by itself.
    pub fn redirect_target(&self) -> String {
        let refresh = self.answer.header("refresh").unwrap_or_else(|| panic!("leads nowhere: {}", self.html));
        refresh.strip_prefix("0; url=").unwrap().to_owned()
    }

    /// Target of the page's form.
    pub fn action(&self) -> String {
        let from = self.html.find("action=\"").unwrap_or_else(|| panic!("no form in {}", self.html)) + 8;
        self.html[from..].split('"').next().unwrap().replace("&amp;", "&").replace("&#x2f;", "/")
    }
}

impl Browser {
    pub fn new(world: &World) -> Self {
        Self::of(&world.anonymous, &world.base)
    }

    /// A browser that sends to the same server as this client; the server has this public URL.
    pub fn of(client: &Client, base: &str) -> Self {
        let path = BasePath::of(base).as_str().to_owned();
        Self {
            client: client.clone(),
            base: base.to_owned(),
            path,
            is_taken_off: false,
            cookies: BTreeMap::new(),
        }
    }

    /// Sends a request; `None` if the server terminates before it answers.
    async fn send(
        &mut self,
        method: Method,
        address: &str,
        form: Option<String>,
        more: &[(&str, &str)],
    ) -> Option<Answer> {
        let shown: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let shown = shown.join("; ");
        let mut headers = vec![("cookie", shown.as_str())];
        headers.retain(|(_, value)| !value.is_empty());
        if form.is_some() {
            headers.push(("content-type", "application/x-www-form-urlencoded"));
        }
        headers.extend(more);
        let sent = form.unwrap_or_default().into_bytes();
        let below = || address.strip_prefix(&self.base).or(address.strip_prefix(&self.path));
        let target = if self.is_taken_off { below().unwrap_or(address) } else { address };
        let answer = self.client.try_send(method, target, &headers, sent).await?;
        let path = if self.path.is_empty() { "/" } else { self.path.as_str() };
        // default limits of proxies: heads of 4 KB in answers, 8 KB in requests
        let head: usize =
            answer.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        assert!(head + 32 < 3_500, "{} bytes: {:?}", head, answer.headers);
        for line in answer.headers.get_all("set-cookie") {
            let (pair, rest) = line.to_str().unwrap().split_once(';').unwrap();
            assert!(
                rest.contains("HttpOnly")
                    && rest.contains("SameSite=Lax")
                    && rest.contains(&format!("Path={path};")),
                "{rest}"
            );
            let (name, value) = pair.split_once('=').unwrap();
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let all: usize = self.cookies.iter().map(|(name, value)| name.len() + value.len() + 3).sum();
        assert!(all < 6_000, "{all} bytes: {:?}", self.cookies.keys());
        Some(answer)
    }

    /// Follows redirects until a page is shown or the target is another server.
    async fn follow(&mut self, mut address: String, mut answer: Answer) -> Option<Page> {
        for _ in 0..10 {
            let Some(next) = answer.header("location").map(str::to_owned) else { break };
            assert_eq!(answer.status, 303, "a post is never repeated");
            if !next.starts_with('/') && !next.starts_with(&self.base) {
                return Some(Page { address, status: 303, html: String::new(), left: Some(next), answer });
            }
            address = next;
            answer = self.send(Method::GET, &address, None, &[]).await?;
        }
        let html = String::from_utf8(answer.bytes.to_vec()).unwrap().replace("&#x2f;", "/");
        // a URL that is too long for a header
        let led = html
            .split_once("http-equiv=\"refresh\" content=\"0;url=")
            .and_then(|(_, rest)| rest.split_once('"'));
        let left = led.map(|(led, _)| led.replace("&amp;", "&")).filter(|led| !led.starts_with('/'));
        Some(Page { address, status: answer.status.as_u16(), html, left, answer })
    }

    /// Opens a URL.
    pub async fn open(&mut self, address: &str) -> Page {
        self.try_open(address).await.unwrap()
    }

    /// Opens a URL with further headers: the answer as sent, without redirects.
    pub async fn open_with(&mut self, address: &str, more: &[(&str, &str)]) -> Answer {
        self.send(Method::GET, address, None, more).await.unwrap()
    }

    /// Opens a URL of a server that may terminate meanwhile.
    pub async fn try_open(&mut self, address: &str) -> Option<Page> {
        let answer = self.send(Method::GET, address, None, &[]).await?;
        self.follow(address.to_owned(), answer).await
    }

    /// Posts a form with further headers.
    pub async fn post(&mut self, address: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Page {
        self.try_post(address, fields, headers).await.unwrap()
    }

    /// Posts a form to a server that may terminate meanwhile.
    pub async fn try_post(
        &mut self,
        address: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Option<Page> {
        let form: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let answer = self.send(Method::POST, address, Some(form.join("&")), headers).await?;
        self.follow(address.to_owned(), answer).await
    }

    /// Posts the page's form with these fields.
    pub async fn submit(&mut self, page: &Page, fields: &[(&str, &str)]) -> Page {
        let csrf = page.field("csrf");
        let fields: Vec<_> = [("csrf", csrf.as_str())].into_iter().chain(fields.iter().copied()).collect();
        self.post(&page.action(), &fields, &[]).await
    }

    /// Submits a name and a password.
    pub async fn type_password(&mut self, page: &Page, name: &str, password: &str) -> Page {
        let csrf = page.field("csrf");
        self.post(&page.action(), &[("csrf", &csrf), ("username", name), ("password", password)], &[]).await
    }

    /// Submits a name and a password, and continues to the app; returns the redirect URI with the response.
    pub async fn sign_in(&mut self, page: &Page, name: &str, password: &str) -> String {
        let next = self.type_password(page, name, password).await;
        self.continue_to_app(&next).await
    }

    /// Submits a name and a password, consents to the platform's rights if asked, and continues to the app;
    /// returns the redirect URI with the response.
    pub async fn sign_in_to_platform(&mut self, page: &Page, name: &str, password: &str) -> String {
        let mut next = self.type_password(page, name, password).await;
        if next.asks_for_consent() {
            next = self.submit(&next, &[("decision", "allow"), ("scope", "offline_access")]).await;
        }
        self.continue_to_app(&next).await
    }

    /// Continues from the page that redirects to the app.
    pub async fn continue_to_app(&mut self, page: &Page) -> String {
        self.open(&page.redirect_target()).await.left.unwrap()
    }
}
