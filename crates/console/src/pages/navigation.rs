//! The navigation: what the person's roles let be listed, and nothing else.

use chancery_resource::Permit;
use serde::Serialize;
use serde_json::{Value, json};

use super::{all_settings, configuration};
use crate::{
    directory::{self, OperationName, Resource, encoded, operation_name},
    visit::Visit,
};

/// A group of the navigation: its name in the texts, and its resources with whether they are in a user store, and icons.
type Group = (&'static str, &'static [(&'static str, bool, &'static str)]);

/// The groups, in their order.
const GROUPS: [Group; 6] = [
    ("people", &[("User", true, "user-round"), ("Group", true, "users-round")]),
    (
        "applications",
        &[
            ("ClientApp", false, "app-window"),
            ("ClaimRule", false, "split"),
            ("IdpInstance", false, "log-in"),
            ("MfaInstance", false, "shield-check"),
            ("CertStore", false, "badge-check"),
        ],
    ),
    (
        "organisation",
        &[
            ("Customer", false, "building-2"),
            ("Subscription", false, "package"),
            ("Tenant", false, "door-open"),
            ("RoleAssignment", false, "user-round-cog"),
            ("ApplicationUser", false, "user-round"),
            ("ApplicationGroup", false, "users-round"),
        ],
    ),
    (
        "trust",
        &[
            ("CustomAuditTrail", true, "scroll-text"),
            ("CustomAuditTrail", false, "scroll-text"),
            ("IdentityReplacement", false, "repeat-2"),
            ("SignInRecord", false, "history"),
            ("SignInSession", false, "globe"),
            ("SignInGrant", false, "key-round"),
            ("SignInFactor", false, "shield-check"),
            ("ClientAppRefusal", false, "triangle-alert"),
            ("DirectoryRefusal", false, "triangle-alert"),
        ],
    ),
    ("appearance", &[("CustomView", false, "panels-top-left"), ("CustomAsset", false, "image")]),
    (
        "system",
        &[
            ("Option", false, "sliders-horizontal"),
            ("ScimToken", true, "key-round"),
            ("EventSubscription", true, "globe"),
            ("EventSubscription", false, "globe"),
        ],
    ),
];

/// A page of the chosen user store that no resource has by itself: its group, operation, name in addresses, and icon. Its
/// label in the texts has the name of the address.
const OF_STORE: [(&str, OperationName, &str, &str); 2] = [
    ("people", operation_name!("PasskeyReadiness"), "readiness", "fingerprint-pattern"),
    ("people", operation_name!("ListRecoveryTransactions"), "recovery", "rotate-ccw"),
];

/// The letter that leads to a resource after G.
fn key(name: &str) -> Option<char> {
    match name {
        "User" => Some('u'),
        "ClientApp" => Some('a'),
        "CustomAuditTrail" => Some('t'),
        _ => None,
    }
}

/// The icon of a resource.
pub fn icon(name: &str) -> &'static str {
    let all = GROUPS.iter().flat_map(|(_, places)| places.iter());
    all.clone().find(|(known, ..)| *known == name).map_or("tag", |(.., icon)| icon)
}

/// How soon people look for a resource: by its place in the navigation, those that have none last.
pub fn position(name: &str) -> usize {
    let mut all = GROUPS.iter().flat_map(|(_, places)| places.iter());
    all.position(|(known, ..)| *known == name).unwrap_or(usize::MAX)
}

/// What a place is called: two of them by what people look for there.
pub fn label(visit: &Visit<'_>, name: &str) -> String {
    match name {
        "CustomAuditTrail" => visit.words.page("audit_trail").to_owned(),
        "RoleAssignment" => visit.words.page("administrators").to_owned(),
        _ => visit.words.resources(name),
    }
}

/// What a list is called: there are two trails, the user store's and that of the configuration.
pub fn trail_label(visit: &Visit<'_>, resource: &Resource) -> String {
    if resource.name == "CustomAuditTrail" && !resource.is_of_store {
        return visit.words.page("configuration_trail").to_owned();
    }
    label(visit, resource.name)
}

/// A place of the navigation, as templates take it.
#[derive(Clone, Serialize)]
pub struct Place {
    /// What it is called.
    pub label: String,
    /// Its address.
    pub href: String,
    /// Its icon.
    pub icon: &'static str,
    /// Whether it is where the person is.
    pub is_current: bool,
    /// The letter that leads there after G.
    pub key: Option<char>,
}

/// The places of the navigation, by groups: what the person may list.
pub fn places(visit: &Visit<'_>) -> Vec<(&'static str, Vec<Place>)> {
    let path = visit.path();
    let mut groups = Vec::new();
    for (group, places) in GROUPS {
        let mut items = Vec::new();
        for (name, is_of_store, icon) in places {
            let Some(resource) = directory::find(name, *is_of_store) else { continue };
            if visit.may(resource.list).is_none() {
                continue;
            }
            let address = visit.address(resource);
            let is_current = path == address || path.starts_with(&format!("{address}/"));
            // settings are looked for by whose they are
            let (href, label) = if resource.name == all_settings::NAME {
                (all_settings::HERE.to_owned(), visit.words.page("settings").to_owned())
            } else {
                (address, trail_label(visit, resource))
            };
            let is_current = is_current || path == href;
            items.push(Place { label, href, icon, is_current, key: key(name) });
        }
        for (_, operation, name, icon) in OF_STORE.iter().filter(|(of, ..)| *of == group) {
            let (Some(store), Some(_)) = (&visit.store, visit.may(directory::of_name(*operation))) else {
                continue;
            };
            let href = format!("/console/store/{}/{name}", encoded(store));
            let is_current = path == href || path.starts_with(&format!("{href}/"));
            items.push(Place { label: visit.words.page(name).to_owned(), href, icon, is_current, key: None });
        }
        if group == "system" && visit.visitor.has(Permit::SystemAdmin) {
            let (label, href) = (visit.words.page("health").to_owned(), "/console/health".to_owned());
            items.push(Place { label, is_current: path == href, href, icon: "heart-pulse", key: None });
        }
        if group == "system" && configuration::is_offered(visit) {
            let (label, href) =
                (visit.words.page("configuration").to_owned(), configuration::HERE.to_owned());
            items.push(Place {
                label,
                is_current: path == href,
                href,
                icon: "git-compare-arrows",
                key: None,
            });
        }
        if !items.is_empty() {
            groups.push((group, items));
        }
    }
    groups
}

/// The stores that can be changed to: the same page there, or the users where it is a page of one row.
fn choices(visit: &Visit<'_>, current: &str) -> Vec<Value> {
    let segments: Vec<&str> = visit.path().split('/').collect();
    let place = match segments.as_slice() {
        ["", "console", "store", _, resource, ..] => *resource,
        _ => "User",
    };
    let all = visit.visitor.stores.iter().map(|name| {
        let href = format!("/console/store/{}/{place}", encoded(name));
        json!({ "name": name, "href": href, "is_current": name == current })
    });
    all.collect()
}

/// The navigation as templates take it.
pub fn of(visit: &Visit<'_>) -> Value {
    let groups: Vec<Value> = places(visit)
        .into_iter()
        .map(|(group, items)| json!({ "label": visit.words.group(group), "items": items }))
        .collect();
    let instances = directory::find("IdpInstance", false).filter(|_| visit.visitor.has_more_stores);
    let more = instances
        .filter(|instances| visit.may(instances.list).is_some())
        .map(|instances| visit.address(instances));
    let store = visit
        .store
        .as_ref()
        .map(|name| json!({ "name": name, "choices": choices(visit, name), "more": more }));
    json!({ "home": "/console", "is_home": visit.path() == "/console", "store": store, "groups": groups })
}
