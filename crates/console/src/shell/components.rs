//! Components of pages, in the form that templates expect: lines, cards, and the form page.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde::Serialize;
use serde_json::Value;

use super::visit::Visit;

/// A line of a card.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Line {
    /// Its icon, if it has no tone.
    pub icon: Option<&'static str>,
    /// `good`, `warn`, `bad`, `off`, or empty.
    pub tone: &'static str,
    /// Its text.
    pub text: String,
    /// Its secondary text.
    pub sub: String,
    /// Link target.
    pub href: Option<String>,
    /// The form of its button: `action`, `label` and `fields`.
    pub act: Option<Value>,
    /// Its timestamp, in RFC 3339 format.
    pub iso: String,
    /// The end of the described state, in RFC 3339 format.
    pub until: String,
}

/// A card in the sidebar or on the overview.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Card {
    /// Its title.
    pub title: String,
    /// Layout of its lines: `lines`, `checks`, `timeline`, `facts` or `meter`.
    pub kind: &'static str,
    /// As the tone of a line.
    pub tone: &'static str,
    /// Its description.
    pub about: String,
    /// The number of items, as text.
    pub count: Option<String>,
    /// Its lines.
    pub lines: Vec<Line>,
    /// Link to the full list: `href` and `label`.
    pub more: Option<Value>,
    /// URL of content that is loaded after the page.
    pub later: Option<String>,
}

/// A page with a form, or a read-only page (`item.html`).
#[derive(Default, Serialize)]
pub struct FormPage {
    /// Link to the previous page: `href` and `label`.
    pub back: Value,
    /// Its heading and title.
    pub heading: String,
    /// Text below the heading.
    pub sub: String,
    /// Its icon, if it has no picture.
    pub icon: Option<&'static str>,
    /// The picture with initials.
    pub avatar: Value,
    /// The state as a badge.
    pub badge: Value,
    /// Further actions.
    pub acts: Vec<Value>,
    /// Validation errors.
    pub errors: Vec<Value>,
    /// The fields, in sections.
    pub sections: Vec<Value>,
    /// Hidden fields.
    pub hidden: Vec<Value>,
    /// Cards in the sidebar.
    pub sidebar: Vec<Card>,
    /// Cards that follow the form if there is no room for a sidebar.
    pub after: Vec<Card>,
    /// Cards above the form, or instead of it.
    pub middle: Vec<Card>,
    /// The buttons; `None` on a read-only page.
    pub bar: Option<Value>,
    /// Why the page is read-only.
    pub read_only_note: String,
    /// Whether the form creates something.
    pub is_new: bool,
    /// The equivalent API call, if there is one.
    pub api_call: String,
}

impl FormPage {
    /// Answers with the page.
    pub fn show(&self, visit: &Visit<'_>, status: u16) -> Result<Response<AnswerBody>, Problem> {
        visit.page(status, "item.html", &self.heading, &serde_json::json!(self))
    }
}
