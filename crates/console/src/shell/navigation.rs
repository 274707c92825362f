//! The navigation: what the person's roles let be listed, and nothing else.

use std::sync::LazyLock;

use chancery_management::{
    self as management,
    application::{APPLICATION_GROUP, APPLICATION_USER},
    cert_store::CERT_STORE,
    claim_rule::CLAIM_RULE,
    client_app::{CLIENT_APP, refusal::CLIENT_APP_REFUSAL},
    custom_asset::CUSTOM_ASSET,
    custom_view::CUSTOM_VIEW,
    customer::CUSTOMER,
    directory_refusal::DIRECTORY_REFUSAL,
    identity_replacement::IDENTITY_REPLACEMENT,
    idp_instance::IDP_INSTANCE,
    mfa_instance::MFA_INSTANCE,
    option::OPTION,
    role_assignment::ROLE_ASSIGNMENT,
    sign_in::{
        factor::SIGN_IN_FACTOR, grant::SIGN_IN_GRANT, record::SIGN_IN_RECORD, session::SIGN_IN_SESSION,
    },
    subscription::SUBSCRIPTION,
    tenant::TENANT,
};
use chancery_resource::{Permit, Shape};
use chancery_userstore::{self as store, group::GROUP, scim_token::SCIM_TOKEN, user::USER};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    configured,
    directory::{self, OperationName, Resource, encoded, operation_name},
    presentation::Presentation,
    visit::Visit,
};

/// A group of the navigation: its name in the texts, and the shapes of its resources.
type Group = (&'static str, &'static [&'static Shape]);

/// The groups, in their order.
static GROUPS: [Group; 6] = [
    ("people", &[&USER, &GROUP]),
    ("applications", &[&CLIENT_APP, &CLAIM_RULE, &IDP_INSTANCE, &MFA_INSTANCE, &CERT_STORE]),
    (
        "organisation",
        &[&CUSTOMER, &SUBSCRIPTION, &TENANT, &ROLE_ASSIGNMENT, &APPLICATION_USER, &APPLICATION_GROUP],
    ),
    (
        "trust",
        &[
            &store::audit_trail::AUDIT_TRAIL,
            &management::audit_trail::AUDIT_TRAIL,
            &IDENTITY_REPLACEMENT,
            &SIGN_IN_RECORD,
            &SIGN_IN_SESSION,
            &SIGN_IN_GRANT,
            &SIGN_IN_FACTOR,
            &CLIENT_APP_REFUSAL,
            &DIRECTORY_REFUSAL,
        ],
    ),
    ("appearance", &[&CUSTOM_VIEW, &CUSTOM_ASSET]),
    (
        "system",
        &[
            &OPTION,
            &SCIM_TOKEN,
            &store::event_subscription::EVENT_SUBSCRIPTION,
            &management::event_subscription::EVENT_SUBSCRIPTION,
        ],
    ),
];

/// A page of the chosen user store that no resource has by itself: its group, operation, name in addresses, and icon. Its
/// label in the texts has the name of the address.
const OF_STORE: [(&str, OperationName, &str, &str); 2] = [
    ("people", operation_name!("PasskeyReadiness"), "readiness", "fingerprint-pattern"),
    ("people", operation_name!("ListRecoveryTransactions"), "recovery", "rotate-ccw"),
];

/// The names of the resources of the navigation, in its order.
static ORDER: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let shapes = GROUPS.iter().flat_map(|(_, shapes)| shapes.iter());
    shapes.filter_map(|shape| directory::of_shape(shape)).map(|resource| resource.name).collect()
});

/// How soon people look for a resource: by its place in the navigation, those that have none last.
pub fn position(name: &str) -> usize {
    ORDER.iter().position(|known| *known == name).unwrap_or(usize::MAX)
}

/// What a place is called: some by what people look for there.
pub fn label(visit: &Visit<'_>, resource: &Resource) -> String {
    let own = resource.presentation.label.map(|key| visit.words.page(key).to_owned());
    own.unwrap_or_else(|| visit.words.resources(resource.name))
}

/// What a list is called: there are two trails, the user store's and that of the configuration.
pub fn list_label(visit: &Visit<'_>, resource: &Resource) -> String {
    let own = resource.presentation.list_label.map(|key| visit.words.page(key).to_owned());
    own.unwrap_or_else(|| label(visit, resource))
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
    for (group, shapes) in &GROUPS {
        let (group, mut items) = (*group, Vec::new());
        for resource in shapes.iter().filter_map(|shape| directory::of_shape(shape)) {
            if visit.may(resource.list).is_none() {
                continue;
            }
            let address = visit.address(resource);
            let is_current = path == address || path.starts_with(&format!("{address}/"));
            let Presentation { icon, letter: key, place, .. } = *resource.presentation;
            let (href, label) = match place {
                Some((href, key)) => (href.to_owned(), visit.words.page(key).to_owned()),
                None => (address, list_label(visit, resource)),
            };
            let is_current = is_current || path == href;
            items.push(Place { label, href, icon, is_current, key });
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
        if group == "system" && configured::is_offered(visit) {
            let (label, href) = (visit.words.page("configuration").to_owned(), configured::HERE.to_owned());
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
        _ => directory::of_shape(&USER).map_or("", |users| users.name),
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
    let instances = directory::of_shape(&IDP_INSTANCE).filter(|_| visit.visitor.has_more_stores);
    let more = instances
        .filter(|instances| visit.may(instances.list).is_some())
        .map(|instances| visit.address(instances));
    let store = visit
        .store
        .as_ref()
        .map(|name| json!({ "name": name, "choices": choices(visit, name), "more": more }));
    json!({ "home": "/console", "is_home": visit.path() == "/console", "store": store, "groups": groups })
}
