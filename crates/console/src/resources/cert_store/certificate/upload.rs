//! A new certificate: the file is read first, and kept when its reader has seen what is in it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_management::subscription::SUBSCRIPTION;
use chancery_record::Field;
use chancery_resource::{Op, Problem};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::{SIGNING, certificates, end, keep};
use crate::{
    pages::form::{error_at, errors, fresh_key, is_of_form},
    shell::{
        directory::{Resource, encoded, key_of},
        fields::{FormField, asked, cell, filled, plain, with},
        navigation::label,
        parts::FormPage,
        visit::{Visit, done, one},
    },
};

/// The fields that are typed beside the file.
const TYPED: [&str; 6] =
    ["name", "certType", "applyToTenantId", "applyToSubscriptionId", "subscriptionId", "description"];
/// What is shown of a file that was read.
const READ: [&str; 7] =
    ["subject", "issuer", "validFrom", "validTo", "serialNumber", "thumbprint", "certificateHasPrivateKey"];

fn operation(visit: &Visit<'_>, resource: &Resource) -> Result<&'static Op, Problem> {
    visit.need(resource.create)
}

fn field(resource: &Resource, wire: &str) -> Option<&'static Field> {
    resource.shape.fields.iter().find(|field| field.wire() == wire)
}

/// The form for a file.
///
/// # Errors
/// The person may not keep certificates.
pub fn ask(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
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
            .told(words)
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
        errors: of_file(errors(visit, problem)),
        sections,
        bar: Some(
            json!({ "save": words.page("cert_read"), "cancel": { "href": address, "label": words.page("cancel") }, "review": false }),
        ),
        is_new: true,
        ..FormPage::default()
    };
    visit.page(problem.map_or(200, Problem::status), "certificate.html", &content.heading, &json!(content))
}

/// The file, its key and its password: what holds a secret is not filled in again.
fn file_fields(visit: &Visit<'_>, problem: Option<&Problem>) -> Vec<Value> {
    let words = visit.words;
    let text = one(&visit.form, "data").unwrap_or_default();
    let is_open = text.contains("BEGIN CERTIFICATE") && !text.contains("PRIVATE KEY");
    let wrong = format!("{}{}", error_at(problem, "certificateInput"), error_at(problem, "certificate"));
    let data = json!({
        "value": if is_open { text } else { "" }, "required": true, "hint": words.page("cert_data_hint"), "error": wrong,
    });
    let key = json!({ "hint": words.page("cert_key_hint") });
    let of = |wire: &str, control: &str| Value::Object(asked(wire, &words.field(wire), control));
    // without script there is only the text area
    let choice = Value::Object(asked("file", words.page("cert_choose"), "filler"));
    let choice = with(choice, json!({ "value": "f-data" }));
    vec![
        choice,
        with(of("data", "code"), data),
        with(of("privateKey", "longtext"), key),
        of("password", "secret"),
    ]
}

/// What is wrong with the file is told at the field that it was pasted into.
fn of_file(errors: Vec<Value>) -> Vec<Value> {
    let at = |error: Value| match error.get("href").and_then(Value::as_str) {
        Some("#f-certificateInput" | "#f-certificate") => with(error, json!({ "href": "#f-data" })),
        _ => error,
    };
    errors.into_iter().map(at).collect()
}

/// Reads a file, or keeps one that was read.
///
/// # Errors
/// What has no place in the form.
pub async fn run(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let resource = certificates()?;
    let op = operation(visit, resource)?;
    if one(&visit.form, "sealed").is_some() {
        return kept(visit, resource, op).await;
    }
    let typed = Value::Object(filled(TYPED.iter().filter_map(|wire| field(resource, wire)), &visit.form));
    let body = with(typed.clone(), json!({ "certificateInput": file(visit) }));
    let mut input = Input::of(op, Vec::new());
    input.body = Some(body.clone());
    input.dry_run = true;
    match visit.perform(input).await {
        Ok(output) => shown(visit, resource, (&output.json(), body)),
        Err(problem) if is_of_form(&problem) => form(visit, resource, &typed, Some(&problem)),
        Err(problem) => Err(problem),
    }
}

/// The upload that the form sent.
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

/// How a pasted file is written: PEM is text; a certificate begins with a sequence in its sequence, PKCS #12 with a number.
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

/// What is in a file, before it is kept.
fn shown(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (read, body): (&Value, Value),
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
        json!({ "name": "sealed", "value": keep::seal(visit, body) }),
        json!({ "name": "key", "value": fresh_key() }),
    ];
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "changes": rows,
        "verdict": { "tone": tone, "text": words.page(verdict) }, "api_call": "", "action": here, "hidden": hidden,
        "confirm": words.page("cert_keep"), "cancel": { "href": here, "label": words.page("cancel") },
    });
    visit.page(200, "review.html", heading, &content)
}

/// Keeps a file that was read in this session, some minutes ago at most.
async fn kept(
    visit: &Visit<'_>,
    resource: &'static Resource,
    op: &'static Op,
) -> Result<Response<AnswerBody>, Problem> {
    let body = keep::open(visit);
    let body = body.ok_or_else(|| Problem::conflict(visit.words.page("cert_too_late")))?;
    let mut input = Input::of(op, Vec::new());
    input.body = Some(body);
    input.key = one(&visit.form, "key").map(str::to_owned);
    let made = visit.perform(input).await?.json();
    let key = key_of(resource, &made);
    Ok(done(&format!("{}/{}", visit.address(resource), encoded(&key)), "created"))
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};

    use super::format_of;

    #[test]
    fn a_file_shows_how_it_is_written() {
        assert_eq!(format_of("-----BEGIN CERTIFICATE-----"), "Pem");
        assert_eq!(format_of("\u{feff}-----BEGIN CERTIFICATE-----"), "Pem");
        assert_eq!(format_of("Bag Attributes\n-----BEGIN CERTIFICATE-----"), "Pem");
        assert_eq!(format_of(&BASE64_STANDARD.encode([0x30, 0x82, 1, 0, 0x30])), "Der");
        assert_eq!(format_of(&BASE64_STANDARD.encode([0x30, 0x82, 1, 0, 0x02])), "Pkcs12");
        assert_eq!(format_of("nonsense!"), "Pkcs12");
    }
}
