//! The cookies of the OpenID provider. On https their names begin with `__Host-`, so that no other host can set them. Below a path
//! they begin with `__Secure-`, which may have a path: other applications of the host do not get them.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Response, header};

use crate::message::{answer::AnswerBody, base_path::BasePath};

/// The most flows of one browser: the oldest cookies go first.
const FLOWS: usize = 3;
/// The most bytes of a flow in a cookie. Proxies refuse an answer whose head is longer than 4 KB, as nginx does unless it is
/// set otherwise: with this one, the cookies of a session and the headers of a page it is shorter than 3.5 KB.
const LARGEST_FLOW: usize = 2_100;
/// The most bytes of all flows in cookies, names included. With the other cookies of this server, those of the console
/// included, a browser sends less than 6 KB: proxies refuse requests with more than 8 KB in a line.
const ALL_FLOWS: usize = 3_400;
/// How long the browser stores the cookie that flows are bound to, in seconds: a year.
const BROWSER: i64 = 365 * 24 * 3600;
/// The longest cookie value that is read, in bytes.
const LONGEST: usize = 4_096;
/// The cookie of a browser in which a person signed out.
const SIGNED_OUT: &str = "signed-out";

/// Random bytes as the value of a cookie.
pub fn value(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The cookies that a browser sent, and those to be set.
pub struct Cookies {
    prefix: &'static str,
    base: BasePath,
    shown: Vec<(String, String)>,
    set: Vec<String>,
}

impl Cookies {
    /// Reads the cookies of a request.
    pub fn read(headers: &HeaderMap, public_url: &str) -> Self {
        let base = BasePath::of(public_url);
        let prefix = match (public_url.starts_with("https://"), base.as_str()) {
            (false, _) => "",
            (true, "") => "__Host-",
            (true, _) => "__Secure-",
        };
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let shown = pairs.filter(|(_, value)| value.len() <= LONGEST);
        let shown = shown.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { prefix, base, shown, set: Vec::new() }
    }

    /// The value of a cookie that was sent once: of two with one name, at most one was set here.
    pub fn find(&self, name: &str) -> Option<String> {
        let name = format!("{}chancery-{name}", self.prefix);
        let mut found = self.shown.iter().filter(|(shown, _)| *shown == name);
        let value = found.next().map(|(_, value)| value.clone()).filter(|value| !value.is_empty());
        value.filter(|_| found.next().is_none())
    }

    /// The value that flows are bound to.
    pub fn browser(&self) -> Option<String> {
        self.find("browser")
    }

    /// The value of the session.
    pub fn session(&self) -> Option<String> {
        self.find("session")
    }

    /// The value of a remembered browser.
    pub fn device(&self) -> Option<String> {
        self.find("device")
    }

    /// A flow, sealed.
    pub fn flow(&self, id: &str) -> Option<String> {
        self.find(&format!("flow-{id}"))
    }

    /// Sets a cookie of this host, for so many seconds; without, it goes when the browser is closed.
    pub fn set(&mut self, name: &str, value: &str, max_age: Option<i64>) {
        let secure = if self.prefix.is_empty() { "" } else { "; Secure" };
        let max_age = max_age.map_or_else(String::new, |seconds| format!("; Max-Age={seconds}"));
        let prefix = self.prefix;
        let path = if self.base.as_str().is_empty() { "/" } else { self.base.as_str() };
        self.set.push(format!(
            "{prefix}chancery-{name}={value}; Path={path}; HttpOnly; SameSite=Lax{secure}{max_age}"
        ));
    }

    /// Sets the value that flows are bound to.
    pub fn set_browser(&mut self, value: &str) {
        self.set("browser", value, Some(BROWSER));
    }

    /// Sets the session. Without `max_age`, in seconds, it goes when the browser is closed.
    pub fn set_session(&mut self, value: &str, max_age: Option<i64>) {
        self.set("session", value, max_age);
    }

    /// Sets the value of a remembered browser, for so many seconds.
    pub fn set_device(&mut self, value: &str, max_age: i64) {
        self.set("device", value, Some(max_age));
    }

    /// Removes the session.
    pub fn forget_session(&mut self) {
        self.set("session", "", Some(0));
    }

    /// Whether a person signed out in this browser, and no person signed in since.
    pub fn has_signed_out(&self) -> bool {
        self.find(SIGNED_OUT).is_some()
    }

    /// Sets that a person signed out, until a person signs in or the browser is closed.
    pub fn set_signed_out(&mut self) {
        self.set(SIGNED_OUT, "1", None);
    }

    /// Removes that a person signed out, if the browser sent it.
    pub fn forget_signed_out(&mut self) {
        if self.has_signed_out() {
            self.set(SIGNED_OUT, "", Some(0));
        }
    }

    /// How many bytes the value of this flow's cookie may have besides the remaining flows.
    pub fn room(&self, id: &str) -> usize {
        let mark = self.flow_name("").len();
        let others: usize = self
            .other_flows(id)
            .iter()
            .rev()
            .take(FLOWS - 1)
            .map(|(id, size)| mark + id.len() + size + 3)
            .sum();
        ALL_FLOWS.saturating_sub(others + mark + id.len() + 3).min(LARGEST_FLOW)
    }

    fn flow_name(&self, id: &str) -> String {
        format!("{}chancery-flow-{id}", self.prefix)
    }

    /// The other flows that the browser sent, in its order, each with the size of its value.
    fn other_flows(&self, id: &str) -> Vec<(&str, usize)> {
        let begin = self.flow_name("");
        let others = self
            .shown
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(&begin)?, value.len())))
            .filter(|(other, _)| *other != id && is_id(other));
        others.collect()
    }

    /// Sets a flow; those beyond the maximum are removed, in the browser's order.
    pub fn set_flow(&mut self, id: &str, sealed: &str) {
        let others: Vec<String> =
            self.other_flows(id).into_iter().map(|(other, _)| other.to_owned()).collect();
        let surplus = (others.len() + 1).saturating_sub(FLOWS);
        for other in others.iter().take(surplus.min(FLOWS)) {
            self.forget_flow(other);
        }
        self.set(&format!("flow-{id}"), sealed, None);
    }

    /// Removes all flows.
    pub fn forget_flows(&mut self) {
        let begin = self.flow_name("");
        let all: Vec<String> =
            self.shown.iter().filter_map(|(name, _)| name.strip_prefix(&begin)).map(str::to_owned).collect();
        for id in &all {
            self.forget_flow(id);
        }
    }

    /// Removes a flow.
    pub fn forget_flow(&mut self, id: &str) {
        if is_id(id) {
            self.set(&format!("flow-{id}"), "", Some(0));
        }
    }

    /// Adds the cookies to an answer.
    pub fn write(&self, response: &mut Response<AnswerBody>) {
        for line in &self.set {
            if let Ok(line) = HeaderValue::try_from(line) {
                response.headers_mut().append(header::SET_COOKIE, line);
            }
        }
    }
}

fn is_id(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::Cookies;

    fn read(line: &'static str, url: &str) -> Cookies {
        Cookies::read(&HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(line))]), url)
    }

    #[test]
    fn on_https_only_cookies_of_this_host_count() {
        let line = "a=b; chancery-session=planted; __Host-chancery-session=own";
        assert_eq!(read(line, "https://id.example").session().as_deref(), Some("own"));
        assert_eq!(read(line, "http://127.0.0.1").session().as_deref(), Some("planted"));
    }

    #[test]
    fn below_a_path_cookies_are_for_that_path() {
        let line = "__Host-chancery-session=a; __Secure-chancery-session=own";
        let mut cookies = read(line, "https://example.com/id");
        assert_eq!(cookies.session().as_deref(), Some("own"));
        cookies.set_session("new", None);
        let set = "__Secure-chancery-session=new; Path=/id; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(cookies.set, [set]);
    }

    #[test]
    fn a_cookie_that_is_sent_twice_is_ignored() {
        assert_eq!(read("chancery-session=a; chancery-session=b", "http://localhost").session(), None);
        assert_eq!(read("chancery-session=", "http://localhost").session(), None);
    }

    #[test]
    fn a_flow_has_the_room_that_the_remaining_flows_leave() {
        let line = |sizes: &[usize]| {
            let flows = sizes
                .iter()
                .enumerate()
                .map(|(id, size)| format!("chancery-flow-{id}={}", "x".repeat(*size)));
            let line = HeaderValue::try_from(flows.collect::<Vec<_>>().join("; ")).unwrap();
            Cookies::read(&HeaderMap::from_iter([(header::COOKIE, line)]), "http://localhost")
        };
        assert_eq!(
            (line(&[]).room("new"), line(&[2_000]).room("0")),
            (super::LARGEST_FLOW, super::LARGEST_FLOW)
        );
        assert!(line(&[2_000]).room("new") < 1_400 && line(&[1_800, 1_500]).room("new") < 100);
        assert_eq!(line(&[4_000, 4_000]).room("new"), 0);
        // the first one goes
        assert!(line(&[2_000, 100, 100]).room("new") > 2_000);
    }

    #[test]
    fn the_oldest_flows_go() {
        let mut cookies = read("chancery-flow-a=1; chancery-flow-b=2; chancery-flow-c=3", "http://localhost");
        cookies.set_flow("d", "4");
        let gone =
            |id: &str| cookies.set.iter().any(|line| line.starts_with(&format!("chancery-flow-{id}=;")));
        assert!(gone("a") && !gone("b") && !gone("c"));
    }
}
