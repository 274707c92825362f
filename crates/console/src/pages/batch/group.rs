//! Which group rows are added to, or taken out of: asked before anything is judged.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use super::{Act, back};
use crate::{
    pages::relate::found_field,
    shell::{directory::Resource, parts::FormPage, visit::Visit},
};

/// Asks for the group.
///
/// # Errors
/// The page cannot be made.
pub fn ask(visit: &Visit<'_>, resource: &Resource, act: Act) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let heading = act.label(words, resource);
    let back = back(visit, resource);
    let field = found_field(visit, "group", super::groups());
    let section = json!({ "title": "", "about": "", "fields": [field], "is_readonly": false });
    let sent = visit.form.iter().filter(|(name, _)| name != "csrf" && name != "group");
    let hidden: Vec<Value> = sent.map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let page = FormPage {
        back: json!({ "href": back, "label": words.resources(resource.name) }),
        heading: heading.into(),
        icon: Some("users-round"),
        sections: vec![section],
        hidden,
        bar: Some(
            json!({ "save": words.page("go_on"), "cancel": { "href": back, "label": words.page("cancel") }, "review": false }),
        ),
        is_new: true,
        ..FormPage::default()
    };
    page.show(visit, 200)
}
