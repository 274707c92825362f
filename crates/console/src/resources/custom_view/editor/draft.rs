//! The view that is edited: where it is, and its text before it is published.

use chancery_management::custom_view::CUSTOM_VIEW;
use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Value, json};

use super::USUAL;
use crate::{
    pages::{
        form::{at, changed_by_form, fresh_key, hidden},
        history,
        item::read,
    },
    shell::{
        directory::{self, Resource, encoded, operation},
        fields::plain,
        visit::{Visit, one},
    },
};

/// A view as it was typed, or as it is.
pub struct Draft {
    /// The key of the view that it changes; none where it is new.
    pub key: Option<String>,
    /// Where it is, or is to be.
    pub location: String,
    /// Its text.
    pub content: String,
    /// What its form holds besides.
    pub hidden: Vec<Value>,
    /// Whether it differs from what is kept.
    pub is_typed: bool,
}

impl Draft {
    /// The view that the address names, or a new one, with what was typed.
    ///
    /// # Errors
    /// It cannot be read.
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
        let kept = |name: &str| Some(json!({ "name": name, "value": one(&visit.form, name)? }));
        let kept: Vec<Value> = ["base", "concurrencyToken"].into_iter().filter_map(kept).collect();
        // a form that was sent says what it began with
        let hidden = if kept.is_empty() { hidden(changed_by_form(views), &row) } else { kept };
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
        let made =
            |location: String, content: String| Self { key: None, location, content, hidden, is_typed: true };
        if let Some(content) = typed {
            return Ok(made(one(&visit.form, "location").unwrap_or_default().to_owned(), content));
        }
        if let Some((location, content)) = before {
            return Ok(made(location, content));
        }
        let name = visit.parameter("template").unwrap_or(USUAL);
        let op = visit.need(operation!("GetViewTemplateContent"))?;
        let content = plain(&visit.perform(Input::of(op, vec![name.to_owned()])).await?.json());
        Ok(made(format!("/views/global/{name}"), content))
    }

    /// The view's name, the last part of its location.
    pub fn name(&self) -> Option<&str> {
        self.location.rsplit('/').next().filter(|name| !name.is_empty())
    }
}

/// Where a view was before the change of an entry, and its text; of one that was made by it, as it was made.
async fn of_before(visit: &Visit<'_>, id: &str) -> Result<(String, String), Problem> {
    let trail = history::trail(false).ok_or_else(|| Problem::not_found("audit trail"))?;
    let entry = read(visit, trail, id).await?;
    told(&entry).ok_or_else(|| Problem::not_found("version of a view in this entry"))
}

fn told(entry: &Value) -> Option<(String, String)> {
    let content = |wire: &str| -> Option<(String, String)> {
        let told: Value = serde_json::from_str(entry[wire].as_str()?).ok()?;
        Some((told.get("location")?.as_str()?.to_owned(), told.get("content")?.as_str()?.to_owned()))
    };
    (entry["area"] == json!(CUSTOM_VIEW.name))
        .then(|| content("originalContent").or_else(|| content("currentContent")))?
}

/// The way from an entry to the editor, with the version of before its change, for who may try views.
pub fn version(visit: &Visit<'_>, entry: &Value) -> Option<Value> {
    let op = visit.may(operation!("PreviewView"));
    let (location, _) = op.and_then(|_| told(entry))?;
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
