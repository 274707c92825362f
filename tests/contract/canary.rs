//! No value of a member is in an event, in what webhooks get, or in the log: every text that a
//! body can hold is a canary, and none of them is found there.

use std::{collections::BTreeSet, sync::Arc};

use chancery_record::{Field, Kind, TextRule};
use chancery_resource::{Action, Body, Custom, Op, Reply};
use chancery_testkit::{Client, Database, Engine, Process, Received, Receiver, catalogue::operations};
use http::Method;
use serde_json::{Map, Value as Json, json};

use crate::{
    fixtures::{Fixtures, create_fixtures},
    id,
    pattern::{key_of, rows},
    picture::png_by,
    signing::set_mail_server,
};

const STORE: &str = "/api/userstore/v2/default/administration";

/// Texts of every form, each with a number in it. Texts without a canary are searched by `SIGNS`.
const CANARIES: [&str; 7] = [
    "zwiebel fink %",
    "zwiebel-%@fink.example",
    "https://zwiebel-%.example/",
    "+49 30 9081726354536%",
    "zz-zwiebe%",
    "Zwiebel/Fink%",
    "1847-03-1%",
];

/// The searched texts: parts of canaries, and `zwiebel` as base64.
const SIGNS: [&str; 4] = ["wiebe", "9081726354536", "1847-03-1", "endpZWJlbD"];

/// Members with rules of their own: the operation or resource, the member, a canary that fits.
const FITTING: &[(&str, &str, &str)] = &[
    ("ClientAppAuthenticationConfiguration", "tlsClientAuthSanDns", "zwiebel-%.example"),
    (
        "ClientAppKeySet",
        "jwks",
        r#"{"keys":[{"kid":"zwiebel %","kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#,
    ),
    ("ClientApp", "sectorIdentifierUri", "https://zwiebel-%.example/"),
    ("ClientAppKeySet", "kid", "zwiebel %"),
    ("ClientAppRedirectUri", "uri", "https://zwiebel-%.example/fink"),
    ("ClientAppRequestUri", "uri", "https://zwiebel-%.example/fink"),
    ("ClientAppScope", "key", "zwiebel-%"),
    ("ClientAppSecret", "secret", "zwiebel fink zwiebel fink zwiebel fink %"),
    ("ClientAppFederatedIdentity", "issuer", "https://zwiebel-%.example"),
    ("CustomAsset", "data", "endpZWJlbDA%"),
    ("EventSubscription", "headers", r#"{"X-Zwiebel": "zwiebel %"}"#),
    ("EventSubscription", "types", r#"["zwiebel.%"]"#),
    ("IdpInstance", "icon", "/assets/global/zwiebel-%.svg"),
    ("SecurityContact", "value", "zwiebel-%@fink.example"),
];

/// Members without a canary: the resource, the member and the reason.
const HELD: &[(&str, &str, &str)] = &[
    ("UserProfile", "key", KEY),
    ("GroupMetadata", "key", KEY),
    ("ClientAppMetadata", "key", KEY),
    ("IdpInstanceMetadata", "key", KEY),
    ("CustomAsset", "location", KEY),
    ("CustomView", "location", KEY),
    ("CustomAsset", "assetFileName", KEY),
    ("CustomView", "viewName", KEY),
    ("Option", "name", "the name of an option that is known"),
    ("EventSubscription", "startAfter", "a cursor that the server made"),
    ("ClientAppAuthenticationConfiguration", "tlsClientAuthSubjectDn", ONE_OF),
    ("ClientAppAuthenticationConfiguration", "tlsClientAuthSanUri", ONE_OF),
    ("ClientAppAuthenticationConfiguration", "tlsClientAuthSanIp", ONE_OF),
    ("ClientAppAuthenticationConfiguration", "tlsClientAuthSanEmail", ONE_OF),
    ("ClientAppKeySet", "jwksUri", ONE_OF),
    ("ClientAppKeySet", "algorithm", "the name of an algorithm that is known"),
    ("ClientApp", "allowedResponseTypes", "names of response types that are known"),
    ("CertStore", "password", "it opens a file that brings one"),
    ("IpAddressRange", "lower", "an address"),
    ("IpAddressRange", "upper", "an address"),
    ("ScimToken", "rights", "names of rights"),
    ("ScimToken", "networks", "networks"),
    ("IdentityReplacement", "policyFingerprint", "that of the policy that is in force"),
];

const KEY: &str = "the key, which events name as what they are about";
const ONE_OF: &str = "one of several members, of which one alone is given";

/// Operations outside of the pattern that create something: the operation, and the required members besides canaries.
const MORE: &[(&str, &str)] = &[
    ("userstore:CreateUser", "{}"),
    ("userstore:CreateGroup", "{}"),
    ("userstore:CreateUserProfile", r#"{"key": "entry-%"}"#),
    ("userstore:CreateGroupMetadata", r#"{"key": "entry-%"}"#),
    ("userstore:CreateSecurityContact", r#"{"kind": "Email"}"#),
    ("userstore:CreateEventSubscription", "{}"),
    ("userstore:CreateScimToken", r#"{"expiresOn": null, "successorOf": null}"#),
    ("userstore:StartRecovery", r#"{"userId": "{userId}"}"#),
    ("userstore:IssueTemporaryAccessPass", r#"{"userId": "{userId}"}"#),
    (
        "management:Request",
        r#"{"platformUserId": "{ApplicationUser 1}", "replacementIdpInstanceId": "{IdpInstance 1}"}"#,
    ),
    (
        "management:CreateCustomAssetByExpander",
        r#"{"assetFileName": "made-%.txt", "mimetype": "text/plain", "applyToType": "Tenant", "tenantId": "{Tenant 1}"}"#,
    ),
    (
        "management:CreateCustomViewFromTemplate",
        r#"{"viewName": "SignIn", "applyToType": "Tenant", "tenantId": "{Tenant 1}"}"#,
    ),
    (
        "management:CreateSignInConsent",
        r#"{"clientAppId": "{ClientApp 1}", "platformUserId": "{ApplicationUser 1}"}"#,
    ),
];

/// An operation that creates something, with its path and its required members.
struct Creation {
    name: String,
    path: String,
    op: &'static Op,
    base: Json,
}

/// All of them, those of the pattern first.
fn creations() -> Vec<Creation> {
    let known: Vec<_> = operations().collect();
    let of_pattern = rows().into_iter().map(|row| {
        let is_it = |(name, _, op): &&(String, String, &'static Op)| {
            name.starts_with("management:")
                && op.shape.name == row.resource
                && matches!(op.action, Action::Create)
        };
        (known.iter().find(is_it).unwrap(), row.create)
    });
    let more = MORE.iter().map(|(name_wanted, base)| {
        (known.iter().find(|(name, ..)| name == name_wanted).unwrap(), serde_json::from_str(base).unwrap())
    });
    let all = of_pattern.chain(more);
    all.map(|((name, path, op), base)| Creation { name: name.clone(), path: path.clone(), op, base })
        .collect()
}

/// The fields of a creating body.
fn fields(op: &Op) -> Vec<&'static Field> {
    match op.action {
        Action::Custom(Custom { body: Body::Form(form), .. }) => form.fields.iter().collect(),
        _ => op.shape.fields.iter().filter(|field| field.access.create).collect(),
    }
}

/// A canary that a rule accepts.
fn canary(rule: &TextRule, number: usize) -> Option<Json> {
    let texts = CANARIES.iter().map(|text| text.replace('%', &number.to_string()));
    texts.into_iter().find(|text| rule.check(text.clone()).is_ok()).map(Json::String)
}

impl Creation {
    fn is_held(&self, field: &Field) -> bool {
        HELD.iter().any(|(resource, member, _)| *resource == self.op.shape.name && field.is_named(member))
    }

    /// A canary for a field that accepts text.
    fn canary(&self, field: &Field, fixtures: &Fixtures, number: usize) -> Option<Json> {
        let fits = |owner: &str| owner == self.name || owner == self.op.shape.name;
        let fitting = FITTING.iter().find(|(owner, member, _)| fits(owner) && field.is_named(member));
        if let Some((.., text)) = fitting {
            let text = fixtures.text(text, number);
            let is_json = text.starts_with(['{', '[']);
            return Some(if is_json { serde_json::from_str(&text).unwrap() } else { Json::String(text) });
        }
        match field.kind {
            Kind::Text(rule) if !self.is_held(field) && !field.is_token() => {
                Some(canary(rule, number).unwrap_or_else(|| panic!("{}: {}", self.name, field.wire())))
            }
            Kind::Pairs(_) | Kind::Texts(_) if !self.is_held(field) => {
                panic!("{}: {}", self.name, field.wire())
            }
            _ => None,
        }
    }

    /// A body with a canary of this number in every text.
    fn body(&self, fixtures: &Fixtures, number: usize) -> Json {
        let mut body = fixtures.fill(&self.base, number);
        for field in fields(self.op) {
            if let Some(canary) = self.canary(field, fixtures, number) {
                body[field.wire()] = canary;
            }
        }
        body
    }

    /// Creates one.
    async fn make(&self, admin: &Client, fixtures: &Fixtures) -> Json {
        let body = self.body(fixtures, 1);
        let address = fixtures.text(&self.path, 0);
        let created = admin.post(&address, body.clone()).await.is(self.op.status).json();
        let has_canary = |json: &Json| signs_in(&json.to_string()).next().is_some();
        // an answer with the owner shows nothing of it
        let is_shown = matches!(self.op.reply, Reply::One);
        assert!(!is_shown || !has_canary(&body) || has_canary(&created), "{}: {created}", self.name);
        created
    }

    /// Changes all texts that a PATCH can change.
    async fn change(&self, admin: &Client, fixtures: &Fixtures, created: &Json) {
        let Some((path, op)) = self.sibling(|op| matches!(op.action, Action::Patch)) else { return };
        let open = self.op.shape.fields.iter().filter(|field| field.access.patch);
        let changes =
            open.filter_map(|field| Some((field.wire().to_owned(), self.canary(field, fixtures, 2)?)));
        let mut changes: Map<String, Json> = changes.collect();
        changes.insert("concurrencyToken".to_owned(), created["concurrencyToken"].clone());
        admin.patch(&self.address(fixtures, &path, created), Json::Object(changes)).await.expect(op.status);
    }

    /// Deletes it, if possible.
    async fn delete(&self, admin: &Client, fixtures: &Fixtures, created: &Json) {
        let Some((path, op)) = self.sibling(|op| matches!(op.action, Action::Delete)) else { return };
        admin.delete(&self.address(fixtures, &path, created)).await.expect(op.status);
    }

    /// Creates, replaces and deletes one by batches, if there are any.
    async fn many(&self, admin: &Client, fixtures: &Fixtures) {
        let Some((path, op)) = self.sibling(|op| matches!(op.action, Action::CreateBatch)) else { return };
        let path = fixtures.text(&path, 0);
        let created =
            admin.post(&path, json!([self.body(fixtures, 3)])).await.is(op.status).json()[0].clone();
        if let Some((_, op)) = self.sibling(|op| matches!(op.action, Action::ReplaceBatch)) {
            let mut row = Map::new();
            for field in self.op.shape.fields.iter().filter(|field| field.access.put || field.access.key) {
                let name = field.wire();
                let known = created.get(name).cloned();
                let given = self.canary(field, fixtures, 4).filter(|_| field.access.put).or(known);
                row.extend(given.map(|value| (name.to_owned(), value)));
            }
            row.insert("concurrencyToken".to_owned(), created["concurrencyToken"].clone());
            admin.put(&path, json!([row])).await.expect(op.status);
        }
        if let Some((_, op)) = self.sibling(|op| matches!(op.action, Action::DeleteBatch)) {
            admin.delete_with(&path, json!([key_of(self.op.shape.name, &created)])).await.expect(op.status);
        }
    }

    /// The path of another operation on the resource of this one.
    fn sibling(&self, is_it: fn(&Op) -> bool) -> Option<(String, &'static Op)> {
        let service = self.name.split(':').next().unwrap();
        let found = operations().find(|(name, _, op)| {
            matches!(self.op.reply, Reply::One)
                && name.starts_with(service)
                && op.shape.name == self.op.shape.name
                && is_it(op)
        });
        found.map(|(_, path, op)| (path, op))
    }

    fn address(&self, fixtures: &Fixtures, path: &str, created: &Json) -> String {
        let key = format!("/{}", key_of(self.op.shape.name, created).trim_start_matches('/'));
        fixtures.text(path, 0).replace("/{id}", &key).replace("/{key}", &key)
    }
}

/// The signs that are in a text.
fn signs_in(text: &str) -> impl Iterator<Item = &'static str> {
    SIGNS.into_iter().filter(|sign| text.contains(sign))
}

/// All events of a feed after a cursor.
async fn read_all(admin: &Client, feed: &str, after: &str) -> Vec<Json> {
    let (mut items, mut after) = (Vec::new(), after.to_owned());
    loop {
        let page = admin.get(&format!("{feed}?count=1000&after={after}")).await.is(200).json();
        items.extend_from_slice(page["items"].as_array().unwrap());
        page["next"].as_str().unwrap().clone_into(&mut after);
        if page["hasMore"] == false {
            return items;
        }
    }
}

/// A feed, its subscriptions, and the receiver of one that was activated at this cursor.
struct Subscribed {
    feed: &'static str,
    receiver: Receiver,
    after: String,
}

async fn subscribe(admin: &Client, feed: &'static str, more: Json) -> Subscribed {
    let receiver = Receiver::start().await;
    let mut body = more;
    body["name"] = json!("plain");
    body["url"] = json!(receiver.url);
    let all = format!("{feed}Subscription");
    let created = admin.post(&all, body).await.is(201).json();
    let path = format!("{all}/{}", id(&created));
    admin.post(&format!("{path}/test"), json!({})).await.expect(200);
    let row = admin.get(&path).await.is(200).json();
    let active = json!({ "isActive": true, "concurrencyToken": row["concurrencyToken"] });
    admin.patch(&path, active).await.expect(202);
    let end = crate::feed_from_now(admin, feed).await;
    Subscribed { feed, receiver, after: end["next"].as_str().unwrap().to_owned() }
}

/// Fills every text of everything that can be created, changes it and deletes it again.
async fn do_everything(admin: &Client) {
    let fixtures = all_fixtures(admin).await;
    let mut all = Vec::new();
    for creation in creations() {
        let created = creation.make(admin, &fixtures).await;
        creation.change(admin, &fixtures, &created).await;
        all.push((creation, created));
    }
    provision(admin).await;
    // platform users and groups are named after them
    for kind in ["User", "Group"] {
        admin.post(&format!("{STORE}/{kind}/synchronize"), Json::Null).await.expect(200);
    }
    for (creation, created) in all.iter().rev() {
        creation.delete(admin, &fixtures, created).await;
    }
    // operations with forms of their own create rows that others create, too
    for (creation, _) in all.iter().filter(|(creation, _)| matches!(creation.op.action, Action::Create)) {
        creation.many(admin, &fixtures).await;
    }
    let image = fixtures.text(&format!("{STORE}/User/{{userId}}/image"), 0);
    let sent =
        admin.send(Method::PUT, &image, &[("content-type", "image/png")], png_by("zwiebel fink")).await;
    sent.expect(200);
}

/// The canaries that a directory sends about a user and a group.
async fn provision(admin: &Client) {
    let text = "zwiebel fink 900";
    let of_many =
        json!([{ "value": "zwiebel-900@fink.example", "type": "zwiebel", "display": text, "primary": true }]);
    let mut user = json!({
        "userName": text, "externalId": text, "displayName": text, "nickName": text, "title": text, "userType": text,
        "profileUrl": "https://zwiebel-900.example/", "preferredLanguage": text,
        "name": { "givenName": text, "familyName": text, "middleName": text },
        "emails": of_many, "phoneNumbers": [{ "value": "+49 30 9081726354536900", "display": text }],
        "photos": [{ "value": "https://zwiebel-900.example/" }], "password": "zwiebel fink zwiebel fink 900",
        "ims": of_many, "roles": of_many, "entitlements": of_many,
        "addresses": [{ "formatted": text, "streetAddress": text, "locality": text, "country": text }],
    });
    let enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
    for schema in ["employeeNumber", "costCenter", "organization", "division", "department"] {
        user[enterprise][schema] = json!(text);
    }
    let base = "/api/scim/v2/default";
    let created = admin.post(&format!("{base}/Users"), user.clone()).await.is(201).json();
    let group = json!({ "displayName": text, "externalId": text, "members": [{ "value": created["id"], "display": text }] });
    let team = admin.post(&format!("{base}/Groups"), group.clone()).await.is(201).json();
    let (user_path, group_path) =
        (format!("{base}/Users/{}", id(&created)), format!("{base}/Groups/{}", id(&team)));
    for name in ["userName", "title", "nickName"] {
        user[name] = json!("zwiebel fink 901");
    }
    user["password"] = json!("fink zwiebel fink zwiebel 901");
    admin.put(&user_path, user).await.expect(200);
    admin.put(&group_path, json!({ "displayName": "zwiebel fink 901" })).await.expect(200);
    let patch = |path: &str| json!({ "Operations": [{ "op": "replace", "path": path, "value": "zwiebel fink 902" }] });
    admin.patch(&user_path, patch("title")).await.expect(200);
    admin.patch(&user_path, patch("emails[type eq \"zwiebel\"].display")).await.expect(200);
    admin.patch(&group_path, patch("displayName")).await.expect(200);
    for path in [group_path, user_path] {
        admin.delete(&path).await.expect(204);
    }
}

async fn all_fixtures(admin: &Client) -> Fixtures {
    let mut fixtures = create_fixtures(admin).await;
    let user = admin.get(&format!("{STORE}/User")).await.is(200).json()[0].clone();
    let group = admin.get(&format!("{STORE}/Group")).await.is(200).json()[0].clone();
    for (name, known) in
        [("userstore", "default"), ("userId", id(&user)), ("parentId", id(&user)), ("groupId", id(&group))]
    {
        fixtures.add(name, known);
    }
    fixtures
}

async fn no_canary_leaks(engine: Engine) {
    let database = Arc::new(Database::create(engine));
    let environment = [("CHANCERY_LOG", "trace"), ("CHANCERY_EVENT_NETWORKS", "127.0.0.0/8")];
    let mut server = Process::start(&database, &environment).await;
    let admin = server.admin.clone();
    let subscription = admin.get("/api/management/v2/Subscription").await.is(200).json()[0]["id"].clone();
    let of_store = subscribe(&admin, "/api/userstore/v2/default/administration/Event", json!({})).await;
    let of_configuration =
        subscribe(&admin, "/api/management/v2/Event", json!({ "subscriptionId": subscription })).await;
    // a contact gets a mail before it is stored
    set_mail_server(&admin).await;
    do_everything(&admin).await;
    for mut subscribed in [of_store, of_configuration] {
        crate::feed_from_now(&admin, subscribed.feed).await;
        let events = read_all(&admin, subscribed.feed, &subscribed.after).await;
        // keys are in events, so that a value would be found like them
        assert!(events.iter().any(|event| event["subject"].as_str().unwrap().ends_with("entry-1")));
        // events without a subscription go to no webhook
        let is_sent = |event: &&Json| event["data"]["scope"]["subscriptionId"] == subscription;
        let sent: BTreeSet<&str> =
            events.iter().filter(is_sent).map(|event| event["id"].as_str().unwrap()).collect();
        let all =
            |got: &[Received]| sent.iter().all(|id| got.iter().any(|one| one.header("webhook-id") == *id));
        let got = subscribed.receiver.until(all).await;
        for text in
            events.iter().map(Json::to_string).chain(got.iter().map(|one| one.head.clone() + &one.text))
        {
            assert_eq!(signs_in(&text).next(), None, "{text}");
        }
    }
    let mut refused = crate::program::refused(&database);
    // instances of types that are stored and not supported
    refused.retain(|line| !line.contains(" idpFactoryType: "));
    assert!(refused.is_empty(), "what is taken today is taken after an upgrade: {refused:#?}");
    let sign_ins = admin.get("/api/management/v2/SignInEvent?count=1000").await.is(200).json();
    assert!(
        sign_ins.to_string().contains("consent.given") && signs_in(&sign_ins.to_string()).next().is_none()
    );
    assert!(server.stop());
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("CreateUser"), "the log is one");
    let line = log.lines().find(|line| signs_in(line).next().is_some());
    assert!(line.is_none(), "{line:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_canary_leaks_sqlite() {
    no_canary_leaks(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_canary_leaks_postgres() {
    no_canary_leaks(Engine::Postgres).await;
}

/// New operations need a row, and a text without a canary a reason.
#[test]
fn every_creatable_resource_is_created() {
    let creations = creations();
    let known: BTreeSet<String> = creations.iter().map(|creation| creation.name.clone()).collect();
    let makes = |op: &Op| !op.is_batch() && (matches!(op.action, Action::Create) || op.status == 201);
    let all: BTreeSet<String> = operations().filter(|(.., op)| makes(op)).map(|(name, ..)| name).collect();
    let without: Vec<&str> = all.difference(&known).map(String::as_str).collect();
    // the body of one is an authenticator's answer; the objects of directories have forms of their own (`provision`)
    assert_eq!(without, ["scim:CreateGroup", "scim:CreateUser", "userstore:FinishPasskeyRegistration"]);
    for (owner, member) in
        FITTING.iter().map(|row| (row.0, row.1)).chain(HELD.iter().map(|row| (row.0, row.1)))
    {
        let has = |creation: &Creation| {
            creation.op.shape.name == owner && fields(creation.op).iter().any(|field| field.is_named(member))
        };
        assert!(creations.iter().any(has), "{owner} has no {member}");
    }
}
