//! Answers a request below `/console`: authentication, session, and the response when something fails.

use chancery_record::Timestamp;
use chancery_resource::{Problem, ProblemKind};
use chancery_web::{
    AnswerBody, App, Cookies, RequestBody, RequestedStore, are_served, compress, languages, read_form_body,
};
use http::{Method, Response, request::Parts};
use percent_encoding::percent_decode_str;

use crate::{
    dispatch::dispatch,
    pages::setup,
    shell::{
        assets,
        directory::encoded,
        failure::{Failure, retry_after_seconds},
        forgery,
        reauthentication::{self, HeldForm},
        session::{self, SignInResult},
        visit::{Parameters, Visit, plain},
        words::Words,
    },
};

/// The cookie with the user store that was viewed last.
const STORE: &str = "console-store";
/// The user store that is shown at first.
const FIRST_STORE: &str = "default";

/// Maximum size of a form of a client without a session, in bytes.
const SMALL: usize = 64 << 10;
/// Maximum size of a form, in bytes.
const LARGEST: usize = 4 << 20;

/// Answers a request below `/console`. An error is rendered as a page, too.
pub async fn answer(
    app: &App,
    parts: &Parts,
    body: &mut RequestBody,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let segments = segments(parts.uri.path());
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    if let ["asset", file] = segments.as_slice() {
        return assets::answer(file, parts);
    }
    let tags = languages(parts);
    let words = Words::of(tags.iter().map(String::as_str));
    let answered = if are_served(app) {
        route(app, parts, body, &segments, now).await
    } else {
        let detail = "Pages need https. Set the public URL to an https address, behind a proxy that ends TLS or with \
            CHANCERY_TLS_CERTIFICATE and CHANCERY_TLS_KEY.";
        Err(Problem::new(ProblemKind::Unavailable, detail))
    };
    let response = match answered {
        Ok(response) => response,
        Err(problem) => {
            let failure = Failure::of(parts, words, &problem);
            failure.response(&problem, &plain(parts, words, None, failure.heading, &failure.content))?
        }
    };
    compress(app, &parts.headers, response).await
}

/// The decoded segments of a path, without the first one.
fn segments(path: &str) -> Vec<String> {
    let rest = path.trim_start_matches('/').split('/').skip(1).filter(|segment| !segment.is_empty());
    rest.map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned()).collect()
}

async fn route(
    app: &App,
    parts: &Parts,
    body: &mut RequestBody,
    segments: &[&str],
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let query: Parameters =
        form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let cookies = Cookies::read(&parts.headers, &app.token_service.public_url);
    let tags = languages(parts);
    let words = Words::of(tags.iter().map(String::as_str));
    let is_post = parts.method == Method::POST;
    let request = PageRequest { parts, body, segments };
    if let Some(response) = before_sign_in(app, request, words, &query, now).await? {
        return Ok(response);
    }
    let named = if let ["store", name, ..] = segments { Some((*name).to_owned()) } else { None };
    let stored =
        cookies.find(STORE).map(|stored| percent_decode_str(&stored).decode_utf8_lossy().into_owned());
    let store = match (&named, &stored) {
        (Some(name), _) => RequestedStore::Named(name),
        (None, stored) => RequestedStore::LastViewed(stored.as_deref().unwrap_or(FIRST_STORE)),
    };
    let is_prefetch = parts.headers.contains_key("sec-purpose");
    let is_ours = forgery::is_same_origin(&parts.headers, &app.token_service.public_url);
    let visitor = match cookies.find(session::SESSION) {
        Some(cookie) => app.visitor(&cookie, store, !is_prefetch, now).await,
        None => Ok(None),
    };
    let visitor = match visitor {
        Err(problem) if is_post && is_ours && retry_after_seconds(&problem).is_some() => {
            let form = read_form_body(app, parts, body, SMALL).await?;
            if !reauthentication::is_own(app, &cookies, &form) {
                return Err(problem);
            }
            let failure = Failure::of(parts, words, &problem);
            let held = HeldForm { words, preference: None, form: &form };
            return reauthentication::hold_form(app, parts, cookies, &held, failure.for_held_form(words));
        }
        visitor => visitor?,
    };
    let Some(visitor) = visitor else {
        let request = PageRequest { parts, body, segments };
        return unauthenticated(app, request, cookies, words, is_ours, now).await;
    };
    let form = if is_post { read_form_body(app, parts, body, LARGEST).await? } else { Vec::new() };
    if is_post {
        if !is_ours || !reauthentication::is_own(app, &cookies, &form) {
            let detail = "The form is of another page than this server's, or of a session that has ended.";
            return Err(Problem::new(ProblemKind::Forbidden, detail));
        }
        if segments == ["signout"] {
            return session::end(app, parts, cookies, visitor.digest, now).await;
        }
    }
    let preferred = Some(visitor.preference.language.clone()).filter(|language| !language.is_empty());
    let words = preferred.map_or(words, |language| Words::of([language.as_str()]));
    let store = visitor.store.as_ref().map(|store| store.scope.name.clone());
    let visit = Visit { app, parts, visitor, words, query, form, now, store };
    let answered = match segments {
        // a user without any role may still manage the own account
        ["me", ..] => dispatch(&visit, segments).await,
        _ if visit.visitor.has_no_role() => visit.without_role(),
        _ => dispatch(&visit, segments).await,
    };
    let is_unproven = answered.as_ref().is_err_and(|problem| problem.kind == ProblemKind::Unauthorized);
    if is_unproven && is_post {
        let held = HeldForm { words, preference: Some(&visit.visitor.preference), form: &visit.form };
        return reauthentication::hold_form(app, parts, cookies, &held, reauthentication::prompt(words));
    }
    if is_unproven && !is_prefetch {
        let back = parts.uri.path_and_query().map_or("/console", http::uri::PathAndQuery::as_str);
        return Ok(session::authorize(app, cookies, back, true, now));
    }
    let mut response = match answered {
        Err(problem) if !is_unproven => {
            let failure = Failure::of(parts, words, &problem);
            let size: usize = visit.form.iter().map(|(name, value)| name.len() + value.len()).sum();
            if is_post && retry_after_seconds(&problem).is_some() && size <= SMALL {
                let held = HeldForm { words, preference: Some(&visit.visitor.preference), form: &visit.form };
                return reauthentication::hold_form(app, parts, cookies, &held, failure.for_held_form(words));
            }
            failure.response(&problem, &visit.plain(failure.heading, &failure.content))?
        }
        answered => answered?,
    };
    if let Some(name) = named.filter(|name| visit.store.is_some() && stored.as_ref() != Some(name)) {
        let mut cookies = cookies;
        cookies.set(STORE, &encoded(&name), None);
        cookies.write(&mut response);
    }
    Ok(response)
}

/// A request without a session.
struct PageRequest<'a> {
    parts: &'a Parts,
    body: &'a mut RequestBody,
    /// The decoded segments of the path.
    segments: &'a [&'a str],
}

/// Answers requests that need no session: the page of the first administrator, and the redirects of the sign-in.
async fn before_sign_in(
    app: &App,
    request: PageRequest<'_>,
    words: &'static Words,
    query: &Parameters,
    now: Timestamp,
) -> Result<Option<Response<AnswerBody>>, Problem> {
    let PageRequest { parts, body, segments } = request;
    let is_post = parts.method == Method::POST;
    let cookies = || Cookies::read(&parts.headers, &app.token_service.public_url);
    let response = match segments {
        ["setup", code] => {
            let form = if is_post { read_form_body(app, parts, body, SMALL).await? } else { Vec::new() };
            setup::answer(app, parts, code, &form, words, now).await?
        }
        ["signin"] => match session::callback(app, cookies(), query, now).await? {
            SignInResult::SignedIn(response) => response,
            SignInResult::Refused(error) => return Err(refused(&error)),
            SignInResult::Unknown => {
                let detail = "This sign-in is not known here any more. Sign in again.";
                return Err(Problem::new(ProblemKind::Unauthorized, detail));
            }
        },
        ["proof"] if !is_post => session::authorize(app, cookies(), "/console/proven", true, now),
        ["proven"] if !is_post => reauthentication::proven(parts, words)?,
        _ => return Ok(None),
    };
    Ok(Some(response))
}

/// Answers a client without a session: a form of an ended session is held in a page, other pages redirect to the sign-in.
async fn unauthenticated(
    app: &App,
    request: PageRequest<'_>,
    cookies: Cookies,
    words: &'static Words,
    is_ours: bool,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let PageRequest { parts, body, segments } = request;
    let is_post = parts.method == Method::POST;
    // subresources start no sign-in: it would replace one that is in progress
    let asks = parts.headers.get("sec-fetch-dest");
    if is_post && is_ours && segments != ["signout"] {
        let form = read_form_body(app, parts, body, SMALL).await?;
        if reauthentication::is_own(app, &cookies, &form) {
            let held = HeldForm { words, preference: None, form: &form };
            return reauthentication::hold_form(app, parts, cookies, &held, reauthentication::prompt(words));
        }
    }
    if is_post || parts.headers.contains_key("sec-purpose") || asks.is_some_and(|asks| asks != "document") {
        let detail = "The session has ended. Sign in again: nothing was changed.";
        return Err(Problem::new(ProblemKind::Unauthorized, detail));
    }
    let is_over = cookies.find(session::SESSION).is_some();
    let back = parts.uri.path_and_query().map_or("/console", http::uri::PathAndQuery::as_str);
    Ok(session::authorize(app, cookies, back, is_over, now))
}

/// The problem for an error response of the provider in a sign-in to the console.
fn refused(error: &str) -> Problem {
    let detail = match error {
        "access_denied" => "The sign-in was given up, or nobody of this account may administer here.",
        _ => "The sign-in came to nothing. Try again.",
    };
    Problem::new(ProblemKind::Forbidden, detail)
}
