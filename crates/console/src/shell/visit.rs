//! A request for a page: the user, the parameters, and the common context of all pages.

use chancery_record::Timestamp;
use chancery_resource::{Op, Problem, ProblemKind};
use chancery_signin::{CONSOLE_USE_MS, ConsolePreference};
use chancery_web::{AnswerBody, App, Input, Output, Visitor};
use http::{HeaderName, HeaderValue, Response, request::Parts};
use serde_json::{Value, json};

use super::{
    assets,
    directory::Resource,
    forgery, navigation,
    render::{page, see_other},
    words::Words,
};

/// Parameters of a query or a form.
pub type Parameters = Vec<(String, String)>;

/// The first parameter of this name.
pub fn one<'a>(parameters: &'a [(String, String)], name: &str) -> Option<&'a str> {
    parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// A request for a page by a signed-in user.
pub struct Visit<'a> {
    pub app: &'a App,
    pub parts: &'a Parts,
    pub visitor: Visitor,
    pub words: &'static Words,
    pub query: Parameters,
    pub form: Parameters,
    pub now: Timestamp,
    /// The name of the selected user store.
    pub store: Option<String>,
}

/// The problem of an unknown path.
pub fn not_found() -> Problem {
    Problem::new(ProblemKind::NoSuchRoute, "There is no such page in the console.")
}

/// The context of a page without navigation, with the user's preferences if they are known.
pub fn plain(
    parts: &Parts,
    words: &'static Words,
    preference: Option<&ConsolePreference>,
    title: &str,
    page: &Value,
) -> Value {
    let of =
        |member: fn(&ConsolePreference) -> &String| preference.map_or("", |preference| member(preference));
    json!({
        "lang": words.tag, "theme": of(|preference| &preference.theme), "density": of(|preference| &preference.density),
        "zone": of(|preference| &preference.zone), "single_keys": of(|preference| &preference.single_keys),
        "title": title, "path": parts.uri.path(), "csrf": "", "note": null, "page": page,
    })
}

impl Visit<'_> {
    /// Runs an operation with the permissions of the user.
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

    /// Runs several operations with the permissions of the user, in one transaction.
    ///
    /// # Errors
    /// The index of the first operation that failed, with its problem.
    pub async fn perform_all(&self, inputs: Vec<Input>) -> Result<Vec<Output>, (usize, Problem)> {
        self.prove(&inputs).await.map_err(|problem| (0, problem))?;
        let done = self.app.perform_all(&self.visitor, inputs, self.now).await;
        done.map_err(|(number, problem)| (number, self.words.problem(problem)))
    }

    /// The operation, if the user may call it.
    pub fn may(&self, op: Option<&'static Op>) -> Option<&'static Op> {
        op.filter(|op| self.visitor.may(op))
    }

    /// The URL of a resource's list.
    pub fn address(&self, resource: &Resource) -> String {
        resource.address(self.store.as_deref())
    }

    /// The path of this page.
    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// A query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        one(&self.query, name)
    }

    /// The context of a page without navigation.
    pub fn plain(&self, title: &str, content: &Value) -> Value {
        plain(self.parts, self.words, Some(&self.visitor.preference), title, content)
    }

    /// Answers with a page.
    ///
    /// # Errors
    /// The template uses a variable that the context lacks.
    pub fn page(
        &self,
        status: u16,
        template: &str,
        title: &str,
        content: &Value,
    ) -> Result<Response<AnswerBody>, Problem> {
        let mut filled = self.plain(title, content);
        let members = json!({
            "csrf": forgery::token(&self.app.context.master, &self.visitor.digest),
            "me": self.me(), "nav": navigation::of(self), "note": self.note(), "quiet": self.quiet(),
        });
        if let (Some(filled), Value::Object(members)) = (filled.as_object_mut(), members) {
            filled.extend(members);
        }
        let mut response = page(status, template, &filled)?;
        // prefetching a page while the pointer rests on a link is no use of the session
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

    /// A page with a single message.
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

    /// Says that the user has no role here, with links to the account and the sign-out.
    pub fn without_role(&self) -> Result<Response<AnswerBody>, Problem> {
        let words = self.words;
        let heading = words.page("no_role_title");
        let content = json!({
            "heading": heading, "text": words.page("no_role_text"), "facts": [self.visitor.login], "trace": "",
            "link": { "href": "/console/me", "label": words.page("oneself") }, "leave": words.page("sign_out"),
        });
        self.page(403, "message.html", heading, &content)
    }

    /// The page of a refused operation, with a link.
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

    /// The notification about the previous action.
    fn note(&self) -> Value {
        let text = self.parameter("done").and_then(|done| self.words.page.get(&format!("done_{done}")));
        text.map_or(Value::Null, |text| json!({ "text": text, "undo": self.undo() }))
    }

    fn me(&self) -> Value {
        let visitor = &self.visitor;
        let idle = self.app.console_lifetimes.idle;
        // a use within a minute of the previous one is not recorded, so the session may end that much sooner
        let last = (visitor.session.expires_on.0 - self.now.0) / 1000;
        let ends = last.min((idle - CONSOLE_USE_MS) / 1000);
        let roles = visitor.caller.roles.iter().map(|held| self.words.choice(held.role.name()));
        json!({
            "name": visitor.name, "login": visitor.login, "initials": initials(&visitor.name),
            "hue": hue(&visitor.name), "role": roles.take(1).collect::<String>(), "ends": ends, "last": last,
        })
    }
}

/// Redirects to another page with a notification.
pub fn redirect_with_notice(address: &str, note: &str) -> Response<AnswerBody> {
    see_other(&noted(address, note))
}

/// The URL of a page with a notification.
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

/// The colour of a name: one of six, always the same one.
pub fn hue(name: &str) -> u32 {
    name.chars().fold(7_u32, |hue, letter| hue.wrapping_mul(31).wrapping_add(u32::from(letter))) % 6
}
