//! Registration of a client app: its kind determines the form, and everything is created in one transaction. The result
//! is example code, filled in, with the secret that is shown once.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_management::{
    client_app::{
        ClientApp, configuration::CLIENT_APP_AUTHENTICATION_CONFIGURATION, key_set::CLIENT_APP_KEY_SET,
        scope_and_resource::CLIENT_APP_SCOPE, secret::CLIENT_APP_SECRET, uri::CLIENT_APP_REDIRECT_URI,
    },
    idp_instance::IDP_INSTANCE,
    subscription::SUBSCRIPTION,
    tenant::TENANT,
};
use chancery_resource::{Op, Problem, RelationChange, Shape, random};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::integration::addresses;
use crate::{
    pages::{
        choices::{is_chosen, rows},
        form::{errors, fresh_id, is_of_form},
        item::read,
        relate,
    },
    shell::{
        components::FormPage,
        directory::{self, Resource, encoded},
        fields::{control_field, plain},
        reauthentication::is_required,
        visit::{Visit, one, redirect_with_notice},
        words::raised,
    },
};

/// The kinds of client apps: name, icon, whether users sign in to it, whether it has redirect URIs, whether it is
/// confidential.
const KINDS: [(&str, &str, bool, bool, bool); 4] = [
    ("web", "server", true, true, true),
    ("page", "app-window", true, true, false),
    ("machine", "terminal", false, false, true),
    ("device", "keyboard", true, false, false),
];

/// The authentication methods of a confidential client app, as forms name them.
const BY_SECRET: &str = "secret";
const BY_KEYS: &str = "keys";

/// A kind of client app.
#[derive(Clone, Copy)]
struct ClientAppKind {
    name: &'static str,
    has_people: bool,
    has_return: bool,
    has_secret: bool,
}

impl ClientAppKind {
    fn find(name: &str) -> Option<Self> {
        let kind = KINDS.iter().find(|(known, ..)| *known == name)?;
        let (name, _, has_people, has_return, has_secret) = *kind;
        Some(Self { name, has_people, has_return, has_secret })
    }

    /// The controls for the authentication method: a generated secret, or own keys.
    fn proving(self, visit: &Visit<'_>) -> Vec<Map<String, Value>> {
        if !self.has_secret {
            return Vec::new();
        }
        let words = visit.words;
        let mut way = control_field("proves", words.page("proves"), "choice");
        let choices = [BY_SECRET, BY_KEYS].map(|way| {
            let is_current = one(&visit.form, "proves") == Some(way);
            json!({ "value": way, "label": words.page(&format!("proves_{way}")), "is_current": is_current })
        });
        way.insert("choices".to_owned(), json!(choices));
        let mut keys = control_field("keys", words.page("own_keys"), "longtext");
        keys.extend([
            ("value".to_owned(), json!(one(&visit.form, "keys").unwrap_or_default())),
            ("hint".to_owned(), json!(words.page("own_keys_about"))),
        ]);
        vec![way, keys]
    }

    /// The switch of the groups claim, of an app that people sign in to.
    fn groups(self, visit: &Visit<'_>) -> Option<Map<String, Value>> {
        let field = ClientApp::INCLUDE_GROUPS_CLAIMS.field();
        let mut switch = control_field(field.wire(), &visit.words.field(field.wire()), "switch");
        switch.extend([
            ("value".to_owned(), json!(is_chosen(visit, field.wire()))),
            ("hint".to_owned(), json!(visit.words.explanation(field.about))),
        ]);
        self.has_people.then_some(switch)
    }

    /// Whether it authenticates with own keys.
    fn has_keys(self, visit: &Visit<'_>) -> bool {
        self.has_secret && one(&visit.form, "proves") == Some(BY_KEYS)
    }

    /// The members of the client app that follow from its kind.
    fn members(self) -> Map<String, Value> {
        let members = [
            ("isPublic", !self.has_secret),
            ("isNativeApplication", self.name == "device"),
            ("allowUserLogin", self.has_people),
            ("allowClientCredentialLogin", !self.has_people),
            ("allowDeviceAuthorizationGrant", self.name == "device"),
        ];
        members.into_iter().map(|(name, is_so)| (name.to_owned(), json!(is_so))).collect()
    }
}

/// The choice of kinds, or the form of the kind in the URL; `None` if the standard form is requested.
///
/// # Errors
/// The user may not create a client app.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
) -> Result<Option<Response<AnswerBody>>, Problem> {
    visit.require(resource.create)?;
    match visit.parameter("kind") {
        Some("plain") => Ok(None),
        Some(name) => match ClientAppKind::find(name) {
            Some(kind) => questions(visit, resource, kind, None).await.map(Some),
            None => Ok(None),
        },
        None => kinds(visit, resource).map(Some),
    }
}

fn kinds(visit: &Visit<'_>, resource: &Resource) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let address = visit.address(resource);
    let rendered: Vec<Value> = KINDS
        .iter()
        .map(|(name, icon, ..)| {
            json!({
                "icon": icon, "label": words.page(&format!("kind_{name}")), "about": words.page(&format!("kind_{name}_about")),
                "href": format!("{address}/new?kind={name}"),
            })
        })
        .collect();
    let heading = words.page("register_title");
    let content = json!({
        "back": { "href": address, "label": words.resources(resource.name) }, "heading": heading, "kinds": rendered,
        "plain": { "href": format!("{address}/new?kind=plain"), "label": words.page("kind_plain") },
    });
    visit.page(200, "kinds.html", heading, &content)
}

/// An error, and the form field that caused it.
struct QuestionError<'a> {
    wire: &'static str,
    problem: &'a Problem,
}

async fn questions(
    visit: &Visit<'_>,
    resource: &Resource,
    kind: ClientAppKind,
    wrong: Option<QuestionError<'_>>,
) -> Result<Response<AnswerBody>, Problem> {
    let created = [(kind.has_secret, &CLIENT_APP_SECRET), (kind.has_return, &CLIENT_APP_REDIRECT_URI)];
    if created
        .into_iter()
        .any(|(is_created, shape)| is_created && create_operation(shape).is_some_and(is_required))
    {
        visit.fresh()?;
    }
    let words = visit.words;
    let typed = |name: &str| one(&visit.form, name).unwrap_or_default().to_owned();
    let mut name = control_field("name", &words.field("name"), "text");
    name.extend([("required".to_owned(), json!(true)), ("value".to_owned(), json!(typed("name")))]);
    let mut general = vec![name];
    let subscriptions = rows(visit, &SUBSCRIPTION).await?;
    if subscriptions.len() > 1 {
        let current = typed("subscriptionId");
        let choices = subscriptions
            .iter()
            .map(|(id, label)| json!({ "value": id, "label": label, "is_current": *id == current }));
        let mut choice = control_field("subscriptionId", &words.field("subscriptionId"), "choice");
        choice.insert("choices".to_owned(), choices.collect());
        general.push(choice);
    }
    if kind.has_return {
        for wire in ["returns", "leaves"] {
            let mut field = control_field(wire, words.page(wire), "tags");
            field.extend([
                ("value".to_owned(), json!(typed(wire))),
                ("required".to_owned(), json!(wire == "returns")),
                ("hint".to_owned(), json!(words.page(&format!("{wire}_about")))),
            ]);
            general.push(field);
        }
    }
    general.extend(kind.proving(visit));
    let mut scopes = control_field("scopes", words.page("scopes"), "tags");
    scopes.extend([
        ("value".to_owned(), json!(typed("scopes"))),
        ("hint".to_owned(), json!(words.page("scopes_about"))),
    ]);
    general.push(scopes);
    general.extend(kind.groups(visit));
    for field in &mut general {
        let own = wrong.as_ref().filter(|wrong| field.get("name") == Some(&json!(wrong.wire)));
        if let Some(wrong) = own {
            let text =
                wrong.problem.errors.as_slice().first().map_or(&wrong.problem.detail, |error| &error.detail);
            field.insert("error".to_owned(), json!(text));
        }
    }
    let mut sections = vec![json!({ "title": "", "about": "", "fields": general, "is_readonly": false })];
    if kind.has_people {
        let mut who = control_field("isRestricted", words.page("only_some"), "switch");
        who.insert("value".to_owned(), json!(typed("isRestricted") == "true"));
        let mut switches = vec![who];
        for (prefix, shape) in [("instance", &IDP_INSTANCE), ("tenant", &TENANT)] {
            for (index, (id, label)) in rows(visit, shape).await?.into_iter().enumerate() {
                let wire = format!("{prefix}:{id}");
                let is_on = one(&visit.form, "kind").map_or(index == 0, |_| is_chosen(visit, &wire));
                let mut switch = control_field(
                    &wire,
                    &format!("{}: {label}", raised(&words.resource(shape.name))),
                    "switch",
                );
                switch.insert("value".to_owned(), json!(is_on));
                switches.push(switch);
            }
        }
        let about = words.page("who_about");
        sections.push(json!({ "title": words.page("who_title"), "about": about, "fields": switches, "is_readonly": false }));
    }
    let problem = wrong.as_ref().map(|wrong| wrong.problem);
    let address = visit.address(resource);
    let key = format!("kind_{}", kind.name);
    let heading = words.page(&key);
    let id = one(&visit.form, "id").map_or_else(fresh_id, str::to_owned);
    let page = FormPage {
        back: json!({ "href": format!("{address}/new"), "label": words.page("back") }),
        heading: heading.into(),
        sub: words.page(&format!("kind_{}_about", kind.name)).into(),
        icon: Some("app-window"),
        errors: linked_errors(visit, wrong.as_ref()),
        sections,
        hidden: vec![json!({ "name": "kind", "value": kind.name }), json!({ "name": "id", "value": id })],
        bar: Some(
            json!({ "save": words.page("register"), "cancel": { "href": address, "label": words.page("cancel") }, "review": false }),
        ),
        is_new: true,
        ..FormPage::default()
    };
    page.show(visit, problem.map_or(200, Problem::status))
}

/// The errors, with links to the form fields, whose names may differ from those of the API.
fn linked_errors(visit: &Visit<'_>, wrong: Option<&QuestionError<'_>>) -> Vec<Value> {
    let Some(wrong) = wrong else { return Vec::new() };
    let mut rendered = errors(visit, Some(wrong.problem));
    let href = (!wrong.wire.is_empty()).then(|| format!("#f-{}", wrong.wire));
    for error in rendered.iter_mut().filter_map(Value::as_object_mut) {
        error.insert("href".to_owned(), json!(href));
    }
    rendered
}

/// The operation that creates a row of this shape.
fn create_operation(shape: &Shape) -> Option<&'static Op> {
    directory::of_shape(shape)?.create
}

/// Creates the client app with everything that belongs to it; `None` if the standard form was submitted.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(
    visit: &Visit<'_>,
    resource: &'static Resource,
) -> Result<Option<Response<AnswerBody>>, Problem> {
    let Some(kind) = one(&visit.form, "kind").and_then(ClientAppKind::find) else { return Ok(None) };
    let id = one(&visit.form, "id").unwrap_or_default();
    let (inputs, question_names) = inputs(visit, resource, kind, id)?;
    match visit.perform_all(inputs).await {
        Ok(outputs) => {
            let secret = question_names
                .iter()
                .position(|question| *question == "secret")
                .and_then(|at| outputs.get(at));
            let secret = secret.map(chancery_web::Output::json);
            let secret =
                secret.as_ref().and_then(|created| created.get("secret")).map_or_else(String::new, plain);
            registered(visit, resource, kind, id, &secret).map(Some)
        }
        // the form provides the id: it was submitted before
        Err((_, problem)) if is_of_form(&problem) && read(visit, resource, id).await.is_ok() => {
            Ok(Some(redirect_with_notice(&format!("{}/{}", visit.address(resource), encoded(id)), "created")))
        }
        Err((at, problem)) if is_of_form(&problem) => {
            let wire = question_names.get(at).copied().unwrap_or_default();
            let wrong = QuestionError { wire, problem: &problem };
            questions(visit, resource, kind, Some(wrong)).await.map(Some)
        }
        Err((_, problem)) => Err(problem),
    }
}

/// The operations, each with the form field that it follows from.
fn inputs(
    visit: &Visit<'_>,
    resource: &'static Resource,
    kind: ClientAppKind,
    id: &str,
) -> Result<(Vec<Input>, Vec<&'static str>), Problem> {
    let typed = |name: &str| one(&visit.form, name).unwrap_or_default().trim();
    let mut all = Vec::new();
    let mut add = |question: &'static str, op: Option<&'static Op>, path: Vec<String>, body: Value| {
        let mut input = Input::of(visit.require(op)?, path);
        input.body = Some(body);
        all.push((input, question));
        Ok::<_, Problem>(())
    };
    let mut app = kind.members();
    app.extend([
        ("id".to_owned(), json!(id)),
        ("name".to_owned(), json!(typed("name"))),
        ("isRestricted".to_owned(), json!(is_chosen(visit, "isRestricted"))),
    ]);
    if kind.has_people {
        let groups = ClientApp::INCLUDE_GROUPS_CLAIMS.field().wire();
        app.insert(groups.to_owned(), json!(is_chosen(visit, groups)));
    }
    if !typed("subscriptionId").is_empty() {
        app.insert("subscriptionId".to_owned(), json!(typed("subscriptionId")));
    }
    add("name", resource.create, Vec::new(), Value::Object(app))?;
    if kind.has_return {
        let uris = create_operation(&CLIENT_APP_REDIRECT_URI);
        for (wire, purpose) in [("returns", "Login"), ("leaves", "Logout")] {
            for uri in typed(wire).lines().map(str::trim).filter(|uri| !uri.is_empty()) {
                let body = json!({ "clientAppId": id, "uri": uri, "redirectUriType": purpose });
                add(wire, uris, Vec::new(), body)?;
            }
        }
    }
    let scopes = create_operation(&CLIENT_APP_SCOPE);
    for key in typed("scopes").lines().map(str::trim).filter(|key| !key.is_empty()) {
        add("scopes", scopes, Vec::new(), json!({ "clientAppId": id, "key": key }))?;
    }
    if kind.has_keys(visit) {
        let keys = typed("keys");
        let member = if keys.starts_with("https://") { "jwksUri" } else { "jwks" };
        let set = json!({
            "clientAppId": id, "name": visit.words.page("first_secret"), "use": "Signing", "status": "Active", member: keys,
        });
        add("keys", create_operation(&CLIENT_APP_KEY_SET), Vec::new(), set)?;
        let method = json!({ "clientAppId": id, "tokenEndpointAuthMethod": "private_key_jwt" });
        add("keys", create_operation(&CLIENT_APP_AUTHENTICATION_CONFIGURATION), Vec::new(), method)?;
    } else if kind.has_secret {
        add(
            "secret",
            create_operation(&CLIENT_APP_SECRET),
            Vec::new(),
            json!({ "clientAppId": id, "name": visit.words.page("first_secret") }),
        )?;
    }
    for (prefix, relation) in [("instance:", "idpInstances"), ("tenant:", "tenants")] {
        let chosen = visit.form.iter().filter(|(_, value)| value == "true");
        let ids: Vec<&str> = chosen.filter_map(|(name, _)| name.strip_prefix(prefix)).collect();
        if !ids.is_empty() && kind.has_people {
            let op = relate::operation(resource, relation, RelationChange::Add);
            add("", op, vec![id.to_owned()], json!({ "relatedIds": ids }))?;
        }
    }
    Ok(all.into_iter().unzip())
}

/// The page after the registration: id, secret, issuer, and example code.
fn registered(
    visit: &Visit<'_>,
    resource: &Resource,
    kind: ClientAppKind,
    id: &str,
    secret: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let issuer = visit.app.token_service.public_url.as_str();
    let address = format!("{}/{}", visit.address(resource), encoded(id));
    let name = one(&visit.form, "name").unwrap_or_default();
    let returns = one(&visit.form, "returns").filter(|_| kind.has_return).unwrap_or_default();
    let back = returns.lines().next().unwrap_or_default().trim();
    // nobody knows its verifier: the code of a test request cannot be redeemed
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(random::<32>());
    let content = json!({
        "back": { "href": address, "label": name }, "heading": format!("{}: {name}", words.page("registered_title")),
        "kind": kind.name, "has_keys": kind.has_keys(visit), "id": id, "secret": secret, "issuer": issuer, "returns": back, "redirect_uri": encoded(back), "challenge": challenge,
        "link": { "href": address, "label": words.page("to_app") }, "endpoints": addresses(visit),
    });
    visit.page(200, "registered.html", words.page("registered_title"), &content)
}
