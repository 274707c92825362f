//! Custom views: templates of the sign-in pages.

mod quota;

pub mod preview;

use chancery_presentation::{
    location::{Kind as LocationKind, level_of, prefix},
    shipped, view,
};
use chancery_record::{Form, HIDDEN, Json, KEY, Name, OPEN, SHOWN, Token, Value, ViewText, misspelt, record};
use chancery_resource::{
    Action as A, Answer, Body, BodyForm, Call, Custom, FieldFault, JsonForm, Method as M, Op,
    Permit::{Administrator, TenantAdmin},
    Problem, ProposedRow, Purpose, Reach, Reply, Rows, Shape, Tx, Unique, Violation, Writer, Writing,
    read_form, standard, write_bodies,
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    location::{ApplyToType, Location, LocationFields, NamedLocation, settle_levels},
    slow_validation::validate_items,
    violation::violation_at,
};

record! {
    /// The template of a page that is shown to users.
    #[de("Seite", "Seiten", "Die Vorlage einer Seite, die Benutzern angezeigt wird.")]
    pub struct CustomView {
        /// Location, a path. The level and the id in it determine what it applies to.
        location: Location = KEY,
        /// The template, at most 1 MiB.
        #[de(_, "Die Vorlage, höchstens 1 MiB.")]
        content: ViewText = OPEN,
        /// The subscription that it belongs to.
        subscription_id: Option<Uuid> = HIDDEN,
        /// The client app that it belongs to.
        client_app_id: Option<Uuid> = HIDDEN,
        /// The tenant that it belongs to.
        tenant_id: Option<Uuid> = HIDDEN,
        /// Concurrency token. It changes with every write to the view.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of custom views.
pub static CUSTOM_VIEW: Shape = Shape::of::<CustomView>(
    "CustomView",
    "custom_view",
    Reach::Tenant(CustomView::SUBSCRIPTION_ID.field(), CustomView::TENANT_ID.field()),
)
.unique(&[Unique::new("custom_view__location", &[CustomView::LOCATION.field()])])
.validate_rows(check)
.bumps_epoch()
.large();

const LOCATED: LocationFields<CustomView> = LocationFields {
    location: CustomView::LOCATION,
    subscription: CustomView::SUBSCRIPTION_ID,
    client_app: CustomView::CLIENT_APP_ID,
    tenant: CustomView::TENANT_ID,
};

fn check(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let mut violations = settle_levels(writer.context, tx, &LOCATED, rows)?;
    violations.extend(quota::check(tx, rows)?);
    violations.extend(misnamed(rows));
    // an unchanged template is not validated: an earlier release may have accepted it
    let to_validate = |row: &ProposedRow<'_>| {
        let content = row.text(CustomView::CONTENT).unwrap_or_default();
        let is_new = row.was.is_none_or(|was| was.text(CustomView::CONTENT) != Some(content));
        let location = row.text(CustomView::LOCATION).unwrap_or_default();
        let name = location.rsplit('/').next().unwrap_or_default();
        let template = if is_new { content.to_owned() } else { String::new() };
        NamedTemplate { name: name.to_owned(), template }
    };
    let views: Vec<_> = rows.iter().map(to_validate).collect();
    if views.iter().any(|view| !view.template.is_empty()) {
        violations.extend(validate_items(writer, Purpose::Page, views, validate_view)?);
    }
    Ok(violations)
}

/// A page of another release: no page here would show a view of this name.
const REMOVED_PAGE: &str = "Account";

/// The name by which pages and other views find the view at this location; `None`: others can include it by its location
/// alone.
pub fn view_name(location: &str) -> Option<&str> {
    let (level, id) = level_of(location)?;
    location.strip_prefix(prefix(LocationKind::View, level, id).as_str())
}

/// Rejects new views that misspell the name of a page. Any other name is that of a partial, which views include.
fn misnamed(rows: &[ProposedRow<'_>]) -> Vec<Violation> {
    let check_name = |(index, row): (usize, &ProposedRow<'_>)| {
        let name = view_name(row.text(CustomView::LOCATION).filter(|_| row.was.is_none())?)?;
        if shipped::all_names().any(|known| known == name) {
            return None;
        }
        let detail = match misspelt(name, shipped::all_names()) {
            Some(known) => format!("must end with the name of a page: did you mean {known}?"),
            None if name == REMOVED_PAGE => {
                format!("must end with the name of a page: {name} is none here")
            }
            None => return None,
        };
        Some(violation_at(index, CustomView::LOCATION, detail))
    };
    rows.iter().enumerate().filter_map(check_name).collect()
}

/// Faults of a stored view. It is served as far as its template is allowed, else the shipped view is.
pub fn refusals(values: &[Value]) -> Vec<FieldFault> {
    let location = CustomView::LOCATION.text(values).unwrap_or_default();
    let name = location.rsplit('/').next().unwrap_or_default().to_owned();
    let template = CustomView::CONTENT.text(values).unwrap_or_default().to_owned();
    validate_view(&NamedTemplate { name, template }).err().unwrap_or_default()
}

/// A view as it is validated.
#[derive(PartialEq)]
struct NamedTemplate {
    name: String,
    template: String,
}

/// Validates a view: its template, and the pages that are rendered from it.
fn validate_view(view: &NamedTemplate) -> Result<u64, Vec<FieldFault>> {
    let NamedTemplate { name, template } = view;
    let result = view::check(template).and_then(|()| view::check_page(name, template));
    result.map(|()| 0).map_err(|refusal| {
        let detail = format!("line {}, column {}: {}", refusal.line, refusal.column, refusal.detail);
        vec![(CustomView::CONTENT.field(), detail)]
    })
}

record! {
    /// A view that is created from a shipped view.
    pub struct CustomViewCreateFromTemplate {
        /// Name of the shipped view.
        #[de("Seite", "Der Name der mitgelieferten Ansicht.")]
        view_name: Name = OPEN.like("SignIn"),
        /// Level that it applies to.
        apply_to_type: ApplyToType = OPEN.or(chancery_record::DefaultValue::Text("Global")),
        /// The tenant that it is for.
        tenant_id: Option<Uuid> = OPEN,
        /// The client app that it is for.
        client_app_id: Option<Uuid> = OPEN,
        /// The subscription that it is for.
        subscription_id: Option<Uuid> = OPEN,
        /// Location. If omitted, it is derived from the other members.
        location: Option<Location> = OPEN,
    }
}

static TEMPLATE: BodyForm = BodyForm::of::<CustomViewCreateFromTemplate>("CustomViewCreateFromTemplate");
static NAMES: JsonForm = JsonForm { name: "ViewNames", schema: names_schema };
static CONTENT: JsonForm = JsonForm { name: "ViewContent", schema: content_schema };

fn names_schema() -> serde_json::Value {
    json!({ "type": "array", "description": "Names of views.", "items": { "type": "string", "examples": ["SignIn"] } })
}

fn content_schema() -> serde_json::Value {
    json!({ "type": "string", "description": "A template.", "examples": ["<p>{{ title }}</p>"] })
}

/// The operations on custom views.
pub static OPERATIONS: [Op; 9] =
    standard!("CustomView", "/CustomView", TenantAdmin, TenantAdmin, &CUSTOM_VIEW);
/// Operations on custom views beyond the standard ones.
pub static MORE: &[Op] = &[
    Op::new(
        "CreateCustomViewFromTemplate",
        M::Post,
        "/CustomView/viewtemplate/view",
        TenantAdmin,
        &CUSTOM_VIEW,
        A::Custom(Custom::writing(create_from_template).taking(Body::Form(&TEMPLATE))),
        "Creates a view that begins as one that is shipped.",
    )
    .answering(201, Reply::One),
    Op::new(
        "GetViewTemplateNames",
        M::Get,
        "/CustomView/viewtemplate/names",
        Administrator,
        &CUSTOM_VIEW,
        A::Custom(Custom::reading(names).replying(Reply::Json(&NAMES))),
        "Lists the names of the shipped views.",
    ),
    Op::new(
        "GetViewTemplateContent",
        M::Get,
        "/CustomView/viewtemplate/content/{viewName}",
        Administrator,
        &CUSTOM_VIEW,
        A::Custom(Custom::reading(content).replying(Reply::Json(&CONTENT))),
        "Reads a view that is shipped.",
    ),
];

#[expect(clippy::unnecessary_wraps, reason = "the engine calls it by this form")]
fn names(call: &mut Call, _: &mut Tx<'_>) -> Result<Answer, Problem> {
    call.answer.bytes.extend_from_slice(json!(shipped::names()).to_string().as_bytes());
    Ok(Answer::new(call.request.op.status))
}

fn content(call: &mut Call, _: &mut Tx<'_>) -> Result<Answer, Problem> {
    let found =
        shipped::content(call.request.parameter(0)).ok_or_else(|| Problem::not_found("shipped view"))?;
    call.answer.bytes.extend_from_slice(json!(found).to_string().as_bytes());
    Ok(Answer::new(call.request.op.status))
}

fn create_from_template(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = read_form::<CustomViewCreateFromTemplate>(call)?;
    let name = form.view_name.as_str();
    let Some(content) = shipped::content(name) else {
        let detail = format!("names no shipped view; there are {}", shipped::names().join(", "));
        return Err(Problem::wrong_field(CustomViewCreateFromTemplate::VIEW_NAME, detail));
    };
    let named = NamedLocation {
        given: form.location.as_ref(),
        apply_to: form.apply_to_type,
        tenant: (CustomViewCreateFromTemplate::TENANT_ID.field(), form.tenant_id),
        client_app: (CustomViewCreateFromTemplate::CLIENT_APP_ID.field(), form.client_app_id),
        subscription: (CustomViewCreateFromTemplate::SUBSCRIPTION_ID.field(), form.subscription_id),
        name: (CustomViewCreateFromTemplate::VIEW_NAME.field(), name),
    };
    let location = named.expand(LocationKind::View)?;
    let body = Json::Object(vec![
        ("location".to_owned(), Json::Text(location)),
        ("content".to_owned(), Json::Text(content.to_owned())),
    ]);
    write_bodies(call, tx, Writing::one(Rows::New, Form::Create), &[body])
}
