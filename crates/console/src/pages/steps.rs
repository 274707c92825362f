//! What a new installation still lacks, told from the data: each step with where it is taken.

use chancery_resource::{Permit, Problem};
use chancery_web::Input;
use serde_json::{Value, json};

use super::list::key_of;
use crate::{
    directory::{self, Resource},
    fields::plain,
    visit::Visit,
};

/// A step of setting an installation up.
pub struct Step {
    /// Its name in addresses, and in the texts after `step_`.
    pub name: &'static str,
    /// Where it is taken.
    pub href: String,
    /// Whether the data say that it was taken.
    pub is_done: bool,
}

/// The most rows of a resource that are looked at.
const FEW: usize = 5;
/// The options without which a store sends no mail.
const MAIL: [&str; 2] = ["MailServerConfig", "EMailSenderAddress"];

/// The steps in their order: those that the person may take.
///
/// # Errors
/// The operations' own.
pub async fn steps(visit: &Visit<'_>) -> Result<Vec<Step>, Problem> {
    let mut steps = Vec::new();
    let mut add = |name: &'static str, href: String, is_done: bool| steps.push(Step { name, href, is_done });
    let administrators = rows(visit, "RoleAssignment", "roleType eq \"SystemAdmin\"").await?;
    let is_of_all = visit.visitor.has(Permit::SystemAdmin);
    if is_of_all {
        let is_safe = visit.app.token_service.public_url.starts_with("https://");
        add("address", "/console/welcome?step=address".to_owned(), is_safe);
    }
    if let Some((href, is_done)) = mail(visit).await? {
        add("mail", href, is_done);
    }
    let known = administrators.as_ref().map_or(0, |(_, rows)| rows.len());
    if is_of_all {
        add("second", "/console/welcome?step=second".to_owned(), known > 1);
    }
    if let Some((resource, rows)) = rows(visit, "ClientApp", "allowUserLogin eq true").await? {
        let is_own = |row: &Value| {
            row.get("id") != Some(&json!(chancery_signin::CONSOLE)) && row.get("name") != Some(&json!("root"))
        };
        add("app", format!("{}/new", visit.address(resource)), rows.iter().any(is_own));
    }
    let people = directory::find("User", true).filter(|_| visit.store.is_some());
    if let Some(people) = people.filter(|people| visit.may(people.create).is_some()) {
        let rows = some(visit, people, None).await?;
        // besides those who administer
        add("user", format!("{}/new", visit.address(people)), rows.len() > known.clamp(1, FEW - 1));
    }
    Ok(steps)
}

/// Where the mail server of the chosen store is set, and whether it is.
async fn mail(visit: &Visit<'_>) -> Result<Option<(String, bool)>, Problem> {
    let (Some(store), Some(options)) = (&visit.store, directory::find("Option", false)) else {
        return Ok(None);
    };
    if visit.may(options.list).is_none() || visit.may(options.patch).is_none() {
        return Ok(None);
    }
    let filter = format!("name eq {} and idpFactoryType eq \"UserStore\"", json!(store));
    let Some((instances, found)) = rows(visit, "IdpInstance", &filter).await? else { return Ok(None) };
    let Some(instance) = found.first() else { return Ok(None) };
    let key = key_of(instances, instance);
    let mut set = 0;
    for name in MAIL {
        let filter = format!("applyToIdpInstanceId eq {} and name eq {}", json!(key), json!(name));
        let rows = some(visit, options, Some(&filter)).await?;
        set += rows.iter().filter(|row| !row.get("value").map_or_else(String::new, plain).is_empty()).count();
    }
    Ok(Some((format!("{}/{key}/settings", visit.address(instances)), set == MAIL.len())))
}

/// Some rows of a resource, for who may list and change it.
async fn rows(
    visit: &Visit<'_>,
    name: &str,
    filter: &str,
) -> Result<Option<(&'static Resource, Vec<Value>)>, Problem> {
    let Some(resource) = directory::find(name, false) else { return Ok(None) };
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
    input.is_brief = true;
    input.query.push(("count".to_owned(), FEW.to_string()));
    input.query.extend(filter.map(|filter| ("filter".to_owned(), filter.to_owned())));
    Ok(visit.perform(input).await?.rows())
}
