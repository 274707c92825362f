//! The rule that is tried before it is saved: what was typed in its form.

use chancery_record::Kind;
use chancery_resource::Problem;
use serde_json::{Map, Value, json};

use crate::{
    pages::{
        form::{Use, changed_by_form, created, fresh_key, hidden, sections},
        item::read,
    },
    shell::{
        directory::{Resource, encoded},
        fields::{changes, filled, with},
        visit::{Visit, one},
    },
};

/// The id of a rule that has none yet, as an evaluation names it.
const NEW: &str = "00000000-0000-0000-0000-000000000000";

/// A rule as it was typed.
pub struct Draft {
    /// The key of the rule that it changes; none where it is new.
    key: Option<String>,
    values: Value,
    hidden: Vec<Value>,
}

impl Draft {
    /// The draft of a form, or of the rule that the address names.
    ///
    /// # Errors
    /// The rule cannot be read.
    pub async fn of(visit: &Visit<'_>, rules: &'static Resource) -> Result<Option<Self>, Problem> {
        if let Some(key) = visit.parameter("of") {
            return Self::of_rule(visit, rules, key).await.map(Some);
        }
        if one(&visit.form, "ruleType").is_none() {
            return Ok(None);
        }
        let values = Value::Object(filled(created(rules), &visit.form));
        let key = one(&visit.form, "key").map_or_else(fresh_key, str::to_owned);
        Ok(Some(Self { key: None, values, hidden: vec![json!({ "name": "key", "value": key })] }))
    }

    /// What differs from a rule that is there, on top of it.
    async fn of_rule(visit: &Visit<'_>, rules: &'static Resource, key: &str) -> Result<Self, Problem> {
        let row = read(visit, rules, key).await?;
        let kept = |name: &str| Some(json!({ "name": name, "value": one(&visit.form, name)? }));
        let kept: Vec<Value> = ["base", "concurrencyToken"].into_iter().filter_map(kept).collect();
        // a form that was sent says what it began with
        let hidden = if kept.is_empty() { hidden(changed_by_form(rules), &row) } else { kept };
        let changed = changes(changed_by_form(rules), &visit.form, &row);
        let mut values = row;
        if let Some(values) = values.as_object_mut() {
            values.extend(changed);
        }
        Ok(Self { key: Some(key.to_owned()), values, hidden })
    }

    /// The key of the rule that it changes.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The id by which an evaluation names it.
    pub fn id(&self) -> &str {
        self.key().unwrap_or(NEW)
    }

    /// The rule as it was typed.
    pub const fn row(&self) -> &Value {
        &self.values
    }

    /// The rule as a creation would take it.
    pub fn body(&self) -> Value {
        let members = self.values.as_object().into_iter().flatten();
        let is_plain = |value: &Value| !value.is_null() && !value.is_array() && !value.is_object();
        let members = members.filter(|(name, value)| is_plain(value) && *name != "concurrencyToken");
        Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
    }

    /// Where the form of the page goes.
    pub fn action(draft: Option<&Self>) -> String {
        let rule = draft.and_then(Self::key).map_or_else(String::new, |key| format!("?of={}", encoded(key)));
        format!("/console/ClaimRule/try{rule}")
    }

    /// What the rule's own form holds besides its fields.
    pub fn hidden(&self) -> Vec<Value> {
        self.hidden.clone()
    }

    /// Where what was typed is saved.
    pub fn save(&self, visit: &Visit<'_>, rules: &Resource) -> Value {
        let address = visit.address(rules);
        match &self.key {
            Some(key) => {
                json!({ "label": visit.words.page("save"), "href": format!("{address}/{}", encoded(key)) })
            }
            None => json!({ "label": visit.words.page("create"), "href": format!("{address}/new") }),
        }
    }

    /// Its fields, as its own form has them.
    pub fn sections(
        &self,
        visit: &Visit<'_>,
        rules: &'static Resource,
        problem: Option<&Problem>,
    ) -> Vec<Value> {
        let is_new = self.key.is_none();
        let fields: Vec<_> = if is_new { created(rules).collect() } else { changed_by_form(rules).collect() };
        let fields: Vec<_> =
            fields.into_iter().filter(|field| !matches!(field.kind, Kind::Bytes(_))).collect();
        let used = if is_new { Use::Created } else { Use::Changed };
        let mut all = sections(visit, rules, (&fields, &self.values), problem, used);
        if let Some(first) = all.first_mut() {
            *first = with(first.take(), json!({ "title": visit.words.page("draft_title") }));
        }
        all
    }
}
