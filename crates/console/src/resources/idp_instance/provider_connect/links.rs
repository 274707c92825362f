//! Switches of a form that link an identity provider with other rows of its subscription.

use chancery_resource::{CONSOLE, Permit, Problem, RelationChange, Shape};
use chancery_web::Input;
use serde_json::{Map, Value, json};

use super::Connecting;
use crate::{
    pages::{choices::is_chosen, relate},
    shell::{
        directory::{self, key_of, title_of},
        fields::{control_field, plain},
        visit::{Visit, one},
    },
};

/// Maximum number of offered rows.
const MAX_OFFERED: usize = 20;

/// A relation whose rows a form offers.
pub struct Links {
    /// Prefix of the names of the switches.
    pub prefix: &'static str,
    /// The related resource.
    pub shape: &'static Shape,
    /// The relation.
    pub relation: &'static str,
    /// Whether a single offered row is preselected. The console does not count, and is never preselected.
    pub takes_the_only: bool,
}

/// The switches of a relation.
pub struct Switches {
    /// The switches; those of linked rows are on.
    pub fields: Vec<Map<String, Value>>,
    /// Whether there are no further rows.
    pub are_all: bool,
}

fn is_console(id: &str) -> bool {
    id == CONSOLE.to_string()
}

impl Links {
    /// The switches of the rows that match a filter; an empty one matches all.
    pub async fn switches(
        &self,
        visit: &Visit<'_>,
        of: &Connecting<'_>,
        condition: &str,
    ) -> Result<Switches, Problem> {
        let mut rows = Vec::new();
        let found = directory::of_shape(self.shape);
        if let Some((other, op)) = found.and_then(|other| Some((other, visit.may(other.list)?))) {
            let subscription = &of.row["subscriptionId"];
            let mut input = Input::of(op, Vec::new());
            input.is_minimal = true;
            let and = if condition.is_empty() { "" } else { " and " };
            let filter = format!("subscriptionId eq {subscription}{and}{condition}");
            // one more shows whether there are further rows, and the console may be removed below
            let count = (MAX_OFFERED + 2).to_string();
            input.query = vec![("filter".to_owned(), filter), ("count".to_owned(), count)];
            let listed = visit.perform(input).await?.rows();
            rows = listed.iter().map(|row| (key_of(other, row), title_of(other, row))).collect();
            // only a SystemAdmin may link the console
            let links_console = visit.visitor.has(Permit::SystemAdmin);
            rows.retain(|(id, _)| links_console || !is_console(id));
        }
        let are_all = rows.len() <= MAX_OFFERED;
        rows.truncate(MAX_OFFERED);
        let (linked, is_sent) = (self.linked(of), one(&visit.form, "step").is_some());
        let others = rows.iter().filter(|(id, _)| !is_console(id)).count();
        let is_only = |id: &str| self.takes_the_only && others == 1 && !is_console(id) && linked.is_empty();
        let fields = rows.iter().map(|(id, label)| {
            let wire = format!("{}{id}", self.prefix);
            let is_on = if is_sent { is_chosen(visit, &wire) } else { is_only(id) || linked.contains(id) };
            let mut switch = control_field(&wire, label, "switch");
            switch.insert("value".to_owned(), json!(is_on));
            switch
        });
        Ok(Switches { fields: fields.collect(), are_all })
    }

    /// The ids of the linked rows.
    fn linked(&self, of: &Connecting<'_>) -> Vec<String> {
        let rows = of.row[self.relation].as_array().map(Vec::as_slice).unwrap_or_default();
        rows.iter().map(|row| plain(&row["id"])).collect()
    }

    /// The operations that link and unlink rows as the form says, and whether any row is linked after them.
    ///
    /// # Errors
    /// The user may not change the relation.
    pub fn changes(&self, visit: &Visit<'_>, of: &Connecting<'_>) -> Result<(Vec<Input>, bool), Problem> {
        let linked = self.linked(of);
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        // a switch sends `false` before its own value, so the form contains all offered rows
        let mut offered: Vec<&str> =
            visit.form.iter().filter_map(|(name, _)| name.strip_prefix(self.prefix)).collect();
        offered.dedup();
        for id in offered {
            let is_linked = linked.iter().any(|one| one == id);
            let is_wanted = is_chosen(visit, &format!("{}{id}", self.prefix));
            if is_wanted && !is_linked {
                add.push(id);
            } else if is_linked && !is_wanted {
                remove.push(id);
            }
        }
        let has_some = linked.len() + add.len() > remove.len();
        let mut inputs = Vec::new();
        for (change, ids) in [(RelationChange::Add, add), (RelationChange::Remove, remove)] {
            if !ids.is_empty() {
                let op = visit.require(relate::operation(of.resource, self.relation, change))?;
                let mut input = Input::of(op, vec![of.key.to_owned()]);
                input.body = Some(json!({ "relatedIds": ids }));
                inputs.push(input);
            }
        }
        Ok((inputs, has_some))
    }
}
