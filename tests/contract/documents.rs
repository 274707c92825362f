//! The OpenAPI documents: a change of the interface is a visible difference.

use std::{collections::BTreeMap, fmt::Write as _};

use chancery::services;
use chancery_resource::{Permit, ROLES};
use chancery_testkit::on_both_engines;
use chancery_web::event_rows;

#[test]
fn are_as_they_were() {
    for service in services() {
        let document = chancery_web::document(service, "");
        insta::assert_snapshot!(
            format!("{}-{}", service.name, service.version),
            serde_json::to_string_pretty(&document).unwrap()
        );
    }
}

/// The documents list each type that can be sent, by one schema.
#[test]
fn every_type_of_events_is_a_webhook() {
    let documents: Vec<_> = services().iter().map(|service| chancery_web::document(service, "")).collect();
    for row in event_rows().iter().filter(|row| !row.kind.is_empty()) {
        let mut listed =
            documents.iter().filter_map(|document| document["webhooks"].get(row.kind)).peekable();
        assert!(listed.peek().is_some(), "{}", row.kind);
        for webhook in listed {
            let body = &webhook["post"]["requestBody"]["content"]["application/cloudevents+json"];
            assert_eq!(body["schema"]["$ref"], "#/components/schemas/Event");
        }
    }
}

/// The description of the roles in `docs/roles.md`.
fn about_roles() -> String {
    let lines = ROLES.iter().map(|line| {
        let given_at: Vec<&str> = line.given_at.iter().map(|kind| kind.noun()).collect();
        let permits: Vec<String> = line.permits.iter().map(|permit| format!("{permit:?}")).collect();
        let implied_by = line.implied_by.map_or("-", |role| role.name());
        let permits = if permits.is_empty() { "-".to_owned() } else { permits.join(", ") };
        format!("| {} | {} | {implied_by} | {permits} |\n", line.role.name(), given_at.join(", "))
    });
    "# Roles\n\n\
        A role is given at something, and covers that and everything below it. Its holder may call there the operations\n\
        for which it, or a role that it implies, is the lowest role. A caller can give only roles that the caller has, or\n\
        that a role of the caller implies. A test makes this file from the table in `crates/resource/src/declare/role.rs`.\n\n\
        | Role | Given at | Implied by | Lowest role for |\n|---|---|---|---|\n"
        .to_owned()
        + &lines.collect::<String>()
        + &about_operations()
}

/// Who may call an operation, by the lowest roles.
fn callers_of(permit: Permit) -> String {
    match permit {
        Permit::Public => return "anyone, with a proof in the body".to_owned(),
        Permit::Person => return "the person, with the person's own token".to_owned(),
        Permit::Oneself => {
            return "administrators whose scope covers it, and the person it is about".to_owned();
        }
        _ => {}
    }
    let roles = ROLES.iter().filter(|line| line.permits.contains(&permit));
    roles.map(|line| line.role.name()).collect::<Vec<_>>().join(", ")
}

/// The operations of each resource by who may call them, for each service of version 2.
fn about_operations() -> String {
    let mut text = "\n## Operations\n\n\
        Who may call each operation of version 2: the roles named here, where they cover the item, and those that imply them. In\n\
        addition, an operation refuses what would give more rights than its caller has ([the rules](contract/roles.md)).\n"
        .to_owned();
    for service in services().iter().filter(|service| service.version == "v2") {
        let mut operations: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
        for op in service.all() {
            operations.entry((op.shape.name, callers_of(op.permit))).or_default().push(op.name);
        }
        write!(text, "\n### {}\n\n| Resource | Lowest role | Operations |\n|---|---|---|\n", service.name)
            .unwrap();
        for ((resource, callers), names) in operations {
            writeln!(text, "| {resource} | {callers} | {} |", names.join(", ")).unwrap();
        }
    }
    text
}

#[test]
fn roles_are_as_they_were() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/roles.md");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(path, about_roles()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), about_roles(), "INSTA_UPDATE=always writes it anew");
}

on_both_engines! {
    async fn are_served_to_everybody(world: World) {
        for name in ["userstore-v2", "management-v2"] {
            let document = world.anonymous.get(&format!("/openapi/{name}.json")).await.is(200).json();
            assert_eq!(document["openapi"], "3.1.0");
        }
        let page = world.anonymous.get("/openapi").await.is(200);
        assert!(page.header("content-security-policy").is_some());
        world.anonymous.get("/openapi/nothing.json").await.problem(404, "not-found");
        let kind = world.anonymous.get("/problems/concurrency-conflict").await.is(200).json();
        assert_eq!(kind["status"], 409);
    }
}
