//! A browser without script: it keeps cookies, follows redirects within the server, and sends forms.

use std::net::SocketAddr;

use crate::{
    client::Client,
    fault::{Result, fault},
};

/// The most redirects that follow each other.
const REDIRECTS: usize = 8;

/// A browser at one server.
pub struct Browser {
    host: String,
    cookies: Vec<(String, String)>,
    request: Vec<u8>,
}

/// The response at the end of a request and its redirects.
#[derive(Debug)]
pub struct FinalResponse {
    /// The status of the last answer.
    pub status: u16,
    /// The address of the last answer; if the server redirected to another host, that address.
    pub address: String,
    /// Whether the server redirected to another host.
    pub is_external: bool,
    /// The text of the last answer.
    pub text: String,
}

/// A value encoded for a query or a form.
pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

/// A form, or a query, of these fields.
pub fn form(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    pairs.join("&")
}

impl FinalResponse {
    /// A parameter of the address to which the server redirected.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let (_, query) = self.address.split_once('?').filter(|_| self.is_external)?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// The page's form filled in with these fields: its action and its body.
    pub fn filled(&self, fields: &[(&str, &str)]) -> Option<(String, String)> {
        let (_, markup) = self.text.split_once("<form ")?;
        let action = attribute(markup, "action")?;
        let inputs = markup
            .split("<input ")
            .skip(1)
            .filter(|input| attribute(input, "type").as_deref() == Some("hidden"));
        let hidden = inputs.filter_map(|input| Some((attribute(input, "name")?, attribute(input, "value")?)));
        let sent: Vec<String> =
            hidden.map(|(name, value)| form(&[(&name, &value)])).chain([form(fields)]).collect();
        Some((action, sent.join("&")))
    }

    /// A description of a response that is not the expected one.
    pub fn describe(&self) -> String {
        let error = self.parameter("error").unwrap_or_default();
        format!("status {} at {} {error}", self.status, self.address.split('?').next().unwrap_or_default())
    }
}

/// The value of an attribute in the markup of an element that begins here.
fn attribute(markup: &str, name: &str) -> Option<String> {
    let element = markup.split('>').next()?;
    let (_, rest) = element.split_once(&format!("{name}=\""))?;
    Some(rest.split('"').next()?.replace("&#x2f;", "/").replace("&#x3d;", "=").replace("&amp;", "&"))
}

impl Browser {
    /// A browser without cookies.
    pub fn new(address: SocketAddr) -> Self {
        Self { host: address.to_string(), cookies: Vec::new(), request: Vec::new() }
    }

    /// Sets a cookie; an empty value removes it.
    pub fn set(&mut self, name: &str, value: &str) {
        self.cookies.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Opens an address of the server and follows its redirects.
    pub async fn open(&mut self, client: &mut Client, path: &str) -> Result<FinalResponse> {
        self.go(client, path, None).await
    }

    /// Sends a form and follows the redirects.
    pub async fn post(&mut self, client: &mut Client, path: &str, form: &str) -> Result<FinalResponse> {
        self.go(client, path, Some(form)).await
    }

    async fn go(&mut self, client: &mut Client, path: &str, mut form: Option<&str>) -> Result<FinalResponse> {
        let mut address = self.local(path).unwrap_or(path).to_owned();
        for _ in 0..REDIRECTS {
            self.write(&address, form.take());
            let (status, body) = client.fetch(&self.request).await?;
            self.store_cookies(client);
            let Some(next) = next(client) else {
                let text = String::from_utf8_lossy(&body).into_owned();
                return Ok(FinalResponse { status, address, is_external: false, text });
            };
            let Some(local) = self.local(next) else {
                let address = next.to_owned();
                return Ok(FinalResponse { status, address, is_external: true, text: String::new() });
            };
            local.clone_into(&mut address);
        }
        Err(fault(format!("redirects without end at {address}")))
    }

    /// The path of an address at this server.
    fn local<'a>(&self, address: &'a str) -> Option<&'a str> {
        let path = address.strip_prefix("http://").and_then(|rest| rest.strip_prefix(self.host.as_str()));
        path.or_else(|| Some(address).filter(|address| address.starts_with('/')))
    }

    /// Writes a request; with a form it is a POST.
    fn write(&mut self, path: &str, form: Option<&str>) {
        let out = &mut self.request;
        out.clear();
        let method = if form.is_some() { "POST" } else { "GET" };
        for part in [method, " ", path, " HTTP/1.1\r\nhost: ", &self.host] {
            out.extend_from_slice(part.as_bytes());
        }
        for (index, (name, value)) in self.cookies.iter().enumerate() {
            let before = if index == 0 { "\r\ncookie: " } else { "; " };
            for part in [before, name, "=", value] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        if let Some(form) = form {
            let head = format!(
                "\r\ncontent-type: application/x-www-form-urlencoded\r\nsec-fetch-site: same-origin\r\n\
                 content-length: {}",
                form.len()
            );
            out.extend_from_slice(head.as_bytes());
        }
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(form.unwrap_or_default().as_bytes());
    }

    /// Stores the cookies that the last answer sets.
    fn store_cookies(&mut self, client: &Client) {
        for line in client.headers("set-cookie") {
            let pair = line.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.set(name, value);
            }
        }
    }
}

/// The address that the last answer leads to: by a redirect, or by a page that refreshes at once.
fn next(client: &Client) -> Option<&str> {
    let refresh = || client.header("refresh")?.split_once("url=").map(|(_, address)| address);
    client.header("location").or_else(refresh)
}

#[cfg(test)]
mod tests {
    use super::FinalResponse;

    #[test]
    fn forms_are_filled() {
        let text = "<form method=\"post\" action=\"&#x2f;a?b=1&amp;c=2\"><input type=\"hidden\" name=\"csrf\" value=\"x/y\">\
             <input name=\"username\" value=\"\"></form>";
        let page = FinalResponse { status: 200, address: "/a".into(), is_external: false, text: text.into() };
        let filled = page.filled(&[("username", "a b")]).unwrap();
        assert_eq!(filled, ("/a?b=1&c=2".to_owned(), "csrf=x%2Fy&username=a%20b".to_owned()));
    }
}
