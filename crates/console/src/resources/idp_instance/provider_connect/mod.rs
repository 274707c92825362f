//! The wizard that connects an external identity provider: kind and name, the address to register there, the values from
//! the provider, the trial, and the tenants and client apps. Until the last step it is not active, so nobody can sign in
//! through it. The progress is not stored but derived from the data.

mod access;
mod begin;
mod kind;
mod links;
mod serve;

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use super::provider;
use crate::{
    pages::item::read,
    shell::{
        components::{Card, FormPage, Line},
        directory::{Resource, encoded, operation, title_of},
        render::see_other,
        visit::{Visit, not_found, one},
    },
};

pub use self::{
    begin::{gallery, make},
    kind::{Kind, of_row},
};

/// The steps in their order, by their names in addresses. In the texts each follows `connect_`.
const STEPS: [&str; 4] = ["address", "access", "trial", "serve"];

/// The link to the gallery, if the user may connect a provider.
pub fn gallery_link(visit: &Visit<'_>, resource: &Resource) -> Option<Value> {
    let is_offered =
        visit.may(resource.create).is_some() && visit.may(operation!("StartIdpInstanceTrial")).is_some();
    is_offered.then(|| {
        json!({ "href": format!("{}/connect", visit.address(resource)), "label": visit.words.page("connect") })
    })
}

/// Whether all mandatory settings are set, and all are valid.
fn has_settings(row: &Value) -> bool {
    row["hasConfigurationError"] != json!(true)
}

/// Whether the wizard is unfinished: the provider is not active, and lacks a setting, a tenant or a client app.
pub fn is_unfinished(row: &Value) -> bool {
    let is_empty = |set: &str| row[set].as_array().is_none_or(Vec::is_empty);
    let lacks = !has_settings(row) || is_empty("tenants") || is_empty("clientApps");
    of_row(row).is_some() && row["isActive"] == json!(false) && lacks
}

/// The button of an instance's page that continues an unfinished wizard.
pub fn act(visit: &Visit<'_>, resource: &Resource, row: &Value, here: &str) -> Option<Value> {
    let is_offered = gallery_link(visit, resource).is_some() && is_unfinished(row);
    is_offered.then(|| {
        let (label, href) = (visit.words.page("connect_continue"), format!("{here}/connect"));
        json!({ "label": label, "icon": "arrow-right", "href": href, "is_main": true, "is_dangerous": false })
    })
}

/// The address of a step.
fn step_at(item: &str, step: &str) -> String {
    if step == "trial" { format!("{item}/trial") } else { format!("{item}/connect?step={step}") }
}

/// Shows the step in the URL, or the first open one. Redirects to the page of a provider that is connected.
///
/// # Errors
/// The user may not change it, or it is no external provider.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let (row, item) = opened(visit, resource, key).await?;
    let Some(of) = connecting(resource, key, &row, &item)? else { return Ok(see_other(&item)) };
    let is_set = has_settings(&row);
    match visit.parameter("step") {
        Some("access") => access::show(visit, &of).await,
        // without all settings nobody could sign in
        Some("serve") if is_set => serve::show(visit, &of, None).await,
        Some("address") => address(visit, &of).await,
        _ if is_set => Ok(see_other(&step_at(&item, "trial"))),
        _ => address(visit, &of).await,
    }
}

/// Executes the step whose form was submitted.
///
/// # Errors
/// As [`show`], and any problem that the form cannot display.
pub async fn run(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let (row, item) = opened(visit, resource, key).await?;
    let Some(of) = connecting(resource, key, &row, &item)? else { return Ok(see_other(&item)) };
    match one(&visit.form, "step") {
        Some("access") => access::run(visit, &of).await,
        Some("serve") if has_settings(&row) => serve::run(visit, &of).await,
        _ => Ok(see_other(&format!("{item}/connect"))),
    }
}

/// A provider that is being connected.
struct Connecting<'a> {
    resource: &'static Resource,
    key: &'a str,
    row: &'a Value,
    kind: &'static Kind,
    /// The address of its own page.
    item: &'a str,
}

/// The instance and the address of its page, if the user may change it.
async fn opened(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<(Value, String), Problem> {
    visit.require(resource.patch)?;
    Ok((read(visit, resource, key).await?, item(visit, resource, key)))
}

/// The provider that is being connected; `None` if that is done.
fn connecting<'a>(
    resource: &'static Resource,
    key: &'a str,
    row: &'a Value,
    item: &'a str,
) -> Result<Option<Connecting<'a>>, Problem> {
    let kind = of_row(row).ok_or_else(not_found)?;
    Ok(is_unfinished(row).then_some(Connecting { resource, key, row, kind, item }))
}

fn item(visit: &Visit<'_>, resource: &Resource, key: &str) -> String {
    format!("{}/{}", visit.address(resource), encoded(key))
}

/// The common parts of the page of a step.
fn page_of(visit: &Visit<'_>, of: &Connecting<'_>, step: &'static str) -> FormPage {
    let words = visit.words;
    let title = title_of(of.resource, of.row);
    let (name, about) = (format!("connect_{step}"), format!("connect_{step}_about"));
    FormPage {
        back: json!({ "href": of.item, "label": title }),
        heading: format!("{title}: {}", words.page(&name)),
        sub: words.page(&about).into(),
        icon: Some(of.kind.icon),
        after: vec![progress(visit, of.row, of.item, step)],
        ..FormPage::default()
    }
}

/// The card of all steps: which are done, according to the data.
pub fn progress(visit: &Visit<'_>, row: &Value, item: &str, current: &str) -> Card {
    let words = visit.words;
    let is_set = has_settings(row);
    let lines = STEPS.iter().enumerate().map(|(at, step)| {
        let (is_done, is_open) = (is_set && at < 2, is_set || at < 2);
        Line {
            tone: if is_done { "good" } else { "" },
            icon: (*step == current).then_some("arrow-right"),
            text: format!("{}. {}", at + 1, words.page(&format!("connect_{step}"))),
            href: is_open.then(|| step_at(item, step)),
            ..Line::default()
        }
    });
    Card {
        title: words.page("connect_steps").into(),
        kind: "checks",
        about: words.page("connect_steps_about").into(),
        lines: lines.collect(),
        ..Card::default()
    }
}

/// The first step: the address to register at the provider, and how.
async fn address(visit: &Visit<'_>, of: &Connecting<'_>) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let addresses = provider::addresses(visit, of.resource, of.key, of.row).await?;
    let sentences = (1..=of.kind.sentences).map(|number| Line {
        text: format!("{number}. {}", words.page(&format!("register_{}_{number}", of.kind.name))),
        ..Line::default()
    });
    let there = Card {
        title: words.page("connect_there").into(),
        kind: "lines",
        lines: sentences.collect(),
        ..Card::default()
    };
    let next = step_at(of.item, "access");
    let label = words.page("go_on");
    let page = FormPage {
        acts: vec![
            json!({ "label": label, "icon": "arrow-right", "href": next, "is_main": true, "is_dangerous": false }),
        ],
        middle: addresses.into_iter().chain([there]).collect(),
        ..page_of(visit, of, "address")
    };
    page.show(visit, 200)
}
