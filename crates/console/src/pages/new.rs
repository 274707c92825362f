//! Creation of a row: its form, and saving.

use chancery_record::{DefaultValue, Field, Kind};
use chancery_resource::{Personal, Problem};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::{
    form::{FormMode, creation_fields, errors, fresh_key, is_of_form, named, sections, status_of},
    reference,
    sidebar::form_act,
};
use crate::shell::{
    call::call,
    components::FormPage,
    directory::{Resource, encoded, key_of},
    fields::{filled, is_shown_once, is_write_only},
    navigation::label,
    reauthentication::is_required,
    role_protection::is_protected,
    visit::{Visit, one, redirect_with_notice},
};

/// Shows the empty form.
///
/// # Errors
/// The user may not create one.
pub async fn show(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(resource.create)?;
    if is_required(op) {
        visit.fresh()?;
    }
    // the owner of the new row is in the URL
    if let Personal::Of(_, field) = resource.shape.personal
        && let Some(id) = visit.parameter(field.wire())
        && is_protected(op)
        && let Some(role) = visit.protecting_role(resource, "", &json!({ field.wire(): id })).await?
    {
        return Err(visit.barred_by(role));
    }
    let mut preset = Map::new();
    for field in creation_fields(resource) {
        let default = match field.access.default {
            DefaultValue::Bool(is_so) => json!(is_so),
            DefaultValue::Int(number) => json!(number),
            DefaultValue::Text(text) if matches!(field.kind, Kind::Texts(_) | Kind::Pairs(_)) => {
                serde_json::from_str(text).unwrap_or_default()
            }
            DefaultValue::Text(text) => json!(text),
            DefaultValue::None => visit.parameter(field.wire()).map_or(Value::Null, |text| json!(text)),
        };
        preset.insert(field.wire().to_owned(), default);
    }
    new_page(visit, resource, &Value::Object(preset), None).await
}

/// Creates a row.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn create(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(resource.create)?;
    let body = filled(creation_fields(resource), &visit.form);
    let mut input = Input::of(op, Vec::new());
    input.body = Some(Value::Object(body.clone()));
    input.key = one(&visit.form, "key").map(str::to_owned);
    input.dry_run = one(&visit.form, "check") == Some("true");
    let is_check = input.dry_run;
    match visit.perform(input).await {
        Ok(_) if is_check => new_page(visit, resource, &Value::Object(body), None).await,
        Ok(output) => {
            let created = output.json();
            let key = key_of(resource, &created);
            if let Some(shown) = shown_once(visit, resource, &created)? {
                return Ok(shown);
            }
            let address = visit.address(resource);
            if one(&visit.form, "another") == Some("true") {
                return Ok(redirect_with_notice(&format!("{address}/new"), "created"));
            }
            let address =
                if resource.read.is_some() { format!("{address}/{}", encoded(&key)) } else { address };
            Ok(redirect_with_notice(&address, "created"))
        }
        Err(problem) if is_of_form(&problem) => {
            new_page(visit, resource, &Value::Object(body), Some(&problem)).await
        }
        Err(problem) => Err(problem),
    }
}

/// The page with a generated secret, which is shown once.
fn shown_once(
    visit: &Visit<'_>,
    resource: &Resource,
    created: &Value,
) -> Result<Option<Response<AnswerBody>>, Problem> {
    let Some(secret) = secret_of(resource, created) else { return Ok(None) };
    let link = json!({ "href": visit.address(resource), "label": label(visit, resource) });
    secret_page(visit, secret, &link).map(Some)
}

/// The secret that only this response contains.
pub fn secret_of<'a>(resource: &Resource, answer: &'a Value) -> Option<&'a str> {
    let generated = || resource.shape.fields.iter().find(|field| is_shown_once(field)).map(Field::wire);
    let member_name = resource.presentation.shown_once.or_else(generated);
    member_name.and_then(|member| answer.get(member)).and_then(Value::as_str)
}

/// The page that shows a secret once.
pub fn secret_page(visit: &Visit<'_>, secret: &str, link: &Value) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let heading = words.page("secret_title");
    let content = json!({
        "heading": heading, "text": words.page("secret_text"), "facts": [secret], "trace": "", "link": link,
    });
    visit.page(200, "message.html", heading, &content)
}

async fn new_page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let name = words.resource(resource.name);
    let heading = format!("{} {name}", words.page("new"));
    let fields: Vec<&Field> = creation_fields(resource).collect();
    let names = reference::names(visit, resource, &fields, std::slice::from_ref(values)).await?;
    let address = visit.address(resource);
    let page = FormPage {
        back: json!({ "href": address, "label": label(visit, resource) }),
        heading,
        sub: words.explanation(resource.shape.about).into(),
        icon: Some(resource.presentation.icon),
        errors: errors(visit, problem),
        sections: named(sections(visit, resource, &fields, values, problem, FormMode::Created), &names),
        hidden: vec![json!({ "name": "key", "value": fresh_key() })],
        bar: Some(
            json!({ "save": words.page("create"), "cancel": { "href": address, "label": words.page("cancel") }, "review": false, "another": true,
                 "also": form_act(visit, resource).map(|(label, href)| json!({ "label": label, "href": href })) }),
        ),
        is_new: true,
        api_call: example(visit, resource, values),
        ..FormPage::default()
    };
    page.show(visit, status_of(problem))
}

/// The creation as a curl command: with the filled and the required fields.
fn example(visit: &Visit<'_>, resource: &Resource, values: &Value) -> String {
    let Some(op) = resource.create else { return String::new() };
    let members = creation_fields(resource).filter_map(|field| {
        let value = values.get(field.wire()).unwrap_or(&Value::Null);
        let is_needed = !field.nullable && matches!(field.access.default, DefaultValue::None);
        let is_included = is_needed || (!value.is_null() && !is_write_only(field, values));
        is_included.then(|| {
            (field.wire().to_owned(), if is_write_only(field, values) { Value::Null } else { value.clone() })
        })
    });
    let mut input = Input::of(op, Vec::new());
    input.body = Some(Value::Object(members.collect()));
    call(visit, &input)
}
