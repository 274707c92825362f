//! Members of a group by names or addresses, one a line: who is found, unknown or there twice is told before anything is done.

use std::collections::{HashMap, HashSet};

use chancery_record::fold;
use chancery_resource::{MAX_BATCH, Problem};
use chancery_userstore::user::USER;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use crate::{
    pages::{
        batch,
        item::read,
        look_up::{Reading, rows_by},
    },
    resources::user::import::text,
    shell::{
        directory::{self, Resource, encoded, key_of, title_of},
        fields::asked,
        parts::FormPage,
        visit::{Visit, nothing_here, one},
    },
};

/// The most names that are told of each kind.
const MOST_TOLD: usize = 20;

/// Asks for names.
///
/// # Errors
/// It is not offered here.
pub async fn ask(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    page(visit, resource, key, "").await
}

async fn page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    error: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.need(batch::joining())?;
    visit.unbarred(resource, key, op).await?;
    let row = read(visit, resource, key).await?;
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let title = title_of(resource, &row);
    let heading = format!("{}: {title}", words.page("members_title"));
    let mut field = asked("names", words.page("members_names"), "tags");
    field.extend([
        ("required".to_owned(), json!(true)),
        ("hint".to_owned(), json!(words.page("members_hint"))),
        ("value".to_owned(), json!(one(&visit.form, "names").unwrap_or_default())),
        ("error".to_owned(), json!(error)),
        ("is_filled".to_owned(), json!(true)),
    ]);
    let errors: Vec<Value> = Some(error)
        .filter(|error| !error.is_empty())
        .map(|error| json!({ "text": error, "href": "#f-names" }))
        .into_iter()
        .collect();
    let section = json!({ "title": "", "about": "", "fields": [field], "is_readonly": false });
    let page = FormPage {
        back: json!({ "href": here, "label": title }),
        heading,
        icon: Some("users-round"),
        errors,
        sections: vec![section],
        bar: Some(
            json!({ "save": words.page("import_check"), "cancel": { "href": here, "label": words.page("cancel") }, "review": false }),
        ),
        is_new: true,
        ..FormPage::default()
    };
    page.show(visit, if error.is_empty() { 200 } else { 400 })
}

/// Who the lines of a form name.
#[derive(Default)]
struct Found {
    ids: Vec<String>,
    names: Vec<String>,
    members: Vec<String>,
    unknown: Vec<String>,
    several: Vec<String>,
    twice: Vec<String>,
}

/// Tells who was found, and asks whether they are to be added.
///
/// # Errors
/// The operations' own.
pub async fn check(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.need(batch::joining())?;
    visit.unbarred(resource, key, op).await?;
    let typed = one(&visit.form, "names").unwrap_or_default();
    let lines: Vec<&str> = typed.lines().map(name_in).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() || lines.len() > MAX_BATCH {
        let bound = visit.words.page("members_bound").replace("{n}", &MAX_BATCH.to_string());
        return page(visit, resource, key, &bound).await;
    }
    let found = find(visit, key, &lines).await?;
    confirm(visit, resource, key, &found).await
}

/// The name or address in a line: of `Ada Lovelace <ada@example.com>` the address.
fn name_in(line: &str) -> &str {
    let line = line.trim().trim_end_matches([',', ';']).trim();
    line.rsplit_once('<').map_or(line, |(_, rest)| rest.trim_end_matches('>').trim())
}

async fn find(visit: &Visit<'_>, group: &str, lines: &[&str]) -> Result<Found, Problem> {
    let users = directory::of_shape(&USER).ok_or_else(nothing_here)?;
    let list = visit.need(users.list)?;
    let mut known: HashMap<String, Vec<Value>> = HashMap::new();
    let addresses: Vec<&str> = lines.iter().copied().filter(|line| line.contains('@')).collect();
    let reading = Reading { is_whole: true, ..Reading::default() };
    for (member, names) in [("loginName", lines.to_vec()), ("emailAddress", addresses)] {
        for row in rows_by(visit, (list, member), &names, reading).await? {
            let name = fold(&text(&row, member));
            let rows = known.entry(name.clone()).or_default();
            // a login name is one person's, whoever else has it as an address
            let is_known =
                |one: &Value| text(one, "id") == text(&row, "id") || fold(&text(one, "loginName")) == name;
            if !rows.iter().any(is_known) {
                rows.push(row);
            }
        }
    }
    let (mut found, mut seen) = (Found::default(), HashSet::new());
    for line in lines {
        match known.get(&fold(line)).map(Vec::as_slice).unwrap_or_default() {
            [] => found.unknown.push((*line).to_owned()),
            [one] => {
                let id = key_of(users, one);
                let groups = one["memberOfGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
                if !seen.insert(id.clone()) {
                    found.twice.push((*line).to_owned());
                } else if groups.iter().any(|one| one["id"] == json!(group)) {
                    found.members.push((*line).to_owned());
                } else {
                    found.names.push(title_of(users, one));
                    found.ids.push(id);
                }
            }
            _ => found.several.push((*line).to_owned()),
        }
    }
    Ok(found)
}

async fn confirm(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    found: &Found,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let row = read(visit, resource, key).await?;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let told = [
        ("members_found", &found.names),
        ("members_already", &found.members),
        ("members_unknown", &found.unknown),
        ("members_several", &found.several),
        ("members_twice", &found.twice),
    ];
    let told = told.into_iter().filter(|(_, names)| !names.is_empty());
    let facts: Vec<String> = told
        .map(|(key, names)| {
            let more = names.len().saturating_sub(MOST_TOLD);
            let more = if more > 0 { format!(" (+{more})") } else { String::new() };
            let first: Vec<&str> = names.iter().take(MOST_TOLD).map(String::as_str).collect();
            format!("{} {}: {}{more}", names.len(), words.page(key), first.join(", "))
        })
        .collect();
    let title = title_of(resource, &row);
    let heading = format!("{}: {title}", words.page("members_title"));
    if found.ids.is_empty() {
        let link = json!({ "href": format!("{here}/members"), "label": words.page("back") });
        let content = json!({ "heading": heading, "text": words.page("many_nothing"), "facts": facts, "trace": "", "link": link });
        return visit.page(200, "message.html", &heading, &content);
    }
    let (action, hidden) = batch::joining_form(visit, key, &found.ids);
    let content = json!({
        "back": { "href": format!("{here}/members"), "label": title }, "heading": heading, "text": words.page("many_once_text"),
        "facts": facts, "asks": null, "errors": [], "action": action, "hidden": hidden,
        "confirm": { "label": format!("{}: {}", words.page("add"), found.ids.len()), "is_dangerous": false },
        "cancel": { "href": here, "label": words.page("cancel") },
    });
    visit.page(200, "confirm.html", &heading, &content)
}

#[cfg(test)]
mod tests {
    use super::name_in;

    #[test]
    fn addresses_are_found_in_lines() {
        for (line, name) in [
            (" ada ", "ada"),
            ("ada@example.com;", "ada@example.com"),
            ("Ada Lovelace <ada@example.com>,", "ada@example.com"),
            ("", ""),
        ] {
            assert_eq!(name_in(line), name);
        }
    }
}
