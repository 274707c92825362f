//! Switches by which a form links an instance with other rows of its subscription.

use chancery_resource::{CONSOLE, Problem, ROOT, RelationChange, Shape};
use chancery_web::Input;
use serde_json::{Map, Value, json};

use super::Connecting;
use crate::{
    pages::{choices::is_chosen, relate},
    shell::{
        directory::{self, key_of, title_of},
        fields::{asked, plain},
        visit::{Visit, one},
    },
};

/// The most that is offered.
const MOST: usize = 20;

/// What can be chosen.
pub struct Links {
    /// What the names of the switches begin with.
    pub prefix: &'static str,
    /// The resource.
    pub shape: &'static Shape,
    /// The relation.
    pub relation: &'static str,
    /// Whether the only one that can be chosen is chosen.
    pub takes_the_only: bool,
}

/// The switches, and whether there are no more than these.
pub struct Switches {
    /// The switches, those on that are linked already.
    pub fields: Vec<Map<String, Value>>,
    /// Whether they are all.
    pub are_all: bool,
}

impl Links {
    /// The switches of the rows that meet this condition, if there is one.
    ///
    /// # Errors
    /// The operation's own.
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
            input.is_brief = true;
            let and = if condition.is_empty() { "" } else { " and " };
            let filter = format!("subscriptionId eq {subscription}{and}{condition}");
            input.query = vec![("filter".to_owned(), filter), ("count".to_owned(), (MOST + 3).to_string())];
            let listed = visit.perform(input).await?.rows();
            rows = listed.iter().map(|row| (key_of(other, row), title_of(other, row))).collect();
            // people from elsewhere have no rights at the platform's own apps
            rows.retain(|(id, name)| *id != CONSOLE.to_string() && name.to_lowercase() != ROOT);
        }
        let are_all = rows.len() <= MOST;
        rows.truncate(MOST);
        let (linked, is_sent) = (self.linked(of), one(&visit.form, "step").is_some());
        let is_only = self.takes_the_only && rows.len() == 1 && linked.is_empty();
        let fields = rows.iter().map(|(id, label)| {
            let wire = format!("{}{id}", self.prefix);
            let is_on = if is_sent { is_chosen(visit, &wire) } else { is_only || linked.contains(id) };
            let mut switch = asked(&wire, label, "switch");
            switch.insert("value".to_owned(), json!(is_on));
            switch
        });
        Ok(Switches { fields: fields.collect(), are_all })
    }

    /// The ids of what the instance is linked with.
    fn linked(&self, of: &Connecting<'_>) -> Vec<String> {
        let rows = of.row[self.relation].as_array().map(Vec::as_slice).unwrap_or_default();
        rows.iter().map(|row| plain(&row["id"])).collect()
    }

    /// What a form changes, and whether something is linked then.
    ///
    /// # Errors
    /// The person may not link it.
    pub fn changes(&self, visit: &Visit<'_>, of: &Connecting<'_>) -> Result<(Vec<Input>, bool), Problem> {
        let linked = self.linked(of);
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        // a switch sends `false` before itself, so that all that was offered is in the form
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
                let op = visit.need(relate::operation(of.resource, self.relation, change))?;
                let mut input = Input::of(op, vec![of.key.to_owned()]);
                input.body = Some(json!({ "relatedIds": ids }));
                inputs.push(input);
            }
        }
        Ok((inputs, has_some))
    }
}
