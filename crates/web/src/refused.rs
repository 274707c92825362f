//! Why requests of client apps are refused: a line of the log for each, so that nobody has to guess. It tells what was
//! sent and what is registered, and never a secret.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use chancery_auth::{EndpointRequest, Issuer, Proof};
use chancery_record::Timestamp;
use chancery_signin::RefusedRequest;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};
use uuid::Uuid;

use crate::app::App;

/// The most client apps that are looked up in a second for requests of which the log does not tell.
const MOST_LOOKS: u64 = 100;
/// The most lines of a second.
const MOST_LINES: u64 = 10;
/// The most characters of a value.
const LONGEST: usize = 256;
/// The most parameters that are told of a request.
const MOST_PARAMETERS: usize = 32;
/// The parameters whose values are told.
const TOLD: [&str; 17] = [
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
/// The parameters of which the names alone are told: the values are secret, or about a person. Names that are not known
/// are not told, either: a secret that was sent without its name is one.
const NAMED: [&str; 20] = [
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
/// What devices are answered while they wait, and clients before they know a nonce: nothing is wrong there.
const USUAL: [&str; 2] = ["authorization_pending", "use_dpop_nonce"];

/// A request of a client app that is refused.
pub struct Refused<'a> {
    /// The path below the issuer.
    pub endpoint: &'static str,
    /// The issuer that was asked.
    pub issuer: &'a Issuer,
    /// The code of what is wrong.
    pub error: &'static str,
    /// What is wrong, for developers.
    pub reason: &'a str,
    /// The client id that was sent.
    pub client: Option<String>,
    /// How the client app proved itself, at an endpoint where it has to.
    pub proof: Option<&'static str>,
    /// The parameters that were sent.
    pub parameters: &'a [(String, String)],
}

impl<'a> Refused<'a> {
    /// A request of a browser.
    pub fn of_browser(
        (endpoint, issuer): (&'static str, &'a Issuer),
        parameters: &'a [(String, String)],
        (error, reason): (&'static str, &'a str),
    ) -> Self {
        let client = parameters.iter().find(|(name, _)| name == "client_id").map(|(_, id)| id.clone());
        Self { endpoint, issuer, error, reason, client, proof: None, parameters }
    }

    /// A request to an endpoint where client apps prove themselves.
    pub fn of_client(request: &'a EndpointRequest, (error, reason): (&'static str, &'a str)) -> Self {
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
        refused.beside_a_secret()
    }

    /// The same where a secret may have been sent, too. What is no id may be it: some exchange the two.
    #[must_use]
    pub fn beside_a_secret(mut self) -> Self {
        self.client = self.client.map(|id| match Uuid::try_parse(&id) {
            Err(_) if id != chancery_resource::ROOT => format!("no id, {} characters", id.chars().count()),
            _ => id,
        });
        self
    }

    /// Counts the request, tells of it in the log unless it tells of too many already, and notes it for the administrators of
    /// the client app.
    pub async fn tell(self, app: &App, now: Timestamp) {
        if USUAL.contains(&self.error) {
            return;
        }
        let labels = Labels { endpoint: self.endpoint, error: self.error };
        let untold = app.metrics.refused.note(labels, Instant::now());
        let untold = untold.filter(|_| tracing::enabled!(tracing::Level::INFO));
        let id = self.client.as_deref().and_then(|text| Uuid::try_parse(text).ok());
        let kind = id.map(|id| (id, self.endpoint, self.error));
        let kind = kind.filter(|kind| {
            app.refused_requests.is_due(*kind, now) && (untold.is_some() || app.metrics.refused.may_look())
        });
        if untold.is_none() && kind.is_none() {
            return;
        }
        let found = match id {
            Some(id) => {
                let at = (self.issuer.tenant_id(), self.proof.is_some());
                app.provider(&app.store).registered(id, at, now).await
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
                issuer = shown(&self.issuer.url),
                app = shown(self.client.as_deref().unwrap_or_default()),
                app_name = name.as_deref().map(shown),
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
        let told = self.parameters.iter().filter_map(|(name, value)| match name.as_str() {
            name if TOLD.contains(&name) => Some((name, value.as_str())),
            name if NAMED.contains(&name) => Some((name, "..")),
            _ => None,
        });
        listed(proof.into_iter().chain(told).take(MOST_PARAMETERS))
    }
}

fn listed<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let all: Vec<String> = pairs.map(|(name, value)| format!("{name}=\"{}\"", shown(value))).collect();
    all.join(" ")
}

/// A value as the log may hold it: without queries, fragments and what is before a host, escaped, and cut.
fn shown(value: &str) -> String {
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

/// A word, if it is an address without its query, its fragment and what is before its host, also one that was encoded twice.
fn without_query(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    let end = first(&lower, &["?", "#", "%3f", "%23"]).map_or(word.len(), |(at, _)| at);
    let (kept, lower) = (word.get(..end).unwrap_or(word), lower.get(..end).unwrap_or(&lower));
    let mut shown = kept.to_owned();
    if let Some((at, mark)) = first(lower, &["://", "%3a%2f%2f"]) {
        let host = at + mark;
        let rest = lower.get(host..).unwrap_or_default();
        let authority = first(rest, &["/", "%2f"]).and_then(|(at, _)| rest.get(..at)).unwrap_or(rest);
        if let Some(at) = ["@", "%40"].iter().filter_map(|mark| authority.rfind(mark)).max() {
            shown.replace_range(host..host + at, "..");
        }
    }
    if end < word.len() { format!("{shown}?..") } else { shown }
}

/// Where the first of these marks is, and how long it is.
fn first(text: &str, marks: &[&str]) -> Option<(usize, usize)> {
    marks.iter().filter_map(|mark| Some((text.find(mark)?, mark.len()))).min()
}

/// The labels of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Labels {
    endpoint: &'static str,
    error: &'static str,
}

/// Requests that were refused, and how many of them the log told of within this second.
#[derive(Default)]
pub struct RefusedCounter {
    /// All of them.
    pub count: Family<Labels, Counter>,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    since: Option<Instant>,
    told: u64,
    untold: u64,
    looks: u64,
}

impl RefusedCounter {
    /// Counts one. Where the log may tell of it: how many others before it did not tell of.
    fn note(&self, labels: Labels, now: Instant) -> Option<u64> {
        self.count.get_or_create(&labels).inc();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            (lines.since, lines.told, lines.looks) = (Some(now), 0, 0);
        }
        if lines.told >= MOST_LINES {
            lines.untold += 1;
            return None;
        }
        lines.told += 1;
        Some(std::mem::take(&mut lines.untold))
    }

    /// Whether a client app may still be looked up within this second for a request of which the log does not tell.
    fn may_look(&self) -> bool {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.looks += 1;
        lines.looks <= MOST_LOOKS
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use chancery_auth::Issuer;
    use chancery_resource::ROOT;

    use super::{LONGEST, Labels, Refused, RefusedCounter, shown};

    #[test]
    fn what_is_shown_of_a_value_has_no_query_and_no_line() {
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
            assert_eq!(shown(value), expected);
        }
        let long = shown(&"ä".repeat(100_000));
        assert!(long.chars().count() == LONGEST && long.ends_with('…'), "{long}");
        assert_eq!(shown(&"ä".repeat(LONGEST)), "ä".repeat(LONGEST));
    }

    #[test]
    fn beside_a_secret_an_id_alone_is_shown() {
        let issuer = Issuer { url: "https://id.example".to_owned(), tenant: None };
        for (id, expected) in [
            ("01997c1e-4d5f-7aa0-8b1e-6f2f0a0c5d11", "01997c1e-4d5f-7aa0-8b1e-6f2f0a0c5d11"),
            (ROOT, ROOT),
            ("hush", "no id, 4 characters"),
        ] {
            let sent = [("client_id".to_owned(), id.to_owned())];
            let refused = Refused::of_browser(("/connect/token", &issuer), &sent, ("not_found", ""));
            assert_eq!(refused.client.as_deref(), Some(id));
            assert_eq!(refused.beside_a_secret().client.as_deref(), Some(expected));
        }
    }

    #[test]
    fn ten_lines_are_told_in_a_second_and_the_rest_is_counted() {
        let (counter, start) = (RefusedCounter::default(), Instant::now());
        let labels = Labels { endpoint: "/connect/token", error: "invalid_client" };
        let at = |ms| counter.note(labels, start + Duration::from_millis(ms));
        let told: Vec<_> = (0..25).map(|number| at(number * 10)).collect();
        assert!(told[..10].iter().all(|one| *one == Some(0)) && told[10..].iter().all(Option::is_none));
        assert_eq!((at(1_000), at(1_001)), (Some(15), Some(0)));
        assert_eq!(counter.count.get_or_create(&labels).get(), 27);
    }
}
