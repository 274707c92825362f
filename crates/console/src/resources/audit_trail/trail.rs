//! The list of an audit trail, filtered by actor, item type, action and time.

use chancery_record::parse_timestamp;
use serde_json::{Value, json};

use crate::shell::{
    directory::{self, Resource},
    fields::moment,
    presentation::Names,
    visit::{Visit, one},
    words::raised,
};

/// The query parameters of the filters.
const FILTERS: [&str; 5] = ["who", "area", "action", "from", "to"];
/// The actions on an item.
const ACTIONS: [&str; 3] = ["Added", "Modified", "Deleted"];
/// How far the numbers of entries may be ahead of their times, in ms: the clocks of several processes differ.
const AHEAD_MS: i64 = 86_400_000;

fn given<'a>(parameters: &'a [(String, String)], name: &str) -> Option<&'a str> {
    one(parameters, name).map(str::trim).filter(|text| !text.is_empty())
}

/// Whether the query contains a filter.
pub fn is_filtered(visit: &Visit<'_>) -> bool {
    FILTERS.iter().any(|name| given(&visit.query, name).is_some())
}

/// The filter conditions of the query.
pub fn conditions(parameters: &[(String, String)]) -> Vec<String> {
    let mut all = Vec::new();
    for (name, field) in [("area", "area"), ("action", "action")] {
        all.extend(given(parameters, name).map(|value| format!("{field} eq {}", json!(value))));
    }
    // if a client app acted for a person, the entry contains both ids
    all.extend(given(parameters, "who").map(|who| {
        let (is, begins) = (json!(who), json!(format!("{who}|")));
        format!("(user eq {is} or user sw {begins})")
    }));
    // numbers contain the time, and are indexed
    if let Some((text, ms)) = at(parameters, "from") {
        all.push(format!("timestamp ge {text} and id ge {}", ms.saturating_mul(1000)));
    }
    if let Some((text, ms)) = at(parameters, "to") {
        all.push(format!(
            "timestamp le {text} and id le {}",
            ms.saturating_add(AHEAD_MS).saturating_mul(1000)
        ));
    }
    all
}

/// A timestamp of the query, as a filter literal and in ms since 1970. The operation reports an invalid one.
fn at(parameters: &[(String, String)], name: &str) -> Option<(Value, i64)> {
    let value = moment(given(parameters, name)?);
    let ms = value.as_str().and_then(parse_timestamp).map_or(0, |moment| moment.0);
    Some((value, ms))
}

/// The form of the filters, for a trail.
pub fn form(visit: &Visit<'_>, resource: &Resource, names: &Names) -> Value {
    let words = visit.words;
    let areas = directory::resources().iter().filter(|one| one.is_of_store == resource.is_of_store);
    let mut areas: Vec<(&str, String)> =
        areas.map(|one| (one.shape.name, raised(&words.resource(one.shape.name)))).collect();
    areas.sort_by_key(|(_, label)| label.to_lowercase());
    areas.dedup();
    let actions: Vec<(&str, String)> =
        ACTIONS.iter().map(|action| (*action, words.choice(action).to_owned())).collect();
    let who = given(&visit.query, "who").unwrap_or_default();
    let shown = names.get(who).map_or(who, |(name, _)| name.as_str());
    let fields = [
        field(visit, "who", "reference", shown, &[]),
        field(visit, "area", "choice", "", &areas),
        field(visit, "action", "choice", "", &actions),
        field(visit, "from", "moment", "", &[]),
        field(visit, "to", "moment", "", &[]),
    ];
    let hidden: Vec<Value> =
        visit.parameter("of").map(|of| json!({ "name": "of", "value": of })).into_iter().collect();
    json!({ "fields": fields, "hidden": hidden, "is_open": is_filtered(visit), "clear": visit.path() })
}

fn field(visit: &Visit<'_>, name: &str, control: &str, shown: &str, choices: &[(&str, String)]) -> Value {
    let words = visit.words;
    let value = given(&visit.query, name).unwrap_or_default();
    let mut options: Vec<Value> = choices
        .iter()
        .map(|(sent, label)| json!({ "value": sent, "label": label, "is_current": *sent == value }))
        .collect();
    if control == "choice" {
        options.insert(0, json!({ "value": "", "label": words.page("any"), "is_current": value.is_empty() }));
    }
    let search = (control == "reference").then_some("/console/find?in=ApplicationUser,ClientApp");
    json!({
        "name": name, "id": format!("f-{name}"), "label": words.page(&format!("filter_{name}")), "hint": "",
        "control": control, "value": value, "shown": shown, "choices": options, "required": false, "disabled": false,
        "error": "", "max_length": null, "min": null, "max": null, "href": null, "search": search,
        "autocomplete": "off", "is_wide": false,
    })
}
