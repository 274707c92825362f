//! Upload of a certificate: the contents of the file are shown before it is stored.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_management::subscription::SUBSCRIPTION;
use chancery_record::Field;
use chancery_resource::{Op, Problem};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::{SIGNING, certificates, end, sealed_upload};
use crate::{
    pages::form::{error_at, errors, fresh_key, is_of_form},
    shell::{
        components::FormPage,
        directory::{Resource, encoded, key_of},
        fields::{FormField, cell, control_field, filled, plain, with},
        navigation::label,
        visit::{Visit, one, redirect_with_notice},
    },
};

/// The fields besides the file.
const TYPED: [&str; 6] =
    ["name", "certType", "applyToTenantId", "applyToSubscriptionId", "subscriptionId", "description"];
/// The fields that are shown of an uploaded file.
const READ: [&str; 7] =
    ["subject", "issuer", "validFrom", "validTo", "serialNumber", "thumbprint", "certificateHasPrivateKey"];

fn operation(visit: &Visit<'_>, resource: &Resource) -> Result<&'static Op, Problem> {
    visit.require(resource.create)
}

fn field(resource: &Resource, wire: &str) -> Option<&'static Field> {
    resource.shape.fields.iter().find(|field| field.wire() == wire)
}

/// Shows the upload form.
///
/// # Errors
/// The user may not store certificates.
pub fn show_form(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let resource = certificates()?;
    operation(visit, resource)?;
    visit.fresh()?;
    form(visit, resource, &Value::Null, None)
}

fn form(
    visit: &Visit<'_>,
    resource: &'static Resource,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let typed = TYPED.iter().filter_map(|wire| field(resource, wire)).map(|field| {
        let error = error_at(problem, field.wire());
        let owner = (field.wire() == "subscriptionId").then_some(SUBSCRIPTION.name);
        let search = resource.referenced(field).map(|other| other.name).or(owner);
        let search = search.map(|name| format!("/console/find?in={name}"));
        let is_required = matches!(field.wire(), "name" | "certType");
        FormField { field, row: values, is_fixed: false, is_required, error: &error, href: None, search }
            .render(words)
    });
    let typed: Vec<Value> = typed.collect();
    let address = visit.address(resource);
    let heading = format!("{} {}", words.page("new"), words.resource(resource.name));
    let sections = vec![
        json!({ "title": "", "about": "", "fields": typed, "is_readonly": false }),
        json!({ "title": words.page("cert_file"), "about": words.page("cert_file_about"), "fields": file_fields(visit, problem), "is_readonly": false }),
    ];
    let content = FormPage {
        back: json!({ "href": address, "label": label(visit, resource) }),
        heading,
        icon: Some(resource.presentation.icon),
        errors: with_file_links(errors(visit, problem)),
        sections,
        bar: Some(
            json!({ "save": words.page("cert_read"), "cancel": { "href": address, "label": words.page("cancel") }, "review": false }),
        ),
        is_new: true,
        ..FormPage::default()
    };
    visit.page(problem.map_or(200, Problem::status), "certificate.html", &content.heading, &json!(content))
}

/// The file, its key and its password: fields with secrets are not prefilled.
fn file_fields(visit: &Visit<'_>, problem: Option<&Problem>) -> Vec<Value> {
    let words = visit.words;
    let text = one(&visit.form, "data").unwrap_or_default();
    let is_open = text.contains("BEGIN CERTIFICATE") && !text.contains("PRIVATE KEY");
    let wrong = format!("{}{}", error_at(problem, "certificateInput"), error_at(problem, "certificate"));
    let data = json!({
        "value": if is_open { text } else { "" }, "required": true, "hint": words.page("cert_data_hint"), "error": wrong,
    });
    let key = json!({ "hint": words.page("cert_key_hint") });
    let of = |wire: &str, control: &str| Value::Object(control_field(wire, &words.field(wire), control));
    // without scripts there is only the text area
    let choice = Value::Object(control_field("file", words.page("cert_choose"), "filler"));
    let choice = with(choice, json!({ "value": "f-data" }));
    vec![
        choice,
        with(of("data", "code"), data),
        with(of("privateKey", "longtext"), key),
        of("password", "secret"),
    ]
}

/// Errors of the file link to the field that it was pasted into.
fn with_file_links(errors: Vec<Value>) -> Vec<Value> {
    let at = |error: Value| match error.get("href").and_then(Value::as_str) {
        Some("#f-certificateInput" | "#f-certificate") => with(error, json!({ "href": "#f-data" })),
        _ => error,
    };
    errors.into_iter().map(at).collect()
}

/// Reads an uploaded file, or stores a confirmed one.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let resource = certificates()?;
    let op = operation(visit, resource)?;
    if one(&visit.form, "sealed").is_some() {
        return save_sealed(visit, resource, op).await;
    }
    let typed = Value::Object(filled(TYPED.iter().filter_map(|wire| field(resource, wire)), &visit.form));
    let body = with(typed.clone(), json!({ "certificateInput": file(visit) }));
    let mut input = Input::of(op, Vec::new());
    input.body = Some(body.clone());
    input.dry_run = true;
    match visit.perform(input).await {
        Ok(output) => review_page(visit, resource, &output.json(), body),
        Err(problem) if is_of_form(&problem) => form(visit, resource, &typed, Some(&problem)),
        Err(problem) => Err(problem),
    }
}

/// The submitted upload.
fn file(visit: &Visit<'_>) -> Value {
    let sent = |name: &str| one(&visit.form, name).map(str::trim).filter(|text| !text.is_empty());
    let data = sent("data").unwrap_or_default();
    let mut upload = Map::new();
    upload.insert("format".to_owned(), json!(format_of(data)));
    upload.insert("data".to_owned(), json!(data));
    for name in ["privateKey", "password"] {
        upload.extend(sent(name).map(|text| (name.to_owned(), json!(text))));
    }
    Value::Object(upload)
}

/// The format of a pasted file: PEM is text; a certificate starts with a sequence in a sequence, PKCS #12 with a number.
fn format_of(data: &str) -> &'static str {
    if data.contains("-----BEGIN ") {
        return "Pem";
    }
    let text: String = data.split_whitespace().collect();
    let file = BASE64_STANDARD.decode(text).unwrap_or_default();
    let length = file.get(1).copied().unwrap_or_default();
    let inside = if length < 0x80 { 2 } else { 2 + usize::from(length & 0x7f) };
    if file.get(inside) == Some(&0x30) { "Der" } else { "Pkcs12" }
}

/// Shows the contents of a file before it is stored.
fn review_page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    read: &Value,
    body: Value,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let rows = READ.iter().filter_map(|wire| field(resource, wire)).map(|field| {
        let after = cell(field, &read[field.wire()], words).text;
        json!({ "label": words.field(field.wire()), "before": "", "after": after })
    });
    let rows: Vec<Value> = rows.collect();
    let kind = plain(&read["certType"]);
    let lacks_key = SIGNING.contains(&kind.as_str()) && read["certificateHasPrivateKey"] != json!(true);
    let (tone, verdict) = match end(read) {
        Some(end) if end <= visit.now => ("bad", "cert_is_over"),
        _ if lacks_key => ("warn", "cert_no_key"),
        _ => ("good", "cert_can_be_kept"),
    };
    let here = format!("{}/new", visit.address(resource));
    let heading = words.page("cert_read_title");
    let hidden = [
        json!({ "name": "sealed", "value": sealed_upload::seal(visit, body) }),
        json!({ "name": "key", "value": fresh_key() }),
    ];
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "changes": rows,
        "verdict": { "tone": tone, "text": words.page(verdict) }, "api_call": "", "action": here, "hidden": hidden,
        "confirm": words.page("cert_keep"), "cancel": { "href": here, "label": words.page("cancel") },
    });
    visit.page(200, "review.html", heading, &content)
}

/// Stores a file that was uploaded in this session, some minutes ago at most.
async fn save_sealed(
    visit: &Visit<'_>,
    resource: &'static Resource,
    op: &'static Op,
) -> Result<Response<AnswerBody>, Problem> {
    let body = sealed_upload::open(visit);
    let body = body.ok_or_else(|| Problem::conflict(visit.words.page("cert_too_late")))?;
    let mut input = Input::of(op, Vec::new());
    input.body = Some(body);
    input.key = one(&visit.form, "key").map(str::to_owned);
    let created = visit.perform(input).await?.json();
    let key = key_of(resource, &created);
    Ok(redirect_with_notice(&format!("{}/{}", visit.address(resource), encoded(&key)), "created"))
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};

    use super::format_of;

    #[test]
    fn the_format_of_a_certificate_file_is_detected() {
        assert_eq!(format_of("-----BEGIN CERTIFICATE-----"), "Pem");
        assert_eq!(format_of("\u{feff}-----BEGIN CERTIFICATE-----"), "Pem");
        assert_eq!(format_of("Bag Attributes\n-----BEGIN CERTIFICATE-----"), "Pem");
        assert_eq!(format_of(&BASE64_STANDARD.encode([0x30, 0x82, 1, 0, 0x30])), "Der");
        assert_eq!(format_of(&BASE64_STANDARD.encode([0x30, 0x82, 1, 0, 0x02])), "Pkcs12");
        assert_eq!(format_of("nonsense!"), "Pkcs12");
    }
}
