//! Assignment of a role: its additional permissions are shown before it is assigned, and the form offers only roles that
//! the user may assign.

use chancery_management::application::{APPLICATION_GROUP, APPLICATION_USER};
use chancery_record::Field;
use chancery_resource::{Op, Problem, ProblemKind, RoleType, Shape};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use crate::{
    pages::{
        form::{creation_fields, error_at, errors, fresh_key, is_of_form},
        item::read,
        rights::{self, Allowed},
    },
    shell::{
        components::{Card, FormPage, Line},
        directory::{self, Resource, encoded, key_of, title_of},
        fields::{FormField, filled, plain},
        navigation::label,
        visit::{Visit, one, redirect_with_notice},
    },
};

/// The sections of the form: the key of each title, and its fields.
const SECTIONS: [(&str, &[&str]); 2] = [
    ("grant_what", &["principalId", "roleType"]),
    ("col_where", &["applyToCustomerId", "applyToSubscriptionId", "applyToTenantId", "applyToIdpInstanceId"]),
];
/// The search URL for users and groups.
const PRINCIPALS: &str = "/console/find?in=ApplicationUser,ApplicationGroup";

/// Shows the form of a new role assignment.
///
/// # Errors
/// The user may not assign roles.
pub async fn show(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    visit.require(resource.create)?;
    visit.fresh()?;
    let given = creation_fields(resource)
        .filter_map(|field| Some((field.wire().to_owned(), json!(visit.parameter(field.wire())?))));
    form(visit, resource, &Value::Object(given.collect()), None).await
}

/// Shows what a role adds, or assigns it.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(resource.create)?;
    let mut body = filled(creation_fields(resource), &visit.form);
    if !body.contains_key("principalType") {
        let id = body.get("principalId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_group = principal(visit, &APPLICATION_GROUP, &id).await.is_some();
        body.insert(
            "principalType".to_owned(),
            json!(if is_group { "PlatformGroup" } else { "PlatformUser" }),
        );
    }
    let is_review = one(&visit.form, "review") == Some("true");
    let mut input = Input::of(op, Vec::new());
    input.body = Some(Value::Object(body.clone()));
    input.key = one(&visit.form, "key").map(str::to_owned).filter(|_| !is_review);
    input.dry_run = is_review;
    // the error of a role that the user may not assign is shown in the form
    let is_mended = |problem: &Problem| {
        is_of_form(problem)
            || (problem.kind == ProblemKind::Forbidden && !problem.errors.as_slice().is_empty())
    };
    match visit.perform(input).await {
        Ok(_) if is_review => review(visit, resource, op, body).await,
        Ok(output) => {
            let key = key_of(resource, &output.json());
            Ok(redirect_with_notice(&format!("{}/{}", visit.address(resource), encoded(&key)), "created"))
        }
        Err(problem) if is_mended(&problem) => {
            form(visit, resource, &Value::Object(body), Some(&problem)).await
        }
        Err(problem) => Err(problem),
    }
}

/// The platform user or group with this id, if the user may see it.
async fn principal(visit: &Visit<'_>, shape: &Shape, id: &str) -> Option<(&'static Resource, Value)> {
    let resource = directory::of_shape(shape)?;
    visit.may(resource.read).filter(|_| !id.is_empty())?;
    read(visit, resource, id).await.ok().map(|row| (resource, row))
}

async fn form(
    visit: &Visit<'_>,
    resource: &'static Resource,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let id = values["principalId"].as_str().unwrap_or_default();
    let known = match principal(visit, &APPLICATION_USER, id).await {
        None => principal(visit, &APPLICATION_GROUP, id).await,
        user => user,
    };
    let who = known.map(|(resource, row)| title_of(resource, &row));
    let sections: Vec<Value> = SECTIONS
        .iter()
        .map(|(title, wires)| {
            let own =
                wires.iter().filter_map(|wire| creation_fields(resource).find(|field| field.wire() == *wire));
            let fields: Vec<Value> = own
                .map(|field| grant_field(visit, resource, field, values, problem, who.as_deref()))
                .collect();
            let about = if *title == "col_where" { words.page("grant_where") } else { "" };
            json!({ "title": words.page(title), "about": about, "fields": fields, "is_readonly": false })
        })
        .collect();
    let (heading, address) = (words.page("grant_give"), visit.address(resource));
    let page = FormPage {
        back: json!({ "href": address, "label": label(visit, resource) }),
        heading: heading.into(),
        icon: Some(resource.presentation.icon),
        errors: errors(visit, problem),
        sections,
        sidebar: vec![limits(visit).await?],
        hidden: vec![
            json!({ "name": "key", "value": fresh_key() }),
            json!({ "name": "review", "value": "true" }),
        ],
        bar: Some(
            json!({ "save": words.page("grant_review"), "cancel": { "href": address, "label": words.page("cancel") }, "review": false }),
        ),
        is_new: true,
        ..FormPage::default()
    };
    page.show(visit, problem.map_or(200, Problem::status))
}

/// A control of the form: principals are looked up by name, and only assignable roles are offered.
fn grant_field(
    visit: &Visit<'_>,
    resource: &Resource,
    field: &'static Field,
    values: &Value,
    problem: Option<&Problem>,
    who: Option<&str>,
) -> Value {
    let wire = field.wire();
    let error = error_at(problem, wire);
    let search = match resource.referenced(field) {
        _ if wire == "principalId" => Some(PRINCIPALS.to_owned()),
        other => other.map(|other| format!("/console/find?in={}", other.name)),
    };
    let form_field = FormField {
        field,
        row: values,
        is_fixed: false,
        is_required: !field.nullable,
        error: &error,
        href: None,
        search,
    };
    let mut rendered = form_field.render(visit.words);
    let Some(members) = rendered.as_object_mut() else { return rendered };
    members.insert("hint".to_owned(), json!(""));
    if let Some(who) = who.filter(|_| wire == "principalId") {
        members.insert("shown".to_owned(), json!(who));
    }
    if wire == "roleType"
        && let Some(Value::Array(choices)) = members.get_mut("choices")
    {
        choices.retain(|choice| {
            let name = choice["value"].as_str().unwrap_or_default();
            name.is_empty() || RoleType::of(name).is_some_and(|role| may_give(visit, role))
        });
    }
    rendered
}

/// Whether the user holds the role, or one that implies it, in any scope.
fn may_give(visit: &Visit<'_>, role: RoleType) -> bool {
    visit.visitor.caller.roles.iter().any(|held| held.role.implies(role))
}

/// The roles that the user may assign, with their scopes.
async fn limits(visit: &Visit<'_>) -> Result<Card, Problem> {
    let words = visit.words;
    let held = &visit.visitor.caller.roles;
    let ids: Vec<(&str, String)> =
        held.iter().filter_map(|held| Some((held.scope.name(), held.scope.id()?.to_string()))).collect();
    let names = rights::scope_names(visit, ids.iter().map(|(kind, id)| (*kind, id.as_str()))).await?;
    let lines: Vec<Line> = held
        .iter()
        .map(|held| {
            let id = held.scope.id().map(|id| id.to_string());
            let scope = &rights::scope_of(visit, id.as_deref(), &names);
            Line {
                text: words.choice(held.role.name()).into(),
                sub: plain(&scope["alone"]),
                href: scope["href"].as_str().map(str::to_owned),
                ..Line::default()
            }
        })
        .collect();
    Ok(Card {
        title: words.page("grant_limits").into(),
        kind: "lines",
        about: words.page("grant_limits_about").into(),
        lines,
        ..Card::default()
    })
}

/// Shows what the role adds to the present permissions.
async fn review(
    visit: &Visit<'_>,
    resource: &'static Resource,
    op: &'static Op,
    body: Map<String, Value>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let body = &Value::Object(body);
    let (kind, id) = (plain(&body["principalType"]), plain(&body["principalId"]));
    let is_group = kind == "PlatformGroup";
    let principal_row =
        principal(visit, if is_group { &APPLICATION_GROUP } else { &APPLICATION_USER }, &id).await;
    let (who, known) = match &principal_row {
        Some((resource, row)) => {
            (title_of(resource, row), rights::effective(visit, resource, &id).await?.unwrap_or_default())
        }
        None => (id, Value::Null),
    };
    let mut facts = vec![json!(granted(visit, body).await?)];
    facts.push(json!(added_permissions(visit, &who, body, &known)));
    if is_group {
        facts.push(json!(words.page("grant_group")));
    }
    let members = body.as_object().into_iter().flatten();
    let mut hidden: Vec<Value> =
        members.clone().map(|(name, value)| json!({ "name": name, "value": plain(value) })).collect();
    hidden.push(json!({ "name": "key", "value": fresh_key() }));
    let address = visit.address(resource);
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(members.map(|(name, value)| (name, plain(value))))
        .finish();
    let back = format!("{address}/new?{query}");
    let heading = format!("{}: {who}", words.page("grant_give"));
    let content = json!({
        "back": { "href": back, "label": words.page("back") }, "heading": heading, "text": words.page("grant_ready"),
        "facts": facts, "asks": null, "errors": [], "action": format!("{address}/new"), "hidden": hidden,
        "confirm": { "label": words.page("grant_give"), "is_dangerous": op.method == chancery_resource::Method::Delete },
        "cancel": { "href": back, "label": words.page("cancel") },
        "warning": crate::pages::set_by_other::assignment_warning(visit, body).await?,
    });
    visit.page(200, "confirm.html", &heading, &content)
}

/// The permissions of an assignment, as a sentence.
pub async fn granted(visit: &Visit<'_>, body: &Value) -> Result<String, Problem> {
    let scope = rights::SCOPES.iter().find_map(|shape| {
        let wire = format!("applyTo{}Id", shape.name);
        Some((shape.name, body[wire.as_str()].as_str()?))
    });
    let names = rights::scope_names(visit, scope.into_iter()).await?;
    let role = body["roleType"].as_str().unwrap_or_default();
    let scope_value = rights::scope_of(visit, scope.map(|(_, id)| id), &names);
    let sentence = &rights::sentence(visit, role, &scope_value, &[]);
    let at = |path: &str| sentence.pointer(path).map(plain).unwrap_or_default();
    Ok(format!(
        "{} {} {}, {} {}.",
        at("/does"),
        at("/where/of"),
        at("/where/text"),
        visit.words.page("rights_because"),
        at("/role")
    ))
}

/// The card of an assignment: its permissions, with a link to all permissions of the principal.
pub async fn card(visit: &Visit<'_>, row: &Value) -> Result<Card, Problem> {
    let words = visit.words;
    let is_group = row["principalType"] == json!("PlatformGroup");
    let other = directory::of_shape(if is_group { &APPLICATION_GROUP } else { &APPLICATION_USER });
    let other = other.filter(|other| visit.may(other.read).is_some());
    let more = other.zip(row["principalId"].as_str()).map(|(other, id)| {
        json!({ "href": format!("{}/{}/rights", visit.address(other), encoded(id)), "label": words.page("rights_why") })
    });
    Ok(Card {
        title: words.page("rights").into(),
        kind: "lines",
        about: (granted(visit, row).await?),
        more,
        ..Card::default()
    })
}

/// The additional permissions.
fn added_permissions(visit: &Visit<'_>, who: &str, body: &Value, known: &Value) -> String {
    let words = visit.words;
    let had = known["permissions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let role = RoleType::of(body["roleType"].as_str().unwrap_or_default());
    let allowed = role.map(Allowed::by);
    let all = allowed.iter().flat_map(Allowed::permissions);
    let new: Vec<&str> =
        all.filter(|(_, permission)| !had.contains(&json!(permission))).map(|(name, _)| name).collect();
    if new.is_empty() {
        return words.page("grant_adds_nothing").replace("{name}", who);
    }
    words.page("grant_adds").replace("{name}", who).replace("{things}", &rights::resource_list(words, &new))
}
