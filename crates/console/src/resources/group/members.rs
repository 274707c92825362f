//! Adds members to a group by login names or addresses, one a line: unknown, ambiguous and duplicate ones are reported
//! before anything changes.

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
        batch_lookup::{ReadOptions, rows_by},
        item::read,
    },
    resources::user::import::text,
    shell::{
        components::FormPage,
        directory::{self, Resource, encoded, key_of, title_of},
        fields::control_field,
        visit::{Visit, not_found, one},
    },
};

/// Maximum number of listed names of each kind.
const MAX_NAMES: usize = 20;

/// Shows the form.
///
/// # Errors
/// The user may not add members.
pub async fn show_form(
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
    let op = visit.require(batch::add_members_operation())?;
    visit.unbarred(resource, key, op).await?;
    let row = read(visit, resource, key).await?;
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let title = title_of(resource, &row);
    let heading = format!("{}: {title}", words.page("members_title"));
    let mut field = control_field("names", words.page("members_names"), "tags");
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

/// The users that the lines of a form name.
#[derive(Default)]
struct Resolved {
    ids: Vec<String>,
    names: Vec<String>,
    members: Vec<String>,
    unknown: Vec<String>,
    several: Vec<String>,
    twice: Vec<String>,
}

/// Shows the matching users, and asks for confirmation.
pub async fn check(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(batch::add_members_operation())?;
    visit.unbarred(resource, key, op).await?;
    let typed = one(&visit.form, "names").unwrap_or_default();
    let lines: Vec<&str> = typed.lines().map(name_in).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() || lines.len() > MAX_BATCH {
        let bound = visit.words.page("members_bound").replace("{n}", &MAX_BATCH.to_string());
        return page(visit, resource, key, &bound).await;
    }
    let resolved = find(visit, key, &lines).await?;
    confirm(visit, resource, key, &resolved).await
}

/// The name or address in a line: the address of `Ada Lovelace <ada@example.com>`.
fn name_in(line: &str) -> &str {
    let line = line.trim().trim_end_matches([',', ';']).trim();
    line.rsplit_once('<').map_or(line, |(_, rest)| rest.trim_end_matches('>').trim())
}

async fn find(visit: &Visit<'_>, group: &str, lines: &[&str]) -> Result<Resolved, Problem> {
    let users = directory::of_shape(&USER).ok_or_else(not_found)?;
    let list = visit.require(users.list)?;
    let mut known: HashMap<String, Vec<Value>> = HashMap::new();
    let addresses: Vec<&str> = lines.iter().copied().filter(|line| line.contains('@')).collect();
    let reading = ReadOptions { is_whole: true, ..ReadOptions::default() };
    for (member, names) in [("loginName", lines.to_vec()), ("emailAddress", addresses)] {
        for row in rows_by(visit, list, member, &names, reading).await? {
            let name = fold(&text(&row, member));
            let rows = known.entry(name.clone()).or_default();
            // a login name identifies one person, even if it is the address of another one
            let is_known =
                |one: &Value| text(one, "id") == text(&row, "id") || fold(&text(one, "loginName")) == name;
            if !rows.iter().any(is_known) {
                rows.push(row);
            }
        }
    }
    let (mut resolved, mut seen) = (Resolved::default(), HashSet::new());
    for line in lines {
        match known.get(&fold(line)).map(Vec::as_slice).unwrap_or_default() {
            [] => resolved.unknown.push((*line).to_owned()),
            [one] => {
                let id = key_of(users, one);
                let groups = one["memberOfGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
                if !seen.insert(id.clone()) {
                    resolved.twice.push((*line).to_owned());
                } else if groups.iter().any(|one| one["id"] == json!(group)) {
                    resolved.members.push((*line).to_owned());
                } else {
                    resolved.names.push(title_of(users, one));
                    resolved.ids.push(id);
                }
            }
            _ => resolved.several.push((*line).to_owned()),
        }
    }
    Ok(resolved)
}

async fn confirm(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    resolved: &Resolved,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let row = read(visit, resource, key).await?;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let groups_of_names = [
        ("members_found", &resolved.names),
        ("members_already", &resolved.members),
        ("members_unknown", &resolved.unknown),
        ("members_several", &resolved.several),
        ("members_twice", &resolved.twice),
    ];
    let groups_of_names = groups_of_names.into_iter().filter(|(_, names)| !names.is_empty());
    let facts: Vec<String> = groups_of_names
        .map(|(key, names)| {
            let more = names.len().saturating_sub(MAX_NAMES);
            let more = if more > 0 { format!(" (+{more})") } else { String::new() };
            let first: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
            format!("{} {}: {}{more}", names.len(), words.page(key), first.join(", "))
        })
        .collect();
    let title = title_of(resource, &row);
    let heading = format!("{}: {title}", words.page("members_title"));
    if resolved.ids.is_empty() {
        let link = json!({ "href": format!("{here}/members"), "label": words.page("back") });
        let content = json!({ "heading": heading, "text": words.page("many_nothing"), "facts": facts, "trace": "", "link": link });
        return visit.page(200, "message.html", &heading, &content);
    }
    let (action, hidden) = batch::add_members_form(visit, key, &resolved.ids);
    let content = json!({
        "back": { "href": format!("{here}/members"), "label": title }, "heading": heading, "text": words.page("many_once_text"),
        "facts": facts, "asks": null, "errors": [], "action": action, "hidden": hidden,
        "confirm": { "label": format!("{}: {}", words.page("add"), resolved.ids.len()), "is_dangerous": false },
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
