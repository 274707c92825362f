//! Preview of a view with sample data, before it is saved.

use chancery_presentation::{
    language::Language,
    location::{ApplyTo, Kind, level_of, prefix},
    shipped,
    view::{Failure, Views},
};
use chancery_record::{
    FieldType, Kind as RecordKind, Mismatch, Name, OPEN, OptionValue, Value as RecordValue, ViewText,
    choice_types, record,
};
use chancery_resource::settings::TenantOption;
use chancery_resource::{
    Action as A, Answer, Body, BodyForm, Call, Custom, JsonForm, Method as M, Mode, Op, Permit::TenantAdmin,
    Problem, Purpose, Reply, Tx, Work, read_form, visible,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::CUSTOM_VIEW;
use crate::{
    appearance::{Appearance, Owners},
    client_app::CLIENT_APP,
    location::Location,
    subscription::SUBSCRIPTION,
    tenant::TENANT,
};

choice_types! {
    /// A language of pages.
    PageLanguage {
        /// English.
        En,
        /// German.
        De,
    }
}

/// The name of a shipped page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageName(String);

impl FieldType for PageName {
    const KIND: RecordKind = RecordKind::Choice(shipped::names());
    fn into_value(self) -> RecordValue {
        RecordValue::Text(self.0)
    }
    fn from_value(value: RecordValue) -> Result<Self, Mismatch> {
        if let RecordValue::Text(name) = value { Ok(Self(name)) } else { Err(Mismatch("")) }
    }
}

record! {
    /// A preview of a view before it is saved.
    pub struct ViewPreview {
        /// Location of the view: its owner and its name.
        #[de(_, "Der Ort der Ansicht: ihr Besitzer und ihr Name.")]
        location: Location = OPEN.like("/views/global/SignIn"),
        /// The template. Default: the existing view, or the shipped one.
        #[de(_, "Die Vorlage. Ohne Angabe die vorhandene Ansicht oder die mitgelieferte.")]
        content: Option<ViewText> = OPEN,
        /// The language of the page.
        #[de("Sprache", "Die Sprache der Seite.")]
        language: PageLanguage = OPEN.or(chancery_record::DefaultValue::Text("En")),
        /// The page that is shown. Default: the view itself, or `SignIn` if the view is a part of pages.
        #[de(
            "Seite",
            "Die Seite, die gezeigt wird. Ohne Angabe die Ansicht selbst, oder `SignIn`, wenn die Ansicht ein Teil von Seiten ist."
        )]
        page: Option<PageName> = OPEN,
        /// The state in which the page is shown. Default: the first one.
        #[de("Zustand", "Der Zustand, in dem die Seite gezeigt wird. Ohne Angabe der erste.")]
        sample: Option<Name> = OPEN.like("first"),
        /// Value of the tenant's option BrandName in the preview. Default: its current value. The same applies to BrandLogo, BrandColour
        /// and PageLinks.
        #[de(
            "Name der Marke",
            "Der Wert der Option BrandName des Mandanten in der Vorschau. Ohne Angabe der aktuelle Wert. Dasselbe gilt für BrandLogo, BrandColour und PageLinks."
        )]
        brand_name: Option<OptionValue> = OPEN.like("Example"),
        /// Value of the option BrandLogo in the preview.
        #[de("Logo der Marke", "Der Wert der Einstellung BrandLogo in der Vorschau.")]
        brand_logo: Option<OptionValue> = OPEN.like("/assets/tenant/logo.svg"),
        /// Value of the option BrandColour in the preview.
        #[de("Farbe der Marke", "Der Wert der Einstellung BrandColour in der Vorschau.")]
        brand_colour: Option<OptionValue> = OPEN.like("#22406b"),
        /// Value of the option PageLinks in the preview.
        #[de("Links auf Seiten", "Der Wert der Einstellung PageLinks in der Vorschau.")]
        page_links: Option<OptionValue> = OPEN.like("Imprint https://example.com/imprint"),
    }
}

static BODY: BodyForm = BodyForm::of::<ViewPreview>("ViewPreview");
static REPLY: JsonForm = JsonForm { name: "PreviewedView", schema };

/// The operation that shows a view before it is saved.
pub static OPERATIONS: &[Op] = &[Op::new(
    "PreviewView",
    M::Post,
    "/CustomView/preview",
    TenantAdmin,
    &CUSTOM_VIEW,
    A::Custom(
        Custom { mode: Mode::Long, ..Custom::reading(preview) }
            .taking(Body::Form(&BODY))
            .replying(Reply::Json(&REPLY)),
    ),
    "Renders a preview of a view with sample data, together with the other views of its owner.",
)
.added()];

fn schema() -> Value {
    let text =
        |about: &str, example: &str| json!({ "type": "string", "description": about, "examples": [example] });
    let number = |about: &str| json!({ "type": "integer", "description": about, "examples": [2] });
    json!({
        "type": "object", "description": "A page.", "required": ["page", "sample", "samples", "html", "failure"],
        "properties": {
            "page": text("The page that is shown.", "SignIn"),
            "sample": text("The state in which the page is rendered.", "first"),
            "samples": { "type": "array", "description": "The states in which the page can be rendered.",
                "items": { "type": "string", "examples": ["first"] } },
            "html": { "type": ["string", "null"], "description": "The page as HTML. Null if it cannot be rendered." },
            "failure": { "anyOf": [{ "type": "null" }, {
                "type": "object", "description": "Reason why the page cannot be rendered.", "required": ["view", "line", "column", "detail"],
                "properties": {
                    "view": text("Name of the view that cannot be rendered.", "SignIn"),
                    "line": number("The line, from 1."),
                    "column": number("The column in the line, in characters, from 1."),
                    "detail": text("Description of the error at this place.", "the view takes too many steps"),
                },
            }] },
        },
    })
}

/// The rendered page, or the failure.
type Rendered = Result<String, Failure>;

/// The page and the sample to render.
struct PreviewRequest {
    page: String,
    sample: String,
    context: Value,
    samples: Vec<String>,
}

impl PreviewRequest {
    fn of(form: &ViewPreview, name: &str) -> Result<Self, Problem> {
        let page = match &form.page {
            Some(page) => page.0.as_str(),
            None if shipped::names().contains(&name) => name,
            None => "SignIn",
        };
        let contexts = shipped::samples(page);
        let samples: Vec<String> = contexts.keys().cloned().collect();
        let Some(first) = samples.first() else {
            return Err(Problem::wrong_field(ViewPreview::PAGE, "names no page"));
        };
        let sample = form.sample.as_ref().map_or(first.as_str(), Name::as_str).to_owned();
        let Some(context) = contexts.get(&sample).cloned() else {
            let detail = format!("names no state of the page {page}; there are {}", samples.join(", "));
            return Err(Problem::wrong_field(ViewPreview::SAMPLE, detail));
        };
        Ok(Self { page: page.to_owned(), sample, context, samples })
    }
}

/// Reads the views of the owner in the transaction. Parsing and filling take time, so both happen in the pool of workers.
fn preview(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = read_form::<ViewPreview>(call)?;
    let location = form.location.0.clone();
    let (name, levels) = owner_of(call, tx, &location)?;
    let mut request = PreviewRequest::of(&form, &name)?;
    if let Some(rendered) = call.result::<Rendered>() {
        let failure = rendered.as_ref().as_ref().err().map(|failure| {
            let refusal = &failure.refusal;
            json!({ "view": failure.view, "line": refusal.line, "column": refusal.column, "detail": refusal.detail })
        });
        let body = json!({
            "page": request.page, "sample": request.sample, "samples": request.samples,
            "html": rendered.as_ref().as_ref().ok(), "failure": failure,
        });
        call.answer.bytes.extend_from_slice(body.to_string().as_bytes());
        return Ok(Answer::new(call.request.op.status));
    }
    let mut appearance = Appearance::read(tx, levels)?;
    let options = [
        (TenantOption::BRAND_NAME.name(), &form.brand_name),
        (TenantOption::BRAND_LOGO.name(), &form.brand_logo),
        (TenantOption::BRAND_COLOUR.name(), &form.brand_colour),
        (TenantOption::PAGE_LINKS.name(), &form.page_links),
    ];
    for (name, value) in options {
        if let Some(value) = value {
            appearance.put(name, value.as_str());
        }
    }
    if let Some(context) = request.context.as_object_mut().filter(|_| form.page_links.is_some()) {
        // the links of the sample do not apply
        context.remove("links");
    }
    appearance.fill(&mut request.context);
    let mut own = appearance.own().to_vec();
    if let Some(content) = form.content {
        own.extend([(name.clone(), content.as_str().to_owned()), (location, content.as_str().to_owned())]);
    }
    let language = match form.language {
        PageLanguage::En => Language::English,
        PageLanguage::De => Language::German,
    };
    let work = move || -> Rendered {
        let (views, failures) = Views::new(language, own);
        match failures.into_iter().find(|failure| failure.view == name) {
            Some(failure) => Err(failure),
            None => views.render(&request.page, &request.context).map(|shown| shown.html),
        }
    };
    Ok(Answer::after(Work::new(Purpose::Page, work)))
}

/// The name of the view at a location, and its owner.
fn owner_of(call: &Call, tx: &mut Tx<'_>, location: &str) -> Result<(String, Owners), Problem> {
    let wrong = |detail: &str| Problem::wrong_field(ViewPreview::LOCATION, detail);
    let (level, id) = level_of(location).ok_or_else(|| wrong("must be a view's"))?;
    let Some(name) = location.strip_prefix(prefix(Kind::View, level, id).as_str()) else {
        return Err(wrong("must be one at which pages look for views, such as /views/global/SignIn"));
    };
    let mut owners = Owners::default();
    let owned = match (level, id) {
        (ApplyTo::Global, _) | (_, None) => None,
        (ApplyTo::Subscription, Some(id)) => Some((&mut owners.subscription, &SUBSCRIPTION, id)),
        (ApplyTo::ClientApp, Some(id)) => Some((&mut owners.client_app, &CLIENT_APP, id)),
        (ApplyTo::Tenant, Some(id)) => Some((&mut owners.tenant, &TENANT, id)),
    };
    if let Some((owner, shape, id)) = owned {
        if !visible(&call.context, tx, shape, &[id])?.contains_key(&id) {
            return Err(wrong(&format!("names no {}", shape.name)));
        }
        let named: &mut Option<Uuid> = owner;
        *named = Some(id);
    }
    Ok((name.to_owned(), owners))
}
