//! The last step: the tenants and client apps whose sign-in offers the provider, and whether people whom nobody knows may come by it.
//! With it the provider becomes active, in one transaction.

use chancery_management::{client_app::CLIENT_APP, tenant::TENANT};
use chancery_resource::{CONSOLE, Problem, ROOT, RelationChange, Shape};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::{Connecting, page_of, step_at};
use crate::{
    pages::{
        choices::is_chosen,
        form::{at, errors, is_of_form, status_of},
        relate,
    },
    shell::{
        directory::{self, key_of, title_of},
        fields::{asked, plain},
        parts::FormPage,
        visit::{Visit, done, one},
    },
};

/// What can be chosen: the prefix of the switches, the resource, the relation, and the condition of rows that can be.
static WAYS: [(&str, &Shape, &str, &str); 2] =
    [("tenant:", &TENANT, "tenants", ""), ("app:", &CLIENT_APP, "clientApps", " and allowUserLogin eq true")];
/// The most of each that is offered here.
const MOST: usize = 20;
const CREATES: &str = "autoCreatePlatformUser";

/// Asks who uses it.
///
/// # Errors
/// The operations' own.
pub async fn show(
    visit: &Visit<'_>,
    of: &Connecting<'_>,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let mut sections = Vec::new();
    for way in WAYS {
        sections.push(choices(visit, of, way).await?);
    }
    let is_sent = one(&visit.form, "step").is_some();
    let mut creates = asked(CREATES, &words.field(CREATES), "switch");
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

/// The switches of one relation, those on that are linked already. The only one that can be chosen is chosen.
async fn choices(
    visit: &Visit<'_>,
    of: &Connecting<'_>,
    (prefix, shape, relation, condition): (&str, &Shape, &str, &str),
) -> Result<Value, Problem> {
    let words = visit.words;
    let mut rows = Vec::new();
    let found = directory::of_shape(shape);
    if let Some((other, op)) = found.and_then(|other| Some((other, visit.may(other.list)?))) {
        let subscription = &of.row["subscriptionId"];
        let mut input = Input::of(op, Vec::new());
        input.is_brief = true;
        let filter = format!("subscriptionId eq {subscription}{condition}");
        input.query = vec![("filter".to_owned(), filter), ("count".to_owned(), (MOST + 3).to_string())];
        let listed = visit.perform(input).await?.rows();
        rows = listed.iter().map(|row| (key_of(other, row), title_of(other, row))).collect();
        // people from elsewhere have no rights at the platform's own apps
        rows.retain(|(id, name)| *id != CONSOLE.to_string() && name.to_lowercase() != ROOT);
    }
    let is_whole = rows.len() <= MOST;
    rows.truncate(MOST);
    let (linked, is_sent) = (linked(of.row, relation), one(&visit.form, "step").is_some());
    let is_only = rows.len() == 1 && linked.is_empty();
    let switches: Vec<Map<String, Value>> = rows
        .iter()
        .map(|(id, label)| {
            let wire = format!("{prefix}{id}");
            let is_on = if is_sent { is_chosen(visit, &wire) } else { is_only || linked.contains(id) };
            let mut switch = asked(&wire, label, "switch");
            switch.insert("value".to_owned(), json!(is_on));
            switch
        })
        .collect();
    let about = match (rows.is_empty(), is_whole) {
        (true, _) => words.page("connect_none"),
        (_, false) => words.page("connect_more"),
        _ => "",
    };
    Ok(json!({ "title": words.field(relation), "about": about, "fields": switches, "is_readonly": false }))
}

/// The ids of what the instance is linked with.
fn linked(row: &Value, relation: &str) -> Vec<String> {
    let rows = row[relation].as_array().map(Vec::as_slice).unwrap_or_default();
    rows.iter().map(|row| plain(&row["id"])).collect()
}

/// Links it and makes it active, all or nothing.
///
/// # Errors
/// What has no place in the form.
pub async fn run(visit: &Visit<'_>, of: &Connecting<'_>) -> Result<Response<AnswerBody>, Problem> {
    let mut patch = Input::of(visit.need(of.resource.patch)?, vec![of.key.to_owned()]);
    patch.body = Some(json!({
        "isActive": true, CREATES: is_chosen(visit, CREATES),
        "concurrencyToken": one(&visit.form, "concurrencyToken").unwrap_or_default(),
    }));
    let mut inputs = vec![patch];
    for (prefix, _, relation, _) in WAYS {
        let linked = linked(of.row, relation);
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        // a switch sends `false` before itself, so that all that was offered is in the form
        let mut offered: Vec<&str> =
            visit.form.iter().filter_map(|(name, _)| name.strip_prefix(prefix)).collect();
        offered.dedup();
        for id in offered {
            let is_linked = linked.iter().any(|one| one == id);
            let is_wanted = is_chosen(visit, &format!("{prefix}{id}"));
            if is_wanted && !is_linked {
                add.push(id);
            } else if is_linked && !is_wanted {
                remove.push(id);
            }
        }
        if linked.len() + add.len() <= remove.len() {
            let problem = Problem::invalid(visit.words.page("connect_none_chosen"));
            return show(visit, of, Some(&problem)).await;
        }
        for (change, ids) in [(RelationChange::Add, add), (RelationChange::Remove, remove)] {
            if !ids.is_empty() {
                let op = visit.need(relate::operation(of.resource, relation, change))?;
                let mut input = Input::of(op, vec![of.key.to_owned()]);
                input.body = Some(json!({ "relatedIds": ids }));
                inputs.push(input);
            }
        }
    }
    match visit.perform_together(inputs).await {
        Ok(_) => Ok(done(of.item, "connected")),
        Err((_, problem)) if is_of_form(&problem) => show(visit, of, Some(&problem)).await,
        Err((_, problem)) => Err(problem),
    }
}
