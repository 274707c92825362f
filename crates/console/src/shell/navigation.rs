//! The navigation: the lists that the user's roles allow.

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
    configuration_kinds,
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

/// Pages of the selected user store that belong to no resource: group, operation, name in URLs, and icon. The name is the
/// key of the label, too.
const OF_STORE: [(&str, OperationName, &str, &str); 2] = [
    ("people", operation_name!("PasskeyReadiness"), "readiness", "fingerprint-pattern"),
    ("people", operation_name!("ListRecoveryTransactions"), "recovery", "rotate-ccw"),
];

/// The names of the resources of the navigation, in its order.
static ORDER: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let shapes = GROUPS.iter().flat_map(|(_, shapes)| shapes.iter());
    shapes.filter_map(|shape| directory::of_shape(shape)).map(|resource| resource.name).collect()
});

/// The position of a resource in the navigation; resources without an entry come last.
pub fn position(name: &str) -> usize {
    ORDER.iter().position(|known| *known == name).unwrap_or(usize::MAX)
}

/// The label of the entry of a resource; some resources have their own text.
pub fn label(visit: &Visit<'_>, resource: &Resource) -> String {
    let own = resource.presentation.label.map(|key| visit.words.page(key).to_owned());
    own.unwrap_or_else(|| visit.words.resources(resource.name))
}

/// The heading of a list: there are two audit trails, that of the user store and that of the configuration.
pub fn list_label(visit: &Visit<'_>, resource: &Resource) -> String {
    let own = resource.presentation.list_label.map(|key| visit.words.page(key).to_owned());
    own.unwrap_or_else(|| label(visit, resource))
}

/// An entry of the navigation, in the form that templates expect.
#[derive(Clone, Serialize)]
pub struct NavigationEntry {
    /// Its label.
    pub label: String,
    /// Its URL.
    pub href: String,
    /// Its icon.
    pub icon: &'static str,
    /// Whether it leads to the current page.
    pub is_current: bool,
    /// The key of the shortcut G, then this letter.
    pub key: Option<char>,
}

/// The entries of the navigation, by group: the lists that the user may read.
pub fn entries(visit: &Visit<'_>) -> Vec<(&'static str, Vec<NavigationEntry>)> {
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
            let Presentation { icon, letter: key, navigation_target, .. } = *resource.presentation;
            let (href, label) = match navigation_target {
                Some((href, key)) => (href.to_owned(), visit.words.page(key).to_owned()),
                None => (address, list_label(visit, resource)),
            };
            let is_current = is_current || path == href;
            items.push(NavigationEntry { label, href, icon, is_current, key });
        }
        for (_, operation, name, icon) in OF_STORE.iter().filter(|(of, ..)| *of == group) {
            let (Some(store), Some(_)) = (&visit.store, visit.may(directory::of_name(*operation))) else {
                continue;
            };
            let href = format!("/console/store/{}/{name}", encoded(store));
            let is_current = path == href || path.starts_with(&format!("{href}/"));
            items.push(NavigationEntry {
                label: visit.words.page(name).to_owned(),
                href,
                icon,
                is_current,
                key: None,
            });
        }
        if group == "system" && visit.visitor.has(Permit::SystemAdmin) {
            let (label, href) = (visit.words.page("health").to_owned(), "/console/health".to_owned());
            items.push(NavigationEntry {
                label,
                is_current: path == href,
                href,
                icon: "heart-pulse",
                key: None,
            });
        }
        if group == "system" && configuration_kinds::is_offered(visit) {
            let (label, href) =
                (visit.words.page("configuration").to_owned(), configuration_kinds::PATH.to_owned());
            items.push(NavigationEntry {
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

/// The user stores to switch to: each links to the same list there, or to the users if the page is about one row.
fn choices(visit: &Visit<'_>, current: &str) -> Vec<Value> {
    let segments: Vec<&str> = visit.path().split('/').collect();
    let page = match segments.as_slice() {
        ["", "console", "store", _, resource, ..] => *resource,
        _ => directory::of_shape(&USER).map_or("", |users| users.name),
    };
    let all = visit.visitor.stores.iter().map(|name| {
        let href = format!("/console/store/{}/{page}", encoded(name));
        json!({ "name": name, "href": href, "is_current": name == current })
    });
    all.collect()
}

/// The template context of the navigation.
pub fn of(visit: &Visit<'_>) -> Value {
    let groups: Vec<Value> = entries(visit)
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
