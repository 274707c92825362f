//! A claim rule that is evaluated before it is saved: the submitted values of its form.

use chancery_record::Kind;
use chancery_resource::Problem;
use serde_json::{Map, Value, json};

use crate::{
    pages::{
        form::{FormMode, creation_fields, editable_fields, fresh_key, hidden, sections},
        item::read,
    },
    shell::{
        directory::{Resource, encoded},
        fields::{changes, filled, with},
        visit::{Visit, one},
    },
};

/// The id of a new rule in an evaluation.
const NEW: &str = "00000000-0000-0000-0000-000000000000";

/// A rule with the submitted values.
pub struct Draft {
    /// The key of the changed rule; `None` for a new one.
    key: Option<String>,
    values: Value,
    hidden: Vec<Value>,
}

impl Draft {
    /// The draft of the form, or of the rule in the URL.
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
        let values = Value::Object(filled(creation_fields(rules), &visit.form));
        let key = one(&visit.form, "key").map_or_else(fresh_key, str::to_owned);
        Ok(Some(Self { key: None, values, hidden: vec![json!({ "name": "key", "value": key })] }))
    }

    /// The draft of an existing rule: the stored values with the submitted changes.
    async fn of_rule(visit: &Visit<'_>, rules: &'static Resource, key: &str) -> Result<Self, Problem> {
        let row = read(visit, rules, key).await?;
        let sent = |name: &str| Some(json!({ "name": name, "value": one(&visit.form, name)? }));
        let sent: Vec<Value> = ["base", "concurrencyToken"].into_iter().filter_map(sent).collect();
        // a submitted form contains its original values
        let hidden = if sent.is_empty() { hidden(editable_fields(rules), &row) } else { sent };
        let changed = changes(editable_fields(rules), &visit.form, &row);
        let mut values = row;
        if let Some(values) = values.as_object_mut() {
            values.extend(changed);
        }
        Ok(Self { key: Some(key.to_owned()), values, hidden })
    }

    /// The key of the changed rule.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The id of the rule in an evaluation.
    pub fn id(&self) -> &str {
        self.key().unwrap_or(NEW)
    }

    /// The rule with the submitted values.
    pub const fn row(&self) -> &Value {
        &self.values
    }

    /// The body of a creation of the rule.
    pub fn body(&self) -> Value {
        let members = self.values.as_object().into_iter().flatten();
        let is_plain = |value: &Value| !value.is_null() && !value.is_array() && !value.is_object();
        let members = members.filter(|(name, value)| is_plain(value) && *name != "concurrencyToken");
        Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
    }

    /// The URL of the form of this page.
    pub fn action(draft: Option<&Self>) -> String {
        let rule = draft.and_then(Self::key).map_or_else(String::new, |key| format!("?of={}", encoded(key)));
        format!("/console/ClaimRule/try{rule}")
    }

    /// The hidden fields of the rule's own form.
    pub fn hidden(&self) -> Vec<Value> {
        self.hidden.clone()
    }

    /// The button that saves the draft.
    pub fn save(&self, visit: &Visit<'_>, rules: &Resource) -> Value {
        let address = visit.address(rules);
        match &self.key {
            Some(key) => {
                json!({ "label": visit.words.page("save"), "href": format!("{address}/{}", encoded(key)) })
            }
            None => json!({ "label": visit.words.page("create"), "href": format!("{address}/new") }),
        }
    }

    /// The sections of the rule's own form.
    pub fn sections(
        &self,
        visit: &Visit<'_>,
        rules: &'static Resource,
        problem: Option<&Problem>,
    ) -> Vec<Value> {
        let is_new = self.key.is_none();
        let fields: Vec<_> =
            if is_new { creation_fields(rules).collect() } else { editable_fields(rules).collect() };
        let fields: Vec<_> =
            fields.into_iter().filter(|field| !matches!(field.kind, Kind::Bytes(_))).collect();
        let used = if is_new { FormMode::Created } else { FormMode::Changed };
        let mut all = sections(visit, rules, &fields, &self.values, problem, used);
        if let Some(first) = all.first_mut() {
            *first = with(first.take(), json!({ "title": visit.words.page("draft_title") }));
        }
        all
    }
}
