//! The form of a new tenant: name, sign-in methods and settings.

use chancery_management::{
    idp_instance::IDP_INSTANCE, mfa_instance::MFA_INSTANCE, subscription::SUBSCRIPTION,
};
use chancery_record::{DefaultValue, Field, FieldError};
use chancery_resource::{Problem, RelationChange, Shape, settings::Owner};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use crate::{
    pages::{
        choices::{is_chosen, rows},
        form::{
            FormMode, creation_fields, error_at, errors, fresh_id, is_of_form, named, sections, status_of,
        },
        item::read,
        reference, relate, settings,
    },
    shell::{
        components::FormPage,
        directory::{Resource, encoded},
        fields::{control_field, filled},
        navigation::label,
        setting::{controls, sent},
        visit::{Visit, one, redirect_with_notice},
        words::raised,
    },
};

/// The sign-in methods: prefix of the switches, resource, and relation of the tenant.
static WAYS: [(&str, &Shape, &str); 2] =
    [("instance:", &IDP_INSTANCE, "idpInstances"), ("factor:", &MFA_INSTANCE, "mfaInstances")];

/// The field of the subscription, which is prefilled if there is only one.
const OF: &str = "subscriptionId";

/// Shows the empty form.
///
/// # Errors
/// The user may not create a tenant.
pub async fn show(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    visit.require(resource.create)?;
    let preset = creation_fields(resource).map(|field| {
        let value = match field.access.default {
            DefaultValue::Bool(is_so) => json!(is_so),
            _ => visit.parameter(field.wire()).map_or(Value::Null, |text| json!(text)),
        };
        (field.wire().to_owned(), value)
    });
    let mut preset: Map<String, Value> = preset.collect();
    if let [(only, _)] = rows(visit, &SUBSCRIPTION).await?.as_slice()
        && visit.parameter(OF).is_none()
    {
        preset.insert(OF.to_owned(), json!(only));
    }
    page(visit, resource, &Value::Object(preset), None).await
}

/// Creates the tenant with its providers in one transaction, and saves the settings in another: they do not exist before
/// the first one.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let id = &id_of(visit);
    let mut body = filled(creation_fields(resource), &visit.form);
    let values = Value::Object(body.clone());
    body.insert("id".to_owned(), json!(id));
    let mut creation = Input::of(visit.require(resource.create)?, Vec::new());
    creation.body = Some(Value::Object(body));
    if one(&visit.form, "check") == Some("true") {
        creation.dry_run = true;
        let dry_run = visit.perform(creation).await;
        return page(visit, resource, &values, dry_run.err().filter(is_of_form).as_ref()).await;
    }
    if let Some(problem) = wrong_settings(visit) {
        return page(visit, resource, &values, Some(&problem)).await;
    }
    let mut inputs = vec![creation];
    for (prefix, _, relation) in WAYS {
        let chosen = visit.form.iter().filter(|(_, value)| value == "true");
        let ids: Vec<&str> = chosen.filter_map(|(name, _)| name.strip_prefix(prefix)).collect();
        if !ids.is_empty() {
            let op = visit.require(relate::operation(resource, relation, RelationChange::Add))?;
            let mut input = Input::of(op, vec![id.to_owned()]);
            input.body = Some(json!({ "relatedIds": ids }));
            inputs.push(input);
        }
    }
    let address = format!("{}/{}", visit.address(resource), encoded(id));
    match visit.perform_all(inputs).await {
        Ok(_) => {
            let row = read(visit, resource, id).await?;
            match settings::set_new(visit, resource, id, &row).await {
                Err(problem) if is_of_form(&problem) => {
                    let settings = visit.words.page("settings");
                    let link = json!({ "href": format!("{address}/settings"), "label": settings });
                    visit.refused(visit.words.page("tenant_half_made"), &problem, &link)
                }
                set => set.map(|()| redirect_with_notice(&address, "created")),
            }
        }
        // the form provides the id: it was submitted before
        Err((_, problem)) if is_of_form(&problem) && read(visit, resource, id).await.is_ok() => {
            Ok(redirect_with_notice(&address, "created"))
        }
        Err((_, problem)) if is_of_form(&problem) => page(visit, resource, &values, Some(&problem)).await,
        Err((_, problem)) => Err(problem),
    }
}

/// The id that the form provides.
fn id_of(visit: &Visit<'_>) -> String {
    one(&visit.form, "id").map_or_else(fresh_id, str::to_owned)
}

/// The validation errors of the submitted settings.
fn wrong_settings(visit: &Visit<'_>) -> Option<Problem> {
    let wrong = Owner::Tenant
        .entries()
        .filter(|entry| sent(entry.name, Some(entry), &visit.form).is_some_and(|text| entry.is_wrong(&text)));
    let errors: Vec<FieldError> = wrong
        .map(|entry| FieldError::new(format!("/{}", entry.name), visit.words.page("setting_wrong")))
        .collect();
    (!errors.is_empty()).then(|| Problem::wrong(errors))
}

async fn page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let fields: Vec<&Field> = creation_fields(resource).collect();
    let names = reference::names(visit, resource, &fields, std::slice::from_ref(values)).await?;
    let mut all = named(sections(visit, resource, &fields, values, problem, FormMode::Created), &names);
    all.extend(ways(visit, resource).await?);
    all.extend(of_settings(visit, resource, problem));
    let address = visit.address(resource);
    let page = FormPage {
        back: json!({ "href": address, "label": label(visit, resource) }),
        heading: format!("{} {}", words.page("new"), words.resource(resource.name)),
        sub: words.explanation(resource.shape.about).into(),
        icon: Some(resource.presentation.icon),
        errors: errors(visit, problem),
        sections: all,
        hidden: vec![json!({ "name": "id", "value": id_of(visit) })],
        bar: Some(
            json!({ "save": words.page("create"), "cancel": { "href": address, "label": words.page("cancel") }, "review": false }),
        ),
        is_new: true,
        ..FormPage::default()
    };
    page.show(visit, status_of(problem))
}

/// The providers and second factors to choose from, as far as the user may add them.
async fn ways(visit: &Visit<'_>, resource: &Resource) -> Result<Option<Value>, Problem> {
    let words = visit.words;
    let mut switches: Vec<Map<String, Value>> = Vec::new();
    for (prefix, shape, relation) in WAYS {
        if visit.may(relate::operation(resource, relation, RelationChange::Add)).is_none() {
            continue;
        }
        for (id, label) in rows(visit, shape).await? {
            let wire = format!("{prefix}{id}");
            let mut switch =
                control_field(&wire, &format!("{}: {label}", raised(&words.resource(shape.name))), "switch");
            switch.insert("value".to_owned(), json!(is_chosen(visit, &wire)));
            switches.push(switch);
        }
    }
    let section =
        json!({ "title": words.page("ways_title"), "about": "", "fields": switches, "is_readonly": false });
    Ok((!switches.is_empty()).then_some(section))
}

/// The settings of tenants, collapsed unless one is invalid.
fn of_settings(visit: &Visit<'_>, resource: &Resource, problem: Option<&Problem>) -> Option<Value> {
    if !settings::can_be_set(visit, resource) {
        return None;
    }
    let mut is_wrong = false;
    let mut fields = Vec::new();
    for entry in Owner::Tenant.entries().filter(|entry| !entry.secret) {
        let value = sent(entry.name, Some(entry), &visit.form).unwrap_or_else(|| entry.default.to_owned());
        let mut own = controls(entry.name, Some(entry), &value, visit.words);
        let error = error_at(problem, entry.name);
        is_wrong |= !error.is_empty();
        if let Some(first) = own.first_mut() {
            first.insert("error".to_owned(), json!(error));
        }
        fields.extend(own);
    }
    let fold = if is_wrong { "open" } else { "closed" };
    Some(
        json!({ "title": visit.words.page("settings"), "about": "", "fields": fields, "is_readonly": false, "fold": fold }),
    )
}
