//! Overview of settings: user stores, other identity providers, second factors and tenants, each with a link to its
//! settings.

use chancery_management::option::OPTION;
use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use super::{choices::rows, settings};
use crate::shell::{
    components::{Card, FormPage, Line},
    directory::{self, Resource, encoded},
    settings_access::store_settings,
    visit::{Visit, not_found},
};

/// Path of this page.
pub const PATH: &str = "/console/settings";

/// Shows the page.
///
/// # Errors
/// The user may not see settings.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let options = directory::of_shape(&OPTION).ok_or_else(not_found)?;
    visit.require(options.list)?;
    let words = visit.words;
    let mut middle: Vec<Card> = of_store(visit).into_iter().collect();
    for owner in settings::owners() {
        middle.extend(of_owner(visit, owner).await?);
    }
    let all = Line {
        icon: Some(options.presentation.icon),
        text: words.page("settings_all").into(),
        href: Some(visit.address(options)),
        ..Line::default()
    };
    middle.push(Card {
        title: words.resources(options.name),
        kind: "lines",
        about: words.page("settings_all_about").into(),
        lines: vec![all],
        ..Card::default()
    });
    let page = FormPage {
        back: json!({ "href": "/console", "label": words.page("overview") }),
        heading: words.page("settings").into(),
        sub: words.page("settings_of_whom").into(),
        icon: Some(options.presentation.icon),
        middle,
        ..FormPage::default()
    };
    page.show(visit, 200)
}

/// The settings of the selected user store.
fn of_store(visit: &Visit<'_>) -> Option<Card> {
    let line = Line {
        icon: Some("users-round"),
        text: visit.store.clone()?,
        href: Some(store_settings(visit)?),
        ..Line::default()
    };
    let title = visit.words.page("user_store").into();
    Some(Card { title, kind: "lines", lines: vec![line], ..Card::default() })
}

/// The settings of some rows of a resource, with a link to the others.
async fn of_owner(visit: &Visit<'_>, owner: &'static Resource) -> Result<Option<Card>, Problem> {
    if !settings::are_offered(visit, owner) {
        return Ok(None);
    }
    let address = visit.address(owner);
    let line = |(id, title): (String, String)| Line {
        icon: Some(owner.presentation.icon),
        text: title,
        href: Some(format!("{address}/{}/settings", encoded(&id))),
        ..Line::default()
    };
    let lines: Vec<Line> = rows(visit, owner.shape).await?.into_iter().map(line).collect();
    let more: Value = json!({ "href": address, "label": visit.words.page("all") });
    let title = visit.words.resources(owner.name);
    Ok((!lines.is_empty()).then(|| Card { title, kind: "lines", lines, more: Some(more), ..Card::default() }))
}
