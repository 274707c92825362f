//! The kinds of the configuration as they follow from the management service, and documents against rows of it.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::{BTreeMap, BTreeSet};

use chancery_configuration::{
    ChangeKind, Document, Kind, LEFT_OUT, MEMBERS_LEFT_OUT, Memory, Plan, PlanInput, Problem, State, adopt,
    batches, deletions, export, kinds, links, plan, read_documents, trials,
};
use chancery_management::SERVICE;
use chancery_record::Kind as Form;
use chancery_resource::Op;
use serde_json::{Value, json};

fn operations() -> Vec<&'static Op> {
    SERVICE.all().collect()
}

#[test]
fn each_kind_comes_after_those_that_it_needs() {
    let kinds = kinds(&operations());
    for (index, kind) in kinds.iter().enumerate() {
        assert!(!kind.key.is_empty(), "nothing tells one {} from another", kind.name);
        let needed = kinds.iter().skip(index + 1).find(|later| kind.needs(later));
        assert!(needed.is_none(), "{} needs {}", kind.name, needed.unwrap().name);
    }
    let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
    let at = |name: &str| names.iter().position(|known| *known == name).unwrap();
    assert!(at("Customer") < at("Subscription") && at("Subscription") < at("Tenant"), "{names:?}");
    assert!(at("ClientApp") < at("ClaimRule"), "a rule lists its client apps: {names:?}");
}

/// Every resource of the service is configuration, or there is a reason why it is none; so is every id that it holds.
#[test]
fn every_resource_that_is_left_out_has_a_reason() {
    let operations = operations();
    let kinds = kinds(&operations);
    let mut wrong = Vec::new();
    for op in &operations {
        let name = op.shape.name;
        let is_kind = kinds.iter().any(|kind| kind.name == name);
        let is_left_out = LEFT_OUT.iter().any(|(left_out, _)| *left_out == name);
        if is_kind == is_left_out {
            wrong.push(format!("{name}: a kind, or in LEFT_OUT with its reason"));
        }
    }
    for (name, reason) in LEFT_OUT {
        if reason.is_empty() || !operations.iter().any(|op| op.shape.name == *name) {
            wrong.push(format!("{name}: stale in LEFT_OUT"));
        }
    }
    for kind in &kinds {
        for field in kind.members().filter(|field| matches!(field.kind, Form::Id)) {
            if kind.reference(field).is_none() {
                wrong.push(format!("{} {}: whose id is it?", kind.name, field.wire()));
            }
        }
        for relation in kind.shape.relations {
            let member = (kind.name, relation.name);
            let is_left_out = MEMBERS_LEFT_OUT.iter().any(|(kind, name, _)| (*kind, *name) == member);
            if is_left_out == kinds.iter().any(|other| other.name == relation.target.name) {
                wrong.push(format!("{member:?}: of a kind, or in MEMBERS_LEFT_OUT"));
            }
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Each set of pairs is a member of one of its two sides, and none is lost.
#[test]
fn each_set_belongs_to_one_side() {
    let kinds = kinds(&operations());
    let mut sides: Vec<_> = kinds
        .iter()
        .flat_map(|kind| kind.sets.iter().map(|set| set.relation))
        .map(|relation| {
            let mut columns = [relation.own, relation.other];
            columns.sort_unstable();
            (relation.table, columns)
        })
        .collect();
    let count = sides.len();
    sides.sort_unstable();
    sides.dedup();
    assert_eq!(sides.len(), count);
    for table in
        ["tenant_client_app", "tenant_idp_instance", "client_app_claim_rule", "client_app_token_exchange"]
    {
        assert!(sides.iter().any(|(known, _)| *known == table), "{table}: {sides:?}");
    }
}

fn id(number: u8) -> String {
    format!("01a20629-644b-7002-8980-dbcc4960bb{number:02x}")
}

/// A server with one tenant, an app of it and a secret option, as the interface shows them.
fn server(kinds: &[Kind]) -> State<'_> {
    let mut state = State::new(kinds);
    for (index, kind) in kinds.iter().enumerate() {
        let rows = match kind.name {
            "Customer" => {
                json!([{ "id": id(1), "name": "Default", "address": null, "concurrencyToken": "a" }])
            }
            "Subscription" => {
                json!([{ "id": id(2), "name": "Default", "status": "Active", "customerId": id(1), "concurrencyToken": "b" }])
            }
            "Tenant" => json!([{ "id": id(3), "name": "North/South", "isActive": true, "description": null,
                "subscriptionId": id(2), "concurrencyToken": "c", "idpInstances": [], "mfaInstances": [],
                "clientApps": [{ "id": id(4), "name": "Web" }] }]),
            "ClientApp" => {
                json!([{ "id": id(4), "name": "Web", "subscriptionId": id(2), "concurrencyToken": "d",
                "tenants": [{ "id": id(3), "name": "North/South" }], "claimRules": [] }])
            }
            "Option" => json!([
                { "id": id(5), "name": "ClientSecret", "value": "hush", "applyToTenantId": id(3), "concurrencyToken": "e" },
                { "id": id(6), "name": "Colour", "value": "red", "applyToTenantId": id(3), "concurrencyToken": "f" }]),
            "CustomView" => {
                json!([{ "location": format!("/views/tenant/{}/SignIn", id(3)), "content": "<p>", "concurrencyToken": "g" }])
            }
            _ => json!([]),
        };
        state.set(index, rows).unwrap();
    }
    state
}

struct Set {
    memory: Memory,
    secrets: BTreeMap<String, String>,
    prune: bool,
}

impl Set {
    fn new() -> Self {
        Self { memory: Memory::default(), secrets: BTreeMap::new(), prune: false }
    }

    fn plan(&self, state: &State<'_>, documents: &[Document]) -> Result<Plan, Vec<Problem>> {
        let mut next = 0x80;
        let mut new_id = || {
            next += 1;
            id(next)
        };
        let known = PlanInput { memory: &self.memory, secrets: &self.secrets, prune: self.prune };
        plan(state, documents, &known, &mut new_id)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
fn document(kind: &str, members: Value) -> Document {
    read_documents(json!({ "kind": kind, "members": members }), 0).unwrap().remove(0)
}

fn at(kinds: &[Kind], name: &str) -> usize {
    kinds.iter().position(|kind| kind.name == name).unwrap()
}

#[test]
fn an_export_has_no_differences() {
    let kinds = kinds(&operations());
    let state = server(&kinds);
    let documents = export(&state).unwrap();
    let text = serde_json::to_string(&documents.iter().map(Document::to_json).collect::<Vec<_>>()).unwrap();
    assert!(!text.contains("hush") && !text.contains("concurrencyToken") && !text.contains(&id(3)), "{text}");
    assert!(text.contains("/views/tenant/{Default/Default/North~1South}/SignIn"), "{text}");
    let read = read_documents(serde_json::from_str(&text).unwrap(), 0).unwrap();
    let plan = Set::new().plan(&state, &read).unwrap();
    assert!(plan.is_empty(), "{plan:#?}");
}

#[test]
fn new_rows_are_created_by_their_names_in_one_plan() {
    let kinds = kinds(&operations());
    let state = server(&kinds);
    let documents = [
        document("Tenant", json!({ "name": "East", "subscriptionId": "Default" })),
        document("Option", json!({ "name": "Colour", "value": "blue", "applyToTenantId": "East" })),
        document("ClientApp", json!({ "name": "Shop" })),
        document(
            "ClaimRule",
            json!({ "name": "roles", "ruleType": "Filter", "ruleLevel": "ClientApp", "clientApps": ["Shop"] }),
        ),
        document(
            "ClientAppSecret",
            json!({ "name": "first", "clientAppId": "Shop", "secret": { "secret": "SHOP" } }),
        ),
    ];
    let refused = Set::new().plan(&state, &documents).unwrap_err();
    assert_eq!(
        refused.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["/4/members/secret: the secret SHOP is not given"]
    );
    let set =
        Set { secrets: BTreeMap::from([("SHOP".to_owned(), "a long secret".to_owned())]), ..Set::new() };
    let mut plan = set.plan(&state, &documents).unwrap();
    assert_eq!(plan.counts(), [5, 0, 0]);
    assert!(!format!("{plan:?}").contains("a long secret"));
    let of = |plan: &Plan, name: &str| {
        batches(&kinds[at(&kinds, name)], &plan.changes[at(&kinds, name)], &set.secrets)
    };
    let app = of(&plan, "ClientApp")[0].body[0].clone();
    let rule = of(&plan, "ClaimRule")[0].body[0].clone();
    assert_eq!(rule["clientApps"], json!([{ "id": app["id"] }]));
    let secret = of(&plan, "ClientAppSecret").remove(0);
    assert_eq!(
        (secret.body[0]["secret"].as_str(), secret.body[0]["clientAppId"].as_str()),
        (Some("a long secret"), app["id"].as_str())
    );
    // rows that depend on new rows cannot be tried in advance
    let trials =
        |name: &str| trials(&kinds[at(&kinds, name)], &plan.changes[at(&kinds, name)], &set.secrets).len();
    assert_eq!(["Tenant", "ClientApp", "ClaimRule", "Option"].map(trials), [1, 1, 0, 0]);
    // the server makes the options of a tenant by itself
    let tenant = of(&plan, "Tenant")[0].body[0]["id"].clone();
    let index = at(&kinds, "Option");
    assert!(plan.can_adopt(index));
    let now = json!([{ "id": id(9), "name": "Colour", "value": "red", "applyToTenantId": tenant, "concurrencyToken": "z" }]);
    let created = BTreeSet::from([tenant.as_str().unwrap().to_owned()]);
    adopt(&kinds[index], &mut plan.changes[index], now, &created).unwrap();
    let call = of(&plan, "Option").remove(0);
    assert_eq!(
        (call.method, &call.body[0]["id"], &call.body[0]["value"]),
        ("PUT", &json!(id(9)), &json!("blue"))
    );
    assert_eq!(call.body[0]["concurrencyToken"], "z");
}

#[test]
fn a_different_row_is_changed_by_its_token() {
    let kinds = kinds(&operations());
    let state = server(&kinds);
    let documents = [
        document("Tenant", json!({ "name": "north/south", "description": "all of it" })),
        document("ClientApp", json!({ "name": "Web", "tenants": [] })),
        document("Option", json!({ "name": "Colour", "applyToTenantId": "North~1South", "value": "red" })),
    ];
    let plan = Set::new().plan(&state, &documents).unwrap();
    assert_eq!(plan.counts(), [0, 2, 0]);
    let (tenant, app) = (at(&kinds, "Tenant"), at(&kinds, "ClientApp"));
    let call = batches(&kinds[tenant], &plan.changes[tenant], &BTreeMap::new()).remove(0);
    let body = &call.body[0];
    assert_eq!(
        (call.method, &body["concurrencyToken"], &body["description"]),
        ("PUT", &json!("c"), &json!("all of it"))
    );
    assert_eq!(body["name"], "north/south");
    assert!(batches(&kinds[app], &plan.changes[app], &BTreeMap::new()).is_empty(), "its own members stay");
    let call = links(&plan.changes[app]).remove(0);
    assert_eq!((call.method, &call.body), ("DELETE", &json!({ "relatedIds": [id(3)] })));
}

/// A location in any spelling is normalized as on the server.
#[test]
fn a_location_is_normalized_as_on_the_server() {
    let kinds = kinds(&operations());
    let state = server(&kinds);
    for location in ["/views/tenant/{ North~1South }/SignIn", "views/tenant/{North~1South}/SignIn"] {
        let documents = [document("CustomView", json!({ "location": location, "content": "<p>" }))];
        let plan = Set::new().plan(&state, &documents).unwrap();
        assert!(plan.is_empty(), "{location}: {plan:#?}");
    }
}

/// A document without a member that distinguishes rows is refused where it would be ambiguous.
#[test]
fn an_ambiguous_document_is_refused() {
    let kinds = kinds(&operations());
    let state = server(&kinds);
    let secret = |name: Value| {
        document(
            "ClientAppSecret",
            json!({ "clientAppId": "Web", "name": name, "expiry": "2036-01-02T03:04:05Z" }),
        )
    };
    let plan = Set::new().plan(&state, &[secret(Value::Null)]).unwrap();
    assert_eq!(plan.counts(), [1, 0, 0]);
    for documents in
        [[secret(Value::Null), secret(json!("first"))], [secret(json!("first")), secret(Value::Null)]]
    {
        let problems = Set::new().plan(&state, &documents).unwrap_err();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let is_expected = |detail: &&String| detail.ends_with("of which one is new: give name");
        assert_eq!(problems.iter().filter(is_expected).count(), 1, "{problems:?}");
    }
}

#[test]
fn secrets_are_sent_where_they_differ_and_shown_by_name() {
    let kinds = kinds(&operations());
    let state = server(&kinds);
    let option = |value: Value| {
        [document(
            "Option",
            json!({ "name": "ClientSecret", "applyToTenantId": "North~1South", "value": value }),
        )]
    };
    let refused = Set::new().plan(&state, &option(json!("hush"))).unwrap_err();
    assert_eq!((refused[0].document, refused[0].pointer.as_str()), (Some(0), "/members/value"));
    let given =
        |secret: &str| Set { secrets: BTreeMap::from([("A".to_owned(), secret.to_owned())]), ..Set::new() };
    assert!(given("hush").plan(&state, &option(json!({ "secret": "A" }))).unwrap().is_empty());
    let plan = given("other").plan(&state, &option(json!({ "secret": "A" }))).unwrap();
    let difference = &plan.changes[at(&kinds, "Option")][0].differences[0];
    assert!(difference.is_secret && difference.after == json!({ "secret": "A" }));
}

#[test]
fn only_rows_that_the_set_created_are_pruned() {
    let kinds = kinds(&operations());
    let state = server(&kinds);
    let index = at(&kinds, "ClientApp");
    let mut set = Set { prune: true, ..Set::new() };
    assert!(set.plan(&state, &[]).unwrap().is_empty());
    set.memory.add("ClientApp", &id(4));
    let plan = set.plan(&state, &[]).unwrap();
    assert_eq!((plan.counts(), plan.changes[index][0].kind), ([0, 0, 1], ChangeKind::Delete));
    let call = deletions(&kinds[index], &plan.changes[index]).remove(0);
    assert_eq!((call.path.as_str(), &call.body), ("/ClientApp/batch", &json!([id(4)])));
    set.memory.note(&kinds[index], &plan.changes[index], &call);
    assert_eq!(set.memory, Memory::default());
    set.memory.add("ClientApp", &id(4));
    assert!(set.plan(&state, &[document("ClientApp", json!({ "name": "Web" }))]).unwrap().is_empty());
}

#[test]
fn mistakes_are_reported_with_their_pointers() {
    let kinds = kinds(&operations());
    let state = server(&kinds);
    let documents = [
        document("Users", json!({})),
        document("Tenant", json!({ "name": "x", "subscriptionId": "Nobody" })),
        document("Tenant", json!({ "name": "x", "colour": "red" })),
        document("ClientApp", json!({ "name": "Web" })),
        document("ClientApp", json!({ "name": "web" })),
    ];
    let pointers = Set::new().plan(&state, &documents).unwrap_err();
    let mut pointers: Vec<_> =
        pointers.iter().map(|problem| (problem.document, problem.pointer.as_str())).collect();
    pointers.sort_unstable();
    assert_eq!(
        pointers,
        [
            (Some(0), "/kind"),
            (Some(1), "/members/subscriptionId"),
            (Some(2), "/members/colour"),
            (Some(4), "/members")
        ]
    );
    let mut state = server(&kinds);
    let twice = json!([{ "id": id(1), "name": "Default", "concurrencyToken": "a" }, { "id": id(7), "name": "default", "concurrencyToken": "a" }]);
    state.set(at(&kinds, "Customer"), twice).unwrap();
    assert!(export(&state).unwrap_err()[0].detail.contains("more than one Customer"));
}
