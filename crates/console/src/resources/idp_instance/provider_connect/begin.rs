//! The gallery of kinds of providers, and the first form, for the name. It creates the instance, which is not active, so
//! that the address to register at the provider is known.

use chancery_management::{idp_type::IDP_TYPE, subscription::SUBSCRIPTION};
use chancery_resource::Problem;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{
    Kind, item,
    kind::{KINDS, named},
};
use crate::{
    pages::{
        choices::rows,
        form::{error_at, errors, fresh_id, is_of_form, status_of},
        item::read,
    },
    shell::{
        components::FormPage,
        directory::{self, Resource},
        fields::{control_field, plain},
        navigation::label,
        render::see_other,
        visit::{Visit, one},
    },
};

/// Maximum number of types that are read.
const MAX_TYPES: &str = "200";

/// The id of the active type of a kind, if there is one.
fn type_of(types: &[Value], kind: &Kind) -> Option<String> {
    types.iter().find(|one| one["factoryType"] == json!(kind.name)).map(|one| plain(&one["id"]))
}

/// The active types of identity providers.
async fn types(visit: &Visit<'_>) -> Result<Vec<Value>, Problem> {
    let op = visit.require(directory::of_shape(&IDP_TYPE).and_then(|types| types.list))?;
    let mut input = Input::of(op, Vec::new());
    input.is_minimal = true;
    let filter = "providerType eq \"IdentityProvider\" and isActive eq true";
    let query = [("filter", filter), ("count", MAX_TYPES)];
    input.query.extend(query.map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok(visit.perform(input).await?.rows())
}

/// Shows the kinds, or the form of the kind in the URL.
///
/// # Errors
/// The user may not create an identity provider.
pub async fn gallery(
    visit: &Visit<'_>,
    resource: &'static Resource,
) -> Result<Response<AnswerBody>, Problem> {
    visit.require(resource.create)?;
    let types = types(visit).await?;
    let kind = visit.parameter("kind").and_then(named).filter(|kind| type_of(&types, kind).is_some());
    match kind {
        Some(kind) => question(visit, resource, kind, None).await,
        None => kinds(visit, resource, &types),
    }
}

fn kinds(visit: &Visit<'_>, resource: &Resource, types: &[Value]) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let address = visit.address(resource);
    let offered = KINDS.iter().filter(|kind| type_of(types, kind).is_some());
    let kinds: Vec<Value> = offered
        .map(|kind| {
            let needs: Vec<String> = kind.settings().map(|name| words.option(name)).collect();
            json!({
                "icon": kind.icon, "label": words.page(&format!("provider_{}", kind.name)),
                "about": words.page(&format!("provider_{}_about", kind.name)),
                "needs": format!("{} {}", words.page("connect_needs"), needs.join(", ")),
                "href": format!("{address}/connect?kind={}", kind.name),
            })
        })
        .collect();
    let heading = words.page("connect");
    let content = json!({
        "back": { "href": address, "label": label(visit, resource) }, "heading": heading,
        "about": words.page("connect_about"), "kinds": kinds,
        "plain": { "href": format!("{address}/new"), "label": words.page("connect_plain") },
    });
    visit.page(200, "kinds.html", heading, &content)
}

async fn question(
    visit: &Visit<'_>,
    resource: &'static Resource,
    kind: &'static Kind,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let own = words.page.get(&format!("provider_{}", kind.name)).map_or("", String::as_str);
    // no OpenID provider has the name of this kind
    let suggested = if kind.name == "OpenIdConnect" { "" } else { own };
    let mut name = control_field("name", &words.field("name"), "text");
    name.extend(
        [
            ("required", json!(true)),
            ("value", json!(one(&visit.form, "name").unwrap_or(suggested))),
            ("hint", json!(words.page("connect_name_hint"))),
            ("error", json!(error_at(problem, "name"))),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let mut fields = vec![name];
    let subscriptions = rows(visit, &SUBSCRIPTION).await?;
    if subscriptions.len() > 1 {
        let current = one(&visit.form, "subscriptionId").unwrap_or_default();
        let choices = subscriptions
            .iter()
            .map(|(id, label)| json!({ "value": id, "label": label, "is_current": id == current }));
        let mut choice = control_field("subscriptionId", &words.field("subscriptionId"), "choice");
        choice.insert("choices".to_owned(), choices.collect());
        choice.insert("error".to_owned(), json!(error_at(problem, "subscriptionId")));
        fields.push(choice);
    }
    let back = format!("{}/connect", visit.address(resource));
    let id = one(&visit.form, "id").map_or_else(fresh_id, str::to_owned);
    let page = FormPage {
        back: json!({ "href": back, "label": words.page("back") }),
        heading: format!("{}: {own}", words.page("connect")),
        sub: words.page("connect_begin_about").into(),
        icon: Some(kind.icon),
        errors: errors(visit, problem),
        sections: vec![json!({ "title": "", "about": "", "fields": fields, "is_readonly": false })],
        hidden: vec![json!({ "name": "kind", "value": kind.name }), json!({ "name": "id", "value": id })],
        bar: Some(
            json!({ "save": words.page("go_on"), "cancel": { "href": back, "label": words.page("cancel") }, "review": false }),
        ),
        is_new: true,
        ..FormPage::default()
    };
    page.show(visit, status_of(problem))
}

/// Creates the instance, which is not active, and redirects to the first step.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn make(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(resource.create)?;
    let active = types(visit).await?;
    let kind = one(&visit.form, "kind").and_then(named);
    let found = kind.and_then(|kind| Some((kind, type_of(&active, kind)?)));
    let Some((kind, type_id)) = found else { return kinds(visit, resource, &active) };
    let typed = |name: &str| one(&visit.form, name).unwrap_or_default().trim();
    let id = one(&visit.form, "id").map_or_else(fresh_id, str::to_owned);
    let mut body = json!({ "id": id, "name": typed("name"), "idpTypeId": type_id, "isActive": false });
    let subscription = Some(typed("subscriptionId")).filter(|id| !id.is_empty());
    if let (Some(members), Some(id)) = (body.as_object_mut(), subscription) {
        members.insert("subscriptionId".to_owned(), json!(id));
    }
    let mut input = Input::of(op, Vec::new());
    input.body = Some(body);
    let on = format!("{}/connect?step=address", item(visit, resource, &id));
    match visit.perform(input).await {
        Ok(_) => Ok(see_other(&on)),
        // the id is that of the form: a repeated submission
        Err(problem) if is_of_form(&problem) && read(visit, resource, &id).await.is_ok() => {
            Ok(see_other(&on))
        }
        Err(problem) if is_of_form(&problem) => question(visit, resource, kind, Some(&problem)).await,
        Err(problem) => Err(problem),
    }
}
