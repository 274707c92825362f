//! The second step: what the provider gave this server, each with where it is found there. It is saved as settings are, all or none.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Map, Value, json};

use super::{Connecting, has_settings, page_of, step_at};
use crate::{
    pages::{
        item::read,
        settings::{self, Kept, Setting, Wrong},
    },
    shell::{parts::FormPage, render::see_other, visit::Visit},
};

/// The settings that a provider of this kind must have.
async fn asked_for(visit: &Visit<'_>, of: &Connecting<'_>) -> Result<Vec<Setting>, Problem> {
    let mut all = settings::settings(visit, of.resource, of.key, of.row).await?;
    all.retain(|setting| of.kind.settings().any(|name| name == setting.name));
    Ok(all)
}

/// Asks for them.
///
/// # Errors
/// The operations' own.
pub async fn show(visit: &Visit<'_>, of: &Connecting<'_>) -> Result<Response<AnswerBody>, Problem> {
    let all = asked_for(visit, of).await?;
    page(visit, of, &all, Refused::Nothing)
}

/// What a page says is wrong.
#[derive(Clone, Copy)]
enum Refused<'a> {
    /// Nothing: what is missing was not asked for yet.
    Nothing,
    /// One was refused.
    One(&'a Wrong),
    /// Some are missing still.
    Missing,
}

/// Saves what was typed. With all that is needed the trial comes next.
///
/// # Errors
/// What has no place in the form.
pub async fn run(visit: &Visit<'_>, of: &Connecting<'_>) -> Result<Response<AnswerBody>, Problem> {
    let all = asked_for(visit, of).await?;
    if let Kept::Wrong(wrong) = settings::keep(visit, of.resource, of.key, &all).await? {
        return page(visit, of, &all, Refused::One(&wrong));
    }
    let row = read(visit, of.resource, of.key).await?;
    if has_settings(&row) {
        return Ok(see_other(&step_at(of.item, "trial")));
    }
    let of = Connecting { row: &row, ..*of };
    let all = asked_for(visit, &of).await?;
    if all.iter().all(|setting| setting.wrong(visit).is_empty()) {
        // what is wrong is not asked for here
        return Ok(see_other(&format!("{}/settings", of.item)));
    }
    page(visit, &of, &all, Refused::Missing)
}

fn page(
    visit: &Visit<'_>,
    of: &Connecting<'_>,
    all: &[Setting],
    refused: Refused<'_>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let wrong = if let Refused::One(wrong) = refused { Some(wrong) } else { None };
    let errors = match refused {
        Refused::Nothing => Vec::new(),
        Refused::One(wrong) => vec![wrong.told(visit)],
        Refused::Missing => missing(visit, all),
    };
    let status =
        if matches!(refused, Refused::Nothing) { 200 } else { wrong.map_or(400, |wrong| wrong.status) };
    let fields = all.iter().flat_map(|setting| {
        let mut fields = settings::told(visit, setting, wrong, true);
        if let Some(first) = fields.first_mut() {
            explain(visit, of, setting, first);
            // what was typed beside one that was refused is not stored yet, and not missing
            let is_of_stored = first.get("error") == Some(&json!(setting.wrong(visit)));
            if is_of_stored && !matches!(refused, Refused::Missing) {
                first.insert("error".to_owned(), json!(""));
            }
        }
        fields
    });
    let fields: Vec<Map<String, Value>> = fields.collect();
    let back = step_at(of.item, "address");
    let mut hidden = settings::hidden(all);
    hidden.push(json!({ "name": "step", "value": "access" }));
    let form = FormPage {
        errors,
        sections: vec![json!({ "title": "", "about": "", "fields": fields, "is_readonly": false })],
        hidden,
        bar: Some(
            json!({ "save": words.page("go_on"), "cancel": { "href": back, "label": words.page("back") }, "review": false }),
        ),
        is_new: true,
        ..page_of(visit, of, "access")
    };
    form.show(visit, status)
}

/// What is missing, with the way to each place.
fn missing(visit: &Visit<'_>, all: &[Setting]) -> Vec<Value> {
    let wrong = all.iter().filter(|setting| !setting.wrong(visit).is_empty());
    wrong
        .map(|setting| {
            let text = format!("{}: {}", visit.words.option(&setting.name), setting.wrong(visit));
            json!({ "text": text, "href": format!("#f-{}", setting.name) })
        })
        .collect()
}

/// Says where it is found at the provider, and of a secret whether there is one.
fn explain(visit: &Visit<'_>, of: &Connecting<'_>, setting: &Setting, field: &mut Map<String, Value>) {
    let key = format!("find_{}_{}", of.kind.name, setting.name);
    let is_secret = field.get("control") == Some(&json!("secret"));
    // a secret that is stored stays where its field is left empty
    let set = visit.words.page("secret_is_set");
    let is_set = is_secret && field.get("hint") == Some(&json!(set));
    let hint = format!("{} {}", visit.words.page(&key), if is_set { set } else { "" });
    field.extend([
        ("hint".to_owned(), json!(hint.trim_end())),
        // a certificate may stand for the secret
        ("required".to_owned(), json!(!is_set && !setting.wrong(visit).is_empty())),
        ("is_wide".to_owned(), json!(true)),
    ]);
}
