//! The edited view: its location, and its text before it is published.

use chancery_management::custom_view::CUSTOM_VIEW;
use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Value, json};

use super::DEFAULT_PAGE;
use crate::{
    pages::{
        form::{at, editable_fields, fresh_key, hidden},
        history,
        item::read,
    },
    shell::{
        directory::{self, Resource, encoded, operation},
        fields::plain,
        visit::{Visit, one},
    },
};

/// A view with submitted or stored values.
pub struct Draft {
    /// The key of the changed view; `None` for a new one.
    pub key: Option<String>,
    /// Its present or future location.
    pub location: String,
    /// Its text.
    pub content: String,
    /// Further hidden fields of its form.
    pub hidden: Vec<Value>,
    /// Whether it differs from the stored view.
    pub is_typed: bool,
}

impl Draft {
    /// The view in the URL, or a new one, with the submitted values.
    ///
    /// # Errors
    /// The view cannot be read.
    pub async fn of(visit: &Visit<'_>, views: &'static Resource) -> Result<Self, Problem> {
        let typed = one(&visit.form, "content").map(|text| text.replace("\r\n", "\n"));
        let before = match visit.parameter("entry") {
            Some(id) => Some(of_before(visit, id).await?),
            None => None,
        };
        let is_typed = typed.is_some() || before.is_some();
        let Some(key) = visit.parameter("of") else {
            return Self::of_new(visit, typed, before).await;
        };
        let row = read(visit, views, key).await?;
        let sent = |name: &str| Some(json!({ "name": name, "value": one(&visit.form, name)? }));
        let sent: Vec<Value> = ["base", "concurrencyToken"].into_iter().filter_map(sent).collect();
        // a submitted form contains its original values
        let hidden = if sent.is_empty() { hidden(editable_fields(views), &row) } else { sent };
        let content =
            typed.or(before.map(|(_, content)| content)).unwrap_or_else(|| plain(at(&row, "content")));
        Ok(Self {
            key: Some(key.to_owned()),
            location: plain(at(&row, "location")),
            content,
            hidden,
            is_typed,
        })
    }

    async fn of_new(
        visit: &Visit<'_>,
        typed: Option<String>,
        before: Option<(String, String)>,
    ) -> Result<Self, Problem> {
        let key = one(&visit.form, "key").map_or_else(fresh_key, str::to_owned);
        let hidden = vec![json!({ "name": "key", "value": key })];
        let new_draft =
            |location: String, content: String| Self { key: None, location, content, hidden, is_typed: true };
        if let Some(content) = typed {
            return Ok(new_draft(one(&visit.form, "location").unwrap_or_default().to_owned(), content));
        }
        if let Some((location, content)) = before {
            return Ok(new_draft(location, content));
        }
        let name = visit.parameter("template").unwrap_or(DEFAULT_PAGE);
        let op = visit.require(operation!("GetViewTemplateContent"))?;
        let content = plain(&visit.perform(Input::of(op, vec![name.to_owned()])).await?.json());
        Ok(new_draft(format!("/views/global/{name}"), content))
    }

    /// The view's name, the last segment of its location.
    pub fn name(&self) -> Option<&str> {
        self.location.rsplit('/').next().filter(|name| !name.is_empty())
    }
}

/// The location and the text of a view before the change of an entry; for a creation, those of the new view.
async fn of_before(visit: &Visit<'_>, id: &str) -> Result<(String, String), Problem> {
    let trail = history::trail(false).ok_or_else(|| Problem::not_found("audit trail"))?;
    let entry = read(visit, trail, id).await?;
    recorded_view(&entry).ok_or_else(|| Problem::not_found("version of a view in this entry"))
}

fn recorded_view(entry: &Value) -> Option<(String, String)> {
    let content = |wire: &str| -> Option<(String, String)> {
        let recorded: Value = serde_json::from_str(entry[wire].as_str()?).ok()?;
        Some((recorded.get("location")?.as_str()?.to_owned(), recorded.get("content")?.as_str()?.to_owned()))
    };
    (entry["area"] == json!(CUSTOM_VIEW.name))
        .then(|| content("originalContent").or_else(|| content("currentContent")))?
}

/// The link from an entry to the editor with the previous version, if the user may preview views.
pub fn version(visit: &Visit<'_>, entry: &Value) -> Option<Value> {
    let op = visit.may(operation!("PreviewView"));
    let (location, _) = op.and_then(|_| recorded_view(entry))?;
    let of = if entry["action"] == json!("Deleted") {
        String::new()
    } else {
        format!("&of={}", encoded(&location))
    };
    let views = directory::of_shape(&CUSTOM_VIEW)?;
    let href = format!("{}/try?entry={}{of}", visit.address(views), encoded(&plain(&entry["id"])));
    let key = if entry["originalContent"].is_null() { "editor_version" } else { "editor_before" };
    Some(json!({ "href": href, "label": visit.words.page(key), "icon": "history" }))
}
