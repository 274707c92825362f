//! The log of refused client app requests: one line for each, with the reason, the parameters sent and the registered values,
//! and never a secret.

use std::time::Instant;

use chancery_auth::{EndpointRequest, Issuer, Proof};
use chancery_record::Timestamp;
use chancery_signin::RefusedRequest;
use uuid::Uuid;

use super::App;
use crate::metrics::refused_requests::Labels;

/// The most characters of a value.
const LONGEST: usize = 256;
/// The most logged parameters of a request.
const MAX_PARAMETERS: usize = 32;
/// The parameters whose values are logged.
const LOGGED_VALUES: [&str; 17] = [
    "grant_type",
    "response_type",
    "response_mode",
    "redirect_uri",
    "post_logout_redirect_uri",
    "scope",
    "resource",
    "audience",
    "prompt",
    "max_age",
    "acr_values",
    "ui_locales",
    "code_challenge_method",
    "token_type_hint",
    "client_assertion_type",
    "subject_token_type",
    "requested_token_type",
];
/// The parameters whose names alone are logged: the values are secret, or about a person. Unknown names
/// are not logged: a secret that was sent without its name is one.
const LOGGED_NAMES: [&str; 20] = [
    "state",
    "nonce",
    "code_challenge",
    "login_hint",
    "id_token_hint",
    "logout_hint",
    "claims",
    "dpop_jkt",
    "request",
    "request_uri",
    "code",
    "code_verifier",
    "client_secret",
    "client_assertion",
    "refresh_token",
    "device_code",
    "token",
    "subject_token",
    "actor_token",
    "password",
];
/// The answers to devices that wait, and to clients before they know a nonce: no errors of the client.
const EXPECTED_ERRORS: [&str; 2] = ["authorization_pending", "use_dpop_nonce"];

/// A refused request of a client app.
pub struct RefusalEntry<'a> {
    /// The path below the issuer.
    pub endpoint: &'static str,
    /// The requested issuer.
    pub issuer: &'a Issuer,
    /// The error code.
    pub error: &'static str,
    /// The reason, for developers.
    pub reason: &'a str,
    /// The client id that was sent.
    pub client: Option<String>,
    /// The authentication method of the client app, at an endpoint that requires one.
    pub proof: Option<&'static str>,
    /// The parameters that were sent.
    pub parameters: &'a [(String, String)],
}

impl<'a> RefusalEntry<'a> {
    /// A request of a browser.
    pub fn of_browser(
        endpoint: &'static str,
        issuer: &'a Issuer,
        parameters: &'a [(String, String)],
        error: &'static str,
        reason: &'a str,
    ) -> Self {
        let client = parameters.iter().find(|(name, _)| name == "client_id").map(|(_, id)| id.clone());
        Self { endpoint, issuer, error, reason, client, proof: None, parameters }
    }

    /// A request to an endpoint where client apps prove themselves.
    pub fn of_client(request: &'a EndpointRequest, error: &'static str, reason: &'a str) -> Self {
        let presented = request.presented().ok();
        let proof = match presented.as_ref().map(|presented| &presented.proof) {
            None => "unreadable",
            Some(Proof::Basic(_)) => "client_secret_basic",
            Some(Proof::Post(_)) => "client_secret_post",
            Some(Proof::Assertion(_)) => "assertion",
            Some(Proof::Bare) if request.certificate.is_some() => "certificate",
            Some(Proof::Bare) => "none",
        };
        let client = presented.map(|presented| presented.client);
        let client = client.or_else(|| request.one("client_id").map(str::to_owned));
        let refused = Self {
            endpoint: request.path,
            issuer: &request.issuer,
            error,
            reason,
            client,
            proof: Some(proof),
            parameters: &request.form,
        };
        refused.with_possible_secret()
    }

    /// The same where a secret may have been sent, too. A client id that is no id may be the secret: some exchange the two.
    #[must_use]
    pub fn with_possible_secret(mut self) -> Self {
        self.client = self.client.map(|id| match Uuid::try_parse(&id) {
            Err(_) if id != chancery_resource::ROOT => format!("no id, {} characters", id.chars().count()),
            _ => id,
        });
        self
    }

    /// Counts the request, logs it within the rate of lines, and records it for the administrators of
    /// the client app.
    pub async fn report(self, app: &App, now: Timestamp) {
        if EXPECTED_ERRORS.contains(&self.error) {
            return;
        }
        let labels = Labels { endpoint: self.endpoint, error: self.error };
        let untold = app.metrics.refused.note(labels, Instant::now());
        let untold = untold.filter(|_| tracing::enabled!(tracing::Level::INFO));
        let id = self.client.as_deref().and_then(|text| Uuid::try_parse(text).ok());
        let kind = id.map(|id| (id, self.endpoint, self.error));
        let kind = kind.filter(|kind| {
            app.refused_requests.is_due(*kind, now) && (untold.is_some() || app.metrics.refused.may_look_up())
        });
        if untold.is_none() && kind.is_none() {
            return;
        }
        let found = match id {
            Some(id) => {
                let (tenant, proves) = (self.issuer.tenant_id(), self.proof.is_some());
                app.provider(&app.store).registered(id, tenant, proves, now).await
            }
            None => Ok(None),
        };
        if let (Some(kind), Ok(None)) = (kind, &found) {
            app.refused_requests.note_unknown(kind, now);
        }
        let (name, registered) = match found {
            Ok(Some(found)) => {
                (Some(found.name), listed(found.facts.iter().map(|(name, fact)| (*name, fact.as_str()))))
            }
            Ok(None) => (None, "no such client app".to_owned()),
            Err(_) => (None, "unknown: the storage cannot tell now".to_owned()),
        };
        let sent = self.sent();
        if let Some(untold) = untold {
            tracing::info!(
                endpoint = self.endpoint,
                issuer = sanitized(&self.issuer.url),
                app = sanitized(self.client.as_deref().unwrap_or_default()),
                app_name = name.as_deref().map(sanitized),
                error = self.error,
                reason = self.reason,
                sent,
                registered,
                untold,
                "refused an app's request"
            );
        }
        // an id that names no client app leaves no row
        if let (Some(kind), Some(_)) = (kind, name) {
            let reason = self.reason.to_owned();
            app.refused_requests.note(RefusedRequest { kind, reason, sent, registered, last_on: now });
        }
    }

    fn sent(&self) -> String {
        let proof = self.proof.map(|proof| ("token_endpoint_auth_method", proof));
        let parameters = self.parameters.iter().filter_map(|(name, value)| match name.as_str() {
            name if LOGGED_VALUES.contains(&name) => Some((name, value.as_str())),
            name if LOGGED_NAMES.contains(&name) => Some((name, "..")),
            _ => None,
        });
        listed(proof.into_iter().chain(parameters).take(MAX_PARAMETERS))
    }
}

fn listed<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let all: Vec<String> = pairs.map(|(name, value)| format!("{name}=\"{}\"", sanitized(value))).collect();
    all.join(" ")
}

/// A value for the log: without queries, fragments and user information, escaped, and truncated.
fn sanitized(value: &str) -> String {
    let bounded = value.get(..value.floor_char_boundary(LONGEST * 8)).unwrap_or_default();
    let words: Vec<String> = bounded.split(' ').map(without_query).collect();
    let mut letters = words.iter().enumerate().flat_map(|(at, word)| {
        let blank = (at > 0).then_some(' ');
        blank.into_iter().chain(word.chars().flat_map(char::escape_debug))
    });
    let mut cut: String = letters.by_ref().take(LONGEST - 1).collect();
    match (letters.next(), letters.next()) {
        (Some(last), None) => cut.push(last),
        (Some(_), Some(_)) => cut.push('…'),
        (None, _) => {}
    }
    cut
}

/// Removes the query, the fragment and the user information of a word that is an address, also one that was encoded twice.
fn without_query(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    let end = first(&lower, &["?", "#", "%3f", "%23"]).map_or(word.len(), |(at, _)| at);
    let (prefix, lower) = (word.get(..end).unwrap_or(word), lower.get(..end).unwrap_or(&lower));
    let mut sanitized = prefix.to_owned();
    if let Some((at, mark)) = first(lower, &["://", "%3a%2f%2f"]) {
        let host = at + mark;
        let rest = lower.get(host..).unwrap_or_default();
        let authority = first(rest, &["/", "%2f"]).and_then(|(at, _)| rest.get(..at)).unwrap_or(rest);
        if let Some(at) = ["@", "%40"].iter().filter_map(|mark| authority.rfind(mark)).max() {
            sanitized.replace_range(host..host + at, "..");
        }
    }
    if end < word.len() { format!("{sanitized}?..") } else { sanitized }
}

/// The position and the length of the first of these marks.
fn first(text: &str, marks: &[&str]) -> Option<(usize, usize)> {
    marks.iter().filter_map(|mark| Some((text.find(mark)?, mark.len()))).min()
}

#[cfg(test)]
mod tests {
    use chancery_auth::Issuer;
    use chancery_resource::ROOT;

    use super::{LONGEST, RefusalEntry, sanitized};

    #[test]
    fn a_logged_value_has_no_query_and_no_line_end() {
        for (value, expected) in [
            ("https://app.example/callback", "https://app.example/callback"),
            ("https://app.example/cb?code=secret", "https://app.example/cb?.."),
            ("https://app.example/cb#token=secret", "https://app.example/cb?.."),
            ("https%3A%2F%2Fapp.example%2Fcb%3Fcode%3Dsecret", "https%3A%2F%2Fapp.example%2Fcb?.."),
            ("https://ann:secret@app.example/cb", "https://..@app.example/cb"),
            ("https%3A%2F%2Fann:secret@app.example%2Fcb", "https%3A%2F%2F..@app.example%2Fcb"),
            ("https%3a%2f%2fann%3Asecret%40app.example", "https%3a%2f%2f..%40app.example"),
            ("https://ann%40a.example:secret%40app.example/@", "https://..%40app.example/@"),
            ("com.example.app:/cb", "com.example.app:/cb"),
            ("openid https://a.example/x?y=secret z", "openid https://a.example/x?.. z"),
            ("a\nb\u{1b}[31m\u{202e}c\"", "a\\nb\\u{1b}[31m\\u{202e}c\\\""),
        ] {
            assert_eq!(sanitized(value), expected);
        }
        let long = sanitized(&"ä".repeat(100_000));
        assert!(long.chars().count() == LONGEST && long.ends_with('…'), "{long}");
        assert_eq!(sanitized(&"ä".repeat(LONGEST)), "ä".repeat(LONGEST));
    }

    #[test]
    fn only_an_id_is_logged_where_a_secret_may_have_been_sent() {
        let issuer = Issuer { url: "https://id.example".to_owned(), tenant: None };
        for (id, expected) in [
            ("01997c1e-4d5f-7aa0-8b1e-6f2f0a0c5d11", "01997c1e-4d5f-7aa0-8b1e-6f2f0a0c5d11"),
            (ROOT, ROOT),
            ("hush", "no id, 4 characters"),
        ] {
            let sent = [("client_id".to_owned(), id.to_owned())];
            let refused = RefusalEntry::of_browser("/connect/token", &issuer, &sent, "not_found", "");
            assert_eq!(refused.client.as_deref(), Some(id));
            assert_eq!(refused.with_possible_secret().client.as_deref(), Some(expected));
        }
    }
}
