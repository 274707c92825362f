//! The second step: the values from the provider, each with a hint where it is found there, and the certificates.
//! Settings are saved all or none, and certificates are linked after them.

use chancery_management::cert_store::CERT_STORE;
use chancery_resource::{Problem, RelationChange};
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Map, Value, json};

use super::{
    Connecting, has_settings,
    links::{Links, Switches},
    page_of, step_at,
};
use crate::{
    pages::{
        form::{errors, is_of_form},
        item::read,
        relate,
        settings::{self, SaveResult, Setting, SettingError},
    },
    shell::{
        components::{Card, FormPage, Line},
        directory,
        fields::rfc3339,
        render::see_other,
        visit::Visit,
    },
};

static CERTIFICATES: Links =
    Links { prefix: "certificate:", shape: &CERT_STORE, relation: "certStores", takes_the_only: false };

/// The mandatory settings of a provider of this kind.
async fn required_settings(visit: &Visit<'_>, of: &Connecting<'_>) -> Result<Vec<Setting>, Problem> {
    let mut all = settings::settings(visit, of.resource, of.key, of.row).await?;
    all.retain(|setting| of.kind.settings().any(|name| name == setting.name));
    Ok(all)
}

/// Shows the form.
pub async fn show(visit: &Visit<'_>, of: &Connecting<'_>) -> Result<Response<AnswerBody>, Problem> {
    let all = required_settings(visit, of).await?;
    page(visit, of, &all, Refused::Nothing).await
}

/// The error that the page shows.
#[derive(Clone, Copy)]
enum Refused<'a> {
    /// None: missing values were not requested yet.
    Nothing,
    /// A setting was refused.
    One(&'a SettingError),
    /// A certificate was refused.
    Certificate(&'a Problem),
    /// Settings are missing.
    Missing,
}

/// Saves the values. Once all mandatory settings are valid, the trial follows.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(visit: &Visit<'_>, of: &Connecting<'_>) -> Result<Response<AnswerBody>, Problem> {
    let all = required_settings(visit, of).await?;
    if let SaveResult::Invalid(wrong) = settings::save_changed(visit, of.resource, of.key, &all).await? {
        return page(visit, of, &all, Refused::One(&wrong)).await;
    }
    let (links, _) = CERTIFICATES.changes(visit, of)?;
    if !links.is_empty() {
        match visit.perform_all(links).await {
            Ok(_) => {}
            Err((_, problem)) if is_of_form(&problem) => {
                let all = required_settings(visit, of).await?;
                return page(visit, of, &all, Refused::Certificate(&problem)).await;
            }
            Err((_, problem)) => return Err(problem),
        }
    }
    let row = read(visit, of.resource, of.key).await?;
    if has_settings(&row) {
        return Ok(see_other(&step_at(of.item, "trial")));
    }
    let of = Connecting { row: &row, ..*of };
    let all = required_settings(visit, &of).await?;
    if all.iter().all(|setting| setting.error(visit).is_empty()) {
        // the form does not contain the invalid setting
        return Ok(see_other(&format!("{}/settings", of.item)));
    }
    page(visit, &of, &all, Refused::Missing).await
}

async fn page(
    visit: &Visit<'_>,
    of: &Connecting<'_>,
    all: &[Setting],
    refused: Refused<'_>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let wrong = if let Refused::One(wrong) = refused { Some(wrong) } else { None };
    let errors = match refused {
        Refused::Nothing => Vec::new(),
        Refused::One(wrong) => vec![wrong.summary_entry(visit)],
        Refused::Certificate(problem) => errors(visit, Some(problem)),
        Refused::Missing => missing(visit, all),
    };
    let status = match refused {
        Refused::Nothing => 200,
        Refused::One(wrong) => wrong.status,
        Refused::Certificate(problem) => problem.status(),
        Refused::Missing => 400,
    };
    let certificates = certificates(visit, of).await?;
    let fields = all.iter().flat_map(|setting| {
        let mut fields = settings::form_fields(visit, setting, wrong, true);
        if let Some(first) = fields.first_mut() {
            explain(visit, of, setting, certificates.is_some(), first);
            // values that were submitted with a refused one are not stored yet, but not missing
            let is_of_stored = first.get("error") == Some(&json!(setting.error(visit)));
            if is_of_stored && !matches!(refused, Refused::Missing) {
                first.insert("error".to_owned(), json!(""));
            }
        }
        fields
    });
    let fields: Vec<Map<String, Value>> = fields.collect();
    let back = step_at(of.item, "address");
    let mut hidden = settings::hidden(all);
    hidden.push(json!({ "name": "step", "value": "access" }));
    let mut form = FormPage {
        errors,
        sections: std::iter::once(
            json!({ "title": "", "about": "", "fields": fields, "is_readonly": false }),
        )
        .chain(certificates)
        .collect(),
        hidden,
        bar: Some(
            json!({ "save": words.page("go_on"), "cancel": { "href": back, "label": words.page("back") }, "review": false }),
        ),
        is_new: true,
        ..page_of(visit, of, "access")
    };
    form.after.extend(ways_to_certificates(visit, of));
    form.show(visit, status)
}

/// Whether certificates can be linked here.
fn takes_certificates(visit: &Visit<'_>, of: &Connecting<'_>) -> bool {
    let link = relate::operation(of.resource, CERTIFICATES.relation, RelationChange::Add);
    !of.kind.certificates.is_empty() && visit.may(link).is_some()
}

/// The section of the certificates that the instance can use and that are valid now; `None` if there are none.
async fn certificates(visit: &Visit<'_>, of: &Connecting<'_>) -> Result<Option<Value>, Problem> {
    if !takes_certificates(visit, of) {
        return Ok(None);
    }
    let (words, now) = (visit.words, json!(rfc3339(visit.now)));
    let condition = format!("validFrom le {now} and validTo gt {now} and {}", of.kind.certificates);
    let Switches { fields, are_all } = CERTIFICATES.switches(visit, of, &condition).await?;
    let more = if are_all { "" } else { words.page("connect_more") };
    let about = format!("{} {more}", words.page("connect_certificates_offered"));
    let section = json!({
        "title": words.field(CERTIFICATES.relation), "about": about.trim_end(),
        "fields": fields, "is_readonly": false,
    });
    Ok((!fields.is_empty()).then_some(section))
}

/// The card that explains the use of certificates, with links to the pages that create and link them.
fn ways_to_certificates(visit: &Visit<'_>, of: &Connecting<'_>) -> Option<Card> {
    let stores = directory::of_shape(&CERT_STORE).filter(|_| takes_certificates(visit, of))?;
    let words = visit.words;
    let relation = format!("{}/relation/{}", of.item, CERTIFICATES.relation);
    let line = |text: String, href: String| Line { text, href: Some(href), ..Line::default() };
    Some(Card {
        title: words.field(CERTIFICATES.relation),
        kind: "lines",
        about: words.page(&format!("connect_certificates_{}", of.kind.name)).into(),
        lines: vec![
            line(words.page("connect_certificates_all").to_owned(), visit.address(stores)),
            line(words.page("connect_certificates_link").to_owned(), relation),
        ],
        ..Card::default()
    })
}

/// The missing settings, with links to their fields.
fn missing(visit: &Visit<'_>, all: &[Setting]) -> Vec<Value> {
    let wrong = all.iter().filter(|setting| !setting.error(visit).is_empty());
    wrong
        .map(|setting| {
            let text = format!("{}: {}", visit.words.option(&setting.name), setting.error(visit));
            json!({ "text": text, "href": format!("#f-{}", setting.name) })
        })
        .collect()
}

/// Sets the hint of a field: where the value is found at the provider, and whether a secret is set.
fn explain(
    visit: &Visit<'_>,
    of: &Connecting<'_>,
    setting: &Setting,
    may_be_certificate: bool,
    field: &mut Map<String, Value>,
) {
    let key = format!("find_{}_{}", of.kind.name, setting.name);
    let is_secret = field.get("control") == Some(&json!("secret"));
    // an empty field keeps a stored secret
    let set = visit.words.page("secret_is_set");
    let is_set = is_secret && field.get("hint") == Some(&json!(set));
    let hint = format!("{} {}", visit.words.page(&key), if is_set { set } else { "" });
    // a certificate may replace the secret
    let can_be_empty = is_secret && (is_set || may_be_certificate || setting.error(visit).is_empty());
    field.extend([
        ("hint".to_owned(), json!(hint.trim_end())),
        ("required".to_owned(), json!(!can_be_empty)),
        ("is_wide".to_owned(), json!(true)),
    ]);
}
