//! What pages are made of, as templates take it: lines and cards, and the page of a form.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde::Serialize;
use serde_json::Value;

use super::visit::Visit;

/// A line of a card.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Line {
    /// Its icon, where its tone is none.
    pub icon: Option<&'static str>,
    /// `good`, `warn`, `bad`, `off`, or nothing.
    pub tone: &'static str,
    /// What it says.
    pub text: String,
    /// What it says in small.
    pub sub: String,
    /// Where it leads.
    pub href: Option<String>,
    /// The form of its button: `action`, `label` and `fields`.
    pub act: Option<Value>,
    /// Its moment, by RFC 3339.
    pub iso: String,
    /// Until when it is so, by RFC 3339.
    pub until: String,
}

/// A card beside a form, or on the first page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Card {
    /// Its title.
    pub title: String,
    /// How its lines are shown: `lines`, `checks`, `timeline`, `facts` or `meter`.
    pub kind: &'static str,
    /// As that of a line.
    pub tone: &'static str,
    /// What it is about.
    pub about: String,
    /// How many there are, as it is told.
    pub count: Option<String>,
    /// Its lines.
    pub lines: Vec<Line>,
    /// Where there is more: `href` and `label`.
    pub more: Option<Value>,
    /// The address of what comes after the page.
    pub later: Option<String>,
}

/// A page with a form, or with what nobody can change (`item.html`).
#[derive(Default, Serialize)]
pub struct FormPage {
    /// Where it came from: `href` and `label`.
    pub back: Value,
    /// Its heading, and its title.
    pub heading: String,
    /// What stands below the heading.
    pub sub: String,
    /// Its icon, where it has no picture.
    pub icon: Option<&'static str>,
    /// A picture of initials.
    pub avatar: Value,
    /// The state in a word.
    pub badge: Value,
    /// What can be done besides.
    pub acts: Vec<Value>,
    /// What is wrong with what was typed.
    pub errors: Vec<Value>,
    /// The fields, in sections.
    pub sections: Vec<Value>,
    /// The fields that are not seen.
    pub hidden: Vec<Value>,
    /// The cards beside the form.
    pub aside: Vec<Card>,
    /// The cards that come after the form where there is no place beside it.
    pub after: Vec<Card>,
    /// The cards above the form, or in its place.
    pub middle: Vec<Card>,
    /// The buttons; none where nothing can be changed.
    pub bar: Option<Value>,
    /// Why nothing can be changed.
    pub read_only_note: String,
    /// Whether something is made by it.
    pub is_new: bool,
    /// The same as a call of the interface, where there is one.
    pub api_call: String,
}

impl FormPage {
    /// Answers with the page.
    ///
    /// # Errors
    /// As [`Visit::page`].
    pub fn show(&self, visit: &Visit<'_>, status: u16) -> Result<Response<AnswerBody>, Problem> {
        visit.page(status, "item.html", &self.heading, &serde_json::json!(self))
    }
}
