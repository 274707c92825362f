//! Batch actions on selected rows, or on all rows of a filter: validated and summarized first, then run in one
//! transaction.

mod act;
mod group;
mod plan;
mod run;
mod targets;
mod validate;

use chancery_resource::{Op, Problem};
use chancery_userstore::{group::GROUP, user::USER};
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use super::{
    deleted,
    form::{fresh_key, is_of_form},
    list::INSIDE,
};
use crate::shell::{
    directory::{self, Resource},
    reauthentication::is_required,
    visit::{Visit, not_found, one},
};

pub use self::act::Act;
pub use self::validate::error_locations;

/// Maximum number of rows of an action without a batch operation: each row takes an operation.
const MAX_EACH: usize = 500;
/// Maximum number of deletions without reauthentication.
const MAX_STALE: usize = 100;
/// The query parameters of a list that a selection retains.
const LIST_PARAMETERS: [&str; 4] = ["q", "view", "of", INSIDE];

/// A requested batch action.
struct BatchRequest<'a> {
    resource: &'static Resource,
    act: Act,
    op: &'static Op,
    /// The group that the users join or leave.
    group: &'a str,
}

impl BatchRequest<'_> {
    /// Maximum number of rows.
    fn most(&self) -> usize {
        if self.act.is_each(self.op) { MAX_EACH } else { self.op.shape.max_batch() }
    }

    /// Requires reauthentication for critical operations and many deletions.
    fn check_proof(&self, visit: &Visit<'_>, count: usize) -> Result<(), Problem> {
        let wants_proof = is_required(self.op) || (self.act == Act::Delete && count > MAX_STALE);
        if wants_proof { visit.fresh() } else { Ok(()) }
    }

    /// The form of an action on these rows, with their keys in one field.
    fn form(&self, visit: &Visit<'_>, act: Act, keys: &str) -> Vec<(String, String)> {
        let own = [("act", act.name()), ("group", self.group), ("ids", keys)];
        own.into_iter()
            .chain(list_parameters(&visit.form))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

/// The actions that a list offers.
pub fn offered(visit: &Visit<'_>, resource: &Resource) -> Vec<Value> {
    if resource.key().is_none() {
        return Vec::new();
    }
    let listed: &[Act] = if shows_deleted(resource, &visit.query) { &[Act::Restore] } else { &act::LISTED };
    buttons(visit, resource, listed)
}

/// The buttons of the actions that the user may run.
pub fn buttons(visit: &Visit<'_>, resource: &Resource, acts: &[Act]) -> Vec<Value> {
    let buttons = acts.iter().copied().filter(|act| visit.may(act.op(resource)).is_some()).map(|act| {
        json!({ "name": act.name(), "label": act.label(visit.words, resource), "is_dangerous": act == Act::Delete })
    });
    buttons.collect()
}

/// Whether a list shows quarantined rows: restore is their only batch action.
fn shows_deleted(resource: &Resource, parameters: &[(String, String)]) -> bool {
    deleted::has_quarantine(resource) && one(parameters, "view") == Some(deleted::VIEW)
}

/// The query parameters that a selection retains.
pub fn list_parameters(parameters: &[(String, String)]) -> impl Iterator<Item = (&'static str, &str)> {
    LIST_PARAMETERS
        .into_iter()
        .filter_map(|name| Some((name, one(parameters, name).filter(|value| !value.is_empty())?)))
}

/// Validates and summarizes an action; runs it once it is confirmed.
///
/// # Errors
/// The action is unknown, or the user may not run it.
pub async fn run(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let act = Act::named(one(&visit.form, "act").unwrap_or_default()).ok_or_else(not_found)?;
    let is_applicable = act == Act::Restore || !shows_deleted(resource, &visit.form);
    let op = visit.require(act.op(resource).filter(|_| is_applicable))?;
    // the default is the group whose members the list shows
    let shown = one(&visit.form, "of").and_then(|of| of.strip_prefix("memberOfGroups:"));
    let shown = shown.filter(|_| act == Act::TakeOut).unwrap_or_default();
    let group = one(&visit.form, "group").unwrap_or(shown).trim();
    if act.wants_group() && group.is_empty() {
        return group::show_form(visit, resource, act);
    }
    let request = BatchRequest { resource, act, op, group };
    let sure = one(&visit.form, "sure") == Some("true");
    let done = if sure { run::run(visit, &request).await } else { plan::show(visit, &request).await };
    match done {
        Err(problem) if is_of_form(&problem) => {
            let list = json!({ "href": list_address(visit, resource), "label": visit.words.resources(resource.name) });
            visit.refused(act.label(visit.words, resource), &problem, &list)
        }
        done => done,
    }
}

/// The operation that adds many users to a group.
pub fn add_members_operation() -> Option<&'static Op> {
    directory::of_shape(&USER).and_then(|users| Act::AddTo.op(users))
}

/// The form that adds these users to a group and then lists its members: target and fields.
pub fn add_members_form(visit: &Visit<'_>, group: &str, ids: &[String]) -> (String, Vec<Value>) {
    let users = directory::of_shape(&USER).map_or_else(String::new, |users| visit.address(users));
    let fields = [
        ("act", Act::AddTo.name().to_owned()),
        ("group", group.to_owned()),
        ("ids", ids.join("\n")),
        ("of", format!("memberOfGroups:{group}")),
        ("sure", "true".to_owned()),
        ("key", fresh_key()),
    ];
    let fields = fields.into_iter().map(|(name, value)| json!({ "name": name, "value": value }));
    (format!("{users}/batch"), fields.collect())
}

/// The URL of the list with the selection.
fn list_address(visit: &Visit<'_>, resource: &Resource) -> String {
    let address = visit.address(resource);
    let query =
        form_urlencoded::Serializer::new(String::new()).extend_pairs(list_parameters(&visit.form)).finish();
    if query.is_empty() { address } else { format!("{address}?{query}") }
}

/// The resource of groups.
fn groups() -> Option<&'static Resource> {
    directory::of_shape(&GROUP)
}
