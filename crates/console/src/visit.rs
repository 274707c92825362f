//! A request for a page: who asks, for what, and what every page is made of.

use chancery_record::Timestamp;
use chancery_resource::{Op, Problem, ProblemKind};
use chancery_signin::{CONSOLE_USE_MS, ConsolePreference};
use chancery_web::{
    AnswerBody, App, AskedStore, Cookies, Input, Output, RequestBody, Visitor, are_served, compress,
    languages, read_post,
};
use http::{HeaderName, HeaderValue, Method, Response, request::Parts};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::{
    assets,
    directory::{Resource, encoded},
    dispatch::dispatch,
    failure::{Failure, seconds_to_wait},
    forgery, pages, proof,
    render::{page, see_other},
    session::{self, Entered},
    setup,
    words::Words,
};

/// The cookie of the user store that was looked at last.
const STORE: &str = "console-store";
/// The store that is looked at first.
const FIRST_STORE: &str = "default";

/// The most bytes of a form of who is not signed in.
const SMALL: usize = 64 << 10;
/// The most bytes of a form.
const LARGEST: usize = 4 << 20;

/// Parameters of a query or a form.
pub type Parameters = Vec<(String, String)>;

/// The first parameter of a name.
pub fn one<'a>(parameters: &'a [(String, String)], name: &str) -> Option<&'a str> {
    parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// A request for a page, by a person who is signed in.
pub struct Visit<'a> {
    pub app: &'a App,
    pub parts: &'a Parts,
    pub visitor: Visitor,
    pub words: &'static Words,
    pub query: Parameters,
    pub form: Parameters,
    pub now: Timestamp,
    /// The name of the user store whose people are shown.
    pub store: Option<String>,
}

/// Answers a request below `/console`. What fails is a page, too.
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
            let told = Failure::of(parts, words, &problem);
            told.answered(&problem, &plain(parts, words, None, told.heading, &told.content))?
        }
    };
    compress(app, &parts.headers, response).await
}

/// The decoded segments of a path, without the first.
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
    if let Some(response) = before_sign_in(app, (parts, body, segments), (words, &query), now).await? {
        return Ok(response);
    }
    let named = if let ["store", name, ..] = segments { Some((*name).to_owned()) } else { None };
    let kept = cookies.find(STORE).map(|kept| percent_decode_str(&kept).decode_utf8_lossy().into_owned());
    let store = match (&named, &kept) {
        (Some(name), _) => AskedStore::Named(name),
        (None, kept) => AskedStore::Kept(kept.as_deref().unwrap_or(FIRST_STORE)),
    };
    let is_prefetch = parts.headers.contains_key("sec-purpose");
    let is_ours = forgery::is_same_origin(&parts.headers, &app.token_service.public_url);
    let visitor = match cookies.find(session::SESSION) {
        Some(cookie) => app.visitor(&cookie, (store, !is_prefetch), now).await,
        None => Ok(None),
    };
    let visitor = match visitor {
        Err(problem) if is_post && is_ours && seconds_to_wait(&problem).is_some() => {
            let form = read_post(app, parts, body, SMALL).await?;
            if !proof::is_own(app, &cookies, &form) {
                return Err(problem);
            }
            let told = Failure::of(parts, words, &problem);
            return proof::keep(app, parts, cookies, (words, None, &form), told.of_form(words));
        }
        visitor => visitor?,
    };
    let Some(visitor) = visitor else {
        return of_stranger(app, (parts, body, segments), (cookies, words), (is_ours, now)).await;
    };
    let form = if is_post { read_post(app, parts, body, LARGEST).await? } else { Vec::new() };
    if is_post {
        if !is_ours || !proof::is_own(app, &cookies, &form) {
            let detail = "The form is of another page than this server's, or of a session that has ended.";
            return Err(Problem::new(ProblemKind::Forbidden, detail));
        }
        if segments == ["signout"] {
            return session::leave(app, parts, cookies, (visitor.digest, now)).await;
        }
    }
    let preferred = Some(visitor.preference.language.clone()).filter(|language| !language.is_empty());
    let words = preferred.map_or(words, |language| Words::of([language.as_str()]));
    let store = visitor.store.as_ref().map(|store| store.scope.name.clone());
    let visit = Visit { app, parts, visitor, words, query, form, now, store };
    let answered = match segments {
        // who may administer nothing has an account all the same
        ["me", ..] => dispatch(&visit, segments).await,
        _ if visit.visitor.has_no_role() => visit.without_role(),
        _ => dispatch(&visit, segments).await,
    };
    let is_unproven = answered.as_ref().is_err_and(|problem| problem.kind == ProblemKind::Unauthorized);
    if is_unproven && is_post {
        let kept = (words, Some(&visit.visitor.preference), &visit.form);
        return proof::keep(app, parts, cookies, kept, proof::asked(words));
    }
    if is_unproven && !is_prefetch {
        let back = parts.uri.path_and_query().map_or("/console", http::uri::PathAndQuery::as_str);
        return Ok(session::begin(app, cookies, (back, true), now));
    }
    let mut response = match answered {
        Err(problem) if !is_unproven => {
            let told = Failure::of(parts, words, &problem);
            let size: usize = visit.form.iter().map(|(name, value)| name.len() + value.len()).sum();
            if is_post && seconds_to_wait(&problem).is_some() && size <= SMALL {
                let kept = (words, Some(&visit.visitor.preference), &visit.form);
                return proof::keep(app, parts, cookies, kept, told.of_form(words));
            }
            told.answered(&problem, &visit.plain(told.heading, &told.content))?
        }
        answered => answered?,
    };
    if let Some(name) = named.filter(|name| visit.store.is_some() && kept.as_ref() != Some(name)) {
        let mut cookies = cookies;
        cookies.set(STORE, &encoded(&name), None);
        cookies.write(&mut response);
    }
    Ok(response)
}

/// What is asked for: the request, its body, and the segments of its path.
type Asked<'a> = (&'a Parts, &'a mut RequestBody, &'a [&'a str]);

/// Answers what needs no session: the first administrator's page, and the ways through the sign-in.
async fn before_sign_in(
    app: &App,
    (parts, body, segments): Asked<'_>,
    (words, query): (&'static Words, &Parameters),
    now: Timestamp,
) -> Result<Option<Response<AnswerBody>>, Problem> {
    let is_post = parts.method == Method::POST;
    let cookies = || Cookies::read(&parts.headers, &app.token_service.public_url);
    let response = match segments {
        ["setup", code] => {
            let form = if is_post { read_post(app, parts, body, SMALL).await? } else { Vec::new() };
            setup::answer(app, parts, (code, &form), words, now).await?
        }
        ["signin"] => match session::come_back(app, cookies(), query, now).await? {
            Entered::In(response) => response,
            Entered::Refused(error) => return Err(refused(&error)),
            Entered::Unknown => {
                let detail = "This sign-in is not known here any more. Sign in again.";
                return Err(Problem::new(ProblemKind::Unauthorized, detail));
            }
        },
        ["proof"] if !is_post => session::begin(app, cookies(), ("/console/proven", true), now),
        ["proven"] if !is_post => proof::proven(parts, words)?,
        _ => return Ok(None),
    };
    Ok(Some(response))
}

/// Answers who is not signed in: a form of the session that has ended is kept, and a page leads to the sign-in.
async fn of_stranger(
    app: &App,
    (parts, body, segments): Asked<'_>,
    (cookies, words): (Cookies, &'static Words),
    (is_ours, now): (bool, Timestamp),
) -> Result<Response<AnswerBody>, Problem> {
    let is_post = parts.method == Method::POST;
    // what a page fetches beside itself begins no sign-in: it would take the place of one that is under way
    let asks = parts.headers.get("sec-fetch-dest");
    if is_post && is_ours && segments != ["signout"] {
        let form = read_post(app, parts, body, SMALL).await?;
        if proof::is_own(app, &cookies, &form) {
            return proof::keep(app, parts, cookies, (words, None, &form), proof::asked(words));
        }
    }
    if is_post || parts.headers.contains_key("sec-purpose") || asks.is_some_and(|asks| asks != "document") {
        let detail = "The session has ended. Sign in again: nothing was changed.";
        return Err(Problem::new(ProblemKind::Unauthorized, detail));
    }
    let is_over = cookies.find(session::SESSION).is_some();
    let back = parts.uri.path_and_query().map_or("/console", http::uri::PathAndQuery::as_str);
    Ok(session::begin(app, cookies, (back, is_over), now))
}

/// What the provider says where a sign-in to the console comes to nothing.
fn refused(error: &str) -> Problem {
    let detail = match error {
        "access_denied" => "The sign-in was given up, or nobody of this account may administer here.",
        _ => "The sign-in came to nothing. Try again.",
    };
    Problem::new(ProblemKind::Forbidden, detail)
}

/// The problem of an address that leads nowhere.
pub fn nothing_here() -> Problem {
    Problem::new(ProblemKind::NoSuchRoute, "There is no such page in the console.")
}

/// The context of a page without a way to other pages, as the person wants it to look, where that is known.
pub fn plain(
    parts: &Parts,
    words: &'static Words,
    preference: Option<&ConsolePreference>,
    title: &str,
    page: &Value,
) -> Value {
    let of = |told: fn(&ConsolePreference) -> &String| preference.map_or("", |preference| told(preference));
    json!({
        "lang": words.tag, "theme": of(|kept| &kept.theme), "density": of(|kept| &kept.density),
        "zone": of(|kept| &kept.zone), "single_keys": of(|kept| &kept.single_keys),
        "t": words.page, "assets": *assets::ADDRESSES,
        "title": title, "path": parts.uri.path(), "csrf": "", "note": null, "page": page,
    })
}

impl Visit<'_> {
    /// Runs an operation with the person's rights.
    ///
    /// # Errors
    /// The operation's own.
    pub async fn perform(&self, input: Input) -> Result<Output, Problem> {
        if self.lacks_role(input.op.permit) {
            return Err(self.missing_role(input.op.permit));
        }
        if !input.dry_run {
            self.prove(std::slice::from_ref(&input)).await?;
        }
        let done = self.app.perform(self.parts, &self.visitor, input, self.now).await;
        done.map_err(|problem| self.words.problem(problem))
    }

    /// Runs several operations with the person's rights: all, or none.
    ///
    /// # Errors
    /// The number of the first that refuses, with its problem.
    pub async fn perform_together(&self, inputs: Vec<Input>) -> Result<Vec<Output>, (usize, Problem)> {
        self.prove(&inputs).await.map_err(|problem| (0, problem))?;
        let done = self.app.perform_together(&self.visitor, inputs, self.now).await;
        done.map_err(|(number, problem)| (number, self.words.problem(problem)))
    }

    /// Whether the person may call an operation here.
    pub fn may(&self, op: Option<&'static Op>) -> Option<&'static Op> {
        op.filter(|op| self.visitor.may(op))
    }

    /// The address of a resource's list.
    pub fn address(&self, resource: &Resource) -> String {
        resource.address(self.store.as_deref())
    }

    /// This page's path.
    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// A parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        one(&self.query, name)
    }

    /// The context of a page without a way to other pages.
    pub fn plain(&self, title: &str, content: &Value) -> Value {
        plain(self.parts, self.words, Some(&self.visitor.preference), title, content)
    }

    /// Answers with a page.
    ///
    /// # Errors
    /// The template asks for what the context does not have.
    pub fn page(
        &self,
        status: u16,
        template: &str,
        title: &str,
        content: &Value,
    ) -> Result<Response<AnswerBody>, Problem> {
        let mut filled = self.plain(title, content);
        let told = json!({
            "csrf": forgery::token(&self.app.context.master, &self.visitor.digest),
            "me": self.me(), "nav": pages::navigation::of(self), "note": self.note(), "quiet": self.quiet(),
        });
        if let (Some(filled), Value::Object(told)) = (filled.as_object_mut(), told) {
            filled.extend(told);
        }
        let mut response = page(status, template, &filled)?;
        // a page is read while a pointer rests on the link to it; that is no use of the session
        let rules =
            assets::ADDRESSES.get("rules").and_then(|rules| HeaderValue::try_from(rules.to_string()).ok());
        if let Some(rules) = rules {
            response.headers_mut().insert(HeaderName::from_static("speculation-rules"), rules);
        }
        Ok(response)
    }

    /// Why outbound traffic is disabled, if it is: `copy` or `off`.
    fn quiet(&self) -> Option<&'static str> {
        let outbound = &self.app.context.outbound;
        outbound.is_off().then_some(if outbound.is_copy() { "copy" } else { "off" })
    }

    /// A page that says one thing.
    ///
    /// # Errors
    /// As [`Self::page`].
    pub fn message(&self, status: u16, heading: &str, text: &str) -> Result<Response<AnswerBody>, Problem> {
        self.page(
            status,
            "message.html",
            heading,
            &json!({
                "heading": heading, "text": text, "facts": [], "trace": "",
                "link": { "href": "/console", "label": self.words.page("to_overview") },
            }),
        )
    }

    /// Says that the person has no role here, with the ways out.
    fn without_role(&self) -> Result<Response<AnswerBody>, Problem> {
        let words = self.words;
        let heading = words.page("no_role_title");
        let content = json!({
            "heading": heading, "text": words.page("no_role_text"), "facts": [self.visitor.login], "trace": "",
            "link": { "href": "/console/me", "label": words.page("oneself") }, "leave": words.page("sign_out"),
        });
        self.page(403, "message.html", heading, &content)
    }

    /// What was refused as a whole, with the way on.
    ///
    /// # Errors
    /// As [`Self::page`].
    pub fn refused(
        &self,
        heading: &str,
        problem: &Problem,
        link: &Value,
    ) -> Result<Response<AnswerBody>, Problem> {
        let facts: Vec<&str> = problem.errors.as_slice().iter().map(|error| error.detail.as_str()).collect();
        let content =
            json!({ "heading": heading, "text": problem.detail, "facts": facts, "trace": "", "link": link });
        self.page(problem.status(), "message.html", heading, &content)
    }

    /// What the page before did.
    fn note(&self) -> Value {
        let text = self.parameter("done").and_then(|done| self.words.page.get(&format!("done_{done}")));
        text.map_or(Value::Null, |text| json!({ "text": text, "undo": self.undo() }))
    }

    fn me(&self) -> Value {
        let visitor = &self.visitor;
        let idle = self.app.console_lifetimes.idle;
        // a use within the minute after another one is not noted, so the end may come that much sooner
        let last = (visitor.session.expires_on.0 - self.now.0) / 1000;
        let ends = last.min((idle - CONSOLE_USE_MS) / 1000);
        let roles = visitor.caller.roles.iter().map(|held| self.words.choice(held.role.name()));
        json!({
            "name": visitor.name, "login": visitor.login, "initials": initials(&visitor.name),
            "hue": hue(&visitor.name), "role": roles.take(1).collect::<String>(), "ends": ends, "last": last,
        })
    }
}

/// Goes on to another page, which says what was done.
pub fn done(address: &str, note: &str) -> Response<AnswerBody> {
    see_other(&noted(address, note))
}

/// An address of the page that says what was done.
pub fn noted(address: &str, note: &str) -> String {
    let joint = if address.contains('?') { '&' } else { '?' };
    format!("{address}{joint}done={note}")
}

/// The initials of a name.
pub fn initials(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    let ends = [words.first(), words.last().filter(|_| words.len() > 1)];
    ends.into_iter().flatten().filter_map(|word| word.chars().next()).flat_map(char::to_uppercase).collect()
}

/// The colour of a name, the same each time: one of six.
pub fn hue(name: &str) -> u32 {
    name.chars().fold(7_u32, |hue, letter| hue.wrapping_mul(31).wrapping_add(u32::from(letter))) % 6
}
