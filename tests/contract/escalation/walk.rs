//! Every operation that writes people and groups, tried by whoever administers their store alone: refused where the person or the
//! group carries a role that is not covered, and answered as to a SystemAdmin where each role is.
//!
//! What is sent follows from the declarations, so a new operation or field is walked without a line here. One that changes nothing
//! that is protected must be named in [`OPEN`].

use std::collections::{BTreeMap, BTreeSet};

use chancery::services;
use chancery_record::{Field, Kind};
use chancery_resource::{Action, Body, Custom, Op, Permit, RelationChange};
use chancery_testkit::{Client, World, on_both_engines};
use http::Method;
use serde_json::{Value as Json, json};

use super::{PASSWORD, default_store, group, helper, person};
use crate::{
    id,
    image::png,
    passkey::authenticator::{Authenticator, allow},
    signing::set_mail_server,
};

/// The members of people that are not protected, as version 2, version 1 and directories name them.
const OPEN_OF_USERS: &[&str] = &[
    "firstName",
    "lastName",
    "middleName",
    "nickname",
    "profile",
    "picture",
    "website",
    "gender",
    "birthdate",
    "zoneinfo",
    "locale",
    "name.givenName",
    "title",
];

/// The same of groups.
const OPEN_OF_GROUPS: &[&str] = &["name", "displayName"];

/// What belongs to people and groups and is not protected.
const OPEN_TABLES: [&str; 3] = ["user_profile", "group_metadata", "user_image"];

/// What belongs to no person and no group.
const OF_NOBODY: [&str; 2] = ["event_subscription", "scim_token"];

/// The operations that change nothing of those who are there.
const OPEN_OPERATIONS: &[&str] = &[
    "v2:SynchronizeAllUsers",
    "v2:SynchronizeAllGroups",
    "v1:SynchronizeAllUsers",
    "v1:SynchronizeAllGroups",
    // it asks for a proof that nobody but the person has
    "v2:StartPasskeyAuthentication",
    "ScimCreateUser",
    "ScimCreateGroup",
];

/// What is not answered even to a SystemAdmin, since it needs more than this walk has: why.
const IDLE: &[(&str, &str)] = &[
    ("v2:CompleteRecovery", "the recovery is not approved"),
    ("v2:FinishPasskeyAuthentication", "the answer of the person's authenticator is the proof"),
    ("v2:RedeemTemporaryAccessPass", "the value of the pass is the proof"),
];

const NOBODY: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
const USERS: &str = "administration/User";
const GROUPS: &str = "administration/Group";

/// Texts, of which each rule takes one.
const TEXTS: [&str; 9] = [
    "four walked herons",
    "walked@example.com",
    "https://walked.example/",
    "+49 30 90817263",
    "2001-02-03",
    "Europe/Berlin",
    "de-DE",
    "walked",
    "female",
];

/// A person and a group, and what belongs to them.
struct Target {
    user: Json,
    group: Json,
    /// Another group with the role, in which the user is not.
    extra: Json,
    /// In the group are the user, this one and these groups; it is in the third.
    linked: [Json; 3],
    /// These are not.
    other: Json,
    other_group: Json,
    /// What parameters of paths and members of bodies stand for.
    names: BTreeMap<&'static str, String>,
}

/// A request that an operation answers.
struct Attempt {
    /// The operation.
    operation: String,
    /// The member that it changes, where it is one of several.
    member: String,
    method: Method,
    path: String,
    kind: &'static str,
    body: Vec<u8>,
    /// Whether it leaves what is protected as it is.
    is_open: bool,
}

impl Attempt {
    /// Tries it.
    async fn by(&self, client: &Client) -> (u16, String) {
        let path = format!("{}?dryRun=true", self.path);
        let answer =
            client.send(self.method.clone(), &path, &[("content-type", self.kind)], self.body.clone()).await;
        (answer.status.as_u16(), String::from_utf8_lossy(&answer.bytes).into_owned())
    }
}

/// Whether an operation that changes this member leaves what is protected as it is.
fn is_open(operation: &str, op: &Op, member: &str) -> bool {
    let open = if op.shape.table.ends_with("group") { OPEN_OF_GROUPS } else { OPEN_OF_USERS };
    open.contains(&member)
        || OPEN_TABLES.contains(&op.shape.table)
        || OPEN_OPERATIONS.contains(&operation)
        || matches!(op.action, Action::Create | Action::CreateBatch)
}

/// A value of a field other than the one before.
fn other_value(field: &Field, before: &Json) -> Option<Json> {
    let all: Vec<Json> = match field.kind {
        Kind::Bool => vec![json!(true), json!(false)],
        Kind::Int { min, max } => vec![json!(min.max(1).min(max)), json!(max.min(2).max(min))],
        Kind::Choice(names) => names.iter().map(|name| json!(name)).collect(),
        Kind::Numbered(names) => (0..names.len()).map(|index| json!(index)).collect(),
        Kind::Time => vec![json!("2126-01-01T00:00:00.000Z"), json!("2127-01-01T00:00:00.000Z")],
        Kind::Text(rule) => {
            let fitting = TEXTS.iter().filter(|text| rule.check((**text).to_owned()).is_ok());
            fitting.map(|text| json!(text)).collect()
        }
        _ => Vec::new(),
    };
    all.into_iter().find(|value| value != before)
}

impl Target {
    /// What parameters of paths stand for.
    fn names(user: &Json, group: &Json) -> BTreeMap<&'static str, String> {
        let names = [
            ("user_group", id(group)),
            ("userstore", "default"),
            ("instance", "default"),
            ("userId", id(user)),
            ("parentId", id(user)),
            ("groupId", id(group)),
            ("key", "desk"),
            ("loginName", user["loginName"].as_str().unwrap()),
            ("loginname", user["loginName"].as_str().unwrap()),
        ];
        names.into_iter().map(|(name, text)| (name, text.to_owned())).collect()
    }

    /// The address of an operation about it.
    fn address(&self, path: &str, op: &Op) -> String {
        let own = self.names.get(op.shape.table).map_or(id(&self.user), String::as_str);
        let path = path.replace("{id}", own);
        let path =
            self.names.iter().fold(path, |path, (name, text)| path.replace(&format!("{{{name}}}"), text));
        // what the walk has none of
        path.split('/')
            .map(|part| if part.starts_with('{') { NOBODY } else { part })
            .collect::<Vec<_>>()
            .join("/")
    }

    /// The row that an operation of a service is about, as the service shows it.
    async fn row(&self, admin: &Client, base: &str, op: &Op) -> Json {
        let one = match op.shape.table {
            "user_account" => format!("{base}/{USERS}/{}", id(&self.user)),
            "user_group" => format!("{base}/{GROUPS}/{}", id(&self.group)),
            "user_profile" => format!("{base}/administration/user/{}/UserProfile/desk", id(&self.user)),
            "group_metadata" => format!("{base}/{GROUPS}/{}/GroupMetadata/desk", id(&self.group)),
            _ => return json!({}),
        };
        let read = admin.get(&one).await;
        if read.status == 200 { read.json() } else { json!({}) }
    }
}

/// The members that a body holds, each with the whole body in which it alone is changed.
fn changes(fields: impl Iterator<Item = &'static Field>, whole: &Json) -> Vec<(String, Json)> {
    let changes = fields.filter(|field| !field.is_token()).filter_map(|field| {
        let value = other_value(field, &whole[field.wire()])?;
        let mut body = whole.clone();
        body[field.wire()] = value;
        Some((field.wire().to_owned(), body))
    });
    changes.collect()
}

/// A body with a value in each field.
fn filled(fields: impl Iterator<Item = &'static Field>, target: &Target) -> Json {
    let mut body = json!({});
    for field in fields {
        let value = match field.wire() {
            "userId" => Some(target.user["id"].clone()),
            "groupId" => Some(target.group["id"].clone()),
            name if name.to_lowercase().ends_with("password") => Some(json!(PASSWORD)),
            "value" => Some(json!("walked@example.com")),
            "concurrencyToken" => target.user.get("concurrencyToken").cloned(),
            _ if field.required() => other_value(field, &Json::Null),
            _ => None,
        };
        if let Some(value) = value {
            body[field.wire()] = value;
        }
    }
    body
}

/// A form with a value in each field that it needs, or in one that says yes or no.
fn form(fields: &'static [Field], target: &Target) -> Json {
    let body = filled(fields.iter(), target);
    let switch = fields.iter().find(|field| matches!(field.kind, Kind::Bool));
    match switch {
        Some(switch) if body == json!({}) => json!({ switch.wire(): false }),
        _ => body,
    }
}

/// The bodies that an operation can be sent, each with the member that it changes.
async fn bodies(admin: &Client, base: &str, op: &Op, target: &Target) -> Vec<(String, Option<Json>)> {
    let shape = op.shape;
    let row = target.row(admin, base, op).await;
    let token = row.get("concurrencyToken").cloned().unwrap_or_default();
    let many =
        |bodies: Vec<(String, Json)>| bodies.into_iter().map(|(name, body)| (name, json!([body]))).collect();
    let replacing = || {
        let mut whole = row.clone();
        if let Some(members) = whole.as_object_mut() {
            members.retain(|_, value| !value.is_array());
        }
        changes(shape.fields.iter().filter(|field| field.access.put), &whole)
    };
    let patching = |changes: Vec<(String, Json)>| {
        let alone = |(name, body): (String, Json)| {
            let alone = json!({ &name: body[&name], "concurrencyToken": token });
            (name, alone)
        };
        changes.into_iter().map(alone).collect()
    };
    let key = row.get("id").or(row.get("key")).cloned().unwrap_or_default();
    let patches = || {
        let changes = changes(shape.fields.iter().filter(|field| field.access.put), &row);
        changes.into_iter().map(|(name, body)| {
            let patch = json!([{ "op": "add", "path": format!("/{name}"), "value": body[&name] }]);
            (name, patch)
        })
    };
    let creating =
        || vec![(String::new(), filled(shape.fields.iter().filter(|field| field.access.create), target))];
    let found: Vec<(String, Json)> = match op.action {
        Action::List | Action::Read => Vec::new(),
        Action::Delete => return vec![(String::new(), None)],
        Action::Create => creating(),
        Action::CreateBatch => many(creating()),
        Action::Replace => replacing(),
        Action::ReplaceBatch => many(replacing()),
        Action::DeleteBatch => vec![(String::new(), json!([key]))],
        Action::Patch => patching(changes(shape.fields.iter().filter(|field| field.access.patch), &row)),
        Action::ReplaceMembers(fields) => patching(changes(fields.iter().copied(), &row)),
        Action::Relate(name, change) => {
            let is_removed = change == RelationChange::Remove;
            let related = match (shape.table, name) {
                ("user_account", _) if is_removed => &target.group,
                ("user_account", _) => &target.extra,
                (_, "memberUsers") if is_removed => &target.linked[0],
                (_, "memberUsers") => &target.other,
                (_, "memberGroups") if is_removed => &target.linked[1],
                _ if is_removed => &target.linked[2],
                _ => &target.other_group,
            };
            vec![(String::new(), json!({ "relatedIds": [related["id"]] }))]
        }
        Action::Custom(Custom { body, .. }) => match body {
            Body::None | Body::Bytes(..) => return vec![(String::new(), None)],
            Body::Form(of) => vec![(String::new(), form(of.fields, target))],
            Body::Resource => replacing(),
            Body::Resources => many(replacing()),
            Body::JsonPatch(_) if op.is_batch() => {
                patches().map(|(name, patch)| (name, json!([{ "ids": [key], "patch": patch }]))).collect()
            }
            Body::JsonPatch(_) => patches().collect(),
            Body::Json(_) => by_schema(op, target),
        },
    };
    found.into_iter().map(|(name, body)| (name, Some(body))).collect()
}

/// Bodies that a schema describes and no declaration.
fn by_schema(op: &Op, target: &Target) -> Vec<(String, Json)> {
    let one = |member: &str, body: Json| (member.to_owned(), body);
    let operation = |path: &str, value: Json| {
        one(path, json!({ "Operations": [{ "op": "replace", "path": path, "value": value }] }))
    };
    match op.name {
        "ScimReplaceUser" => vec![one("userName", json!({ "userName": "walked" }))],
        "ScimReplaceGroup" => vec![one(
            "members",
            json!({
                "displayName": target.group["name"], "members": [{ "value": target.other["id"] }]
            }),
        )],
        "ScimPatchUser" => vec![
            operation("userName", json!("walked")),
            operation("externalId", json!("walked")),
            operation("active", json!(false)),
            operation("emails", json!([{ "value": "walked@example.com" }])),
            operation("phoneNumbers", json!([{ "value": "+49 30 90817263" }])),
            operation("password", json!(PASSWORD)),
            operation("name.givenName", json!("Augusta")),
            operation("title", json!("Countess")),
        ],
        "ScimPatchGroup" => vec![
            operation("displayName", json!("walked")),
            operation("externalId", json!("walked")),
            operation("members", json!([{ "value": target.other["id"] }])),
        ],
        "ScimCreateUser" => vec![one("", json!({ "userName": "walked" }))],
        "ScimCreateGroup" => vec![one("", json!({ "displayName": "walked" }))],
        "SetUserStateBatch" => vec![one("", json!([{ "id": target.user["id"], "isUserActive": false }]))],
        "RemovePasswordBatch" | "RestorePasswordBatch" => vec![one("", json!([target.user["id"]]))],
        _ => vec![one("", json!({}))],
    }
}

/// The operations of both versions at user stores, and those of directories, which administrators may call.
fn operations() -> Vec<(String, String, &'static Op)> {
    let of_services = services().iter().filter(|service| service.name == "userstore").flat_map(|service| {
        service.all().map(|op| (format!("{}:{}", service.version, op.name), service.base.to_owned(), op))
    });
    let may_be_asked = |op: &Op| {
        op.writes()
            && !matches!(op.permit, Permit::Public | Permit::Person)
            && !OF_NOBODY.contains(&op.shape.table)
    };
    of_services.filter(|(.., op)| may_be_asked(op)).collect()
}

/// All that is tried on a target.
async fn attempts(world: &World, target: &Target) -> Vec<Attempt> {
    let mut all = Vec::new();
    let of_directories =
        chancery_provisioning::paths().filter(|(_, op)| op.writes() && op.permit != Permit::Person);
    let of_directories =
        of_directories.map(|(path, op)| (op.name.to_owned(), "/api/scim/v2/{instance}".to_owned(), path, op));
    let of_services = operations().into_iter().map(|(name, base, op)| (name, base, op.path.to_owned(), op));
    for (operation, base, path, op) in of_services.chain(of_directories) {
        let base = target.address(&base, op);
        let method: Method = op.method.name().parse().unwrap();
        let path = target.address(&format!("{base}{path}"), op);
        for (member, body) in bodies(&world.admin, &base, op, target).await {
            let is_image = matches!(op.action, Action::Custom(Custom { body: Body::Bytes(..), .. }));
            let (kind, body) = match body {
                None if is_image => ("image/png", png()),
                None => ("application/json", Vec::new()),
                Some(body) => ("application/json", body.to_string().into_bytes()),
            };
            let (operation, method, path) = (operation.clone(), method.clone(), path.clone());
            let is_open = is_open(&operation, op, &member);
            all.push(Attempt { operation, member, method, path, kind, body, is_open });
        }
    }
    all
}

/// What a user has: the table, and how it is made. The recovery is another's, for one user has one at a time.
fn belongings(user: &Json, second: &Json) -> [(&'static str, String, Json); 3] {
    let security = "/passkey-security";
    let contact = json!({ "kind": "Email", "value": "contact@example.com" });
    [
        ("security_contact", format!("/User/{}/security-contact", id(user)), contact),
        (
            "temporary_access_pass",
            format!("{security}/temporary-access-passes"),
            json!({ "userId": user["id"] }),
        ),
        (
            "recovery_transaction",
            format!("{security}/recovery-transactions"),
            json!({ "userId": second["id"], "method": "IdentityDocument", "reason": "the telephone is lost" }),
        ),
    ]
}

/// A person and a group with this role, or with none.
async fn target(world: &World, name: &str, number: u8, role: Option<(&str, Json)>) -> Target {
    let user = person(world, name, role.clone()).await;
    let phone = json!({ "phoneNumber": "+49 30 12345678", "concurrencyToken": user["concurrencyToken"] });
    world.admin.patch(&world.path(&format!("/User/{}", id(&user))), phone).await.expect(202);
    let second = person(world, &format!("{name}-second"), role.clone()).await;
    let group = group(world, &format!("{name}-group"), role.clone()).await;
    let extra = super::group(world, &format!("{name}-extra"), role).await;
    let entry = json!({ "key": "desk", "value": "4" });
    world
        .admin
        .post(&world.path(&format!("/user/{}/UserProfile", id(&user))), entry.clone())
        .await
        .expect(202);
    world.admin.post(&world.path(&format!("/Group/{}/GroupMetadata", id(&group))), entry).await.expect(200);
    let made = |what: &str| format!("{name}-{what}");
    let linked = [
        world.user(&made("member")).await,
        world.group(&made("inner")).await,
        world.group(&made("outer")).await,
    ];
    let members =
        [("users", &user), ("users", &linked[0]), ("membergroups", &linked[1]), ("parentgroups", &linked[2])];
    for (relation, related) in members {
        let links = world.path(&format!("/Group/{}/{relation}", id(&group)));
        world.admin.post(&links, json!({ "relatedIds": [related["id"]] })).await.expect(202);
    }
    let (other, other_group) = (world.user(&made("other")).await, world.group(&made("others")).await);
    let one = world.path(&format!("/User/{}", id(&user)));
    world
        .admin
        .send(Method::PUT, &format!("{one}/image"), &[("content-type", "image/png")], png())
        .await
        .expect(200);
    let password = json!({ "password": PASSWORD });
    world.admin.post(&format!("{one}/password/initial"), password).await.expect(200);
    let user = world.admin.get(&one).await.is(200).json();
    let mut names = Target::names(&user, &group);
    for (table, path, body) in belongings(&user, &second) {
        let made = world.admin.post(&world.path(&path), body).await.is(201).json();
        names.insert(table, id(&made).to_owned());
    }
    let passkey = Authenticator::new(number).register(world, &user).await.is(201).json();
    names.insert("passkeyId", id(&passkey).to_owned());
    Target { user, group, extra, linked, other, other_group, names }
}

on_both_engines! {
    /// What is refused to a lower administrator is all that is protected, and nothing else.
    async fn every_operation_on_who_carries_a_role_that_is_not_covered_is_refused(world: World) {
        set_mail_server(&world.admin).await;
        allow(&world).await;
        let above = world.client("above", &[("SystemAdmin", None, None)]).await;
        let boss = target(&world, "boss", 1, Some(("SystemAdmin", json!({})))).await;
        let mut lower = vec![("UserStoreAdmin", helper(&world).await)];
        for role in ["SubscriptionAdmin", "CustomerAdmin"] {
            lower.push((role, world.client(role, &[(role, None, None)]).await));
        }
        let (mut wrong, mut done, mut all) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for attempt in attempts(&world, &boss).await {
            let named = format!("{} {}", attempt.operation, attempt.member).trim_end().to_owned();
            all.insert(named.clone());
            let (allowed, _) = attempt.by(&above).await;
            // a directory's operations refuse some of it to everybody
            assert!(allowed != 403 || named.starts_with("Scim"), "{named}");
            for (role, client) in &lower {
                let (status, answer) = attempt.by(client).await;
                let is_refused = status == 403 && (allowed == 403 || answer.contains("SystemAdmin"));
                if !is_refused && allowed >= 300 {
                    continue;
                }
                done.insert(named.clone());
                if is_refused == attempt.is_open || (attempt.is_open && status != allowed) {
                    let answer: String = answer.chars().take(300).collect();
                    wrong.push(format!("{role}, {named}: {status}, others {allowed}: {answer}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let idle: BTreeSet<&str> = all.difference(&done).map(String::as_str).collect();
        assert_eq!(idle, IDLE.iter().map(|(named, _)| *named).collect());
    }

    /// The help desk goes on: where each role is covered, a lower administrator is answered as a SystemAdmin is.
    async fn every_operation_on_who_carries_no_role_that_counts_is_answered_as_to_a_system_administrator(world: World) {
        let helper = helper(&world).await;
        let above = world.client("above", &[("SystemAdmin", None, None)]).await;
        let store = default_store(&world).await;
        set_mail_server(&world.admin).await;
        allow(&world).await;
        for (number, name, role) in [
            (1, "ordinary", None),
            (2, "peer", Some(("UserStoreAdmin", json!({ "applyToIdpInstanceId": store["id"] })))),
        ] {
            let target = target(&world, name, number, role).await;
            let mut wrong = Vec::new();
            for attempt in attempts(&world, &target).await {
                let (expected, _) = attempt.by(&above).await;
                let (status, answer) = attempt.by(&helper).await;
                if status != expected {
                    wrong.push(format!("{name} {} {}: {status} instead of {expected}: {answer}", attempt.operation, attempt.member));
                }
            }
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    }
}
