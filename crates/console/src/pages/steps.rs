//! The open steps of a new installation, derived from the data: each with its page.

use chancery_management::{
    client_app::CLIENT_APP, idp_instance::IDP_INSTANCE, role_assignment::ROLE_ASSIGNMENT,
};
use chancery_resource::{Permit, Problem, Shape};
use chancery_userstore::user::USER;
use chancery_web::Input;
use serde_json::{Value, json};

use super::settings;
use crate::shell::{
    directory::{self, Resource},
    settings_access::store_settings,
    visit::Visit,
};

/// A step of setting up an installation.
pub struct SetupStep {
    /// Its name in URLs, and in the texts after `step_`.
    pub name: &'static str,
    /// The URL of its page.
    pub href: String,
    /// Whether it is done according to the data.
    pub is_done: bool,
}

/// Maximum number of rows that are read.
const FEW: usize = 5;

/// The steps that the user may take, in order.
pub async fn steps(visit: &Visit<'_>) -> Result<Vec<SetupStep>, Problem> {
    let mut steps = Vec::new();
    let mut add =
        |name: &'static str, href: String, is_done: bool| steps.push(SetupStep { name, href, is_done });
    let administrators = rows(visit, &ROLE_ASSIGNMENT, "roleType eq \"SystemAdmin\"").await?;
    let is_of_all = visit.visitor.has(Permit::SystemAdmin);
    if is_of_all {
        let is_safe = visit.app.token_service.public_url.starts_with("https://");
        add("address", "/console/welcome?step=address".to_owned(), is_safe);
    }
    if let Some((href, is_done)) = mail(visit) {
        add("mail", href, is_done);
    }
    let known = administrators.as_ref().map_or(0, |(_, rows)| rows.len());
    if is_of_all {
        add("second", "/console/welcome?step=second".to_owned(), known > 1);
    }
    if let Some((resource, rows)) = rows(visit, &CLIENT_APP, "allowUserLogin eq true").await? {
        let is_own = |row: &Value| {
            row.get("id") != Some(&json!(chancery_resource::CONSOLE))
                && row.get("name") != Some(&json!("root"))
        };
        add("app", format!("{}/new", visit.address(resource)), rows.iter().any(is_own));
    }
    let people = directory::of_shape(&USER).filter(|_| visit.store.is_some());
    if let Some(people) = people.filter(|people| visit.may(people.create).is_some()) {
        let rows = some(visit, people, None).await?;
        // besides administrators
        add("user", format!("{}/new", visit.address(people)), rows.len() > known.clamp(1, FEW - 1));
    }
    Ok(steps)
}

/// The page with the mail server settings of the selected store, and whether they are complete.
fn mail(visit: &Visit<'_>) -> Option<(String, bool)> {
    directory::of_shape(&IDP_INSTANCE).filter(|owner| settings::can_be_set(visit, owner))?;
    Some((store_settings(visit)?, sends_mail(visit)))
}

/// Whether the selected store can send mail.
pub fn sends_mail(visit: &Visit<'_>) -> bool {
    let store = visit.visitor.store.as_ref();
    store.is_some_and(|store| store.scope.options.sends_mail())
}

/// Some rows of a resource, if the user may list and change it.
async fn rows(
    visit: &Visit<'_>,
    shape: &Shape,
    filter: &str,
) -> Result<Option<(&'static Resource, Vec<Value>)>, Problem> {
    let Some(resource) = directory::of_shape(shape) else { return Ok(None) };
    if visit.may(resource.list).is_none() || visit.may(resource.create.or(resource.patch)).is_none() {
        return Ok(None);
    }
    Ok(Some((resource, some(visit, resource, Some(filter)).await?)))
}

/// A few rows of a resource.
async fn some(
    visit: &Visit<'_>,
    resource: &'static Resource,
    filter: Option<&str>,
) -> Result<Vec<Value>, Problem> {
    let Some(op) = visit.may(resource.list) else { return Ok(Vec::new()) };
    let mut input = Input::of(op, Vec::new());
    input.is_minimal = true;
    input.query.push(("count".to_owned(), FEW.to_string()));
    input.query.extend(filter.map(|filter| ("filter".to_owned(), filter.to_owned())));
    Ok(visit.perform(input).await?.rows())
}
