//! Custom assets: files that the sign-in pages embed.

use chancery_presentation::{asset, location::Kind as LocationKind};
use chancery_record::{
    Bytes, FieldType, Form, HIDDEN, Json, KEY, Kind, Mismatch, Name, OPEN, SHOWN, Token, Value, record,
};
use chancery_resource::{
    Action as A, Answer, Body, BodyForm, Call, Custom, JsonForm, Method as M, Op, Permit::TenantAdmin,
    Problem, ProposedRow, Purpose, Reach, Reply, Rows, Shape, Tx, Unique, Violation, Writer, Writing,
    read_form, standard, write_bodies,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use uuid::Uuid;

use crate::{
    location::{ApplyToType, Location, LocationFields, NamedLocation, settle_levels},
    slow_validation::validate_items,
};

/// A media type that an asset can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MimeType(pub String);

impl FieldType for MimeType {
    const KIND: Kind = Kind::Choice(asset::mime_types());
    fn into_value(self) -> Value {
        Value::Text(self.0)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        if let Value::Text(text) = value { Ok(Self(text)) } else { Err(Mismatch("")) }
    }
}

record! {
    /// A file that pages embed.
    #[de("Datei", "Dateien", "Eine Datei, die in Seiten eingebunden wird.")]
    pub struct CustomAsset {
        /// Location, a path. The level and the id in it determine what it applies to.
        location: Location = KEY,
        /// Its media type.
        mimetype: MimeType = OPEN,
        /// Content of the file, at most 5 MiB. It must be of the media type.
        #[de(_, "Der Inhalt der Datei, höchstens 5 MiB. Er muss dem Medientyp entsprechen.")]
        data: Bytes = OPEN,
        /// Size of the file in bytes.
        #[de("Größe")]
        size: Option<i64> = SHOWN,
        /// File name: the last part of the location.
        #[de("Dateiname")]
        file_name: Option<Name> = SHOWN.like("logo.png"),
        /// The subscription that it belongs to.
        subscription_id: Option<Uuid> = HIDDEN,
        /// The client app that it belongs to.
        client_app_id: Option<Uuid> = HIDDEN,
        /// The tenant that it belongs to.
        tenant_id: Option<Uuid> = HIDDEN,
        /// Concurrency token. It changes with every write to the asset.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of custom assets.
pub static CUSTOM_ASSET: Shape = Shape::of::<CustomAsset>(
    "CustomAsset",
    "custom_asset",
    Reach::Tenant(CustomAsset::SUBSCRIPTION_ID.field(), CustomAsset::TENANT_ID.field()),
)
.unique(&[Unique::new("custom_asset__location", &[CustomAsset::LOCATION.field()])])
.validate_rows(check)
.bumps_epoch()
.large();

const LOCATED: LocationFields<CustomAsset> = LocationFields {
    location: CustomAsset::LOCATION,
    subscription: CustomAsset::SUBSCRIPTION_ID,
    client_app: CustomAsset::CLIENT_APP_ID,
    tenant: CustomAsset::TENANT_ID,
};

fn check(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let mut violations = settle_levels(writer.context, tx, &LOCATED, rows)?;
    let mut files = Vec::with_capacity(rows.len());
    for row in rows {
        let data = row.get(CustomAsset::DATA)?.0;
        let kind = row.get(CustomAsset::MIMETYPE)?.0;
        let size = i64::try_from(data.len()).unwrap_or(i64::MAX);
        let location = row.text(CustomAsset::LOCATION).unwrap_or_default();
        let name = asset::file_name_of(location).chars().take(256).collect::<String>();
        row.set(CustomAsset::SIZE, Some(size))?;
        CustomAsset::FILE_NAME.field().set(row.values, name.into());
        files.push((kind, data));
    }
    violations.extend(validate_items(writer, Purpose::Image, files, |(kind, data)| {
        asset::check(kind, data).map(|()| 0).map_err(|detail| vec![(CustomAsset::DATA.field(), detail)])
    })?);
    Ok(violations)
}

record! {
    /// An asset whose location is derived from what it applies to.
    pub struct CustomAssetCreateByExpander {
        /// Its media type.
        mimetype: MimeType = OPEN,
        /// File name of the asset: the last part of its location.
        #[de("Dateiname", "Der Dateiname: der letzte Teil des Ortes.")]
        asset_file_name: Name = OPEN.like("logo.png"),
        /// Content of the file.
        data: Bytes = OPEN,
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

static EXPANDER: BodyForm = BodyForm::of::<CustomAssetCreateByExpander>("CustomAssetCreateByExpander");
static MIME_TYPES: JsonForm = JsonForm { name: "MimeTypes", schema: mime_types_schema };

fn mime_types_schema() -> serde_json::Value {
    json!({ "type": "array", "description": "Media types.", "items": { "type": "string", "examples": ["image/png"] } })
}

/// The operations on custom assets.
pub static OPERATIONS: [Op; 9] =
    standard!("CustomAsset", "/CustomAsset", TenantAdmin, TenantAdmin, &CUSTOM_ASSET);
/// Operations on custom assets beyond the standard ones.
pub static MORE: &[Op] = &[
    Op::new(
        "GetCustomAssetMimeTypes",
        M::Get,
        "/CustomAsset/mimetypes",
        TenantAdmin,
        &CUSTOM_ASSET,
        A::Custom(Custom::reading(mime_types).replying(Reply::Json(&MIME_TYPES))),
        "Lists the media types that an asset can have.",
    ),
    Op::new(
        "CreateCustomAssetByExpander",
        M::Post,
        "/CustomAsset/create",
        TenantAdmin,
        &CUSTOM_ASSET,
        A::Custom(Custom::writing(create_expanded).taking(Body::Form(&EXPANDER))),
        "Creates an asset whose location is derived from what it applies to.",
    )
    .answering(201, Reply::One),
];

/// The media types of assets that are images.
pub fn image_types() -> impl Iterator<Item = &'static str> {
    asset::mime_types().iter().copied().filter(|kind| kind.starts_with("image/"))
}

/// The characters of a path that are not percent-encoded (RFC 3986, section 3.3).
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The path at this server of the asset at a location.
pub fn content_path(location: &str) -> String {
    format!("/content{}", utf8_percent_encode(location, PATH))
}

#[expect(clippy::unnecessary_wraps, reason = "the engine calls it by this form")]
fn mime_types(call: &mut Call, _: &mut Tx<'_>) -> Result<Answer, Problem> {
    call.answer.bytes.extend_from_slice(json!(asset::mime_types()).to_string().as_bytes());
    Ok(Answer::new(call.request.op.status))
}

fn create_expanded(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = read_form::<CustomAssetCreateByExpander>(call)?;
    let named = NamedLocation {
        given: form.location.as_ref(),
        apply_to: form.apply_to_type,
        tenant: (CustomAssetCreateByExpander::TENANT_ID.field(), form.tenant_id),
        client_app: (CustomAssetCreateByExpander::CLIENT_APP_ID.field(), form.client_app_id),
        subscription: (CustomAssetCreateByExpander::SUBSCRIPTION_ID.field(), form.subscription_id),
        name: (CustomAssetCreateByExpander::ASSET_FILE_NAME.field(), form.asset_file_name.as_str()),
    };
    let location = named.expand(LocationKind::Asset)?;
    let given = |member: &str| {
        call.request.body.as_ref().and_then(|body| body.get(member)).cloned().unwrap_or(Json::Null)
    };
    let body = Json::Object(vec![
        ("location".to_owned(), Json::Text(location)),
        ("mimetype".to_owned(), given("mimetype")),
        ("data".to_owned(), given("data")),
    ]);
    write_bodies(call, tx, Writing::one(Rows::New, Form::Create), &[body])
}
