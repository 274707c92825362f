//! The form for the group of a batch action, before the action is validated.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use super::{Act, list_address};
use crate::{
    pages::relate::search_field,
    shell::{components::FormPage, directory::Resource, visit::Visit},
};

/// Asks for the group.
pub fn show_form(visit: &Visit<'_>, resource: &Resource, act: Act) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let heading = act.label(words, resource);
    let back = list_address(visit, resource);
    let field = search_field(visit, "group", super::groups());
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
