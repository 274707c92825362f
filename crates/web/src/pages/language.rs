//! The language of a page: the browser's preference, the choice of the person, and links to the same page in other languages.

use chancery_presentation::language::Language;
use http::{header, request::Parts};
use serde_json::{Value, json};

use super::{Browser, redirect::encoded_query};
use crate::message::request::{text, weight};

/// The most language tags of a browser that are considered.
const MAX_LANGUAGES: usize = 20;

/// The language tags that the browser prefers, by their weights (RFC 9110, section 12.5.4).
pub fn languages(parts: &Parts) -> Vec<String> {
    let listed = text(&parts.headers, header::ACCEPT_LANGUAGE).unwrap_or_default();
    let weighed = listed.split(',').take(MAX_LANGUAGES).filter_map(|range| {
        let mut parts = range.split(';');
        let tag = parts.next().unwrap_or_default().trim().to_owned();
        Some((tag, weight(parts))).filter(|(_, weight)| *weight > 0)
    });
    let mut weighed: Vec<(String, u32)> = weighed.collect();
    // tags of equal weight retain their order
    weighed.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    weighed.into_iter().map(|(tag, _)| tag).collect()
}

/// The language: chosen on a page, else requested by the client app, else the person's own, else preferred by the browser.
pub fn language(browser: &Browser<'_>, locale: Option<&str>) -> Language {
    let requested =
        browser.flow.as_ref().and_then(|flow| flow.parameters.iter().find(|(name, _)| name == "ui_locales"));
    let chosen = browser.parameter("ui_locales").into_iter().chain(requested.map(|(_, tags)| tags.as_str()));
    let preferred = browser.languages.iter().map(String::as_str);
    Language::of(chosen.flat_map(|tags| tags.split(' ')).chain(locale).chain(preferred))
}

/// The same page in each language.
pub fn choices(browser: &Browser<'_>) -> Value {
    let others = browser.query.iter().filter(|(name, _)| name != "ui_locales");
    let query = encoded_query(others);
    let path = browser.parts.uri.path();
    let named = [("English", "en"), ("Deutsch", "de")];
    let listed = named.map(|(name, tag)| {
        let joint = if query.is_empty() { "" } else { "&" };
        json!({ "name": name, "tag": tag, "url": format!("{path}?{query}{joint}ui_locales={tag}") })
    });
    json!(listed)
}

impl Browser<'_> {
    /// The address of a page with the language that was chosen on the page before. The language that a client app requests is in
    /// the flow.
    pub(super) fn in_language(&self, address: String) -> String {
        match self.parameter("ui_locales").filter(|_| self.parameter("client_id").is_none()) {
            Some(tag) if tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') => {
                format!("{address}&ui_locales={tag}")
            }
            _ => address,
        }
    }
}
