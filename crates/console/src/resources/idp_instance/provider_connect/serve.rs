//! The last step: the tenants and client apps whose sign-in offers the provider, and whether unknown people may sign in
//! through it. Then the provider is activated, in the same transaction.

use chancery_management::{client_app::CLIENT_APP, tenant::TENANT};
use chancery_resource::Problem;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{Connecting, links::Links, page_of, step_at};
use crate::{
    pages::{
        choices::is_chosen,
        form::{at, errors, is_of_form, status_of},
    },
    shell::{
        components::FormPage,
        fields::{control_field, plain},
        visit::{Visit, one, redirect_with_notice},
    },
};

/// A relation of the form, and the filter of the offered rows.
struct Way {
    links: Links,
    condition: &'static str,
}

static WAYS: [Way; 2] = [
    Way {
        links: Links { prefix: "tenant:", shape: &TENANT, relation: "tenants", takes_the_only: true },
        condition: "",
    },
    Way {
        links: Links { prefix: "app:", shape: &CLIENT_APP, relation: "clientApps", takes_the_only: true },
        // `root` is the own client app of the installation (`ROOT`), which has no sign-in
        condition: "allowUserLogin eq true and name ne \"root\"",
    },
];
const CREATES: &str = "autoCreatePlatformUser";

/// Shows the form.
pub async fn show(
    visit: &Visit<'_>,
    of: &Connecting<'_>,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let mut sections = Vec::new();
    for way in &WAYS {
        sections.push(choices(visit, of, way).await?);
    }
    let is_sent = one(&visit.form, "step").is_some();
    let mut creates = control_field(CREATES, &words.field(CREATES), "switch");
    let is_on = if is_sent { is_chosen(visit, CREATES) } else { of.row[CREATES] == json!(true) };
    creates.insert("value".to_owned(), json!(is_on));
    creates.insert("hint".to_owned(), json!(words.page("connect_creates_hint")));
    sections.push(
        json!({ "title": words.page("connect_people"), "about": "", "fields": [creates], "is_readonly": false }),
    );
    let back = step_at(of.item, "trial");
    let page = FormPage {
        errors: errors(visit, problem),
        sections,
        hidden: vec![
            json!({ "name": "step", "value": "serve" }),
            json!({ "name": "concurrencyToken", "value": plain(at(of.row, "concurrencyToken")) }),
        ],
        bar: Some(
            json!({ "save": words.page("connect_activate"), "cancel": { "href": back, "label": words.page("back") }, "review": false }),
        ),
        is_new: true,
        ..page_of(visit, of, "serve")
    };
    page.show(visit, status_of(problem))
}

/// The section of one relation.
async fn choices(visit: &Visit<'_>, of: &Connecting<'_>, way: &Way) -> Result<Value, Problem> {
    let words = visit.words;
    let switches = way.links.switches(visit, of, way.condition).await?;
    let about = match (switches.fields.is_empty(), switches.are_all) {
        (true, _) => words.page("connect_none"),
        (_, false) => words.page("connect_more"),
        _ => "",
    };
    Ok(
        json!({ "title": words.field(way.links.relation), "about": about, "fields": switches.fields, "is_readonly": false }),
    )
}

/// Links the selected rows and activates the provider, in one transaction.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(visit: &Visit<'_>, of: &Connecting<'_>) -> Result<Response<AnswerBody>, Problem> {
    let mut patch = Input::of(visit.require(of.resource.patch)?, vec![of.key.to_owned()]);
    patch.body = Some(json!({
        "isActive": true, CREATES: is_chosen(visit, CREATES),
        "concurrencyToken": one(&visit.form, "concurrencyToken").unwrap_or_default(),
    }));
    let mut inputs = vec![patch];
    for way in &WAYS {
        let (changes, has_some) = way.links.changes(visit, of)?;
        if !has_some {
            let problem = Problem::invalid(visit.words.page("connect_none_chosen"));
            return show(visit, of, Some(&problem)).await;
        }
        inputs.extend(changes);
    }
    match visit.perform_all(inputs).await {
        Ok(_) => Ok(redirect_with_notice(of.item, "connected")),
        Err((_, problem)) if is_of_form(&problem) => show(visit, of, Some(&problem)).await,
        Err((_, problem)) => Err(problem),
    }
}
