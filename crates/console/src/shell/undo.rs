//! Undo: the form that reverts the last action, sealed into the URL of the page that confirms it.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_web::AnswerBody;
use http::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    render::see_other,
    visit::{Visit, noted},
};

/// Purpose of the seal.
const UNDO: &str = "console-undo";
/// How long the undo is offered, in ms.
const OFFERED_MS: i64 = 60_000;
/// Maximum size of the sealed form in the URL, in bytes. Larger ones are not offered.
const LONGEST: usize = 3_000;

/// A form that reverts an action.
#[derive(Serialize, Deserialize)]
pub struct Undo {
    action: String,
    fields: Vec<(String, String)>,
    session: Vec<u8>,
    until: i64,
}

impl Undo {
    /// A form with these fields.
    pub fn of(visit: &Visit<'_>, action: String, fields: Vec<(String, String)>) -> Self {
        Self { action, fields, session: visit.visitor.digest.clone(), until: visit.now.0 + OFFERED_MS }
    }
}

impl Visit<'_> {
    /// Redirects to another page with a notification and an undo button.
    pub fn redirect_with_undo(&self, address: &str, note: &str, undo: &Undo) -> Response<AnswerBody> {
        let text = serde_json::to_vec(undo).unwrap_or_default();
        let sealed = BASE64_URL_SAFE_NO_PAD.encode(self.app.context.master.seal(UNDO, &text));
        let undo = if sealed.len() <= LONGEST { format!("&undo={sealed}") } else { String::new() };
        see_other(&format!("{}{undo}", noted(address, note)))
    }

    /// The form of the undo, while it is offered.
    pub fn undo(&self) -> Option<Value> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(self.parameter("undo")?).ok()?;
        let undo: Undo =
            serde_json::from_slice(self.app.context.master.open(UNDO, &sealed)?.expose()).ok()?;
        let is_good = undo.until > self.now.0 && undo.session == self.visitor.digest;
        let fields = undo.fields.iter().map(|(name, value)| json!({ "name": name, "value": value }));
        let fields: Vec<Value> = fields.collect();
        is_good.then(|| json!({ "action": undo.action, "label": self.words.page("undo"), "hidden": fields }))
    }
}
