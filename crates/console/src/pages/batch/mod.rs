//! One act on many rows, chosen or all that match: judged first and told in numbers, then done at once, or not at all.

mod act;
mod group;
mod judge;
mod plan;
mod run;
mod targets;

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
    proof::is_wanted,
    visit::{Visit, nothing_here, one},
};

pub use self::act::Act;
pub use self::judge::places_of;

/// The most rows of an act without a batch: each is an operation of its own.
const MOST_EACH: usize = 500;
/// More deletions at once want a fresh proof.
const MOST_STALE: usize = 100;
/// What the address of a list says of what it shows, which a selection hands on.
const KEPT: [&str; 4] = ["q", "view", "of", INSIDE];

/// What is asked for.
struct Asked<'a> {
    resource: &'static Resource,
    act: Act,
    op: &'static Op,
    /// The group that the rows are added to, or taken out of.
    group: &'a str,
}

impl Asked<'_> {
    /// The most rows at once: those of one batch.
    fn most(&self) -> usize {
        if self.act.is_each(self.op) { MOST_EACH } else { self.op.shape.max_batch() }
    }

    /// Whether so many want a proof that is not there.
    fn check_proof(&self, visit: &Visit<'_>, count: usize) -> Result<(), Problem> {
        let wants_proof = is_wanted(self.op) || (self.act == Act::Delete && count > MOST_STALE);
        if wants_proof { visit.fresh() } else { Ok(()) }
    }

    /// The form that asks for an act on these rows, which are named in one field.
    fn form(&self, visit: &Visit<'_>, act: Act, keys: &str) -> Vec<(String, String)> {
        let own = [("act", act.name()), ("group", self.group), ("ids", keys)];
        own.into_iter()
            .chain(kept(&visit.form))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

/// The acts that are offered for the rows of a list.
pub fn offered(visit: &Visit<'_>, resource: &Resource) -> Vec<Value> {
    if resource.key().is_none() {
        return Vec::new();
    }
    let listed: &[Act] = if shows_deleted(resource, &visit.query) { &[Act::Restore] } else { &act::LISTED };
    buttons(visit, resource, listed)
}

/// The buttons of those of these acts that the person may do.
pub fn buttons(visit: &Visit<'_>, resource: &Resource, acts: &[Act]) -> Vec<Value> {
    let told = acts.iter().copied().filter(|act| visit.may(act.op(resource)).is_some()).map(|act| {
        json!({ "name": act.name(), "label": act.label(visit.words, resource), "is_dangerous": act == Act::Delete })
    });
    told.collect()
}

/// Whether a list shows what is in quarantine, where restoring is all that is done with many.
fn shows_deleted(resource: &Resource, parameters: &[(String, String)]) -> bool {
    deleted::has_quarantine(resource) && one(parameters, "view") == Some(deleted::VIEW)
}

/// What of the list's address goes with a selection.
pub fn kept(parameters: &[(String, String)]) -> impl Iterator<Item = (&'static str, &str)> {
    KEPT.into_iter().filter_map(|name| Some((name, one(parameters, name).filter(|value| !value.is_empty())?)))
}

/// Does what was asked for, after it was judged and confirmed.
///
/// # Errors
/// The act is unknown, or may not be done; the operations' own.
pub async fn run(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let act = Act::named(one(&visit.form, "act").unwrap_or_default()).ok_or_else(nothing_here)?;
    let is_in_place = act == Act::Restore || !shows_deleted(resource, &visit.form);
    let op = visit.need(act.op(resource).filter(|_| is_in_place))?;
    // out of the group whose members are shown, where no other one is named
    let shown = one(&visit.form, "of").and_then(|of| of.strip_prefix("memberOfGroups:"));
    let shown = shown.filter(|_| act == Act::TakeOut).unwrap_or_default();
    let group = one(&visit.form, "group").unwrap_or(shown).trim();
    if act.wants_group() && group.is_empty() {
        return group::ask(visit, resource, act);
    }
    let asked = Asked { resource, act, op, group };
    let sure = one(&visit.form, "sure") == Some("true");
    let done = if sure { run::run(visit, &asked).await } else { plan::show(visit, &asked).await };
    match done {
        Err(problem) if is_of_form(&problem) => {
            let list =
                json!({ "href": back(visit, resource), "label": visit.words.resources(resource.name) });
            visit.refused(act.label(visit.words, resource), &problem, &list)
        }
        done => done,
    }
}

/// The operation that puts many users into a group.
pub fn joining() -> Option<&'static Op> {
    directory::of_shape(&USER).and_then(|users| Act::AddTo.op(users))
}

/// The form that puts these users into a group, and shows its members then: where it goes, and its fields.
pub fn joining_form(visit: &Visit<'_>, group: &str, ids: &[String]) -> (String, Vec<Value>) {
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

/// The address of the list that the rows were chosen in.
fn back(visit: &Visit<'_>, resource: &Resource) -> String {
    let address = visit.address(resource);
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(kept(&visit.form)).finish();
    if query.is_empty() { address } else { format!("{address}?{query}") }
}

/// The resource whose rows hold others by their links.
fn groups() -> Option<&'static Resource> {
    directory::of_shape(&GROUP)
}
